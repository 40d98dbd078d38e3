# SPDX-License-Identifier: Apache-2.0
"""The programs of ``lower_programs`` and random arguments for them."""

from __future__ import annotations

import lower_programs as programs
import numpy as np

from roundel.arith import Analyzer
from roundel.ir import free_vars
from roundel.ir.tir import PrimFunc
from roundel.lower import shape_params

ALL = {name: f for name, f in vars(programs).items() if isinstance(f, PrimFunc)}
DYNAMIC = {name: f for name, f in ALL.items() if shape_params(f)}

SIZES = {
    "exp_dynamic": [{"n": n} for n in (0, 1, 5, 16, 17, 33)],
    "row_bias_dynamic": [{"n": n, "m": m} for n, m in ((1, 1), (3, 8), (2, 17), (4, 7))],
    "narrow_indices": [{"n": n, "m": m} for n, m in ((1, 1), (3, 21))],
    "symbolic_pad": [{"n": n} for n in (0, 1, 2, 4, 7, 11, 12, 20)],
    "short_windows": [{"n": n, "m": m} for n, m in ((1, 1), (1, 20), (2, 2), (3, 15), (5, 16), (4, 17), (2, 40))],
}
SIZED = [(name, dims) for name, several in SIZES.items() for dims in several]


def arguments(func: PrimFunc, dims: dict[str, int], seed: int = 0) -> list[np.ndarray]:
    """Random arrays of the parameters' shapes; ``dims`` gives the shape variables by name."""
    rng = np.random.default_rng(seed)
    sizes = {v: dims[v.name] for b in func.buffer_params for s in b.shape for v in free_vars(s)}
    out = []
    for b in func.buffer_params:
        an = Analyzer(sizes)
        shape = [an.value(s) for s in b.shape]
        if b.dtype.is_float:
            out.append(rng.standard_normal(shape).astype(b.dtype.numpy))
        elif b.dtype.is_bool:
            out.append(rng.integers(0, 2, shape).astype(bool))
        else:
            out.append(rng.integers(0, 8, shape).astype(b.dtype.numpy))
    return out
