# SPDX-License-Identifier: Apache-2.0
"""Names in model files: a model whose every name is hostile compiles, runs, saves and loads, and its names come back as they were."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import roundel as rd
from roundel.build.header import write_header
from roundel.ir.errors import RoundelError
from roundel.ir.options import override

from .attempts import attempts
from .headers import problems
from .names import hostile_name

NAMES_PER_MODEL = 20
X = np.arange(8, dtype=np.float32).reshape(2, 4)


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` names, twenty in a model."""
    source = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, override(cache=False):
        for k in attempts(range(-(-count // NAMES_PER_MODEL))):
            model = random_model(source)
            try:
                for problem in check(model, Path(folder) / f"model{k}"):
                    yield f"model {k}: {problem}"
            except (RoundelError, ValueError, SyntaxError, KeyError) as error:
                yield f"model {k}: {type(error).__name__}: {error}"


def random_model(source: random.Random) -> ModelProto:
    """``relu(a + b) * w`` and so on over inputs, constants, nodes, sizes and texts with hostile names, as far as UTF-8 has them."""
    taken: set[str] = set()

    def name() -> str:
        while True:
            text = hostile_name(source).encode("utf-8", "ignore").decode()
            if text and text not in taken:
                taken.add(text)
                return text

    size, inputs = name(), [name() for _ in range(4)]
    nodes, value = [], inputs[0]
    for other in inputs[1:]:
        total, positive = name(), name()
        nodes += [helper.make_node("Add", [value, other], [total], name=name()), helper.make_node("Relu", [total], [positive], name=name())]
        value = positive
    weight, result = numpy_helper.from_array(np.float32([1, 2, 3, 4]), name()), name()
    nodes.append(helper.make_node("Mul", [value, weight.name], [result], name=name(), doc_string=name()))
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [size, 4]) for n in inputs]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [size, 4]) for n in (result, value)]
    made = helper.make_graph(nodes, name(), infos, outputs, [weight], doc_string=name())
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], producer_name=name(), doc_string=name())
    helper.set_model_props(model, {name(): name()})
    return model


def check(model: ModelProto, folder: Path) -> Iterator[str]:
    """What is not as it should be, from compiling to loading."""
    folder.mkdir()
    inputs, outputs = [i.name for i in model.graph.input], [o.name for o in model.graph.output]
    compiled = rd.compile(model)
    saved = rd.load(compiled.save(folder / "model.so"))
    total = sum(X * k for k in range(1, 5))
    for what, made in (("compiled", compiled), ("loaded", saved)):
        if [t.name for t in made.inputs] != inputs or [t.name for t in made.outputs] != outputs:
            yield f"{what}: names have changed: {[t.name for t in made.inputs]}"
            continue
        scaled, plain = made(**{n: X * k for k, n in enumerate(inputs, 1)})
        if not np.array_equal(plain, total) or not np.array_equal(scaled, total * np.float32([1, 2, 3, 4])):
            yield f"{what}: wrong results"
        try:
            made(*[X] * 3, X[:, :3])
            yield f"{what}: takes another shape"
        except RoundelError as error:
            if not str(error).replace("\n", " ").replace("\t", " ").isprintable():
                yield f"{what}: an error that would steer a terminal: {error}"
    if compiled.metadata != saved.metadata:
        yield "metadata do not come back"
    write_header(folder / "model.h", [saved.function.info])
    yield from problems(folder / "model.h", [saved.function.info])
