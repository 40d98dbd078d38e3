# SPDX-License-Identifier: Apache-2.0
"""Converters of ONNX operators, one file per family; importing this package fills the table."""

from . import control, elements, index, math, nn, normalization, quantize, recurrent, reduce, sequence, shape, signal, tensor, training, vision
