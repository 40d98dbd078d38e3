# SPDX-License-Identifier: Apache-2.0
"""OpenBLAS: products of float32 and float64 matrices, transposed or not, batched, by vectors too (``pip install scipy-openblas32``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..arith import Analyzer
from ..ir import graph, tir
from ..relax.patterns import is_op, wildcard
from ..target import Target
from .backend import Backend, Composite, Kernel, native, shared
from .library import Library

PANEL = 256  # rows of a product that one thread computes at a time
_SHARE = 0.9  # of the processor's peak that its products reach
_START = 2000.0  # cycles of a call

_SOURCE = """
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
#define PRODUCT(T, gemm) \\
void openblas_##gemm(const T *a, const T *b, T *c, int64_t m, int64_t n, int64_t k, int64_t transposed, int64_t of_a, int64_t of_b, \\
                     int64_t panels, int64_t part) { \\
  int64_t matrix = part / panels, first = part % panels * PANEL, rows = least(PANEL, m - first); \\
  int ta = transposed & 1, tb = transposed >> 1; \\
  a += matrix * of_a + first * (ta ? 1 : k); \\
  cblas_##gemm(101, ta ? 112 : 111, tb ? 112 : 111, (int)rows, (int)n, (int)k, 1, a, (int)(ta ? m : k), b + matrix * of_b, \\
               (int)(tb ? k : n), 0, c + (matrix * m + first) * n, (int)n); \\
}
#define PANEL @PANEL@
PRODUCT(float, sgemm)
PRODUCT(double, dgemm)
"""
_DECLARATIONS = """
void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
void cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
void openblas_set_num_threads(int);
"""


def _files() -> Sequence[str]:
    """The file of the package on this machine, then the names under which systems know it."""
    spec = find_spec("scipy_openblas32")
    package = [str(Path(spec.origin).parent / "lib" / "libscipy_openblas.so")] if spec is not None and spec.origin else []
    return [*package, "libscipy_openblas.so", "libopenblas.so.0", "libopenblas.so"]


LIBRARY = Library("openblas", _DECLARATIONS, _SOURCE.replace("@PANEL@", str(PANEL)), _files, ("", "scipy_"), "openblas_set_num_threads(1);")
"""One thread of its own: the model's threads each compute a part."""


def _implement(c: Composite) -> Kernel | str:
    if LIBRARY.missing:
        return LIBRARY.missing
    product = c.calls["matmul"]
    (a, ta), (b, tb) = (_side(c, x) for x in product.args)
    dtype = c.result.dtype
    if a is None or b is None or str(dtype) not in ("float32", "float64") or any(i.dtype is not dtype for i in c.operands):
        return "it is no product of two float32 or float64 matrices"
    left, right = (c.operands[k].shape for k in (a, b))
    if len(left) < 2 or len(right) < 2:
        return "an operand is a vector"
    m, k = (left[-1], left[-2]) if ta else left[-2:]
    n = right[-2] if tb else right[-1]
    batch, of_a, of_b = _batches(left, right, m * k, k * n, ta)
    if batch is None:
        return "matrices of one operand are repeated for some of the other's"
    if len(right) == 2 and not ta:  # all rows are one matrix
        m, batch = _product(left[:-1]), tir.index_const(1)
    panels = tir.floordiv(m + (PANEL - 1), PANEL)
    rate = Target.host().flops_per_cycle(str(dtype)) * _SHARE  # of this machine, which the library knows itself, whatever the target says of it
    symbol = "openblas_sgemm" if str(dtype) == "float32" else "openblas_dgemm"
    return native(c, symbol, m, n, k, int(ta) + 2 * int(tb), of_a, of_b, panels, operands=(a, b), library=LIBRARY,
                  **shared(c, batch * panels, 2 * PANEL / rate, (n, k), _START))


def _side(c: Composite, value: Any) -> tuple[int | None, bool]:
    """The operand that a side of the product is, and whether it is transposed."""
    made = next((b.value for b in c.function.body.bindings if b.var is value), None)
    if not isinstance(made, graph.Call):
        return c.position(value), False
    rank = len(made.sinfo.shape)  # type: ignore[union-attr, arg-type]
    axes = tuple(made.attrs["axes"] or range(rank)[::-1])
    swapped = (*range(rank - 2), rank - 1, rank - 2)
    return (c.position(made.args[0]), True) if axes == swapped else (None, False)


def _batches(left: Any, right: Any, of_left: Any, of_right: Any, transposed: bool) -> tuple[Any, Any, Any]:
    """How many matrices there are, and how far one is from the next on each side; None where no one distance tells."""
    a, b = left[:-2], right[:-2]
    same = len(a) == len(b) and all(Analyzer().prove_equal(x, y) for x, y in zip(a, b, strict=True))
    one = tir.index_const(1)
    if same:
        return _product(a), of_left, of_right
    if not b:
        return _product(a), of_left, tir.index_const(0)
    return (_product(b), tir.index_const(0), of_right) if not a else (None, one, one)


def _product(values: Any) -> Any:
    return math.prod(values, start=tir.index_const(1))


def _transposed(is_transposed: bool) -> Any:
    return is_op("relax.permute_dims")(wildcard()) if is_transposed else wildcard()


_PATTERNS = [("openblas.matmul", is_op("relax.matmul")(_transposed(a), _transposed(b))) for a in (True, False) for b in (True, False)]
BACKEND = Backend("openblas", _PATTERNS, _implement, lambda: LIBRARY.says("openblas_get_config"))
"""The backend ``openblas``."""
