# SPDX-License-Identifier: Apache-2.0
"""Statements of tensor programs: blocks, attributes, lets, assertions, launches, loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import tir
from ...ir.dtype import DType
from ..marks import (
    AssertHead,
    AttrHead,
    AttrsOf,
    Axes,
    BlockHead,
    EnvThread,
    Evaluated,
    InitHead,
    Launch,
    LetHead,
    Loop,
    Loops,
    Meta,
    Realize,
    Regions,
    SeqHead,
    Store,
    ThreadVar,
    Where,
)
from ..regions import as_region, extent_between, operand
from . import axis
from .expressions import Let


def sblock(name: Any = "", name_hint: str = "", no_realize: bool = False) -> BlockHead:
    """``with T.sblock("B"):`` a block; in the oldest spelling ``with T.block([128, T.reduce_axis(64)], "B") as [vi, vk]:``."""
    if isinstance(name, str):
        return BlockHead(name, no_realize)
    return BlockHead(name_hint, no_realize, tuple(d if isinstance(d, Axes) else axis.spatial(d) for d in name))


def _axis(name: str, kind: Callable[..., Axes]) -> Callable[..., Axes]:
    def build(begin: Any, end: Any = None) -> Axes:
        return kind(begin if end is None else (begin, end))

    build.__name__, build.__doc__ = name, "The domain of an axis in the oldest spelling of blocks."
    return build


reduce_axis = _axis("reduce_axis", axis.reduce)
scan_axis = _axis("scan_axis", axis.scan)
opaque_axis = _axis("opaque_axis", axis.opaque)


block = sblock


def init() -> InitHead:
    """``with T.init():`` runs at the first iteration of the reduction."""
    return InitHead()


def seq() -> SeqHead:
    """``with T.seq():`` statements kept together as one."""
    return SeqHead()


def _regions(args: tuple[Any, ...]) -> tuple[Any, ...]:
    items = args[0] if len(args) == 1 and isinstance(args[0], tuple | list) else args
    return tuple(as_region(r) for r in items)


def reads(*regions: Any) -> Regions:
    """The regions that the block reads."""
    return Regions("reads", _regions(regions))


def writes(*regions: Any) -> Regions:
    """The regions that the block writes."""
    return Regions("writes", _regions(regions))


def where(predicate: Any) -> Where:
    """The block runs only where ``predicate`` holds."""
    return Where(predicate)


def func_attr(attrs: dict[str, Any]) -> AttrsOf:
    """Attributes of the function. ``tir.noalias`` is TVM's name of ``noalias``."""
    noalias = {"noalias" if name == "tir.noalias" else name: bool(getattr(v, "value", v)) for name, v in attrs.items() if name in ("noalias", "tir.noalias")}
    return AttrsOf("func", {**noalias, **{name: v for name, v in attrs.items() if name not in ("noalias", "tir.noalias")}})


def sblock_attr(attrs: dict[str, Any]) -> AttrsOf:
    """Attributes of the block."""
    return AttrsOf("block", attrs)


block_attr = sblock_attr


def attr(node: Any, attr_key: str, value: Any) -> AttrHead:
    """An attribute about ``node`` that holds for the rest of the body."""
    return AttrHead(node, attr_key, value)


def bind(value: Any, var: Any = None) -> LetHead:
    """Evaluates once: ``x = T.bind(expr)``."""
    return LetHead(operand(value), var)


def LetStmt(value: Any, type_annotation: Any = None, *, var: Any = None) -> LetHead:
    """``with T.LetStmt(expr) as x:``"""
    return LetHead(operand(value), var)


class _Let:
    """``x = T.let(expr)``; in older spellings ``with T.let(x, expr):`` and the expression ``T.let(x, expr, body)``; ``x: T.let[T.int32]``."""

    def __call__(self, first: Any, value: Any = None, body: Any = None) -> Any:
        if body is not None:
            return Let(body, {first: value})
        return LetHead(operand(first), None) if value is None else LetHead(operand(value), first)

    def __getitem__(self, dtype: Any) -> Any:
        return dtype


let = _Let()


def Assert(condition: Any, message: str = "") -> AssertHead:
    """Fails the call when the condition is false."""
    return AssertHead(condition, message)


def evaluate(value: Any) -> Evaluated:
    """Evaluates an expression for its effect."""
    return Evaluated(operand(value))


def meta_var(value: Any) -> Meta:
    """Keeps a value as a Python value of the parser."""
    return Meta(value)


def env_thread(thread: str) -> EnvThread:
    """A thread axis, for ``launch_thread``."""
    return EnvThread(thread)


def iter_var(var: Any, dom: Any, iter_type: str, thread_tag: str) -> ThreadVar:
    """The variable of a thread axis, for ``T.attr(..., "thread_extent", n)``."""
    return ThreadVar(var, thread_tag)


def realize(buffer_slice: Any, storage_scope: str = "global", condition: Any = True) -> Realize:
    """Memory for a region of a buffer, for the rest of the body."""
    if isinstance(buffer_slice, tir.Buffer):
        raise TypeError(f"T.realize takes a region such as {buffer_slice.name}[0:16], not the buffer")
    return Realize(as_region(buffer_slice), storage_scope, condition)


def buffer_store(buffer: tir.Buffer, value: Any, indices: Any, predicate: Any = None) -> Store:
    """``buffer[indices] = value``"""
    items = indices if isinstance(indices, list | tuple) else [indices]
    return Store(buffer, tuple(tir.as_index(operand(i)) for i in items), operand(value), predicate)


def launch_thread(thread: Any, extent: Any) -> Launch:
    """Binds a thread axis of ``extent`` for the rest of the body."""
    return Launch(thread, extent)


# ---- loops


def _loop(
    kind: tir.ForKind,
    start: Any,
    stop: Any,
    extent: Any = None,
    thread: str | None = None,
    annotations: Any = None,
    step: Any = None,
    dtype: Any = None,
) -> Loops:
    if stop is None and extent is None:
        start, stop = 0, start
    extent = extent_between(start, stop) if extent is None else extent
    return Loops([Loop(start, extent, kind, thread, dict(annotations or {}), step, dtype and DType(dtype))])


def _loop_function(name: str, kind: tir.ForKind) -> Callable[..., Loops]:
    def build(
        start: Any,
        stop: Any = None,
        *,
        annotations: Any = None,
        step: Any = None,
        extent: Any = None,
        dtype: Any = None,
    ) -> Loops:
        return _loop(kind, start, stop, extent, None, annotations, step, dtype)

    build.__name__, build.__doc__ = name, f"A {kind.value} loop over [0, stop) or [start, stop)."
    return build


serial = _loop_function("serial", tir.ForKind.SERIAL)
parallel = _loop_function("parallel", tir.ForKind.PARALLEL)
vectorized = _loop_function("vectorized", tir.ForKind.VECTORIZED)
unroll = _loop_function("unroll", tir.ForKind.UNROLLED)
unrolled = unroll


def thread_binding(
    start: Any,
    stop: Any = None,
    thread: str | None = None,
    *,
    annotations: Any = None,
    step: Any = None,
    extent: Any = None,
    dtype: Any = None,
) -> Loops:
    """A loop whose iterations are the threads of an axis such as ``threadIdx.x``."""
    if isinstance(stop, str):
        stop, thread = None, stop
    if not isinstance(thread, str):
        raise TypeError('a loop is bound to a named axis of threads: T.thread_binding(128, thread="threadIdx.x")')
    return _loop(tir.ForKind.THREAD_BINDING, start, stop, extent, thread, annotations, step, dtype)


def grid(*extents: Any) -> Loops:
    """A nest of serial loops; an extent may be (start, stop)."""
    return Loops([_loop(tir.ForKind.SERIAL, *(e if isinstance(e, tuple) else (e, None))).loops[0] for e in extents])
