# SPDX-License-Identifier: Apache-2.0
"""Small models of different kinds, and C programs that run one that was saved as C source."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import roundel as rd

STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2")
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]


@functools.cache
def sanitized(compiler: str) -> tuple[str, ...]:
    """The sanitizers, where a compiler has them: those of Clang are a package of their own."""
    with tempfile.TemporaryDirectory() as folder:
        linked = subprocess.run([compiler, *SANITIZED, "-x", "c", "-", "-o", Path(folder, "program")], input="int main(void) { return 0; }",
                                text=True, capture_output=True, check=False, timeout=60)
    return () if linked.returncode else SANITIZED

_PROGRAM = """\
#include <stdio.h>
#include "{name}.h"
{tensors}
static int read_all(const char *path, void *data, size_t nbytes) {{
  FILE *f = fopen(path, "rb");
  size_t n = f ? fread(data, 1, nbytes, f) : 0;
  if (f) fclose(f);
  return n == nbytes;
}}
static int write_all(const char *path, const void *data, size_t nbytes) {{
  FILE *f = fopen(path, "wb");
  return f && fwrite(data, 1, nbytes, f) == nbytes && !fclose(f);
}}
int main(void) {{
{shapes}
  DLTensor inputs[] = {{{inputs}}}, outputs[] = {{{outputs}}};
{reads}
  for (int k = 0; k < 2; k++)
    if ({name}_run(inputs, outputs)) {{ fprintf(stderr, "%s\\n", {name}_last_error()); return 3; }}
{writes}
  return 0;
}}
"""
TYPES = {"float32": "float", "float64": "double", "int64": "int64_t", "int32": "int32_t", "int8": "int8_t", "uint8": "uint8_t", "bool": "uint8_t"}


def listed(result):
    """What a model gave, as a list of arrays."""
    return [np.asarray(r) for r in (result if isinstance(result, list | tuple) else [result])]


def same(got, want):
    """Equal types, shapes and whole numbers; floats but for rounding."""
    assert [(g.dtype, g.shape) for g in got] == [(w.dtype, w.shape) for w in want]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6) if w.dtype.kind == "f" else np.testing.assert_array_equal(g, w)


def onnx_model(nodes, inputs, outputs, constants=(), opset=17):
    """The bytes of a model. ``inputs`` and ``outputs``: name to (type, shape); ``constants``: name to array."""
    def info(items):
        return [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(t)), s) for n, (t, s) in items.items()]

    graph = helper.make_graph(nodes, "g", info(inputs), info(outputs), [numpy_helper.from_array(a, n) for n, a in dict(constants).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def convolutions():
    """A convolution, pooling, a dense layer and a softmax."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((8, 3, 3, 3)).astype("f"), "b": rng.standard_normal(8).astype("f")}
    weights |= {"d": rng.standard_normal((288, 10)).astype("f") / 9}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]), helper.make_node("Flatten", ["p"], ["f"]),
             helper.make_node("MatMul", ["f", "d"], ["m"]), helper.make_node("Softmax", ["m"], ["y"])]
    x = rng.standard_normal((1, 3, 12, 12)).astype("f")
    return onnx_model(nodes, {"x": ("float32", [1, 3, 12, 12])}, {"y": ("float32", [1, 10])}, weights), [x]


def dense():
    """Two dense layers of a length that the call tells."""
    rng = np.random.default_rng(4)
    weights = {k: rng.standard_normal((16, 16)).astype("f") / 4 for k in "qk"}
    nodes = [helper.make_node("MatMul", ["x", "q"], ["a"]), helper.make_node("Softmax", ["a"], ["b"]), helper.make_node("MatMul", ["b", "k"], ["y"])]
    return onnx_model(nodes, {"x": ("float32", ["n", 16])}, {"y": ("float32", ["n", 16])}, weights), [rng.standard_normal((70, 16)).astype("f")]


def attention():
    """One head of attention with a mask, layer normalisation and GELU, of a length that the call tells."""
    rng = np.random.default_rng(1)
    weights = {k: rng.standard_normal((16, 16)).astype("f") / 4 for k in "qkv"}
    weights |= {"one": np.ones(16, "f"), "zero": np.zeros(16, "f"), "s": np.float32(0.25)}
    nodes = [helper.make_node("LayerNormalization", ["x", "one", "zero"], ["n"]), *(helper.make_node("MatMul", ["n", k], [k.upper()]) for k in "qkv"),
             helper.make_node("Transpose", ["K"], ["T"], perm=[0, 2, 1]), helper.make_node("MatMul", ["Q", "T"], ["a"]),
             helper.make_node("Mul", ["a", "s"], ["b"]), helper.make_node("Softmax", ["b"], ["p"]),
             helper.make_node("MatMul", ["p", "V"], ["o"]), helper.make_node("Add", ["o", "x"], ["r"]),
             helper.make_node("Erf", ["r"], ["e"]), helper.make_node("Mul", ["e", "r"], ["y"])]
    x = rng.standard_normal((1, 7, 16)).astype("f")
    return onnx_model(nodes, {"x": ("float32", [1, "n", 16])}, {"y": ("float32", [1, "n", 16])}, weights), [x]


def integers():
    """A product of 8-bit integers, division, shifts of dtype, sorting and positions."""
    rng = np.random.default_rng(2)
    weights = {"w": rng.integers(-128, 128, (32, 24)).astype("int8"), "z": np.uint8(7), "d": np.int32(-37), "k": np.array([5])}
    nodes = [helper.make_node("MatMulInteger", ["x", "w", "z"], ["m"]), helper.make_node("Div", ["m", "d"], ["q"]),
             helper.make_node("Cast", ["q"], ["f"], to=TensorProto.FLOAT), helper.make_node("TopK", ["f", "k"], ["v", "i"]),
             helper.make_node("Cast", ["v"], ["y"], to=TensorProto.INT8)]
    outputs = {"y": ("int8", [6, 5]), "i": ("int64", [6, 5]), "q": ("int32", [6, 24])}
    return onnx_model(nodes, {"x": ("uint8", [6, 32])}, outputs, weights), [rng.integers(0, 256, (6, 32)).astype("uint8")]


def branches():
    """A loop, a condition, and elements chosen by data."""
    rng = np.random.default_rng(3)
    body = helper.make_graph([helper.make_node("Mul", ["a", "h"], ["b"]), helper.make_node("Identity", ["go"], ["on"])], "body",
                             [helper.make_tensor_value_info("k", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("a", TensorProto.FLOAT, [4, 9])],
                             [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("b", TensorProto.FLOAT, [4, 9])],
                             [numpy_helper.from_array(np.float32(1.5), "h")])
    weights = {"n": np.array(3, "int64"), "t": np.array(True), "j": np.array([2, 0, -1], "int64")}
    nodes = [helper.make_node("Loop", ["n", "t", "x"], ["l"], body=body), helper.make_node("Gather", ["l", "j"], ["g"]),
             helper.make_node("Greater", ["g", "x0"], ["c"]), helper.make_node("Where", ["c", "g", "x0"], ["w"]), helper.make_node("Tanh", ["w"], ["y"])]
    inputs, outputs = {"x": ("float32", [4, 9]), "x0": ("float32", [3, 9])}, {"y": ("float32", [3, 9]), "c": ("bool", [3, 9])}
    return onnx_model(nodes, inputs, outputs, weights), [rng.standard_normal((4, 9)).astype("f"), rng.standard_normal((3, 9)).astype("f")]


def quantised():
    """Two convolutions of 8-bit integers with a residual connection, as quantisers write them."""
    rng = np.random.default_rng(0)
    scale = {f"s{k}": np.float32(v) for k, v in enumerate((0.0213, 0.0417, 0.0531))}
    weights = {f"w{k}": rng.integers(-127, 128, (8, n, 3, 3)).astype("int8") for k, n in enumerate((3, 8))} | {"t": np.full(8, 0.0103, "f"), "z": np.int8(-3)}
    weights |= {"zeros": np.zeros(8, "int8")}
    nodes = []

    def quantise(x, y, k):
        nodes.append(helper.make_node("QuantizeLinear", [x, f"s{k}", "z"], [f"{y}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{y}_q", f"s{k}", "z"], [y]))

    def convolution(x, y, k):
        nodes.append(helper.make_node("DequantizeLinear", [f"w{k}", "t", "zeros"], [f"w{k}_f"], axis=0))
        nodes.append(helper.make_node("Conv", [x, f"w{k}_f"], [y], pads=[1, 1, 1, 1]))

    quantise("x", "a", 0)
    convolution("a", "b", 0)
    quantise("b", "c", 1)
    convolution("c", "d", 1)
    quantise("d", "e", 2)
    nodes.append(helper.make_node("Add", ["e", "c"], ["f"]))
    quantise("f", "y", 2)
    x = rng.standard_normal((1, 3, 16, 16)).astype("f")
    return onnx_model(nodes, {"x": ("float32", [1, 3, 16, 16])}, {"y": ("float32", [1, 8, 16, 16])}, scale | weights, opset=13), [x]


def recurrent():
    """A recurrent layer in both directions, of a batch and a number of steps that the call tells."""
    rng = np.random.default_rng(6)
    weights = {k: rng.standard_normal((2, 30, n)).astype("f") / 4 for k, n in (("w", 6), ("r", 10))}
    nodes = [helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=10, direction="bidirectional")]
    x = rng.standard_normal((7, 2, 6)).astype("f")
    return onnx_model(nodes, {"x": ("float32", ["steps", "batch", 6])}, {"y": ("float32", ["steps", 2, "batch", 10])}, weights), [x]


MODELS = {f.__name__: f for f in (convolutions, attention, dense, integers, branches, quantised, recurrent)}


def run_in_c(model: rd.Model, inputs, outputs, folder: Path, compiler=("gcc",), options=(*STRICT, "-O0", *SANITIZED), **saved):
    """What a C program computes with the model saved as C source; ``outputs`` are arrays of the right shapes."""
    name = "small"
    model.save(folder / f"{name}.c", header=True, **saved)
    tensors, shapes, reads, writes = [], [], [], []
    for role, arrays in (("input", inputs), ("output", outputs)):
        for k, a in enumerate(arrays):
            tensors.append(f"static {TYPES[str(a.dtype)]} {role}{k}[{max(a.size, 1)}];")
            shapes.append(f"  int64_t {role}{k}_shape[] = {{{', '.join(map(str, a.shape)) or 0}}};")
            path = folder / f"{role}{k}.bin"
            if role == "input":
                a.tofile(path)
                reads.append(f'  if (!read_all("{path}", {role}{k}, sizeof {role}{k})) return 2;')
            else:
                writes.append(f'  if (!write_all("{path}", {role}{k}, sizeof {role}{k})) return 4;')
    made = {f"{r}s": ", ".join(f"{name}_run_{r}{k}({r}{k}, {r}{k}_shape)" for k in range(len(a))) for r, a in (("input", inputs), ("output", outputs))}
    lines = {k: "\n".join(v) for k, v in {"tensors": tensors, "shapes": shapes, "reads": reads, "writes": writes}.items()}
    (folder / "main.c").write_text(_PROGRAM.format(name=name, **lines, **made))
    subprocess.run([*compiler, *options, "main.c", f"{name}.c", "-lm", "-o", "program"], cwd=folder, check=True, timeout=120)
    subprocess.run([folder / "program"], check=True, timeout=120)
    return [np.fromfile(folder / f"output{k}.bin", a.dtype).reshape(a.shape) for k, a in enumerate(outputs)]
