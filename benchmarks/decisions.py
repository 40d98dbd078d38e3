# SPDX-License-Identifier: Apache-2.0
"""Random layers: the decisions that the target's model chooses against the best of many that are measured.

A layer's algorithms (direct, Winograd, Strassen) are those that the compiler takes under different options; of the kernel that
does the work in each, the candidates are the schedule rule's own table, the model's favourites and a random sample. Equal programs
are measured once. All candidates of a layer run in turns in one process; the fastest run again together with the chosen one, and this
second race gives the figures.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from roundel import driver
from roundel.frontend.onnx import from_onnx
from roundel.ir import Rewriter, graph, on, options, structural_hash
from roundel.ir.errors import RoundelError
from roundel.ir.module import IRModule
from roundel.select.explain import Explanation, explain_module
from roundel.select.pack_constants import constant_params, repack
from roundel.select.schedule_module import schedule_module, schedule_program
from roundel.target import Target

from .layers import Layer
from .random_layers import draw
from .results import machine, merge, read

FAVOURITES = 0.6            # share of the measured candidates that the model puts first
ALGORITHMS: tuple[dict[str, Any], ...] = ({}, {"weight_growth": 1.8}, {"weight_growth": 1.0}, {"accuracy": "strict"})
BLOCK, RACE, FINAL = 3e-4, 0.02, 0.06  # seconds: of a block of calls, of each candidate in the first and the second race
FINALISTS = 6


@dataclass
class Variant:
    """A layer under one algorithm, not scheduled yet. ``main`` is the kernel whose decisions vary, ``working`` all that compute."""

    options: Mapping[str, Any]
    mod: IRModule
    main: Explanation
    working: frozenset[str]


@dataclass
class Candidate:
    """``number`` names its functions; ``cycles`` is what the model expects (None where there is no table)."""

    number: int
    text: str
    run: Any
    cycles: float | None
    calls: int = 1
    seconds: float = float("inf")


def run_random(seed: int, count: int, most: int, only: str = "") -> list[dict[str, Any]]:
    """``count`` layers drawn by ``seed``, up to ``most`` candidates of each; what the results have already is not run again."""
    done = {(e["seed"], e["number"]) for e in read("random")}
    out: list[dict[str, Any]] = []
    for number, layer in zip(range(count), draw(random.Random(seed))):
        if (seed, number) in done or only not in f"{layer.family} {layer.name}":
            continue
        start = time.perf_counter()
        entry, _ = run_layer(layer, most, seed)
        entry |= {"seed": seed, "number": number, "machine": machine()}
        merge("random", [entry], ("seed", "number"))
        out.append(entry)
        print(f"{number:3d} {entry['name']:44s} {entry['candidates']:4d} in {time.perf_counter() - start:5.1f} s   chosen {entry['chosen_us']:8.1f} us"
              f"   best {entry['best_us']:8.1f} us   {entry['chosen_us'] / entry['best_us'] - 1:6.1%}   {entry['chosen']} | {entry['best']}", flush=True)
    return out


def run_layer(layer: Layer, most: int, seed: int) -> tuple[dict[str, Any], list[Candidate]]:
    """Measure the choice and the candidates: the entry for the results, and the candidates as the first race found them."""
    target = Target.host()
    found = variants(layer, target)
    candidates = [c for k, v in enumerate(found) for c in _candidates(v, k, target, max(most // (1 if k == 0 else 3), 1), seed)]
    x = layer.arrays()[0]
    _race(candidates, x, RACE)
    chosen = candidates[0]
    finalists = list({c.number: c for c in [chosen, *sorted(candidates, key=lambda c: c.seconds)[:FINALISTS]]}.values())
    finalists = [replace(c, seconds=float("inf")) for c in finalists]
    _race(finalists, x, FINAL)
    best, chosen = min(finalists, key=lambda c: c.seconds), finalists[0]
    entry = {"name": f"{layer.node} {layer.name}", "rule": found[0].main.rule, "candidates": len(candidates), "chosen": chosen.text,
            "chosen_us": chosen.seconds * 1e6, "best": best.text, "best_us": best.seconds * 1e6}
    return entry, candidates


def variants(layer: Layer, target: Target) -> list[Variant]:
    """The layer under each algorithm that makes a different program; the first is the compiler's choice."""
    before = driver.DEFAULT[: driver.DEFAULT.index(schedule_module)]
    out: dict[int, Variant] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layer.onnx"
        layer.save(path)
        for settings in ALGORITHMS:
            with options.override(**settings):
                mod = driver.prepare(from_onnx(str(path)), target=target, pipeline=before)
            kernels = explain_module(mod, target)
            main = max(kernels, key=lambda e: e.cost.flops)
            working = frozenset(e.name for e in kernels if e.cost.flops) or frozenset({main.name})
            out.setdefault(structural_hash(mod[main.name]), Variant(settings, mod, main, working))
    return list(out.values())


def _candidates(v: Variant, number: int, target: Target, most: int, seed: int) -> list[Candidate]:
    """Compiled candidates of one algorithm, the model's choice first."""
    table = v.main.candidates
    picked = [0] if table is None else _pick(table.ranking(), most, seed)
    label = " ".join(f"{k}={x}" for k, x in v.options.items())
    programs: dict[int, tuple[Any, Any, str, float | None]] = {}
    for k in picked:
        decisions = {} if table is None else table.decisions(k)
        func = v.mod[v.main.name].with_attr("decisions", decisions) if decisions else v.mod[v.main.name]
        made, layouts = schedule_program(func, target, constant_params(v.mod).get(v.main.name, ()))
        if made.attrs["scheduled"] == v.main.rule:
            made = made.replace(attrs=made.attrs.without("decisions"))
            text = " ".join([*([label] if label else []), v.main.rule, *(f"{n}={x}" for n, x in decisions.items())])
            programs.setdefault(structural_hash(made), (made, layouts, text, None if table is None else float(table.cycles[k])))
    functions = _compiled(v, [(p[0], p[1]) for p in programs.values()])
    return [Candidate(1000 * number + k, text, _measured(f, v.working, v.main.name), cycles)
            for k, (f, (_, _, text, cycles)) in enumerate(zip(functions, programs.values(), strict=True))]


def _pick(ranking: np.ndarray, most: int, seed: int) -> list[int]:
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


def _compiled(v: Variant, programs: Sequence[tuple[Any, Any]]) -> list[Any]:
    """A function for each program in place of the main kernel, all in one module."""
    name, main = v.main.name, v.mod["main"]
    changes: dict[str, Any] = {name: None, "main": None}
    layouts = {}
    for k, (func, wanted) in enumerate(programs):
        changes[f"{name}_c{k}"] = func
        changes[f"main_c{k}"] = _Calling(name, f"{name}_c{k}").rewrite(main).with_attr("global_symbol", f"main_c{k}")
        layouts[f"{name}_c{k}"] = wanted
    mod = repack(v.mod.with_functions(changes), {n: w for n, w in layouts.items() if w})
    built = driver.build_objects(driver.prepare(mod, target=Target.host(), pipeline=driver.FINISH), profile=True)
    loaded = built.load(threads=1, profile=True)
    return [loaded[f"main_c{k}"] for k in range(len(programs))]


def _measured(function: Any, working: frozenset[str], main: str) -> Any:
    """Seconds of one call of what computes, by so many calls."""

    def run(x: np.ndarray, calls: int) -> float:
        for _ in range(calls):
            function(x)
        return sum(seconds / n for name, (n, seconds) in function.profile().items() if n and (name in working or name.startswith(f"{main}_c")))

    return run


def _race(candidates: Sequence[Candidate], x: np.ndarray, budget: float) -> None:
    """Put the fastest block of each into ``seconds``; blocks in turns, ``budget`` seconds each at most."""
    for c in candidates:
        try:
            first = min(c.run(x, 1) for _ in range(2))
        except RoundelError as error:
            raise RoundelError(f"{c.text} does not run", why=str(error)) from error
        c.calls = max(1, min(50, round(BLOCK / max(first, 1e-7))))
    for _ in _rounds(candidates, budget):
        for c in candidates:
            c.seconds = min(c.seconds, c.run(x, c.calls))


def _rounds(candidates: Sequence[Candidate], budget: float) -> Iterator[int]:
    end = time.perf_counter() + budget * len(candidates)
    done = 0
    while done < 3 or time.perf_counter() < end:
        yield done
        done += 1
