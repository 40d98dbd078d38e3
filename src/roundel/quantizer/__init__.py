# SPDX-License-Identifier: Apache-2.0
"""Post-training quantisation: which products of a model become products of integers, with which scales, and how much each of them loses."""

from __future__ import annotations

from .calibrate import example_of
from .quantize import LayerReport, Quantized, quantize
from .settings import Settings

__all__ = ["LayerReport", "Quantized", "Settings", "example_of", "quantize"]
