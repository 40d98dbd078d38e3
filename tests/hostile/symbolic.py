# SPDX-License-Identifier: Apache-2.0
"""Nodes of which some or all sizes are symbolic: what cannot be imported is refused in words of the model, never in those of Python.

The nodes are ONNX's own test cases for every operator, and those of ``size_subjects``, which has operators of com.microsoft too.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from roundel.ir.errors import RoundelError

from .attempts import attempts

_LONG = 16  # elements of an operand that a model would hold, such as axes
PYTHON = re.compile(r"operands or attributes are not what|object has no attribute|'\w+' object|NoneType|unsupported operand|positional argument|subscriptable|"
                     r"not iterable|(list|tuple) index|invalid literal|to unpack|\b(Type|Attribute|Index|Key|Name|Assertion)Error|not supported between|"
                     r"__\w+__|can't multiply|slice indices|cannot be interpreted as|argument of type|\bmath domain|broadcast together|<class|object at 0x")


def attack(count: int, seed: int) -> Iterator[str]:
    """So many imports of nodes, one after another in a random order."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = list(_cases())
        for number, k in enumerate(attempts(rng.permutation(np.arange(count) % len(cases)))):
            name, model, arrays = cases[k]
            free = {place for place in _places(model) if rng.random() < (1.0, 0.7, 0.2)[number % 3]}
            yield from _findings(f"{name}, symbolic {sorted(free)}", _with_symbols(model, arrays, free, constants=rng.random() < 0.7))


def _cases() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Name, model and operands by name."""
    from onnx.backend.test.case.node import collect_testcases

    from . import size_subjects

    for case in collect_testcases(None):
        if not case.name.endswith("_expanded"):
            yield case.name, case.model, dict(zip((i.name for i in case.model.graph.input), case.data_sets[0][0] if case.data_sets else ()))
    for kind, operands, given in size_subjects.OPERATORS:
        attributes = dict(given)
        opset, outputs, domain = attributes.pop("opset", 20), attributes.pop("outputs", 1), attributes.pop("domain", "")
        values = [o if o is None else o.value if isinstance(o, size_subjects.Operand) else o for o in operands]
        known = [o if o is None else size_subjects.Operand(o) for o in values]
        yield kind, size_subjects.model(kind, known, attributes, opset, outputs, domain), {f"i{k}": v for k, v in enumerate(values) if v is not None}


def _places(model: Any) -> list[tuple[str, int]]:
    return [(i.name, axis) for i in model.graph.input for axis in range(len(i.type.tensor_type.shape.dim))]


def _with_symbols(source: Any, arrays: dict[str, Any], free: set[tuple[str, int]], constants: bool) -> Any:
    """The model with these sizes symbolic; with ``constants`` it holds its small operands of integers."""
    import onnx
    from onnx import numpy_helper

    model = type(source)()
    model.CopyFrom(source)
    del model.graph.input[:], model.graph.value_info[:]
    for given in source.graph.input:
        value = arrays.get(given.name)
        if constants and isinstance(value, np.ndarray) and value.dtype in (np.int64, np.int32) and value.ndim <= 1 and value.size <= _LONG:
            model.graph.initializer.append(numpy_helper.from_array(value, given.name))
            continue
        made = onnx.ValueInfoProto.FromString(given.SerializeToString())
        dims = made.type.tensor_type.shape.dim
        for axis, dim in enumerate(dims):
            size = value.shape[axis] if isinstance(value, np.ndarray) and axis < value.ndim else dim.dim_value
            dim.Clear()
            if (given.name, axis) in free:
                dim.dim_param = f"{given.name}_{axis}"
            else:
                dim.dim_value = size
        model.graph.input.append(made)
    for result in model.graph.output:
        result.type.tensor_type.ClearField("shape")
    return model


def _findings(name: str, model: Any) -> Iterator[str]:
    import roundel as rd

    try:
        rd.import_model(model)
    except RoundelError as error:
        if PYTHON.search(str(error)):
            yield f"{name}: {' / '.join(str(error).splitlines())[:300]}"
    except Exception as error:
        yield f"{name}: {type(error).__name__}: {error}"
