# SPDX-License-Identifier: Apache-2.0
"""What schedules tell lowering and code generation: the annotations of loops, blocks and allocations that have a meaning, in one table.

An annotation never changes what a program computes, only how fast. Names that are not in ``TABLE`` belong to whoever wrote them (TVM's
programs have many); they are kept, printed, and read by nothing here. ``problems`` says what is wrong with one that is in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .dataclass import dataclass

GRAIN, EDGE, WINDOW, STREAMED, INTERLEAVE = "grain", "edge", "window", "streamed", "interleave"
PREFETCH, PREFETCH_PASS, PREFETCH_LINES = "prefetch", "prefetch_pass", "prefetch_lines"
BUFFER_DIM_ALIGN, DIM_ALIGN, NOT_REGISTERS, ARENA = "buffer_dim_align", "dim_align", "not_registers", "arena"
PRAGMA_IMPORT_LLVM = "pragma_import_llvm"
RANGES = "ranges"
IMPORT_C = "import_c"  # an attribute of programs: C sources that define functions which call_extern names
IMPORT_C_CALLS = "import_c_calls"  # how their functions are called, each "who: result name(parameters)"
IMPORT_LLVM = "import_llvm"  # the same in LLVM text


class Prefetch(NamedTuple):
    """The value of ``prefetch``: ``ahead`` elements beyond those that the innermost loop reads of ``buffer``, of which it moves through ``step``
    in an iteration; spread over ``passes`` iterations of the annotated loop (0: all that it has). What is beyond the end of a panel of ``panel``
    elements (0: there are none) is the start of another one, which begins ``apart`` elements after it."""

    buffer: str
    ahead: int
    step: int
    passes: int = 0
    panel: int = 0
    apart: int = 0

    @classmethod
    def of(cls, annotations: Mapping[str, Any]) -> Prefetch:
        """That of a loop which has one."""
        return cls(*_plain(annotations[PREFETCH]))


class PrefetchLines(NamedTuple):
    """The value of ``prefetch_lines``: lines of ``buffer`` from ``ahead`` elements beyond what is read first."""

    buffer: str
    ahead: int

    @classmethod
    def of(cls, annotations: Mapping[str, Any]) -> PrefetchLines:
        """That of a loop which has one."""
        return cls(*_plain(annotations[PREFETCH_LINES]))


@dataclass(frozen=True)
class Annotation:
    """A name in the table. ``on``: what it may stand on; ``value``: what values are, ``fits`` tells whether one is; ``written`` and ``read``: by
    which rooms or files; ``meaning``: what follows from it."""

    on: str
    value: str
    fits: Callable[[Any], bool]
    written: str
    read: str
    meaning: str


def _plain(value: Any) -> Any:
    """A value without nodes: a script's literals are nodes where it was parsed as an expression."""
    return tuple(map(_plain, value)) if isinstance(value, tuple | list) else getattr(value, "value", value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _flag(value: Any) -> bool:
    return value is True or value == 1


def _tuples(value: Any, length: int) -> bool:
    return isinstance(value, tuple) and all(isinstance(v, tuple) and len(v) == length and all(isinstance(x, int) for x in v) for v in value)


TABLE: dict[str, Annotation] = {
    GRAIN: Annotation("a parallel loop", "int", _count, "strategy/parallelism", "lower/outline_tasks, graph/checks/checked_loops",
                      "So many iterations, at least, are one task; fewer where an extent that only the run knows would leave threads without any."),
    RANGES: Annotation("a parallel loop", "True", _flag, "backends/backend", "lower/outline_tasks",
                       "It calls a C function whose last operands are its variable and 1: called once for each thread, with the first iteration and how many."),
    EDGE: Annotation("a loop", "True", _flag, "strategy/", "lower/partition_loops, lower/whole_rows",
                     "Where conditions on its variable split a loop, it is this one and not a loop around it: the loops outside stay whole."),
    WINDOW: Annotation("a loop", "True", _flag, "strategy/window, strategy/product", "lower/partition_loops",
                       "It goes over a window that reaches beyond its tensor: what is split off at the borders is split again inside."),
    STREAMED: Annotation("a loop", "True", _flag, "strategy/pointwise/streams", "codegen/llvm/statements",
                         "What is stored in whole vectors inside is not kept in caches (non-temporal stores)."),
    INTERLEAVE: Annotation("a loop", "1", lambda v: v == 1, "graph/checks/checked_loops", "codegen/llvm/statements",
                           "LLVM does not run several vectors of iterations at a time."),
    PREFETCH: Annotation("a loop", "Prefetch(buffer, ahead, step, passes, panel, apart)",
                         lambda v: isinstance(v, tuple) and 3 <= len(v) <= 6 and isinstance(v[0], str) and all(map(_count, v[1:])) and v[2] > 0,
                         "strategy/", "lower/prefetch",
                         "The innermost serial loop inside fetches what the code after the annotated loop will read, a share in each iteration."),
    PREFETCH_PASS: Annotation("a loop inside of one with prefetch", "True", _flag, "strategy/", "lower/prefetch",
                              "Each of its iterations passes over the same elements again, and counts as a pass of its own."),
    PREFETCH_LINES: Annotation("a loop", "PrefetchLines(buffer, ahead)",
                               lambda v: isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str) and _count(v[1]),
                               "strategy/product", "lower/prefetch",
                               "The innermost serial loop that reads the buffer fetches a line ahead in each iteration; successive iterations of the annotated "
                               "loop take successive lines."),
    PRAGMA_IMPORT_LLVM: Annotation("a loop", "str", lambda v: isinstance(v, str), "people", "lower/lower_blocks, then the function's attribute import_llvm",
                            "LLVM text that defines functions which call_extern names; it is compiled with the program."),
    BUFFER_DIM_ALIGN: Annotation("a block", "tuple of (index of the written buffer, axis, factor, offset)", lambda v: _tuples(v, 4),
                                 "schedule/kinds (storage_align)", "lower/lower_blocks", "The stride of the axis is factor * k + offset."),
    DIM_ALIGN: Annotation("an allocation", "tuple of (axis, factor, offset)", lambda v: _tuples(v, 3), "lower/lower_blocks", "lower/place_allocations",
                          "The same, for the memory that the block writes."),
    NOT_REGISTERS: Annotation("an allocation", "str", lambda v: isinstance(v, str), "lower/register_tiles", "people",
                              "Why memory of scope local does not live in registers."),
    ARENA: Annotation("an allocation", "True", _flag, "host/host_memory", "codegen/llvm/statements, build/interface",
                      "It is the arena: its size is computed where the model is entered, and its memory kept from call to call."),
}
"""Every annotation that something in Roundel reads, by name."""

def texts(attrs: Any, name: str) -> tuple[str, ...]:
    """The texts in an attribute of a program: one, several, or none."""
    found = attrs.get(name, ())
    return (found,) if isinstance(found, str) else tuple(found)


_PLACES = {"For": "loop", "Block": "block", "Allocate": "allocation"}


def problems(node: Any) -> list[str]:
    """What is wrong with the annotations of a loop, block or allocation, one sentence each."""
    place, found = _PLACES[type(node).__name__], []
    for name, value in node.annotations.items():
        known = TABLE.get(name)
        if known is None:
            continue
        if place not in known.on:
            found.append(f"annotation {name} stands on a {place}, and belongs on {known.on}")
        elif not known.fits(_plain(value)):
            found.append(f"annotation {name} is {value!r}, and has to be {known.value}")
    return found
