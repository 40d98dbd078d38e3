# SPDX-License-Identifier: Apache-2.0
"""What a graph operator is, and the table of all operators (filled by ``roundel.ops`` on first use)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

from . import above, extensions
from .attrs import Attrs
from .errors import RoundelError
from .positions import Positions


class FuseKind(IntEnum):
    """How an operator's tensor program may fuse, from easiest to hardest."""

    ELEMENTWISE = 0   # output[i] from inputs[i]
    BROADCAST = 1     # output[i] from inputs[a subset of i]
    INJECTIVE = 2     # output[i] from inputs[f(i)]: transpose, reshape, concat, slice, gather
    REDUCTION = 3     # sum, max, softmax-like
    ANCHOR = 4        # matmul, conv: takes elementwise epilogues
    ATTENTION = 5     # softmax, then a product: takes in the anchor that makes its first operand, and elementwise epilogues
    OPAQUE = 8        # not fused (call_tir of unknown kind, sort, packed calls)


class OpName(str):
    """The name of an operator, which equals TVM's name of it too: ``nn.relu`` and ``relax.nn.relu``."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or (isinstance(other, str) and other.startswith("relax.") and str.__eq__(self, other[6:]) is True)

    def __ne__(self, other: object) -> bool:
        return not self == other


class OpDef:
    """One operator, defined in one place: subclass, fill in, decorate with ``ops.register``.

    ``name`` is its name under ``R`` (dots make namespaces: ``nn.softmax``). ``operands`` are the names of tensor operands; a
    trailing ``?`` makes one optional (None is passed as absent), a leading ``*`` takes the rest as a tuple.
    ``attributes`` maps attribute names to defaults (``...``: required). ``scalars`` are the operands that are scalar values
    rather than tensors; ``signature`` the order of arguments in a call where it is not operands, then attributes. ``contract``: whether
    products and sums of its tensor program may become multiply-adds (with one rounding).
    """

    name: str = ""
    operands: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = {}
    scalars: tuple[str, ...] = ()
    signature: tuple[str, ...] = ()
    kind: FuseKind = FuseKind.OPAQUE
    pure: bool = True
    contract: bool = True
    num_outputs: int = 1

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        """Struct info of the result from the operands' struct infos (None for absent ones); raises TypeInferenceError."""
        raise NotImplementedError(self.name)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        """Tensor expression(s) of the result; ``args`` are te Tensors (None for absent operands, scalars as expressions)."""
        raise NotImplementedError(self.name)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        """The result computed by NumPy: an array, or a tuple of arrays. The oracle of tests and interpreter."""
        raise NotImplementedError(self.name)

    def positions(self, infos: tuple[Any, ...], attrs: Attrs) -> tuple[Positions, ...]:
        """Which operands hold positions in dimensions, by the operands' struct infos; each is checked when the model runs."""
        return ()

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        """For composed operators: emits simpler graph operators through the BlockBuilder and returns the result.

        An operator has either ``compute`` or ``decompose`` (``has`` tells which).
        """
        raise NotImplementedError(self.name)

    def has(self, method: str) -> bool:
        """Whether this operator defines ``compute``, ``decompose``, ``numpy`` or ``infer``."""
        return getattr(type(self), method) is not getattr(OpDef, method)

    def __repr__(self) -> str:
        return f"R.{self.name}"

    def __reduce__(self) -> tuple:
        return get_op, (self.name,)


_table: dict[str, OpDef] = {}
_loaded = False


def register(op: OpDef | type[OpDef]) -> Any:
    """Add an operator to the table (also usable as a class decorator)."""
    instance = op() if isinstance(op, type) else op
    instance.name = OpName(instance.name)
    _table[instance.name] = instance
    extensions.note(type(instance))
    return op


def _load() -> None:
    global _loaded
    if not _loaded:
        _loaded = True
        above.define_operators()


def get_op(name: str) -> OpDef:
    """The operator of this name; raises RoundelError naming close ones."""
    if name not in _table:
        _load()
    if name not in _table:
        near = _meant(name)
        raise RoundelError(f"there is no operator R.{name}", hint=f"did you mean {', '.join(near)}?" if near else "see `roundel report ops`")
    return _table[name]


_ELSEWHERE = {  # what libraries call it, by the last part of the name: what it is called here
    "dense": "linear", "fully_connected": "linear", "addmm": "linear", "gemm": "matmul", "mm": "matmul", "bmm": "matmul", "batch_matmul": "matmul",
    "dot": "matmul", "bias_add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "truediv": "divide", "true_divide": "divide",
    "pow": "power", "neg": "negative", "transpose": "permute_dims", "permute": "permute_dims", "view": "reshape", "concatenate": "concat", "cat": "concat",
    "clamp": "clip", "cast": "astype", "to": "astype", "unsqueeze": "expand_dims", "global_avg_pool2d": "nn.adaptive_avg_pool2d",
    "fabs": "abs", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "select": "where",
    "layernorm": "nn.layer_norm", "batchnorm": "nn.batch_norm", "conv": "nn.conv2d", "maxpool": "nn.max_pool2d",
    "reduce_sum": "sum", "reduce_mean": "mean", "reduce_max": "max", "amax": "max", "amin": "min",
}


def _meant(name: str) -> list[str]:
    """Operators that a name may stand for: what it is called elsewhere, one of its last part in another namespace, those spelt alike."""
    from difflib import get_close_matches

    leaf = name.rpartition(".")[2]
    known = _ELSEWHERE.get(leaf)
    same = [n for n in _table if n.rpartition(".")[2] == leaf]
    leaves = {n.rpartition(".")[2]: n for n in reversed(_table)}
    spelt = [*get_close_matches(name, _table), *(leaves[n] for n in get_close_matches(leaf, leaves, cutoff=0.75))]
    return list(dict.fromkeys([known] if known in _table else same or spelt))[:4]


def all_ops() -> dict[str, OpDef]:
    """Every operator by name."""
    _load()
    return dict(sorted(_table.items()))


def _special(op_name: str, operand_names: tuple[str, ...], is_pure: bool = True, doc: str = "", attribute_defaults: dict[str, Any] | None = None) -> OpDef:
    made = type(op_name, (OpDef,), {"name": op_name, "operands": operand_names, "pure": is_pure, "__doc__": doc,
                                    "attributes": attribute_defaults or {}, "infer": lambda self, args, attrs: None})
    return register(made())


CALL_TIR = _special("call_tir", ("func", "args", "tir_vars?"), True, "call of a tensor program, destination passing; the result info is sinfo_args[0]")
CALL_DPS_PACKED = _special("call_dps_packed", ("func", "args"), True, "call of an FFI function, destination passing")
CALL_TIR_INPLACE = _special("call_tir_inplace", ("func", "args"), True, "call_tir whose outputs overwrite the operands attrs['inplace_indices']",
                            {"inplace_indices": ()})
CALL_TIR_WITH_GRAD = _special("call_tir_with_grad", ("func", "args", "tir_vars?"), True, "call_tir that names the tensor expression of its gradient",
                              {"te_grad_name": "", "te_grad_kwargs": {}})
Callback = Callable[..., Any]
