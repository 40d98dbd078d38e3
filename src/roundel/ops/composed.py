# SPDX-License-Identifier: Apache-2.0
"""Operators that are a few others one after another: each is a function that makes those, from which types and programs follow.

``emit(name, *operands, **attributes)`` makes an operator and gives its result. Shapes of operands have to be known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import DType
from roundel.ir.op import OpDef, register

from .dims import broadcast_shapes, fail, static

Emit = Callable[..., Any]


class Composed(OpDef):
    """An operator that ``build(emit, *operands, **attributes)`` puts together of others."""

    def __init__(self, name: str, operands: tuple[str, ...], attributes: Mapping[str, Any], build: Callable[..., Any], numpy: Callable[..., Any],
                 scalars: tuple[str, ...] = ()) -> None:
        self.name, self.operands, self.attributes, self.scalars = name, operands, attributes, scalars
        self.build, self._numpy, self.__doc__ = build, numpy, build.__doc__

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        from . import make

        def emit(name: str, *operands: Any, **more: Any) -> Any:
            return graph.Var(name, make(name, *operands, **more).sinfo)

        out = self.build(emit, *(self._variable(a, args) for a in args), **attrs)
        return graph.TupleInfo(tuple(f.sinfo for f in out.fields)) if isinstance(out, graph.Tuple) else out.sinfo

    def _variable(self, info: Any, infos: tuple[Any, ...]) -> Any:
        if isinstance(info, graph.TupleInfo):
            return graph.Tuple(tuple(self._variable(f, infos) for f in info.fields))
        if isinstance(info, graph.PrimInfo) and info.value is not None:
            return graph.PrimValue(info.value)
        if not isinstance(info, graph.TensorInfo) or info.shape is None:
            fail(self, "a shape is not known", *infos, hint="state it by R.match_cast")
        return graph.Var("x", info)

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        from . import make

        return self.build(lambda name, *operands, **more: builder.emit(make(name, *operands, **more)), *args, **attrs)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return self._numpy(*args, **attrs)


def composed(name: str, *operands: str, numpy: Callable[..., Any], scalars: tuple[str, ...] = (), **attributes: Any) -> Callable[[Any], Any]:
    """Register what the decorated function builds."""
    return lambda build: register(Composed(name, operands, attributes, build, numpy, scalars))


def _shape(x: Any) -> tuple[Any, ...]:
    return x.sinfo.shape


def _fields(emit: Emit, tensors: Any) -> tuple[Any, ...]:
    """The tensors of a tuple."""
    if isinstance(tensors, graph.Tuple):
        return tensors.fields
    return tuple(graph.TupleGetItem(tensors, k) for k in range(len(tensors.sinfo.fields)))


@composed("outer", "x1", "x2", numpy=np.multiply.outer)
def outer(emit: Emit, x1: Any, x2: Any) -> Any:
    """The products of each element of one vector with each of another."""
    (n,), (m,) = _shape(x1), _shape(x2)
    return emit("multiply", emit("reshape", x1, (n, 1)), emit("reshape", x2, (1, m)))


def _np_meshgrid(tensors: Any, indexing: str) -> tuple[Any, ...]:
    return tuple(g.copy() for g in np.meshgrid(*tensors, indexing=indexing))


@composed("meshgrid", "tensors", numpy=_np_meshgrid, indexing="ij")
def meshgrid(emit: Emit, tensors: Any, indexing: str) -> Any:
    """Each vector spread over the grid of all; ``indexing`` ``ij``, or ``xy`` for the first two axes exchanged."""
    vectors = _fields(emit, tensors)
    order = list(range(len(vectors)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    sizes = [tir.product_of(_shape(v)) for v in vectors]
    grid = tuple(sizes[k] for k in order)
    spread = lambda k: tuple(sizes[k] if j == k else tir.index_const(1) for j in order)
    return graph.Tuple(tuple(emit("broadcast_to", emit("reshape", v, spread(k)), grid) for k, v in enumerate(vectors)))


def _positions(emit: Emit, indices: Any, op: str) -> Any:
    """Index tensors, broadcast to one shape, as one tensor of tuples."""
    from roundel.ir.op import get_op

    parts = _fields(emit, indices)
    shape = broadcast_shapes(get_op(op), [_shape(p) for p in parts], [p.sinfo for p in parts])
    whole = [emit("astype", p, dtype=DType("int64")) if p.sinfo.dtype != "int64" else p for p in parts]
    return emit("stack", graph.Tuple(tuple(emit("broadcast_to", p, shape) for p in whole)), axis=-1)


@composed("index_tensor", "data", "indices", numpy=lambda data, indices: data[tuple(indices)])
def index_tensor(emit: Emit, data: Any, indices: Any) -> Any:
    """``data[indices[0], indices[1], ...]`` with tensors of integers that broadcast, as in NumPy; axes behind them are taken whole."""
    return emit("gather_nd", data, _positions(emit, indices, "index_tensor"))


def _np_index_put(data: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    out = data.copy()
    if accumulate:
        np.add.at(out, tuple(indices), values)
    else:
        out[tuple(indices)] = values
    return out


@composed("index_put", "data", "indices", "values", numpy=_np_index_put, accumulate=False)
def index_put(emit: Emit, data: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    """A copy of ``data`` with ``data[indices[0], indices[1], ...] = values``, or ``+=`` where ``accumulate`` says so."""
    where = _positions(emit, indices, "index_put")
    count = static(_shape(where)[-1]) or 0
    updates = emit("broadcast_to", values, (*_shape(where)[:-1], *_shape(data)[count:]))
    return emit("scatter_nd", data, where, updates, reduction="add" if accumulate else "update")


@composed("masked_fill", "x", "mask", "value", scalars=("value",), numpy=lambda x, mask, value: np.where(mask, np.asarray(value, x.dtype), x))
def masked_fill(emit: Emit, x: Any, mask: Any, value: Any) -> Any:
    """``value`` where the bool ``mask`` holds, else ``x``."""
    return emit("where", mask, emit("full_like", x, value), x)


def _np_pixel_shuffle(x: Any, upscale_factor: int) -> Any:
    r, (*lead, c, h, w) = upscale_factor, x.shape
    n = len(lead)
    blocks = x.reshape(*lead, c // (r * r), r, r, h, w)
    return blocks.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*lead, c // (r * r), h * r, w * r)


@composed("nn.pixel_shuffle", "data", numpy=_np_pixel_shuffle, upscale_factor=...)
def pixel_shuffle(emit: Emit, data: Any, upscale_factor: int) -> Any:
    """Groups of ``upscale_factor ** 2`` channels as blocks of pixels: (..., C, H, W) becomes (..., C / r^2, H r, W r)."""
    r, (*lead, c, h, w) = upscale_factor, _shape(data)
    n, channels = len(lead), c // (r * r)
    blocks = emit("reshape", data, (*lead, channels, r, r, h, w))
    mixed = emit("permute_dims", blocks, axes=(*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return emit("reshape", mixed, (*lead, channels, h * r, w * r))


@composed("eye_like", "x", "k?", scalars=("k",), dtype=None,
          numpy=lambda x, k=0, dtype=None: np.eye(*x.shape, k=k if isinstance(k, int) else 0, dtype=DType(dtype or x.dtype).numpy))
def eye_like(emit: Emit, x: Any, k: Any = 0, dtype: Any = None) -> Any:
    """Ones on the ``k``-th diagonal of zeros, in the shape of a matrix."""
    n, m = _shape(x)
    return emit("eye", n, m, 0 if isinstance(k, graph.Tuple) else k, dtype=dtype or x.sinfo.dtype)


def _np_bucketize(x: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    return np.searchsorted(boundaries, x, "right" if right else "left").astype(np.int32 if out_int32 else np.int64)


@composed("bucketize", "input_tensor", "boundaries", numpy=_np_bucketize, out_int32=False, right=False)
def bucketize(emit: Emit, input_tensor: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    """How many of the ascending ``boundaries`` lie below each element, or with ``right`` are at most it."""
    above = emit("greater" if right else "greater_equal", boundaries, emit("expand_dims", input_tensor, axis=-1))
    below = emit("logical_not", above)  # of NaN all
    return emit("sum", emit("astype", below, dtype=DType("int32" if out_int32 else "int64")), axis=-1)


def _np_multinomial(prob: Any, uniform: Any, sample_indices: Any = None, dtype: str = "int64") -> Any:
    rows = np.arange(len(uniform)) if sample_indices is None or isinstance(sample_indices, tuple) else sample_indices.reshape(-1)
    found = (np.cumsum(prob, 1)[rows] <= uniform).sum(1, keepdims=True)
    return np.minimum(found, prob.shape[1] - 1).astype(dtype)


@composed("multinomial_from_uniform", "prob", "uniform_sample", "sample_indices?", numpy=_np_multinomial, dtype="int64")
def multinomial_from_uniform(emit: Emit, prob: Any, uniform_sample: Any, sample_indices: Any = None, dtype: str = "int64") -> Any:
    """A number from each distribution: the first whose cumulative probability is above ``uniform_sample`` (n, 1). ``prob`` is (batch, m);
    ``sample_indices`` (n, 1) says which row each sample is of."""
    n, _ = _shape(uniform_sample)
    if sample_indices is not None and not isinstance(sample_indices, graph.Tuple):
        prob = emit("take", prob, emit("reshape", sample_indices, (n,)), axis=0)
    total = emit("strided_slice", emit("cumsum", prob, axis=1), (1,), (0,), (-1,))  # the last number is what is left over
    below = emit("astype", emit("less_equal", total, uniform_sample), dtype=DType(dtype))
    return emit("sum", below, axis=1, keepdims=True)
