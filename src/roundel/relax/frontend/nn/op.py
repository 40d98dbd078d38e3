# SPDX-License-Identifier: Apache-2.0
"""Operators on the tensors of a module: every operator of graph functions by its name, with or without ``nn``: ``op.relu(x)``, ``op.softmax(x, axis=-1)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from roundel.builder import BlockBuilder
from roundel.ir import graph, tir
from roundel.ir.errors import BuilderError, RoundelError
from roundel.ir.op import all_ops, get_op
from roundel.script.relax import call_dps_packed, call_tir

from .core import Tensor


def _builder() -> BlockBuilder:
    bb = BlockBuilder.current()
    if bb is None:
        raise BuilderError("operators compute inside of an export", hint="call them in a method of a module, and module.export_tvm({...})")
    return bb


def emit(value: graph.GraphExpr) -> graph.Var:
    """A graph value, bound in the function that is being exported."""
    return _builder().emit(value)


def wrap(value: Any) -> Any:
    """A graph value, bound in the function that is being exported, as a tensor; of a tuple a tuple of tensors."""
    bound = emit(value)
    if isinstance(bound.sinfo, graph.TupleInfo):
        return tuple(wrap(graph.TupleGetItem(bound, k)) for k in range(len(bound.sinfo.fields)))
    return Tensor(bound)


def wrap_nested(expr: Any, name: str = "") -> Any:
    """`wrap` by TVM's name."""
    return wrap(expr)


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.expr
    return type(value)(map(_plain, value)) if isinstance(value, tuple | list) else value


def call(name: str, *args: Any, **attrs: Any) -> Any:
    """The operator of this name of tensors, numbers and shapes."""
    _builder()
    return wrap(graph.make_call(get_op(name), [_plain(a) for a in args], {k: _plain(v) for k, v in attrs.items()}))


def _convolution(name: str) -> Callable[..., Tensor]:
    def convolve(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
                 **attrs: Any) -> Tensor:
        """A convolution and, where there is a bias, its sum."""
        out = call(name, x, weight, strides=stride, padding=padding, dilation=dilation, groups=groups, **attrs)
        return out if bias is None else out + bias.reshape((1, -1) + (1,) * (out.ndim - 2))

    return convolve


conv1d, conv2d, conv3d = (_convolution(f"nn.conv{n}d") for n in (1, 2, 3))


def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors one after another along a dimension."""
    return call("concat", list(tensors), axis=dim)


def split(x: Tensor, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Parts along an axis."""
    return call("split", x, indices_or_sections=indices_or_sections, axis=axis)


def tensor_expr_op(function: Callable[..., Any], name_hint: str, args: Sequence[Any], **attrs: Any) -> Any:
    """What a function of tensor expressions computes."""
    return wrap(_builder().call_te(function, *map(_plain, args), primfunc_name_hint=name_hint, **attrs))


def extern(name: str, args: Sequence[Any], out: Any) -> Any:
    """The call of a function known to the FFI by name, destination passing; ``out`` are the tensors it makes, as ``Tensor.placeholder``."""
    return wrap(call_dps_packed(name, [_plain(a) for a in args], _infos(out)))


def tensor_ir_op(func: Any, name_hint: str, args: Sequence[Any], out: Any) -> Any:
    """The call of a tensor program, which joins the module; ``out`` are the tensors it makes, as ``Tensor.placeholder``. Whole numbers among
    ``args`` are behind the tensors."""
    values = [_plain(a) for a in args]
    numbers = [v for v in values if isinstance(v, int | tir.Expr)]
    tensors = [v for v in values if not isinstance(v, int | tir.Expr)]
    return wrap(call_tir(_builder().add_func(func, name_hint), tensors, _infos(out), numbers or None))


def _infos(out: Any) -> Any:
    return [o.expr.sinfo for o in out] if isinstance(out, tuple | list) else out.expr.sinfo


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    from .torch_names import __dict__ as renamed  # they are made of these (the package asks here for what it lacks, so it cannot be asked for the module)

    if name in renamed:
        return renamed[name]
    found = next((full for full in (name, f"nn.{name}", f"image.{name}") if full in all_ops()), None)
    if found is None:
        try:
            get_op(name)  # which names those that may be meant
        except RoundelError as error:
            raise AttributeError(str(error)) from None
    return lambda *args, **attrs: call(str(found), *args, **attrs)
