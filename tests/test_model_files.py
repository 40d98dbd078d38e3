# SPDX-License-Identifier: Apache-2.0
"""The files of a model: every one that it names counts, whatever it is called, and no change goes unnoticed."""

from __future__ import annotations

import os
import shutil
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from roundel import model_files
from roundel.frontend.onnx.external import locations
from roundel.ir import cache_folder, options
from roundel.model_files import ModelFiles
from roundel.runtime import library

X = np.ones((1, 64), np.float32)


@pytest.fixture(autouse=True)
def root(tmp_path):
    """A cache with nothing in it but the C runtime."""
    runtime = library.folder()
    with options.override(cache=True, cache_dir=str(tmp_path / "cache")):
        if runtime.parent.name == "runtime":
            shutil.copytree(runtime, cache_folder.folder("runtime", make=True) / runtime.name)
        yield tmp_path / "cache"


def write(path, value, location=None, nested=False):
    """``y = x @ w`` with ``w`` all ``value``, which lies in the file ``location`` if there is one."""
    w = np.full((64, 64), value, np.float32)
    tensor = numpy_helper.from_array(w, "w")
    if location is not None:
        (path.parent / location).parent.mkdir(exist_ok=True)
        (path.parent / location).write_bytes(w.tobytes())
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (("location", location), ("offset", "0"), ("length", str(w.nbytes))):
            tensor.external_data.add(key=key, value=text)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    if nested:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=tensor))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["n", 64])], [helper.make_tensor_value_info("y", 1, ["n", 64])],
                              [] if nested else [tensor])
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString())
    return path


def age(*paths):
    for path in paths:
        os.utime(path, (time.time() - 100,) * 2)


@pytest.mark.parametrize("name, location, nested", [
    ("model.onnx", "weights.pb", False), ("model.onnx", "sub/w.data", True), ("model", "model.onnx.data", False),
    ("model.bin", "ä ö", True)])
def test_changed_external_weights_are_seen(tmp_path, name, location, nested):
    path = write(tmp_path / name, 1, location, nested)
    assert locations(path) == [location]
    np.testing.assert_array_equal(rd.compile(path)(X)[0], 64)
    write(path, 2, location, nested)
    np.testing.assert_array_equal(rd.compile(path)(X)[0], 128)


def test_locations_at_every_depth(tmp_path):
    def tensor(location):
        made = TensorProto(name="t", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
        made.external_data.add(key="offset", value="0")
        made.external_data.add(key="location", value=location)
        return made

    def graph(*tensors, nodes=(), sparse=()):
        return onnx.GraphProto(initializer=map(tensor, tensors), node=nodes, sparse_initializer=sparse)

    node = helper.make_node("C", [], ["z"], value=tensor("node"))
    deep = helper.make_node("If", ["c"], ["y"], then_branch=graph("then"), else_branch=graph("else", nodes=[node]))
    several = helper.make_node("Several", [], ["s"], tensors=[tensor("t0"), tensor("t1")], graphs=[graph("g0"), graph("g1")])
    sparse = onnx.SparseTensorProto(values=tensor("values"), indices=tensor("indices"))
    function = onnx.FunctionProto(name="f", node=[helper.make_node("C", [], ["z"], value=tensor("function"))])
    model = onnx.ModelProto(graph=graph("top", "top", nodes=[deep, several], sparse=[sparse]), functions=[function])
    model.training_info.add(algorithm=graph("training"))
    (tmp_path / "m").write_bytes(model.SerializeToString())
    assert sorted(locations(tmp_path / "m")) == sorted(
        ["then", "else", "node", "t0", "t1", "g0", "g1", "values", "indices", "function", "top", "training"])


def test_what_is_no_model_names_nothing(tmp_path):
    for content in (b"", b"\xff" * 40, os.urandom(5000), write(tmp_path / "m", 1, "w").read_bytes()[:-9]):
        (tmp_path / "x").write_bytes(content)
        assert isinstance(locations(tmp_path / "x"), list)


def test_strange_places_are_not_read(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    strange = ["/proc/kcore", "../cache/x", "fifo", "no\0name", "folder", "loop", "gone"]
    model = onnx.ModelProto()
    for location in strange:
        tensor = model.graph.initializer.add(data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value=location)
    (tmp_path / "m").write_bytes(model.SerializeToString())
    files = ModelFiles(tmp_path / "m")
    assert list(files.facts) == [""] and files.content


def test_a_second_look_reads_nothing(tmp_path, monkeypatch):
    path = write(tmp_path / "m.onnx", 1, "w.pb")
    age(path, tmp_path / "w.pb")
    monkeypatch.setattr(model_files, "_COARSE", -10**12)  # as if the files were old
    content = ModelFiles(path).content
    with monkeypatch.context() as patch:
        patch.setattr("hashlib.file_digest", None)
        assert ModelFiles(path).known and ModelFiles(path).content == content
    (tmp_path / "w.pb").write_bytes(bytes(64 * 64 * 4))
    assert not ModelFiles(path).known and ModelFiles(path).content != content


def test_times_may_lie(tmp_path):
    """A file with the same size and the old time of its content, or written twice within the grain of its times."""
    path = write(tmp_path / "m.onnx", 1)
    age(path)
    before = path.stat()
    np.testing.assert_array_equal(rd.compile(path)(X)[0], 64)
    write(path, 2)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    np.testing.assert_array_equal(rd.compile(path)(X)[0], 128)
    for value in (3, 4):
        write(path, value)
        np.testing.assert_array_equal(rd.compile(path)(X)[0], 64 * value)


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("how", ["in place", "shorter", "renamed over"])
def test_a_file_that_changes_while_it_is_compiled_is_an_error(tmp_path, monkeypatch, how, cache):
    from roundel import driver

    path, compile_module = write(tmp_path / "m.onnx", 1, "w.pb"), driver.compile_module
    age(path, tmp_path / "w.pb")

    def meanwhile(*args, **named):
        data = tmp_path / "w.pb"
        if how == "renamed over":
            (tmp_path / "new").write_bytes(bytes(data.stat().st_size))
            (tmp_path / "new").rename(data)
        else:
            data.write_bytes(bytes(data.stat().st_size if how == "in place" else 5))
        return compile_module(*args, **named)

    monkeypatch.setattr(driver, "compile_module", meanwhile)
    with options.override(cache=cache), pytest.raises(rd.RoundelError, match=r"w\.pb changed while it was compiled|became shorter"):
        rd.compile(path)


def test_links_into_a_store_are_followed(tmp_path):
    """As Hugging Face's library keeps models: the model and its data are links into one folder, under other names."""
    (tmp_path / "store").mkdir()
    (tmp_path / "named").mkdir()
    stored = write(tmp_path / "store" / "a1", 1, "model.onnx_data")
    (tmp_path / "store" / "model.onnx_data").rename(tmp_path / "store" / "b2")
    (tmp_path / "named" / "model.onnx").symlink_to("../store/a1")
    (tmp_path / "named" / "model.onnx_data").symlink_to("../store/b2")
    np.testing.assert_array_equal(rd.compile(tmp_path / "named" / "model.onnx")(X)[0], 64)
    write(stored, 2, "b2")
    write(stored, 2, "model.onnx_data")
    np.testing.assert_array_equal(rd.compile(tmp_path / "named" / "model.onnx")(X)[0], 128)
