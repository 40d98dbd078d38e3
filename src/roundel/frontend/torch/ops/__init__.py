# SPDX-License-Identifier: Apache-2.0
"""Converters of ATen operators, one file per family; importing this package fills the table."""

from .. import host
from . import attention, complex_numbers, control, create, data_dependent, index, linalg, math, nn, recurrent, reduce, tensor
