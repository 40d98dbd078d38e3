# SPDX-License-Identifier: Apache-2.0
"""Single layers on every engine, against what the machine can do: share of the FMA peak, of the read or the copy bandwidth."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from roundel.target.peak import read_gbs

from .engines import Session, Variants, Workload, pin_threads
from .goals import goals_rows, this_machine
from .latency import compare
from .layers import Layer, all_layers
from .results import machine, merge


def run_kernels(engines: Sequence[str], threads: int, budget: float, only: str = "") -> list[dict[str, Any]]:
    """Measure the layers whose family or name contains ``only``; merged into the results as they come."""
    pin_threads(threads)
    out = []
    for layer in all_layers():
        if only and only not in layer.family and only not in layer.name:
            continue
        entry = run_layer(layer, engines, threads, budget)
        merge("kernels", [entry], ("family", "name", "threads"))
        out.append(entry)
        print(line(entry), flush=True)
    for goal, least, reached, layers, names in goals_rows(out, this_machine()):
        print(f"{goal}: {reached.strip('*')} (goal {least}, {layers} layers){': ' + names if names else ''}", flush=True)
    return out


def run_layer(layer: Layer, engines: Sequence[str], threads: int, budget: float) -> dict[str, Any]:
    """One layer on the engines; ``kernel_ms`` is Roundel's main kernel alone, without conversions of the layout of ``x`` and ``y``."""
    x, _ = layer.arrays()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layer.onnx"
        layer.save(path)
        work = Workload(path, {"x": x}, threads, layer.torch_module)
        reference = layer.torch_module()(_tensor(x)).numpy()
        more = {"onednn": lambda w: packed_convolution(layer, w)} if layer.node == "Conv" else {}
        found = compare(work, reference, [*engines, *more], budget, block=0.05, more=more)
        if "ms" in found.get("roundel", {}):
            found["roundel"]["kernel_ms"] = kernel_ms(path, x, threads)
            if layer.family == "gemv":  # bound by reading: what the machine reads at this moment, which others may use too
                found["roundel"]["read_gbs"] = read_gbs(int(layer.bytes), 0.3)
    return {"family": layer.family, "name": layer.name, "flops": layer.flops, "bytes": layer.bytes, "threads": threads,
            "when": time.strftime("%Y-%m-%d %H:%M"), "machine": machine(), "engines": found}


def kernel_ms(path: Path, x: np.ndarray, threads: int) -> float:
    """Of the kernel with most arithmetic; the fastest of many short means."""
    import roundel as rd
    from roundel.reports.explained import explain

    main = max(explain(str(path), threads=threads).kernels, key=lambda kernel: kernel["mflop"])["kernel"]
    model = rd.compile(str(path), threads=threads, profile=True)
    best = float("inf")
    for _ in range(80):
        end = time.perf_counter() + 0.003
        while time.perf_counter() < end:
            model(x)
        calls, seconds = model.function.profile()[main]
        best = min(best, seconds / max(calls, 1))
    return best * 1e3


def packed_convolution(layer: Layer, work: Workload) -> Variants:
    """oneDNN through PyTorch with channels-last data and weights packed ahead, as frozen graphs use it."""
    import torch

    a = dict(layer.attributes)
    pads, strides, dilations, groups = list(a["pads"][:2]), list(a["strides"]), list(a["dilations"]), a["group"]

    def session() -> Session:
        torch.set_num_threads(work.threads)
        weight, bias = map(torch.from_numpy, layer.arrays()[1])
        x = torch.from_numpy(work.inputs["x"]).to(memory_format=torch.channels_last)
        packed = torch._C._nn.mkldnn_reorder_conv2d_weight(weight.to_mkldnn(), pads, strides, dilations, groups, list(x.shape))
        call = torch.ops.mkldnn._convolution_pointwise

        def run() -> Any:
            with torch.no_grad():
                return call(x, packed, bias, pads, strides, dilations, groups, "none", [], "")

        return Session(run, lambda y: y.contiguous().numpy())

    return {"": session}


def _tensor(x: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(x)


def line(entry: dict[str, Any]) -> str:
    """One result in one line: microseconds by engine."""
    times = {k: e["ms"] for k, e in entry["engines"].items() if "ms" in e}
    parts = [f"{k} {v * 1e3:.0f}" for k, v in sorted(times.items(), key=lambda item: item[1])]
    parts += [f"{k} FAILED {e['error'][:90]}" for k, e in entry["engines"].items() if "error" in e]
    rate = entry["flops"] / times["roundel"] * 1e-6 if "roundel" in times else 0.0
    alone = entry["engines"].get("roundel", {}).get("kernel_ms")
    return f"{entry['family']:12s}{entry['name']:28s}{rate:7.1f} GFLOP/s (kernel {alone * 1e3 if alone else 0:.0f} us)  " + "  ".join(parts)


if __name__ == "__main__":
    run_kernels(["roundel", "ort"], 1, 0.5, *sys.argv[1:2])
