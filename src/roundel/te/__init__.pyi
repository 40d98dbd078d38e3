# SPDX-License-Identifier: Apache-2.0
# What type checkers and editors see of tensor expressions.

from typing import Any

from ..ir.tir import AXIS_SEPARATOR, Expr, IndexMap
from .arithmetic import elementwise
from .compute import compute, extern, extern_primfunc
from .create_prim_func import create_prim_func
from .math import (
    accumulator,
    cast,
    ceildiv,
    const,
    eq,
    floordiv,
    floormod,
    if_then_else,
    is_narrow,
    logical_and,
    logical_not,
    logical_or,
    max_,
    min_,
    ne,
    power,
    select,
    truncdiv,
    truncmod,
    widened,
)
from .reduce import Combiner, Reduce, comm_reducer, highest, lowest, max_value, min_value, reduce_axis
from .reduce import all_over as all  # noqa: A004
from .reduce import any_over as any  # noqa: A004
from .reduce import max_finite_over as max_finite
from .reduce import max_number_over as max_number
from .reduce import max_over as max  # noqa: A004
from .reduce import min_over as min  # noqa: A004
from .reduce import prod_over as prod
from .reduce import sum_over as sum  # noqa: A004
from .scan import scan
from .tag import tag_scope
from .tensor import (
    Compute,
    ComputeOp,
    Definition,
    Extern,
    ExternOp,
    Literal,
    Operation,
    Placeholder,
    PlaceholderOp,
    Scan,
    ScanOp,
    Tensor,
    literal,
    placeholder,
    size_var,
    var,
)

def exp(x: Any) -> Expr: ...
def exp_flushed(x: Any) -> Expr: ...
def exp2(x: Any) -> Expr: ...
def log(x: Any) -> Expr: ...
def log2(x: Any) -> Expr: ...
def log10(x: Any) -> Expr: ...
def log1p(x: Any) -> Expr: ...
def expm1(x: Any) -> Expr: ...
def sqrt(x: Any) -> Expr: ...
def rsqrt(x: Any) -> Expr: ...
def sin(x: Any) -> Expr: ...
def cos(x: Any) -> Expr: ...
def tan(x: Any) -> Expr: ...
def asin(x: Any) -> Expr: ...
def acos(x: Any) -> Expr: ...
def atan(x: Any) -> Expr: ...
def sinh(x: Any) -> Expr: ...
def cosh(x: Any) -> Expr: ...
def tanh(x: Any) -> Expr: ...
def asinh(x: Any) -> Expr: ...
def acosh(x: Any) -> Expr: ...
def atanh(x: Any) -> Expr: ...
def erf(x: Any) -> Expr: ...
def erfc(x: Any) -> Expr: ...
def lgamma(x: Any) -> Expr: ...
def tgamma(x: Any) -> Expr: ...
def sigmoid(x: Any) -> Expr: ...
def floor(x: Any) -> Expr: ...
def ceil(x: Any) -> Expr: ...
def trunc(x: Any) -> Expr: ...
def nearbyint(x: Any) -> Expr: ...
def abs(x: Any) -> Expr: ...  # noqa: A001
def isnan(x: Any) -> Expr: ...
def isinf(x: Any) -> Expr: ...
def isfinite(x: Any) -> Expr: ...
def popcount(x: Any) -> Expr: ...
def neg(x: Any) -> Expr: ...
def sign(x: Any) -> Expr: ...

__all__ = [
    "AXIS_SEPARATOR",
    "Combiner",
    "Compute",
    "ComputeOp",
    "Definition",
    "Extern",
    "ExternOp",
    "IndexMap",
    "Literal",
    "Operation",
    "Placeholder",
    "PlaceholderOp",
    "Reduce",
    "Scan",
    "ScanOp",
    "Tensor",
    "abs",
    "accumulator",
    "acos",
    "acosh",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cast",
    "ceil",
    "ceildiv",
    "comm_reducer",
    "compute",
    "const",
    "cos",
    "cosh",
    "create_prim_func",
    "elementwise",
    "eq",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "exp_flushed",
    "expm1",
    "extern",
    "extern_primfunc",
    "floor",
    "floordiv",
    "floormod",
    "highest",
    "if_then_else",
    "is_narrow",
    "isfinite",
    "isinf",
    "isnan",
    "lgamma",
    "literal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_and",
    "logical_not",
    "logical_or",
    "lowest",
    "max",
    "max_",
    "max_finite",
    "max_number",
    "max_value",
    "min",
    "min_",
    "min_value",
    "ne",
    "nearbyint",
    "neg",
    "placeholder",
    "popcount",
    "power",
    "prod",
    "reduce_axis",
    "rsqrt",
    "scan",
    "select",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size_var",
    "sqrt",
    "sum",
    "tag_scope",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
    "widened",
]
