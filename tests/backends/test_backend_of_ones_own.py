# SPDX-License-Identifier: Apache-2.0
"""A backend outside of Roundel: a library in the manner of such kits (create, run, delete), its patterns, and what a model does without it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

import roundel as rd
from roundel import backends, driver
from roundel.driver import libraries
from roundel.ir.record import ChoiceRecord, Key
from roundel.relax.dpl import is_const, is_op, wildcard
from roundel.runtime import toolchain
from roundel.script import ir as I
from roundel.script import relax as R

rng = np.random.default_rng(0)
WEIGHT, BIAS = rng.standard_normal((16, 8), dtype=np.float32), rng.standard_normal(8, dtype=np.float32)

KIT = """
#include <stdlib.h>
typedef struct { int inputs, outputs; const float *packed, *bias; } Layer;
static int created;
Layer *kit_create(int inputs, int outputs, const float *packed, const float *bias) {
  Layer *layer = malloc(sizeof *layer);
  *layer = (Layer){inputs, outputs, packed, bias};
  created++;
  return layer;
}
int kit_created(void) { return created; }
void kit_run(const Layer *layer, int rows, const float *x, float *y) {  /* packed: output by output; y = relu(x w + b) */
  for (int r = 0; r < rows; r++)
    for (int o = 0; o < layer->outputs; o++) {
      float sum = layer->bias[o];
      for (int i = 0; i < layer->inputs; i++) sum += x[r * layer->inputs + i] * layer->packed[o * layer->inputs + i];
      y[r * layer->outputs + o] = sum @WRONG@ > 0 ? sum @WRONG@ : 0;
    }
}
void kit_delete(Layer *layer) { free(layer); }
"""
CALLS = """
void kit_dense(const float *x, const float *w, const float *b, float *y, int64_t rows, int64_t inputs, int64_t outputs) {
  Layer *layer = kit_create((int)inputs, (int)outputs, w, b);
  kit_run(layer, (int)rows, x, y);
  kit_delete(layer);
}
"""
DECLARED = """
typedef struct Layer Layer;
Layer *kit_create(int, int, const float *, const float *);
void kit_run(const Layer *, int, const float *, float *);
void kit_delete(Layer *);
"""


def kit(folder, cycles=None, wrong=""):
    """The backend, with the library in a folder."""
    (folder / "kit.c").write_text(KIT.replace("@WRONG@", wrong))
    toolchain.run([*toolchain.compiler(), "-shared", "-fPIC", "-O1", "-o", folder / "libkit.so", folder / "kit.c"])
    library = backends.Library("kit", DECLARED, CALLS, lambda: [str(folder / "libkit.so")])
    packed = []

    def pack(weight):
        packed.append(weight.shape)
        return np.ascontiguousarray(weight.T)

    def implement(c):
        if library.missing:
            return library.missing
        if c.calls["matmul"].args[0].sinfo.dtype != "float32" or 1 not in c.constants:
            return "it wants float32 and weights that are known"
        x, (inputs, outputs) = c.operands[0], c.constants[1].shape
        return backends.native(c, "kit_dense", x.shape[0], inputs, outputs, library=library, pack={1: pack}, cycles=cycles)

    dense = is_op("relax.nn.relu")(is_op("relax.add")(is_op("relax.matmul")(wildcard(), is_const()), wildcard()))
    return backends.Backend("kit", [("kit.dense", dense)], implement), packed


@I.ir_module
class Dense:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32")):
        with R.dataflow():
            product = R.matmul(x, R.const(WEIGHT))
            shifted = R.add(product, R.const(BIAS))
            act = R.nn.relu(shifted)
            out = R.multiply(act, act)
            R.output(out)
        return out


X = rng.standard_normal((5, 16), dtype=np.float32)
WANTED = np.maximum(X @ WEIGHT + BIAS, 0) ** 2


def test_what_is_asked_for_is_computed_by_the_library_and_its_weights_are_packed_once(tmp_path, registered):
    backend, packed = kit(tmp_path)
    registered(backend)
    model = rd.compile(Dense, choices={"product": "kit"}, verify=True, profile=True)
    np.testing.assert_allclose(model(X), WANTED, rtol=1e-5, atol=1e-5)
    assert len(packed) == 1
    np.testing.assert_allclose(model(X[:1]), WANTED[:1], rtol=1e-5, atol=1e-5)
    assert any("kit_dense" in name for name in model.executable["main"].profile()), "its time is in the profile"


def test_a_model_that_is_shipped_runs_without_the_library_and_says_so(tmp_path, registered):
    backend, _ = kit(tmp_path)
    registered(backend)
    file = rd.compile(Dense, choices={"product": "kit"}).save(tmp_path / "model.so")
    needed = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=False).stdout
    assert "kit" not in needed
    np.save(tmp_path / "x.npy", X)
    run = f"import numpy as np, roundel as rd, json; m = rd.load({str(file)!r}); x = np.load({str(tmp_path / 'x.npy')!r})"
    run += "; m(x); print(json.dumps(m(x).tolist()))"

    def outcome():
        done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True, env=os.environ)
        return np.array(json.loads(done.stdout), np.float32), done.stderr

    with_library, said = outcome()
    np.testing.assert_allclose(with_library, WANTED, rtol=1e-5, atol=1e-5)
    assert not said
    (tmp_path / "libkit.so").unlink()
    without, said = outcome()
    np.testing.assert_allclose(without, WANTED, rtol=1e-5, atol=1e-5)
    assert said.count("the library kit is not found") == 1 and "generated code runs instead" in said


def test_a_library_that_is_not_there_when_a_model_is_compiled_is_no_alternative(tmp_path, registered):
    backend, _ = kit(tmp_path)
    (tmp_path / "libkit.so").unlink()
    registered(backend)
    with pytest.raises(rd.RoundelError, match="kit cannot be had"):
        rd.compile(Dense, choices={"product": "kit"})
    with rd.ir.options.override(libraries="kit"):
        np.testing.assert_allclose(rd.compile(Dense)(X), WANTED, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("cycles", "taken"), [(1.0, "kit"), (1e12, "generated"), (None, "generated")])
def test_what_a_library_is_expected_to_take_decides(tmp_path, registered, cycles, taken):
    backend, _ = kit(tmp_path, cycles)
    registered(backend)
    fixed = Dense.with_functions({"main": Dense["main"].bind_symbolic_vars({"n": 5})})
    with rd.ir.options.override(libraries="kit"):
        model = rd.compile(fixed)
        (found,) = [c for c in driver.prepare(fixed).choices.made if c.kind == "library"]
    assert found.site == "product" and found.taken == taken and set(found.alternatives) == {"generated", "kit"}
    np.testing.assert_allclose(model(X), WANTED, rtol=1e-5, atol=1e-5)


@dataclass
class Measured:
    """Records that know which way to compute a node was the fastest."""

    best_way: str
    asked: list[str] = field(default_factory=list)
    backends: tuple[str, ...] = ()

    def choice(self, signature):
        self.asked.append(signature)
        return ChoiceRecord(Key(signature, "", 1), self.best_way)

    def choices_at(self, signature):
        return ()

    def best(self, program):
        return None


@pytest.mark.parametrize(("expected", "measured"), [(1.0, "generated"), (1e12, "kit")])
def test_what_was_measured_goes_before_what_is_expected(tmp_path, registered, expected, measured):
    """A library that was slower than it says loses, one that was faster wins."""
    backend, _ = kit(tmp_path, expected)
    registered(backend)
    fixed = Dense.with_functions({"main": Dense["main"].bind_symbolic_vars({"n": 5})})
    records = Measured(measured)
    with rd.ir.options.override(libraries="kit"):
        (found,) = [c for c in driver.prepare(fixed, records=records, pipeline=[libraries]).choices.made if c.kind == "library"]
    assert found.taken == measured and found.reason == "measured" and found.signature in records.asked


def test_a_wrong_library_is_named_by_verify(tmp_path, registered):
    backend, _ = kit(tmp_path, wrong="* 1.5f")
    registered(backend)
    with pytest.raises(rd.RoundelError, match=r"after pass libraries(.|\n)*it takes kit at 'product'"):
        rd.compile(Dense, choices={"product": "kit"}, verify=True)


def test_verify_leaves_constants_that_nobody_may_write_to(tmp_path, registered):
    """As those of an ONNX file are."""
    backend, _ = kit(tmp_path)
    registered(backend)
    weight, bias = (np.frombuffer(v.tobytes(), np.float32).reshape(v.shape) for v in (WEIGHT, BIAS))

    @I.ir_module
    class Constants:
        @R.function
        def main(x: R.Tensor(("n", 16), "float32")):
            with R.dataflow():
                product = R.matmul(x, R.const(weight))
                shifted = R.add(product, R.const(bias))
                act = R.nn.relu(shifted)
                R.output(act)
            return act

    model = rd.compile(Constants, choices={"product": "kit"}, verify=True)
    np.testing.assert_allclose(model(X), np.sqrt(WANTED), rtol=1e-4, atol=1e-5)


def test_a_function_of_python_is_a_kernel_too_and_cannot_be_shipped(tmp_path, registered):
    def dense(x, weight, bias, out):
        np.maximum(x @ weight + bias, 0, out=out)

    pattern = is_op("relax.nn.relu")(is_op("relax.add")(is_op("relax.matmul")(wildcard(), wildcard()), wildcard()))
    registered(backends.Backend("numpy_dense", [("numpy.dense", pattern)], lambda c: backends.python(dense)))
    model = rd.compile(Dense, choices={"*": "numpy_dense"}, verify=True)
    np.testing.assert_allclose(model(X), WANTED, rtol=1e-5, atol=1e-5)
    with pytest.raises(rd.RoundelError, match="Python"):
        model.save(tmp_path / "model.so")


def test_c_code_is_compiled_in_between_generated_code(tmp_path, registered):
    """Next to each kind of neighbour that a kernel could be fused with."""
    source = "#include <stdint.h>\nvoid cut(const float *x, float *out, int64_t n) { for (int64_t i = 0; i < n; i++) out[i] = x[i] > 0 ? x[i] : 0; }"

    def implement(c):
        rows, columns = c.operands[0].shape
        return backends.native(c, "cut", rows * columns, source=source)

    registered(backends.Backend("c", [("c.cut", is_op("relax.nn.relu")(wildcard()))], implement))

    @I.ir_module
    class Between:
        @R.function
        def main(x: R.Tensor(("n", 16), "float32")):
            with R.dataflow():
                a = R.exp(x)
                act = R.nn.relu(a)
                b = R.matmul(act, R.const(WEIGHT))
                again = R.nn.relu(b)
                c = R.add(R.sum(again, axis=1, keepdims=True), act)
                R.output(c)
            return c

    model = rd.compile(Between, choices={"act": "c", "again": "c"}, verify=True)
    a = np.exp(X)
    want = np.maximum(a @ WEIGHT, 0).sum(axis=1, keepdims=True) + a
    np.testing.assert_allclose(model(X), want, rtol=1e-4, atol=1e-4)
    saved = rd.load(model.save(tmp_path / "model.so"))
    np.testing.assert_allclose(saved(X), want, rtol=1e-4, atol=1e-4)


LLVM = """
define void @cut(ptr %x, ptr %y, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %from = getelementptr float, ptr %x, i64 %i
  %to = getelementptr float, ptr %y, i64 %i
  %v = load float, ptr %from
  %positive = fcmp ogt float %v, 0.0
  %cut = select i1 %positive, float %v, float 0.0
  store float %cut, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def test_llvm_text_is_compiled_in_too(tmp_path, registered):
    registered(backends.Backend("llvm", [("llvm.cut", is_op("relax.nn.relu")(wildcard()))],
                                lambda c: backends.native(c, "cut", c.operands[0].shape[0] * c.operands[0].shape[1], llvm=LLVM)))

    @I.ir_module
    class Cut:
        @R.function
        def main(x: R.Tensor(("n", 16), "float32")):
            with R.dataflow():
                act = R.nn.relu(x)
                R.output(act)
            return act

    model = rd.compile(Cut, choices={"act": "llvm"}, verify=True)
    np.testing.assert_array_equal(rd.load(model.save(tmp_path / "model.so"))(X), np.maximum(X, 0))


def test_backends_have_names_of_their_own(registered):
    mine = backends.Backend("mine", [], lambda c: "never")
    registered(mine)
    assert "mine" in backends.available() and backends.find("mine") is mine
    for wrong in (lambda: backends.register(mine), lambda: backends.find("nobody"), lambda: backends.Backend("generated", [], lambda c: ""),
                  lambda: backends.Backend("a b", [], lambda c: "")):
        with pytest.raises(rd.RoundelError):
            wrong()
