# SPDX-License-Identifier: Apache-2.0
"""Converters of ONNX operators, one file per family; importing this package fills the table."""

from . import index, math, nn, normalization, quantize, reduce, shape, tensor  # noqa: F401
