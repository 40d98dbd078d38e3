# SPDX-License-Identifier: Apache-2.0
"""Models saved as WebAssembly modules: they import memory alone, compute in node what the library computes here, and refuse what does not fit."""

import json
import subprocess
import sys

import numpy as np
import pytest
from onnx import helper
from tests import browser
from tests.codegen.c_models import MODELS, convolutions, dense, listed, onnx_model, same
from tests.node_models import FOUND, Failed, Node

import roundel as rd
from roundel.build.wasm import _MOST, _leb, _Module, _number
from roundel.build.wasm_link import _functions
from roundel.ir.errors import BuildError, CallError, OptionError
from roundel.runtime.integrity import BLOCK

pytest.importorskip("ziglang")
in_node = pytest.mark.skipif(FOUND is None, reason="needs node")


@pytest.fixture(scope="module")
def node():
    with Node() as started:
        yield started


def compiled(model):
    return rd.compile(model, target="wasm32")


def run_where_it_can(node, file, inputs, **more):
    """The results in node, or, of a module that needs what this node has not, in wasmtime."""
    try:
        return node.run(file, inputs, **more)
    except Failed as error:
        assert error.code == "MachineError" and "no memory64, which the module needs (memory of more than 4 GiB; Chrome has it" in str(error)
    pytest.importorskip("wasmtime")
    from tests.wasmtime_models import Instance

    server = Instance(file)
    return server.run(inputs, len(server.metadata["functions"][0]["outputs"]))


@in_node
@pytest.mark.parametrize("kind", MODELS)
def test_a_module_computes_what_the_library_computes(node, kind, tmp_path):
    model, inputs = MODELS[kind]()
    want = listed(rd.compile(model)(*inputs))
    same(node.run(compiled(model).save(tmp_path / "m.wasm"), inputs), want)


@in_node
def test_one_module_serves_every_size(node, tmp_path):
    model, _ = dense()
    file, here = compiled(model).save(tmp_path / "m.wasm"), rd.compile(model)
    for n in (1, 3, 700, 0, 16):
        x = np.random.default_rng(n).standard_normal((n, 16)).astype("f")
        same(node.run(file, [x]), listed(here(x)))


@in_node
@pytest.mark.parametrize("dtype", ["f", "e", "?"])
def test_ends_of_rows_of_any_length(node, dtype, tmp_path):
    """Masks of 32 lanes, which LLVM 22 took for masks of bytes: it aborted."""
    nodes = [helper.make_node("Cast", ["x"], ["wide"], to=1), helper.make_node("Softmax", ["wide"], ["y"], axis=-1), helper.make_node("Not", ["b"], ["z"])]
    model = onnx_model(nodes, {"x": (dtype, (3, "n")), "b": ("?", (3, "n"))}, {"y": ("f", (3, "n")), "z": ("?", (3, "n"))})
    file, here = compiled(model).save(tmp_path / "m.wasm"), rd.compile(model)
    for n in (1, 31, 33, 64, 127):
        x = np.random.default_rng(n).standard_normal((3, n)).astype(dtype)
        same(node.run(file, [x, x > 0]), listed(here(x, x > 0)))


@in_node
def test_outputs_whose_sizes_the_run_tells(node, tmp_path):
    model = onnx_model([helper.make_node("NonZero", ["x"], ["y"])], {"x": ("float32", ["n"])}, {"y": ("int64", [1, "m"])})
    file = compiled(model).save(tmp_path / "m.wasm")
    for x in (np.zeros(5, "f"), np.array([0, 1, 0, 2], "f"), np.ones(1000, "f")):
        same(node.run(file, [x]), [np.stack(np.nonzero(x)).astype("int64")])


@in_node
@pytest.mark.slow  # where zig's C library was not wanted before
@pytest.mark.parametrize("target", ["wasm32", "wasm64"])
def test_functions_of_the_c_library_are_linked_in(node, target, tmp_path):
    nodes = [helper.make_node("Mod", ["x", "y"], ["a"], fmod=1), helper.make_node("Exp", ["a"], ["b"]), helper.make_node("Mul", ["b", "w"], ["z"])]
    rng = np.random.default_rng(0)
    model = onnx_model(nodes, {n: ("float64", ["n", 5]) for n in "xy"}, {"z": ("float64", ["n", 5])}, {"w": rng.standard_normal((1, 5))})
    inputs = [rng.standard_normal((4, 5)) for _ in "xy"]
    file = rd.compile(model, target=target).save(tmp_path / "m.wasm")
    same(run_where_it_can(node, file, inputs), listed(rd.compile(model)(*inputs)))
    assert _Module.read(file.read_bytes()).section(2)[:13] == b"\1\3env\6memory\2", "it imports no more than others"


def test_the_math_that_zig_has_in_its_own_language_is_compiled(tmp_path):
    """What the slow test above links with pointers of 64 bits."""
    made, *sources = _functions(tmp_path)
    assert b"tanhf" in made.read_bytes() and {"pow.c", "erff.c"} <= {path.name for path in sources}


@in_node
def test_memory_is_given_back_and_taken_again(node, tmp_path):
    file = compiled(dense()[0]).save(tmp_path / "m.wasm")
    sizes = []
    for n in (5000, 10, 5000, 3000, 5000):
        node.run(file, [np.zeros((n, 16), "f")])
        sizes.append(node.ask(file)["memory"])
    assert len(set(sizes)) == 1, "the first run took what the others needed"


@in_node
def test_outputs_stay_in_memory_as_inputs_of_the_next_run(node, tmp_path):
    """What each run adds to, as keys and values of a language model; memory does not grow with the number of runs."""
    nodes = [helper.make_node("Concat", ["past", "x"], ["now"], axis=0), helper.make_node("ReduceSum", ["now"], ["y"], keepdims=0)]
    model = onnx_model(nodes, {"x": ("f", (1, 3)), "past": ("f", ("n", 3))}, {"y": ("f", ()), "now": ("f", ("n + 1", 3))})
    file = compiled(model).save(tmp_path / "m.wasm")
    x = np.arange(3, dtype="f")[None]
    inputs = [x, np.zeros((0, 3), "f")]
    same(node.run(file, inputs, keeps={"states": {"now": 1}, "times": 5}), [np.array(15, "f"), np.repeat(x, 5, 0)])
    sizes = set()
    for _ in range(3):
        with pytest.raises(Failed, match="kept is released"):
            node.run(file, inputs, keeps={"states": {"now": 1}, "times": 300, "released": True})
        sizes.add(node.ask(file)["memory"])
    assert len(sizes) == 1
    with pytest.raises(Failed, match="no output nothing; its outputs are y, now"):
        node.run(file, inputs, keeps={"states": {"nothing": 1}, "times": 1})
    with pytest.raises(Failed, match="(?s)input.*x.*2"):
        node.run(file, [x, x], keeps={"states": {"now": 0}, "times": 2})


@in_node
def test_weights_beside_the_module(node, tmp_path):
    model, inputs = convolutions()
    made = compiled(model)
    file = made.save(tmp_path / "net.wasm", side_file=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.wasm", "net.wasm.weights"]
    assert file.stat().st_size < made.save(tmp_path / "whole.wasm").stat().st_size - made.weights_nbytes / 2
    same(node.run(file, inputs), listed(rd.compile(model)(*inputs)))


@in_node
@pytest.mark.parametrize("change, message", [
    (lambda w: w[:-1], r"weights has \d+ bytes, the module wants \d+"), (lambda w: b"", "weights has 0 bytes"), (lambda w: w + b"0", "bytes, the module wants"),
    (lambda w: w[:100] + bytes([w[100] ^ 1]) + w[101:], "weights is damaged"), (lambda w: w[:-64] + b"0" * 64, "weights belongs to another module"),
])
def test_weights_that_are_not_its_own_are_refused(node, tmp_path, change, message):
    file = compiled(convolutions()[0]).save(tmp_path / "m.wasm", side_file=True)
    weights = tmp_path / "m.wasm.weights"
    weights.write_bytes(change(weights.read_bytes()))
    with pytest.raises(Failed, match=message) as error:
        node.ask(file)
    assert error.value.code == "ValueError"
    weights.unlink()
    with pytest.raises(Failed, match="cannot be read"):
        node.ask(file)


@in_node
@pytest.mark.parametrize("change, message", [
    (lambda m: m[:-40], "damaged, or no WebAssembly"), (lambda m: m[: len(m) // 2], "damaged, or no WebAssembly"), (lambda m: b"", "damaged"),
    (lambda m: b"\0asm\1\0\0\0", "none that Roundel compiled"),
])
def test_a_damaged_module_is_refused(node, tmp_path, change, message):
    file = compiled(convolutions()[0]).save(tmp_path / "m.wasm")
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(Failed, match=message) as error:
        node.ask(file)
    assert error.value.code == "ValueError"


@in_node
@pytest.mark.parametrize("target, beside", [("wasm32", False), ("wasm32", True), ("wasm32-threads", True), ("wasm32-relaxed", False), ("wasm64", False)])
def test_every_byte_of_a_module_that_was_changed_is_found(node, target, beside, tmp_path):
    """Code, tables, weights, texts, and the digest itself."""
    file = rd.compile(convolutions()[0], target=target).save(tmp_path / "m.wasm", side_file=beside)
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    for at in {*rng.integers(len(whole), size=60).tolist(), *range(12), *range(len(whole) - 80, len(whole)), len(whole) - 1000, len(whole) - 3000}:
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(8))
        file.write_bytes(changed)
        with pytest.raises(Failed, match=r"m\.wasm is damaged|does not end in its digest|the module is damaged, or no|it has no section roundel") as error:
            node.ask(file)
        assert error.value.code == "ValueError", at


@in_node
def test_weights_in_a_module_are_compared_unless_one_says_otherwise(node, tmp_path):
    model, inputs = convolutions()
    file = compiled(model).save(tmp_path / "m.wasm")
    whole = bytearray(file.read_bytes())
    whole[-1000] ^= 1
    file.write_bytes(whole)
    with pytest.raises(Failed, match=r"m\.wasm is damaged; write the module again, and copy it"):
        node.ask(file)
    assert [a.shape for a in node.run(file, inputs, options={"check": False})] == [a.shape for a in listed(rd.compile(model)(*inputs))]


@in_node
def test_a_module_above_one_block_has_the_digest_that_the_loader_computes(node, tmp_path):
    weights = np.random.default_rng(0).standard_normal((1 << 9, 5 << 10)).astype("f")
    model = onnx_model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ("f", ("n", 1 << 9))}, {"y": ("f", ("n", 5 << 10))}, {"w": weights})
    file, x = compiled(model).save(tmp_path / "m.wasm"), np.eye(3, 1 << 9, dtype="f")
    assert file.stat().st_size > BLOCK
    same(node.run(file, [x]), [weights[:3]])
    with file.open("r+b") as changed:
        changed.seek(BLOCK + 5)
        changed.write(b"?")
    again = file.rename(tmp_path / "again.wasm")
    with pytest.raises(Failed, match="is damaged"):
        node.ask(again)


@in_node
@pytest.mark.parametrize("inputs, message", [
    ([np.zeros((1, 3, 12, 11), "f")], r"'x'.*12"), ([np.zeros((3, 12, 12), "f")], "dimensions"),
    ([np.zeros((1, 3, 12, 12), "d")], "as Float32Array, not as Float64Array"),
    ([], "1 inputs are wanted"), ([np.zeros((1, 3, 12, 12), "f")] * 2, "2 were given"),
])
def test_inputs_that_do_not_fit_are_errors(node, tmp_path, inputs, message):
    model, right = convolutions()
    file = compiled(model).save(tmp_path / "m.wasm")
    with pytest.raises(Failed, match=message) as error:
        node.run(file, inputs)
    assert error.value.code in ("ValueError", "TypeError")
    same(node.run(file, right), listed(rd.compile(model)(*right)))  # and the model is as good as before


@in_node
@pytest.mark.parametrize("asked, message", [
    ({"options": {"thread": 2}}, "there is no option thread; options are .*threads"),
    ({"options": {"weights": 7}}, "is to be given by its address .* not as number"),
    ({"inputs": [{"dtype": "float32", "named": "floaty", "shape": [0, 16], "data": ""}]}, "input x is float32, not floaty"),
    ({"inputs": [{"dtype": "float32", "shape": None, "data": "AAAAAAAAAAA="}]}, "input x has 2 elements, and .n,16. wants a multiple of 16"),
])
def test_what_javascript_misspells_is_an_error(node, tmp_path, asked, message):
    file = compiled(dense()[0]).save(tmp_path / "m.wasm", side_file="weights" in asked.get("options", {}))
    with pytest.raises(Failed, match=message) as error:
        node.ask(file, **asked)
    assert error.value.code in ("ValueError", "TypeError")


def inner_loops(file):
    """Multiplications, fused or not, of vectors in a module's code: the opcodes after the prefix of vectors."""
    code = _Module.read(file.read_bytes()).section(10)
    return code.count(b"\xfd\xe6\x01"), code.count(b"\xfd\x85\x02")


@in_node
def test_relaxed_vectors_are_taken_where_the_engine_has_them(node, tmp_path):
    model, inputs = convolutions()
    plain = compiled(model).save(tmp_path / "m.wasm")
    fused = rd.compile(model, target="wasm32-relaxed").save(tmp_path / "fused.wasm")
    assert inner_loops(plain)[0] and not inner_loops(plain)[1] and inner_loops(fused)[1] > inner_loops(fused)[0]
    want = listed(rd.compile(model)(*inputs))
    same(node.run(fused, inputs, others=[str(plain)]), want)
    with Node("--experimental-wasm-relaxed-simd") as relaxed:  # newer ones have them without being told
        same(relaxed.run(fused, inputs), want)
    try:
        same(node.run(fused, inputs), want)
    except Failed as error:
        assert error.code == "MachineError" and "has no relaxed-simd" in str(error)


@in_node
@pytest.mark.parametrize("kind", [dense, convolutions])
def test_threads_compute_what_one_computes(node, kind, tmp_path):
    model, inputs = kind()
    file, here = rd.compile(model, target="wasm32-threads").save(tmp_path / "m.wasm"), rd.compile(model)
    rows = (1, 5000, 0, 300) if kind is dense else (1,)
    for threads in (1, 2, 5):
        for n in rows:
            given = [np.random.default_rng(n).standard_normal((n, 16)).astype("f")] if kind is dense else inputs
            same(node.run(file, given, options={"threads": threads}), listed(here(*given)))
        assert node.ask(file, options={"threads": threads})["threads"] == threads
    for wrong in (0, 1.5, 257):
        with pytest.raises(Failed, match="whole number from 1 to 256"):
            node.ask(file, options={"threads": wrong})


@in_node
def test_a_thread_works_whenever_it_was_woken(tmp_path):
    """The first that it does is to ask for the time. It waits once more where it was woken for nothing."""
    rd.compile(dense()[0], target="wasm32-threads").save(tmp_path / "m.wasm", header=True)
    thread = (tmp_path / "roundel-thread.mjs").read_text()
    assert thread.count("now: () => performance.now()") == 1
    tells = thread.replace("now: () => performance.now()", 'now: () => (writeFileSync("works", ""), performance.now())')
    (tmp_path / "roundel-thread.mjs").write_text(f'import {{ writeFileSync }} from "node:fs";\n{tells}')
    (tmp_path / "use.mjs").write_text("""
import { existsSync, writeFileSync } from "node:fs";
import { load } from "./roundel.mjs";
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
let memory;
const Memory = WebAssembly.Memory;
WebAssembly.Memory = function (...of) { return (memory = new Memory(...of)); };
const model = await load(new URL("m.wasm", import.meta.url), { threads: 2 });
const wake = () => { const words = new Int32Array(memory.buffer); let woken = 0; words.forEach((_, k) => (woken += Atomics.notify(words, k))); return woken; };
while (!wake()) await pause();
await pause();
model.run({ x: { data: new Float32Array(5000 * 16), shape: [5000, 16] } });
for (let k = 0; k < 200 && !existsSync("works"); k += 1) await pause();
console.log(existsSync("works"));
process.exit();
""")
    done = subprocess.run(["node", "use.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "true\n"


@in_node
def test_an_engine_that_shares_no_memory_takes_the_module_without_threads(tmp_path):
    model, inputs = dense()
    plain, threads = compiled(model).save(tmp_path / "m.wasm"), rd.compile(model, target="wasm32-threads").save(tmp_path / "threads.wasm")
    with Node("--enable-sharedarraybuffer-per-context") as node:
        same(node.run(threads, inputs, others=[str(plain)]), listed(rd.compile(model)(*inputs)))
        with pytest.raises(Failed, match="has no atomics.*cross-origin isolated") as error:
            node.ask(threads)
        assert error.value.code == "MachineError"


@in_node
@pytest.mark.parametrize("kind, beside", [("convolutions", True), ("integers", False), ("dense", False)])
def test_pointers_of_64_bits(node, kind, beside, tmp_path):
    model, inputs = MODELS[kind]()
    file, want = rd.compile(model, target="wasm64").save(tmp_path / "m.wasm", side_file=beside), listed(rd.compile(model)(*inputs))
    same(run_where_it_can(node, file, inputs), want)
    narrow = compiled(model).save(tmp_path / "narrow.wasm", side_file=beside)
    same(node.run(file, inputs, others=[str(narrow)]), want)  # an engine without takes the other
    threads = rd.compile(model, target="wasm64-threads").save(tmp_path / "threads.wasm")
    same(node.run(threads, inputs, others=[str(narrow)], options={"threads": 3}), want)


@pytest.mark.slow
@pytest.mark.skipif(browser.FOUND is None, reason="there is no browser")
@pytest.mark.parametrize("target", ["wasm32", "wasm32-relaxed", "wasm64", "wasm64-relaxed"])
def test_browsers_compute_what_the_library_computes(target, tmp_path):
    from tests.browser_models import Page

    with Page(tmp_path) as page:
        for kind, make in MODELS.items():
            model, inputs = make()
            file = rd.compile(model, target=target).save(tmp_path / f"{kind}.wasm", side_file=kind == "convolutions")
            page.load(file.name)
            same(page.run(inputs), listed(rd.compile(model)(*inputs)))


@pytest.mark.slow
def test_memory_beyond_4_gib(tmp_path):
    """Activations of 4.5 GB, each the larger of what comes before and 0, and their sums."""
    pytest.importorskip("wasmtime")
    from tests.wasmtime_models import Instance

    rows, width = 1_100_000, 1024
    weights = np.tile(np.array([1, -1], "f"), width // 2)[None], np.ones((width, 1), "f")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]), helper.make_node("MatMul", ["b", "v"], ["y"]),
             helper.make_node("ReduceMax", ["b"], ["z"], axes=[0], keepdims=0)]
    model = onnx_model(nodes, {"x": ("f", ("n", 1))}, {"y": ("f", ("n", 1)), "z": ("f", (width,))}, dict(zip("wv", weights, strict=True)))
    server = Instance(rd.compile(model, target="wasm64").save(tmp_path / "m.wasm"))
    x = np.arange(rows, dtype="f")[:, None] - rows // 2
    y, z = server.run([x], 2)
    assert server.memory.data_len(server.store) > 1 << 32
    np.testing.assert_allclose(y, np.abs(x) * (width // 2), rtol=1e-6)
    np.testing.assert_allclose(z, np.tile([x.max(), -x.min()], width // 2))


def test_weights_that_no_memory_holds_are_refused_with_the_target_that_does(tmp_path, monkeypatch):
    model = convolutions()[0]
    for bits in _MOST:
        monkeypatch.setitem(_MOST, bits, 1000)
    with pytest.raises(BuildError, match=r"(?s)bytes of weights are too many for wasm32, whose memory has 4 GiB.*float16.*compile for wasm64"):
        compiled(model).save(tmp_path / "m.wasm")
    with pytest.raises(BuildError, match=r"too many for wasm64, whose memory has 16 GiB") as error:
        rd.compile(model, target="wasm64").save(tmp_path / "m.wasm")
    assert "compile for" not in str(error.value)


def test_steps_of_a_reduction_are_not_mixed():
    model = rd.compile(dense()[0], target="wasm32")
    assert {kernel["decisions"].get("unroll", 1) for kernel in model.kernels.values()} == {1}


@in_node
def test_too_little_memory_is_an_error(node, tmp_path):
    model, inputs = dense()
    file = compiled(model).save(tmp_path / "m.wasm")
    with pytest.raises(Failed, match="needs .* bytes of memory") as error:
        node.ask(file, options={"maximumBytes": 65536})
    assert error.value.code == "MemoryError"
    options = {"maximumBytes": 4 << 20}
    with pytest.raises(Failed, match="no memory") as error:
        node.run(file, [np.zeros((300_000, 16), "f")], options=options)
    assert error.value.code == "MemoryError"
    same(node.run(file, inputs, options=options), listed(rd.compile(model)(*inputs)))


def test_a_module_imports_memory_alone(tmp_path):
    module = _Module.read(compiled(convolutions()[0]).save(tmp_path / "m.wasm").read_bytes())
    assert module.section(2)[:13] == b"\1\3env\6memory\2"
    assert not module.section(8), "nothing runs before it is called"


def test_the_header_of_a_module_is_the_es_module_and_its_types(tmp_path):
    compiled(dense()[0]).save(tmp_path / "m.wasm", header=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.wasm", "roundel-thread.mjs", "roundel.d.mts", "roundel.mjs"]


def test_other_endings_are_refused(tmp_path):
    model, _ = dense()
    for name in ("m.so", "m.o", "m.c", "m"):
        with pytest.raises(OptionError, match=r"ends in \.wasm"):
            compiled(model).save(tmp_path / name)
    with pytest.raises(OptionError, match=r'm\.wasm.*(target="wasm32"|compiled to WebAssembly)'):
        rd.compile(model).save(tmp_path / "m.wasm")
    assert not list(tmp_path.iterdir())


def test_values_that_are_no_numbers_are_refused(tmp_path):
    model = onnx_model([helper.make_node("Identity", ["x"], ["y"])], {"x": ("object", ["n"])}, {"y": ("object", ["n"])})
    with pytest.raises(BuildError, match="takes or gives texts"):
        compiled(model).save(tmp_path / "m.wasm")


def test_a_model_of_a_module_is_not_called_here():
    with pytest.raises(CallError, match="another machine"):
        compiled(dense()[0])(np.zeros((2, 16), "f"))


@pytest.mark.parametrize("value", [0, 1, 63, 64, 127, 128, 300, 65535, 2**31 - 1])
def test_numbers_of_the_format(value):
    assert _number(_leb(value), 0) == (value, len(_leb(value)))
    signed = _leb(value, signed=True)
    assert _number(signed, 0)[0] == value
    assert not signed[-1] & 0x40, "its last byte would say that it is negative"


def test_the_command_line_compiles_to_what_the_ending_says(tmp_path):
    (tmp_path / "m.onnx").write_bytes(dense()[0])
    done = subprocess.run([sys.executable, "-m", "roundel", "compile", "m.onnx", "-o", "m.wasm", "--side-file", "--header", "--json"], cwd=tmp_path,
                          capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["metadata"]["triple"] == "wasm32-unknown-unknown"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.wasm", "m.wasm.weights", "roundel-thread.mjs", "roundel.d.mts", "roundel.mjs"]
