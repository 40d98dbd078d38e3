# SPDX-License-Identifier: Apache-2.0
"""Optimizers as graph functions ``(params, gradients, states) -> (params, states)``, all three tuples.

    opt = SGD(0.1).init([w, b])
    mod = mod.with_functions({"SGD": opt.get_function()})
    params, opt.state = run["SGD"](params, gradients, opt.state)

The first state counts the steps. Each optimizer says what other states it has and how one parameter moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from ..builder import BlockBuilder
from ..ir import graph
from ..ir.errors import OptionError, RoundelError
from ..ops import make


class _Step:
    """Arithmetic on tensors of one type, bound in a function: numbers are constants of that type."""

    def __init__(self, builder: BlockBuilder, dtype: Any) -> None:
        self.builder, self.dtype = builder, dtype

    def __call__(self, op: str, *operands: Any, name: str = "lv") -> Any:
        args = [graph.Constant.of(np.asarray(a), self.dtype) if isinstance(a, float) else a for a in operands]
        return self.builder.emit(make(op, *args), name)

    def times(self, factor: float, value: Any) -> Any:
        """The product, where the factor is not 1."""
        return value if factor == 1.0 else self("multiply", factor, value)


def _rest(share: float) -> float:
    """``1 - share`` in decimals: of 0.9 it is 0.1."""
    return float(1 - Decimal(str(share)))


class Optimizer:
    """Base of optimizers. ``param_list`` are the variables that are moved, all of one type (``dtype``), ``state`` the arrays before the first step."""

    numbers: tuple[float, ...] = ()
    """Other states that are numbers, before the first step."""
    tensors = 0
    """How many states of its own shape each parameter has; all first ones stand before all second ones."""

    def __init__(self, name: str, lr: float, weight_decay: float = 0.0) -> None:
        self.name, self.lr, self.weight_decay = name, float(lr), float(weight_decay)
        self.param_list: list[graph.Var] | None = None
        self.dtype: Any = None
        self.state: tuple[np.ndarray, ...] | None = None

    def init(self, params: graph.Var | Sequence[graph.Var]) -> Optimizer:
        """Say which parameters are moved; gives the optimizer itself. Raises OptionError for those that are no tensors of floats of known sizes, all of one
        type and each once."""
        found = [params] if isinstance(params, graph.Var) else list(params)
        for k, p in enumerate(found):
            info = p.sinfo if isinstance(p, graph.Var) else None
            if not isinstance(info, graph.TensorInfo) or info.dtype is None or not info.dtype.is_float:
                raise OptionError(f"{getattr(p, 'name', p)} is {info or type(p).__name__}, an optimizer moves tensors of floats")
            if info.dtype != found[0].sinfo.dtype:  # type: ignore[attr-defined]
                raise OptionError(f"{p.name} is {info.dtype} and {found[0].name} {found[0].sinfo.dtype}, all parameters have one type")  # type: ignore[attr-defined]
            if any(p is q for q in found[:k]):
                raise OptionError(f"{p.name} is given twice")
        self.param_list, self.dtype = found, found[0].sinfo.dtype if found else None  # type: ignore[attr-defined]
        moving = [np.zeros(_sizes(p), self.dtype.numpy) for _ in range(self.tensors) for p in found]
        self.state = (np.zeros((), "int64"), *(np.asarray(n, self.dtype.numpy) for n in self.numbers), *moving)
        return self

    def get_function(self) -> graph.Function:
        """The function. Raises RoundelError before ``init``."""
        if self.param_list is None:
            raise RoundelError(f"{self.name} does not know what it moves", hint="optimizer.init(params) comes before get_function()")
        tensors = [p.sinfo for p in self.param_list]
        number = graph.TensorInfo((), self.dtype)
        states = [graph.TensorInfo((), "int64"), *(number for _ in self.numbers), *(t for _ in range(self.tensors) for t in tensors)]
        params, gradients, given = (graph.Var(name, graph.TupleInfo(tuple(infos))) for name, infos in (
            ("params", tensors), ("gradients", tensors), ("optim_states", states)))
        builder = BlockBuilder()
        with builder.function(self.name, [params, gradients, given]):
            with builder.dataflow():
                step = _Step(builder, self.dtype)
                field = lambda whole, k, name: builder.emit(graph.TupleGetItem(whole, k), name)
                count = builder.emit(make("add", field(given, 0, "num_steps"), graph.Constant.of(1, "int64")), "num_steps_new")
                numbers = self.move_numbers(step, *(field(given, 1 + k, "number") for k in range(len(self.numbers))))
                made = []
                for k, p in enumerate(self.param_list):
                    value, grad = field(params, k, p.name), field(gradients, k, f"{p.name}_grad")
                    own = [field(given, 1 + len(self.numbers) + j * len(tensors) + k, f"{p.name}_state") for j in range(self.tensors)]
                    if self.weight_decay:
                        grad = step("add", step.times(self.weight_decay, value), grad, name=f"{p.name}_grad_new")
                    made.append(self.move(step, p.name, value, grad, own, numbers))
                moved = builder.emit_output(graph.Tuple(tuple(m[0] for m in made)), "params_new")
                kept = (count, *numbers, *(m[1 + j] for j in range(self.tensors) for m in made))
                after = builder.emit_output(graph.Tuple(kept), "optim_states_new")
            builder.emit_func_output(graph.Tuple((moved, after)))
        return builder.finalize()[self.name]

    def move_numbers(self, step: _Step, *numbers: Any) -> Sequence[Any]:
        """The states that are numbers after the step."""
        return numbers

    def move(self, step: _Step, name: str, value: Any, grad: Any, states: Sequence[Any], numbers: Sequence[Any]) -> tuple[Any, ...]:
        """A parameter after the step, then its states."""
        raise NotImplementedError(f"{type(self).__name__} has no move")


def _sizes(param: graph.Var) -> tuple[int, ...]:
    try:
        return tuple(int(d) for d in param.sinfo.shape)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise OptionError(f"{param.name} is {param.sinfo}, its sizes are not known", hint="rd.builder.bind_sizes puts numbers in") from None


class SGD(Optimizer):
    """Stochastic gradient descent: ``value - lr * (grad + weight_decay * value)``."""

    def __init__(self, lr: float, weight_decay: float = 0.0) -> None:
        super().__init__("SGD", lr, weight_decay)

    def move(self, step: _Step, name: str, value: Any, grad: Any, states: Sequence[Any], numbers: Sequence[Any]) -> tuple[Any, ...]:
        """The parameter less ``lr`` times its gradient."""
        return (step("subtract", value, step.times(self.lr, grad), name=f"{name}_new"),)


class MomentumSGD(Optimizer):
    """Gradient descent with a velocity ``v = momentum * v + (1 - dampening) * grad``: ``value - lr * v``, with ``nesterov`` ``value - lr * (grad +
    momentum * v)`` (Sutskever et al., On the importance of initialization and momentum in deep learning, 2013)."""

    tensors = 1

    def __init__(self, lr: float, momentum: float, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False) -> None:
        super().__init__("MomentumSGD", lr, weight_decay)
        self.momentum, self.dampening, self.nesterov = float(momentum), float(dampening), nesterov

    def move(self, step: _Step, name: str, value: Any, grad: Any, states: Sequence[Any], numbers: Sequence[Any]) -> tuple[Any, ...]:
        """The parameter less ``lr`` times its velocity, then the velocity."""
        new = step("add", step("multiply", self.momentum, states[0]), step.times(_rest(self.dampening), grad), name=f"{name}_v_new")
        by = step("add", grad, step("multiply", self.momentum, new), name=f"{name}_g_nest") if self.nesterov else new
        return step("subtract", value, step.times(self.lr, by), name=f"{name}_new"), new


class Adam(Optimizer):
    """Kingma and Ba, Adam: A Method for Stochastic Optimization (2015). States besides the count: the powers of both ``betas``, then the first and the
    second moments of the gradients."""

    numbers = (1.0, 1.0)
    tensors = 2

    def __init__(self, lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0) -> None:
        super().__init__("Adam", lr, weight_decay)
        self.betas, self.eps = (float(betas[0]), float(betas[1])), float(eps)

    def move_numbers(self, step: _Step, *numbers: Any) -> Sequence[Any]:
        """The powers of both betas, once more multiplied."""
        return [step("multiply", n, beta, name="beta_prod") for n, beta in zip(numbers, self.betas, strict=True)]

    def move(self, step: _Step, name: str, value: Any, grad: Any, states: Sequence[Any], numbers: Sequence[Any]) -> tuple[Any, ...]:
        """The parameter after the step, then both moments of its gradients."""
        powers = (grad, step("multiply", grad, grad))
        moments = [step("add", step("multiply", beta, old), step("multiply", _rest(beta), power), name=f"{name}_moment")
                   for beta, old, power in zip(self.betas, states, powers, strict=True)]
        mean, square = (step("divide", m, step("subtract", 1.0, n)) for m, n in zip(moments, numbers, strict=True))
        by = step("divide", mean, step("add", step("sqrt", square), self.eps))
        return step("subtract", value, step("multiply", self.lr, by), name=f"{name}_new"), *moments


__all__ = ["SGD", "Adam", "MomentumSGD", "Optimizer"]
