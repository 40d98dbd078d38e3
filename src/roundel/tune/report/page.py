# SPDX-License-Identifier: Apache-2.0
"""The page: all tasks in a table; for each how it became faster, what its candidates took by their decisions, and how well that was predicted."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from ...ir.dataclass import dataclass
from ..attempt import Attempt
from ..result import Result, row
from .chart import COLOURS, Axis, Chart

_LIGHT = """--text: #1b1d21; --mute: #565c66; --back: #ffffff; --panel: #f5f6f8; --line: #d5d8de; --accent: #1d5fae;
  --c0: #1d5fae; --c1: #b24a10; --c2: #2d7a2d; --c3: #7d4496; --c4: #a02c3c; --c5: #5c5c1f; --c6: #1a7272; --c7: #4b4f57"""
_DARK = """--text: #e6e8ec; --mute: #a3aab6; --back: #16181c; --panel: #1f2228; --line: #3a3f49; --accent: #7db4f5;
  --c0: #7db4f5; --c1: #f0995f; --c2: #77c977; --c3: #cda0e6; --c4: #f08a98; --c5: #cfcf7a; --c6: #6fd0d0; --c7: #b8bec9"""
STYLE = f"""
:root {{ color-scheme: light dark; {_LIGHT} }} @media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
body {{ font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 2em auto; max-width: 1330px; padding: 0 1em }}
p, h1 {{ overflow-wrap: anywhere }}
.scroll {{ overflow-x: auto }} :focus-visible {{ outline: 3px solid var(--accent); outline-offset: 2px }}
table {{ border-collapse: collapse; width: 100% }} td, th {{ padding: .25em .7em; text-align: right; border-bottom: 1px solid var(--line);
  vertical-align: top }}
td:first-child, th:first-child, td:last-child, th:last-child, caption {{ text-align: left }}
caption {{ color: var(--mute); padding-bottom: .3em }}
summary {{ cursor: pointer; font-size: 1.1em; margin: 1em 0 .3em }} 
svg {{ margin: 4px; max-width: 100%; height: auto }} svg text {{ font-size: 12px; fill: var(--text) }}
svg .name {{ font-weight: 600 }} svg .mute {{ fill: var(--mute) }} .mute {{ color: var(--mute) }} svg .frame {{ fill: var(--panel); stroke: var(--line) }}
svg .tick {{ stroke: var(--mute) }} .key {{ display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin: 0 .3em 0 1em }}
"""
HEADS = ("task", "calls", "trials", "failed", "untuned ms", "best ms", "gain", "schedule")


@dataclass(frozen=True)
class _Point:
    """A candidate that was measured: its sketch, decisions, milliseconds, and the cycles that were expected of it."""

    sketch: str
    decisions: Mapping[str, Any]
    ms: float
    expected: float

    def __str__(self) -> str:
        return f"{self.sketch} {' '.join(f'{k}={v}' for k, v in self.decisions.items())}: {self.ms:.4f} ms"


def page(result: Result, title: str = "") -> str:
    """One file of HTML with everything in it. ``title``: what was tuned."""
    before, after = result.model_ms()
    rows = result.rows
    order = {r.name: k for k, r in enumerate(rows)}
    facts = [f"{len(rows)} tasks, {sum(r.trials for r in rows)} trials, {sum(r.failures for r in rows)} of them failed, in {result.seconds:.0f} s"]
    facts += [f"kernels together {before:.4f} ms untuned, {after:.4f} ms tuned: {result.gain:.3f} times as fast"] if after else []
    facts += [f"records in {result.database}"] if result.database else []
    head = f"Tuning of {title}" if title else "Tuning"
    sections = [_section(a) for a in sorted(result.attempts, key=lambda a: order[a.task.name])]
    return "\n".join([
        "<!doctype html>", '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(head)}</title><style>{STYLE}</style></head><body><main>",
        f"<h1>{escape(head)}</h1><p>{'<br>'.join(map(escape, facts))}</p><p class=\"mute\">{time.strftime('%Y-%m-%d %H:%M')}</p>",
        _table([_cells(r) for r in rows]), *sections, "</main></body></html>", ""])


def _cells(r: Any) -> list[str]:
    times = [f"{r.default_ms:.4f}", f"{r.best_ms:.4f}", f"{r.gain:.3f}"] if r.default_ms is not None and r.best_ms is not None else ["", "", ""]
    how = f"{r.sketch} {_words(r.decisions)}" + ("" if r.is_tuned else " (as untuned)") if r.sketch else r.note or "not measured"
    return [r.name, f"{r.weight:g}", str(r.trials), str(r.failures or ""), *times, how]


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["".join(f"<td>{escape(c)}</td>" for c in cells) for cells in rows]
    heads, body = "".join(f'<th scope="col">{h}</th>' for h in HEADS), "".join(f"<tr>{line}</tr>" for line in lines)
    return ('<div class="scroll" tabindex="0" role="group" aria-label="Tasks"><table><caption>Tasks; milliseconds are of one call</caption>'
            f"<tr>{heads}</tr>{body}</table></div>")


def _section(attempt: Attempt) -> str:
    """One task."""
    r = row(attempt)
    name = f"<summary>{escape(r.name)}</summary>"
    if r.default_ms is None:
        return f"<details>{name}<p>{escape(r.note or 'not measured')}</p></details>"
    points, untuned = _points(attempt), r.default_ms
    if not points:
        return f"<details>{name}<p>nothing but the untuned schedule was measured: {untuned:.4f} ms</p></details>"
    sketches = list(dict.fromkeys(p.sketch for p in points))
    colours = {s: COLOURS[k % len(COLOURS)] for k, s in enumerate(sketches)}
    best = min(points, key=lambda p: p.ms)
    alike = [p for p in points if p.sketch == best.sketch]
    charts = [_curve(attempt, untuned), _predicted(points, colours, best), *_by_decision(alike, colours[best.sketch], best)]
    keys = "".join(f'<span class="key" style="background:{colours[s]}"></span>{escape(s)}' for s in sketches)
    also = f"<p class=\"mute\">also {escape(', '.join(attempt.task.names[1:]))}</p>" if len(attempt.task.names) > 1 else ""
    return f"<details open>{name}{also}<p>{keys}</p>{''.join(c.svg() for c in charts)}</details>"


def _points(attempt: Attempt) -> list[_Point]:
    """The candidates that did not fail, in the order in which they were measured."""
    space = attempt.space
    return [_Point(space.sketch(c).name, space.choice(c), s * 1e3, max(space.cycles(c), 1.0)) for c, s in attempt.search.times.items() if s is not None]


def _curve(attempt: Attempt, untuned: float) -> Chart:
    """The fastest so far, over trials."""
    points = [(float(k), s * 1e3) for k, s in attempt.history if math.isfinite(s)]
    chart = Chart("fastest so far", Axis.of("trials", [p[0] for p in points]), Axis.of("ms", [*(p[1] for p in points), untuned]))
    chart.steps(points, COLOURS[0])
    chart.level(untuned, "untuned")
    return chart


def _predicted(points: Sequence[_Point], colours: Mapping[str, str], best: _Point) -> Chart:
    """Measured over expected: in one line where the model of the machine is right."""
    title = f"measured over expected, in order {_in_order(points):.0%}"
    chart = Chart(title, Axis.of("expected cycles", [p.expected for p in points], True), Axis.of("ms", [p.ms for p in points], True))
    for p in points:
        chart.point(p.expected, p.ms, colours[p.sketch], str(p), p is best)
    return chart


def _by_decision(points: Sequence[_Point], colour: str, best: _Point) -> list[Chart]:
    """For each decision of the best candidate's sketch what its values took."""
    out = []
    for name in best.decisions:
        values = sorted({p.decisions[name] for p in points})
        if len(values) < 2:
            continue
        wide = values[0] > 0 and values[-1] / values[0] > 8
        chart = Chart(f"{best.sketch}: {name}", Axis.of(name, values, wide), Axis.of("ms", [p.ms for p in points], True))
        for p in points:
            chart.point(p.decisions[name], p.ms, colour, str(p), p is best)
        out.append(chart)
    return out


def _in_order(points: Sequence[_Point]) -> float:
    """The share of pairs of which the one that was expected to be faster is (one half is chance)."""
    ms, expected = np.array([p.ms for p in points]), np.array([p.expected for p in points])
    signs = np.sign(ms[:, None] - ms) * np.sign(expected[:, None] - expected)
    decided = (signs != 0).sum()
    return float((signs > 0).sum() / decided) if decided else 1.0


def _words(decisions: Mapping[str, Any]) -> str:
    return " ".join(f"{k}={v}" for k, v in decisions.items())
