# SPDX-License-Identifier: Apache-2.0
"""Floating-point numbers that sizes make (``1 / math.sqrt(x.shape[1])``), as scalar tensors, and sizes that such numbers make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir import graph, tir
from ...ir.dtype import DType
from ...ir.errors import UnsupportedError
from ...ops import make
from ...ops.data_dependent import counted

FLOAT64 = DType("float64")
_EXACT = 1 << 20
"""Fractions of smaller numbers times a size are exact in float64."""
_OPERATORS = {"IntTrueDiv": "divide", "FloatTrueDiv": "divide", "Add": "add", "Mul": "multiply", "Pow": "power", "FloatPow": "power", "PowByNatural": "power",
              "Max": "maximum", "Min": "minimum"}
_COMPARISONS = {"Equality": "equal", "Unequality": "not_equal", "GreaterThan": "greater_equal", "LessThan": "less_equal", "StrictGreaterThan": "greater",
                "StrictLessThan": "less"}
_LOGICAL = {"And": "logical_and", "Or": "logical_or", "Not": "logical_not"}
_ROUNDED = {"FloorToInt": "floor", "CeilToInt": "ceil", "TruncToInt": "trunc", "RoundToInt": "round"}
_UNARY = "OpaqueUnaryFn_"


def floating(emit: Callable[..., Any], sizes: Any, e: Any) -> Any:
    """A sympy expression as a scalar tensor of type float64; what is whole in it are sizes. Raises UnsupportedError."""
    name = type(e).__name__
    if e.is_number:
        return graph.Constant.of(np.float64(e))
    if name == "ToFloat":
        return floating(emit, sizes, e.args[0])
    if str(e) in sizes.numbers:
        return emit(make("astype", sizes.numbers[str(e)], dtype="float64"))
    if name in _OPERATORS and not (e.is_integer and name in ("Add", "Mul")):
        out, *rest = (floating(emit, sizes, a) for a in e.args)
        for value in rest:
            out = emit(make(_OPERATORS[name], out, value))
        return out
    if name.startswith(_UNARY):
        return emit(make(name.removeprefix(_UNARY), floating(emit, sizes, e.args[0])))
    size = tir.as_index(sizes.expr(e))
    whole = emit(make("reshape", emit(make("shape_to_tensor", graph.ShapeExpr((size,)))), graph.ShapeExpr(())))
    return emit(make("astype", whole, dtype="float64"))


def comparison(emit: Callable[..., Any], sizes: Any, e: Any) -> Any:
    """A sympy condition on such numbers as a scalar tensor of type bool. Raises UnsupportedError."""
    name = type(e).__name__
    if name in _LOGICAL:
        return emit(make(_LOGICAL[name], *(comparison(emit, sizes, a) for a in e.args)))
    if name in _COMPARISONS:
        return emit(make(_COMPARISONS[name], *(floating(emit, sizes, a) for a in e.args)))
    raise UnsupportedError(f"the condition {e} ({name}) is not supported")


def is_rounded(e: Any) -> bool:
    """Whether an expression is a size made by rounding a floating-point number."""
    return type(e).__name__ in _ROUNDED


def rounded(bb: Any, emit: Callable[..., Any], sizes: Any, e: Any) -> Any:
    """A size made by rounding: of a product with a simple fraction as an expression, else as a variable that the host finds out."""
    kind, inner = _ROUNDED[type(e).__name__], e.args[0]
    whole, up, down = _fraction(inner)
    if whole is not None and kind != "round":
        times = tir.as_index(sizes.expr(whole)) * up
        return tir.ceildiv(times, down) if kind == "ceil" else tir.floordiv(times, down)
    number = emit(make(kind, floating(emit, sizes, inner)))
    return counted(bb, emit(make("astype", number, dtype="int64")), None, "size")


def _fraction(e: Any) -> tuple[Any, int, int]:
    """A product of a size and a simple fraction as (size, numerator, denominator); (None, ..) for anything else."""
    name = type(e).__name__
    if name == "ToFloat":
        return e.args[0], 1, 1
    if name == "IntTrueDiv" and e.args[1].is_Integer and e.args[1] > 0:
        return e.args[0], 1, int(e.args[1])
    if name == "Mul" and len(e.args) == 2 and e.args[0].is_Float and type(e.args[1]).__name__ == "ToFloat":
        up, down = float(e.args[0]).as_integer_ratio()
        if 0 < up < _EXACT and down < _EXACT:
            return e.args[1].args[0], up, down
    return None, 0, 1
