# SPDX-License-Identifier: Apache-2.0
"""What a model takes and gives, told from its graph before it is compiled, and which results are given back with the next call."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any

from ..build.interface import dim_text
from ..ir import graph
from ..ir.dataclass import dataclass
from ..ir.errors import ModelError
from ..ir.module import IRModule
from ..runtime.metadata import TensorInfo


@dataclass(frozen=True)
class State:
    """An output that becomes an input of the next call; ``shape``: of the zeros that the first call is given, 0 where the output has grown."""

    input: int
    output: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs; ``states`` pairs them where they carry something on from call to call."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    states: tuple[State, ...] = field(default=())

    @property
    def fresh(self) -> dict[int, TensorInfo]:
        """The inputs that are no states, by their places."""
        carried = {s.input for s in self.states}
        return {k: info for k, info in enumerate(self.inputs) if k not in carried}

    @property
    def results(self) -> tuple[TensorInfo, ...]:
        """The outputs that are no states."""
        carried = {s.output for s in self.states}
        return tuple(info for k, info in enumerate(self.outputs) if k not in carried)


def signature(module: IRModule) -> Signature:
    """Of a module's main function. Raises ModelError where it has none that takes and gives tensors."""
    names = [name for name, f in module.items() if isinstance(f, graph.Function)]
    if not names:
        raise ModelError("the model has no function of tensors", hint="a page needs a model that takes tensors and gives some")
    function: Any = module["main" if "main" in names else names[0]]
    flat = lambda info: [t for part in info.fields for t in flat(part)] if isinstance(info, graph.TupleInfo) else [info]
    taken, named = (function.attrs.get(f"{way}_names") or () for way in ("input", "output"))
    parts = [(p.name, part) for p in function.params for part in flat(p.sinfo)]
    inputs = tuple(_told(taken[k] if k < len(taken) else name, part) for k, (name, part) in enumerate(parts))
    outputs = tuple(_told(named[k] if k < len(named) else f"out_{k}", part) for k, part in enumerate(flat(function.ret_sinfo)))
    return Signature(inputs, outputs, states_of(inputs, outputs))


def _told(name: str, info: Any) -> TensorInfo:
    dims = getattr(info, "shape", None)
    if not isinstance(info, graph.TensorInfo) or dims is None:
        return TensorInfo(name, str(getattr(info, "dtype", "object")), ("?",) * max(getattr(info, "ndim", 1) or 0, 0))
    return TensorInfo(name, str(info.dtype), tuple(dim_text(d, {}) for d in dims))


def states_of(inputs: tuple[TensorInfo, ...], outputs: tuple[TensorInfo, ...]) -> tuple[State, ...]:
    """Each output but the first is the state of the first input left that has its type and its sizes, or that it is with more behind it."""
    states: list[State] = []
    for k, output in enumerate(outputs[1:], 1):
        for i, given in enumerate(inputs):
            if all(s.input != i for s in states) and given.dtype == output.dtype and given.shape and _carries_on(given, output):
                shape = tuple(d if isinstance(d, int) else int(d == e) for d, e in zip(given.shape, output.shape, strict=True))
                states.append(State(i, k, shape))
                break
    return tuple(states)


def _carries_on(given: TensorInfo, output: TensorInfo) -> bool:
    """Whether an output can be the next call's input: every size is the same, but one that has grown by something."""
    if len(given.shape) != len(output.shape):
        return False
    grown = [(a, b) for a, b in zip(given.shape, output.shape, strict=True) if a != b]
    return not grown or (len(grown) == 1 and isinstance(grown[0][0], str) and grown[0][0] in re.findall(r"\w+", str(grown[0][1])))
