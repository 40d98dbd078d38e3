# SPDX-License-Identifier: Apache-2.0
"""Operators in the layouts that somebody asks for: transposed operands, and what follows works in the new order as far as it can.

    y = R.nn.conv2d(x, w)              lv = R.permute_dims(x, axes=[0, 2, 3, 1])
    z = R.nn.relu(y)                   lv1 = R.permute_dims(w, axes=[0, 2, 3, 1])
                                ->     lv2 = R.nn.conv2d(lv, lv1, data_layout="NHWC", kernel_layout="OHWI", out_layout="NHWC")
                                       lv3 = R.nn.relu(lv2)
                                       z = R.permute_dims(lv3, axes=[0, 3, 1, 2])

Every value that exists in another order is followed by its transposition back. An operator whose operand is such a transposition, and that can work in
any order, computes on what was transposed and hands the transposition on; two that meet become one, or none. What remains unused is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...ir import graph
from ...ir.errors import OptionError
from ...ir.module import IRModule
from ...ir.op import FuseKind, OpDef, get_op
from ...ops import make
from ...relax.analysis import remove_all_unused
from ..rewriter import GraphRewriter, is_call

Order = tuple[int, ...]
"""Which axis of the value stands where: ``permute_dims(value, order)`` is how it is held."""
Layouts = Mapping[str, Sequence[str]]


def convert_layout(mod: IRModule, layouts: Layouts | Callable[[graph.Call], Layouts]) -> IRModule:
    """The module with convolutions (and ``image.resize2d``) in other layouts; functions keep their parameters and results.

    ``layouts`` has for names of operators the layouts of data, kernel and, where it is another, result: ``{"nn.conv2d": ["NHWC", "OHWI"]}``;
    or it is a function that gives such a table for a call. Layouts with blocks of channels are those of the pass ``block_channels``.
    Raises OptionError for operators without layouts and for layouts that have other letters than an operator's.
    """
    made = _Convert(mod, layouts).module()
    return made.with_functions({name: remove_all_unused(f) for name, f in made.items() if f is not mod.functions.get(name) and isinstance(f, graph.Function)})


def order_between(old: str, new: str, name: str) -> Order:
    """The order in which a tensor of one layout is held in another. Raises OptionError where these do not have the same letters."""
    if sorted(old) != sorted(new):
        raise OptionError(f"{name} in layout {old} cannot be converted to {new}", hint="the letters are the same in another order, as NCHW and NHWC; "
                          'blocks of channels (NCHW16c) are chosen by the pass "block_channels"')
    return tuple(old.index(letter) for letter in new)


def _inverse(order: Order) -> Order:
    return tuple(order.index(k) for k in range(len(order)))


class _Convert(GraphRewriter):
    """``orders``: how variables that this pass made hold the values which they stand for."""

    def __init__(self, mod: IRModule, layouts: Layouts | Callable[[graph.Call], Layouts]) -> None:
        super().__init__(mod)
        if not callable(layouts):
            _require_layouts(layouts)
        self.layouts = layouts
        self.orders: dict[graph.Var, Order] = {}
        self.hint = "lv"

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not isinstance(call.op, OpDef):
            return call
        self.hint = binding.var.name
        wanted = self._wanted(call)
        if wanted is not None:
            return self._in_layouts(call, wanted)
        order = next((self.orders[v] for v in map(self._held, _tensors(call)) if v is not None), None)
        handler = _handler(call.op) if order is not None else None
        made = handler(self, call, order) if handler is not None and order is not None else None
        return call if made is None else made

    def _wanted(self, call: graph.Call) -> Sequence[str] | None:
        if not _layouts_of(call.op):
            return None
        table = self.layouts(call) if callable(self.layouts) else self.layouts
        found = next((v for name, v in table.items() if call.op.name == name), None)  # names compare with TVM's too
        if found is not None and callable(self.layouts):
            _require_layouts({call.op.name: found})
        return found

    def _in_layouts(self, call: graph.Call, wanted: Sequence[str]) -> graph.GraphExpr:
        """The operator in these layouts of data, kernel and result."""
        names, name = _layouts_of(call.op), call.op.name
        old = [call.attrs[n] for n in names]
        orders = [order_between(o, w, name) for o, w in zip(old, wanted, strict=False)]
        attrs = dict(zip(names, wanted, strict=False))
        result = order_between(call.attrs.get("out_layout") or old[0], wanted[len(names)] if len(wanted) > len(names) else wanted[0], name)
        if "out_layout" in call.op.attributes:
            attrs["out_layout"] = wanted[len(names)] if len(wanted) > len(names) else wanted[0]
        if all(o == tuple(sorted(o)) for o in (*orders, result)):
            return call
        args = [self.held(a, o) for a, o in zip(call.args, orders, strict=False)]
        return self.hand_on(call, [*args, *call.args[len(args):]], attrs, result)

    def _held(self, value: Any) -> graph.Var | None:
        """The variable that holds a value in another order."""
        made = self.producer(value)
        inner = made.args[0] if is_call(made, "permute_dims") else None  # type: ignore[union-attr]
        return inner if isinstance(inner, graph.Var) and inner in self.orders else None

    def held(self, value: Any, order: Order) -> Any:
        """A tensor in this order; one of fewer axes has those in front of them as 1, and numbers stay what they are."""
        ndim = getattr(value.sinfo, "ndim", 0)
        if ndim == 0 or not isinstance(value.sinfo, graph.TensorInfo):
            return value
        if ndim < len(order):
            value = self.emit(make("expand_dims", value, axis=tuple(range(len(order) - ndim))))
        made = self.producer(value)
        if is_call(made, "permute_dims"):
            axes = made.attrs["axes"]  # type: ignore[union-attr]
            axes = tuple(range(len(order)))[::-1] if axes is None else tuple(a % len(order) for a in axes)
            value, order = made.args[0], tuple(axes[k] for k in order)  # type: ignore[union-attr]
        return value if order == tuple(range(len(order))) else self.emit(make("permute_dims", value, axes=order))

    def hand_on(self, call: graph.Call, args: Sequence[Any], attrs: Mapping[str, Any], order: Order) -> graph.GraphExpr:
        """The call of these operands, whose results hold in this order what the call gave, with the transposition back."""
        made = self.emit(graph.infer_call(call.replace(args=tuple(args), attrs=call.attrs | attrs, sinfo=graph.ObjectInfo())), self.hint)
        if not isinstance(made.sinfo, graph.TupleInfo):
            return self._back(made, order)
        fields = [self.emit(graph.TupleGetItem(made, k), self.hint) for k in range(len(made.sinfo.fields))]
        return graph.Tuple(tuple(self._back(f, order) if f.sinfo.ndim == len(order) else f for f in fields))  # type: ignore[attr-defined]

    def _back(self, value: Any, order: Order) -> graph.GraphExpr:
        if order == tuple(range(len(order))):
            return value
        self.orders[value] = order
        return make("permute_dims", value, axes=_inverse(order))


def _require_layouts(layouts: Layouts) -> None:
    for name, wanted in layouts.items():
        fewest = len(_layouts_of(get_op(name.removeprefix("relax."))))
        if not fewest:
            raise OptionError(f"{name} has no layout", hint="layouts are asked for of convolutions, pooling and image.resize2d; what follows takes theirs")
        if isinstance(wanted, str) or not fewest <= len(wanted) < 2 * fewest:
            raise OptionError(f"the layouts {wanted!r} of {name} are not those of data and kernel", hint='{"nn.conv2d": ["NHWC", "OHWI"]}')


def _layouts_of(op: OpDef) -> tuple[str, ...]:
    """The attributes of an operator that say how its operands lie."""
    return tuple(n for n in ("data_layout", "kernel_layout", "layout") if n in op.attributes and "grid" not in op.operands)


def _tensors(call: graph.Call) -> list[Any]:
    """The tensors among the operands of a call, those of tuples included."""
    return [v for a in call.args for v in (a.fields if isinstance(a, graph.Tuple) else (a,)) if isinstance(v, graph.Var)]


# What works in any order. Each takes the call and the order of its first operand that is held in one, and gives its results, or None where it cannot.


def _pointwise(self: _Convert, call: graph.Call, order: Order) -> graph.GraphExpr | None:
    """One element of the result from one of each operand."""
    tensors = [a.sinfo for a in call.args if isinstance(a.sinfo, graph.TensorInfo)]
    plain = all(isinstance(a.sinfo, graph.TensorInfo | graph.PrimInfo) for a in call.args)
    if not plain or any(not 0 <= t.ndim <= len(order) for t in tensors) or getattr(call.sinfo, "ndim", -1) != len(order):
        return None
    return self.hand_on(call, [self.held(a, order) for a in call.args], {}, order)


def _along(self: _Convert, call: graph.Call, order: Order) -> graph.GraphExpr | None:
    """Along the axes that an attribute names; operands beside the data have no other axes."""
    data, *rest = call.args
    fields = data.fields if isinstance(data, graph.Tuple) else (data,)
    attr = "axes" if "axes" in call.op.attributes else "axis"
    axes = call.attrs[attr]
    numbers = tuple(order.index(a % len(order)) for a in ((axes,) if isinstance(axes, int) else axes or ()))
    if axes is None or any(f.sinfo.ndim != len(order) for f in fields) or (rest and numbers != tuple(sorted(numbers))):
        return None
    held = [self.held(f, order) for f in fields]
    moved = graph.Tuple(tuple(held)) if isinstance(data, graph.Tuple) else held[0]
    return self.hand_on(call, [moved, *rest], {attr: numbers[0] if isinstance(axes, int) else numbers}, order)


def _reduced(self: _Convert, call: graph.Call, order: Order) -> graph.GraphExpr | None:
    """Axes are gone, or have length 1, in the result."""
    axes = call.attrs["axis"]
    if axes is None and call.op.name in ("argmax", "argmin"):
        return None  # where it is in the plain order
    gone = set(range(len(order))) if axes is None else {a % len(order) for a in ((axes,) if isinstance(axes, int) else axes)}
    numbers = tuple(sorted(order.index(a) for a in gone))
    stays = [a for a in order if a not in gone]
    left = order if call.attrs["keepdims"] else tuple(sorted(stays).index(a) for a in stays)
    moved = None if axes is None else numbers[0] if isinstance(axes, int) else numbers
    return self.hand_on(call, [self.held(call.args[0], order)], {"axis": moved}, left)


def _window(self: _Convert, call: graph.Call, order: Order) -> graph.GraphExpr | None:
    """The layout is an attribute."""
    old = call.attrs["layout"]
    layout = "".join(old[k] for k in order)
    attrs = {"layout": layout} | ({"out_layout": layout} if call.attrs.get("out_layout") else {})
    return self.hand_on(call, [self.held(call.args[0], order), *call.args[1:]], attrs, order)


_ALONG = {"nn.softmax", "nn.log_softmax", "nn.l2_normalize", "nn.layer_norm", "nn.rms_norm", "nn.batch_norm", "nn.prelu", "nn.lrn", "quantize", "dequantize",
          "concat", "split", "flip"}


def _handler(op: OpDef) -> Callable[[_Convert, graph.Call, Order], graph.GraphExpr | None] | None:
    """How an operator works in another order; None where it does not."""
    if op.name in _ALONG:
        return _along
    if op.kind is FuseKind.REDUCTION and set(op.attributes) == {"axis", "keepdims"}:
        return _reduced
    if _layouts_of(op) == ("layout",):
        return _window
    return _pointwise if op.kind in (FuseKind.ELEMENTWISE, FuseKind.BROADCAST) and "axis" not in op.attributes else None


__all__ = ["convert_layout", "order_between"]
