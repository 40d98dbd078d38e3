# SPDX-License-Identifier: Apache-2.0
"""What is known of a model's kernels and choices, as a table and lines for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.escape import markup, short_name
from ..ir.record import EXPECTED, MEASURED


def table(rows: list[dict[str, Any]], title: str) -> Any:
    """The rows as a table; times of all calls in one run."""
    from rich.table import Table

    out = Table(title=title)
    for name in ("kernel", "rule"):
        out.add_column(name, overflow="fold")
    for name in ("calls", "MFLOP", "MB", "bound ms", "predicted ms", "measured ms", "% of roofline"):
        out.add_column(name, justify="right")
    for r in rows:
        chosen = " ".join([r["rule"], *(f"{k}={v}" for k, v in r["decisions"].items())])
        times = [f"{r['calls'] * r['bound_ms']:.3f} {r['limit'][0]}", f"{r['calls'] * r['predicted_ms']:.3f}"]
        times += [f"{r['calls'] * r['measured_ms']:.3f}", f"{r['roofline']:.0%}"] if "measured_ms" in r else ["", ""]
        how = "\n".join(filter(None, (chosen, f"[dim]{markup(decided(r))}[/dim]" if r["reason"] != EXPECTED else passed_over(r))))
        out.add_row(markup(r["kernel"]), how, str(r["calls"]), f"{r['mflop']:.1f}", f"{r['mbytes']:.2f}", *times)
    return out


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
    return f"[dim]of {row['candidates']}; next {other} {ms / max(row['modelled_ms'], 1e-9) - 1:+.1%}[/dim]"


def summary(rows: list[dict[str, Any]]) -> str:
    """All kernels together, and how to see more."""
    bound, measured = (sum(r["calls"] * r.get(k, 0.0) for r in rows) for k in ("bound_ms", "measured_ms"))
    count = "1 kernel" if len(rows) == 1 else f"{len(rows)} kernels"
    known = sum(r["reason"] == MEASURED for r in rows)
    count += f" ({known} from records)" if known else ""
    text = f"{count}, {sum(r['calls'] * r['mflop'] for r in rows) / 1e3:.2f} GFLOP; bound {bound:.3f} ms (c: by arithmetic, m: by memory)"
    if measured:
        text += f", measured {measured:.3f} ms: {bound / measured:.0%} of the roofline"
    return text + "\nOne kernel's schedule: roundel explain MODEL -f KERNEL. Its code: roundel inspect MODEL -f KERNEL --form script|llvm|asm"


def choice_lines(choices: list[dict[str, Any]]) -> list[str]:
    """A line for all equal choices that had an alternative, and of which something is expected or that are not as usual: what was taken, what is
    expected or was measured of it and of the others, and where. Paths by libraries are shown with why there is none, too."""
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for c in choices:
        usual, *others = c["expected_ms"]
        known = c["expected_ms"][usual] is not None or c["taken"] != usual or c["reason"] == MEASURED
        if (others and known) or (c["kind"] == "library" and c["why_not"]):
            alike.setdefault((c["subject"], c["taken"], c["condition"], c["reason"]), []).append(c)
    return [_choice_line(same[0], [c["site"] for c in same]) for same in alike.values()]


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
