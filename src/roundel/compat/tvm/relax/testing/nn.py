# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.testing.nn``: layers whose parameters are variables, and which emit into the function that is being built:

    bb = relax.BlockBuilder()
    with bb.function("main"):
        layer, x = nn.Linear(784, 128), nn.Placeholder((1, 784), name="data")
        with bb.dataflow():
            out = bb.emit_output(layer(x))
        bb.emit_func_output(out, [x, *layer.parameters()])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .....builder import BlockBuilder
from .....ir import graph
from .....ir.errors import BuilderError
from .....ir.foreign_names import named_like
from .....ir.module import IRModule
from .....ir.tir import IntImm
from .....relax import TensorStructInfo
from ... import topi
from ...runtime import Tensor, tensor


def _builder() -> BlockBuilder:
    found = BlockBuilder.current()
    if found is None:
        raise BuilderError("no function is being built", hint='with bb.function("main"): ... around what emits')
    return found


def emit(expr: Any, name_hint: str = "") -> graph.Var:
    """A variable for an expression, in the function that is being built. Raises BuilderError outside of one."""
    return _builder().emit(expr, name_hint)


def emit_te(func: Callable[..., Any], *args: Any, **kwargs: Any) -> graph.Var:
    """A variable for the call of a tensor program that ``func`` describes, in the function that is being built."""
    return _builder().emit_te(func, *args, **kwargs)


def _variable(shape: Sequence[Any], dtype: str, name: str) -> graph.Var:
    if not isinstance(shape, list | tuple):
        raise TypeError(f"the shape of {name} is a list or tuple, not {shape!r}")
    builder = BlockBuilder.current()
    return graph.Var(builder.get_unique_name(name) if builder else name, TensorStructInfo(tuple(shape), dtype))


@named_like(graph.Var)
def Placeholder(shape: Sequence[Any], dtype: str = "float32", name: str = "data") -> graph.Var:
    """A variable for an input."""
    return _variable(shape, dtype, name)


@named_like(graph.Var)
def Parameter(shape: Sequence[Any], dtype: str = "float32", name: str = "param") -> graph.Var:
    """A variable for a weight: the variables that are attributes of a module are its ``parameters()``."""
    return _variable(shape, dtype, name)


class Module:
    """Base of layers. Its attributes are parameters, layers, lists and dictionaries of them, and whatever else it keeps."""

    def parameters(self) -> list[graph.Var]:
        """All parameters, in the order in which they were set."""
        return _found(self.__dict__)

    def forward(self, *args: Any) -> Any:
        """What a layer computes; each layer has its own."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)


def _found(value: Any) -> list[graph.Var]:
    if isinstance(value, graph.Var):
        return [value]
    if isinstance(value, Module):
        return value.parameters()
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [p for part in parts for p in _found(part)]


class Sequential(Module):
    """Layers one after another."""

    def __init__(self, *modules: Module) -> None:
        self.modules = modules

    def forward(self, input: Any) -> Any:  # noqa: A002  # TVM's name
        """Each layer of what the one before gives."""
        for module in self.modules:
            input = module(input)  # noqa: A001
        return input


class ReLU(Module):
    """``max(x, 0)``."""

    def forward(self, input: Any) -> graph.Var:  # noqa: A002
        """``max(input, 0)``."""
        return emit_te(topi.nn.relu, input)


class LogSoftmax(Module):
    """The logarithm of softmax along the last axis."""

    def forward(self, input: Any) -> graph.Var:  # noqa: A002
        """The logarithm of softmax of ``input``."""
        return emit_te(topi.nn.log_softmax, input)


class Linear(Module):
    """``x @ weight + bias`` with a weight of (in_features, out_features)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.weight = Parameter((in_features, out_features), name="linear_weight")
        self.bias = Parameter((out_features,), name="linear_bias") if bias else None

    def forward(self, input: Any) -> graph.Var:  # noqa: A002
        """``input @ weight + bias``."""
        y = emit_te(topi.matmul, input, self.weight)
        return y if self.bias is None else emit_te(topi.add, y, self.bias)


def init_params(mod: IRModule) -> list[Tensor]:
    """Zeros for every parameter of ``main`` whose name does not begin with ``data``. Raises TypeError where a shape is not known."""
    out = []
    for v in mod["main"].params:
        if v.name.startswith("data"):
            continue
        shape = v.sinfo.shape if isinstance(v.sinfo, graph.TensorInfo) else None
        if shape is None or not all(isinstance(d, IntImm) for d in shape):
            raise TypeError(f"parameter {v.name} has no known shape")
        out.append(tensor(np.zeros([d.value for d in shape], "float32")))
    return out
