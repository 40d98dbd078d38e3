# SPDX-License-Identifier: Apache-2.0
"""The table of rules: how the gradient by an operator's result becomes the gradients by its operands.

    @rule("multiply")
    def multiply(s, g):
        x, y = s.args
        return g * y, g * x

A rule gives one gradient for each operand, None for one that has none. A gradient of a broader shape than its operand's (which was broadcast) is
summed to that shape by who calls the rule. Expressions may be nested; they are bound when they are emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir import graph
from ...ir.attrs import Attrs
from ...ir.dataclass import dataclass
from ...ir.errors import UnsupportedError
from ...ops import make
from ...ops.dims import same, static


@dataclass(frozen=True)
class Step:
    """A call of the function that is differentiated: ``out`` is the variable of its result, ``emit`` binds a value behind all that stands already."""

    call: graph.Call
    out: graph.Var
    builder: Any

    @property
    def args(self) -> tuple[Any, ...]:
        """The operands, without those left out at the end."""
        return tuple(a for a in self.call.args if not (isinstance(a, graph.Tuple) and not a.fields))

    @property
    def attrs(self) -> Attrs:
        """The attributes of the call."""
        return self.call.attrs

    def emit(self, value: Any) -> Any:
        """``value`` bound to a variable, for what is used more than once."""
        return value if isinstance(value, graph.Var) else self.builder.emit(value)

    def axes(self, operand: int = 0) -> list[int]:
        """The attribute ``axis`` as a list of axes of an operand, counted from the first; None stands for all."""
        ndim, axis = self.args[operand].sinfo.ndim, self.attrs["axis"]
        given = range(ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        return [int(k) % ndim for k in given] if ndim else []

    def sizes(self, operand: int = 0) -> list[int]:
        """The shape of an operand as numbers. Raises UnsupportedError where it is not known."""
        found = [static(d) for d in self.args[operand].sinfo.shape or ()]
        if self.args[operand].sinfo.shape is None or None in found:
            raise UnsupportedError(f"the gradient of R.{self.call.op.name} needs sizes that are numbers", where=self.out.name,
                             hint="give them: bind_sizes(func, {...})")
        return found  # type: ignore[return-value]

    def refuse(self, why: str) -> UnsupportedError:
        """The error for a use of the operator that has no gradient."""
        return UnsupportedError(f"R.{self.call.op.name} has no gradient where {why}", where=self.out.name)


Rule = Callable[[Step, Any], Sequence[Any]]
RULES: dict[str, Rule] = {}
COMPOSITIONS: dict[str, Callable[..., Any]] = {}
"""Operators that are taken apart before a function is differentiated: ``compose(emit, *operands, **attributes)`` of simpler ones."""
TE_GRADIENTS: dict[str, Callable[..., Any]] = {}
"""Functions from the gradient of a result and operands to gradients, all tensor expressions, by the name that ``call_tir_with_grad`` gives."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the decorated rule for these operators."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def composition(*names: str) -> Callable[[Any], Any]:
    """Register what the decorated function composes as what these operators are, where a gradient is asked for."""

    def register(function: Any) -> Any:
        COMPOSITIONS.update(dict.fromkeys(names, function))
        return function

    return register


def register_te_gradient(te_grad_name: str, te_grad_func: Callable[..., Any] | None = None) -> Any:
    """The gradient of tensor programs that ``R.call_tir_with_grad(..., te_grad_name=...)`` names: a function ``(output_grad, *operands, **kwargs)``
    that gives tensor expressions, one for each operand. A decorator where the function is not given."""
    if te_grad_func is None:
        return lambda found: register_te_gradient(te_grad_name, found)
    TE_GRADIENTS[te_grad_name] = te_grad_func
    return te_grad_func


@rule("call_tir_with_grad")
def program(s: Step, g: Any) -> Sequence[Any]:
    """The gradient that was registered for a tensor program."""
    name, operands = s.attrs["te_grad_name"], s.args[1].fields
    if name not in TE_GRADIENTS:
        raise UnsupportedError(f"no gradient is registered under the name {name}", where=s.out.name, hint=f'@register_te_gradient("{name}")')
    kwargs = dict(s.attrs["te_grad_kwargs"] or {})
    call = s.builder.call_te(lambda *a: TE_GRADIENTS[name](*a, **kwargs), g, *operands, primfunc_name_hint=name)
    made = s.emit(call)
    parts = [made] if isinstance(made.sinfo, graph.TensorInfo) else [graph.TupleGetItem(made, k) for k in range(len(made.sinfo.fields))]
    return None, parts


def number(value: float, like: Any) -> graph.Constant:
    """A scalar of the type of a tensor."""
    return graph.Constant.of(value, like.sinfo.dtype)


def shaped(x: Any, like: Any) -> Any:
    """x in the shape of another tensor."""
    if len(x.sinfo.shape) == len(like.sinfo.shape) and all(map(same, x.sinfo.shape, like.sinfo.shape)):
        return x
    return make("reshape", x, graph.ShapeExpr(like.sinfo.shape))


def zeros(like: Any) -> Any:
    """Zeros of the shape and type of a tensor."""
    return make("zeros", graph.ShapeExpr(like.sinfo.shape), dtype=like.sinfo.dtype)


def nothing(like: Any) -> Any:
    """A scalar zero that broadcasts."""
    return number(0.0, like)
