# SPDX-License-Identifier: Apache-2.0
"""One file for several machines of a family: which of its levels runs where, that all agree, and files for newer machines than there is."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx import helper as h
from tests.boards.machines import ONE_FILE, Emulated
from tests.boards.test_remote import classifier, inputs, same

import roundel as rd
from roundel.boards import RemoteModel
from roundel.build.levels import merged
from roundel.ir.errors import BuildError, CallError, MachineError, OptionError
from roundel.ir.processors import this_family
from roundel.target.levels import levels_of

MODEL = classifier()
SMALL = h.make_model(h.make_graph([h.make_node("Relu", ["x"], ["y"])], "g", [h.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
                                  [h.make_tensor_value_info("y", TensorProto.FLOAT, [4])]), opset_imports=[h.make_opsetid("", 17)])
X86 = "x86-64,haswell,skylake-avx512"
ONLY_X86 = pytest.mark.skipif(this_family() != "x86_64", reason="runs code for x86-64")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The model for three machines, with its weights beside it, and what it gives."""
    folder = tmp_path_factory.mktemp("levels")
    model = rd.compile(MODEL, target=X86)
    x = inputs(3)
    return model, model.save(folder / "model.so", side_file=True, header=True), x, rd.compile(MODEL)(*x)


@pytest.mark.parametrize("given, names", [
    ("x86-64-any", ("cascadelake", "skylake-avx512", "haswell", "x86-64")), ("aarch64-any", ("armv8.6-a", "armv8.2-a", "armv8-a")),
    ("haswell, x86-64-v2", ("haswell", "x86-64-v2")), (["x86-64-v4", rd.Target("alderlake")], ("x86-64-v4", "alderlake")),
    ("x86-64-any,znver4", ("znver4", "cascadelake", "skylake-avx512", "haswell", "x86-64")),
    (["aarch64-any", "cortex-a76 -mattr=+i8mm"], ("armv8.6-a", "cortex-a76", "armv8.2-a", "armv8-a")),
    ("haswell", ()), ("llvm -mcpu=haswell -mattr=+avx2,+fma", ()), (None, ()), ({"kind": "llvm"}, ()),
])
def test_the_best_level_comes_first(given, names):
    assert tuple(level.name for level in levels_of(given)) == names


@pytest.mark.parametrize("given, said", [
    (["haswell", "cortex-a72"], "cannot be in one file"), (["haswell", "x86-64-v3"], "for the same processors"), (["haswell"] * 2, "the same processors"),
    (["cortex-m4", "cortex-m7"], "nothing chooses"), ([], "empty"), ("haswell,", "empty"), ("haswell,nothing", "no target 'nothing'"),
    ("aarch64-any,x86-64-any", "(?s)cannot be in one file.*compile a file for each"), ("x86-64-any,haswell", "for the same processors"),
])
def test_machines_that_cannot_share_a_file(given, said):
    with pytest.raises(OptionError, match=said):
        levels_of(given)


def test_one_machine_is_wanted_elsewhere():
    with pytest.raises(OptionError, match="names several machines"):
        rd.Target("x86-64-any")
    with pytest.raises(OptionError, match="(?s)x86-64-any names several machines, which have no options in common.*one by one"):
        rd.Target("x86-64-any -mattr=+avx2")


def test_equal_code_is_there_once_and_other_code_has_a_name_of_its_own():
    class Part:
        def __init__(self, **objects):
            self.symbols, self.objects = [k for k in objects if k.startswith("rk_")], [v.encode() for v in objects.values()]

    one, two, three = (f"rk_{c * 20}" for c in "123")
    objects = merged([Part(**{one: f"{one} a", two: f"{two} b", three: f"{three} calls {two}", "host": f"{one} {two} {three}"}),
                      Part(**{one: f"{one} a", two: f"{two} c", three: f"{three} calls {two}", "host": f"{one} {two} {three}"})])
    assert [o for o in objects[:3]] == [f"{one} a".encode(), f"{two} b".encode(), f"{three} calls {two}".encode()]
    new_two, new_three = (o.split()[0] for o in objects[3:5])
    assert objects[4].split()[2] == new_two and len({*objects[5].split(), *objects[6].split()}) == 5
    assert objects[6].split() == [one.encode(), new_two, new_three]


@ONLY_X86
@pytest.mark.parametrize("level", ["", *X86.split(",")])
def test_a_level_is_forced_or_the_best_that_there_is(saved, level, monkeypatch):
    model, path, x, want = saved
    monkeypatch.setenv("ROUNDEL_LEVEL", level)
    try:
        loaded = rd.load(path)
    except MachineError as error:
        assert "ROUNDEL_LEVEL asks for" in str(error) and level
        return
    assert loaded.metadata["level"] == level or not level
    assert loaded.metadata["levels"] == ["skylake-avx512", "haswell", "x86-64"]
    same(loaded(*x), want)
    same(loaded(*x), model(*x))
    assert rd.load(path).executable.num_threads >= 1 and f"level {loaded.metadata['level']} of" in str(loaded.explain())


@ONLY_X86
def test_an_unknown_level_is_an_error_that_names_those_there_are(saved, monkeypatch):
    monkeypatch.setenv("ROUNDEL_LEVEL", "znver9")
    with pytest.raises(CallError, match="'znver9', the model has the levels skylake-avx512, haswell, x86-64"):
        rd.load(saved[1])


def test_equal_weights_are_there_once(saved):
    model = saved[0]
    assert model.weights_nbytes < 3 * rd.compile(MODEL, target="haswell").weights_nbytes


def test_a_file_that_is_too_large_is_refused(saved, tmp_path):
    with pytest.raises(BuildError, match="may take 10,240") as caught:
        saved[0].save(tmp_path / "small.so", max_size="10K")
    assert "leave out levels" in str(caught.value) and not list(tmp_path.iterdir())
    with pytest.raises(BuildError, match=r"(?s)may take 10\n.*code and tables [0-9,]+\nhint: allow it [0-9,]+ bytes$"):  # half the weights would not do
        rd.compile(MODEL).save(tmp_path / "small.so", max_size=10)


@ONLY_X86
@pytest.mark.skipif(shutil.which("qemu-x86_64-static") is None, reason="needs qemu-x86_64-static")
@pytest.mark.parametrize("cpu, level", [("Nehalem", "x86-64"), ("Haswell", "haswell"), ("Skylake-Server", None)])
def test_the_same_model_on_older_machines(saved, cpu, level, monkeypatch):
    model, _, x, want = saved
    there = RemoteModel(model, f"qemu-x86_64-static -cpu {cpu}")
    same(there(*x), want)
    monkeypatch.setenv("ROUNDEL_LEVEL", "skylake-avx512")  # which no such machine is: an error, no signal
    with pytest.raises(CallError, match="ROUNDEL_LEVEL asks for skylake-avx512, which needs avx512"):
        there(*x)
    if level is not None:
        monkeypatch.setenv("ROUNDEL_LEVEL", level)
        same(there(*x), want)


@pytest.fixture(scope="module")
def for_all():
    """A small model in one file for all machines of each family, made when it is first asked for."""
    made = {}

    def get(target):
        if target not in made:
            made[target] = rd.compile(SMALL, target=target)
        return made[target]

    return get


@pytest.mark.parametrize("name", ONE_FILE)
def test_one_file_runs_on_each_machine_or_says_what_that_lacks(for_all, name):
    machine = ONE_FILE[name]
    if missing := machine.missing():
        pytest.skip(f"needs {missing}")
    for command, library in ((machine.command, False), (machine.with_libraries, True)):
        try:
            given = RemoteModel(for_all(machine.target), command, library=library)(np.float32([-1, 0, 2, 3]))
        except CallError as error:  # this machine, where it is not of the level that was asked for
            assert name.startswith("this machine at") and "ROUNDEL_LEVEL asks for" in str(error) and not error.signal
        else:
            np.testing.assert_array_equal(given, np.float32([0, 0, 2, 3]))


NEWER = [  # a target, a machine that has not all of it, and what it lacks
    (Emulated("haswell", "qemu-x86_64-static -cpu Nehalem", "cc"), "avx2"), (Emulated("skylake-avx512", "qemu-x86_64-static -cpu Haswell", "cc"), "avx512f"),
    (Emulated("x86-64-v2", "qemu-x86_64-static -cpu qemu64,-sse4.1,-sse4.2", "cc"), "sse4.2"),
    (Emulated("i686", "qemu-i386-static -cpu pentium3", "i686-linux-gnu-gcc"), "sse2"),
    (Emulated("armv8.2-a", "qemu-aarch64-static -cpu cortex-a72", "aarch64-linux-gnu-gcc"), "dotprod"),
    (Emulated("armv8.6-a", "qemu-aarch64-static -cpu cortex-a76", "aarch64-linux-gnu-gcc"), "i8mm"),
    (Emulated("armv8.6-a", "qemu-aarch64-static -cpu cortex-a72", "aarch64-linux-gnu-gcc"), "dotprod"),
    (Emulated("neoverse-v1", "qemu-aarch64-static -cpu max,sve=off", "aarch64-linux-gnu-gcc"), "sve"),
    (Emulated("neoverse-v1-sve", "qemu-aarch64-static -cpu max,sve-default-vector-length=16", "aarch64-linux-gnu-gcc"), "sve256"),
    (Emulated("cortex-a7", "qemu-arm-static -cpu cortex-a9", "arm-linux-gnueabihf-gcc"), "vfp4"),
    (Emulated("rv64gcv", "qemu-riscv64-static -cpu rv64,v=false", "riscv64-linux-gnu-gcc"), "v"),
]


@pytest.mark.parametrize("machine, lacks", NEWER, ids=lambda v: getattr(v, "target", None))
def test_a_file_for_a_newer_machine_is_an_error_and_no_signal(machine, lacks):
    if missing := machine.missing():
        pytest.skip(f"needs {missing}")
    with pytest.raises(CallError, match=f"built for CPUs with {lacks}, which this CPU does not have"):
        RemoteModel(rd.compile(SMALL, target=machine.target), machine.command)(np.ones(4, np.float32))


WITHOUT_PERMISSION = """
import ctypes, sys
class Stack(ctypes.Structure):
    _fields_ = [("place", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]
memory = ctypes.create_string_buffer(8192)  # too small for what a signal would save of the tiles: so Linux refuses them
assert ctypes.CDLL(None).sigaltstack(ctypes.byref(Stack(ctypes.addressof(memory), 0, 8192)), None) == 0
import roundel as rd
rd.load(sys.argv[1])
"""


@ONLY_X86
def test_tiles_without_permission_are_an_error(tmp_path):
    weights = numpy_helper.from_array(np.ones((256, 256), np.int8), "w")
    graph = h.make_graph([h.make_node("MatMulInteger", ["x", "w"], ["y"])], "g", [h.make_tensor_value_info("x", TensorProto.UINT8, [512, 256])],
                         [h.make_tensor_value_info("y", TensorProto.INT32, [512, 256])], [weights])
    model = rd.compile(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)]), target="llvm -mcpu=haswell -mattr=+amx-tile,+amx-int8")
    assert "amx-int8" in model.metadata["features"]
    path = model.save(tmp_path / "tiles.so")
    said = "amx-int8, which this CPU does not have, or the system does not let this process use"
    try:
        rd.load(path)
    except MachineError as error:
        assert said in str(error)  # where there are no tiles at all
    done = subprocess.run([sys.executable, "-c", WITHOUT_PERMISSION, path], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and said in done.stderr
