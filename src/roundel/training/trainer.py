# SPDX-License-Identifier: Apache-2.0
"""The state of a training: parameters, states of the model and of the optimizer, and the step that moves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir import graph
from ..ir.errors import CallError
from ..ir.module import IRModule
from .setup import ADJOINT, BACKBONE, OPTIMIZER


class Trainer:
    """``mod`` is what ``setup`` made, ``functions`` gives its functions by name: ``rd.build(mod)``, or ``rd.interpret(mod)``.

    Parameters and states are zeros at first, or, without ``zero_init_param_state``, have to be set. Arrays are NumPy's.
    """

    def __init__(self, mod: IRModule, functions: Mapping[str, Any] | Any, zero_init_param_state: bool = True) -> None:
        self.mod, self.functions = mod, functions
        inputs, params, states = (int(getattr(mod.attrs[name], "value", mod.attrs[name])) for name in ("input_num", "param_num", "state_num"))
        variables = mod[ADJOINT].params
        self.num_inputs = inputs
        self._param_vars, self._state_vars = variables[inputs:inputs + params], variables[inputs + params:inputs + params + states]
        self._optim_state: Sequence[Any] = [c.data.numpy() for c in mod.attrs["optim_state"]]
        self._params: dict[str, Any] = {}
        self._states: dict[str, Any] = {}
        if zero_init_param_state:
            self.zero_init_params()
            self.zero_init_states()

    # -- parameters and states

    def zero_init_params(self) -> None:
        """All parameters are 0."""
        self._params = {p.name: np.zeros(*_shape(p)) for p in self._param_vars}

    def zero_init_states(self) -> None:
        """All states of the model are 0."""
        self._states = {s.name: np.zeros(*_shape(s)) for s in self._state_vars}

    def xavier_uniform_init_params(self, seed: int | None = None) -> None:
        """Parameters at random between plus and minus the root of 6 by the sum of their sizes (Glorot and Bengio, Understanding the difficulty of training
        deep feedforward neural networks, 2010)."""
        rng = np.random.default_rng(seed)
        for p in self._param_vars:
            shape, dtype = _shape(p)
            self._params[p.name] = (np.sqrt(6.0 / max(sum(shape), 1)) * rng.uniform(-1.0, 1.0, shape)).astype(dtype)

    def load_params(self, params: Sequence[Any] | Mapping[str, Any]) -> None:
        """Set all parameters, in order, or those of these names. Raises CallError for a wrong count or name."""
        self._params = _loaded(self._params, params, self._param_vars, "parameter")

    def load_states(self, states: Sequence[Any] | Mapping[str, Any]) -> None:
        """Set the states of the model, all in order, or those of these names. Raises CallError for a wrong count or name."""
        self._states = _loaded(self._states, states, self._state_vars, "state")

    def export_params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {p.name: self._params[p.name] for p in self._param_vars}

    def export_states(self) -> dict[str, Any]:
        """The states of the model by name."""
        return {s.name: self._states[s.name] for s in self._state_vars}

    # -- steps

    def predict(self, *inputs: Any) -> Any:
        """What the model gives for these inputs, its states left out."""
        result = self.functions[BACKBONE](*self.arguments(inputs))
        if not self._state_vars:
            return result
        values = tuple(result)[:-len(self._state_vars)]
        return values[0] if len(values) == 1 else values

    def update(self, inputs: Any, targets: Any) -> Any:
        """One step of training; several inputs or targets are a list. Returns the loss before the step."""
        result, gradients = self.functions[ADJOINT](*self.arguments(_several(inputs), _several(targets)))
        if self._state_vars:
            result, *states = result
            self._states = dict(zip((s.name for s in self._state_vars), states, strict=True))
        params, self._optim_state = self.functions[OPTIMIZER](tuple(self.export_params().values()), gradients, tuple(self._optim_state))
        self._params = dict(zip((p.name for p in self._param_vars), params, strict=True))
        return result

    def arguments(self, inputs: Sequence[Any], targets: Sequence[Any] = ()) -> list[Any]:
        """Inputs, parameters, states and targets. Raises CallError where some are missing."""
        if len(inputs) != self.num_inputs:
            raise CallError(f"the model takes {self.num_inputs} inputs, {len(inputs)} were given")
        missing = [v.name for v in self._param_vars if v.name not in self._params] + [v.name for v in self._state_vars if v.name not in self._states]
        if missing:
            raise CallError(f"{', '.join(missing)} have no values", hint="load_params, xavier_uniform_init_params or zero_init_params sets them")
        return [*map(_array, inputs), *self.export_params().values(), *self.export_states().values(), *map(_array, targets)]


def _shape(var: graph.Var) -> tuple[tuple[int, ...], Any]:
    info: Any = var.sinfo
    return tuple(int(d) for d in info.shape), info.dtype.numpy


def _several(values: Any) -> Sequence[Any]:
    return values if isinstance(values, list | tuple) else [values]


def _array(value: Any) -> Any:
    return value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)


def _loaded(old: Mapping[str, Any], given: Sequence[Any] | Mapping[str, Any], variables: Sequence[graph.Var], what: str) -> dict[str, Any]:
    names = [v.name for v in variables]
    if not isinstance(given, Mapping):
        if len(given) != len(names):
            raise CallError(f"the model has {len(names)} {what}s, {len(given)} were given")
        given = dict(zip(names, given, strict=True))
    unknown = [n for n in given if n not in names]
    if unknown:
        raise CallError(f"the model has no {what} {', '.join(unknown)}", hint=f"it has {', '.join(names)}")
    return {**old, **{n: _array(v) for n, v in given.items()}}


__all__ = ["Trainer"]
