# SPDX-License-Identifier: Apache-2.0
"""From a module of graph functions and tensor programs to an executable: the default pipelines and what runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .build import Built
from .build import compile_module as build_objects
from .build import levels as build_levels
from .build.ahead import working_ahead
from .build.build import ALONE, Beside, as_module, machine_spec
from .build.interface import told_apart
from .build.kernels import start_processes
from .build.levels import BuiltLevels
from .builder import shared_programs
from .graph.algorithms.attention import attention
from .graph.algorithms.byte_tables import byte_tables
from .graph.algorithms.check_choices import check_choices
from .graph.algorithms.fixed_scales import fixed_scales
from .graph.algorithms.integer_products import integer_products, quantised_products
from .graph.algorithms.narrow_results import narrow_results
from .graph.algorithms.narrow_weights import narrow_weights
from .graph.algorithms.packed_weights import packed_weights
from .graph.algorithms.precision import precision
from .graph.algorithms.strassen import strassen
from .graph.algorithms.strips import strips
from .graph.algorithms.widen_convolutions import widen_convolutions
from .graph.checks.bounds_checks import bounds_checks
from .graph.checks.call_shapes import call_shapes
from .graph.checks.checks_in_programs import checks_in_programs
from .graph.checks.complex_numbers import complex_numbers
from .graph.checks.size_checks import size_checks
from .graph.constant_bytes import constant_bytes
from .graph.hashed_ahead import hashed_ahead
from .graph.layout.block_channels import block_channels
from .graph.layout.lift_conv1d import lift_conv1d
from .graph.layout.sort_rows import sort_rows
from .graph.layout.transposed_convolutions import transposed_convolutions
from .graph.programs.appends import grow_caches
from .graph.programs.collapse_axes import collapse_axes
from .graph.programs.fuse import fuse
from .graph.programs.legalize import decompose, legalize
from .graph.programs.name_sizes import name_sizes
from .graph.programs.pin_nodes import pin_nodes
from .graph.programs.shared_bytes import shared_bytes
from .graph.tidy.common_subexpressions import eliminate_common_subexpressions
from .graph.tidy.convert_to_dataflow import convert_to_dataflow
from .graph.tidy.dead_code import eliminate_dead_code
from .graph.tidy.fold_constants import fold_constants
from .graph.tidy.fold_scale import decompose_batch_norm, fold_scale, scale_sums
from .graph.tidy.inline_functions import inline_functions
from .graph.tidy.shared_operands import shared_operands
from .graph.tidy.simplify import simplify
from .host.lower_host import lower_host
from .host.solve_sizes import solve_sizes
from .ir import options
from .ir.choice import Choices
from .ir.errors import OptionError
from .ir.garbage import rare_collection
from .ir.graph import Function
from .ir.module import IRModule
from .passes import Pass, pass_, run
from .passes.depth import with_room
from .runtime import Executable
from .strategy import schedule_module
from .strategy.pins import pin_programs
from .strategy.program import scheduled_once
from .strategy.records import Records
from .target import Target, TargetLike
from .target.host import target_for
from .target.levels import Level

Transform = Callable[[IRModule], IRModule]


@pass_("libraries")
def libraries(mod: IRModule) -> IRModule:
    """Parts of the graph that backends can compute are computed by them where that is asked for, was measured to be faster, or is expected to be
    (`roundel.backends.libraries`, which is imported where one may take part: it takes long, as patterns of graphs are parsed with it)."""
    if options.get("libraries") is None and not mod.choices.asked and mod.choices.records is None:
        return mod
    from .backends.libraries import libraries as taken_by_libraries

    return taken_by_libraries(mod)


OPTIMIZE: list[Pass] = [
    call_shapes, inline_functions, convert_to_dataflow, eliminate_dead_code, quantised_products, packed_weights, narrow_weights, decompose_batch_norm,
    shared_operands, fold_constants, simplify, fold_constants, eliminate_dead_code, fold_scale, fold_constants, eliminate_common_subexpressions,
    eliminate_dead_code,
]
"""Graph to graph: rewriting on operators."""

LOWER: list[Pass] = [
    libraries, decompose, bounds_checks, widen_convolutions, transposed_convolutions, fold_constants, simplify, attention, scale_sums, integer_products,
    precision, strassen, eliminate_common_subexpressions, lift_conv1d, block_channels, narrow_results, byte_tables, sort_rows, fold_constants,
    simplify, eliminate_dead_code, shared_bytes, fixed_scales, strips, grow_caches, legalize, complex_numbers, size_checks, fuse, collapse_axes, name_sizes,
    pin_nodes, check_choices, eliminate_dead_code,
]
"""Operators to fused tensor programs, not scheduled yet."""

FINISH: list[Pass] = [pin_programs, schedule_module, checks_in_programs, eliminate_dead_code, solve_sizes, lower_host, eliminate_dead_code]
"""Fused tensor programs to scheduled ones, graph functions to host functions."""

DEFAULT: list[Pass] = [*OPTIMIZE, *LOWER, *FINISH]
"""What ``rd.compile`` runs before code generation."""

POINTS: dict[str, Pass] = {"imported": call_shapes, "operators": libraries, "programs": fuse, "kernels": pin_programs, "scheduled": checks_in_programs}
"""Where passes of one's own may stand: before this pass of the default pipeline. The module is then the graph as it was imported; tidied, of
operators; of tensor programs, one for each operator; of fused ones; of scheduled ones."""


def pipeline(**passes: Pass | Transform | Sequence[Pass | Transform]) -> list[Pass | Transform]:
    """The default pipeline with passes of one's own at the points that `POINTS` names: ``rd.compile(model, pipeline=pipeline(operators=mine))``.
    Raises OptionError for another point."""
    unknown = [name for name in passes if name not in POINTS]
    if unknown:
        raise OptionError(f"the pipeline has no point {unknown[0]!r}", hint=f"there are {', '.join(POINTS)}")
    added = {POINTS[name]: own if isinstance(own, list | tuple) else [own] for name, own in passes.items()}
    return [p for own in DEFAULT for p in (*added.pop(own, ()), own)]


@rare_collection()
def prepare(mod: IRModule, *, target: TargetLike | None = None, pipeline: Sequence[Transform] | None = None, observers: Sequence[Any] = (),
            verify: bool = False, choices: Mapping[str, Any] | None = None, records: Records | None = None) -> IRModule:
    """The module after the pipeline (default ``DEFAULT``): host functions and scheduled kernels. ``choices`` are those asked for, as of
    ``rd.compile``; those that were made are in the module's ``choices``. ``records`` are measurements, which go before what models expect."""
    if choices is not None:
        mod = mod.replace(choices=Choices.of(choices))
    if records is not None:
        mod = mod.replace(choices=replace(mod.choices, records=records))
    mod = mod.without_externs()
    if target is not None:
        mod = mod.replace(attrs=mod.attrs | {"target": target})
    with shared_programs(), scheduled_once():
        return with_room(mod, lambda: run(mod, DEFAULT if pipeline is None else pipeline, observers=observers, verify=verify))


def compile_module(mod: IRModule, *, target: TargetLike | None = None, pipeline: Sequence[Transform] | None = None, observers: Sequence[Any] = (),
                   verify: bool = False, weights_file: Path | None = None, notes: Callable[[], Mapping[str, Any]] = dict,
                   choices: Mapping[str, Any] | None = None, records: Records | None = None, beside: Beside = ALONE) -> Built:
    """Objects of the whole module, ready to be loaded or saved; ``weights_file``, ``notes`` and ``beside`` as for ``build``, ``choices`` and ``records`` as
    for ``prepare``. Raises RoundelError."""
    target = target_of(target, mod)

    def made() -> Built:
        with working_ahead(machine_spec(target) if start_processes(mod) else None), hashed_ahead(mod):
            prepared = prepare(mod, target=target, pipeline=pipeline, observers=observers, verify=verify, choices=choices, records=records)
            return build_objects(prepared, weights_file=weights_file, notes=notes, beside=beside)

    return with_room(mod, made)


def compile_levels(mod: IRModule, *, target: Sequence[Level], notes: Callable[[], Mapping[str, Any]] = dict, weights_file: Path | None = None,
                   **settings: Any) -> BuiltLevels:
    """`compile_module` for several machines, the best first, as one file. There the weights of all follow each other, so none is written before.
    Raises RoundelError."""
    names = [level.name for level in target]
    parts: list[Built] = []
    for level in reversed(target):
        def told(name: str = level.name) -> Mapping[str, Any]:
            return {**notes(), "level": name, "levels": names}

        parts.append(compile_module(mod, target=level.target, notes=told, beside=build_levels.beside(parts), **settings))
    return BuiltLevels(list(zip(names, reversed(parts))))


def build_module(mod: Any, *, target: TargetLike | None = None, threads: int | None = None, profile: bool = False, observers: Sequence[Any] = ()) -> Executable:
    """A module as it is made callable: graph functions go through the default pipeline, tensor programs keep their schedules."""
    mod = told_apart(as_module(mod))
    called = {name: str(f.attrs.get("global_symbol", "")) for name, f in mod.items()}
    target = target_of(target)
    if any(isinstance(f, Function) for _, f in mod.items()):
        made = compile_module(mod, target=target, observers=observers)
    else:
        made = build_objects(mod if target is None else mod.replace(attrs=mod.attrs | {"target": target}))
    loaded = made.load(threads=threads, profile=profile)
    loaded.called = called
    return loaded


def target_of(target: TargetLike | None, mod: IRModule | None = None) -> Target:
    """A Target from a Target, a name, a string or a mapping; None is this machine, as a model needs it: how fast it reads weights is measured if
    it never was, where there are many."""
    return target_for(target, constant_bytes(mod) if mod is not None and target is None else 0)
