# SPDX-License-Identifier: Apache-2.0
"""Dimensions: symbolic equality, broadcasting, axes; and the errors when operands do not fit together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from roundel.arith import Analyzer
from roundel.ir import graph, tir
from roundel.ir.dtype import DType
from roundel.ir.errors import TypeInferenceError
from roundel.ir.op import OpDef

Shape = tuple[tir.Expr, ...]


def static(dim: Any) -> int | None:
    """The dimension as a number, or None when it is symbolic."""
    if isinstance(dim, int):
        return dim
    return dim.value if type(dim) is tir.IntImm else None


def simplify(dim: Any) -> tir.Expr:
    """The canonical form of an index expression."""
    dim = tir.as_index(dim)
    return dim if type(dim) in (tir.IntImm, tir.Var) else Analyzer().simplify(dim)


def equal(a: Any, b: Any) -> bool:
    """Whether two dimensions are provably equal."""
    a, b = tir.as_index(a), tir.as_index(b)
    if a is b:
        return True
    if type(a) is tir.IntImm and type(b) is tir.IntImm:
        return False
    return Analyzer().prove_equal(a, b)


def differ(a: Any, b: Any) -> bool:
    """Whether two dimensions are provably different."""
    return simplify(tir.ne(a, b)) is tir.const(True)


_notes: ContextVar[list[tuple[tir.Expr, tir.Expr]] | None] = ContextVar("roundel_assumed", default=None)


@contextmanager
def assuming() -> Iterator[list[tuple[tir.Expr, tir.Expr]]]:
    """Collects equalities of sizes that operators need and nobody can prove (``n`` and ``min(n, 512)``).

    Importers run inference inside it and have the notes checked when the model runs, by ``R.match_cast``.
    """
    notes: list[tuple[tir.Expr, tir.Expr]] = []
    mark = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(mark)


def same(a: Any, b: Any) -> bool:
    """Whether two sizes that have to be equal are: proven, or assumed inside ``assuming`` where they may be."""
    if equal(a, b):
        return True
    notes = _notes.get()
    a, b = tir.as_index(a), tir.as_index(b)
    if notes is None or (type(a) is tir.IntImm and type(b) is tir.IntImm) or differ(a, b):
        return False
    notes.append((a, b))
    return True


def fits(a: Any, b: Any) -> bool:
    """Whether one size is provably at most another."""
    a, b = tir.as_index(a), tir.as_index(b)
    return a is b or Analyzer().prove(tir.le(a, b))


def may_fit(a: Any, b: Any) -> bool:
    """Whether one size that has to be at most another is not known to be larger; noted as assumed inside ``assuming``."""
    if fits(a, b):
        return True
    if _notes.get() is not None and not Analyzer().prove(tir.gt(a, b)):
        same(tir.max_(tir.as_index(a), b), b)
    return not Analyzer().prove(tir.gt(a, b))


def describe(*infos: Any) -> str:
    """Struct infos as text for messages."""
    return ", ".join(_describe(i) for i in infos)


def _describe(info: Any) -> str:
    if isinstance(info, graph.TensorInfo):
        shape = "unknown shape" if info.shape is None else f"({', '.join(map(dim_text, info.shape))})"
        return f"{info.dtype or 'unknown type'} {shape}"
    if isinstance(info, graph.TupleInfo):
        return f"({describe(*info.fields)})"
    if isinstance(info, graph.ShapeInfo) and info.values is not None:
        return f"shape ({', '.join(map(dim_text, info.values))})"
    return type(info).__name__


def dim_text(dim: tir.Expr) -> str:
    """A dimension as text."""
    value = static(dim)
    if value is not None:
        return str(value)
    return dim.name if isinstance(dim, tir.Var) else dim.script()


def shape_text(shape: Sequence[Any]) -> str:
    """A shape as ``1xseqx768``."""
    return "x".join(map(dim_text, shape))


def fail(op: OpDef, what: str, *infos: Any, hint: str = "") -> NoReturn:
    """Raise TypeInferenceError that names the operands and their shapes."""
    names = [n.rstrip("?").lstrip("*") for n in op.operands]
    shown = "; ".join(f"{n}: {describe(i)}" for n, i in zip(names, infos) if i is not None)
    raise TypeInferenceError(f"{op!r}: {what}", why=shown, hint=hint)


def tensor_info(op: OpDef, info: Any, infos: Sequence[Any] = ()) -> graph.TensorInfo:
    """``info`` as that of a tensor, or an error."""
    if not isinstance(info, graph.TensorInfo):
        fail(op, f"an operand is not a tensor but {type(info).__name__}", *(infos or (info,)))
    return info


def fill(args: Sequence[Any], count: int) -> tuple[Any, ...]:
    """Operands with None for the optional ones that are absent."""
    out = tuple(
        None if (isinstance(a, graph.TupleInfo) and not a.fields) or (isinstance(a, tuple) and not a) else a
        for a in args
    )
    return out + (None,) * (count - len(out))


def broadcast(op: OpDef, infos: Sequence[graph.TensorInfo]) -> tuple[Shape | None, int]:
    """Shape and rank of NumPy's broadcast; the shape is None when one is unknown."""
    ndim = -1 if any(i.ndim < 0 for i in infos) else max(i.ndim for i in infos)
    shapes = [i.shape for i in infos if i.shape is not None]
    return (None if len(shapes) < len(infos) else broadcast_shapes(op, shapes, infos)), ndim


def broadcast_shapes(op: OpDef, shapes: Sequence[Shape], infos: Sequence[Any] = ()) -> Shape:
    """NumPy's broadcast of shapes; dimensions that are neither 1 nor provably equal are an error."""
    ndim = max(map(len, shapes), default=0)
    out = []
    for k in range(ndim):
        dims = [s[k - ndim + len(s)] for s in shapes if k - ndim + len(s) >= 0]
        out.append(_broadcast_dim(op, dims, k, infos))
    return tuple(out)


def _broadcast_dim(op: OpDef, dims: Sequence[tir.Expr], axis: int, infos: Sequence[Any]) -> tir.Expr:
    found = tir.index_const(1)
    for d in dims:
        if static(d) == 1:
            continue
        if static(found) == 1:
            found = d
        elif not same(found, d):
            what = f"dimensions {dim_text(found)} and {dim_text(d)} (axis {axis} of the result) do not broadcast"
            symbolic = static(found) is None or static(d) is None
            fail(op, what, *infos, hint="they cannot be proven equal; state it by R.match_cast" if symbolic else "")
        elif static(d) is not None or (isinstance(d, tir.Var) and static(found) is None):
            found = d
    return found


def axis_of(op: OpDef, axis: int, ndim: int, *infos: Any) -> int:
    """A possibly negative axis as one in [0, ndim)."""
    if not -ndim <= axis < ndim:
        fail(op, f"axis {axis} is out of range for {ndim} dimensions", *infos)
    return axis % ndim if ndim else 0


def axes_of(op: OpDef, axes: Any, ndim: int, *infos: Any) -> tuple[int, ...]:
    """Axes from a number, several, or None (all), normalised; repeated ones are an error."""
    if axes is None:
        return tuple(range(ndim))
    items: Iterable[int] = axes if isinstance(axes, tuple | list) else (axes,)
    out = tuple(axis_of(op, int(a), ndim, *infos) for a in items)
    if len(set(out)) < len(out):
        fail(op, f"axes {tuple(items)} are repeated", *infos)
    return out


def same_dtype(op: OpDef, infos: Sequence[graph.TensorInfo]) -> DType | None:
    """The dtype that all operands share (None while one is unknown), or an error."""
    known = {i.dtype for i in infos if i.dtype is not None}
    if len(known) > 1:
        fail(op, f"operands have different types {' and '.join(sorted(known))}", *infos, hint="convert one by R.astype")
    return next(iter(known)) if known and all(i.dtype is not None for i in infos) else None


def per_axis(value: Any, count: int) -> tuple[int, ...]:
    """An attribute of one number or ``count`` of them."""
    items = tuple(value) if isinstance(value, tuple | list) else (value,) * count
    return items * count if len(items) == 1 else items


def paddings(value: Any, count: int) -> tuple[tuple[int, int], ...]:
    """Padding before and after each of ``count`` axes: one number, one per axis, or all befores then all afters."""
    items = tuple(value) if isinstance(value, tuple | list) else (value,)
    if len(items) == 1:
        items *= count
    if len(items) == count:
        items += items
    return tuple(zip(items[:count], items[count:]))
