# SPDX-License-Identifier: Apache-2.0
"""What is asked of the quantiser."""

from __future__ import annotations

import numbers
from collections.abc import Collection
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from ..ir import escape
from ..ir.dataclass import dataclass
from ..ir.errors import OptionError

MODES = ("static", "dynamic", "weights")
RANGES = ("min-max", "percentile")
KINDS = {"matmul": "matmul", "linear": "matmul", "nn.conv1d": "conv", "nn.conv2d": "conv", "nn.conv3d": "conv"}
"""The operators that are quantised, and what ``exclude`` calls their kind."""


@dataclass(frozen=True)
class Settings:
    """See `roundel.quantize`. Raises OptionError for what does not fit together."""

    mode: str = "dynamic"
    bits: int = 8
    group: int | None = None
    symmetric: bool = True
    per_channel: bool = True
    ranges: str = "min-max"
    percentile: float = 99.99
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value, known in (("mode", self.mode, MODES), ("ranges", self.ranges, RANGES), ("bits", self.bits, (8, 4))):
            if value not in known:
                raise OptionError(f"{name} cannot be {escape.value(value)}", hint=f"it is {' or '.join(map(repr, known))}")
        if self.mode != "weights" and (self.bits != 8 or self.group is not None or not self.symmetric):
            raise OptionError(f"mode {self.mode!r} has weights of 8 bits with a scale for each channel and no zero point",
                              hint='fewer bits, groups and zero points are for mode="weights"')
        if self.group is not None and (isinstance(self.group, bool) or self.group not in (16, 32, 64, 128, 256)):
            raise OptionError(f"a group cannot have {escape.value(self.group)} elements", hint="it has 16, 32, 64, 128 or 256")
        if not isinstance(self.percentile, numbers.Real) or not 50 < self.percentile <= 100:
            raise OptionError(f"percentile cannot be {escape.value(self.percentile)}", hint="it is above 50 and at most 100: 99.99 leaves out one in 10,000")
        for e in self.exclude:
            if not isinstance(e, str):
                raise OptionError(f"exclude cannot hold {escape.value(e)}", hint="it has names of nodes, patterns of names, or conv and matmul")

    def leaves_out(self, site: str, op: Any) -> bool:
        """Whether a node stays as it is: by its name or a pattern of names, by its kind (conv, matmul) or its operator's name."""
        return any(fnmatchcase(site, e) or e in (KINDS[op.name], op.name) for e in self.exclude)

    def check_exclude(self, sites: Collection[str]) -> None:
        """Raises OptionError for what is to be left out and is nowhere in a model with nodes of these names."""
        for e in self.exclude:
            if e not in (*KINDS, *KINDS.values()) and not any(fnmatchcase(s, e) for s in sites):
                near = get_close_matches(e, sites, 3, 0.5)
                raise OptionError(f"exclude names {escape.value(e)}, and the model has no such node",
                                  hint=f"is {' or '.join(map(escape.name, near))} meant?" if near else "the table of layers has the names")
