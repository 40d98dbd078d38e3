# SPDX-License-Identifier: Apache-2.0
"""The first layers of a network of pictures, computed strip by strip, where memory is scarce.

    y = conv2d(conv2d(x, v), w)     ->     y = concat(conv2d(conv2d(x[rows 0 to 26], v), w), conv2d(conv2d(x[rows 22 to 48], v), w))

Pictures are largest in the first layers. A chain of convolutions, pools and elementwise operators needs only some rows of its input for some rows of its
result, so that all of it can be computed for a few rows after the other: between its layers there are strips, and the whole result is small. Rows at the
borders of strips are computed for both neighbours, which takes time (Lin et al., MCUNetV2, 2021). So nothing is divided unless it is asked for
(``--choose '*=strips4'``). How much of the chain is divided follows from the bytes between its layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod

from ...ir import graph
from ...ir.attrs import Attrs
from ...ir.dataclass import dataclass
from ...ir.errors import OptionError
from ...ir.module import IRModule
from ...ir.op import FuseKind, OpDef
from ...ops import make
from ...ops.dims import paddings, per_axis, static
from ...ops.layout import named_layout
from ...passes import pass_
from ...target import Target
from ..rewriter import GraphRewriter, site_of, uses
from ..tidy.dead_code import eliminate_dead_code

WHOLE = "whole"
COUNTS = {f"strips{n}": n for n in (2, 3, 4, 6, 8)}
_TOO_SMALL = "the chain has too few rows, or would take as much memory"
Rows = tuple[int, int]  # from, to


@dataclass(frozen=True)
class Window:
    """How rows of a result follow from rows of the operand: ``height`` of these, ``before`` and ``behind`` that are padded."""

    height: int
    taps: int
    stride: int
    dilation: int
    before: int
    behind: int

    def needed(self, rows: Rows) -> tuple[Rows, Rows]:
        """The operand's rows for some of the result, and how many are padded before and behind these."""
        first, last = rows[0] * self.stride - self.before, (rows[1] - 1) * self.stride - self.before + (self.taps - 1) * self.dilation + 1
        return (max(first, 0), min(last, self.height)), (max(-first, 0), max(last - self.height, 0))


@dataclass(frozen=True)
class _Step:
    """An operator of a chain: its variable and call, the operand's place among its arguments, the axes of rows in the operand and the result, and its
    window (None: rows of the result are those of the operand)."""

    var: graph.Var
    call: graph.Call
    place: int
    axis: int
    result_axis: int
    window: Window | None

    @property
    def height(self) -> int:
        return _shape(self.call)[self.result_axis]

    @property
    def nbytes(self) -> int:
        return prod(_shape(self.call)) * self.call.sinfo.dtype.bits // 8


@pass_("strips")
def strips(mod: IRModule) -> IRModule:
    """Divide the first layers of networks where that was asked for, on machines with little memory. Raises OptionError where it cannot be done at all."""
    target = mod.attrs.get("target") or Target.host()
    asked = next((name for _, name in mod.choices.asked if name in COUNTS), None)
    if not target.is_bare:
        if asked is not None:
            raise OptionError(f"{asked} is asked for on a machine with a system", hint="strips are for boards with little memory, such as cortex-m4")
        return mod
    made = _Strips(mod).module()
    if asked is not None and not any(c.kind == "strips" for c in made.choices.made):
        raise OptionError(f"{asked} is asked for, and the model does not begin with layers that can be divided",
                          why="that takes two convolutions or pools of pictures whose sizes are known, of which each is read by the next alone",
                          hint="leave it out")
    return eliminate_dead_code(made)


class _Strips(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.divided: dict[graph.Var, tuple[Sequence[_Step], int]] = {}  # by the last step's variable: the chain, and into how many strips

    def function(self, func: graph.Function) -> graph.Function:
        self.divided = {}
        for chain, site in chains(func):
            ends = {name: best_end(chain, n) for name, n in COUNTS.items()}
            windows = [s.window for s in chain if s.window is not None]
            alternatives = {WHOLE: None, **{name: None if end else _TOO_SMALL for name, end in ends.items()}}
            taken = self.choosing.decide(site, f"{len(windows)} layers, the first of {windows[0].height} rows", alternatives, WHOLE, "strips")
            if taken != WHOLE:
                part = chain[: ends[taken]]
                self.divided[part[-1].var] = part, COUNTS[taken]
        return super().function(func)

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        """The last step's result is put together of strips; what the other steps computed is not read any more."""
        if binding.var not in self.divided:
            return call
        chain, count = self.divided[binding.var]
        ends = [chain[-1].height * k // count for k in range(count + 1)]
        return make("concat", graph.Tuple(tuple(self._strip(chain, rows) for rows in pairwise(ends))), axis=chain[-1].result_axis)

    def _strip(self, chain: Sequence[_Step], rows: Rows) -> graph.GraphExpr:
        """Rows of the last step's result."""
        source, *behind = spans(chain, rows)
        axis, begin, end = (graph.ShapeExpr((n,)) for n in (chain[0].axis, *source))
        value = self.emit(make("strided_slice", self._operand(chain[0].call.args[chain[0].place]), axis, begin, end))
        for step, made in zip(chain, behind, strict=True):
            value = self.emit(self._step(step, value, made))
        return value

    def _step(self, step: _Step, value: graph.GraphExpr, made: Rows) -> graph.GraphExpr:
        """The operator on some rows of its operand, from which it makes rows of its result."""
        attrs, args = dict(step.call.attrs), [self._operand(a) for a in step.call.args]
        args[step.place] = value
        if step.window is not None:
            (before, behind), (_, (left, right)) = step.window.needed(made)[1], paddings(attrs["padding"], 2)
            attrs["padding"] = [before, left, behind, right]
        if step.call.op.name == "reshape":
            shape = list(_shape(step.call))
            shape[step.result_axis] = made[1] - made[0]
            args[1] = graph.ShapeExpr(tuple(shape))
        return graph.infer_call(step.call.replace(args=tuple(args), attrs=Attrs(attrs)))


def spans(chain: Sequence[_Step], rows: Rows) -> list[Rows]:
    """Which rows are needed of what a chain reads, and of each step's result, for some rows of the last one's."""
    found = [rows]
    for step in reversed(chain):
        found.append(step.window.needed(found[-1])[0] if step.window is not None else found[-1])
    return found[::-1]


def best_end(chain: Sequence[_Step], count: int) -> int:
    """How many steps of a chain are divided into so many strips, for the fewest bytes at a time; 0: none, since undivided it takes no more. Results are
    stored ahead of each window, and at the end."""
    ends = [k for k in range(1, len(chain) + 1) if k == len(chain) or chain[k].window is not None]
    sizes = [chain[e - 1].nbytes for e in ends]
    pairs = lambda nbytes: max((a + b for a, b in pairwise(nbytes)), default=0)
    least, best = pairs(sizes), 0
    for k, end in enumerate(ends[1:], 1):
        height = chain[end - 1].height
        if height < 2 * count:
            break
        rows, middle = -(-height // count), height // 2
        needed = spans(chain[:end], (middle - rows // 2, middle - rows // 2 + rows))
        strip = [(needed[e][1] - needed[e][0]) * size / chain[e - 1].height for e, size in zip(ends[: k + 1], sizes, strict=False)]
        most = max(pairs(strip) + sizes[k], 2 * sizes[k], pairs(sizes[k:]))  # strips are put together by copying them
        if most < least:
            least, best = most, end
    return best


# ---- chains ------------------------------------------------------------------------------------------------


def chains(func: graph.Function) -> Iterator[tuple[list[_Step], str]]:
    """Operators that follow each other from a parameter on, each the only reader of the one before, with at least two windows; and the name of the node
    that is the first of these."""
    count = uses(func)
    readers: dict[graph.Var, tuple[graph.VarBinding, int]] = {}  # the last of each variable
    bindings = [b for block in func.body.blocks for b in block.bindings if isinstance(b, graph.VarBinding) and isinstance(b.value, graph.Call)]
    for b in bindings:
        readers |= {a: (b, place) for place, a in enumerate(b.value.args) if isinstance(a, graph.Var)}
    for parameter in func.params:
        found, at = [], parameter
        while count.get(at) == 1 and at in readers:
            found.append(readers[at])
            at = found[-1][0].var
        first = next((k for k, (b, place) in enumerate(found) if _window(b.value, place) is not None), None)
        if first is None:
            continue
        steps = _steps(found, first)
        if sum(s.window is not None for s in steps) > 1:
            yield steps, site_of(found[first][0])


def _steps(found: Sequence[tuple[graph.VarBinding, int]], first: int) -> list[_Step]:
    """Those around the ``first`` window through which rows can be followed."""
    axis = _window(found[first][0].value, 0)[0]  # type: ignore[index]
    before: list[_Step] = []
    for binding, place in reversed(found[:first]):
        source = _moved(binding.value, place, axis, backwards=True)
        if source is None:
            break
        before.append(_Step(binding.var, binding.value, place, source, axis, None))
        axis = source
    steps = before[::-1]
    axis = _window(found[first][0].value, 0)[0]  # type: ignore[index]
    for binding, place in found[first:]:
        window = _window(binding.value, place)
        to = window[1] if window is not None and window[0] == axis else _moved(binding.value, place, axis) if window is None else None
        if to is None:
            break
        steps.append(_Step(binding.var, binding.value, place, axis, to, window[2] if window is not None else None))
        axis = to
    return steps


def _window(call: graph.Call, place: int) -> tuple[int, int, Window] | None:
    """The axes of rows in operand and result, and the window; None of other operators."""
    name, attrs = getattr(call.op, "name", ""), call.attrs
    if name not in ("nn.conv2d", "nn.max_pool2d") or place or attrs.get("ceil_mode") or _shape(call) is None or _shape(call.args[0]) is None:
        return None
    data = attrs["data_layout"] if name == "nn.conv2d" else attrs["layout"]
    at = [named_layout(spec).axes.index(("H", None)) for spec in (data, attrs["out_layout"] or data)]
    if name == "nn.conv2d":
        taps = static(call.args[1].sinfo.shape[named_layout(attrs["kernel_layout"]).axes.index(("H", None))])
    else:
        taps = per_axis(attrs["pool_size"], 2)[0]
    (before, behind), _ = paddings(attrs["padding"], 2)
    window = Window(_shape(call.args[0])[at[0]], taps or 0, per_axis(attrs["strides"], 2)[0], per_axis(attrs["dilation"], 2)[0], before, behind)
    return (*at, window) if max(before, behind) < window.taps else None


def _moved(call: graph.Call, place: int, axis: int, backwards: bool = False) -> int | None:
    """Where an axis of the operand is in the result, or that of the result in the operand; None where rows are not rows any more."""
    if not isinstance(call.op, OpDef) or _shape(call) is None or _shape(call.args[place]) is None:
        return None
    operand, result = _shape(call.args[place]), _shape(call)
    if call.op.name == "permute_dims":
        axes = [a % len(operand) for a in (call.attrs["axes"] or range(len(operand))[::-1])]
        return axes[axis] if backwards else axes.index(axis)
    if call.op.name == "reshape":
        a, b = (result, operand) if backwards else (operand, result)
        return next((k for k, n in enumerate(b) if n == a[axis] and prod(b[:k]) == prod(a[:axis])), None)
    if call.op.kind not in (FuseKind.ELEMENTWISE, FuseKind.BROADCAST) or operand != result:
        return None
    others = [a for k, a in enumerate(call.args) if k != place and isinstance(getattr(a, "sinfo", None), graph.TensorInfo)]
    from_end = axis - len(result)
    return axis if all(isinstance(a, graph.Constant) and (a.sinfo.ndim < -from_end or static(a.sinfo.shape[from_end]) == 1) for a in others) else None


def _shape(value: graph.GraphExpr) -> tuple[int, ...] | None:
    """The sizes of a tensor, where all of them are numbers."""
    shape = getattr(value.sinfo, "shape", None)
    found = tuple(map(static, shape)) if shape is not None else (None,)
    return None if None in found else found  # type: ignore[return-value]
