# SPDX-License-Identifier: Apache-2.0
"""What targets lack, written as tensor-program expressions: conversions of narrow floats, elementary functions.

They use casts, reinterpretation, integer arithmetic, multiply-add and select alone, so every target compiles them and
the interpreter runs them.
"""

from .convert import decode, encode, narrow, widen
from .legalize import legalize_math
from .math import EXPANSIONS, expand_call

__all__ = ["EXPANSIONS", "decode", "encode", "expand_call", "legalize_math", "narrow", "widen"]
