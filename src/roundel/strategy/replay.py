# SPDX-License-Identifier: Apache-2.0
"""Schedules as records keep them: the steps of a trace without any name of the program, done again on a program that is equal but for names.

Blocks that are looked up by name are kept by their position in the program as it is at that step, buffers by their position among those of
the block (or the program), symbolic sizes by theirs among the parameters. Nothing in a record is believed: steps that nobody checks
(``unsafe_...``) are neither kept nor done, and the layouts of constants have to be those that the steps make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..ir import tir
from ..ir.annotations import PREFETCH, PREFETCH_LINES
from ..ir.equal import structural_equal
from ..ir.errors import ScheduleError
from ..ir.record import Record, Rival, Timing
from ..ir.visit import statements
from ..schedule.schedule import Schedule
from ..schedule.trace import Trace, index_map_data
from .guarded import guarded
from .program import Program
from .records import key_of, sizes_of
from .sketch import Applied

_UNCHECKED = ("annotate_buffer_access", "unsafe_hide_buffer_access", "unsafe_set_dtype")
_READ, _WRITTEN = ("read_buffer_index",), ("write_buffer_index", "buffer_index")  # parameters that name a buffer of the block
_BY_BUFFER = ("transform_layout", "reindex")  # primitives with a parameter that does, or says whether it is read or written


def record_of(program: Program, sketch: str, applied: Applied, *, threads: int, timings: Sequence[Timing], decisions: Mapping[str, Any] | None = None,
              default: float | None = None, second: Sequence[Rival] = ()) -> Record:
    """The record of a schedule that was measured. Raises ScheduleError for a schedule that cannot be kept: one that the program's trace alone
    does not give again, or with a step that nobody checks."""
    trace = applied.schedule.trace
    positions: list[Mapping[str, Any]] = []

    def noted(sch: Schedule, kind: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        positions.append(_without_names(sch, kind, inputs, attrs))
        return attrs

    trace.apply_to(program.fork(), arguments=noted)
    steps = Trace([replace(i, attrs=attrs) for i, attrs in zip(trace, positions, strict=True)]).as_data(sizes_of(program.func))
    layouts = {str(position): index_map_data(m) for position, m in applied.layouts.items()}
    record = Record(key_of(program, threads), sketch, dict(applied.decisions if decisions is None else decisions), steps, layouts, tuple(timings),
                    default=default, second=tuple(second), name=program.name)
    if not structural_equal(replay(program, record).func, applied.func):
        raise program.error(f"the schedule of sketch {sketch} cannot be kept", why="its trace leads to another program")
    return record


def replay(program: Program, record: Record) -> Applied:
    """The program under a recorded schedule, or several behind guards. Raises ScheduleError where it does not fit, and for a record that holds none."""
    otherwise = _replayed(program, record.trace, record.layouts, record.decisions)
    if not record.variants:
        return otherwise
    sizes = sizes_of(program.func)
    if any(not 0 <= v.size < len(sizes) or not isinstance(v.most, int) for v in record.variants):
        raise ScheduleError("its guards are of sizes that the program does not have")
    variants = [(sizes[v.size], v.most, _replayed(program, v.trace, record.layouts, v.decisions).func) for v in record.variants]
    return replace(otherwise, schedule=Schedule(guarded(variants, otherwise.func)))


def _replayed(program: Program, trace: Sequence[Any] | None, wanted: Mapping[str, Any], decisions: Mapping[str, Any]) -> Applied:
    """The program under the steps of a trace, which lay constants out as is ``wanted``."""
    sch, layouts = program.fork(), {}

    def arguments(sch: Schedule, kind: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        attrs = _with_names(sch, kind, inputs, attrs)
        if kind == "transform_layout" and (position := _parameter(sch, inputs, attrs)) is not None:
            if position not in program.constants or position in layouts:
                raise ScheduleError(f"it lays out parameter {position}, which is no constant, or laid out already")
            layouts[position] = attrs["index_map"]
        return attrs

    try:
        if trace is None:
            raise ScheduleError("it holds no schedule")
        Trace.from_data(trace, sizes_of(program.func)).apply_to(sch, arguments=arguments)
    except ScheduleError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:  # it was not written by `record_of`
        raise ScheduleError("it cannot be read", why=f"{type(error).__name__}: {error}") from error
    if {str(position): index_map_data(m) for position, m in layouts.items()} != dict(wanted):
        raise ScheduleError("its layouts of constants are others than its steps make")
    return Applied(sch, layouts, decisions)


def _parameter(sch: Schedule, inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> int | None:
    """The position of the buffer that ``transform_layout`` lays out, where it is a parameter."""
    block, (side, number) = sch.get(inputs["block"]), attrs["buffer"]
    buffer = (block.reads if side == "read" else block.writes)[int(number)].buffer
    params = sch.func.buffer_params
    return params.index(buffer) if buffer in params else None


def _without_names(sch: Schedule, kind: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a step with positions for names."""
    _check(kind)
    if kind == "get_block":
        return {**attrs, "name": sch.block_names.index(attrs["name"])}
    if kind == "annotate" and attrs.get("ann_key") in (PREFETCH, PREFETCH_LINES):
        name, *rest = attrs["ann_val"]
        return {**attrs, "ann_val": [[b.name for b in _buffers(sch)].index(str(name)), *rest]}
    if any(isinstance(attrs.get(n), str) for n in (*_READ, *_WRITTEN)):
        block = sch.get(inputs["block"])
        regions = {n: block.reads if n in _READ else block.writes for n in (*_READ, *_WRITTEN)}
        return {n: [r.buffer.name for r in regions[n]].index(v) if n in regions and isinstance(v, str) else v for n, v in attrs.items()}
    if kind in _BY_BUFFER and isinstance(attrs.get("buffer"), str):
        block = sch.get(inputs["block"])
        sides = (("read", block.reads), ("write", block.writes))
        return {**attrs, "buffer": next((side, k) for side, regions in sides for k, r in enumerate(regions) if r.buffer.name == attrs["buffer"])}
    return attrs


def _with_names(sch: Schedule, kind: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a step with the names that are at those positions now."""
    _check(kind)
    if kind == "get_block":
        return {**attrs, "name": sch.block_names[attrs["name"]]}
    if kind == "annotate" and attrs.get("ann_key") in (PREFETCH, PREFETCH_LINES):
        position, *rest = attrs["ann_val"]
        return {**attrs, "ann_val": (_buffers(sch)[position].name, *rest)}
    if kind == "transform_layout":  # whether padding may stay as it is, is checked here and not believed
        return {**attrs, "assume_injective_transform": False}
    return attrs


def _check(kind: str) -> None:
    if kind in _UNCHECKED:
        raise ScheduleError(f"a recorded schedule cannot have the step {kind}", why="nobody checks what it says of the program")


def _buffers(sch: Schedule) -> list[tir.Buffer]:
    """The buffers of a program: its parameters, then those that its blocks declare, in order."""
    inside = [b for n in statements(sch.func.body) if type(n) is tir.Block for b in (*n.alloc_buffers, *(m.buffer for m in n.match_buffers))]
    return [*sch.func.buffer_params, *inside]
