# SPDX-License-Identifier: Apache-2.0
"""Matrix products of extreme numbers: the error bound of each row and column, zeros, and that what is not finite stays in its row, where the
infinities and NaNs are those of a plain product.

The bound for an element is 8 times that of a plain float32 product, 8 K u |A[i, :]| |B[:, j]| with Euclidean norms and u = 2^-24 (and what K
denormal products lose; in columns that are up to 2^16 times as large as others, 2^16 times as much). Data and weights are drawn row by row,
and column by column, from a table of kinds, so that each kind is the neighbour of each other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from roundel.builder import BlockBuilder
from roundel.driver import compile_module, prepare
from roundel.ir import graph, options, tir
from roundel.ir.dtype import INT64, DType
from roundel.ops import make
from roundel.ops.outside_scaling import SPREAD

TIMES = 8               # the bound of plain products
UNIT = 2.0 ** -24       # the unit roundoff of float32
LEAST = 2.0 ** -149     # the smallest float32 number
DRAWS_PER_MODEL = 16    # data for one compiled product
SIZES = [(128, 768, 768), (131, 512, 768), (257, 256, 2048), (193, 384, 768)]
FORMS = ["float32", "float32 symbolic", "float32 batch", "float16", "bfloat16", "float16 symbolic"]

Row = Callable[[np.random.Generator, int], np.ndarray]


def _outlier(rng: np.random.Generator, n: int) -> np.ndarray:
    row = rng.standard_normal(n)
    row[rng.integers(n)] = 10.0 ** rng.integers(2, 30)
    return row


def _one(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(np.arange(n) == rng.integers(n), rng.uniform(0.5, 1), 0.0)


def _with(value: float) -> Row:
    def row(rng: np.random.Generator, n: int) -> np.ndarray:
        made = rng.standard_normal(n)
        made[rng.integers(n)] = value
        return made

    return row


FINITE: dict[str, Row] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "a power of two": lambda rng, n: rng.standard_normal(n) * 2.0 ** rng.integers(-20, 41),
    "one outlier": _outlier,
    "zeros": lambda rng, n: np.zeros(n),
    "one number": _one,
    "constant": lambda rng, n: np.full(n, rng.uniform(0.5, 1)),
    "positive": lambda rng, n: rng.uniform(0.5, 1, n),
    "small": lambda rng, n: rng.standard_normal(n) * 2.0 ** -100,
    "denormal": lambda rng, n: rng.standard_normal(n) * 2.0 ** -135,
    "large": lambda rng, n: rng.uniform(-1, 1, n) * 2.0 ** 90,
    "near overflow": lambda rng, n: rng.uniform(-1, 1, n) * 3.4e38,
}
NOT_FINITE: dict[str, Row] = {"NaN": _with(np.nan), "infinity": _with(np.inf), "minus infinity": _with(-np.inf),
                              "infinities": lambda rng, n: np.where(rng.random(n) < 0.1, np.inf, rng.standard_normal(n))}
WEIGHTS = ["normal", "one number", "constant", "positive", "zeros"]
EXTREME_WEIGHTS = [*WEIGHTS, "a power of two", "one outlier", "small", "denormal", "large", "near overflow"]


@dataclass(frozen=True)
class Product:
    """A compiled product with a constant matrix: ``run[threads]`` takes data of any of the ``shapes``."""

    name: str
    weight: np.ndarray
    shapes: list[tuple[int, ...]]
    run: dict[int, Callable[[np.ndarray], np.ndarray]]
    mixes_rows: bool  # by Strassen's algorithm


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` products; a finding for each that is beyond a bound or that something not finite has reached."""
    rng = np.random.default_rng(seed)
    for first in range(0, count, DRAWS_PER_MODEL):
        size, form = SIZES[rng.integers(len(SIZES))], FORMS[rng.integers(len(FORMS))]
        product = compiled(form, size, weights(rng, *size[1:], form), "strict" if rng.random() < 0.1 else "default")
        for _ in range(min(DRAWS_PER_MODEL, count - first)):
            shape = product.shapes[rng.integers(len(product.shapes))]
            found = problem(product, rows(rng, shape, FINITE), rows(rng, shape, NOT_FINITE), rng.random(shape[:-1]) < rng.choice([0, 0.02, 0.5]))
            if found:
                yield f"{product.name}: {found}"


def rows(rng: np.random.Generator, shape: tuple[int, ...], kinds: dict[str, Row]) -> np.ndarray:
    """Rows of these kinds, in any order; of one or two kinds sometimes."""
    names = list(rng.choice(list(kinds), int(rng.choice([1, 2, len(kinds)]))))
    made = [kinds[names[rng.integers(len(names))]](rng, shape[-1]) for _ in range(int(np.prod(shape[:-1])))]
    with np.errstate(over="ignore"):
        return np.stack(made).astype(np.float32).reshape(shape)


def weights(rng: np.random.Generator, inner: int, columns: int, form: str) -> np.ndarray:
    """A constant matrix: columns of any kinds, with norms up to a thousand times larger than others'; in one of five matrices of extreme kinds,
    and with a few elements that are not finite in one of twenty."""
    names = list(rng.choice(EXTREME_WEIGHTS if rng.random() < 0.2 else WEIGHTS, int(rng.choice([1, 2, 3]))))
    made = np.stack([FINITE[names[rng.integers(len(names))]](rng, inner) for _ in range(columns)], 1) * 2.0 ** rng.integers(-5, 6, columns)
    if rng.random() < 0.05:
        made[rng.integers(inner, size=3), rng.integers(columns, size=3)] = rng.choice([np.nan, np.inf, -np.inf], 3)
    dtype = DType(form.split()[0]).numpy
    with np.errstate(over="ignore"):
        return made.astype(dtype)


def compiled(form: str, size: tuple[int, int, int], weight: np.ndarray, accuracy: str = "default", choices: Mapping[str, str] | None = None) -> Product:
    """The product of a form and size, for one and two threads; ``choices`` as of ``rd.compile``."""
    m, k, n = size
    symbolic, batch = form.endswith("symbolic"), form.endswith("batch")
    count = tir.Var("n", INT64, True)
    shape = (count, k) if symbolic else (2, m // 2, k) if batch else (m, k)
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo(shape, "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(bb.emit(make("matmul", x, graph.Constant.of(weight), out_dtype="float32")))
        bb.emit_func_output(y)
    with options.override(accuracy=accuracy):
        names, built = list(prepare(bb.get(), choices=choices)), compile_module(bb.get(), choices=choices)
    shapes = [(1, k), (m, k), (m + 1, k), (2 * m + 3, k)] if symbolic else [shape]
    return Product(f"{form} {m}x{k}x{n}, accuracy {accuracy}", weight, shapes, {t: built.load(threads=t)["main"] for t in (1, 2)},
                   any("strassen" in name for name in names))


def problem(product: Product, data: np.ndarray, spoilt: np.ndarray, where: np.ndarray) -> str | None:
    """What is wrong with the product of ``data``, and of the same with rows that are not finite instead of zeros ``where`` a mask says so;
    None if nothing is."""
    data, mixed = np.where(where[..., None], 0, data), np.where(where[..., None], spoilt, data)
    for threads, run in product.run.items():
        clean, got = run(data), run(mixed)
        if not np.array_equal(clean[~where], got[~where], equal_nan=True):
            return f"what is not finite reaches other rows ({threads} threads)"
        found = _other_values(mixed[where], product.weight, got[where])
        if found:
            return f"{found} ({threads} threads)"
        worst = excess(data, product.weight, clean, LEAST * SPREAD if product.mixes_rows else LEAST)
        if not worst <= TIMES:
            return f"{worst:.3g} times the bound of a plain product ({threads} threads)"
        zero = ~data.any(-1)
        finite = np.isfinite(product.weight.astype(np.float32)).all(0)
        if clean[zero][:, finite].any():
            return f"a row of zeros is not zero in the product ({threads} threads)"
    return None


def _other_values(data: np.ndarray, weight: np.ndarray, got: np.ndarray) -> str | None:
    """What the results of rows that are not finite have that plain sums do not; but for sums whose finite terms may overflow."""
    wide, matrix = data.astype(np.float64), weight.astype(np.float64)
    sizes = [np.linalg.norm(np.where(np.isfinite(x), x, 0), axis=axis) for x, axis in ((wide, 1), (matrix, 0))]
    with np.errstate(all="ignore"):
        plain, known = wide @ matrix, np.multiply.outer(*sizes) < 2.0 ** 127
    same = np.where(np.isfinite(plain), np.isfinite(got), np.isnan(got) & np.isnan(plain) | (got == plain)) | ~known
    if same.all():
        return None
    row, column = np.argwhere(~same)[0]
    return f"a row that is not finite gives {got[row, column]}, plain sums {plain[row, column]}"


def excess(data: np.ndarray, weight: np.ndarray, result: np.ndarray, lost: float = LEAST) -> float:
    """The largest error of an element, in bounds of a plain float32 product: K (u |A[i, :]| |B[:, j]| + ``lost``). Where a plain product may
    overflow there is no bound."""
    a, b = data.reshape(-1, data.shape[-1]).astype(np.float64), weight.astype(np.float64)
    inner, out = a.shape[1], result.reshape(-1, b.shape[1]).astype(np.float64)
    with np.errstate(all="ignore"):
        size = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=0)
        errors = np.abs(out - a @ b) / (inner * (UNIT * size + lost))
    bounded = size < 2.0 ** 127  # and no NaN
    errors[bounded & np.isnan(errors)] = np.inf
    return float(errors[bounded].max(initial=0))
