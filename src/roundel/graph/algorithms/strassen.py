# SPDX-License-Identifier: Apache-2.0
"""Products with constant matrices run by Strassen's algorithm where the tensor programs that it becomes are expected to take less time than the plain one.

    matmul(x, W)   ->   strassen_matmul(strassen_data(x, rows), seven sums of quarters of W / columns, x, rows) * columns * rows
                        with powers of two: rows = row_scale(x), columns = column_scale(W)

One level: an eighth of the multiplications less for weights that are 7/4 as large, twice as large where plain products read them too.
Matrices that are stored in fewer bits stay as they are: their sums are made beside the products.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache, partial
from types import MappingProxyType

import numpy as np

from ...ir import graph, options, tir
from ...ir.choice import Alternatives, Later
from ...ir.constants import ConstData
from ...ir.dataclass import dataclass
from ...ir.dtype import DType
from ...ir.module import IRModule
from ...ir.visit import free_vars
from ...ops import make
from ...ops.dims import dim_text, shape_text, static
from ...ops.outside_scaling import column_scale, divided
from ...ops.strassen import PRODUCTS, shared_weight, strassen_weight
from ...passes import pass_
from ...strategy.product.panels import PAIRS, PARTS
from ...target import Target
from ..expectations import Expectations, stand_in
from ..rewriter import GraphRewriter, is_call, site_of
from ..tidy.convert_to_dataflow import convert_to_dataflow
from ..tidy.inline_functions import dims_of, fresh_copy

WEIGHT = (1,)  # the constant among the operands of products
PLAIN, STRASSEN = "plain", "strassen"  # the algorithms
NO_POWERS = "the columns of its matrix differ too much in size, or are not finite"
KERNELS_MORE = 2      # than the plain product is
TILE = PAIRS          # pairs of rows, where their number is symbolic
MOST_ROWS = 256       # it must pay from some number of rows up to this one: for fewer, larger matrices are of no use, and few models always have more
LARGER = 1.015        # times as fast it must be, at least, for a matrix that becomes 7/4 as large: files grow, and whoever loads or sends them waits
VARIANT = 1.05        # ... where it is a variant beside plain products, for which the matrices become twice as large


@pass_("strassen")
def strassen(mod: IRModule) -> IRModule:
    """Large products with constant float32 matrices become Strassen's, unless the option ``accuracy`` is strict.

    Where the number of rows is symbolic, a body with such products gets a variant for enough of them::

        if n >= 96: y = strassen_matmul(strassen_data(x), shared, x)
        else: y = matmul_columns(x, shared)      # its first columns are W / columns
    """
    return convert_to_dataflow(_Strassen(mod, mod.attrs.get("target") or Target.host()).module())


class _Strassen(GraphRewriter):
    def __init__(self, mod: IRModule, target: Target) -> None:
        super().__init__(mod)
        self.target = target
        self.expectations = Expectations.of(mod)
        self.enough: set[tir.Expr] = set()  # symbolic numbers of rows known to be enough here
        self.decided: dict[tir.Expr, int] = {}  # those that a condition outside of here asks for, and how many it asks for
        self.loops = 0  # around here
        self.known_powers: dict[int, np.ndarray | None] = {}  # of the columns of constants, by their ids

    def function(self, func: graph.Function) -> graph.Function:
        self.dims = {v for p in func.params for v in dims_of(p.sinfo)}
        return super().function(func)

    def seq(self, expr: graph.SeqExpr) -> graph.SeqExpr:
        own = {v for b in expr.bindings if isinstance(b, graph.MatchCast) for v in dims_of(b.sinfo)} - self.dims
        wanted: dict[tir.Expr, int] = {}
        for b in expr.bindings if own.isdisjoint(dims_of(expr.sinfo)) else ():
            rows, least = self.least_rows(b.value, site_of(b))
            if least is not None and rows not in self.decided and not self.loops and free_vars(rows).isdisjoint(own):
                wanted[rows] = max(least, wanted.get(rows, 0))
        known, self.dims, outside, self.decided = self.dims, self.dims | own, self.decided, self.decided | wanted
        rarely = super().seq(expr)
        self.dims = known
        if not wanted:
            self.decided = outside
            return rarely
        self.enough |= wanted.keys()
        often = self.seq(fresh_copy(self.mod, expr, known))
        self.enough -= wanted.keys()
        self.decided = outside
        result = graph.Var("result", often.sinfo)
        condition = graph.PrimValue(tir.logical_and(*(rows >= least for rows, least in wanted.items())))
        chosen = graph.VarBinding(result, graph.If(condition, often, rarely, often.sinfo))
        return graph.SeqExpr((graph.BindingBlock((chosen,)),), result)

    def _value(self, value: graph.GraphExpr) -> graph.GraphExpr:
        loop = isinstance(value, graph.While)  # its body stays one piece, so that what it changes stays where it is
        self.loops += loop
        out = super()._value(value)
        self.loops -= loop
        return out

    def least_rows(self, call: graph.GraphExpr, site: str) -> tuple[tir.Expr, int | None]:
        """The symbolic number of rows of a product and from how many on it pays, or two where Strassen's algorithm is asked for; None where
        it is no such product, or plain from any number on."""
        found = product_of(call)
        if found is None or static(found.rows) is not None:
            return tir.index_const(0), None
        algorithms = found.algorithms(self.expectations, (), MOST_ROWS, TILE)
        asked = self.choosing.asked(site, algorithms)
        if asked is not None:
            return found.rows, 2 if asked == STRASSEN and self.powers(found) is not None else None
        if self.choosing.wanted(site, algorithms, call) == PLAIN:  # measured; from how many rows on Strassen's algorithm pays, a record does not tell
            return found.rows, None
        enough = lambda rows: pays(found, self.expectations, (), rows, TILE, VARIANT)
        if not enough(MOST_ROWS) or self.powers(found) is None:
            return found.rows, None
        numbers = range(4 * TILE, MOST_ROWS, 4 * TILE)  # from one of these on it pays: what does not grow with the rows, more of them share
        return found.rows, next(iter(numbers[bisect_left(numbers, True, key=enough):]), MOST_ROWS)

    def powers(self, found: Product) -> np.ndarray | None:
        """The powers of two for the columns of the constant; None where it has none, so that the product stays as it is."""
        source = found.weight.data
        if id(source) not in self.known_powers:
            self.known_powers[id(source)] = column_scale(source.numpy())
        return self.known_powers[id(source)]

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        found = product_of(call)
        if found is None:
            return call
        if static(found.rows) is not None:
            shared, tile = False, self.fixed(found, call)
        else:
            shared = self.varying(found, call)
            tile = TILE if shared and found.rows in self.enough else None
        powers = None if tile is None and not shared else self.powers(found)
        if powers is None:
            return call
        x, columns, weight = call.args[0], found.columns, _divided(found.weight, powers)
        half = half_columns(columns, self.target.lanes("float32"))
        if tile is None:
            return self.multiplied(make("nn.matmul_columns", x, _shared(weight, half), columns=columns), powers)
        how = {"tile": tile, "form": "strassen" if found.narrow else "winograd"}
        row_powers = self.emit(make("nn.row_scale", x))
        factors = self.emit(make("nn.strassen_data", x, row_powers, **how))
        weight = (_padded if found.narrow else _shared if shared else _factors)(weight, half)
        product = make("nn.strassen_matmul", factors, weight, x, row_powers, columns=columns, **how)
        return make("multiply", self.emit(self.multiplied(product, powers)), row_powers)

    def fixed(self, found: Product, call: graph.Call) -> int | None:
        """The tile of a product whose number of rows is known, None where it stays plain; recorded."""
        rows, batch = static(found.rows), tuple(n for n in map(static, found.batch) if n is not None)
        assert rows is not None
        ways = [*([(0, batch)] if len(batch) == len(found.batch) else []), (TILE, ())]
        tile, matrices = next(((t, n) for t, n in ways if not found.only_plain(self.target, math.prod(n), rows, t)), ways[0])
        algorithms = found.algorithms(self.expectations, matrices, rows, tile)
        preferred = STRASSEN if pays(found, self.expectations, matrices, rows, tile) else PLAIN
        if STRASSEN in (preferred, self.choosing.wanted(self.site, algorithms, call)) and self.powers(found) is None:
            algorithms, preferred = {**algorithms, STRASSEN: NO_POWERS}, PLAIN
        return tile if self.choosing.decide(self.site, str(found), algorithms, preferred, of=call) == STRASSEN else None

    def varying(self, found: Product, call: graph.Call) -> bool:
        """Whether a product of symbolic rows runs by Strassen's algorithm where there are enough of them; recorded, with the times of many."""
        least, pays_somewhere = self.decided.get(found.rows), self.least_rows(call, self.site)[1] is not None
        algorithms = found.algorithms(self.expectations, (), MOST_ROWS, TILE)
        if id(found.weight.data) in self.known_powers and self.powers(found) is None:
            algorithms = {**algorithms, STRASSEN: NO_POWERS}
        elif pays_somewhere and least is None:
            algorithms = {**algorithms, STRASSEN: "its number of rows becomes known too late to choose between variants"}
        taken = STRASSEN if pays_somewhere and least is not None else PLAIN
        condition = f"{dim_text(found.rows)} >= {least}" if taken == STRASSEN else ""
        self.choosing.note(self.site, f"{found}, times of {MOST_ROWS} rows", algorithms, taken, of=call, condition=condition)
        return taken == STRASSEN

    def multiplied(self, product: graph.GraphExpr, powers: np.ndarray) -> graph.GraphExpr:
        """The columns of a product multiplied. (Before its rows: the powers of columns are no extreme ones, so nothing overflows or vanishes
        that the result has.)"""
        return product if (powers == 1).all() else make("multiply", self.emit(product), graph.Constant.of(powers))


@dataclass(frozen=True)
class Product:
    """``batch`` matrices [rows, inner] times a constant one [inner, columns]."""

    batch: tuple[tir.Expr, ...]
    rows: tir.Expr
    inner: int
    columns: int
    weight: graph.Constant

    @property
    def stored(self) -> int:
        """Bytes of an element of the matrix."""
        return self.weight.data.dtype.bits // 8

    @property
    def narrow(self) -> bool:
        """Whether the matrix is stored in fewer bits than it is computed in."""
        return self.stored < 4

    def __str__(self) -> str:
        return f"matmul {shape_text((*self.batch, self.rows, self.inner))} by {self.inner}x{self.columns}"

    def algorithms(self, expectations: Expectations, batch: tuple[int, ...], rows: int, tile: int) -> Alternatives:
        """The cycles of one core expected of each algorithm for a ``batch`` of matrices of ``rows``, or why there is only the plain one. ``tile``: pairs of
        rows come in whole tiles of so many. Where an eighth of the multiplications takes less time than starting more kernels, nobody need compare them."""
        target = expectations.setting.target
        why_not = self.only_plain(target, math.prod(batch), rows, tile)
        if why_not:
            return {PLAIN: None, STRASSEN: why_not}
        times = partial(_expected, expectations, (*batch, rows), self.inner, self.columns, self.weight.data.dtype, tile)
        saved = math.prod((*batch, rows, self.inner, self.columns)) / (8 * target.lanes("float32") * target.fma_ports)
        if saved < KERNELS_MORE * target.start_cycles:
            return {name: Later(lambda name=name: times()[name]) for name in (PLAIN, STRASSEN)}
        return times()

    def only_plain(self, target: Target, batch: int, rows: int, tile: int) -> str:
        """Why it cannot run in seven parts, for so many matrices of ``rows``; "" where it can."""
        inner, columns, stored = self.inner, self.columns, self.stored
        lanes = target.lanes("float32")
        grown, growth = (PRODUCTS + bool(tile)) / 4, options.get("weight_growth")
        if options.get("accuracy") == "strict":
            return "the option accuracy is strict"
        if target.is_bare:
            return f"{target.cpu} has no memory to spare"
        if rows < 2 or not batch or inner % 2:
            return f"{rows} rows and sums of {inner} cannot both be halved"
        if columns < 4 * lanes:
            return f"there are {columns} columns, fewer than four vectors of {lanes}"
        if stored >= 4 and growth < grown:
            return f"weights grow to {grown:g} times their size, the option weight_growth allows {growth:g}"
        if stored < 4 and tile:  # whether the first rows are there is asked in the innermost loop, where their sums are made: half as fast as plain products
            return "its rows come in tiles, and its weights are stored in fewer bits"
        if not tile and _factors_of_data(batch * ((rows + 1) // 2), inner) > target.l3_bytes * target.factors_room:  # every panel of columns reads them again
            return "sums of its data fill more than half of the last cache"
        return ""


@lru_cache(maxsize=256)
def _expected(expectations: Expectations, rows: tuple[int, ...], inner: int, columns: int, stored: DType, tile: int) -> Mapping[str, float]:
    """The cycles of one core of each algorithm for data [*rows, inner]: of all kernels that it becomes."""
    x, narrow = stand_in("x", (*rows, inner)), stored.bits < 32
    plain = make("matmul", x, stand_in("weight", (inner, columns), stored), out_dtype="float32" if narrow else None)
    half, how = half_columns(columns, expectations.setting.target.lanes("float32")), {"tile": tile, "form": "strassen" if narrow else "winograd"}
    scales = make("nn.row_scale", x)
    powers = stand_in("powers", scales.sinfo.shape)
    sums = make("nn.strassen_data", x, powers, **how)
    shape = (inner, 2 * half) if narrow else (inner, PARTS * half) if tile else (PRODUCTS, inner // 2, half)
    product = make("nn.strassen_matmul", stand_in("sums", sums.sinfo.shape), stand_in("weight", shape, stored), x, powers, columns=columns, **how)
    expected = expectations.cycles
    return MappingProxyType({PLAIN: expected(plain, WEIGHT), STRASSEN: expected(scales) + expected(sums) + expected(product, WEIGHT)})


def product_of(call: graph.GraphExpr) -> Product | None:
    """The float32 product with a constant matrix (which may be stored in fewer bits) that a call is, or None."""
    if not is_call(call, "matmul") or not isinstance(call.args[1], graph.Constant):
        return None
    data, weight = call.args[0].sinfo, call.args[1]
    if data.shape is None or len(data.shape) < 2 or len(weight.data.shape) != 2:
        return None
    stored = weight.data.dtype
    if {str(data.dtype), str(call.sinfo.dtype)} != {"float32"} or not stored.is_float or stored.bits not in (8, 16, 32):
        return None
    *batch, rows, _ = data.shape
    return Product(tuple(batch), rows, *weight.data.shape, weight)


def pays(found: Product, expectations: Expectations, batch: tuple[int, ...], rows: int, tile: int = 0, times: float = LARGER) -> bool:
    """Whether a product with ``batch`` matrices of ``rows`` is expected to run so many ``times`` as fast, or more, in seven parts, whose pairs of rows come in
    whole tiles of ``tile``; where these read the matrix as it is stored, any gain is enough."""
    algorithms = found.algorithms(expectations, batch, rows, tile)
    plain, parts = algorithms[PLAIN], algorithms[STRASSEN]
    return isinstance(plain, float) and isinstance(parts, float) and parts * (1.0 if found.narrow else times) < plain


def _factors_of_data(pairs: int, inner: int) -> int:
    """Bytes of the sums of quarters of the data."""
    return 4 * PRODUCTS * pairs * (inner // 2)


def half_columns(columns: int, lanes: int) -> int:
    """The width of a half: vectors in a number that tiles of two or three divide."""
    vectors = -(-columns // (2 * lanes))
    if vectors > 2 * 8 and vectors % 2 and vectors % 3:
        vectors += -vectors % 3
    return vectors * lanes


def _divided(weight: graph.Constant, powers: np.ndarray) -> graph.Constant:
    if np.isin(powers, (0, 1)).all():
        return weight
    source = weight.data
    data = ConstData.derived(lambda a: divided(a, powers), (source,), "divided columns", shape=source.shape, dtype=source.dtype)
    return graph.Constant(data, weight.sinfo)


def _factors(weight: graph.Constant, half: int) -> graph.Constant:
    source = weight.data
    shape = (PRODUCTS, source.shape[0] // 2, half)
    data = ConstData.derived(lambda a: strassen_weight(a, half), (source,), "strassen", shape=shape, dtype=source.dtype)
    return graph.Constant(data, graph.TensorInfo(shape, source.dtype))


def _padded(weight: graph.Constant, half: int) -> graph.Constant:
    """The matrix itself, its columns in whole halves."""
    source = weight.data
    if source.shape[1] == 2 * half:
        return weight
    shape = (source.shape[0], 2 * half)
    data = ConstData.derived(lambda a: np.pad(a, ((0, 0), (0, 2 * half - a.shape[1]))), (source,), "strassen padded", shape=shape, dtype=source.dtype)
    return graph.Constant(data, graph.TensorInfo(shape, source.dtype))


def _shared(weight: graph.Constant, half: int) -> graph.Constant:
    source = weight.data
    shape = (source.shape[0], 4 * half)
    data = ConstData.derived(lambda a: shared_weight(a, half), (source,), "strassen shared", shape=shape, dtype=source.dtype)
    return graph.Constant(data, graph.TensorInfo(shape, source.dtype))
