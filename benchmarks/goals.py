# SPDX-License-Identifier: Apache-2.0
"""What single kernels are to reach, and whether they do: shares of what the machine can, ratios to the best peer's kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from roundel.target import Target
from roundel.target.peak import copy_gbs
from roundel.target.profile import Profile
from roundel.target.profile import this_machine as measured

from .engines import OURS

CONVOLUTIONS = ("resnet18", "resnet50", "mobilenetv2")
ROWS = ("softmax", "layer norm")
Entry = dict[str, Any]


def kernel_alone(ours: Mapping[str, Any]) -> float:
    """Milliseconds of Roundel's main kernel: the least seen."""
    return min(ours.get("kernel_ms", float("inf")), ours["min_ms"])


def best_peer(entry: Mapping[str, Any], figure: str = "ms") -> tuple[str, float]:
    """Name and milliseconds of the fastest other engine (ours with other weights is none); ("", 0.0) where there is none.
    ``figure``: ``min_ms`` is what compares with the time of a kernel alone, which is a minimum too."""
    times = {k: e[figure] for k, e in entry["engines"].items() if figure in e and k.split("-")[0] != OURS}
    name = min(times, key=times.__getitem__, default="")
    return name, times.get(name, 0.0)


@dataclass(frozen=True)
class Goal:
    """Of ``figures`` (of each layer of the families) ``combine`` makes one, which is to be ``least`` at least."""

    text: str
    families: tuple[str, ...]
    least: float
    figure: Callable[[Entry, Machine], float | None]  # None: the goal does not speak of this layer
    combine: Callable[[Iterable[float]], float] = min


@dataclass(frozen=True)
class Machine:
    """What a kernel is measured against; bandwidths in GB/s."""

    peak: Profile
    copy: float
    target: Target

    def read(self, nbytes: float) -> float:
        """The bandwidth at which one core reads a working set of this size again and again."""
        levels = ((self.target.l1_bytes, self.peak.l1_gbs), (self.target.l2_bytes, self.peak.l2_gbs), (self.target.l3_bytes, self.peak.l3_gbs))
        return next((rate for size, rate in levels if nbytes <= size), self.peak.dram_gbs)


def this_machine() -> Machine:
    """The machine that runs this, measured."""
    target = Target.host()
    return Machine(measured(), copy_gbs(max(4 * target.l3_bytes, 128 << 20), 0.3), target)


def _ratio(x: Entry, machine: Machine) -> float:
    return best_peer(x, "min_ms")[1] / kernel_alone(x["engines"][OURS])


def _of_peak(x: Entry, machine: Machine) -> float:
    return x["flops"] / kernel_alone(x["engines"][OURS]) * 1e-6 / machine.peak.gflops / x["threads"]


def _of_reading(x: Entry, machine: Machine) -> float:
    return _gbs(x) / (x["engines"][OURS].get("read_gbs") or machine.read(x["bytes"]))


def _gbs(x: Entry) -> float:
    return x["bytes"] / kernel_alone(x["engines"][OURS]) * 1e-6


def _beyond(x: Entry, machine: Machine) -> bool:
    return x["bytes"] > 2 * machine.target.l3_bytes


def _wide_3x3(x: Entry, machine: Machine) -> float | None:
    """3 x 3 convolutions of stride 1 of outputs of 12 x 12 or more, by their names."""
    kind, size, *rest = x["name"].split()
    if rest[:2] != ["k3", "s1"] or "->" not in kind or min(map(int, size.split("x"))) < 12:
        return None
    return _ratio(x, machine)


GOALS = (
    Goal("matrix products: share of the FMA peak, lowest", ("gemm",), 0.88, _of_peak),
    Goal("matrix products: share of the FMA peak, median", ("gemm",), 0.92, _of_peak, median),
    Goal("matrix products: best peer's time / ours, lowest", ("gemm",), 0.96, _ratio),
    Goal("matrix-vector products: share of the read bandwidth, lowest", ("gemv",), 0.85, _of_reading),
    Goal("convolutions: best peer's time / ours, lowest", CONVOLUTIONS, 0.97, _ratio),
    Goal("3x3 convolutions of stride 1, 12x12 and more: best peer's time / ours, lowest", CONVOLUTIONS, 2.2, _wide_3x3),
    Goal("softmax, layer norm beyond the caches: share of the copy bandwidth, lowest", ROWS, 0.8,
         lambda x, machine: _gbs(x) / machine.copy if _beyond(x, machine) else None),
    Goal("softmax, layer norm in caches: best peer's time / ours, lowest", ROWS, 1.0,
         lambda x, machine: None if _beyond(x, machine) else _ratio(x, machine)),
)


def goals_rows(entries: Sequence[Entry], machine: Machine) -> list[list[str]]:
    """By goal: what is asked for, what was reached and by how many layers, and the layers that miss it."""
    rows = []
    for goal in GOALS:
        mine = [x for x in entries if x["family"] in goal.families and x["threads"] == 1 and "ms" in x["engines"].get(OURS, {}) and best_peer(x)[1]]
        found = [(figure, x["name"]) for x in mine if (figure := goal.figure(x, machine)) is not None]
        if not found:
            continue
        reached = goal.combine([f for f, _ in found])
        missing = sorted((f, n) for f, n in found if f < goal.least) if goal.combine is min else []
        names = ", ".join(f"{n} ({f:.2f})" for f, n in missing[:6]) + (", ..." if len(missing) > 6 else "")
        rows.append([goal.text, f"{goal.least:.2f}", f"**{reached:.2f}**" if reached >= goal.least else f"{reached:.2f}",
                     f"{len(found) - len(missing)} of {len(found)}", names])
    return rows


HEADS = ["goal", "at least", "reached", "layers", "missed by"]
