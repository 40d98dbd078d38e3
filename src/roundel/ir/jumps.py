# SPDX-License-Identifier: Apache-2.0
"""``break`` and ``continue`` as conditions, for what reads programs as nested statements (the interpreter, lowering).

A ``continue`` at the end of a branch moves what follows into the other branch; any other jump sets a flag that what would be skipped
asks for.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import tir
from .dataclass import dataclass
from .dtype import INT32, VOID
from .errors import BuildError
from .node import _interned
from .tir import Buffer, Expr, Stmt
from .visit import Rewriter, on, statements

BREAK, CONTINUE = "break_loop", "continue_loop"


def jump(s: object) -> str | None:
    """The name of the jump that a statement is."""
    return s.value.op if isinstance(s, tir.Evaluate) and isinstance(s.value, tir.Call) and s.value.op in (BREAK, CONTINUE) else None  # type: ignore[return-value]


def without_jumps(func: tir.PrimFunc) -> tir.PrimFunc:
    """The same program without ``break`` and ``continue``; itself where it has none. Raises BuildError for a ``break`` out of a loop whose
    iterations run at the same time."""
    return _Structured().rewrite(func) if _some_exist() and any(map(jump, statements(func.body))) else func


def _some_exist() -> bool:
    """Whether any program in the process has a jump: their calls are interned, and forgotten when nobody holds them."""
    return any((tir.Call, which, (), VOID) in _interned for which in (BREAK, CONTINUE))


@dataclass
class _Flags:
    """What says that the rest of an iteration is skipped: by ``continue``, by ``break``."""

    skip: Buffer
    stop: Buffer
    used: set[str]

    def set(self, which: str) -> Stmt:
        """The jump as a store."""
        self.used.add(which)
        return _store(self.stop if which == BREAK else self.skip, 1)

    def clear(self) -> Expr:
        """Whether none is set."""
        asked = [_load(b) for b, which in ((self.skip, CONTINUE), (self.stop, BREAK)) if which in self.used]
        return tir.logical_and(*(tir.eq(flag, 0) for flag in asked))


def _store(flag: Buffer, value: int) -> Stmt:
    return tir.BufferStore(flag, tir.IntImm(value, INT32), (tir.index_const(0),))


def _load(flag: Buffer) -> Expr:
    return tir.BufferLoad(flag, (tir.index_const(0),))


class _Structured(Rewriter):
    """Loops from the inside out."""

    @on(tir.For)
    def _for(self, s: tir.For) -> Stmt:
        body, flags = self._without(self.rewrite(s.body))
        if BREAK not in flags.used:
            return s.replace(body=body)
        if s.kind not in (tir.ForKind.SERIAL, tir.ForKind.UNROLLED):
            raise BuildError(
                f"break leaves the {s.kind.value} loop over {s.loop_var.name}, whose iterations run at the same time",
                where=s.span,
                hint="make the loop serial, or ask inside of it whether there is anything left to do",
            )
        loop = s.replace(body=tir.If(tir.eq(_load(flags.stop), 0), body))
        return tir.Allocate(flags.stop, tir.seq(_store(flags.stop, 0), loop))

    @on(tir.While)
    def _while(self, s: tir.While) -> Stmt:
        body, flags = self._without(self.rewrite(s.body))
        if BREAK not in flags.used:
            return s.replace(body=body)
        going = tir.if_then_else(tir.eq(_load(flags.stop), 0), s.condition, False)
        return tir.Allocate(flags.stop, tir.seq(_store(flags.stop, 0), s.replace(condition=going, body=body)))

    def _without(self, body: Stmt) -> tuple[Stmt, _Flags]:
        """The body of a loop without its jumps."""
        flags = _Flags(*(tir.decl_buffer((1,), "int32", name, scope="local") for name in ("skip", "stop")), set())
        made = _removed(body, flags, True)
        if CONTINUE in flags.used:
            made = tir.Allocate(flags.skip, tir.seq(_store(flags.skip, 0), made))
        return made, flags


_SCOPES = (tir.Let, tir.Allocate, tir.DeclBuffer, tir.AttrStmt, tir.Block, tir.BlockRealize)


def _removed(s: Stmt, flags: _Flags, is_rest: bool) -> Stmt:
    """A statement without jumps; ``is_rest``: nothing of the iteration follows it."""
    which = jump(s)
    if which is not None:
        return flags.set(which)
    if isinstance(s, tir.For | tir.While) or not any(map(jump, statements(s))):
        return s
    if isinstance(s, tir.Seq):
        return tir.seq(*_in_order(s.stmts, flags, is_rest))
    is_rest = is_rest and isinstance(s, _SCOPES)
    changes = {f: _removed(part, flags, is_rest) for f in s._children if isinstance(part := getattr(s, f), Stmt)}
    return s.replace(**changes)


def _in_order(parts: Sequence[Stmt], flags: _Flags, is_rest: bool) -> list[Stmt]:
    """Statements one after another; what follows a jump is asked for."""
    for k, part in enumerate(parts):
        if not any(map(jump, statements(part))) or isinstance(part, tir.For | tir.While):
            continue
        rest = parts[k + 1 :]
        if jump(part) is not None:  # what follows is never reached
            return [*parts[:k], _removed(part, flags, False)]
        kept = _before_continue(part) if is_rest else None
        if kept is not None:
            other = tir.seq(*_in_order(rest, flags, True)) if rest else None
            return [*parts[:k], part.replace(then_case=kept, else_case=other)]  # type: ignore[attr-defined]
        first = _removed(part, flags, is_rest and not rest)
        left = [tir.If(flags.clear(), tir.seq(*_in_order(rest, flags, is_rest)))] if rest else []
        return [*parts[:k], first, *left]
    return list(parts)


def _before_continue(s: Stmt) -> Stmt | None:
    """What a branch without alternative does before the ``continue`` that ends it, if that is its only jump."""
    if not isinstance(s, tir.If) or s.else_case is not None:
        return None
    inner = s.then_case.stmts if isinstance(s.then_case, tir.Seq) else (s.then_case,)
    if not inner or jump(inner[-1]) != CONTINUE or any(jump(n) for part in inner[:-1] for n in statements(part)):
        return None
    return tir.seq(*inner[:-1])
