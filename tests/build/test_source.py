# SPDX-License-Identifier: Apache-2.0
"""Models saved as C source: they compile as strict C99 without a warning, compute what the library computes without undefined behaviour, and
refuse what does not fit."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
from c_models import COMPILERS, MODELS, STRICT, convolutions, listed, onnx_model, run_in_c, sanitized
from onnx import helper

import roundel as rd
from roundel.ir.errors import BuildError, OptionError
from roundel.runtime.native import DLTensor

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


FORMS = ("c", "c -mattr=+mve.fp", *(f"c -mcpu={cpu} -mattr=+vector-extensions" for cpu in ("x86-64", "haswell", "x86-64-v4")))


def close(got, want):
    """Equal whole numbers; floats but for rounding in another order."""
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5) if w.dtype.kind == "f" else np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", sorted(MODELS.keys() - {"attention", "recurrent"}))  # which take compilers long: see tests/hostile/c_source.py
def test_a_c_program_computes_what_the_library_computes(kind, form, compiler, tmp_path):
    """Under the sanitizers, in each form of vectors: also where the processor's own vectors are shorter than those of the text."""
    model, inputs = MODELS[kind]()
    want = listed(rd.compile(model)(*inputs))
    options = (*STRICT, "-O0", "-DSMALL_MEMORY_BYTES=65536", *sanitized(compiler))
    close(run_in_c(rd.compile(model, target=form), inputs, want, tmp_path, (compiler,), options), want)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("form", FORMS)
def test_no_compiler_warns_of_a_file_at_any_effort(form, kind, compiler, tmp_path):
    """For a processor without wide vectors too, whose ABI passes vectors in another way than that of a processor with them."""
    rd.compile(MODELS[kind]()[0], target=form).save(tmp_path / "net.c")
    for options in (("-O2",), ("-O2", "-march=haswell"), ("-O2", "-m32"), ("-O3", "-march=native"), ("-Os", "-std=gnu11")):
        command = [compiler, *STRICT, *options, "-DNET_MEMORY_BYTES=65536", "-DNDEBUG", "-c", "net.c", "-o", "made.o"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        if "-m32" not in options or "bits/" not in done.stderr:  # where this machine has no headers for it
            assert done.returncode == 0, f"{options}: {done.stderr[:2000]}"


def test_code_compiled_from_c_runs_in_this_process_and_as_a_library(tmp_path):
    model, inputs = convolutions()
    compiled = rd.compile(model, target="c")
    want = np.asarray(rd.compile(model)(*inputs))
    np.testing.assert_allclose(np.asarray(compiled(*inputs)), want, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.asarray(rd.load(compiled.save(tmp_path / "m.so"))(*inputs)), want, rtol=1e-4, atol=1e-6)


def tensor(array, keep):
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    keep += [shape, array]
    kind = {"f": 2, "i": 0, "u": 1}[array.dtype.kind]
    return DLTensor(data=array.ctypes.data, device_type=1, device_id=0, ndim=array.ndim, code=kind, bits=array.itemsize * 8, lanes=1,
                    shape=ctypes.addressof(shape), strides=None, byte_offset=0)


def opened_at(path):
    library = ctypes.CDLL(str(path))
    library.net_last_error.restype = ctypes.c_char_p
    return library


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("opened")
    rd.compile(convolutions()[0], target="c").save(folder / "net.c")
    subprocess.run(["gcc", *STRICT, "-O1", "-shared", "-fPIC", "net.c", "-lm", "-o", "net.so"], cwd=folder, check=True, timeout=120)
    return opened_at(folder / "net.so")


def call(library, x, y):
    keep = []
    status = library.net_run(ctypes.byref(tensor(x, keep)), ctypes.byref(tensor(y, keep)))
    return status, library.net_last_error().decode()


X, Y = np.zeros((1, 3, 12, 12), "f"), np.zeros((1, 10), "f")
WRONG = {
    "a shape": (X[:, :2].copy(), Y, 2, "input 0 ('x') has another size in some dimension: 2, expected 3"),
    "a rank": (X[0].copy(), Y, 2, "input 0 ('x') has another number of dimensions: 3, expected 4"),
    "a type": (X.astype("f8"), Y, 3, "input 0 ('x') has another type of element"),
    "an output's shape": (X, np.zeros((1, 9), "f"), 2, "output 0 ('y') has another size in some dimension: 9, expected 10"),
    "memory of the input": (X, X.reshape(-1)[:10].reshape(1, 10), 2, "output 0 ('y') shares memory with another tensor"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_an_error(opened, what):
    x, y, status, message = WRONG[what]
    assert call(opened, x, y) == (status, message)
    assert call(opened, X, Y)[0] == 0


def test_missing_data_and_strides_are_errors(opened):
    keep = []
    t = tensor(X, keep)
    t.data = None
    assert opened.net_run(ctypes.byref(t), ctypes.byref(tensor(Y, keep))) == 2
    assert opened.net_run(None, ctypes.byref(tensor(Y, keep))) == 2 and opened.net_last_error() == b"the inputs are a null pointer"
    assert opened.net_run(ctypes.byref(tensor(X, keep)), None) == 2 and opened.net_last_error() == b"the outputs are a null pointer"
    t = tensor(X, keep)
    t.data += 2
    assert opened.net_run(ctypes.byref(t), ctypes.byref(tensor(Y, keep))) == 2
    assert opened.net_last_error() == b"input 0 ('x') does not lie where its elements may lie"
    t, strides = tensor(X, keep), (ctypes.c_int64 * 4)(1, 1, 1, 1)
    t.strides = ctypes.addressof(strides)
    assert opened.net_run(ctypes.byref(t), ctypes.byref(tensor(Y, keep))) == 2
    assert opened.net_last_error() == b"input 0 ('x') is not compact"


def test_weights_in_a_file_are_given_by_the_program(tmp_path):
    model, inputs = convolutions()
    compiled = rd.compile(model, target="c")
    compiled.save(tmp_path / "net.c", side_file=True)
    assert "rd_weights[" not in (tmp_path / "net.c").read_text()
    subprocess.run(["gcc", *STRICT, "-O1", "-shared", "-fPIC", "net.c", "-lm", "-o", "net.so"], cwd=tmp_path, check=True, timeout=120)
    library, y = ctypes.CDLL(str(tmp_path / "net.so")), np.zeros((1, 10), "f")
    library.net_last_error.restype = ctypes.c_char_p
    assert call(library, inputs[0], y) == (2, "the weights were not given to net_set_weights")
    content = (tmp_path / "net.weights").read_bytes()
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 1
    for given, message in ((content[:-1], "another size"), (content + bytes(1), "another size"), (bytes(damaged), "damaged"), (None, "null pointer")):
        assert library.net_set_weights(given, ctypes.c_size_t(len(given or content))) == 2 and message in library.net_last_error().decode()
    assert library.net_set_weights(content, ctypes.c_size_t(len(content))) == 0
    assert call(library, inputs[0], y)[0] == 0
    np.testing.assert_allclose(y, np.asarray(rd.compile(model)(*inputs)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("target", ["c", "cortex-m4"])
@pytest.mark.parametrize("side_file", [False, True])
def test_the_header_declares_every_function_of_the_file(target, side_file, tmp_path):
    """In C and in C++: a program that has the header alone calls whatever the object has."""
    model = rd.compile(convolutions()[0], target=target)
    model.save(tmp_path / "net.c", side_file=side_file, header=True)
    header = (tmp_path / "net.h").read_text()
    defined = set(re.findall(r"^(?!static)\w[\w *]*?\b(net_\w+)\(.*\) \{", (tmp_path / "net.c").read_text(), re.MULTILINE))
    assert {"net_run", "net_close"} <= defined and ("net_set_weights" in defined) == side_file
    assert defined == set(re.findall(r"^(?!static)\w[\w *]*?\b(net_\w+)\(", header, re.MULTILINE))
    uses = "".join(f"  total += (size_t)&{name};\n" for name in sorted(defined))
    for language in ("c", "c++"):
        (tmp_path / "use.c").write_text(f'#include "net.h"\nsize_t total;\nvoid use(void) {{\n{uses}}}\n' if side_file else '#include "net.h"\n')
        subprocess.run(["gcc", "-x", language, "-Wall", "-Wextra", "-Werror", "-c", "use.c", "-o", "use.o"], cwd=tmp_path, check=True, timeout=120)


def test_too_little_memory_is_an_error_where_sizes_are_those_of_the_call(tmp_path):
    model, inputs = MODELS["dense"]()
    rd.compile(model, target="c").save(tmp_path / "net.c")
    failed = subprocess.run(["gcc", *STRICT, "-O0", "-c", "net.c"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "how much memory the model needs depends on its inputs: compile with -DNET_MEMORY_BYTES=..." in failed.stderr
    subprocess.run(["gcc", *STRICT, "-O0", "-DNET_MEMORY_BYTES=256", "-shared", "-fPIC", "net.c", "-lm", "-o", "net.so"], cwd=tmp_path, check=True, timeout=120)
    status, message = call(opened_at(tmp_path / "net.so"), inputs[0], np.zeros_like(inputs[0]))
    told = re.fullmatch(r"the memory in bytes that the model was given, NET_MEMORY_BYTES, is too small: 256, expected (\d+)", message)
    assert status == 4 and told, message
    enough = f"-DNET_MEMORY_BYTES={told[1]}"
    subprocess.run(["gcc", *STRICT, "-O0", enough, "-shared", "-fPIC", "net.c", "-lm", "-o", "more.so"], cwd=tmp_path, check=True, timeout=120)
    assert call(opened_at(tmp_path / "more.so"), inputs[0], np.zeros_like(inputs[0]))[0] == 0


def test_what_c_source_has_no_place_for_is_refused(tmp_path):
    model = onnx_model([helper.make_node("NonZero", ["x"], ["y"])], {"x": ("float32", [8])}, {"y": ("int64", [1, "n"])})
    with pytest.raises(BuildError, match="cannot be one C file: the shape of an output is known only when the model has run"):
        rd.compile(model, target="c").save(tmp_path / "m.c")
    assert not list(tmp_path.iterdir())
    texts = onnx_model([helper.make_node("Identity", ["x"], ["y"])], {"x": (object, [2])}, {"y": (object, [2])})
    for target in ("c", "cortex-m4"):
        with pytest.raises(BuildError, match="cannot be C source.*(?s:.)*takes or gives texts"):
            rd.compile(texts, target=target).save(tmp_path / "m.c")
    with pytest.raises(OptionError, match="m.c: this model was not compiled to C"):
        rd.compile(convolutions()[0]).save(tmp_path / "m.c")


def test_a_processor_that_is_none_is_refused():
    with pytest.raises(OptionError, match="no processor 'cortex-a722'.*(?s:.)*is cortex-a72 meant"):
        rd.compile(convolutions()[0], target="c -mtriple=aarch64-linux-gnu -mcpu=cortex-a722")


def test_the_source_says_what_it_is(tmp_path):
    text = rd.compile(convolutions()[0], target="c").save(tmp_path / "net.c", header=True).read_text()
    assert text.startswith("/* net: a model compiled by Roundel")
    header = (tmp_path / "net.h").read_text()
    assert "Compile or link net.c with the program" in header and "One run at a time." in header
    assert not any(word in header for word in ("several threads", "ROUNDEL_NUM_THREADS", "dlclose", ".so"))
    assert "bytes of memory" in text and "net_run: x: float32" in text
    for word in ("malloc", "pthread", "printf", "__builtin", "_Thread_local"):
        assert word not in text


def test_tensors_called_as_what_headers_define(tmp_path):
    """Functions of math.h that the model calls or not, types, macros, names of the runtime in the file: tensors may have them."""
    names = "sinh tanhf erf fmaf rint isnan memset strlen int64_t size_t NULL INT64_C DLTensor RdContext rd_run RD_OK roundel_library linux ctx M_PI I".split()
    kinds, inputs = ["Sinh", "Erf", "Tanh", "Cosh", "Exp", "Round"], ["x", *names]
    nodes = [helper.make_node(kinds[k % len(kinds)], [inputs[k]], [name]) for k, name in enumerate(names)]
    model = rd.compile(onnx_model(nodes, {"x": ("float32", [3])}, {n: ("float32", [3]) for n in names}), target="c")
    np.testing.assert_allclose(model(np.zeros(3, "f"))[0], np.zeros(3))
    model.save(tmp_path / "net.c")
    for standard in ("-std=c99", "-std=gnu99"):
        subprocess.run(["gcc", *STRICT, standard, "-fsyntax-only", "net.c"], cwd=tmp_path, check=True, timeout=60)
