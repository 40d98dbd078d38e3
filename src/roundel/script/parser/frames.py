# SPDX-License-Identifier: Apache-2.0
"""What is gathered while the body of a function or block is read: statements, and the parts of a block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.dtype import BOOL
from ...ir.tir import Buffer, Expr, Stmt

TRUE = tir.IntImm(1, BOOL)


class Body:
    """Statements in order; a wrapper (of a let, an allocation, ...) takes all that follow as its body."""

    def __init__(self) -> None:
        self.items: list[Stmt | Callable[[Stmt], Stmt]] = []

    def add(self, stmt: Stmt) -> None:
        """Append a statement."""
        self.items.append(stmt)

    def wrap(self, build: Callable[[Stmt], Stmt]) -> None:
        """The rest of the body becomes ``build(rest)``."""
        self.items.append(build)

    def finish(self) -> Stmt:
        """The body as one statement."""
        rest: list[Stmt] = []
        for item in reversed(self.items):
            if isinstance(item, Stmt):
                rest.insert(0, item)
            else:
                rest = [item(_together(rest))]
        return _together(rest)


def _together(stmts: list[Stmt]) -> Stmt:
    return stmts[0] if len(stmts) == 1 else tir.Seq(tuple(stmts))


@dataclass
class BlockParts:
    """A block while it is read; ``reads`` and ``writes`` stay None when the script leaves them to be detected."""

    name: str
    no_realize: bool = False
    iter_vars: list[tir.IterVar] = field(default_factory=list)
    values: list[Expr] = field(default_factory=list)
    reads: tuple[tir.BufferRegion, ...] | None = None
    writes: tuple[tir.BufferRegion, ...] | None = None
    predicate: Expr = TRUE
    has_predicate: bool = False  # whether T.where was there
    annotations: dict[str, Any] = field(default_factory=dict)
    allocs: list[Buffer] = field(default_factory=list)
    matches: list[tir.MatchBufferRegion] = field(default_factory=list)
    init: Stmt | None = None


@dataclass
class FunctionParts:
    """A tensor program while it is read."""

    name: str
    params: list[tir.Var] = field(default_factory=list)
    buffer_map: dict[tir.Var, Buffer] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    root: BlockParts = field(default_factory=lambda: BlockParts("root"))
