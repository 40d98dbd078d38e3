# SPDX-License-Identifier: Apache-2.0
"""The results as Markdown tables. ``°`` marks a figure without enough quiet blocks: the median of its fastest quarter of calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from . import operators, results
from .engines import OURS
from .goals import HEADS, best_peer, goals_rows, kernel_alone, this_machine
from .latency import ratio

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
OPERATORS = "Common operators alone, whole calls from Python (`python -m benchmarks operators`); ONNX Runtime writes into memory that it was given before."
NARROW = {"roundel-f16": "float16 weights", "roundel-bf16": "bfloat16 weights"}
PEERS = ("ort", "openvino", "onednn", "inductor", "eager", "tvm")


def report() -> str:
    """All tables for which there are results. Where there are results of several machines, each has tables of its own."""
    parts = []
    if models := results.read("models"):
        parts += ["## Models", side_by_side(models), *_of_each(models, lambda mine, name: [chart_of(
            "models", name, "Speed of each engine relative to the best peer"), models_table(mine), models_summary(mine)])]
    if kernels := results.read("kernels"):
        parts += ["## Kernels", *_of_each(kernels, kernels_of)]
    if found := results.read("operators"):
        parts += ["## Operators", OPERATORS, *_of_each(found, lambda mine, name: [operators_summary(mine)])]
    if layers := results.read("random"):
        parts += ["## Choice of decisions", *_of_each(layers, lambda mine, name: [random_summary(mine)])]
    return "\n\n".join(filter(None, parts)) + "\n"


def _of_each(entries: Sequence[dict[str, Any]], shown: Callable[[list[dict[str, Any]], str], list[str]]) -> Iterator[str]:
    """What is shown of each machine, under its name where there are several."""
    machines = results.by_machine(entries)
    for name, mine in machines.items():
        yield from [f"### {name}"] * (len(machines) > 1) + shown(mine, name)


def side_by_side(entries: Sequence[dict[str, Any]]) -> str:
    """The ratios of several machines in one table: a line per case and number of threads."""
    machines = results.by_machine(x for x in entries if x["batch"] == 1)
    if len(machines) < 2:
        return ""
    found = {(x["case"], x["threads"], name): f"{ratio(x):.2f}" for name, mine in machines.items() for x in mine if not math.isnan(ratio(x))}
    cases = dict.fromkeys((x["threads"], x["case"]) for mine in machines.values() for x in mine)
    rows = [[case, threads, *(found.get((case, threads, name), "") for name in machines)] for threads, case in sorted(cases, key=lambda c: c[0])]
    return "The time of the best peer divided by Roundel's, batch 1:\n\n" + markdown(["model", "threads", *machines], rows)


def chart_of(kind: str, name: str, text: str) -> str:
    """The picture of a machine's chart."""
    return f"![{text}](charts/{results.chart_name(kind, name)}.png)"


def kernels_of(mine: list[dict[str, Any]], name: str) -> list[str]:
    """Goals, summary, chart and table of the layers of one machine. Goals are shares of what the machine can, so they are checked where they are measured."""
    here = name == results.here()
    peak = results.ceilings(name).get("gflops") or (peak_gflops() if here else math.nan)
    goals = [markdown(HEADS, goals_rows(mine, this_machine()))] if here else []
    return [*goals, kernels_summary(mine, peak), chart_of("kernels", name, "Layers as shares of the multiply-add peak"), kernels_table(mine, peak)]


def insert(path: Path, text: str) -> None:
    """Replace what stands between the two marks of a file; raises ValueError where it has none."""
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} lacks the marks {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


def models_table(entries: Sequence[dict[str, Any]]) -> str:
    """One line per case and number of threads; milliseconds, and the best peer's time by ours."""
    engines = [e for e in (*NARROW, *PEERS) if any("ms" in x["engines"].get(e, {}) for x in entries)]
    rows = []
    for x in sorted(entries, key=lambda x: (x["batch"], x["threads"])):
        found = {k: figure(e) for k, e in x["engines"].items()}
        by_cpu = ratio(x, "cpu_ms") if x["threads"] == 1 else math.nan
        ratios = [f"**{ratio(x):.2f}**", "" if math.isnan(by_cpu) else f"{by_cpu:.2f}"]
        rows.append([x["case"], x["threads"], f"**{found.get(OURS, '')}**", *(found.get(e, "") for e in engines), *ratios])
    return markdown(["model", "threads", "roundel ms", *(NARROW.get(e, e) for e in engines), "best peer / roundel", "by CPU time"], rows)


def models_summary(entries: Sequence[dict[str, Any]]) -> str:
    """Geometric means by number of threads and batch."""
    groups: dict[tuple[int, int], list[float]] = {}
    for x in entries:
        groups.setdefault((x["batch"], x["threads"]), []).append(ratio(x))
    lines = []
    for (batch, threads), values in sorted(groups.items()):
        known = [v for v in values if not math.isnan(v)]
        if known:
            lines.append(f"- batch {batch}, {threads} thread{'s' * (threads > 1)}: geometric mean {geometric_mean(known):.2f} over {len(known)} cases, "
                         f"lowest {min(known):.2f}")
    return "\n".join(lines)


def figure(entry: Mapping[str, Any]) -> str:
    """Milliseconds of one engine, or why there are none."""
    if "ms" in entry:
        return f"{entry['ms']:.2f}{'' if entry['quiet'] else '°'}"
    return "failed" if "error" in entry else ""


def peak_gflops() -> float:
    """Of one core of this machine, measured."""
    from roundel.target.profile import this_machine

    return this_machine().gflops


def kernels_table(entries: Sequence[dict[str, Any]], peak: float) -> str:
    """One line per layer: microseconds of a whole call, of Roundel's main kernel alone, and how close that is to the peak."""
    rows = []
    for x in entries:
        engines, name, best = x["engines"], *best_peer(x)
        ours = engines.get(OURS, {})
        if "ms" not in ours or not best:
            rows.append([x["family"], x["name"], figure(ours), "", "", "", f"{name} {best * 1e3:.0f}", ""])
            continue
        alone, least = kernel_alone(ours), best_peer(x, "min_ms")[1]
        rate = x["flops"] / alone * 1e-6
        by_memory = x["family"] in BOUND_BY_MEMORY
        share = f"{x['bytes'] / alone * 1e-6:.0f} GB/s" if by_memory else f"{rate / peak / x['threads']:.0%}"
        rows.append([x["family"], x["name"], f"{ours['ms'] * 1e3:.0f}", f"{alone * 1e3:.0f}", f"{rate:.0f}", share, f"{name} {best * 1e3:.0f}",
                     f"**{best / ours['ms']:.2f}** ({least / alone:.2f})"])
    return markdown(["family", "layer", "roundel us", "kernel us", "GFLOP/s", "of peak", "best peer us", "best peer / roundel (kernel)"], rows)


BOUND_BY_MEMORY = ("gemv", "softmax", "layer norm")


def kernels_summary(entries: Sequence[dict[str, Any]], peak: float) -> str:
    """By family: how many layers, the ratios to the best peer, for whole calls and for kernels alone."""
    rows = []
    for family in dict.fromkeys(x["family"] for x in entries):
        mine = [x for x in entries if x["family"] == family and "ms" in x["engines"].get(OURS, {}) and best_peer(x)[1]]
        if not mine:
            continue
        ratios = [best_peer(x)[1] / x["engines"][OURS]["ms"] for x in mine]
        alone = [best_peer(x, "min_ms")[1] / kernel_alone(x["engines"][OURS]) for x in mine]
        rows.append([family, len(mine), f"{median(ratios):.2f}", f"{min(ratios):.2f}", f"{median(alone):.2f}", f"{min(alone):.2f}",
                     f"{sum(r >= 0.97 for r in alone)} of {len(mine)}"])
    text = f"FMA peak of one core: {peak:.0f} GFLOP/s. Ratios are best peer / roundel.\n\n"
    heads = ["family", "layers", "median, whole call", "lowest", "median, kernel", "lowest", "kernel within 3 % of the best peer or faster"]
    return text + markdown(heads, rows)


def operators_summary(entries: Sequence[dict[str, Any]], most: int = 10) -> str:
    """How the common operators stand against their best peers, by number of threads; those furthest behind."""
    parts = []
    for threads in sorted({x["threads"] for x in entries}):
        mine = [x for x in entries if x["threads"] == threads and not math.isnan(operators.ratio(x))]
        ratios = [operators.ratio(x) for x in mine]
        parts.append(f"{threads} thread{'s' * (threads > 1)}: {len(mine)} operators, best peer's time / ours: geometric mean {geometric_mean(ratios):.2f}, "
                     f"median {median(ratios):.2f}, {sum(r >= 1 for r in ratios)} at least 1, {sum(r >= 0.8 for r in ratios)} at least 0.8. Furthest behind:")
        cell = lambda x, e: f"{x['engines'][e]['ms'] * 1e3:.0f}" if "ms" in x["engines"].get(e, {}) else ""
        rows = [[x["name"], *(cell(x, e) for e in (OURS, "ort", "eager")), f"**{operators.ratio(x):.2f}**"] for x in operators.worst(mine, most)]
        parts.append(markdown(["operator", "roundel us", "ort", "eager", "best peer / roundel"], rows))
    return "\n\n".join(parts)


def random_summary(entries: Sequence[dict[str, Any]]) -> str:
    """How far the model's choice is from the best measured decision, by seed, machine and number of threads, and where it is furthest."""
    behind = lambda x: x["chosen_us"] / x["best_us"] - 1
    under = lambda x: (x["seed"], x.get("condition", "own"), x.get("threads", 1))
    lines = []
    for seed, condition, threads in sorted(set(map(under, entries))):
        mine = [x for x in entries if under(x) == (seed, condition, threads)]
        losses, counts = sorted(map(behind, mine)), [x["candidates"] for x in mine]
        ninth = losses[max(0, math.ceil(0.9 * len(losses)) - 1)]
        where = (", " + condition if condition != "own" else "") + (f", {threads} threads" if threads > 1 else "")
        lines.append(f"- seed {seed}{where}: {len(mine)} random layers, {min(counts)} to {max(counts)} candidates each (median {median(counts):.0f}): "
                     f"the chosen decisions are {median(losses):.1%} behind the best measured ones as a median, "
                     f"at most {ninth:.1%} for nine in ten, {losses[-1]:.0%} at worst")
    worst = sorted(entries, key=behind)[:-11:-1]
    rows = [[x["seed"], x["name"], x["candidates"], x["chosen"], f"{x['chosen_us']:.0f}", x["best"], f"{x['best_us']:.0f}", f"{behind(x):.0%}"] for x in worst]
    heads = ["seed", "layer", "candidates", "chosen", "us", "best", "us", "behind"]
    return "\n".join(lines) + "\n\nThe ten worst:\n\n" + markdown(heads, rows)


def markdown(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table."""
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])
