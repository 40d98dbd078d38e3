# SPDX-License-Identifier: Apache-2.0
"""Every kernel of a model against the roofline: what ``roundel explain`` measures, kept for the chart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from .models import Case, data, onnx_file
from .results import machine, merge


def run_roofline(cases: Sequence[Case], threads: int, seconds: float) -> list[dict[str, Any]]:
    """Profile the models; one entry per model with all its kernels, the slowest relative to their bound first."""
    from roundel.reports.explained import add_measured, explain

    out = []
    for case in cases:
        inputs, _ = data(case)
        path = str(onnx_file(case))
        sizes = {"seq": case.length} if case.length else {}
        rows = explain(path, threads=threads, sizes=sizes).kernels
        add_measured(rows, path, threads=threads, sizes=sizes, seconds=seconds, inputs=list(inputs.values()))
        kept = ("kernel", "calls", "rule", "decisions", "mflop", "mbytes", "intensity", "limit", "bound_ms", "predicted_ms", "measured_ms", "roofline")
        kernels = [{k: row[k] for k in kept if k in row} for row in sorted(rows, key=lost_ms, reverse=True)]
        out.append({"case": case.name, "threads": threads, "when": time.strftime("%Y-%m-%d %H:%M"), "machine": machine(), "ceilings": ceilings(),
                    "kernels": kernels})
        merge("roofline", out[-1:], ("case", "threads"))
        print(text(out[-1]), flush=True)
    return out


def ceilings() -> dict[str, float]:
    """GFLOP/s of a core of this machine, and GB/s from each memory, measured."""
    from roundel.target.profile import this_machine

    here = this_machine()
    return {"gflops": here.gflops, "L2": here.l2_gbs, "L3": here.l3_gbs, "memory": here.dram_gbs}


def lost_ms(row: dict[str, Any]) -> float:
    """Milliseconds of a run above the bound, over all calls of a kernel."""
    return row["calls"] * (row.get("measured_ms", row["bound_ms"]) - row["bound_ms"])


def text(entry: dict[str, Any], top: int = 8) -> str:
    """The kernels that lose most."""
    measured, bound = (sum(k["calls"] * k.get(name, 0.0) for k in entry["kernels"]) for name in ("measured_ms", "bound_ms"))
    lines = [f"{entry['case']}, {entry['threads']} thread(s): {measured:.2f} ms, bound {bound:.2f} ms ({bound / max(measured, 1e-9):.0%} of the roofline)"]
    for k in entry["kernels"][:top]:
        chosen = " ".join(f"{n}={v}" for n, v in k["decisions"].items())
        lines.append(f"  loses {lost_ms(k):8.3f} ms: {k['calls']:3d} x {k.get('measured_ms', 0):.3f} ms (bound {k['bound_ms']:.3f} {k['limit']}, "
                     f"{k.get('roofline', 0):.0%})  {k['kernel'][:70]}  [{k['rule']} {chosen}]")
    return "\n".join(lines)
