# SPDX-License-Identifier: Apache-2.0
"""Convolutions and products by oneDNN: what follows them, layouts, types, symbolic sizes, threads; weights are reordered once."""

import ctypes
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import roundel as rd
from roundel import backends, driver
from roundel.backends import onednn
from roundel.backends.offers import parts_of, plain
from roundel.backends.onednn_calls import MOST_KEPT, SOURCE
from roundel.builder import BlockBuilder
from roundel.driver import libraries
from roundel.graph.tidy.dead_code import eliminate_dead_code
from roundel.ir import graph
from roundel.runtime import toolchain
from roundel.script import relax as R

pytestmark = pytest.mark.skipif(bool(onednn.LIBRARY.missing), reason=onednn.LIBRARY.missing)
rng = np.random.default_rng(0)


def values(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


def module(shape, body, dtype="float32", symbolic=()):
    """What ``body`` emits for a tensor of this shape, of which these axes are of symbolic size."""
    sizes = {k: rd.te.size_var(f"n{k}") for k in symbolic}
    x = graph.Var("x", graph.TensorInfo(tuple(sizes.get(k, n) for k, n in enumerate(shape)), dtype))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(body(bb, x))
        bb.emit_func_output(out)
    return bb.get()


def compiled(mod, **options):
    return rd.compile(mod, choices={"*": "onednn"}, **options)


def same(mod, *inputs, tolerance=1e-4, **options):
    """The model by oneDNN computes what the interpreter does; returns it."""
    model = compiled(mod, **options)
    expected = rd.interpret(mod)["main"](*inputs)
    np.testing.assert_allclose(model(*inputs), expected, rtol=tolerance, atol=tolerance * max(1, np.abs(expected).max()))
    return model


def chosen(mod):
    """The choices between libraries and generated code, when oneDNN is asked for everywhere."""
    return [c.taken for c in driver.prepare(mod, choices={"*": "onednn"}, pipeline=[libraries]).choices.made if c.kind == "library"]


CONVOLUTIONS = {
    "3x3": ((1, 8, 9, 11), (16, 8, 3, 3), {"padding": (1, 1)}),
    "1x1": ((1, 8, 9, 11), (5, 8, 1, 1), {}),
    "strides and padding on one side": ((1, 3, 13, 12), (8, 3, 3, 3), {"strides": (2, 2), "padding": (0, 0, 1, 1)}),
    "strides that leave rows over": ((1, 3, 12, 12), (8, 3, 3, 3), {"strides": (2, 3)}),
    "dilation": ((1, 4, 12, 12), (4, 4, 3, 3), {"dilation": (2, 3), "padding": (2, 3)}),
    "groups": ((1, 8, 7, 7), (12, 2, 3, 3), {"groups": 4, "padding": (1, 1)}),
    "depthwise": ((1, 16, 7, 7), (16, 1, 3, 3), {"groups": 16, "padding": (1, 1)}),
    "several images": ((3, 4, 6, 6), (8, 4, 3, 3), {"padding": (1, 1)}),
    "a row": ((1, 4, 1, 40), (8, 4, 1, 7), {"padding": (0, 3)}),
}


@pytest.mark.parametrize("case", CONVOLUTIONS.values(), ids=CONVOLUTIONS.keys())
@pytest.mark.parametrize("threads", [1, 2])
def test_convolutions(case, threads):
    shape, weights, attrs = case
    mod = module(shape, lambda bb, x: R.nn.conv2d(x, R.const(values(*weights)), **attrs))
    assert chosen(mod) == ["onednn"]
    same(mod, values(*shape), threads=threads)


@pytest.mark.parametrize("axes", [(0,), (2, 3), (0, 2, 3)])
def test_convolutions_of_symbolic_sizes(axes):
    weights = R.const(values(8, 4, 3, 3))
    mod = module((2, 4, 9, 9), lambda bb, x: R.nn.relu(bb.emit(R.nn.conv2d(x, weights, padding=(1, 1), strides=(2, 2)))), symbolic=axes)
    model = same(mod, values(2, 4, 9, 9), threads=2)
    for shape in ((1, 4, 9, 9), (5, 4, 8, 7)):
        shape = tuple(n if k in axes else m for k, (n, m) in enumerate(zip(shape, (2, 4, 9, 9), strict=True)))
        x = values(*shape)
        np.testing.assert_allclose(model(x), rd.interpret(mod)["main"](x), rtol=1e-4, atol=1e-4)


AFTER = {
    "relu": R.nn.relu, "gelu": R.nn.gelu, "gelu_tanh": R.nn.gelu_tanh, "silu": R.nn.silu, "sigmoid": R.sigmoid, "tanh": R.tanh,
    "hardswish": lambda v: R.nn.hardswish(v),
}


@pytest.mark.parametrize("name", AFTER)
def test_functions_after_a_product_are_part_of_it(name):
    weights, bias = R.const(values(12, 20)), R.const(values(20))
    mod = module((7, 12), lambda bb, x: AFTER[name](bb.emit(R.add(bb.emit(R.matmul(x, weights)), bias))))
    assert operators_left(mod) == []
    same(mod, values(7, 12))


def operators_left(mod):
    """The operators that are not in a call of the library or the code that stands in for it."""
    return operators(driver.prepare(mod, choices={"*": "onednn"}, pipeline=[libraries]))


def operators(mod):
    names = [b.value.op.name for b in mod["main"].body.bindings if isinstance(b.value, graph.Call)]
    return [n for n in names if n != "call_tir"]


def test_limits_and_added_tensors_in_any_order():
    weights, bias = R.const(values(8, 4, 3, 3)), R.const(values(8, 1, 1))

    def clipped(bb, x):
        a = bb.emit(R.add(bb.emit(R.nn.conv2d(x, weights, padding=(1, 1))), bias))
        return bb.emit(R.minimum(bb.emit(R.maximum(a, R.const(np.float32(0)))), R.const(np.float32(1.5))))

    for body in (lambda bb, x: R.add(clipped(bb, x), clipped(bb, x)), lambda bb, x: R.nn.relu(bb.emit(R.add(clipped(bb, x), clipped(bb, x))))):
        mod = module((1, 4, 6, 6), body)
        assert "maximum" not in operators_left(mod) and "add" not in operators_left(mod)
        same(mod, values(1, 4, 6, 6), threads=2)


PRODUCTS = {
    "weights": ((70, 33), (33, 17), False), "weights, of a batch": ((3, 5, 33), (33, 17), False), "matrices": ((3, 70, 33), (3, 33, 17), True),
    "a batch of batches": ((2, 3, 5, 9), (2, 3, 9, 4), True), "a row": ((1, 64), (64, 100), False), "many rows": ((700, 9), (9, 40), False),
}


@pytest.mark.parametrize("case", PRODUCTS.values(), ids=PRODUCTS.keys())
def test_products(case):
    left, right, two_inputs = case
    for symbolic in ((), (len(left) - 2,)):
        b = graph.Var("b", graph.TensorInfo(right, "float32")) if two_inputs else R.const(values(*right))
        mod = module(left, lambda bb, x, b=b: R.matmul(x, b), symbolic=symbolic)
        if two_inputs:
            mod = mod.with_functions({"main": mod["main"].replace(params=(*mod["main"].params, b))})
        assert chosen(mod) == ["onednn"]
        same(mod, values(*left), *([values(*right)] if two_inputs else []), threads=2)


def test_what_it_cannot_compute_says_why():
    for body in (lambda bb, x: R.matmul(bb.emit(R.astype(x, dtype="float16")), R.const(values(8, 4).astype(np.float16))),
                 lambda bb, x: R.matmul(x, R.const(values(8)))):
        with pytest.raises(rd.RoundelError, match="onednn cannot be had"):
            compiled(module((4, 8), body))
    wide = module((1, 2, 5, 5), lambda bb, x: R.nn.conv2d(x, R.const(values(2, 2, 1, 1)), padding=(1, 1)))
    with pytest.raises(rd.RoundelError, match="padding is wider than its kernel"):
        compiled(wide)


def test_bfloat16():
    import ml_dtypes

    weights = R.const(values(32, 16).astype(ml_dtypes.bfloat16))
    mod = module((5, 32), lambda bb, x: R.nn.relu(bb.emit(R.matmul(x, weights))), dtype="bfloat16")
    if chosen(mod) != ["onednn"]:
        pytest.skip("the processor has no AVX-512")
    x = values(5, 32).astype(ml_dtypes.bfloat16)
    got, want = (np.asarray(f(x)).astype(np.float32) for f in (compiled(mod), rd.interpret(mod)["main"]))
    np.testing.assert_allclose(got, want, rtol=0.02, atol=0.02 * np.abs(want).max())


INTEGERS = {"zero point 0": ("uint8", 0), "zero point 3": ("uint8", 3), "signed": ("int8", 0), "signed, with a zero point": ("int8", -5)}


@pytest.mark.parametrize("case", INTEGERS.values(), ids=INTEGERS.keys())
@pytest.mark.parametrize("groups", [1, 8, 0])
def test_quantised_products(case, groups):
    """A quantised convolution of so many groups, or a product (0), between others, as ONNX models have them."""
    dtype, zero = case
    shape = (6, 32) if not groups else (1, 8, 9, 9)
    weights = rng.integers(-127, 128, (32, 16) if not groups else (8, 8 // groups, 3, 3)).astype(np.int32)
    scales = (rng.random(16 if not groups else (8, 1, 1)) * 0.01).astype(np.float32)
    bias = values(16) if not groups else values(8, 1, 1)
    limits = np.iinfo(dtype)

    def body(bb, x):
        number = lambda v: R.const(np.float32(v))
        q = bb.emit(R.round(bb.emit(R.multiply(x, number(50)))))
        q = bb.emit(R.minimum(bb.emit(R.maximum(bb.emit(R.add(q, number(zero))), number(limits.min))), number(limits.max)))
        wide = bb.emit(R.astype(q, dtype="int32"))
        wide = bb.emit(R.subtract(wide, R.const(np.int32(zero)))) if zero else wide
        product = R.nn.conv2d(wide, R.const(weights), padding=(1, 1), groups=groups) if groups else R.matmul(wide, R.const(weights))
        total = bb.emit(R.astype(bb.emit(product), dtype="float32"))
        return bb.emit(R.nn.relu(bb.emit(R.add(bb.emit(R.multiply(total, R.const(scales))), R.const(bias)))))

    mod = module(shape, body)
    if "onednn" not in chosen(mod):
        pytest.skip("the processor has no VNNI")
    assert chosen(mod) == ["onednn"] and "relu" not in "".join(operators_left(mod))
    same(mod, values(*shape), threads=2, tolerance=1e-5)


# -- layouts


def chain(length):
    """Convolutions one after the other, each with what may follow it, some with an elementwise operator that oneDNN does not compute between them."""
    weights = [R.const(values(8, 8, 3, 3) / 8) for _ in range(length)]

    def body(bb, x):
        for k, w in enumerate(weights):
            x = bb.emit(R.nn.conv2d(x, w, padding=(1, 1)))
            x = bb.emit([R.nn.relu, R.cos, lambda v: v][k % 3](x))
        return bb.emit(R.multiply(x, R.const(np.float32(2))))

    return module((1, 8, 10, 10), body)


def test_a_chain_converts_layouts_at_its_ends_only():
    mod = chain(10)
    found = operators(driver.prepare(mod, choices={"*": "onednn"}, pipeline=[libraries, eliminate_dead_code]))
    assert found.count("permute_dims") == 2, found
    same(mod, values(1, 8, 10, 10), threads=2)


def ends(mod):
    """What oneDNN is expected to take at each of its kernels, with its share of conversions, and without."""
    made = driver.prepare(mod, choices={"*": "onednn"}, pipeline=[libraries]).choices.made
    with_ends = [c.alternatives["onednn"] for c in made if c.kind == "library"]
    func = plain(mod["main"])
    return with_ends, [p.offers["onednn"].kernel.cycles for p in parts_of(func, [onednn.BACKEND], rd.Target.host())]


def test_conversions_are_priced_over_chains():
    """Each kernel of a longer chain of equal ones bears less of the conversions at its ends."""
    borne = []
    for length in (1, 2, 4):
        with_ends, alone = ends(chain(length))
        shares = [a - b for a, b in zip(with_ends, alone, strict=True)]
        assert len(shares) == length and all(s == pytest.approx(shares[0]) for s in shares)
        borne.append(shares[0])
    assert borne[0] > 0 and borne == pytest.approx([borne[0], borne[0] / 2, borne[0] / 4])


def test_what_ends_a_chain_is_paid_for_by_it():
    """Reading the middle of a chain costs one more conversion; a convolution in a chain of its own bears both of its own."""
    weights = [R.const(values(8, 8, 3, 3)) for _ in range(3)]

    def body(read):
        def made(bb, x):
            a = bb.emit(R.nn.conv2d(x, weights[0], padding=(1, 1)))
            b = bb.emit(R.nn.conv2d(a, weights[1], padding=(1, 1)))
            return bb.emit(R.nn.softmax(b, axis=1)) if not read else bb.emit(R.add(bb.emit(R.sum(a, keepdims=True)), bb.emit(R.nn.softmax(b, axis=1))))
        return made

    apart = module((1, 8, 10, 10), lambda bb, x: R.nn.conv2d(bb.emit(R.nn.softmax(bb.emit(R.nn.conv2d(x, weights[0], padding=(1, 1))), axis=1)), weights[1],
                                                             padding=(1, 1)))
    sums = [sum(a) - sum(b) for a, b in map(ends, (module((1, 8, 10, 10), body(False)), module((1, 8, 10, 10), body(True)), apart))]
    assert sums == pytest.approx([sums[0], 1.5 * sums[0], 2 * sums[0]], rel=0.1)


def test_models_pass_verification():
    same(chain(4), values(1, 8, 10, 10), verify=True)


# -- what is kept, threads, the library that is missing


RUN = """
import numpy as np, roundel as rd
from concurrent.futures import ThreadPoolExecutor
model, x = rd.load({file!r}, threads={threads}), np.load({data!r})
with ThreadPoolExecutor(2) as pool:
    outputs = [model(x), *pool.map(lambda _: model(x), range(8))]
assert all(np.array_equal(outputs[0], o) for o in outputs)
tasks = len(__import__("os").listdir("/proc/self/task"))
np.save({out!r}, outputs[0]); print("tasks", tasks)
"""


def in_process(tmp_path, file, x, threads, **variables):
    """The outputs of a file's model in a process of its own (nine runs, several at once), what it printed, what it said."""
    np.save(tmp_path / "x.npy", x)
    text = RUN.format(file=str(file), data=str(tmp_path / "x.npy"), out=str(tmp_path / "y.npy"), threads=threads)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, env={**os.environ, **variables})
    return np.load(tmp_path / "y.npy"), done.stdout, done.stderr


@pytest.mark.parametrize("threads", [1, 2])
def test_weights_are_reordered_once_and_threads_are_the_models_own(tmp_path, threads):
    mod, x = chain(4), values(1, 8, 10, 10)
    expected = rd.interpret(mod)["main"](x)
    file = compiled(mod, threads=threads).save(tmp_path / "model.so")
    got, printed, _ = in_process(tmp_path, file, x, threads, DNNL_VERBOSE="1", OMP_NUM_THREADS="8")
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    runs = re.findall(r"onednn_verbose,exec,cpu,(\w+),", printed)
    assert runs.count("reorder") <= 4 and runs.count("convolution") >= 4 * 9
    alone = subprocess.run([sys.executable, "-c", "import numpy, roundel, os; print(len(os.listdir('/proc/self/task')))"], capture_output=True, text=True,
                           check=True, env={**os.environ, "OMP_NUM_THREADS": "8"})  # NumPy's own library starts threads by this, too
    tasks = int(re.search(r"tasks (\d+)", printed).group(1))
    assert tasks <= int(alone.stdout) + 2 * threads, "two callers, and for each the model's own: OpenMP would start seven"


def test_a_file_runs_without_the_library_and_says_so(tmp_path, monkeypatch):
    (tmp_path / "libdnnl.so.3").symlink_to(library())
    monkeypatch.setattr(onednn, "LIBRARY", replace(onednn.LIBRARY, files=lambda: [str(tmp_path / "libdnnl.so.3")]))
    mod, x = chain(4), values(1, 8, 10, 10)
    expected = rd.interpret(mod)["main"](x)
    file = compiled(mod).save(tmp_path / "model.so")
    needed = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
    assert "dnnl" not in needed and "gomp" not in needed

    def outcome():
        got, _, said = in_process(tmp_path, file, x, 1)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
        return said

    assert not outcome()
    (tmp_path / "libdnnl.so.3").unlink()
    said = outcome()
    assert said.count("the library onednn is not found") == 1 and "generated code runs instead" in said


def library():
    """The file of oneDNN that this process has loaded."""
    return next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libdnnl" in line)


def shim(folder, text):
    """A library that has these functions, and for the others asks oneDNN."""
    source, made = folder / "shim.c", folder / "libshim.so"
    source.write_text(text)
    toolchain.run([*toolchain.compiler(), "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", made, source, library()])
    return made


FAILURES = {"a primitive": "int dnnl_primitive_execute(void) { return 5; }", "a description": "int dnnl_matmul_primitive_desc_create(void) { return 3; }",
            "a reorder": "int dnnl_reorder_primitive_desc_create(void) { return 1; }", "an engine": "int dnnl_engine_create(void) { return 5; }",
            "memory": "int dnnl_memory_create(void) { return 1; }"}
MEANINGS = {5: "runtime error", 3: "unimplemented", 1: "out of memory"}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
@pytest.mark.parametrize("threads", [1, 2])
def test_a_call_that_fails_is_an_error_that_says_why(failure, threads, tmp_path, monkeypatch):
    weights = R.const(values(96, 96))
    mod = module((40, 96), lambda bb, x: R.matmul(x, weights))
    file = shim(tmp_path, failure)
    monkeypatch.setattr(onednn, "LIBRARY", replace(onednn.LIBRARY, files=lambda: [str(file)]))
    model = compiled(mod, threads=threads)
    status = int(re.search(r"return (\d)", failure).group(1))
    for _ in range(2):
        try:
            model(values(40, 96))
        except rd.RoundelError as error:
            assert f"onednn cannot compute matmul 40x96 by 96x96: status {status}, {MEANINGS[status]}" in str(error)
        else:
            assert "reorder" in failure, "oneDNN may multiply these weights as they are"


def test_what_it_may_not_use_of_the_processor_generated_code_computes(tmp_path):
    """Told to use SSE alone, it has no bfloat16, and its 8-bit products are not exact."""
    import ml_dtypes

    weights = R.const(values(32, 16).astype(ml_dtypes.bfloat16))
    mod = module((5, 32), lambda bb, x: R.astype(bb.emit(R.matmul(bb.emit(R.astype(x, dtype="bfloat16")), weights)), dtype="float32"))
    if chosen(mod) != ["onednn"]:
        pytest.skip("the processor has no AVX-512")
    file, x = compiled(mod).save(tmp_path / "model.so"), values(5, 32)
    for isa, calls in (("DEFAULT", 1), ("SSE41", 0)):
        got, printed, said = in_process(tmp_path, file, x, 1, DNNL_VERBOSE="1", DNNL_MAX_CPU_ISA=isa)
        assert bool(re.search("exec,cpu,matmul", printed)) == calls and not said
        np.testing.assert_allclose(got, rd.interpret(mod)["main"](x), rtol=0.02, atol=0.1)


def test_primitives_of_symbolic_sizes_are_kept_up_to_a_limit(tmp_path, monkeypatch):
    """Three sizes that come by turns are made once where three are kept, and each time where two are."""
    weights = R.const(values(8, 4, 3, 3))
    mod = module((1, 4, 9, 9), lambda bb, x: R.nn.conv2d(x, weights, padding=(1, 1)), symbolic=(2,))
    text = """
    #include <dlfcn.h>
    static int count;
    int made(void) { return count; }
    int dnnl_primitive_create(void **made, const void *description) {
      count++;
      return ((int (*)(void **, const void *))dlsym(dlopen("@FILE@", RTLD_NOW), __func__))(made, description);
    }
    """
    file = shim(tmp_path, text.replace("@FILE@", library()))
    for kept, expected in ((2, 9), (3, 3)):
        source = SOURCE.replace(f"MOST_KEPT = {MOST_KEPT} ", f"MOST_KEPT = {kept} ")
        monkeypatch.setattr(onednn, "LIBRARY", replace(onednn.LIBRARY, files=lambda: [str(file)], source=source))
        model, before = compiled(mod, threads=1), ctypes.CDLL(str(file)).made()
        for rows in (9, 10, 11) * 3:
            x = values(1, 4, rows, 9)
            np.testing.assert_allclose(model(x), rd.interpret(mod)["main"](x), rtol=1e-4, atol=1e-4)
        assert expected <= ctypes.CDLL(str(file)).made() - before <= expected + 3, "and its weights are reordered, for each form that it wants"


def test_the_callers_number_of_openmp_threads_stays():
    handle = ctypes.CDLL(next(f for f in onednn.LIBRARY.files() if _opens(f)))
    handle.omp_set_num_threads(3)
    model = compiled(module((4, 8), lambda bb, x: R.matmul(x, R.const(values(8, 8)))))
    model(values(4, 8))
    assert handle.omp_get_max_threads() == 3


def _opens(file):
    try:
        return bool(ctypes.CDLL(file))
    except OSError:
        return False


def test_several_models_at_once():
    mod, x = chain(3), values(1, 8, 10, 10)
    expected = rd.interpret(mod)["main"](x)
    models = [compiled(mod, threads=t) for t in (1, 2)]
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(lambda k: models[k % 2](x), range(32)):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_models_of_another_version_are_not_found_in_the_cache(tmp_path, monkeypatch):
    from roundel import cache

    keys = []
    monkeypatch.setattr(cache, "model_key", lambda files, parts: keys.append(tuple(parts)))
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in ("x", "y")]
    product = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    made = helper.make_graph([product], "g", info[:1], info[1:], [numpy_helper.from_array(values(8, 8), "w")])
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    for version in ("3.2.0", "3.3.0"):
        monkeypatch.setitem(onednn.BACKEND.__dict__, "current_version", version)
        rd.compile(tmp_path / "m.onnx", choices={"product": "onednn"})
        rd.compile(tmp_path / "m.onnx", libraries="onednn")
    assert len(set(keys)) == 4 and "3.2.0" in keys[0][-1] and "3.3.0" in keys[3][-1]


def test_it_is_one_of_the_backends():
    assert "onednn" in backends.available() and re.fullmatch(r"3\.\d+\.\d+", backends.find("onednn").current_version)
