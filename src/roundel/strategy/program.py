# SPDX-License-Identifier: Apache-2.0
"""A tensor program to be scheduled, with what every strategy asks of it. It is worked out once and shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, TypeVar

from ..ir import tir
from ..ir.dataclass import dataclass
from ..ir.errors import ScheduleError
from ..ir.visit import statements
from ..schedule.schedule import Schedule
from ..target import Target
from .match.accesses import BlockInfo, blocks_of
from .pointwise.inline import inline_cheap, inline_producers

T = TypeVar("T")

_asked: ContextVar[dict[Any, Any] | None] = ContextVar("asked", default=None)


@contextmanager
def scheduled_once() -> Iterator[None]:
    """Within, a program is scheduled once, however often it is asked about: fusion asks whether a rule takes what it is about to make."""
    token = _asked.set({})
    try:
        yield
    finally:
        _asked.reset(token)


def once_for_all(key: Any, make: Callable[[], T]) -> T:
    """Within ``scheduled_once``, what was worked out for a key before, for whichever program; else what ``make`` gives."""
    known = _asked.get()
    if known is None:
        return make()
    if key not in known:
        known[key] = make()
    return known[key]


def is_unscheduled(func: tir.PrimFunc) -> bool:
    """Whether a program in block form has had no step of a schedule that somebody chose: its loops run one after another, and nothing is kept in
    registers or in memory that threads share, but for what a block of several statements keeps for itself."""
    if func.root_block is None or "scheduled" in func.attrs:
        return False
    for node in statements(func.body):
        if isinstance(node, tir.For) and node.kind is not tir.ForKind.SERIAL:
            return False
        if isinstance(node, tir.Block) and not {b.scope for b in node.alloc_buffers} <= _own_scopes(node, func):
            return False
    return True


def _own_scopes(block: tir.Block, func: tir.PrimFunc) -> set[str]:
    """Where a block may allocate without anybody having chosen it: variables of one point of a scan or of a small solve are in registers."""
    is_point = block is not func.root_block and not any(isinstance(n, tir.Block) for n in statements(block.body))
    return {"global", "", "local"} if is_point else {"global", ""}


@dataclass(frozen=True, eq=False)
class Program:
    """The program, the machine that it is for, and the positions of those buffer parameters that are constants.

    The schedules that it hands out are forks or are to be forked: a rule that only looks changes nothing for the next one.
    """

    func: tir.PrimFunc
    target: Target
    constants: tuple[int, ...] = ()

    @staticmethod
    def of(func: tir.PrimFunc, target: Target, constants: tuple[int, ...] = ()) -> Program:
        """The program; within ``scheduled_once`` the same one for all who ask, with what is known of it."""
        return once_for_all((func.params, func.buffer_map, func.body, func.attrs, target, constants), lambda: Program(func, target, constants))

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """What was worked out for a key before, or else what ``make`` gives. An error is not kept."""
        if key not in self._found:
            self._found[key] = make()
        return self._found[key]

    @cached_property
    def _found(self) -> dict[Any, Any]:
        return {}

    @property
    def name(self) -> str:
        """The program's name in messages."""
        return str(self.func.attrs.get("pinned_at") or self.func.attrs.get("global_symbol", "a tensor program"))

    @cached_property
    def schedule(self) -> Schedule:
        """The program without any step. It is shared, so fork it before the first step."""
        return Schedule(self.func.with_attr("constant_params", self.constants) if self.constants else self.func, seed=0)

    def fork(self) -> Schedule:
        """A schedule of one's own, without any step yet."""
        return self.schedule.fork(seed=0)

    @cached_property
    def blocks(self) -> tuple[BlockInfo, ...]:
        """The blocks directly under the root, in order."""
        return tuple(blocks_of(self.schedule.func))

    @cached_property
    def reductions(self) -> tuple[BlockInfo, ...]:
        """Those of the blocks that reduce."""
        return tuple(i for i in self.blocks if i.reduce)

    @cached_property
    def is_plain(self) -> bool:
        """Whether every block is a loop nest around one store (`BlockInfo.is_plain`)."""
        return all(i.is_plain for i in self.blocks)

    def feeding(self, block: BlockInfo) -> list[BlockInfo]:
        """The blocks before another one whose results it reads, itself or through others. What is there for what follows it alone (a residual, made
        wider) is not among them."""
        read, found = {a.buffer for a in block.loads}, []
        for info in reversed(self.blocks[: self.blocks.index(block)]):
            if info.stores[0].buffer in read:
                read |= {a.buffer for a in info.loads}
                found.append(info)
        return found[::-1]

    def is_constant(self, buffer: tir.Buffer) -> bool:
        """Whether a buffer is a parameter whose contents are known at compile time."""
        params = self.func.buffer_params
        return buffer in params and params.index(buffer) in self.constants

    def inlined(self, keep: Sequence[str] = ()) -> Schedule:
        """The program in which every block without a reduction is computed where its result is read, but for outputs and the blocks named in
        ``keep``. It is shared by all who keep the same blocks, so fork it before the next step."""
        key = tuple(i.name for i in self.blocks if i.name in set(keep))
        if key not in self._inlined:
            sch = self.fork()
            inline_producers(sch, keep=key)
            self._inlined[key] = sch
        return self._inlined[key]

    @cached_property
    def with_cheap_inlined(self) -> Schedule:
        """The program in which blocks without a reduction that are cheap, or read once, are computed where they are read over their own
        domain. It is shared, so fork it before the next step."""
        sch = self.fork()
        inline_cheap(sch)
        return sch

    @cached_property
    def _inlined(self) -> dict[tuple[str, ...], Schedule]:
        return {}

    def error(self, what: str, why: str = "", hint: str = "") -> ScheduleError:
        """An error about this program."""
        return ScheduleError(what, where=self.name, why=why, hint=hint)
