# SPDX-License-Identifier: Apache-2.0
"""Strassen's matrix product, one level: seven products of half the size in every direction instead of eight, in one of two forms.

    A = [[A11, A12], [A21, A22]]: even and odd rows, left and right half of the columns; B: upper and lower, left and right half

    Winograd's                                                       Strassen's own
    M0 = (A11 + A12 - A21 - A22) B21                                 M0 = (A11 + A22)(B11 + B22)
    M1 = A11 B12                                                     M1 = (A21 + A22) B11
    M2 = A12 B22                                                     M2 = A11 (B12 - B22)
    M3 = (A21 + A22)(B11 - B12)                                      M3 = A22 (B21 - B11)
    M4 = (A21 + A22 - A11)(B21 - B11 + B12)                          M4 = (A11 + A12) B22
    M5 = (A11 - A21)(B21 - B11)                                      M5 = (A21 - A11)(B11 + B12)
    M6 = A22 (B21 - B11 + B12 - B22)                                 M6 = (A12 - A22)(B21 + B22)
    C11 = M1 + M4 + M3 + M0   C12 = M1 + M2                          C11 = M0 + M3 - M4 + M6   C12 = M2 + M4
    C21 = M1 + M4 + M5 + M3   C22 = M1 + M4 + M5 - M6                C21 = M1 + M3             C22 = M0 - M1 + M2 + M5

The sums of A are worked out once for all its products (``nn.strassen_data``), those of a constant float32 matrix B beforehand
(``strassen_weight``, Winograd's form). Where B is stored in fewer bits its sums would not fit these, and are made beside the products:
by Strassen's own form, whose sums are of two quarters at most.

The sums mix neighbouring rows of A, and columns of B that are half the matrix apart, so all are brought to one size before
(``outside_scaling.py``). With norms within a factor of two of each other, the errors of the seven products are bounded by the norms of an
element's own row and column (Cauchy-Schwarz; Higham, Accuracy and Stability of Numerical Algorithms, chapter 23)::

    |C' - C|[i, j]  <=  c K u |A[i, :]| |B[:, j]|      u = 2^-24; 1 for plain products

with 25 for c by proof. Rows with a NaN or an infinity enter the sums as zeros, so that they reach no other row; their own results are plain
sums, computed where a row's scale says that it is one (``_direct``). Their signs alone matter there, and those of B are in its factors: that
of B11 is (B11 - B12) + B12, for a difference that is never rounded to -B12 where B11 is not zero.

With ``tile`` pairs of rows come in whole tiles of so many, [tiles, tile] instead of [pairs], the last one filled up with zeros:
products of a symbolic number of rows then have no edge. As three of the quarters of B are factors themselves in Winograd's form, one
constant serves such products and plain ones of few rows (``nn.matmul_columns``): B with four sums on its right, [K, 4 H] for quarters
[K / 2, H]::

    B11  B12  B11 - B12         B21 - B11
    B21  B22  B21 - B11 + B12   B21 - B11 + B12 - B22
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dataclass import dataclass
from roundel.ir.op import FuseKind, OpDef, register

from .dims import dim_text, fail, same, simplify, static, tensor_info
from .elementwise import label, pick
from .outside_scaling import scaled

PRODUCTS = 7
Terms = dict[str, int]  # signs of quarters


@dataclass(frozen=True)
class Form:
    """``data`` and ``weight``: the factors as sums of quarters; ``result``: its quarters as sums of products."""

    data: Sequence[Terms]
    weight: Sequence[Terms]
    result: Mapping[str, dict[int, int]]


WINOGRAD = Form(
    ({"11": 1, "12": 1, "21": -1, "22": -1}, {"11": 1}, {"12": 1}, {"21": 1, "22": 1}, {"21": 1, "22": 1, "11": -1}, {"11": 1, "21": -1}, {"22": 1}),
    ({"21": 1}, {"12": 1}, {"22": 1}, {"11": 1, "12": -1}, {"21": 1, "11": -1, "12": 1}, {"21": 1, "11": -1}, {"21": 1, "11": -1, "12": 1, "22": -1}),
    {"11": {1: 1, 4: 1, 3: 1, 0: 1}, "12": {1: 1, 2: 1}, "21": {1: 1, 4: 1, 5: 1, 3: 1}, "22": {1: 1, 4: 1, 5: 1, 6: -1}})
STRASSEN = Form(
    ({"11": 1, "22": 1}, {"21": 1, "22": 1}, {"11": 1}, {"22": 1}, {"11": 1, "12": 1}, {"21": 1, "11": -1}, {"12": 1, "22": -1}),
    ({"11": 1, "22": 1}, {"11": 1}, {"12": 1, "22": -1}, {"21": 1, "11": -1}, {"22": 1}, {"11": 1, "12": 1}, {"21": 1, "22": 1}),
    {"11": {0: 1, 3: 1, 4: -1, 6: 1}, "12": {2: 1, 4: 1}, "21": {1: 1, 3: 1}, "22": {0: 1, 1: -1, 2: 1, 5: 1}})
FORMS = {"winograd": WINOGRAD, "strassen": STRASSEN}


def strassen_weight(weight: np.ndarray, half: int, form: Form = WINOGRAD) -> np.ndarray:
    """The seven right factors of a matrix [K, N], K even: [7, K / 2, half], zeros where its right half is narrower than ``half``."""
    k, n = weight.shape
    wide = weight if n == 2 * half else np.pad(weight, ((0, 0), (0, 2 * half - n)))
    quarters = {f"{i + 1}{j + 1}": wide[i * k // 2 : (i + 1) * k // 2, j * half : (j + 1) * half] for i in (0, 1) for j in (0, 1)}
    out = np.empty((len(form.weight), k // 2, half), weight.dtype)
    for made, ((first, _), *rest) in zip(out, (t.items() for t in form.weight), strict=True):
        made[:] = quarters[first]
        for name, sign in rest:
            (np.add if sign > 0 else np.subtract)(made, quarters[name], out=made)
    if form is WINOGRAD:
        lost = (out[3] == -quarters["12"]) & (quarters["11"] != 0)
        out[3, lost] = np.nextafter(-quarters["12"][lost], np.copysign(np.inf, quarters["11"][lost]))
    return out


def shared_weight(weight: np.ndarray, half: int) -> np.ndarray:
    """The same for plain products too: the matrix with sums on its right, [K, 4 half], in which factor x is quarter x + 1, counted down
    the columns of quarters."""
    k, n = weight.shape
    out = np.zeros((k, 4 * half), weight.dtype)
    out[:, :n] = weight
    for y, quarter in enumerate(strassen_weight(weight, half)[3:], 4):
        out[_quarter(y, k, half)] = quarter
    return out


def _quarter(y: int, k: int, half: int) -> tuple[slice, slice]:
    return slice(y % 2 * k // 2, (y % 2 + 1) * k // 2), slice(y // 2 * half, (y // 2 + 1) * half)


def _total(terms: dict[Any, int], value: Any) -> Any:
    """Values added or subtracted; the first has a plus."""
    (first, _), *rest = terms.items()
    out = value(first)
    for key, sign in rest:
        out = out + value(key) if sign > 0 else out - value(key)
    return out


@register
class StrassenData(OpDef):
    """The seven left factors of ``data`` [..., M, K], K even, whose rows are divided by ``scale`` [..., M, 1]: [7, ..., (M + 1) // 2, K / 2].

    Rows whose scale is zero or infinite are taken for zeros. With ``tile`` the pairs of rows are two dimensions, [ceil(M / (2 tile)), tile].
    """

    name, operands, kind = "nn.strassen_data", ("data", "scale"), FuseKind.OPAQUE
    (attributes,) = ({"tile": 0, "form": "winograd"},)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, scale = (tensor_info(self, a, args) for a in args)
        if data.shape is None or len(data.shape) < 2 or (static(data.shape[-1]) or 1) % 2:
            fail(self, "a matrix with an even number of columns is needed", *args)
        if scale.shape is None or len(scale.shape) != len(data.shape) or not all(map(same, scale.shape, (*data.shape[:-1], tir.index_const(1)))):
            fail(self, "a scale for each row is needed", *args)
        *batch, rows, inner = data.shape
        half = simplify(tir.floordiv(inner, 2))
        return graph.TensorInfo((tir.index_const(PRODUCTS), *batch, *_pairs(rows, attrs["tile"]), half), data.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, scale = args
        *batch, rows, inner = data.shape
        half, tile = simplify(tir.floordiv(inner, 2)), attrs["tile"]

        def body(x: Any, *at: Any) -> Any:
            *b, k = at
            pair = b.pop()
            pair = b.pop() * tile + pair if tile else pair

            def quarter(name: str) -> Any:
                row = pair * 2 + (name[0] == "2")
                value = scaled(data[(*b, row, k + half * (name[1] == "2"))], scale[(*b, row, 0)])
                whole = (static(rows) or 1) % (2 * tile or 2) == 0 or (name[0] == "1" and not tile)
                return value if whole else te.if_then_else(tir.lt(row, rows), value, tir.const(0, data.dtype))

            return pick(x, [_total(terms, quarter) for terms in FORMS[attrs["form"]].data])

        return te.compute((PRODUCTS, *batch, *_pairs(rows, tile), half), body, label(self))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        a, scale = args
        known = (scale > 0) & (scale < np.inf)
        a = np.where(known, a, 0) / np.where(known, scale, 1)
        half, tile = a.shape[-1] // 2, attrs["tile"]
        a = np.pad(a, [(0, 0)] * (a.ndim - 2) + [(0, -a.shape[-2] % (2 * tile or 2)), (0, 0)])
        quarters = {f"{i + 1}{j + 1}": a[..., i::2, j * half : (j + 1) * half] for i in (0, 1) for j in (0, 1)}
        made = np.stack([_total(terms, quarters.__getitem__) for terms in FORMS[attrs["form"]].data])
        return made.reshape(*made.shape[:-2], -1, tile, half) if tile else made


def _pairs(rows: Any, tile: int) -> tuple[tir.Expr, ...]:
    """Dimensions of the pairs of ``rows`` rows."""
    if not tile:
        return (simplify(tir.floordiv(rows + 1, 2)),)
    return simplify(tir.floordiv(rows + (2 * tile - 1), 2 * tile)), tir.index_const(tile)


@register
class StrassenMatMul(OpDef):
    """A product of matrices from their factors ``factors`` (of ``nn.strassen_data``) and ``weight``, [7, K / 2, H] or shared with plain
    products [K, 4 H]: [..., rows, columns]. With ``form="strassen"`` the weight is the matrix itself, [K, 2 H], of any type of float.

    ``data`` and ``scale`` are those of the factors, as are ``tile`` and ``form``. Rows whose scale is infinite are products of ``data``.
    """

    name, operands, kind = "nn.strassen_matmul", ("factors", "weight", "data", "scale"), FuseKind.ANCHOR
    (attributes,) = ({"columns": 0, "tile": 0, "form": "winograd"},)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        factors, weight, data, scale = (tensor_info(self, a, args) for a in args)
        tile, columns = attrs["tile"], attrs["columns"]
        lead = 1 + bool(tile)
        if factors.shape is None or weight.shape is None or len(factors.shape) < 2 + lead or len(weight.shape) not in (2, 3):
            fail(self, "seven factors on both sides are needed", *args)
        if data.shape is None or scale.shape is None or len(data.shape) != len(factors.shape) - lead or not all(map(same, data.shape[:-1], scale.shape)):
            fail(self, "the data that the factors are made of, and a scale for each of its rows, are needed", *args)
        shape = [static(n) or 0 for n in weight.shape]
        across = 2 if attrs["form"] == "strassen" else 4
        parts, inner, half = shape if len(shape) == 3 else (PRODUCTS, shape[0] // 2, shape[1] // across)
        if [static(factors.shape[0]), parts] != [PRODUCTS] * 2 or static(factors.shape[-1]) != inner or static(data.shape[-1]) != 2 * inner:
            fail(self, "the factors do not fit", *args)
        rows = data.shape[-2]
        pairs = zip(factors.shape[-1 - lead : -1], _pairs(rows, tile), strict=True)
        if not all(same(a, b) for a, b in pairs) or not columns / 2 <= half < columns:
            fail(self, f"these are not factors of a result of {dim_text(rows)} rows and {columns} columns", *args)
        return graph.TensorInfo((*data.shape[:-1], tir.index_const(columns)), data.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        factors, matrix, data, scale = args
        name, tile, columns = label(self), attrs["tile"], attrs["columns"]
        _, *lead, inner = factors.shape
        form = FORMS[attrs["form"]]
        weight = _factors(matrix, data.dtype, f"{name}_factors") if form is STRASSEN else matrix
        shared = len(weight.shape) == 2
        half = simplify(tir.floordiv(weight.shape[1], 4)) if shared else weight.shape[2]
        k = te.reduce_axis(inner, "k")

        def factor(x: Any, j: Any) -> Any:
            if not shared:
                return weight[x, k.var, j]
            return weight[tir.floormod(x + 1, 2) * inner + k.var, tir.floordiv(x + 1, 2) * half + j]

        products = te.compute(
            (PRODUCTS, *lead, half),
            lambda x, *at: te.sum(factors[(x, *at[:-1], k.var)] * factor(x, at[-1]), axis=[k]),
            f"{name}_products",
        )

        def combined(*at: Any) -> Any:
            *b, q, i, j = at
            left, right = ([_total(form.result[f"{r}{c}"], lambda x: products[(x, *b, q)]) for r in (1, 2)] for c in (1, 2))
            return pick(j, [pick(i, left), pick(i, right)])

        whole = te.compute((*lead, half, 2, 2), combined, f"{name}_result")
        direct = _direct(data, matrix, half, columns, f"{name}_direct")

        def cut(*at: Any) -> Any:
            *b, m, n = at
            pair = (tir.floordiv(m, 2 * tile), tir.floordiv(tir.floormod(m, 2 * tile), 2)) if tile else (tir.floordiv(m, 2),)
            made = whole[(*b, *pair, tir.floormod(n, half), tir.floormod(m, 2), tir.floordiv(n, half))]
            return tir.select(tir.call("likely", tir.lt(scale[(*b, m, 0)], tir.const(float("inf"), data.dtype))), made, direct[at])

        return te.compute((*data.shape[:-1], columns), cut, name)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight, plain, scale = (x.astype(np.float64) for x in args)
        form, matrix = FORMS[attrs["form"]], weight
        if form is STRASSEN:
            weight = strassen_weight(weight, weight.shape[1] // 2, form)
        if attrs["tile"]:
            data = data.reshape(*data.shape[:-3], -1, data.shape[-1])
        if weight.ndim == 2:
            weight = np.stack([weight[_quarter(y, weight.shape[0], weight.shape[1] // 4)] for y in range(1, PRODUCTS + 1)])
        weight = weight.reshape(PRODUCTS, *(1,) * (data.ndim - 3), *weight.shape[1:])
        products = np.matmul(data, weight)
        quarter = {name: _total(terms, products.__getitem__) for name, terms in form.result.items()}
        rows = [np.concatenate([quarter[f"{i}1"], quarter[f"{i}2"]], -1) for i in (1, 2)]
        whole = np.stack(rows, -2).reshape(*products.shape[1:-2], 2 * products.shape[-2], -1)
        half = weight.shape[-1]
        with np.errstate(all="ignore"):
            k, j = np.ogrid[: weight.shape[-2], :half]
            direct = plain @ np.block([[_element(matrix, f"{r}{c}", k, j, len(k), half) for c in (1, 2)] for r in (1, 2)])
        return np.where(scale < np.inf, whole[..., : plain.shape[-2], :], direct)[..., : attrs["columns"]].astype(args[0].dtype)


def _direct(data: Any, weight: Any, half: Any, columns: int, name: str) -> Any:
    """Plain sums, right where a row is not finite: all but their signs is lost there. ``half`` is the width of a quarter of the matrix."""
    inner = simplify(tir.floordiv(data.shape[-1], 2))
    k = te.reduce_axis(inner, "kd")

    def total(*at: Any) -> Any:
        *row, n = at
        j, side = tir.floormod(n, half), tir.floordiv(n, half)
        value = lambda r: pick(side, [te.cast(_element(weight, f"{r}{c}", k.var, j, inner, half), data.dtype) for c in (1, 2)])
        return te.sum(data[(*row, k.var)] * value(1) + data[(*row, k.var + inner)] * value(2), axis=[k])

    return te.compute((*data.shape[:-1], columns), total, name)


def _element(weight: Any, quarter: str, k: Any, j: Any, inner: Any, half: Any) -> Any:
    """An element of a quarter of the matrix, which is there itself, [K, ...], or as the factors of Winograd's form."""
    if len(weight.shape) == 2:
        return weight[k + inner * (quarter[0] == "2"), j + half * (quarter[1] == "2")]
    factors = {"".join(terms): x for x, terms in enumerate(WINOGRAD.weight)}  # those of one quarter
    return weight[factors["1112"], k, j] + weight[factors["12"], k, j] if quarter == "11" else weight[factors[quarter], k, j]


def _factors(weight: Any, dtype: Any, name: str) -> Any:
    """The seven right factors of a matrix [K, 2 H], of type ``dtype``: [7, K / 2, H]."""
    inner, half = (simplify(tir.floordiv(n, 2)) for n in weight.shape)

    def body(x: Any, k: Any, j: Any) -> Any:
        quarter = lambda q: te.cast(weight[k + inner * (q[0] == "2"), j + half * (q[1] == "2")], dtype)
        return pick(x, [_total(terms, quarter) for terms in STRASSEN.weight])

    return te.compute((PRODUCTS, inner, half), body, name)


@register
class MatMulColumns(OpDef):
    """``data`` [..., K] times the first ``columns`` columns of the matrix ``weight`` [K, N], which may be narrower than the data."""

    name, operands, kind = "nn.matmul_columns", ("data", "weight"), FuseKind.ANCHOR
    (attributes,) = ({"columns": 0},)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight = (tensor_info(self, a, args) for a in args)
        if data.shape is None or weight.shape is None or not data.shape or len(weight.shape) != 2 or not same(data.shape[-1], weight.shape[0]):
            fail(self, "a matrix with as many rows as the data has columns is needed", *args)
        if not 0 < attrs["columns"] <= (static(weight.shape[1]) or 0):
            fail(self, f"the matrix has no {attrs['columns']} columns", *args)
        return graph.TensorInfo((*data.shape[:-1], tir.index_const(attrs["columns"])), data.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight = args
        k = te.reduce_axis(data.shape[-1], "k")
        return te.compute((*data.shape[:-1], tir.index_const(attrs["columns"])),
                          lambda *at: te.sum(data[(*at[:-1], k.var)] * te.cast(weight[k.var, at[-1]], data.dtype), axis=[k]), label(self))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.matmul(args[0].astype(np.float64), args[1][:, : attrs["columns"]].astype(np.float64)).astype(args[0].dtype)
