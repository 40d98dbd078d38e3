# SPDX-License-Identifier: Apache-2.0
"""Broken inputs: each gives one paragraph that names the cause, through Python and through the command line, and leaves no file."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd

F = TensorProto.FLOAT


def value(name: str, shape: list, dtype: int = F):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes: list, inputs: list, outputs: list, initializers: list = ()) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def add(name: str = "w", data: np.ndarray | None = None) -> onnx.ModelProto:
    data = np.ones((2, 3), np.float32) if data is None else data
    return model([helper.make_node("Add", ["x", "w"], ["y"], name="plus")], [value("x", [2, 3])], [value("y", [2, 3])],
                 [numpy_helper.from_array(data, name)])


def truncated(path: Path) -> None:
    data = add(data=np.ones((2, 3), np.float32)).SerializeToString()
    path.write_bytes(data[: len(data) // 2])


def foreign(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)


def lfs_note(path: Path) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 12345\n")


def without_outputs(path: Path) -> None:
    path.write_bytes(model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [2])], []).SerializeToString())


def without_anything(path: Path) -> None:
    path.write_bytes(model([], [], []).SerializeToString())


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cyclic(path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"], name="second")]
    path.write_bytes(model(nodes, [value("x", [2])], [value("b", [2])]).SerializeToString())


def unknown_operators(path: Path) -> None:
    nodes = [helper.make_node("Frobnicate", ["x"], ["a"], name="n1"), helper.make_node("Mangle", ["a"], ["y"], name="n2")]
    path.write_bytes(model(nodes, [value("x", [2])], [value("y", [2])]).SerializeToString())


def wrong_dtype(path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "k"], ["y"], name="mixed")]
    path.write_bytes(model(nodes, [value("x", [2])], [value("y", [2])],
                           [numpy_helper.from_array(np.ones(2, np.int64), "k")]).SerializeToString())


def wrong_rank(path: Path) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")]
    path.write_bytes(model(nodes, [value("x", [1, 3])], [value("y", [1, 3])],
                           [numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")]).SerializeToString())


def wrong_shape(path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    path.write_bytes(model(nodes, [value("x", [2, 3])], [value("y", [2, 5])],
                           [numpy_helper.from_array(np.ones((4, 5), np.float32), "w")]).SerializeToString())


def undefined_input(path: Path) -> None:
    path.write_bytes(model([helper.make_node("Relu", ["nowhere"], ["y"], name="r")], [value("x", [2])], [value("y", [2])]).SerializeToString())


def defined_twice(name: str) -> Callable[[Path], None]:
    """Two nodes, the second of which gives its result a name that is taken."""
    def write(path: Path) -> None:
        nodes = [helper.make_node("Relu", ["x"], ["a"], name="first"), helper.make_node("Add", ["a", "w"], [name], name="second"),
                 helper.make_node("Exp", ["a"], ["y"], name="third")]
        proto = model(nodes, [value("x", [2])], [value("y", [2])], [numpy_helper.from_array(np.ones(2, np.float32), "w")])
        path.write_bytes(proto.SerializeToString())

    return write


def repeated(part: str) -> Callable[[Path], None]:
    """The first input or initializer of the graph stands there a second time."""
    def write(path: Path) -> None:
        proto = add()
        again = getattr(proto.graph, part).add()
        again.CopyFrom(getattr(proto.graph, part)[0])
        path.write_bytes(proto.SerializeToString())

    return write


def external(location: str, length: int | str = 24, *more: tuple[str, str]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        proto = add()
        w = proto.graph.initializer[0]
        w.ClearField("raw_data")
        w.data_location = TensorProto.EXTERNAL
        for key, text in (("location", location), ("offset", "0"), ("length", str(length)), *more):
            w.external_data.add(key=key, value=text)
        path.write_bytes(proto.SerializeToString())
        (path.parent / "short.bin").write_bytes(bytes(8))
        (path.parent / "whole.bin").write_bytes(bytes(24))

    return write


def linked(make: Callable[[Path], None]) -> Callable[[Path], None]:
    """External data whose file is something else than a file."""
    def write(path: Path) -> None:
        external("weights.bin")(path)
        make(path.parent / "weights.bin")

    return write


def absurd_initializer(path: Path) -> None:
    proto = add()
    del proto.graph.initializer[0].dims[:]
    proto.graph.initializer[0].dims.extend([1 << 40, 1 << 40])
    path.write_bytes(proto.SerializeToString())


def absurd_input(path: Path) -> None:
    nodes = [helper.make_node("Exp", ["x"], ["e"], name="e"), helper.make_node("Relu", ["e"], ["y"], name="r")]
    path.write_bytes(model(nodes, [value("x", [1 << 40, 1 << 40])], [value("y", [1 << 40, 1 << 40])]).SerializeToString())


def absurd_middle(path: Path) -> None:
    nodes = [helper.make_node("Expand", ["x", "s"], ["e"], name="e"), helper.make_node("ReduceSum", ["e"], ["y"], name="r")]
    path.write_bytes(model(nodes, [value("x", [1])], [value("y", [1])],
                           [numpy_helper.from_array(np.array([1 << 31, 1 << 31, 4]), "s")]).SerializeToString())


def absurd_constant(path: Path) -> None:
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["e"], name="fill"), helper.make_node("ReduceSum", ["e"], ["t"], name="r", keepdims=0),
             helper.make_node("Add", ["x", "t"], ["y"], name="a")]
    path.write_bytes(model(nodes, [value("x", [1])], [value("y", [1])],
                           [numpy_helper.from_array(np.array([1 << 20, 1 << 20, 1 << 10]), "s")]).SerializeToString())


BROKEN = {
    "truncated": (truncated, "not an ONNX model, or it is cut off"),
    "not a protobuf": (foreign, "not an ONNX model"),
    "a note of Git LFS": (lfs_note, "git lfs pull"),
    "empty": (empty, "the file is empty"),
    "without outputs": (without_outputs, "the model has no outputs"),
    "without anything": (without_anything, "the model has no outputs"),
    "cyclic": (cyclic, "(?s)cycle.*'first', 'second'"),
    "unknown operators": (unknown_operators, r"(?s)2 operators.*Frobnicate \(opset 17\), 1 node: n1.*Mangle"),
    "wrong dtype": (wrong_dtype, "(?s)'mixed'.*(float32.*int64|int64.*float32)"),
    "wrong rank": (wrong_rank, "'conv'.*2 dimensions.*weights of 4"),
    "wrong shape": (wrong_shape, "(?s)'product'.*3.*4"),
    "undefined input": (undefined_input, "'r'.*'nowhere'"),
    "two nodes of one result": (defined_twice("a"), "(?s)'second'.*'a' is defined twice.*'first'"),
    "a result named like an initializer": (defined_twice("w"), "(?s)'second'.*'w' is defined twice.*initializer"),
    "a result named like an input": (defined_twice("x"), "(?s)'second'.*'x' is defined twice.*input"),
    "two inputs of one name": (repeated("input"), "(?s)'x' is defined twice.*each time by an input"),
    "two initializers of one name": (repeated("initializer"), "(?s)'w' is defined twice.*each time by an initializer"),
    "missing external data": (external("weights.bin"), "(?s)tensor 'w'.*missing.*weights.bin"),
    "external data above the folder": (external("../../secret.bin"), "(?s)outside the model's folder.*secret"),
    "external data at an absolute path": (external("/etc/passwd"), "(?s)outside the model's folder.*passwd"),
    "external data by way of the folder above": (external("sub/../../models/short.bin", 8), "(?s)outside the model's folder"),
    "external data that is a folder": (external("."), "(?s)tensor 'w'.*no regular file"),
    "external data with a zero byte in its name": (external("w\0.bin"), r"(?s)tensor 'w'.*cannot be read.*w\\x00.bin"),
    "external data with a very long name": (external("w" * 5000), "(?s)tensor 'w'.*cannot be read.*too long"),
    "external data that is a pipe": (linked(lambda p: os.mkfifo(p)), "(?s)tensor 'w'.*no regular file"),
    "external data in a loop of links": (linked(lambda p: p.symlink_to(p)), "(?s)tensor 'w'.*cannot be read"),
    "external data that links to nothing": (linked(lambda p: p.symlink_to("nowhere")), "(?s)tensor 'w'.*missing"),
    "external data that links elsewhere": (linked(lambda p: p.symlink_to("/etc/passwd")), "(?s)outside the model's folder.*weights"),
    "external data too short": (external("short.bin"), "(?s)does not fit.*8 bytes"),
    "external data in two files": (external("short.bin", 8, ("location", "other.bin")), "(?s)tensor 'w'.*broken.*twice"),
    "external data of two lengths": (external("short.bin", 8, ("length", "4")), "(?s)tensor 'w'.*broken.*twice"),
    "external data of a length in other digits": (external("short.bin", "\uff18"), "(?s)tensor 'w'.*broken"),
    "external data of a length with underscores": (external("short.bin", "2_4"), "(?s)tensor 'w'.*broken"),
    "external data of an endless length": (external("short.bin", "9" * 5000), "(?s)tensor 'w'.*broken"),
    "external data of another checksum": (external("whole.bin", 24, ("checksum", "0" * 40)), "(?s)tensor 'w'.*not what the model was saved with.*whole.bin"),
    "external data of a checksum that is none": (external("whole.bin", 24, ("checksum", "crc 12")), "(?s)tensor 'w'.*checksum.*'crc 12'.*SHA-1"),
    "absurd initializer": (absurd_initializer, "(?s)tensor 'w'.*absurdly large"),
    "absurd input": (absurd_input, "(?s)input 'x'.*absurdly large.*1099511627776"),
    "absurd intermediate": (absurd_middle, "'e'.*absurdly large"),
    "absurd constant": (absurd_constant, "'fill'.*absurdly large"),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROUNDEL_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.parametrize("kind", BROKEN)
def test_python(kind, tmp_path):
    write, message = BROKEN[kind]
    folder = tmp_path / "models"
    folder.mkdir()
    write(folder / "m.onnx")
    files = sorted(folder.iterdir())
    with pytest.raises(rd.RoundelError, match=message) as caught:
        rd.compile(folder / "m.onnx")
    assert len(str(caught.value).splitlines()) <= 8, caught.value
    assert sorted(folder.iterdir()) == files


def test_external_data_of_the_right_checksum(tmp_path):
    external("whole.bin", 24, ("checksum", hashlib.sha1(bytes(24)).hexdigest().upper()))(tmp_path / "m.onnx")
    rd.import_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("kind", ["truncated", "not a protobuf", "cyclic", "unknown operators", "wrong dtype", "wrong rank", "missing external data",
                                  "external data above the folder", "absurd initializer", "absurd input"])
def test_command_line(kind, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    BROKEN[kind][0](folder / "m.onnx")
    files = sorted(folder.iterdir())
    done = subprocess.run([sys.executable, "-m", "roundel", "compile", str(folder / "m.onnx"), "-o", str(folder / "m.so"), "--header"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr, done.stderr
    assert sorted(folder.iterdir()) == files


@pytest.mark.parametrize("layout", ["a store", "a folder below", "the data alone in a folder below"])
@pytest.mark.parametrize("large", [False, True])
def test_models_of_links_into_a_store(tmp_path, layout, large):
    """As Hugging Face's library keeps them: model and data are links to files named by their hashes."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "revision" / ("onnx" if layout == "a folder below" else "")
    blobs.mkdir()
    data = "sub/weights.bin" if layout == "the data alone in a folder below" else "weights.bin"
    (snapshot / data).parent.mkdir(parents=True)
    external(data)(blobs / "0af3")
    (blobs / "1bc2").write_bytes(np.full(6, 2.5, np.float32).tobytes())
    if large:  # weights inside of the model are read from where they lie, too
        proto = onnx.load(blobs / "0af3", load_external_data=False)
        proto.graph.initializer.append(numpy_helper.from_array(np.zeros(1 << 19, np.float32), "unused"))
        (blobs / "0af3").write_bytes(proto.SerializeToString())
    (snapshot / "model.onnx").symlink_to(blobs / "0af3")
    (snapshot / data).symlink_to(os.path.relpath(blobs / "1bc2", (snapshot / data).parent))
    compiled = rd.compile(snapshot / "model.onnx")
    x = np.ones([d if isinstance(d, int) else 2 for d in compiled.inputs[0].shape], np.float32)
    np.testing.assert_array_equal(compiled(x), rd.compile(in_one_piece(snapshot / "model.onnx", np.full(6, 2.5, np.float32)))(x))


def in_one_piece(path: Path, data: np.ndarray) -> bytes:
    """The model with its external data inside."""
    proto = onnx.load(path, load_external_data=False)
    w = proto.graph.initializer[0]
    w.ClearField("external_data")
    w.ClearField("data_location")
    w.raw_data = data.tobytes()
    return proto.SerializeToString()


@pytest.fixture(scope="module")
def product():
    nodes = [helper.make_node("MatMul", ["x", "y"], ["xy"], name="product"), helper.make_node("Relu", ["xy"], ["z"], name="relu")]
    return rd.compile(model(nodes, [value("x", ["n", "m"]), value("y", ["m", 4])], [value("z", ["n", 4])]))


@pytest.mark.parametrize(("x", "y", "message"), [
    (np.ones((2, 3)), np.ones((3, 4), np.float32), "(?s)float64.*float32|float32.*float64"),
    (np.ones((2, 3, 1), np.float32), np.ones((3, 4), np.float32), "dimensions"),
    (np.ones((2, 3), np.float32), np.ones((5, 4), np.float32), "dimension 0 of input 1 .*5.*3"),
    (np.ones((2, 3), np.float32), np.ones((3, 5), np.float32), "dimension 1 of input 1 .*5.*4"),
    ("a", np.ones((3, 4), np.float32), "str is not a tensor"),
], ids=["dtype", "rank", "symbolic size", "size", "not a tensor"])
def test_calls(product, x, y, message):
    with pytest.raises((rd.RoundelError, TypeError), match=message):
        product(x, y)
    good = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(product(*good), np.full((2, 4), 3, np.float32))


def test_absurd_call(product):
    """Sizes whose product overflows are refused before anything is computed: the tensor takes no memory, all strides are 0."""
    x = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1 << 40, 1 << 18), (0, 0))
    y = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1 << 18, 4), (0, 0))
    with pytest.raises((rd.RoundelError, MemoryError), match="large|llocate|overflow|fit"):
        product(x, y)
