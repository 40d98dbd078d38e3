# SPDX-License-Identifier: Apache-2.0
"""Flat tensor programs (see ``roundel.lower``) to target languages."""

from .backend import BACKENDS, Backend, Emitted, Function, backend_of
from .data import Array, Data, Number, Record, Symbol, Text

__all__ = ["BACKENDS", "Array", "Backend", "Data", "Emitted", "Function", "Number", "Record", "Symbol", "Text", "backend_of"]
