# SPDX-License-Identifier: Apache-2.0
"""A chip that a user's program describes through the public interface: tiles of 8 x 4 x 3, each operand with its last index where others have the first."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.intrinsics import accelerators
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T
from roundel.target import Target

DRIVER = """
#include <stdint.h>
#include <string.h>
static int8_t left[600], right[300];
static int32_t sums[300];
static int busy;
int32_t odd_begin(void) { return busy++; }
int32_t odd_finish(void) { return --busy; }
void odd_left(int64_t to, const void *from, int64_t n) { memcpy(left + to, from, n); }
void odd_right(int64_t to, const void *from, int64_t n) { memcpy(right + to, from, n); }
void odd_zero(int64_t at, int64_t n) { memset((char *)sums + at, 0, n); }
void odd_out(void *to, int64_t from, int64_t n) { memcpy(to, (char *)sums + from, n); }
void odd_product(int64_t w, int64_t c, int64_t x) {
  int32_t *y = sums + c / 4;
  for (int j = 0; j < 4; j++)
    for (int i = 0; i < 8; i++)
      for (int k = 0; k < 3; k++) y[j * 8 + i] += left[x + k * 8 + i] * right[w + k * 4 + j];
}
"""


@T.prim_func
def product(W: T.Buffer((3, 4), "int8", scope="odd.right"), Y: T.Buffer((4, 8), "int32", scope="odd.sums"), X: T.Buffer((3, 8), "int8", scope="odd.left")):
    with T.block("root"):
        T.reads(Y[0:4, 0:8], X[0:3, 0:8], W[0:3, 0:4])
        T.writes(Y[0:4, 0:8])
        for k, j, i in T.grid(3, 4, 8):
            with T.block("product"):
                vk, vj, vi = T.axis.remap("RSS", [k, j, i])
                Y[vj, vi] = Y[vj, vi] + T.cast(W[vk, vj], "int32") * T.cast(X[vk, vi], "int32")


def described(sums=1200, **facts):
    usual = {"source": DRIVER, "begin": "odd_begin", "finish": "odd_finish", "engines": ("all",), "statuses": {1: "busy"}}
    chip = accelerators.Accelerator("odd", **usual | facts)
    for scope, size in (("odd.left", 600), ("odd.right", 300), ("odd.sums", sums)):
        chip.memory(scope, size, alignment=4)
    chip.loads("odd.left", "odd_left", engine="all")
    chip.loads("odd.right", "odd_right", engine="all")
    chip.stores("odd.sums", "odd_out", engine="all")
    chip.clears("odd.sums", "odd_zero", engine="all")
    chip.computes("odd_product", product, engine="all", cycles=10)
    return chip


@pytest.fixture
def odd():
    chip = accelerators.register(described())
    yield Target("x86-64 -device=odd")
    accelerators.unregister(chip)


def multiplied(rows, weights, dtype="int8"):
    @I.ir_module
    class Product:
        @R.function
        def main(x: R.Tensor((rows, weights.shape[0]), dtype)):
            with R.dataflow():
                y = R.matmul(x, R.const(weights), out_dtype="int32")
                R.output(y)
            return y

    return Product


def kernels(mod, target):
    return {str(f.attrs["scheduled"]) for _, f in rd.driver.prepare(mod, target=target).items() if "scheduled" in f.attrs}


@pytest.mark.parametrize("shape", [(8, 3, 4), (2, 5, 7), (62, 50, 33), ("n", 62, 60)], ids=str)
def test_products_of_any_size(odd, shape):
    rng = np.random.default_rng(3)
    weights = rng.integers(-128, 128, shape[1:]).astype(np.int8)
    mod = multiplied(shape[0], weights)
    assert "odd" in kernels(mod, odd)
    model = rd.compile(mod, target=odd)
    for rows in (1, 9, 70) if shape[0] == "n" else shape[:1]:
        x = rng.choice(np.array([-128, -127, 0, 127], np.int8), (rows, shape[1]))
        np.testing.assert_array_equal(model(x), x.astype(np.int64) @ weights.astype(np.int64))


def test_what_it_does_not_compute_is_left_to_the_processor_with_the_reason(odd):
    rng = np.random.default_rng(4)
    weights = rng.integers(-128, 128, (6, 8)).astype(np.int8)
    assert kernels(multiplied(5, weights.astype(np.int16), "int16"), odd).isdisjoint({"odd"})
    few = rng.integers(-128, 128, (2, 8)).astype(np.int8)
    assert "odd" not in kernels(multiplied(5, few), odd)
    prepared = rd.driver.prepare(multiplied(5, few), target=odd)
    assert "odd" not in {str(f.attrs.get("scheduled")) for _, f in prepared.items()}


def test_memories_that_hold_no_block_leave_it_to_the_processor():
    chip = accelerators.register(described(sums=124))  # a tile of sums has 128 bytes
    try:
        assert "odd" not in kernels(multiplied(8, np.ones((6, 8), np.int8)), Target("x86-64 -device=odd"))
    finally:
        accelerators.unregister(chip)


def test_a_failure_of_the_chip_is_an_error_of_the_run():
    chip = accelerators.register(described(source=DRIVER.replace("return busy++", "return 1")))
    try:
        model = rd.compile(multiplied(8, np.ones((6, 8), np.int8)), target=Target("x86-64 -device=odd"))
        with pytest.raises(rd.RoundelError, match="accelerator odd: busy"):
            model(np.ones((8, 6), np.int8))
    finally:
        accelerators.unregister(chip)


def test_descriptions_that_contradict_themselves_are_refused():
    with pytest.raises(rd.RoundelError, match="engines of odd run beside each other"):
        described(engines=("dma", "array"))
    chip = described()
    with pytest.raises(rd.RoundelError, match="no engine 'array'"):
        chip.computes("f", product, engine="array", cycles=1)
    with pytest.raises(rd.RoundelError, match=r"no memory 'odd\.more'"):
        chip.loads("odd.more", "f", engine="all")
    with pytest.raises(rd.RoundelError, match="cannot have a memory"):
        chip.memory("left", 100)

    @T.prim_func
    def with_init(W: T.Buffer((3, 4), "int8", scope="odd.right"), Y: T.Buffer((4,), "int32", scope="odd.sums"), X: T.Buffer((3,), "int8", scope="odd.left")):
        for k, j in T.grid(3, 4):
            with T.block("product"):
                vk, vj = T.axis.remap("RS", [k, j])
                with T.init():
                    Y[vj] = 0
                Y[vj] = Y[vj] + T.cast(W[vk, vj], "int32") * T.cast(X[vk], "int32")

    with pytest.raises(rd.RoundelError, match="sets its result before it adds to it"):
        chip.computes("f", with_init, engine="all", cycles=1)


def test_a_chip_may_multiply_floats():
    @T.prim_func
    def floats(W: T.Buffer((3, 4), "float32", scope="odd.right"), Y: T.Buffer((4, 8), "float32", scope="odd.sums"),
               X: T.Buffer((3, 8), "float32", scope="odd.left")):
        for k, j, i in T.grid(3, 4, 8):
            with T.block("product"):
                vk, vj, vi = T.axis.remap("RSS", [k, j, i])
                Y[vj, vi] += X[vk, vi] * W[vk, vj]

    source = DRIVER.replace("int8_t", "float").replace("int32_t sums", "float sums").replace("int32_t *y", "float *y").replace(
        "left + to", "(char *)left + to").replace("right + to", "(char *)right + to").replace("left[x", "left[x / 4").replace("right[w", "right[w / 4")
    chip = described(source=source)
    chip.products.clear()
    chip.computes("odd_product", floats, engine="all", cycles=10)
    accelerators.register(chip)
    try:
        target, rng = Target("x86-64-v3 -device=odd"), np.random.default_rng(6)
        weights = rng.standard_normal((32, 32, 3, 3)).astype(np.float32)

        @I.ir_module
        class Layer:
            @R.function
            def main(x: R.Tensor((1, 32, 12, 12), "float32")):
                with R.dataflow():
                    y = R.nn.relu(R.nn.conv2d(x, R.const(weights)))
                    R.output(y)
                return y

        assert "odd" in kernels(Layer, target)  # and not Winograd's algorithm on the processor
        x = rng.standard_normal((1, 32, 12, 12)).astype(np.float32)
        wanted = np.einsum("ockl,cyxkl->oyx", weights, np.lib.stride_tricks.sliding_window_view(x[0], (3, 3), (1, 2)))
        np.testing.assert_allclose(rd.compile(Layer, target=target)(x)[0], np.maximum(wanted, 0), rtol=1e-3, atol=1e-3)
    finally:
        accelerators.unregister(chip)


def test_an_instruction_for_one_row_takes_any_number_of_rows():
    @T.prim_func
    def row(W: T.Buffer((3, 4), "int8", scope="odd.right"), Y: T.Buffer((4,), "int32", scope="odd.sums"), X: T.Buffer((3,), "int8", scope="odd.left")):
        with T.block("root"):
            T.reads(Y[0:4], X[0:3], W[0:3, 0:4])
            T.writes(Y[0:4])
            for k, j in T.grid(3, 4):
                with T.block("product"):
                    vk, vj = T.axis.remap("RS", [k, j])
                    Y[vj] = Y[vj] + T.cast(W[vk, vj], "int32") * T.cast(X[vk], "int32")

    more = """
void odd_row(int64_t w, int64_t c, int64_t x) {
  for (int j = 0; j < 4; j++) for (int k = 0; k < 3; k++) sums[c / 4 + j] += left[x + k] * right[w + k * 4 + j];
}
"""
    chip = described(sums=128, source=DRIVER + more)
    chip.products.clear()
    chip.computes("odd_row", row, engine="all", cycles=3)
    accelerators.register(chip)
    try:
        rng = np.random.default_rng(5)
        weights = rng.integers(-128, 128, (50, 33)).astype(np.int8)
        for rows in (2, 7):
            mod = multiplied(rows, weights)
            assert "odd" in kernels(mod, Target("x86-64 -device=odd"))
            x = rng.integers(-128, 128, (rows, 50)).astype(np.int8)
            np.testing.assert_array_equal(rd.compile(mod, target=Target("x86-64 -device=odd"))(x), x.astype(np.int64) @ weights.astype(np.int64))
    finally:
        accelerators.unregister(chip)


def test_a_chip_that_lacks_an_instruction_is_told_so():
    chip = described()
    del chip.moves["clear", "odd.sums"]
    accelerators.register(chip)
    try:
        found = rd.explain(multiplied(8, np.ones((6, 8), np.int8)), target=Target("x86-64 -device=odd"), threads=1)
        assert found.kernels[0]["instructions_refused"]["odd.odd_product"] == "odd has no instruction to clear odd.sums"
    finally:
        accelerators.unregister(chip)
