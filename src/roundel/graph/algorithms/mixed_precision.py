# SPDX-License-Identifier: Apache-2.0
"""A model of float32 in mixed precision: products and convolutions take operands of 16 bits, whatever the machine.

    matmul(x, w)   ->   matmul(astype(x, "float16"), astype(w, "float16"), out_dtype="float32")

With ``out_dtype`` of 16 bits results are rounded too, and what only moves or combines elements of such results computes in 16 bits, until an operator
that would lose by it (sums, exponentials, normalisations) asks for float32 (Micikevicius et al., 2018, https://arxiv.org/abs/1710.03740).
Parameters and results keep their types, but for the inputs that are named. `precision` does the like for weights where it is fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import graph
from ...ir.dtype import DType
from ...ir.errors import OptionError
from ...ir.module import IRModule
from ...ir.op import OpDef
from ...ops import make
from ..rewriter import GraphRewriter, is_call
from ..tidy.dead_code import eliminate_dead_code

WIDE = "float32"
NARROW = ("float16", "bfloat16")
PRODUCTS = ("matmul", "linear", *(f"nn.conv{n}d{kind}" for n in (1, 2, 3) for kind in ("", "_transpose")))
FOLLOWERS = (
    "add", "subtract", "multiply", "maximum", "minimum", "negative", "abs", "where", "clip", "nn.relu", "nn.relu6", "nn.leakyrelu", "reshape", "flatten",
    "nn.batch_flatten", "expand_dims", "squeeze", "permute_dims", "broadcast_to", "concat", "stack", "strided_slice", "nn.pad", "repeat", "tile", "flip",
    "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "depth_to_space", "space_to_depth", "take", "layout_transform",
)
"""Operators that compute in 16 bits where all their operands are of 16 bits already or constants."""


def mixed_precision(mod: IRModule, dtype: str = "float16", out_dtype: str = WIDE, inputs: Sequence[str] = ()) -> IRModule:
    """The module with products of ``dtype`` (float16 or bfloat16) whose results are of ``out_dtype`` (float32 or the same). ``inputs`` are names of float32
    parameters that become of ``dtype``. Raises OptionError for other types and names that no function has."""
    if dtype not in NARROW or out_dtype not in (WIDE, dtype):
        raise OptionError(f"there is no mixed precision of {dtype} with results of {out_dtype}",
                          hint="dtype is float16 or bfloat16, out_dtype float32 or the same as dtype")
    made = _Narrowing(mod, dtype, out_dtype, tuple(inputs)).module()
    names = {p.name for f in mod.functions.values() if isinstance(f, graph.Function) for p in f.params}
    if unknown := [n for n in inputs if n not in names]:
        raise OptionError(f"no function has a parameter {unknown[0]}", hint=f"parameters there are: {', '.join(sorted(names))}")
    return eliminate_dead_code(made)


class _Narrowing(GraphRewriter):
    def __init__(self, mod: IRModule, dtype: str, out_dtype: str, inputs: tuple[str, ...]) -> None:
        super().__init__(mod)
        self.dtype, self.out_dtype, self.inputs = DType(dtype), out_dtype, inputs

    def function(self, func: graph.Function) -> graph.Function:
        """The function with the named inputs narrow, each widened once."""
        params, widened = [], []
        for p in func.params:
            if p.name in self.inputs and isinstance(p.sinfo, graph.TensorInfo) and p.sinfo.dtype == WIDE:
                params.append(graph.Var(p.name, p.sinfo.replace(dtype=self.dtype)))
                widened.append(graph.VarBinding(p, make("astype", params[-1], dtype=WIDE)))
            else:
                params.append(p)
        if widened:
            blocks = (graph.BindingBlock(tuple(widened)), *func.body.blocks)
            func = func.replace(params=tuple(params), body=func.body.replace(blocks=blocks))
        return super().function(func)

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not isinstance(call.op, OpDef) or call.sinfo_args or getattr(call.sinfo, "dtype", None) != WIDE:
            return call
        if call.op.name in PRODUCTS and all(_is_wide(a) for a in call.args if isinstance(a.sinfo, graph.TensorInfo)):
            return self._wide(make(call.op.name, *map(self._narrow, call.args), **{**call.attrs, "out_dtype": self.out_dtype}))
        if call.op.name in FOLLOWERS and self.out_dtype != WIDE and self._follows(call):
            return self._wide(make(call.op.name, *map(self._narrow, call.args), **call.attrs))
        return call

    def _wide(self, value: graph.Call) -> graph.GraphExpr:
        """A result in the type that what follows was made for."""
        return value if value.sinfo.dtype == WIDE else make("astype", self.emit(value), dtype=WIDE)

    def _narrow(self, value: Any) -> Any:
        """A float32 tensor in 16 bits: what was widened as it was."""
        if isinstance(value, graph.Tuple):
            return graph.Tuple(tuple(map(self._narrow, value.fields)))
        if not isinstance(value.sinfo, graph.TensorInfo) or not _is_wide(value):
            return value
        made = self.producer(value)
        if is_call(made, "astype") and made.args[0].sinfo.dtype == self.dtype:  # type: ignore[union-attr]
            return made.args[0]  # type: ignore[union-attr]
        return self.emit(make("astype", value, dtype=str(self.dtype)))

    def _follows(self, call: graph.Call) -> bool:
        """Whether an operand is of 16 bits already and all others are too, or constants, or no floats."""
        tensors = [f for a in call.args for f in (a.fields if isinstance(a, graph.Tuple) else (a,))]
        floats = [t for t in tensors if isinstance(t.sinfo, graph.TensorInfo) and _is_wide(t)]
        kinds = [is_call(made := self.producer(t), "astype") and made.args[0].sinfo.dtype == self.dtype for t in floats]  # type: ignore[union-attr]
        return any(kinds) and all(k or isinstance(t, graph.Constant) for k, t in zip(kinds, floats, strict=True))


def _is_wide(value: Any) -> bool:
    return getattr(value.sinfo, "dtype", None) == WIDE
