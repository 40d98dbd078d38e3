# SPDX-License-Identifier: Apache-2.0
"""Charts of the results, as SVG and PNG: models against the best peer, kernels against the FMA peak, the roofline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import results
from .engines import OURS
from .report import BOUND_BY_MEMORY, best_peer, kernel_alone, peak_gflops

COLORS = {"roundel": "#d1495b", "ort": "#30638e", "openvino": "#00798c", "inductor": "#8d96a3", "eager": "#c8ccd2", "tvm": "#66a182", "onednn": "#edae49"}
LABELS = {
    "roundel": "Roundel", "ort": "ONNX Runtime", "openvino": "OpenVINO", "inductor": "torch.compile", "eager": "PyTorch", "tvm": "TVM", "onednn": "oneDNN",
}


def draw_all(folder: Path) -> list[Path]:
    """Every chart there are results for; the paths of the files."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none", "svg.hashsalt": "roundel",
                                "axes.grid": True, "grid.color": "#e6e8eb", "axes.axisbelow": True, "figure.facecolor": "white"})
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for kind, draw in (("models", models), ("kernels", kernels), ("roofline", roofline)):
        if entries := results.read(kind):
            figure = draw(entries)
            for suffix in ("svg", "png"):
                made.append(folder / f"{kind}.{suffix}")
                figure.savefig(made[-1], bbox_inches="tight", dpi=150, metadata={"Date": None} if suffix == "svg" else None)
    return made


def models(entries: Sequence[dict[str, Any]]) -> Any:
    """Speed of each engine relative to the best peer, batch 1, a panel for each number of threads."""
    import matplotlib.pyplot as plt

    entries = [x for x in entries if x["batch"] == 1 and best_peer(x)[1]]
    threads = sorted({x["threads"] for x in entries})
    figure, panels = plt.subplots(1, len(threads), figsize=(5.2 * len(threads), 4.6), sharey=True, squeeze=False)
    names = list(dict.fromkeys(x["case"] for x in entries))
    for panel, count in zip(panels[0], threads):
        for x in (x for x in entries if x["threads"] == count):
            y, best = len(names) - names.index(x["case"]), best_peer(x)[1]
            for engine, e in x["engines"].items():
                if "ms" in e and engine in COLORS:
                    ours = engine == OURS
                    panel.scatter(best / e["ms"], y, s=90 if ours else 42, color=COLORS[engine], zorder=4 if ours else 3, edgecolor="white", linewidth=0.8)
            if "ms" in x["engines"].get(OURS, {}):
                value = best / x["engines"][OURS]["ms"]
                panel.plot([1, value], [y, y], color=COLORS[OURS], linewidth=2, zorder=2)
                panel.annotate(f"{value:.2f}", (value, y), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8, color=COLORS[OURS])
        panel.axvline(1, color="#555b66", linewidth=1)
        panel.set(title=f"{count} thread{'s' * (count > 1)}", xlabel="speed relative to the best peer (right is faster)", yticks=range(1, len(names) + 1),
                  yticklabels=reversed(names))
        panel.set_xlim(left=0)
    shown = [e for e in LABELS if any("ms" in x["engines"].get(e, {}) for x in entries)]
    figure.legend(handles=[plt.Line2D([], [], marker="o", linestyle="", color=COLORS[e], label=LABELS[e]) for e in shown], loc="upper center",
                  ncol=len(shown), frameon=False, bbox_to_anchor=(0.5, 1.04))
    return figure


def kernels(entries: Sequence[dict[str, Any]]) -> Any:
    """GFLOP/s of matrix products and convolutions as a share of the FMA peak, Roundel's kernels and the best peer's."""
    import matplotlib.pyplot as plt

    peak = peak_gflops()
    entries = [x for x in entries if x["family"] not in BOUND_BY_MEMORY and "ms" in x["engines"].get(OURS, {}) and best_peer(x)[1]]
    entries = [x for family in ("gemm", *dict.fromkeys(x["family"] for x in entries if x["family"] != "gemm")) for x in entries if x["family"] == family]
    figure, panel = plt.subplots(figsize=(13, 3.8))
    for k, x in enumerate(entries):
        values = [x["flops"] / ms * 1e-6 / peak * 100 for ms in (kernel_alone(x["engines"][OURS]), best_peer(x, "min_ms")[1])]
        panel.bar(k, values[0], width=0.72, color=COLORS[OURS], label="Roundel (kernel)" if k == 0 else None)
        panel.plot([k - 0.42, k + 0.42], [values[1]] * 2, color="#2b2f36", linewidth=2, label="best peer" if k == 0 else None)
    panel.axhline(100, color="#555b66", linewidth=1, linestyle="--")
    panel.set(ylabel="% of the FMA peak of one core", xticks=range(len(entries)), xlim=(-0.7, len(entries) - 0.3))
    panel.set_xticklabels([x["name"] for x in entries], rotation=90, fontsize=6.5)
    panel.grid(axis="x", visible=False)
    panel.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 0.99), ncol=2)
    families = [x["family"] for x in entries]
    for family in dict.fromkeys(families):
        first, count = families.index(family), families.count(family)
        panel.axvline(first - 0.5, color="#c8ccd2", linewidth=1)
        panel.annotate(family, (first + count / 2 - 0.5, 1), xycoords=("data", "axes fraction"), xytext=(0, -11), textcoords="offset points", ha="center",
                       fontsize=8, color="#555b66")
    panel.set_title("Single layers, one thread; over 100 %: less arithmetic than is counted (Winograd, Strassen)", fontsize=10, loc="left")
    return figure


def roofline(entries: Sequence[dict[str, Any]]) -> Any:
    """Kernels of the models under the machine's ceilings; a point's area is its share of the model's time."""
    import matplotlib.pyplot as plt
    import numpy as np

    from roundel.target.profile import this_machine

    peak = this_machine()
    entries = [x for x in entries if x["threads"] == 1]
    figure, panel = plt.subplots(figsize=(8.4, 5))
    at, ceilings = np.logspace(-1.5, 3, 200), []
    for label, rate in (("L2", peak.l2_gbs), ("L3", peak.l3_gbs), ("memory", peak.dram_gbs)):
        panel.plot(at, np.minimum(at * rate, peak.gflops), color="#555b66", linewidth=1)
        ceilings.append((f"{label} {rate:.0f} GB/s", rate))
    panel.annotate(f"FMA peak {peak.gflops:.0f} GFLOP/s", (60, peak.gflops), xytext=(0, 5), textcoords="offset points", fontsize=8, color="#555b66")
    palette = plt.get_cmap("tab10")
    for number, x in enumerate(entries):
        timed = [k for k in x["kernels"] if k.get("measured_ms") and k["mflop"] > 0]
        total = sum(k["calls"] * k["measured_ms"] for k in timed) or 1.0
        area = [12 + 900 * k["calls"] * k["measured_ms"] / total for k in timed]
        panel.scatter([k["intensity"] for k in timed], [k["mflop"] / k["measured_ms"] for k in timed], s=area, alpha=0.55, color=palette(number % 10),
                      edgecolor="white", linewidth=0.5, label=x["case"])
    panel.set(xscale="log", yscale="log", xlabel="FLOP per byte of operands and results", ylabel="GFLOP/s", xlim=(0.03, 1000), ylim=(0.5, peak.gflops * 1.8))
    (left, low), (right, high) = panel.transData.transform([(1, 1), (10, 10)])  # a decade in both directions: the slope of a ceiling
    for label, rate in ceilings:
        panel.annotate(label, (0.035, 0.035 * rate), xytext=(-2, 3), textcoords="offset points", fontsize=8, color="#555b66", va="bottom",
                       rotation=np.degrees(np.arctan2(high - low, right - left)), rotation_mode="anchor")
    legend = panel.legend(frameon=False, fontsize=8, loc="lower right")
    for handle in legend.legend_handles:
        handle.set_sizes([40])
    panel.set_title("Every kernel of the models, one thread; the area is its share of the model's time", fontsize=10)
    return figure
