# SPDX-License-Identifier: Apache-2.0
"""Attributes of operators with absurd whole numbers: each node is imported or refused in seconds, whatever the number counts."""

from __future__ import annotations

import random
import signal
import time
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import onnx

import roundel as rd

from .attempts import attempts

SECONDS = 5  # of processor time, of one import
VALUES = (2**62, 2**40, 2**31, 10**8, 0, -1, -5)
_ONE, _MANY = onnx.AttributeProto.INT, onnx.AttributeProto.INTS


class _TooSlow(BaseException):
    """No error that anything on the way would catch."""


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` models of the standard's own tests, each with another number in one attribute."""
    source = random.Random(seed)
    for _ in attempts(range(count)):
        model, k = source.choice(_attributes())
        value = source.choice(VALUES)
        changed = _changed(model, k, value)
        what = f"{model.graph.node[0].op_type} with {model.graph.node[0].attribute[k].name} {value}"
        begun = time.perf_counter()
        if wrong := _imported(changed):
            yield f"{what}: {wrong} after {time.perf_counter() - begun:.1f} s"


def _imported(model: Any) -> str:
    """What is wrong with how the import of a model ended; nothing where it was imported or refused."""

    def stop(*_: Any) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rd.import_model(model)
    except rd.RoundelError:
        return ""
    except (_TooSlow, Exception) as error:
        return f"{type(error).__name__} {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return ""


@cache
def standard_nodes() -> list[Any]:
    """The standard's own tests that are models of one node."""
    from onnx.backend.test.case.node import collect_testcases

    models = [case.model for case in collect_testcases(None) if case.model is not None]
    return [m for m in models if len(m.graph.node) == 1]


@cache
def _attributes() -> list[tuple[Any, int]]:
    """Models of one node and their attributes that are whole numbers, each kind of node once."""
    found: dict[tuple[Any, ...], tuple[Any, int]] = {}
    for model in standard_nodes():
        (node,) = model.graph.node
        for k, a in enumerate(node.attribute):
            if a.type == _ONE or (a.type == _MANY and a.ints):
                found.setdefault((node.op_type, a.name, len(node.input)), (model, k))
    return list(found.values())


def _changed(model: Any, k: int, value: int) -> Any:
    new = onnx.ModelProto()
    new.CopyFrom(model)
    a = new.graph.node[0].attribute[k]
    if a.type == _ONE:
        a.i = value
    else:
        a.ints[0] = value
    for output in new.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    return new
