# SPDX-License-Identifier: Apache-2.0
"""The roles of axes and operands in a sum of products that instructions on tile registers compute, one of the operands constant.

    C[i, j] += sum over k < depth and g < group of A[i, k, g] * B[k, j, g]

Every axis of the result that moves the data alone may be a part of the rows i, each that moves the constant alone of the columns j, and each that is
summed over of the sum: the data is copied into tiles anyway, so axes are fused in whatever order (the product that a convolution is, im2col).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from ...arith import Analyzer
from ...intrinsics import TensorIntrin
from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.visit import free_vars, substitute, walk
from ...target import Target
from .accesses import Access, BlockInfo, extent_of, product
from .dot_product import MOST_BITS
from .mappings import described

Slide = tuple[int, int, int, int]
"""An axis of rows, one of a window that moves the data along it, by their positions; stride and dilation."""


@dataclass(frozen=True)
class TileInstruction:
    """An instruction of this form, its sizes, and the types of A, B and C. ``scope`` is that of its operands' memory."""

    intrin: TensorIntrin
    rows: int
    columns: int
    depth: int
    group: int
    types: tuple[str, str, str]

    @property
    def scope(self) -> str:
        """Of the memory of its operands."""
        return self.intrin.storage["C"]

    @property
    def products(self) -> int:
        """How many one use of it adds to each sum."""
        return self.depth * self.group


def tile_instructions(target: Target) -> tuple[TileInstruction, ...]:
    """The instructions of this form that a machine has. Source text for another compiler has none: they are LLVM's intrinsics."""
    return () if target.kind != "llvm" else _instructions(target.features, tuple(TensorIntrin.names()))


@lru_cache(maxsize=64)
def _instructions(features: tuple[str, ...], names: tuple[str, ...]) -> tuple[TileInstruction, ...]:
    found = [_as_tiles(i) for i in TensorIntrin.all() if i.companions and i.needs and set(i.needs) <= set(features)]
    return tuple(i for i in found if i is not None)


def tile_gains(target: Target) -> dict[tuple[str, str, str], float]:
    """For the types of each such instruction, how many times as many products as multiply-adds of float32 a machine computes by it."""
    lanes, found = target.lanes("float32"), tile_instructions(target)
    return {t.types: t.rows * t.columns * t.products / (t.intrin.cost.slots_on(target.features) * lanes) for t in found if t.intrin.cost is not None}


def _as_tiles(intrin: TensorIntrin) -> TileInstruction | None:
    what = described(intrin)
    if what is None or len(what.axes) != 4 or not {"A", "B", "C"} <= set(intrin.storage) or not {"init", "store", "load_A", "load_B"} <= set(intrin.companions):
        return None
    i, j, k, g = (a.var for a in what.axes)
    by_name = {b.name: (b, indices) for b, indices in what.indices.items()}
    if {n: at for n, (_, at) in by_name.items()} != {"A": (i, k, g), "B": (k, j, g), "C": (i, j)}:
        return None
    rows, columns, depth, group = (extent_of(a) or 1 for a in what.axes)
    types = (str(by_name["A"][0].dtype), str(by_name["B"][0].dtype), str(by_name["C"][0].dtype))
    return TileInstruction(intrin, rows, columns, depth, group, types)


@dataclass(frozen=True)
class TileProduct:
    """The block, which factor of its products the data is, the constant, and axes by position: those that rows are fused from, those of columns, and
    those of the sum: those of windows, which move the data where rows do (``windows``), then others, the one whose neighbours lie side by side in the data
    last. ``run``: how many elements of the data those are at a time. ``slides``: for each axis of a window the one of rows that it moves the data along,
    itself, stride and dilation; None where the data is not one tensor that windows of known sizes slide over."""

    info: BlockInfo
    instruction: TileInstruction
    factor: int
    weight: Access
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    windows: tuple[int, ...]
    others: tuple[int, ...]
    run: int
    slides: tuple[Slide, ...] | None

    @property
    def reduce(self) -> tuple[int, ...]:
        """The axes of the sum."""
        return self.windows + self.others

    def extent(self, axes: tuple[int, ...]) -> tir.Expr:
        """Of several axes fused."""
        return tir.product_of([self.info.block.iter_vars[k].dom.extent for k in axes])

    def number(self, axes: tuple[int, ...], unknown: int) -> int:
        """The extent as a number, ``unknown`` for each that is none."""
        out = 1
        for k in axes:
            found = extent_of(self.info.block.iter_vars[k])
            out *= unknown if found is None else found
        return out


def matches(info: BlockInfo, is_constant: Callable[[tir.Buffer], bool], target: Target) -> Iterator[TileProduct | tuple[str, str]]:
    """The products that a block is, or for an instruction of the same types its name and why that cannot be arranged."""
    found = factors(info)
    if found is None:
        return
    total = str(info.stores[0].buffer.dtype)
    if any(x.dtype.bits > MOST_BITS for x in found):
        return  # which most products are: the table of instructions need not even be read
    for factor in (0, 1):
        data, other = found[factor], found[1 - factor]
        for instruction in tile_instructions(target):
            if instruction.types == (str(data.dtype), str(other.dtype), total):
                made = arranged(info, instruction, factor, is_constant)
                if isinstance(made, TileProduct) and not info.stores[0].steps(info.block.iter_vars[made.columns[-1]].var, 1):
                    made = "neighbours along its columns do not follow each other in the result"
                yield (instruction.intrin.name, made) if isinstance(made, str) else made


def factors(info: BlockInfo) -> tuple[tir.Expr, tir.Expr] | None:
    """Both factors of the products that a block sums, without conversions to the type of the sum."""
    store = info.block.body
    if type(store) is not tir.BufferStore or type(store.value) is not tir.Add or info.block.init is None:
        return None
    before = store.buffer[store.indices]
    terms = [b for a, b in ((store.value.a, store.value.b), (store.value.b, store.value.a)) if a is before]
    if not terms or type(terms[0]) is not tir.Mul:
        return None
    plain = lambda e: e.value if type(e) is tir.Cast else e
    return plain(terms[0].a), plain(terms[0].b)


def arranged(info: BlockInfo, instruction: TileInstruction, factor: int, is_constant: Callable[[tir.Buffer], bool]) -> TileProduct | str:
    """The roles of the axes where ``factor`` (0 or 1) of the products is the data, and the other one the constant; or why there are none. The block sums
    products (``factors``)."""
    axes, found = info.block.iter_vars, factors(info)
    assert found is not None
    data, other = found[factor], found[1 - factor]
    if type(other) is not tir.BufferLoad or not is_constant(other.buffer):
        return f"{other.buffer.name if type(other) is tir.BufferLoad else 'a factor'} is no constant, so it cannot be laid out when the model is compiled"
    weight = Access(other.buffer, other.indices, False)
    place = {a.var: k for k, a in enumerate(axes)}
    at = [place.get(i) for i in weight.indices if isinstance(i, tir.Var)]
    if not all(isinstance(i, tir.Var) or (isinstance(i, tir.IntImm) and i.value == 0) for i in weight.indices) or None in at or len(set(at)) < len(at):
        return f"{weight.buffer.name} is not indexed by axes alone"
    if any(extent_of(axes[k]) is None for k in at):
        return f"a dimension of {weight.buffer.name} is not known"
    moving = free_vars(data)
    long = [k for k, a in enumerate(axes) if extent_of(a) != 1 or (a.var in moving and k in at)]  # what runs once is no axis of a tile
    reduce = [k for k in long if axes[k].kind is tir.IterKind.REDUCE]
    spatial = [k for k in long if axes[k].kind is tir.IterKind.SPATIAL]
    if any(axes[k].var not in moving or k not in at for k in reduce):
        return "an axis of the sum does not move both operands"
    if any(axes[k].var in moving and k in at and extent_of(axes[k]) != 1 for k in spatial):
        return "an axis of the result moves both operands"
    summed, wide = (product([extent_of(axes[k]) for k in chosen], 1) for chosen in (reduce, [k for k in spatial if k in at]))
    if summed < instruction.products or wide < instruction.columns:
        return f"its {summed} products for each result and {wide} columns fill no tile of {instruction.products} by {instruction.columns}"
    loads = [Access(n.buffer, n.indices, False) for n in walk(data) if type(n) is tir.BufferLoad and any(axes[k].var in free_vars(n) for k in reduce)]
    if not loads:  # beside what is one number for the whole sum, such as what borders are filled with
        return "its data is computed of nothing that moves along the sum"
    columns = tuple(sorted((k for k in spatial if k in at), key=lambda k: _far(info.stores[0], axes[k].var)))
    rows = tuple(k for k in spatial if k not in at)
    if not columns:
        return "it has no columns"
    slides = lambda k: any(axes[k].var in free_vars(i) and any(axes[r].var in free_vars(i) for r in rows) for i in loads[0].indices)
    by_distance = sorted(reduce, key=lambda k: _far(loads[0], axes[k].var))
    windows, others = (tuple(k for k in by_distance if slides(k) is wanted) for wanted in (True, False))
    last = axes[(*windows, *others)[-1]]
    run = (extent_of(last) or 1) if all(x.steps(last.var, 1) for x in loads) else 1
    return TileProduct(info, instruction, factor, weight, rows, columns, windows, others, run, _slides(axes, loads, rows, windows))


def _slides(axes: tuple[tir.IterVar, ...], loads: list[Access], rows: tuple[int, ...], windows: tuple[int, ...]) -> tuple[Slide, ...] | None:
    """How the axes of a window move the data (``TileProduct.slides``)."""
    found = []
    for w in windows:
        window = axes[w].var
        at = {i for x in loads for i in x.indices if window in free_vars(i)}
        along = [r for r in rows if any(axes[r].var in free_vars(i) for i in at)]
        if len(along) != 1 or any(extent_of(axes[k]) is None for k in (w, *along)):
            return None
        steps = {tuple(_step(i, v) for v in (axes[along[0]].var, window)) for i in at}
        stride, dilation = steps.pop() if len(steps) == 1 else (0, 0)
        if stride < 1 or dilation < 1 or stride > 1 < dilation:
            return None
        found.append((along[0], w, stride, dilation))
    return tuple(found) if len({r for r, *_ in found}) == len(found) else None


def _step(index: tir.Expr, var: tir.Var) -> int:
    """How far an index moves along a variable; 0 where that is no number."""
    step = Analyzer().simplify(substitute(index, {var: var + 1}) - index)
    return step.value if isinstance(step, tir.IntImm) else 0


def _far(access: Access, var: tir.Var) -> tuple[int, int]:
    """A key by which axes are sorted, those with a larger stride first."""
    stride = access.stride(var)
    return (1, -abs(stride)) if isinstance(stride, int) else (0, 0)
