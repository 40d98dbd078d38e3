# SPDX-License-Identifier: Apache-2.0
"""Gathers, scatters, one_hot. Negative indices count from the end; others out of range are errors (see ``bounds``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register
from roundel.ir.positions import Positions

from .dims import axis_of, dim_text, equal, fail, fits, may_fit, same, same_dtype, static, tensor_info
from .loops import for_each, load, side_by_side, store, when

ANY = tir.index_const(1 << 62)
"""A limit that no index reaches."""


def _within(limit: tir.Expr, inner: Sequence[Any], outer: Sequence[Any]) -> tir.Expr:
    """A limit for indices, which is 0 unless each inner size is at most the outer one: then there is no position at all."""
    doubtful = [(a, b) for a, b in zip(inner, outer) if not fits(a, b)]
    return tir.select(tir.logical_and(*(a <= b for a, b in doubtful)), limit, 0) if doubtful else limit


def position(index: tir.Expr, n: Any, mode: str = "wrap_negative") -> tir.Expr:
    """A loaded index as a position in a dimension of extent ``n``."""
    i = te.cast(index, "int64")
    if mode == "clip":
        return tir.max_(tir.min_(i, n - 1), 0)
    if mode == "wrap":
        return tir.floormod(i, n)
    return i if index.dtype.kind == "uint" else tir.select(i < 0, i + n, i)


def _index_info(op: OpDef, info: Any, infos: Any) -> graph.TensorInfo:
    if tensor_info(op, info, infos).dtype is not None and not info.dtype.is_int:
        fail(op, f"indices have to be integers, not {info.dtype}", *infos)
    return info


@register
class Take(OpDef):
    """x at ``indices`` along ``axis`` (without: of x flattened). mode: fast (no check), clip, wrap."""

    name, operands, attributes, kind = "take", ("x", "indices"), {"axis": None, "mode": "fast"}, FuseKind.INJECTIVE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, indices = tensor_info(self, args[0], args), _index_info(self, args[1], args)
        if attrs["axis"] is None:
            return graph.TensorInfo(indices.shape, x.dtype, indices.ndim)
        if x.ndim < 0 or indices.ndim < 0:
            return graph.TensorInfo(None, x.dtype, -1)
        axis = axis_of(self, attrs["axis"], x.ndim, *args)
        if x.shape is None or indices.shape is None:
            return graph.TensorInfo(None, x.dtype, x.ndim - 1 + indices.ndim)
        return graph.TensorInfo((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)

    def positions(self, infos: tuple[Any, ...], attrs: Attrs) -> tuple[Positions, ...]:
        shape, axis = infos[0].shape, attrs["axis"]
        limit = tir.product_of(shape) if axis is None else shape[axis % len(shape)]
        if attrs["mode"] == "fast":
            return (Positions(1, (limit,)),)
        return () if fits(1, limit) else (Positions(1, (tir.select(limit > 0, ANY, 0),)),)  # there may be nothing to clip to

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        from .shape import unravel

        x, indices = args
        if attrs["axis"] is None:
            size = tir.product_of(x.shape)
            return te.compute(
                indices.shape, lambda *i: x(*unravel(position(indices(*i), size, attrs["mode"]), x.shape)), "take"
            )
        axis, more = attrs["axis"] % len(x.shape), len(indices.shape)

        def body(*at: Any) -> Any:
            there = position(indices(*at[axis : axis + more]), x.shape[axis], attrs["mode"])
            return x(*at[:axis], there, *at[axis + more :])

        return te.compute((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), body, "take")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        mode = {"fast": "raise"}.get(attrs["mode"], attrs["mode"])
        return np.asarray(np.take(args[0], args[1].astype(np.int64), attrs["axis"], mode=mode))


@register
class GatherElements(OpDef):
    """result[i, j, ...] = x[i, .., indices[i, j, ...], ..] with the index in place of ``axis``."""

    name, operands, attributes, kind = "gather_elements", ("data", "indices"), {"axis": 0}, FuseKind.INJECTIVE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, indices = tensor_info(self, args[0], args), _index_info(self, args[1], args)
        if x.ndim >= 0 and indices.ndim >= 0 and x.ndim != indices.ndim:
            fail(self, f"data has {x.ndim} dimensions, indices {indices.ndim}", *args)
        if x.ndim >= 0:
            axis = axis_of(self, attrs["axis"], x.ndim, *args)
            if x.shape is not None and indices.shape is not None and not all(
                    k == axis or may_fit(n, m) for k, (n, m) in enumerate(zip(indices.shape, x.shape))):
                fail(self, "indices are larger than data along another axis than the one they index", *args)
        return graph.TensorInfo(indices.shape, x.dtype, indices.ndim)

    def positions(self, infos: tuple[Any, ...], attrs: Attrs) -> tuple[Positions, ...]:
        shape, wanted = infos[0].shape, infos[1].shape
        axis = attrs["axis"] % len(shape)
        others = [k for k in range(len(shape)) if k != axis]
        return (Positions(1, (_within(shape[axis], [wanted[k] for k in others], [shape[k] for k in others]),)),)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, indices = args
        axis = attrs["axis"] % len(x.shape)
        there = lambda at: tuple(position(indices(*at), x.shape[axis]) if k == axis else i for k, i in enumerate(at))
        return te.compute(indices.shape, lambda *at: x(*there(at)), "gather_elements")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, indices = args
        axis = attrs["axis"] % x.ndim
        where = list(np.indices(indices.shape, sparse=True))
        where[axis] = indices.astype(np.int64)
        return x[tuple(where)]


@register
class GatherND(OpDef):
    """Slices of x at the index tuples along the last dimension of ``indices``; ``batch_dims`` are common."""

    name, operands, attributes, kind = "gather_nd", ("data", "indices"), {"batch_dims": 0}, FuseKind.INJECTIVE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, indices = tensor_info(self, args[0], args), _index_info(self, args[1], args)
        if x.shape is None or indices.shape is None:
            return graph.TensorInfo(None, x.dtype, -1)
        return graph.TensorInfo(self._shape(x.shape, indices.shape, attrs["batch_dims"], args), x.dtype)

    def _shape(self, x: Any, indices: Any, batch: int, infos: Any = ()) -> tuple[Any, ...]:
        count = static(indices[-1]) if indices else None
        if count is None or batch + count > len(x):
            fail(self, "the last dimension of indices is not a number of dimensions of data", *infos)
        if not all(map(may_fit, indices[:batch], x)):
            fail(self, "indices are larger than data along a batch dimension", *infos)
        return (*indices[:-1], *x[batch + count :])

    def positions(self, infos: tuple[Any, ...], attrs: Attrs) -> tuple[Positions, ...]:
        shape, wanted, batch = infos[0].shape, infos[1].shape, attrs["batch_dims"]
        limits = shape[batch : batch + static(wanted[-1])]
        return (Positions(1, tuple(_within(n, wanted[:batch], shape) for n in limits)),) if limits else ()

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, indices = args
        batch, count, lead = attrs["batch_dims"], static(indices.shape[-1]), len(indices.shape) - 1

        def body(*at: Any) -> Any:
            found = [position(indices(*at[:lead], k), x.shape[batch + k]) for k in range(count)]
            return x(*at[:batch], *found, *at[lead:])

        return te.compute(self._shape(x.shape, indices.shape, batch), body, "gather_nd")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, indices, batch = args[0], args[1].astype(np.int64), attrs["batch_dims"]
        out = np.empty((*indices.shape[:-1], *x.shape[batch + indices.shape[-1] :]), x.dtype)
        for at in np.ndindex(*indices.shape[:-1]):
            out[at] = x[(*at[:batch], *indices[at])]
        return out


_COMBINE: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "update": (lambda old, new: new, lambda old, new: new),
    "add": (lambda old, new: old + new, np.add),
    "mul": (lambda old, new: old * new, np.multiply),
    "max": (te.max_, np.maximum),
    "min": (te.min_, np.minimum),
}


class _Scatter(OpDef):
    """Base of scatters: a copy of data, changed in the order of the indices."""

    operands, kind = ("data", "indices", "updates"), FuseKind.OPAQUE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, indices, updates = (tensor_info(self, a, args) for a in args)
        _index_info(self, indices, args)
        if attrs["reduction"] not in _COMBINE:
            fail(self, f"there is no reduction {attrs['reduction']!r}, only {', '.join(_COMBINE)}", *args)
        dtype = same_dtype(self, (data, updates))
        if data.shape is not None and indices.shape is not None and updates.shape is not None:
            wanted = self.updates_shape(data.shape, indices.shape, attrs, args)
            if len(wanted) != len(updates.shape) or not all(map(same, wanted, updates.shape)):
                fail(self, f"updates do not have the shape ({', '.join(map(dim_text, wanted))})", *args)
        return data.replace(dtype=dtype)

    def updates_shape(self, data: Any, indices: Any, attrs: Attrs, infos: Any) -> tuple[Any, ...]:
        """What shape the updates have to have."""
        raise NotImplementedError


@register
class ScatterElements(_Scatter):
    """data with data[i, .., indices[i, j, ...], ..] changed by updates[i, j, ...] (the index in place of ``axis``)."""

    name, attributes = "scatter_elements", {"axis": 0, "reduction": "update"}

    def updates_shape(self, data: Any, indices: Any, attrs: Attrs, infos: Any) -> tuple[Any, ...]:
        if len(data) != len(indices):
            fail(self, f"data has {len(data)} dimensions, indices {len(indices)}", *infos)
        axis_of(self, attrs["axis"], len(data), *infos)
        return tuple(indices)

    def positions(self, infos: tuple[Any, ...], attrs: Attrs) -> tuple[Positions, ...]:
        shape = infos[0].shape
        return (Positions(1, (shape[attrs["axis"] % len(shape)],)),)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, indices, _ = args
        axis, (combine, _) = attrs["axis"] % len(data.shape), _COMBINE[attrs["reduction"]]
        others = [k for k in range(len(data.shape)) if k != axis]

        def build(ins: Any, outs: Any, scratch: Any, *point: Any) -> tir.Stmt:
            (x, idx, upd), (out,) = ins, outs
            at = lambda j: (*point[:axis], j, *point[axis:])

            def change(j: Any) -> tir.Stmt:
                there = at(position(load(idx, at(j)), data.shape[axis]))
                return store(out, there, combine(load(out, there), load(upd, at(j))))

            inside = [i < indices.shape[k] for i, k in zip(point, others) if not equal(indices.shape[k], data.shape[k])]
            each = side_by_side if others and others[-1] < axis else (lambda n, body: for_each([n], body))
            copy = each(data.shape[axis], lambda j: store(out, at(j), load(x, at(j))))
            return tir.seq(copy, when(te.logical_and(*inside), for_each([indices.shape[axis]], change)))

        return te.extern(
            [(data.shape, data.dtype)], args, build, "scatter_elements", over=[data.shape[k] for k in others]
        )

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        out, indices, updates = args[0].copy(), args[1].astype(np.int64), args[2]
        axis, (_, combine) = attrs["axis"] % out.ndim, _COMBINE[attrs["reduction"]]
        for at in np.ndindex(*indices.shape):
            there = (*at[:axis], indices[at], *at[axis + 1 :])
            out[there] = combine(out[there], updates[at])
        return out


@register
class ScatterND(_Scatter):
    """data with its slices at the index tuples along the last dimension of ``indices`` changed by those of updates."""

    name, attributes = "scatter_nd", {"reduction": "update"}

    def updates_shape(self, data: Any, indices: Any, attrs: Attrs, infos: Any) -> tuple[Any, ...]:
        count = static(indices[-1]) if indices else None
        if count is None or count > len(data):
            fail(self, "the last dimension of indices is not a number of dimensions of data", *infos)
        return (*indices[:-1], *data[count:])

    def positions(self, infos: tuple[Any, ...], attrs: Attrs) -> tuple[Positions, ...]:
        limits = infos[0].shape[: static(infos[1].shape[-1])]
        return (Positions(1, tuple(limits)),) if limits else ()

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, indices, _ = args
        count, (combine, _) = static(indices.shape[-1]), _COMBINE[attrs["reduction"]]

        def build(ins: Any, outs: Any, scratch: Any, *point: Any) -> tir.Stmt:
            (x, idx, upd), (out,) = ins, outs

            def change(*at: Any) -> tir.Stmt:
                there = (*(position(load(idx, (*at, k)), data.shape[k]) for k in range(count)), *point)
                return store(out, there, combine(load(out, there), load(upd, (*at, *point))))

            copy = for_each(data.shape[:count], lambda *at: store(out, (*at, *point), load(x, (*at, *point))))
            return tir.seq(copy, for_each(indices.shape[:-1], change))

        return te.extern([(data.shape, data.dtype)], args, build, "scatter_nd", over=data.shape[count:])

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        out, indices, updates = args[0].copy(), args[1].astype(np.int64), args[2]
        combine = _COMBINE[attrs["reduction"]][1]
        for at in np.ndindex(*indices.shape[:-1]):
            there = tuple(indices[at])
            out[there] = combine(out[there], updates[at])
        return out


@register
class OneHot(OpDef):
    """``on_value`` where a new dimension ``axis`` of extent ``depth`` is at the index, else ``off_value``."""

    name, operands, attributes = "one_hot", ("indices", "on_value", "off_value"), {"depth": ..., "axis": -1}
    scalars, kind = ("on_value", "off_value"), FuseKind.INJECTIVE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        indices, on = _index_info(self, args[0], args), args[1]
        dtype = on.dtype if isinstance(on, graph.PrimInfo | graph.TensorInfo) else None
        if indices.ndim < 0 or indices.shape is None:
            return graph.TensorInfo(None, dtype, indices.ndim + 1 if indices.ndim >= 0 else -1)
        axis = axis_of(self, attrs["axis"], indices.ndim + 1, *args)
        return graph.TensorInfo((*indices.shape[:axis], attrs["depth"], *indices.shape[axis:]), dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        indices, on, off = args
        axis = attrs["axis"] % (len(indices.shape) + 1)
        hit = lambda at: tir.eq(at[axis], te.cast(indices(*at[:axis], *at[axis + 1 :]), "int64"))
        shape = (*indices.shape[:axis], attrs["depth"], *indices.shape[axis:])
        return te.compute(shape, lambda *at: te.select(hit(at), tir.const(on), tir.const(off)), "one_hot")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        indices, on, off = args
        dtype = tir.const(on).dtype.numpy if not hasattr(on, "dtype") else on.dtype
        axis = attrs["axis"] % (indices.ndim + 1)
        places = np.arange(attrs["depth"]).reshape([-1 if k == axis else 1 for k in range(indices.ndim + 1)])
        return np.where(np.expand_dims(indices, axis) == places, np.asarray(on, dtype), np.asarray(off, dtype))
