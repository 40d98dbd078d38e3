# SPDX-License-Identifier: Apache-2.0
"""The operator tester: what ``infer`` says, what ``compute`` (or ``decompose``) gives and the NumPy definition agree.

    opcheck("add", T("n", 1, 5), T(7, 1), dims={"n": 3})

runs the operator with the dimension n as 3 and as a symbolic variable. With OPCHECK_COMPILED=1 in the environment (or
``opcheck.COMPILED`` set) the tensor program is compiled as well, and with OPCHECK_SCHEDULED=1 a model of this one operator, as users
compile it: with ``--vector-bytes``, as if this machine's vectors had so many bytes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from roundel import driver
from roundel.build import compile_module
from roundel.builder import BlockBuilder
from roundel.interp import interpret
from roundel.ir import IRModule, graph, tir
from roundel.ir.dtype import DType
from roundel.ir.errors import LowerError
from roundel.ir.op import get_op
from roundel.ir.visit import substitute
from roundel.ops import make

COMPILED = os.environ.get("OPCHECK_COMPILED", "") == "1"
SCHEDULED = os.environ.get("OPCHECK_SCHEDULED", "") == "1"
TOLERANCE = {"float16": (4e-3, 1e-3), "bfloat16": (3e-2, 1e-2), "float32": (2e-5, 2e-5), "float64": (1e-10, 1e-10)}


@dataclass
class T:
    """A tensor operand: dimensions are numbers or names; ``values`` are given, or drawn from [low, high)."""

    dims: tuple[Any, ...]
    dtype: str
    low: float
    high: float
    values: Any

    def __init__(
        self, *dims: Any, dtype: str = "float32", low: float = -2.0, high: float = 2.0, values: Any = None
    ) -> None:
        self.dims, self.dtype, self.low, self.high, self.values = dims, dtype, low, high, values
        if values is not None:
            self.values = np.asarray(values, DType(dtype).numpy)
            self.dims = dims or self.values.shape

    def array(self, sizes: dict[str, int], rng: np.random.Generator) -> np.ndarray:
        if self.values is not None:
            return self.values
        shape = tuple(sizes[d] if isinstance(d, str) else d for d in self.dims)
        dtype = DType(self.dtype)
        if dtype.is_bool:
            return rng.random(shape) < 0.5
        if dtype.is_int:
            low = 0 if dtype.kind == "uint" and self.low < 0 else int(self.low) * 4
            return rng.integers(low, int(self.high) * 4 + 1, shape).astype(dtype.numpy)
        return rng.uniform(self.low, self.high, shape).astype(dtype.numpy)


def opcheck(
    name: str,
    *operands: Any,
    dims: dict[str, int] | None = None,
    tolerance: float | None = None,
    expected: Any = None,
    **attrs: Any,
) -> Any:
    """Check one operator on these operands (T, tuples of T, or values); returns the NumPy result.

    ``expected`` is an independent result to compare with as well.
    """
    sizes, rng = dims or {}, np.random.default_rng(0)
    arrays = [_arrays(o, sizes, rng) for o in operands]
    reference = None
    for symbolic in (False, True) if sizes else (False,):
        variables = {n: tir.Var(n, DType("int64"), True) if symbolic else tir.index_const(k) for n, k in sizes.items()}
        reference = _check(name, operands, arrays, variables, sizes, attrs, tolerance)
    if expected is not None:
        _close(reference, expected, tolerance, f"R.{name}: the NumPy definition and the expected result")
    return reference


def _check(name: str, operands: Any, arrays: Any, variables: Any, sizes: Any, attrs: Any, tolerance: Any) -> Any:
    op, params = get_op(name), []
    values = [_operand(o, a, variables, params) for o, a in zip(operands, arrays)]
    names = [n.rstrip("?") for n in op.operands]
    call = make(name, **{n: v for n, v in zip(names, values) if v is not None}, **attrs)
    inputs = [a for o, a in zip(operands, arrays) for a in _flat(o, a)]
    env = {v: tir.index_const(sizes[n]) for n, v in variables.items()}
    static = [_static(a, env) for a in call.args]
    reference = op.numpy(tuple(static_value(a, o, x) for a, o, x in zip(static, operands, arrays)), call.attrs)
    _check_info(name, call.sinfo, reference, env)
    if any(isinstance(v, tir.Var) for v in variables.values()):
        params.append(graph.Var("sizes", graph.ShapeInfo(tuple(variables.values()))))
        inputs.append(tuple(sizes.values()))
    mod = _module(op, call, params)
    out = interpret(mod)["main"](*inputs)
    _close(out, reference, tolerance, f"R.{name}: the tensor expression and the NumPy definition")
    if COMPILED and not op.has("decompose"):
        made = _run_compiled(mod, dict(zip(params, inputs)), reference, sizes)
        _close(made, reference, tolerance, f"R.{name}: compiled code and the NumPy definition")
    if SCHEDULED:
        try:
            main = driver.compile_module(_model(call, params)).load()["main"]
        except LowerError as error:
            assert "cannot be excluded" in str(error)  # where nothing bounds a symbolic size, which the importers check
        else:
            _close(main(*inputs), reference, tolerance, f"R.{name}: a model of it and the NumPy definition")
    return reference


def _run_compiled(mod: Any, values: dict[Any, Any], reference: Any, sizes: dict[str, int]) -> Any:
    """What the operator's tensor program gives when it is compiled."""
    call = mod["main"].body.bindings[0].value
    func = mod[call.args[0].name].with_attr("global_symbol", "f")
    several = isinstance(reference, tuple)
    outs = tuple(np.empty_like(np.asarray(r)) for r in (reference if several else (reference,)))
    args = [values[a] if isinstance(a, graph.Var) else a.data.numpy() for a in call.args[1].fields]
    scalars = [sizes[v.name] for v in call.args[2].values] if len(call.args) > 2 else []
    compile_module(IRModule({"f": func})).load()["f"](*args, *outs, *scalars)
    return outs if several else outs[0]


def _module(op: Any, call: graph.Call, params: list[graph.Var]) -> Any:
    bb = BlockBuilder()
    with bb.function("main", params):
        if op.has("decompose"):
            bb.emit_func_output(op.decompose(bb, call.args, call.attrs))
        else:
            bb.emit_func_output(bb.emit_te(lambda *a: op.compute(a, call.attrs), *call.args))
    return bb.finalize()


def _model(call: graph.Call, params: list[graph.Var]) -> Any:
    bb = BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(call))
    return bb.finalize()


def _arrays(o: Any, sizes: Any, rng: Any) -> Any:
    if isinstance(o, T):
        return o.array(sizes, rng)
    return tuple(_arrays(x, sizes, rng) for x in o) if isinstance(o, tuple) and any(isinstance(x, T) for x in o) else o


def _flat(o: Any, a: Any) -> list[Any]:
    if isinstance(o, T):
        return [a]
    return (
        [y for x, v in zip(o, a) for y in _flat(x, v)]
        if isinstance(o, tuple) and any(isinstance(x, T) for x in o)
        else []
    )


def _operand(o: Any, a: Any, variables: Any, params: list[graph.Var]) -> Any:
    if isinstance(o, T):
        shape = tuple(variables[d] if isinstance(d, str) else d for d in o.dims)
        params.append(graph.Var(f"x{len(params)}", graph.TensorInfo(shape, o.dtype)))
        return params[-1]
    if isinstance(o, tuple):
        made = tuple(_operand(x, v, variables, params) for x, v in zip(o, a))
        return graph.Tuple(made) if any(isinstance(x, T) for x in o) else made
    if callable(o):
        return o(**variables)
    return variables.get(o, o) if isinstance(o, str) else o


def _static(a: Any, env: Any) -> Any:
    if isinstance(a, graph.ShapeExpr):
        return tuple(_number(v, env) for v in a.values)
    if isinstance(a, graph.PrimValue):
        return _number(a.value, env)
    if isinstance(a, graph.Constant):
        return a.data.numpy()
    return a


def _number(v: Any, env: Any) -> Any:
    from roundel.arith import Analyzer

    return Analyzer().simplify(substitute(v, {k: x for k, x in env.items() if isinstance(k, tir.Var)})).value


def static_value(a: Any, o: Any, x: Any) -> Any:
    """The operand as NumPy definitions take it."""
    return x if isinstance(o, T) or (isinstance(o, tuple) and any(isinstance(i, T) for i in o)) else a


def _check_info(name: str, info: Any, reference: Any, env: Any) -> None:
    if isinstance(info, graph.TupleInfo):
        assert len(info.fields) == len(reference), f"R.{name}: {len(reference)} results, {len(info.fields)} inferred"
        for i, r in zip(info.fields, reference):
            _check_info(name, i, r, env)
        return
    reference = np.asarray(reference)
    assert info.dtype == DType(reference.dtype), f"R.{name}: type {info.dtype} inferred, {reference.dtype} computed"
    if info.shape is not None:
        shape = tuple(_number(d, env) for d in info.shape)
        assert shape == reference.shape, f"R.{name}: shape {shape} inferred, {reference.shape} computed"


def _close(out: Any, reference: Any, tolerance: float | None, what: str) -> None:
    if isinstance(reference, tuple | list):
        for k, (o, r) in enumerate(zip(out, reference, strict=True)):
            _close(o, r, tolerance, f"{what} (result {k})")
        return
    out, reference = np.asarray(out), np.asarray(reference)
    rtol, atol = TOLERANCE.get(str(DType(reference.dtype)), (0, 0))
    if tolerance is not None:
        rtol = atol = tolerance
    wide = (lambda a: a.astype(np.float64)) if DType(reference.dtype).is_float else (lambda a: a)
    np.testing.assert_allclose(wide(out), wide(reference), rtol=rtol, atol=atol, err_msg=what)
    assert out.dtype == reference.dtype, f"{what}: {out.dtype} and {reference.dtype}"
