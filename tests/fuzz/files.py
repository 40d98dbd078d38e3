# SPDX-License-Identifier: Apache-2.0
"""Broken model files: bytes changed, cut or doubled, or valid protobufs with wrong content. Each imports, or an error says why not."""

from __future__ import annotations

import functools

import numpy as np
import onnx

from roundel.driver import compile_module
from roundel.frontend.onnx import from_onnx
from roundel.ir.errors import RoundelError

from . import operators  # noqa: F401  (fills the table of steps)
from .generator import Generator

BASES = 200
COMPILED = 8
"""One of so many of the files that import is compiled too."""


@functools.lru_cache(BASES)
def base(seed: int) -> bytes:
    """A valid file."""
    return Generator(seed).model().SerializeToString()


def check_file(seed: int) -> str:
    """"refused", "imported" or "compiled"; anything but a RoundelError is a failure."""
    rng = np.random.default_rng(seed)
    data = base(seed % BASES)
    data = _bytes(rng, bytearray(data)) if seed % 2 else _content(rng, onnx.ModelProto.FromString(data))
    try:
        mod = from_onnx(data)
        if seed % COMPILED:
            return "imported"
        compile_module(mod).load()
        return "compiled"
    except RoundelError:
        return "refused"  # cleanly, which is what is wanted


def _bytes(rng: np.random.Generator, data: bytearray) -> bytes:
    """Up to seven changes of bytes."""
    for _ in range(int(rng.integers(1, 8))):
        at, length = int(rng.integers(0, len(data))), int(rng.integers(1, 16))
        kind = rng.integers(0, 4)
        if kind == 0:
            data[at] = int(rng.integers(0, 256))
        elif kind == 1:
            data[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 2:
            del data[at: at + length]
        else:
            data[at:at] = data[at: at + length]
        if not data:
            break
    return bytes(data)


def _content(rng: np.random.Generator, model: onnx.ModelProto) -> bytes:
    """Up to four changes of what the file says."""
    graph = model.graph
    for _ in range(int(rng.integers(1, 5))):
        if not graph.node:
            break
        node = graph.node[int(rng.integers(0, len(graph.node)))]
        names = [*(i.name for i in graph.input), *(t.name for t in graph.initializer), *(o for n in graph.node for o in n.output), "", "nothing"]
        kind = int(rng.integers(0, 9))
        if kind == 0 and node.input:
            node.input[int(rng.integers(0, len(node.input)))] = names[int(rng.integers(0, len(names)))]
        elif kind == 1:
            node.op_type = graph.node[int(rng.integers(0, len(graph.node)))].op_type
        elif kind == 2 and node.attribute:
            _attribute(rng, node.attribute[int(rng.integers(0, len(node.attribute)))])
        elif kind == 3 and node.attribute:
            del node.attribute[int(rng.integers(0, len(node.attribute)))]
        elif kind == 4 and graph.initializer:
            _tensor(rng, graph.initializer[int(rng.integers(0, len(graph.initializer)))])
        elif kind == 5:
            info = graph.input[int(rng.integers(0, len(graph.input)))].type.tensor_type
            if info.shape.dim:
                info.shape.dim[int(rng.integers(0, len(info.shape.dim)))].dim_value = _number(rng)
        elif kind == 6:
            graph.input[int(rng.integers(0, len(graph.input)))].type.tensor_type.elem_type = int(rng.integers(0, 30))
        elif kind == 7:
            model.opset_import[0].version = int(rng.integers(-1, 40))
        elif kind == 8 and node.input:
            del node.input[int(rng.integers(0, len(node.input))):]
    return model.SerializeToString()


def _number(rng: np.random.Generator) -> int:
    return int(rng.choice([-(1 << 63), -(1 << 31), -2, -1, 0, 1, 2, 3, 7, 100, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1]))


def _attribute(rng: np.random.Generator, a: onnx.AttributeProto) -> None:
    if a.type == onnx.AttributeProto.INT:
        a.i = _number(rng)
    elif a.type == onnx.AttributeProto.INTS and a.ints:
        a.ints[int(rng.integers(0, len(a.ints)))] = _number(rng)
    elif a.type == onnx.AttributeProto.FLOAT:
        a.f = float(rng.choice([np.nan, np.inf, -1.0, 0.0, 1e38]))
    else:
        a.type = int(rng.integers(0, 15))


def _tensor(rng: np.random.Generator, t: onnx.TensorProto) -> None:
    kind = int(rng.integers(0, 3))
    if kind == 0 and t.dims:
        t.dims[int(rng.integers(0, len(t.dims)))] = _number(rng)
    elif kind == 1:
        t.data_type = int(rng.integers(0, 30))
    elif len(t.raw_data) >= 8 and t.data_type == onnx.TensorProto.INT64:
        values = np.frombuffer(t.raw_data, np.int64).copy()
        values[int(rng.integers(0, len(values)))] = _number(rng)
        t.raw_data = values.tobytes()
