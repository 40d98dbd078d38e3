# SPDX-License-Identifier: Apache-2.0
"""A backend outside of Roundel for a library in the manner of XNNPACK: operators are objects that are created with packed weights, reshaped to a batch,
set up with a workspace and pointers, run by a pool of threads that the caller brings, and deleted. Its whole definition is `BACKEND` below."""

import ctypes
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import roundel as rd
from roundel import backends
from roundel.relax.dpl import is_const, is_op, wildcard
from roundel.runtime import toolchain
from roundel.script import ir as I
from roundel.script import relax as R

TILE = 4  # output channels that the kit computes at a time; its weights are packed by tiles, the bias in front of each

KIT = r"""
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
enum { TILE = 4 };
typedef enum { kit_ok, kit_invalid, kit_no_memory } kit_status;
typedef struct { int kind; size_t in, out, batch; float low, high; const float *packed; const float *x; float *y, *room; int stage; } kit_operator;
static int alive, created;
static kit_status made(int kind, size_t in, size_t out, const float *packed, float low, float high, kit_operator **result) {
  if (low > high || !in || !out) return kit_invalid;
  kit_operator *op = calloc(1, sizeof *op);
  if (!op) return kit_no_memory;
  *op = (kit_operator){.kind = kind, .in = in, .out = out, .low = low, .high = high, .packed = packed};
  __atomic_add_fetch(&alive, 1, __ATOMIC_SEQ_CST), __atomic_add_fetch(&created, 1, __ATOMIC_SEQ_CST);
  *result = op;
  return kit_ok;
}
kit_status kit_create_fully_connected_nc_f32(size_t in, size_t out, const float *packed, float low, float high, kit_operator **op) {
  return made(0, in, out, packed, low, high, op);
}
kit_status kit_create_softmax_nc_f32(size_t channels, kit_operator **op) { return made(1, channels, channels, NULL, 0, 1, op); }
kit_status kit_reshape(kit_operator *op, size_t batch, size_t *workspace, size_t *alignment) {
  op->batch = batch, op->stage = 1, *workspace = sizeof(float) * batch * op->in, *alignment = 64;
  return kit_ok;
}
kit_status kit_setup(kit_operator *op, void *workspace, const float *x, float *y) {
  if (op->stage < 1 || (size_t)workspace % 64) return kit_invalid;
  op->room = workspace, op->x = x, op->y = y, op->stage = 2;
  return kit_ok;
}
float expf(float);
kit_status kit_run(kit_operator *op) {
  if (op->stage != 2) return kit_invalid;
  memcpy(op->room, op->x, sizeof(float) * op->batch * op->in); /* what the workspace is for: it must be nobody else's */
  for (size_t r = 0; r < op->batch; r++) {
    const float *x = op->room + r * op->in;
    float *y = op->y + r * op->out, most = x[0], sum = 0;
    if (op->kind == 0) {
      for (size_t o = 0; o < op->out; o++) {
        const float *tile = op->packed + o / TILE * TILE * (op->in + 1);
        float value = tile[o % TILE];
        for (size_t i = 0; i < op->in; i++) value += x[i] * tile[TILE * (i + 1) + o % TILE];
        y[o] = value < op->low ? op->low : value > op->high ? op->high : value;
      }
      continue;
    }
    for (size_t i = 0; i < op->in; i++) most = x[i] > most ? x[i] : most;
    for (size_t i = 0; i < op->in; i++) sum += y[i] = expf(x[i] - most);
    for (size_t i = 0; i < op->in; i++) y[i] /= sum;
  }
  op->stage = 1;
  return kit_ok;
}
kit_status kit_delete(kit_operator *op) { free(op); __atomic_sub_fetch(&alive, 1, __ATOMIC_SEQ_CST); return kit_ok; }
int kit_alive(void) { return alive; }
int kit_created(void) { return created; }
const char *kit_version(void) { return "kit 1.2"; }
"""

# --- the backend

DECLARED = """
typedef struct kit_operator kit_operator;
int kit_create_fully_connected_nc_f32(size_t, size_t, const float *, float, float, kit_operator **);
int kit_create_softmax_nc_f32(size_t, kit_operator **);
int kit_reshape(kit_operator *, size_t, size_t *, size_t *);
int kit_setup(kit_operator *, void *, const float *, float *);
int kit_run(kit_operator *);
int kit_delete(kit_operator *);
"""
CALLS = """
static int32_t kit_call(kit_operator *op, const float *x, float *y, void *room, int64_t in, int64_t out, int64_t rows, int64_t share, int64_t part) {
  int64_t first = part * share, count = rows - first < share ? rows - first : share;
  size_t bytes, alignment;
  int32_t status = kit_reshape(op, (size_t)count, &bytes, &alignment);
  if (!status) status = kit_setup(op, room, x + first * in, y + first * out);
  if (!status) status = kit_run(op);
  kit_delete(op);
  return status;
}
int32_t kit_fully_connected(const float *x, const float *w, float *y, void *room, int64_t in, int64_t out, int64_t rows, int64_t share, int64_t relu,
                            int64_t part) {
  kit_operator *op;
  int32_t status = kit_create_fully_connected_nc_f32((size_t)in, (size_t)out, w, relu ? 0 : -INFINITY, INFINITY, &op);
  return status ? status : kit_call(op, x, y, room, in, out, rows, share, part);
}
int32_t kit_softmax(const float *x, float *y, void *room, int64_t channels, int64_t rows, int64_t share, int64_t part) {
  kit_operator *op;
  int32_t status = kit_create_softmax_nc_f32((size_t)channels, &op);
  return status ? status : kit_call(op, x, y, room, channels, channels, rows, share, part);
}
"""
STATUSES = {1: "invalid parameter", 2: "out of memory"}


def packed(weight, bias):
    """Weights as the kit reads them: the bias of a tile of output channels, then their weights, row by row."""
    inputs, outputs = weight.shape
    tiles = math.ceil(outputs / TILE)
    padded = np.zeros((inputs + 1, tiles * TILE), np.float32)
    padded[0, :outputs], padded[1:, :outputs] = bias, weight
    return np.ascontiguousarray(padded.reshape(inputs + 1, tiles, TILE).transpose(1, 0, 2))


def rows_of(c):
    return math.prod(c.operands[0].shape[:-1])


def implement(c, library):
    """An object of the kit for each share of the rows, on whichever thread of the model."""
    if library.missing:
        return library.missing
    channels, rows = c.operands[0].shape[-1], rows_of(c)
    ways = {"library": library, "parallel": (rows + SHARE - 1) // SHARE, "workspace": SHARE * channels * 4, "statuses": STATUSES}
    if "nn.softmax" in c.calls:
        axis = c.attrs("nn.softmax")["axis"]
        if axis not in (-1, len(c.operands[0].shape) - 1):
            return "the kit knows the last axis alone"
        return backends.native(c, "kit_softmax", channels, rows, SHARE, **ways)
    weight, bias = 1, 2
    if weight not in c.constants or len(c.constants[weight].shape) != 2 or c.constants.get(bias, np.zeros(1)).ndim != 1:
        return "it wants weights and biases that are known"
    pack = {weight: lambda w: packed(w, c.constants.get(bias, np.zeros(w.shape[1], np.float32)))}
    return backends.native(c, "kit_fully_connected", channels, c.constants[weight].shape[1], rows, SHARE, int("nn.relu" in c.calls), operands=(0, weight),
                           pack=pack, **ways)


def is_float(context):
    return context.matched_expr.sinfo.dtype == "float32"


PRODUCT = is_op("relax.matmul")(wildcard(), is_const())
BIASED = is_op("relax.add")(PRODUCT, is_const())
PATTERNS = [("kit.biased_relu", is_op("relax.nn.relu")(BIASED), {}, is_float), ("kit.biased", BIASED, {}, is_float), ("kit.product", PRODUCT, {}, is_float),
            ("kit.softmax", is_op("relax.nn.softmax")(wildcard()), {}, is_float)]
SHARE = 8  # rows that an object computes


def kit_backend(file):
    """The backend for the library in a file."""
    library = backends.Library("kit", DECLARED, "#include <math.h>\n" + CALLS, lambda: [str(file)])
    return backends.Backend("kit", PATTERNS, lambda c: implement(c, library), lambda: library.says("kit_version"))


# --- how it fares


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The compiled library."""
    folder = tmp_path_factory.mktemp("kit")
    (folder / "kit.c").write_text(KIT)
    toolchain.run([*toolchain.compiler(), "-shared", "-fPIC", "-O2", "-o", folder / "libkit.so", folder / "kit.c", "-lm"])
    return folder / "libkit.so"


@pytest.fixture
def kit(file):
    backend = backends.register(kit_backend(file))
    yield backend
    backends.unregister(backend)


RNG = np.random.default_rng(0)
W1, B1, W2 = (RNG.standard_normal(s, dtype=np.float32) for s in ((10, 7), (7,), (7, 5)))


@I.ir_module
class Classifier:
    @R.function
    def main(x: R.Tensor(("n", 3, 10), "float32")):
        with R.dataflow():
            product = R.matmul(x, R.const(W1))
            shifted = R.add(product, R.const(B1))
            act = R.nn.relu(shifted)
            logits = R.matmul(act, R.const(W2))
            out = R.nn.softmax(logits)
            R.output(out)
        return out


def expected(x):
    logits = np.maximum(x @ W1 + B1, 0) @ W2
    exps = np.exp(logits - logits.max(-1, keepdims=True))
    return exps / exps.sum(-1, keepdims=True)


def inputs(rows):
    return RNG.standard_normal((rows, 3, 10), dtype=np.float32)


def test_the_whole_backend_is_less_than_150_lines():
    lines = open(__file__).read().split("# --- the backend\n")[1].split("# --- how it fares")[0].splitlines()
    assert len(lines) < 150


@pytest.mark.parametrize("threads", [1, 2])
def test_every_batch_is_computed_by_objects_that_are_deleted_again(kit, file, threads):
    model = rd.compile(Classifier, choices={"*": "kit"}, threads=threads, verify=threads == 1, profile=True)
    known = ctypes.CDLL(str(file))
    for rows in (1, 2, 8, 33):
        before, x = known.kit_created(), inputs(rows)
        np.testing.assert_allclose(model(x), expected(x), rtol=1e-5, atol=1e-6)
        assert known.kit_created() - before == 3 * math.ceil(3 * rows / SHARE) and known.kit_alive() == 0
    kernels = model.executable["main"].profile()
    assert all(any(name in kernel for kernel in kernels) for name in ("kit_biased_relu", "kit_product", "kit_softmax"))


def test_several_runs_at_once_do_not_share_a_workspace(kit):
    model = rd.compile(Classifier, choices={"*": "kit"}, threads=2)
    given = [inputs(16) for _ in range(24)]
    with ThreadPoolExecutor(4) as pool:
        for x, got in zip(given, pool.map(model, given), strict=True):
            np.testing.assert_allclose(got, expected(x), rtol=1e-5, atol=1e-6)


def test_a_part_that_the_kit_cannot_compute_stays_generated(kit):
    @I.ir_module
    class Middle:
        @R.function
        def main(x: R.Tensor((4, 3, 10), "float32")):
            with R.dataflow():
                out = R.nn.softmax(x, axis=1)
                R.output(out)
            return out

    with pytest.raises(rd.RoundelError, match="the kit knows the last axis alone"):
        rd.compile(Middle, choices={"out": "kit"})
    with rd.ir.options.override(libraries="kit"):
        x = inputs(4)
        np.testing.assert_allclose(rd.compile(Middle)(x), rd.interpret(Middle)["main"](x), rtol=1e-5, atol=1e-6)


def test_its_version_is_asked_for(kit):
    assert kit.current_version == "kit 1.2"


def test_tuning_knows_its_paths(kit, tmp_path):
    found = rd.tune(Classifier, libraries="kit", trials=0, threads=1, db=tmp_path / "tuned.jsonl", sizes={"n": 8}).paths
    assert sorted(p.subject.split()[0] for p in found) == ["biased_relu", "product", "softmax"]
    assert all({"generated", "kit"} == set(p.seconds) and not p.wrong for p in found), list(map(str, found))
