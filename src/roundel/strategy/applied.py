# SPDX-License-Identifier: Apache-2.0
"""What a rule hands back beside the schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..ir import tir
from .candidates import Candidates


@dataclass(frozen=True)
class Applied:
    """A rule fitted. ``layouts`` says how it wants constant parameters laid out: position among the buffer parameters to index map.
    ``decisions`` are its free choices by name, ``candidates`` all that it could have chosen, with the times that the model expects."""

    layouts: Mapping[int, tir.IndexMap] = field(default_factory=dict)
    decisions: Mapping[str, Any] = field(default_factory=dict)
    candidates: Candidates | None = None
