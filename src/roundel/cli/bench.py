# SPDX-License-Identifier: Apache-2.0
"""``roundel bench``: latency percentiles and a profile of kernels."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from ..runtime.inputs import with_sizes
from .arguments import (
    DB,
    DIM,
    FIX,
    LIBRARIES,
    MODEL,
    ON,
    TARGET,
    THREADS,
    described,
    dims,
    duration,
    gather_inputs,
    interruptible,
    is_compiled,
    open_model,
    sent_to,
    sizes_of_run,
)
from .json_output import JSON, array_facts, print_json

if TYPE_CHECKING:
    from ..boards import RemoteModel


def bench_command(
    model: Path = MODEL,
    inputs: list[str] = typer.Option([], "--input", "-i", metavar="NAME=FILE.npy|FILE.npz", help="An input; those not given are random."),
    dim: list[str] = DIM, fix: list[str] = FIX, target: str = TARGET, threads: int = THREADS, db: str = DB, libraries: str = LIBRARIES, on: str = ON,
    seconds: float = typer.Option(3.0, "--seconds", callback=duration, help="For how long to measure."),
    profile: bool = typer.Option(True, "--profile/--no-profile", help="Also time each kernel; of an ONNX file compare it with the machine."),
    top: int = typer.Option(20, "--top", min=1, help="Kernels to show."),
    as_json: bool = JSON,
) -> None:
    """Measure the latency of a model and where its time goes."""
    from rich.console import Console

    console = Console(emoji=False)
    sizes = sizes_of_run(dim, fix)
    compiled = open_model(model, dynamic=dims(fix, "--fix"), target=target, threads=threads)
    arrays = gather_inputs(compiled.inputs, inputs, sizes)
    remote = sent_to(on, compiled, model, threads)
    with with_sizes(compiled.inputs, sizes, inputs):
        times = measure(lambda: compiled(*arrays), seconds) if remote is None else measure_on(remote, arrays, seconds)
    p = np.percentile(times * 1e3, [0, 50, 90, 99])
    rows = kernel_times(model, compiled, arrays, target, dims(fix, "--fix"), min(seconds, 2.0)) if profile and remote is None else None
    most = compiled.executable.num_threads if remote is None else threads
    if as_json:
        latency = dict(zip(("min", "median", "p90", "p99"), p, strict=True))
        print_json({"runs": len(times), "threads": most, "milliseconds": latency, "inputs": array_facts(compiled.inputs, arrays),
                    "kernels": rows})
        return
    console.print(f"latency over {len(times)} runs{f' on {remote.board}' if remote else ''}, {most or 'all'} threads: "
                  f"min {p[0]:.3f}  [bold]median {p[1]:.3f}[/]  p90 {p[2]:.3f}  p99 {p[3]:.3f} ms", soft_wrap=True)
    symbolic = any(isinstance(d, str) for i in compiled.inputs for d in i.shape)
    called = f"called with {described(compiled.inputs, arrays)}{'; --dim gives other sizes' if symbolic else ''}"
    console.print(called, highlight=False, markup=False, soft_wrap=True)
    if rows is not None:
        typer.echo("\n" + profile_table(rows[:top]))


def measure(call: Any, seconds: float) -> np.ndarray:
    """Wall times of calls, in seconds, after two that are not counted; at least five."""
    times: list[float] = []
    with interruptible():
        call()
        call()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 5:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return np.array(times)


def measure_on(remote: RemoteModel, arrays: list[np.ndarray], seconds: float) -> np.ndarray:
    """Times of runs on a board, in seconds: as many as fit, by the time of the first three, and at least five; two more are not counted."""
    _, first = remote.run(arrays, 3)
    _, times = remote.run(arrays, 2 + int(min(max(seconds / max(first[-1], 1e-6), 5), 100_000)))
    return times[2:]


def kernel_times(path: Path, model: Any, arrays: list[np.ndarray], target: str | None, fixed: dict[str, int],
                 seconds: float) -> list[dict[str, Any]]:
    """The kernels, those first that take longest: calls and milliseconds of one run, the share of all kernels' time and, where it is known what
    a kernel computes, GFLOP/s, GB/s and the share of its bound by arithmetic or by memory (``limit``), whichever is nearer."""
    from ..reports.explained import explain

    sizes = {d: n for i, a in zip(model.inputs, arrays, strict=True) for d, n in zip(i.shape, a.shape, strict=True) if isinstance(d, str) and d.isidentifier()}
    known = [] if is_compiled(path) else explain(path, target=target, threads=model.executable.num_threads, sizes=sizes, dynamic=fixed or None).kernels
    costs = {r["kernel"]: r for r in known}
    with interruptible():
        profile = model.profile(arrays, seconds=seconds)
    return [{"kernel": k.kernel, "calls": k.calls, "milliseconds": k.milliseconds, "share": k.share, **_speeds(costs.get(k.kernel), k.milliseconds / k.calls)}
            for k in profile]


def profile_table(rows: list[dict[str, Any]]) -> str:
    """The rows of `kernel_times` as text; percentages are of what the machine can do with a kernel's arithmetic and memory."""
    from ..ir.escape import message
    from ..runtime import columns

    of_machine = any("limit" in r for r in rows)
    heads = ("calls", "ms a run", "share", *(("GFLOP/s", "GB/s", "% of bound") if of_machine else ()))
    lines = []
    for r in rows:
        speeds = (f"{r['gflops']:.1f}", f"{r['gbytes']:.1f}", f"{r['of_bound']:.0%} {r['limit']}") if "limit" in r else ("", "", "") if of_machine else ()
        lines.append(columns.Row(message(r["kernel"]), (f"{r['calls']:g}", f"{r['milliseconds']:.4f}", f"{r['share']:.1%}", *speeds)))
    return columns.table("kernel", heads, lines)


def _speeds(cost: dict[str, Any] | None, milliseconds: float) -> dict[str, Any]:
    if cost is None:
        return {}
    seconds = max(milliseconds * 1e-3, 1e-9)
    return {"gflops": cost["mflop"] / 1e3 / seconds, "gbytes": cost["mbytes"] / 1e3 / seconds, "of_bound": cost["bound_ms"] / 1e3 / seconds,
            "limit": cost["limit"]}
