# SPDX-License-Identifier: Apache-2.0
"""Converters of Relay's operators, one file per family; importing this package fills the table."""

from . import elementwise, image, nn, quantized, reduce, search, tensor
