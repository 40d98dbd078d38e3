# SPDX-License-Identifier: Apache-2.0
"""What is known of a model's kernels and choices, as a table and lines for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..ir.choice import EXPECTED, MEASURED
from ..ir.escape import message, short_name
from ..runtime import columns


def table(rows: list[dict[str, Any]], title: str) -> str:
    """The rows as a table; times of all calls in one run. Of compiled files there are only the columns that are known."""
    shown = [(head, figure) for head, key, figure in _FIGURES if any(key in r for r in rows)]
    lines = [columns.Row(message(r["kernel"]), [figure(r) for _, figure in shown], _notes(r)) for r in rows]
    times = "; times are milliseconds of all calls in a run" if shown else ""
    return columns.table("kernel", [head for head, _ in shown], lines, f"{message(title)}{times}")


def _time(key: str) -> Callable[[dict[str, Any]], str]:
    return lambda r: f"{r['calls'] * r[key]:.3f}" if key in r else ""


_FIGURES = (
    ("calls", "calls", lambda r: f"{r['calls']:g}" if "calls" in r else ""), ("MFLOP", "mflop", lambda r: f"{r['mflop']:.1f}"),
    ("MB", "mbytes", lambda r: f"{r['mbytes']:.2f}"), ("bound", "bound_ms", lambda r: f"{_time('bound_ms')(r)} {r['limit'][0]}"),
    ("expected", "predicted_ms", _time("predicted_ms")), ("measured", "measured_ms", _time("measured_ms")),
    ("%", "roofline", lambda r: f"{r['roofline']:.0%}" if "roofline" in r else ""),
)
"""Of each column its head, the name of its value in a row, and how that is written."""


def _notes(r: dict[str, Any]) -> list[str]:
    """How a kernel is computed and why; of a compiled file, for which nodes."""
    chosen = " ".join([r["rule"], *(f"{k}={v}" for k, v in r["decisions"].items())])
    if "reason" not in r:
        return [chosen, message("of " + ", ".join(map(short_name, r["nodes"])))] if r["nodes"] else [chosen]
    return [*filter(None, (chosen, by_instruction(r), decided(r) if r["reason"] != EXPECTED else passed_over(r)))]


def by_instruction(row: dict[str, Any]) -> str:
    """The instruction for products that a kernel is computed by, or why none of the machine's is; nothing for what has no such product."""
    if row["instructions"]:
        return "by " + " and ".join(row["instructions"])
    return "; ".join(f"not by {name}: {why}" for name, why in row["instructions_refused"].items())


def decided(row: dict[str, Any]) -> str:
    """Why a kernel's schedule was taken where no model decided: when and by whom it was measured and what came second, or what was pinned."""
    record = row["record"]
    if record is None:
        return f"pinned: {_words(row['pinned'])}" if row["pinned"] else ""
    gain = f", {record['untuned_ms'] / record['ms']:.2f} times as fast as untuned" if record["untuned_ms"] and record["ms"] else ""
    behind = [f"{r['rule']} {_words(r['decisions'])} {r['ms'] / record['ms'] - 1:+.1%}" for r in record["second"] if record["ms"]]
    return f"{record['origin']}: {record['ms']:.4f} ms{gain}" + (f"; then {'; then '.join(behind)}" if behind else "")


def _words(decisions: Mapping[str, Any]) -> str:
    return " ".join(f"{k}={v}" for k, v in decisions.items())


def passed_over(row: dict[str, Any]) -> str:
    """How many candidates there were, and how the next best one differs."""
    if not row["alternatives"]:
        return ""
    decisions, ms = row["alternatives"][0]
    other = " ".join(f"{k}={v}" for k, v in decisions.items() if row["decisions"][k] != v)
    return f"of {row['candidates']}; next {other} {ms / max(row['modelled_ms'], 1e-9) - 1:+.1%}"


def summary(rows: list[dict[str, Any]]) -> str:
    """All kernels together, and how to see more."""
    count = "1 kernel" if len(rows) == 1 else f"{len(rows)} kernels"
    bound, measured = (sum(r.get("calls", 0) * r.get(k, 0.0) for r in rows) for k in ("bound_ms", "measured_ms"))
    if not any("bound_ms" in r for r in rows):
        took = f", measured {measured:.3f} ms" if measured else ""
        return "\n".join(columns.hanging(f"{count}{took}. A compiled file does not tell what else was possible: explain the model that it was compiled "
                                         "from. `roundel inspect MODEL.so --form asm -f KERNEL` shows a kernel's machine code."))
    known = sum(r["reason"] == MEASURED for r in rows)
    count += f" ({known} from records)" if known else ""
    text = f"{count}, {sum(r['calls'] * r['mflop'] for r in rows) / 1e3:.2f} GFLOP; bound {bound:.3f} ms (c: by arithmetic, m: by memory)"
    if measured:
        text += f", measured {measured:.3f} ms: {bound / measured:.0%} of the roofline"
    return "\n".join([*columns.hanging(text), "One kernel's schedule: roundel explain MODEL -f KERNEL",
                      "Its code: roundel inspect MODEL -f KERNEL --form script|llvm|asm"])


def choice_lines(choices: list[dict[str, Any]]) -> list[str]:
    """A line for all equal choices that had an alternative, and of which something is expected or that are not as usual: what was taken, what is
    expected or was measured of it and of the others, and where. Paths by libraries are shown with why there is none, too."""
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for c in choices:
        usual, *others = c["expected_ms"]
        known = c["expected_ms"][usual] is not None or c["taken"] != usual or c["reason"] == MEASURED
        if (others and known) or (c["kind"] == "library" and c["why_not"]):
            alike.setdefault((c["subject"], c["taken"], c["condition"], c["reason"]), []).append(c)
    return [line for same in alike.values() for line in columns.hanging(_choice_line(same[0], [c["site"] for c in same]))]


def _choice_line(choice: dict[str, Any], sites: list[str]) -> str:
    taken, measured = choice["taken"], choice["measured_ms"]
    times = {n: measured.get(n) if measured else ms for n, ms in choice["expected_ms"].items()}
    ms = times.get(taken)
    others = [name if other is None or ms is None else f"{name} {other / ms - 1:+.0%}" for name, other in times.items() if name != taken]
    if choice["kind"] == "library":
        others += [f"not {name}: {why}" for name, why in choice["why_not"].items()]
    where = f"{sites[0]} and {len(sites) - 1} more" if len(sites) > 1 else sites[0]
    when = (f" where {choice['condition']}" if choice["condition"] else "") + (" (measured)" if choice["reason"] == MEASURED else "")
    time = "" if ms is None else f", {'measured' if measured else 'expected'} {ms:.3f} ms"
    return short_name(where) + f": {choice['subject']}: {taken}{when}{time}; else {', '.join(others)}"
