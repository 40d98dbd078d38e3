# SPDX-License-Identifier: Apache-2.0
"""Random layers: candidates for what a layer's kernel may look like, compiled ahead and kept in a folder until ``race`` times them.

A layer's algorithms (direct, Winograd, Strassen) are those that the compiler takes under different options; of the kernel that
does the work in each, the candidates are those of all sketches that fit it: of each the model's favourites and a random sample. A kernel without
reductions has random loop nests beside the sketch. Equal programs are compiled once.
"""

from __future__ import annotations

import pickle
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from roundel import driver
from roundel.build import Built
from roundel.frontend.onnx import from_onnx
from roundel.ir import ConstData, Rewriter, graph, on, options, tir
from roundel.ir.equal import StructuralMap
from roundel.ir.errors import ScheduleError
from roundel.ir.module import IRModule
from roundel.ir.visit import walk
from roundel.strategy.choose import proposals
from roundel.strategy.explain import Explanation, explain_module
from roundel.strategy.pack_constants import constant_params, repack
from roundel.strategy.pins import is_packed
from roundel.strategy.schedule_module import finished, schedule_module
from roundel.strategy.sketch import Sketch
from roundel.target import Target
from roundel.target.host import described
from roundel.target.profile import measured

from .layers import Layer
from .program_race import random_schedule

FAVOURITES = 0.6            # share of the measured candidates that the model puts first
ALGORITHMS: tuple[dict[str, Any], ...] = ({}, {"weight_growth": 1.8}, {"weight_growth": 1.0}, {"accuracy": "strict"})
OTHERS = 3                  # a third as many candidates of each algorithm, and of each sketch, that was not chosen


@dataclass
class Variant:
    """A layer under one algorithm, not scheduled yet. ``main`` is the kernel whose decisions vary, ``working`` all that compute."""

    options: Mapping[str, Any]
    mod: IRModule
    main: Explanation
    working: frozenset[str]


@dataclass(frozen=True)
class Candidate:
    """One way to run a layer: ``function`` of the library ``library`` does it, ``kernels`` are those of its kernels that count. ``text`` are its
    decisions, ``cycles`` what the model expects (None where there is no table)."""

    text: str
    cycles: float | None
    library: int
    function: str
    kernels: frozenset[str]


def machine(condition: str = "own") -> Target:
    """This machine as it is (``own``), or as if it had AVX2 only (``avx2``) or SSE only (``sse``)."""
    target = restricted(Target.host(), condition)
    return target if condition == "own" or options.get("rates") == "table" else measured(restricted(described(), condition))


def restricted(target: Target, condition: str) -> Target:
    """The target without the instructions that a condition leaves out."""
    if condition in ("own", "beside"):
        return target
    cpu, width, wide = {"avx2": ("x86-64-v3", 32, ("avx512", "avx10", "evex512", "amx")),
                        "sse": ("x86-64-v2", 16, ("avx", "fma", "f16c", "evex512", "vaes", "vpclmul", "amx"))}[condition]
    features = tuple(f for f in target.features if not f.startswith(wide))
    ordered = Target(cpu).loaded_ahead  # LLVM orders instructions as it does for this name
    narrow = target.with_(cpu=cpu, vector_bytes=width, vector_registers=16, features=features, loaded_ahead=ordered)
    if "fma" in features or options.get("rates") != "table":
        return narrow
    return narrow.with_(fma_ports=max(narrow.fma_ports // 2, 1))  # a product and a sum are two instructions; whether cores begin both at once is measured


def build(layer: Layer, most: int, seed: int, path: Path, condition: str = "own") -> int:
    """Compile up to ``most`` candidates of a layer into a file, the compiler's choice first; how many there are."""
    target = machine(condition)
    found: list[Candidate] = []
    libraries: list[Any] = []
    rule = ""
    for variant in variants(layer, target):
        rule = rule or variant.main.rule
        programs = _programs(variant, max(most if not found else most // OTHERS, 1), seed, target)
        built = _compiled(variant, [p.func for p in programs], [p.layouts for p in programs], target)
        for k, p in enumerate(programs):
            kernels = (variant.working - {variant.main.name}) | {f"{variant.main.name}_c{k}"}
            found.append(Candidate(p.text, p.cycles, len(libraries), f"main_c{k}", kernels))
        weights = {key: constant.numpy() for key, constant in built.weights.items()}
        libraries.append((built.objects, built.functions, weights, built.offsets, built.nbytes, built.target, built.spec))
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        pickle.dump((rule, found, libraries), file, protocol=pickle.HIGHEST_PROTOCOL)
    partial.rename(path)
    return len(found)


def load(path: Path, threads: int = 1) -> tuple[str, list[Candidate], list[Any]]:
    """What ``build`` kept: the rule that was chosen, the candidates, and for each its function, to be called with the input."""
    with path.open("rb") as file:
        rule, found, libraries = pickle.load(file)
    loaded = []
    for objects, functions, weights, offsets, nbytes, target, spec in libraries:
        constants = {key: ConstData(array) for key, array in weights.items()}
        loaded.append(Built(objects, functions, constants, offsets, nbytes, target, {}, spec).load(threads=threads, profile=True))
    return rule, found, [loaded[c.library][c.function] for c in found]


def variants(layer: Layer, target: Target) -> list[Variant]:
    """The layer under each algorithm that makes a different program; the first is the compiler's choice."""
    before = driver.DEFAULT[: driver.DEFAULT.index(schedule_module)]
    out = StructuralMap()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layer.onnx"
        layer.save(path)
        model = onnx.load(path)  # constants of a model by its path are read from the file when they are needed
        for settings in ALGORITHMS:
            with options.override(**settings):
                mod = driver.prepare(from_onnx(model), target=target, pipeline=before)
            kernels = explain_module(mod, target)
            main = max(kernels, key=lambda e: e.cost.flops)
            working = frozenset(e.name for e in kernels if e.cost.flops) or frozenset({main.name})
            out.setdefault(mod[main.name], partial(Variant, settings, mod, main, working))
    return out.values()


@dataclass(frozen=True)
class _Program:
    """A scheduled kernel and the layouts that it wants for constants."""

    func: Any
    layouts: Any
    text: str
    cycles: float | None


def _programs(v: Variant, most: int, seed: int, target: Target) -> list[_Program]:
    """Different schedules of one algorithm's kernel, the model's choice first."""
    label = " ".join(f"{k}={x}" for k, x in v.options.items())
    programs = StructuralMap()
    fixed = constant_params(v.mod).get(v.main.name, ()) if is_packed(v.mod[v.main.name]) else ()
    others = [sketch for sketch, _ in proposals(v.mod[v.main.name], target, fixed) if sketch.name != v.main.rule]
    for sketch in [v.main.sketch, *others]:
        _add(programs, sketch, max(most if sketch is v.main.sketch else most // OTHERS, 1), seed, label)
    if not any(type(e) is tir.IterVar and e.kind is tir.IterKind.REDUCE for e in walk(v.mod[v.main.name].body)):
        for made in _nests(v.mod[v.main.name], target, most, seed):
            programs.setdefault(made, partial(_Program, made, {}, f"{label} random", None))
    return programs.values()


def _add(programs: StructuralMap, sketch: Sketch, most: int, seed: int, label: str) -> None:
    """The candidates of a sketch."""
    table = sketch.candidates
    for k in [0] if table is None else pick(table.ranking(), most, seed):
        decisions = {} if table is None else table.decisions(k)
        try:
            applied = sketch.schedule(decisions)
        except ScheduleError:
            continue
        made = finished(sketch.name, applied)
        text = " ".join([*([label] if label else []), sketch.name, *(f"{n}={x}" for n, x in decisions.items())])
        expected = None if table is None or table.cycles is None else float(table.cycles[k])
        programs.setdefault(made, partial(_Program, made, applied.layouts, text, expected))


def _nests(func: tir.PrimFunc, target: Target, count: int, seed: int) -> list[tir.PrimFunc]:
    """Random loop nests of a program without reductions."""
    rng = random.Random(seed)
    return [made for _ in range(count) if (made := random_schedule(func, target, rng, func.attrs.get("global_symbol", "main"))) is not None]


def pick(ranking: np.ndarray, most: int, seed: int) -> list[int]:
    """The first ones of a ranking and a random sample of the others."""
    order = [int(k) for k in ranking]
    if len(order) <= most:
        return order
    head = max(int(most * FAVOURITES), 1)
    return order[:head] + random.Random(seed).sample(order[head:], most - head)


class _Calling(Rewriter):
    """The graph function with another kernel in place of one."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    @on(graph.GlobalVar)
    def _global(self, name: graph.GlobalVar) -> graph.GlobalVar:
        return graph.GlobalVar(self.new) if name.name == self.old else name


def _compiled(v: Variant, programs: Sequence[Any], layouts: Sequence[Any], target: Target) -> Built:
    """A function for each program in place of the main kernel, all in one module."""
    name, main = v.main.name, v.mod["main"]
    changes: dict[str, Any] = {name: None, "main": None}
    for k, func in enumerate(programs):
        changes[f"{name}_c{k}"] = func
        changes[f"main_c{k}"] = _Calling(name, f"{name}_c{k}").rewrite(main).with_attr("global_symbol", f"main_c{k}")
    mod = repack(v.mod.with_functions(changes), {f"{name}_c{k}": wanted for k, wanted in enumerate(layouts) if wanted})
    return driver.build_objects(driver.prepare(mod, target=target, pipeline=driver.FINISH))
