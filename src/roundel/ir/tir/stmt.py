# SPDX-License-Identifier: Apache-2.0
"""Statements of tensor programs: stores, loops, blocks, allocation, control flow. Not interned.

Where an expression is expected, a number may be given: it gets the type that its place asks for.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from ..attrs import EMPTY, Attrs
from ..dtype import INT64
from ..node import Node, Span, Token, node
from .buffer import Buffer
from .expr import Expr, IntImm, Var, check_predicate
from .ops import as_index, const


def _value(given: Any, dtype: Any = None) -> Any:
    """A number as a constant of ``dtype``; anything else as it is."""
    return const(given, dtype) if isinstance(given, int | float) else given


def _indices(given: Any) -> tuple:
    """Indices, numbers among them as int64."""
    return tuple(map(as_index, given)) if int in map(type, given) else given


class ForKind(Enum):
    """How the iterations of a loop run."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    THREAD_BINDING = "thread_binding"


class IterKind(Enum):
    """What a block may assume of an iteration variable."""

    SPATIAL = "spatial"  # iterations are independent (script: "S", data parallel)
    REDUCE = "reduce"    # iterations accumulate, in any order ("R")
    OPAQUE = "opaque"    # nothing is known ("O")
    SCAN = "scan"        # iterations run in order


@node
class Range(Node):
    """``extent`` values from ``min`` on."""

    min: Expr
    extent: Expr

    @staticmethod
    def _coerce(first: Any, extent: Any) -> tuple:
        if type(first) is int:
            first = const(first, extent.dtype if isinstance(extent, Expr) else INT64)
        return first, const(extent, first.dtype) if type(extent) is int else extent

    @staticmethod
    def of(extent: Any) -> Range:
        """``[0, extent)``."""
        return Range(IntImm(0, INT64), as_index(extent))

    @staticmethod
    def point(index: Expr) -> Range:
        """``index`` alone. Numbers of elements are int64, as a script's are, whatever the type of the index."""
        return Range(index, IntImm(1, INT64))


@node
class IterVar(Node):
    """An iteration variable of a block with its domain and kind."""

    var: Var
    dom: Range
    kind: IterKind


@node
class BufferRegion(Node):
    """A box of a buffer: one Range per dimension."""

    buffer: Buffer
    region: tuple[Range, ...]

    @staticmethod
    def full(buffer: Buffer) -> BufferRegion:
        """The whole buffer."""
        return BufferRegion(buffer, tuple(Range(IntImm(0, INT64), s) for s in buffer.shape))


@node
class MatchBufferRegion(Node):
    """``buffer`` is a view of ``source`` inside the block (``T.match_buffer(A[0:16, 0:16], ...)``)."""

    buffer: Buffer
    source: BufferRegion


class Stmt(Node):
    """Base of all statements."""

    __slots__ = ()


@node
class BufferStore(Stmt):
    """``buffer[indices] = value``; the last index and ``predicate`` may be vectors."""

    buffer: Buffer
    value: Expr
    indices: tuple[Expr, ...]
    predicate: Expr | None = None
    span: Span | None = None

    @staticmethod
    def _coerce(buffer: Buffer, value: Expr, indices: tuple, predicate: Expr | None, span: Any) -> tuple:
        if not isinstance(value, Expr):
            value = _value(value, buffer.dtype)
        if predicate is not None:
            check_predicate(predicate, value.dtype, "store")
        return buffer, value, _indices(indices), predicate, span


@node
class For(Stmt):
    """A loop over ``[min, min + extent)``, by ``step``. ``thread`` names the axis of a thread-bound loop (``threadIdx.x``)."""

    loop_var: Var
    min: Expr
    extent: Expr
    kind: ForKind
    body: Stmt
    thread: str | None = None
    annotations: Attrs = EMPTY
    step: Expr | None = None
    token: Token | None = None
    span: Span | None = None

    @staticmethod
    def _coerce(loop_var: Var, first: Any, extent: Any, *rest: Any) -> tuple:
        if type(first) is int or type(extent) is int:
            first, extent = _value(first, loop_var.dtype), _value(extent, loop_var.dtype)
        return loop_var, first, extent, *rest

    @property
    def own_scopes(self) -> tuple[str, ...] | None:
        """The scopes of memory of which each iteration has its own where iterations run at the same time (None: any)."""
        if self.thread is None:
            return None
        if self.thread == "threadIdx.x":  # the threads of one warp
            return ("local",)
        tiles = ("wmma", "m16n8k8", "warp", "metal")  # registers that the threads of a warp hold together
        return ("local", *tiles, "shared") if self.thread.startswith("blockIdx") else ("local", *tiles)


@node
class While(Stmt):
    """Runs ``body`` as long as ``condition`` holds."""

    condition: Expr
    body: Stmt
    span: Span | None = None

    @staticmethod
    def _coerce(condition: Any, *rest: Any) -> tuple:
        return _value(condition), *rest


@node
class If(Stmt):
    """A conditional statement."""

    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None
    span: Span | None = None

    @staticmethod
    def _coerce(condition: Any, *rest: Any) -> tuple:
        return _value(condition), *rest


@node
class Seq(Stmt):
    """Statements one after another; make it with ``seq``, which flattens."""

    stmts: tuple[Stmt, ...]


@node
class Let(Stmt):
    """``var`` stands for ``value`` (evaluated once, here) in ``body``."""

    var: Var
    value: Expr
    body: Stmt
    span: Span | None = None

    @staticmethod
    def _coerce(var: Var, value: Any, *rest: Any) -> tuple:
        return var, _value(value, var.dtype), *rest


@node
class Assert(Stmt):
    """Fails the call with ``message`` when ``condition`` is false. Each ``{k}`` in the message stands for integer k of ``values``, or,
    where there are none, of the two sides of the comparison."""

    condition: Expr
    message: str
    span: Span | None = None
    values: tuple[Expr, ...] = ()


@node
class Evaluate(Stmt):
    """Evaluates an expression for its effect."""

    value: Expr
    span: Span | None = None

    @staticmethod
    def _coerce(value: Any, span: Any) -> tuple:
        return _value(value), span


@node
class Allocate(Stmt):
    """Memory for ``buffer`` (its ``data``) during ``body``; what blocks' ``alloc_buffers`` become in lowering."""

    buffer: Buffer
    body: Stmt
    annotations: Attrs = EMPTY
    span: Span | None = None
    _children = ("body",)


@node
class DeclBuffer(Stmt):
    """``buffer`` is declared over a ``data`` pointer that exists already (a view)."""

    buffer: Buffer
    body: Stmt
    span: Span | None = None


@node
class AttrStmt(Stmt):
    """An attribute (``key`` = ``value`` about ``subject``, any node or None) that holds in ``body``."""

    subject: Any
    key: str
    value: Expr
    body: Stmt
    span: Span | None = None


@node(hidden=("name",))
class Block(Stmt):
    """A computation isolated from its surroundings by its iteration domain and the regions it reads and writes.

    ``init`` runs when all reduce variables are at their start. Equality ignores ``token`` and ``name``, by which schedules find the block.
    """

    iter_vars: tuple[IterVar, ...]
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    name: str
    body: Stmt
    init: Stmt | None = None
    alloc_buffers: tuple[Buffer, ...] = ()
    match_buffers: tuple[MatchBufferRegion, ...] = ()
    annotations: Attrs = EMPTY
    token: Token | None = None
    span: Span | None = None


@node
class BlockRealize(Stmt):
    """Runs ``block`` with ``iter_values`` bound to its iteration variables, where ``predicate`` holds."""

    iter_values: tuple[Expr, ...]
    predicate: Expr
    block: Block

    @staticmethod
    def _coerce(iter_values: Any, predicate: Any, block: Any) -> tuple:
        return _indices(iter_values), _value(predicate), block


def seq(*stmts: Stmt | None) -> Stmt:
    """A statement that runs these in order; nested sequences are flattened, None is dropped, one alone is itself."""
    flat: list[Stmt] = []
    for s in stmts:
        if s is not None:
            flat.extend(s.stmts if type(s) is Seq else (s,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))
