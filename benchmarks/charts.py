# SPDX-License-Identifier: Apache-2.0
"""Charts of the results, as SVG and PNG: models against the best peer, layers against the FMA peak, the roofline. Each says on what machine and when
its figures were measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import results
from .engines import OURS
from .report import BOUND_BY_MEMORY, best_peer

OURS_COLOR, PEER_COLORS = "#d1495b", ("#30638e", "#00798c")
GREY, DARK = "#8d96a3", "#2b2f36"
TIMES = "\N{MULTIPLICATION SIGN}"
MARKS = {  # label, marker, color, whether it is filled: two peers have colors, what is slower everywhere is grey
    "roundel": ("Roundel", "o", OURS_COLOR, True), "ort": ("ONNX Runtime", "o", PEER_COLORS[0], True), "openvino": ("OpenVINO", "D", PEER_COLORS[1], True),
    "inductor": ("torch.compile", "s", GREY, True), "eager": ("PyTorch", "s", GREY, False), "tvm": ("TVM, not tuned", "^", GREY, False),
}
NAMES = {
    "resnet18": "ResNet-18", "resnet50": "ResNet-50", "mobilenetv2": "MobileNetV2", "vit_b16": "ViT-B/16", "bert128": "BERT, 128 tokens",
    "bert_dyn": "BERT, any length", "gpt2": "GPT-2", "llama110": "Llama 110M", "llama110_decode": "Llama 110M, next token", "gemm": "Matrix products",
}
KINDS = (("Convolutional networks", OURS_COLOR, "o"), ("Transformers", PEER_COLORS[0], "o"), ("Transformer, next token", PEER_COLORS[1], "D"))


def draw_all(folder: Path) -> list[Path]:
    """Every chart there are results for, one for each machine; the paths of the files."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none", "svg.hashsalt": "roundel",
                                "axes.grid": True, "grid.color": "#e6e8eb", "axes.axisbelow": True, "figure.facecolor": "white"})
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for kind, draw in (("models", models), ("kernels", kernels), ("roofline", roofline)):
        for name, entries in results.by_machine(results.read(kind)).items():
            figure = draw(entries)
            for suffix in ("svg", "png"):
                made.append(folder / f"{results.chart_name(kind, name)}.{suffix}")
                figure.savefig(made[-1], bbox_inches="tight", dpi=150, metadata={"Date": None} if suffix == "svg" else None)
    return made


def title(case: str) -> str:
    """The name that people know a model by, with the length of its input: ``bert_dyn@17``."""
    name, _, length = case.partition("@")
    return f"{NAMES.get(name, name)}{f': {length} tokens' if length else ''}"


def layer(name: str) -> str:
    """``dw 32->32 112x112 k3 s2``, as results have it, in signs that read faster: depthwise 32, 112x112, 3x3 /2."""
    found = re.fullmatch(r"(dw )?(\d+)->(\d+) (\d+x\d+) k(\d+) s(\d+)", name)
    if found is None:
        return name.replace("x", f" {TIMES} ")
    depthwise, read, made, size, window, stride = found.groups()
    channels = f"depthwise {read}" if depthwise else f"{read} → {made}"
    return f"{channels}, {size.replace('x', TIMES)}, {window}{TIMES}{window}" + (f" /{stride}" if stride != "1" else "")


def measured(entries: Sequence[dict[str, Any]], *what: str) -> str:
    """The line under a chart: what was measured, on which machine, when."""
    machines = filter(None, results.by_machine(entries))
    days = sorted({x["when"][:10] for x in entries if "when" in x})
    return ". ".join([*what, *machines, " to ".join(dict.fromkeys([days[0], days[-1]])) if days else ""]).rstrip(". ") + "."


def _note(figure: Any, text: str, y: float = -0.01) -> None:
    figure.text(0.01, y, text, fontsize=8, color="#555b66", ha="left", va="top")


def models(entries: Sequence[dict[str, Any]]) -> Any:
    """Speed of each engine relative to the best peer, batch 1, a panel for each number of threads."""
    import matplotlib.pyplot as plt

    entries = [x for x in entries if x["batch"] == 1 and best_peer(x)[1]]
    threads = sorted({x["threads"] for x in entries})
    figure, panels = plt.subplots(1, len(threads), figsize=(5.4 * len(threads), 4.8), sharey=True, squeeze=False)
    names = list(dict.fromkeys(x["case"] for x in entries))
    for panel, count in zip(panels[0], threads):
        for x in (x for x in entries if x["threads"] == count):
            y, best = len(names) - names.index(x["case"]), best_peer(x)[1]
            for engine, (_, marker, color, filled) in MARKS.items():
                if "ms" in (e := x["engines"].get(engine, {})):
                    ours = engine == OURS
                    panel.scatter(best / e["ms"], y, s=90 if ours else 38, marker=marker, zorder=4 if ours else 3, linewidth=0.8 if filled else 1.2,
                                  color=color if filled else "white", edgecolor="white" if filled else color)
            if "ms" in x["engines"].get(OURS, {}):
                value = best / x["engines"][OURS]["ms"]
                panel.plot([1, value], [y, y], color=OURS_COLOR, linewidth=2, zorder=2)
                panel.annotate(f"{value:.2f}", (value, y), xytext=(9, -3), textcoords="offset points", fontsize=9, color=OURS_COLOR)
        panel.axvline(1, color="#555b66", linewidth=1)
        panel.set(title=f"{count} thread{'s' * (count > 1)}", xlabel="speed; the fastest other engine is 1 (right is faster)", yticks=range(1, len(names) + 1),
                  yticklabels=[title(name) for name in reversed(names)])
        panel.set_xlim(-0.05, 2.1)
    shown = [e for e in MARKS if any("ms" in x["engines"].get(e, {}) for x in entries)]
    handles = [plt.Line2D([], [], marker=m, linestyle="", color=c, markerfacecolor=c if filled else "white", label=label)
               for label, m, c, filled in map(MARKS.__getitem__, shown)]
    figure.legend(handles=handles, loc="upper center", ncol=len(shown), frameon=False, bbox_to_anchor=(0.5, 1.03))
    _note(figure, measured(entries, "Whole models, batch 1, float32, median times"), -0.02)
    return figure


def kernels(entries: Sequence[dict[str, Any]]) -> Any:
    """Matrix products and convolutions as a share of the FMA peak: whole calls of Roundel's against whole calls of the best peer's, a panel for each family."""
    import matplotlib.pyplot as plt

    peak = ceilings(entries)["gflops"]
    entries = [x for x in entries if x["family"] not in BOUND_BY_MEMORY and "ms" in x["engines"].get(OURS, {}) and best_peer(x)[1]]
    columns = (("gemm", "resnet18"), ("resnet50",), ("mobilenetv2",))
    figure = plt.figure(figsize=(13.5, 6.6))
    grid = figure.add_gridspec(1, len(columns), wspace=0.85)
    for place, families in zip(grid, columns):
        groups = [[x for x in entries if x["family"] == family] for family in families]
        inner = place.subgridspec(len(groups), 1, height_ratios=[len(g) or 1 for g in groups], hspace=0.22)
        for cell, family, group in zip(inner, families, groups):
            panel = figure.add_subplot(cell)
            for k, x in enumerate(reversed(group)):
                ours, peer = (x["flops"] / ms * 1e-6 / peak * 100 for ms in (x["engines"][OURS]["min_ms"], best_peer(x, "min_ms")[1]))
                panel.barh(k, ours, height=0.66, color=OURS_COLOR, label="Roundel" if k == 0 else None)
                panel.plot([peer] * 2, [k - 0.42, k + 0.42], color=DARK, linewidth=2.4, label="the fastest other engine" if k == 0 else None)
            panel.axvline(100, color="#555b66", linewidth=1, linestyle="--")
            panel.set_yticks(range(len(group)), [layer(x["name"]) for x in reversed(group)], fontsize=8)
            panel.set_ylim(-0.7, len(group) - 0.3)
            panel.grid(axis="y", visible=False)
            panel.set_title(title(family), fontsize=10, loc="left")
    for panel in figure.axes:
        panel.set_xlim(0, 350 if panel.get_title(loc="left") == title("resnet18") else 130)
    figure.axes[-1].legend(frameon=False, loc="lower left", bbox_to_anchor=(-0.3, 1.03), ncol=2)
    _note(figure, measured(entries, "Models of one layer, whole calls with their changes of layout, one thread, batch 1, float32, fastest times; % of one "
                           f"core's multiply-add peak ({peak:.0f} GFLOP/s).\nMore than 100: less arithmetic than is counted (Winograd, Strassen)"), 0.06)
    return figure


def ceilings(entries: Sequence[dict[str, Any]]) -> dict[str, float]:
    """GFLOP/s of a core and GB/s of each memory of the machine of these entries. Raises ValueError where its roofline was not measured."""
    name = results.machine_name(entries[0])
    if found := results.ceilings(name):
        return found
    raise ValueError(f"the ceilings of {name} were not measured: python -m benchmarks roofline")


def roofline(entries: Sequence[dict[str, Any]]) -> Any:
    """Kernels of the models under the machine's ceilings; a point's area is its share of the model's time."""
    import matplotlib.pyplot as plt
    import numpy as np

    peak = ceilings(entries)
    entries = [x for x in entries if x["threads"] == 1]
    figure, panel = plt.subplots(figsize=(8.6, 5.2))
    at = np.logspace(-1.5, 3, 200)
    for label in ("L2", "L3", "memory"):
        panel.plot(at, np.minimum(at * peak[label], peak["gflops"]), color="#555b66", linewidth=1)
    panel.annotate(f"multiply-add peak {peak['gflops']:.0f} GFLOP/s", (0.04, peak["gflops"]), xytext=(0, 5), textcoords="offset points", fontsize=9,
                   color="#555b66")
    for x in entries:
        timed = [k for k in x["kernels"] if k.get("measured_ms") and k["mflop"] > 0]
        total = sum(k["calls"] * k["measured_ms"] for k in timed) or 1.0
        _, color, marker = KINDS[_kind(x["case"])]
        panel.scatter([k["intensity"] for k in timed], [k["mflop"] / k["measured_ms"] for k in timed], alpha=0.5, color=color, marker=marker,
                      s=[12 + 900 * k["calls"] * k["measured_ms"] / total for k in timed], edgecolor="white", linewidth=0.5)
    panel.set(xscale="log", yscale="log", xlabel="FLOP per byte of operands and results", ylabel="GFLOP/s", xlim=(0.03, 300), ylim=(0.5, peak["gflops"] * 1.8))
    (left, low), (right, high) = panel.transData.transform([(1, 1), (10, 10)])  # a decade in both directions: the slope of a ceiling
    for label in ("L2", "L3", "memory"):
        panel.annotate(f"{label} {peak[label]:.0f} GB/s", (0.035, 0.035 * peak[label]), xytext=(-2, 3), textcoords="offset points", fontsize=9, color="#555b66",
                       va="bottom", rotation=np.degrees(np.arctan2(high - low, right - left)), rotation_mode="anchor")
    handles = []
    for number, (label, color, marker) in enumerate(KINDS):
        if names := [NAMES[n] for n in dict.fromkeys(x["case"].partition("@")[0] for x in entries) if _kind(n) == number]:
            text = label if len(names) == 1 else f"{label}: {', '.join(names)}"
            handles.append(plt.Line2D([], [], marker=marker, linestyle="", color=color, label=text))
    panel.legend(handles=handles, frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(-0.06, 1.2))
    _note(figure, measured(entries, "Every kernel, one thread, batch 1, float32; an area is the kernel's share of its model's time"), 0.01)
    return figure


def _kind(case: str) -> int:
    """The index in ``KINDS`` of a model."""
    return 2 if case.endswith("_decode") else 0 if re.match("resnet|mobilenet", case) else 1
