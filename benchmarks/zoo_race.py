# SPDX-License-Identifier: Apache-2.0
"""The zoo against other engines: every architecture through torch.export and as an ONNX file, its errors, and latencies taken in turns.

Each model runs in a process of its own and leaves one line of ``results/zoo.json``; a model that has one is skipped, so the command goes on
where it was stopped. At one thread what counts is CPU time, which other programs of the machine hardly change.
"""

from __future__ import annotations

import copy
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .accuracy import errors, every_length, ratio
from .apart import measured_apart
from .engines import OURS, Session, Variants, Workload, pin_threads
from .latency import compare
from .models import folder
from .results import machine, merge, read_here
from .zoo import ZOO, load

PEERS = ("ort", "openvino")
LIMIT = 20.0  # the largest error, in PyTorch's own
OPSET = 18


def run_zoo(names: Sequence[str], threads: int, engines: Sequence[str], seconds: float, limit: float, again: bool = False) -> list[dict[str, Any]]:
    """The entries of these models; those not measured yet are, each in a process that has ``limit`` seconds."""
    done = {e["model"]: e for e in read_here("zoo") if e["threads"] == threads}
    for name in names:
        if name in done and not again:
            continue
        entry: dict[str, Any] = {"model": name, "kind": ZOO[name].kind, "threads": threads}
        entry |= measured_apart(["zoo-one", name, "--threads", str(threads), "--engines", ",".join(engines), "--seconds", str(seconds)], limit)
        merge("zoo", [entry], ["model", "threads"])
        done[name] = entry
        print(line(entry), flush=True)
    return [done[name] for name in names if name in done]


def run_one(name: str, threads: int, engines: Sequence[str], seconds: float) -> dict[str, Any]:
    """One architecture in this process: compiled, compared with float64, timed in turns."""
    pin_threads(threads)
    import torch

    torch.set_num_threads(threads)
    module, inputs = load(name)
    names = [f"input{k}" for k in range(len(inputs))]
    work = Workload(folder() / f"zoo-{name}.onnx", dict(zip(names, inputs, strict=True)), threads, lambda: _first_output(copy.deepcopy(module)))
    sizes = {"dynamic": every_length(inputs)} if ZOO[name].any_length else {}
    built: dict[str, Any] = {}
    entry: dict[str, Any] = {"when": time.strftime("%Y-%m-%d %H:%M"), "machine": machine()}
    if not work.onnx.exists():
        entry |= _export(module, work, sizes)
    wanted = [e for e in engines if e in ("eager", OURS) or work.onnx.exists()]
    entry["engines"] = compare(work, None, wanted, seconds, more={OURS: _from_module(module, sizes, built), "roundel-onnx": _from_file(built)})
    for engine, model in built.items():
        theirs, ours = max(errors(copy.deepcopy(module), inputs, model), key=lambda pair: ratio(*pair), default=(0.0, 0.0))
        entry["engines"][engine] |= {"pytorch_error": theirs, "error": ours, "error_ratio": ratio(theirs, ours)}
    return entry


def _from_module(module: Any, sizes: dict[str, Any], built: dict[str, Any]) -> Callable[[Workload], Variants]:
    """Roundel on the module itself, through torch.export."""
    import torch

    import roundel as rd

    def session(work: Workload) -> Session:
        arguments = tuple(map(torch.from_numpy, work.inputs.values()))
        return _session(OURS, work, built, rd.compile(module, arguments, threads=work.threads, **sizes))

    return lambda work: {"": lambda: session(work)}


def _from_file(built: dict[str, Any]) -> Callable[[Workload], Variants]:
    """Roundel on the ONNX file."""
    import roundel as rd

    return lambda work: {"": lambda: _session("roundel-onnx", work, built, rd.compile(str(work.onnx), threads=work.threads))}


def _session(engine: str, work: Workload, built: dict[str, Any], model: Any) -> Session:
    built[engine] = model
    inputs = list(work.inputs.values())
    return Session(lambda: model(*inputs), lambda out: np.asarray(out[0] if isinstance(out, list | tuple) else out))


def _first_output(module: Any) -> Any:
    """The module with its first output alone, as a tensor."""
    import torch

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *inputs: Any) -> Any:
            out = self.module(*inputs)
            return out[0] if isinstance(out, tuple | list) else out

    return First()


def _export(module: Any, work: Workload, sizes: dict[str, Any]) -> dict[str, str]:
    """Write the ONNX file; where PyTorch's exporter cannot, the reason."""
    import torch

    arguments = tuple(map(torch.from_numpy, work.inputs.values()))
    more = {"dynamic_shapes": sizes["dynamic"]} if sizes else {}
    temporary = work.onnx.with_suffix(f".{os.getpid()}")
    try:
        torch.onnx.export(module, arguments, str(temporary), input_names=list(work.inputs), dynamo=True, external_data=False, opset_version=OPSET,
                          verbose=False, **more)
    except Exception as failure:  # what cannot be exported is a result of the benchmark
        return {"not_exported": f"{type(failure).__name__}: {' '.join(str(failure).split())[:200]}"}
    temporary.replace(work.onnx)
    return {}


# --- what came of it


def milliseconds(entry: dict[str, Any], engine: str) -> float:
    """Of one call: of the processor at one thread, else of the clock; NaN where the engine did not run."""
    found = entry.get("engines", {}).get(engine, {})
    return found.get("cpu_ms" if entry["threads"] == 1 else "ms", math.nan)


def against(entry: dict[str, Any], peers: Iterable[str]) -> float:
    """The fastest peer's time by ours; NaN where one of them is missing."""
    times = [t for t in (milliseconds(entry, e) for e in peers) if t == t]
    return min(times, default=math.nan) / milliseconds(entry, OURS)


def line(entry: dict[str, Any]) -> str:
    """One result in one line."""
    if "failed" in entry:
        return f"{entry['model']:34s} {entry['failed'][:200]}"
    found = entry["engines"]
    times = "  ".join(f"{e} {milliseconds(entry, e):.2f}" if milliseconds(entry, e) == milliseconds(entry, e) else f"{e} {_reason(found[e])}" for e in found)
    wrong = "  ".join(f"error {f['error_ratio']:.2f} of PyTorch's" for f in found.values() if "error_ratio" in f)
    return f"{entry['model']:34s} {against(entry, PEERS):5.2f} of engines {against(entry, ['eager']):6.2f} of eager  {times}  {wrong}"


def _reason(found: dict[str, Any]) -> str:
    return " ".join(str(found.get("error") or found.get("skipped") or "").split())[:160]


def table(entries: Sequence[dict[str, Any]]) -> str:
    """In Markdown: all ratios, slowest first; then geometric mean, refusals, and what is beyond the limits."""
    good = sorted((e for e in entries if against(e, PEERS) == against(e, PEERS)), key=lambda e: against(e, PEERS))
    head = "| model | kind | roundel ms | ort | openvino | eager | best peer / roundel | eager / roundel | error, of PyTorch's |"
    rows = [head, "| --- " * 9 + "|"]
    for e in good:
        times = " | ".join(_shown(milliseconds(e, engine)) for engine in (OURS, *PEERS, "eager"))
        rows.append(f"| {e['model']} | {e['kind']} | {times} | **{against(e, PEERS):.2f}** | {_shown(against(e, ['eager']))} | "
                    f"{e['engines'][OURS].get('error_ratio', math.nan):.1f} |")
    out = [*rows, ""]
    if good:
        ratios = [against(e, PEERS) for e in good]
        mean, low = math.exp(np.mean(np.log(ratios))), sum(r < 0.9 for r in ratios)
        out.append(f"{len(good)} models: geometric mean {mean:.3f}, lowest {ratios[0]:.2f}, under 0.9: {low}.")
    for e in entries:
        if e not in good or e["engines"][OURS].get("error_ratio", math.inf) > LIMIT or against(e, ["eager"]) < 1:
            out.append(f"- {line(e)}")
    return "\n".join(out)


def _shown(value: float) -> str:
    return f"{value:.2f}" if value == value else ""


