# SPDX-License-Identifier: Apache-2.0
"""What the user says about a page beside the model."""

from __future__ import annotations

from typing import Any

from ..ir.dataclass import dataclass


@dataclass(frozen=True)
class Asked:
    """The options of ``write_site`` that say what a model's inputs and outputs mean; see there. What is empty, None or 0 is not asked for."""

    kind: str | None = None
    labels: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    bgr: bool = False
    size: int = 0
    tokenizer: dict[str, Any] | None = None
    template: str = "{prompt}"
    rate: int = 16000
    window: int = 0
    overlap: int = 0
