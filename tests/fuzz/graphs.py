# SPDX-License-Identifier: Apache-2.0
"""Random valid ONNX graphs, compared with ONNX's reference; and broken model files.

    python -m tests.fuzz.graphs --graphs 5000 --seed 0
    python -m tests.fuzz.graphs --files 20000 --seed 0

Every seed is one case: a failure prints its seed, and ``--graphs 1 --seed N`` repeats it.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from roundel.frontend.onnx import from_onnx
from roundel.frontend.onnx.conformance import run
from roundel.ir.errors import RoundelError

DIMS = [0, 1, 1, 2, 3, 5, 7]
UNARY = ["Abs", "Neg", "Relu", "Tanh", "Sigmoid", "Exp", "Floor", "Ceil", "Sign", "Erf", "Softplus", "HardSigmoid", "Elu", "Identity"]
INTEGER_UNARY = ["Abs", "Neg", "Sign", "Identity"]
BINARY = ["Add", "Sub", "Mul", "Max", "Min"]
REDUCE = ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"]


class Generator:
    """One graph of a seed: values by name with the arrays that they are on the example inputs."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs = [], [], {}
        self.values: dict[str, np.ndarray] = {}
        for k in range(self.rng.integers(1, 4)):
            shape = tuple(int(self.rng.choice(DIMS)) for _ in range(self.rng.integers(0, 5)))
            dtype = self.rng.choice(["float32", "float32", "float64", "int32", "int64"])
            data = self.rng.normal(size=shape) * 2 if dtype.startswith("f") else self.rng.integers(-5, 6, size=shape)
            self.inputs[f"x{k}"] = np.asarray(data, dtype)
        self.values.update(self.inputs)

    def model(self) -> onnx.ModelProto:
        """A model of 5 to 30 operators whose outputs are all values that nothing uses."""
        for _ in range(int(self.rng.integers(5, 31))):
            self.step()
        used = {i for n in self.nodes for i in n.input}
        outputs = [n.output[0] for n in self.nodes if n.output[0] not in used]
        info = lambda name: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(self.values[name].dtype), self.values[name].shape)
        graph = helper.make_graph(self.nodes, "fuzz", [info(n) for n in self.inputs], [info(n) for n in outputs], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])

    def pick(self, test=lambda v: True) -> str | None:
        names = [n for n, v in self.values.items() if test(v)]
        return str(self.rng.choice(names)) if names else None

    def constant(self, value: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(value, name))
        return name

    def emit(self, op: str, inputs: list[str], constants: dict[str, np.ndarray] | None = None, **attributes) -> None:
        """Append a node if its value is finite and small, as the reference computes it."""
        node = helper.make_node(op, inputs, [f"v{len(self.nodes)}"], **attributes)
        known = {**{n: self.values[n] for n in inputs if n in self.values}, **(constants or {})}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                (out,) = ReferenceEvaluator(node, opsets={"": 20}).run(None, known)
            except Exception:  # the reference refuses this combination, so it is no valid graph
                return
        out = np.asarray(out)
        if out.size <= 4096 and (out.dtype.kind in "ib" or (np.isfinite(out).all() and np.abs(out).max(initial=0) < 1e4)):
            self.nodes.append(node)
            self.values[node.output[0]] = out

    def step(self) -> None:
        getattr(self, str(self.rng.choice([n for n in dir(self) if n.startswith("op_")])))()

    def op_unary(self) -> None:
        name = self.pick(lambda v: v.dtype.kind in "fi")
        self.emit(str(self.rng.choice(UNARY if self.values[name].dtype.kind == "f" else INTEGER_UNARY)), [name])

    def op_binary(self) -> None:
        a = self.pick(lambda v: v.dtype.kind in "fi")
        x = self.values[a]

        def fits(v: np.ndarray) -> bool:
            try:
                return v.dtype == x.dtype and np.broadcast_shapes(v.shape, x.shape) is not None
            except ValueError:
                return False

        self.emit(str(self.rng.choice(BINARY)), [a, self.pick(fits)])

    def op_transpose(self) -> None:
        name = self.pick(lambda v: v.ndim > 0)
        if name is not None:
            self.emit("Transpose", [name], perm=[int(k) for k in self.rng.permutation(self.values[name].ndim)])

    def op_reduce(self) -> None:
        name = self.pick(lambda v: v.dtype.kind in "fi" and v.ndim > 0 and v.size > 0)
        if name is not None:
            axes = np.asarray([self.rng.integers(-self.values[name].ndim, self.values[name].ndim)], np.int64)
            op = str(self.rng.choice(REDUCE if self.values[name].dtype.kind == "f" else REDUCE[:3]))
            c = self.constant(axes)
            self.emit(op, [name, c], {c: axes}, keepdims=int(self.rng.integers(0, 2)))

    def op_concat(self) -> None:
        name = self.pick(lambda v: v.ndim > 0)
        if name is not None:
            self.emit("Concat", [name, name], axis=int(self.rng.integers(0, self.values[name].ndim)))

    def op_reshape(self) -> None:
        name = self.pick()
        shape = np.asarray([-1] if self.values[name].size else [0], np.int64)
        c = self.constant(shape)
        self.emit("Reshape", [name, c], {c: shape}, allowzero=int(not self.values[name].size))

    def op_slice(self) -> None:
        name = self.pick(lambda v: v.ndim > 0)
        if name is not None:
            parts = [np.asarray([int(v)], np.int64) for v in (self.rng.integers(-3, 3), self.rng.integers(-3, 8),
                                                              self.rng.integers(0, self.values[name].ndim), self.rng.choice([1, 2, -1]))]
            names = [self.constant(p) for p in parts]
            self.emit("Slice", [name, *names], dict(zip(names, parts, strict=True)))

    def op_compare(self) -> None:
        name = self.pick(lambda v: v.dtype.kind in "fi")
        c = self.constant(np.asarray(0, self.values[name].dtype))
        self.emit(str(self.rng.choice(["Greater", "Equal", "LessOrEqual"])), [name, c], {c: np.asarray(0, self.values[name].dtype)})

    def op_cast(self) -> None:
        self.emit("Cast", [self.pick()], to=int(self.rng.choice([TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32])))

    def op_matmul(self) -> None:
        name = self.pick(lambda v: v.ndim >= 2 and v.dtype == np.float32)
        if name is not None:
            w = self.rng.normal(size=(self.values[name].shape[-1], int(self.rng.choice(DIMS)))).astype("f")
            c = self.constant(w)
            self.emit("MatMul", [name, c], {c: w})

    def op_softmax(self) -> None:
        name = self.pick(lambda v: v.ndim > 0 and v.size > 0 and v.dtype.kind == "f")
        if name is not None:
            self.emit("Softmax", [name], axis=int(self.rng.integers(-self.values[name].ndim, self.values[name].ndim)))


def check_graph(seed: int) -> None:
    """Raises AssertionError when a result differs from the reference."""
    made = Generator(seed)
    model = made.model()
    if not model.graph.output:
        return
    for got, info in zip(run(model, list(made.inputs.values())), model.graph.output, strict=True):
        want = made.values[info.name]
        assert got.dtype == want.dtype and got.shape == want.shape, f"seed {seed}: {info.name} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4, err_msg=f"seed {seed}: {info.name}")


def check_file(seed: int) -> None:
    """A model file with bytes changed, cut or doubled: it imports, or an error says why not."""
    rng = np.random.default_rng(seed)
    data = bytearray(Generator(seed % 50).model().SerializeToString())
    for _ in range(int(rng.integers(1, 8))):
        at = int(rng.integers(0, len(data)))
        kind = rng.integers(0, 4)
        if kind == 0:
            data[at] = int(rng.integers(0, 256))
        elif kind == 1:
            data[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 2:
            del data[at: at + int(rng.integers(1, 16))]
        else:
            data[at:at] = data[at: at + int(rng.integers(1, 16))]
        if not data:
            break
    try:
        from_onnx(bytes(data))
    except RoundelError:
        pass  # a clean refusal is what is wanted


def main() -> None:
    """The long run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=0)
    parser.add_argument("--files", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failed = 0
    for check, count in ((check_graph, options.graphs), (check_file, options.files)):
        for seed in range(options.seed, options.seed + count):
            try:
                check(seed)
            except Exception as error:  # the report is the purpose
                failed += 1
                print(f"{check.__name__} {seed}: {type(error).__name__}: {str(error).strip().splitlines()[:6]}", flush=True)
    print(f"{failed} failed")


if __name__ == "__main__":
    main()
