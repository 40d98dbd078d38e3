# SPDX-License-Identifier: Apache-2.0
"""Products of factors rounded to 16 bits: where they are taken, what they become, and how exact their sums are."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import roundel as rd
from roundel.build.inspect import inspect
from roundel.driver import DEFAULT, prepare
from roundel.graph.algorithms.precision import factors, precision
from roundel.graph.layout.block_channels import block_channels
from roundel.ir import graph, options
from roundel.ir.errors import OptionError
from roundel.ops import make
from roundel.target import Target

from ..functions import function

RNG = np.random.default_rng(0)
WITH, WITHOUT = Target("znver4"), Target("znver3")
HOST = Target.host()


def product(m, k, n, batch=()):
    weight = graph.Constant.of(RNG.standard_normal((k, n)).astype(np.float32))
    return function([graph.TensorInfo((*batch, m, k), "float32")], lambda bb, x: make("matmul", x, weight)), weight.data.numpy()


def convolution(channels, outer, size, kernel, **attrs):
    weight = graph.Constant.of(RNG.standard_normal((outer, channels, kernel, kernel)).astype(np.float32))
    pad = kernel // 2
    return function([graph.TensorInfo((1, channels, size, size), "float32")], lambda bb, x: make("nn.conv2d", x, weight, padding=(pad,) * 4, **attrs))


def choices_of(mod, target, kind="bfloat16"):
    """Name of what was taken for each product, and the rules that scheduled the kernels."""
    with options.override(precision=kind):
        made = prepare(mod, target=target)
    return [c.taken for c in made.choices.made if c.kind == "precision"], made


def test_what_the_option_means_for_a_machine():
    for kind, wanted in (("float32", "float32"), ("bfloat16", "bfloat16"), ("auto", "bfloat16"), ("float16", "float32")):
        with options.override(precision=kind):
            assert factors(WITH) == wanted and factors(WITHOUT) == "float32"
    with options.override(precision="auto"):
        assert factors(Target("sapphirerapids")) == factors(Target("neoverse-v1")) == "bfloat16" and factors(Target("rv64gcv")) == "float32"
    with pytest.raises(OptionError, match="one of float32, bfloat16, float16, auto"), options.override(precision="half"):
        pass


@pytest.mark.parametrize("target, mnemonic", [("znver4", "vdpbf16ps"), ("sapphirerapids", "[vt]dpbf16ps"), ("neoverse-v1", "bfdot")])
@pytest.mark.parametrize("mod", [product(24, 64, 48)[0], product(5, 32, 64, (1,))[0], product(1, 64, 32)[0], convolution(32, 32, 7, 1),
                                 convolution(32, 64, 9, 3, strides=(2, 2))], ids=["matrix", "batch", "row", "pointwise", "strided"])
def test_products_run_on_the_instruction(mod, target, mnemonic):
    taken, made = choices_of(mod, Target(target))
    assert taken == ["bfloat16_products"]
    kernels = {n: f for n, f in made.items() if f.attrs.get("scheduled") in ("dot_products", "tile_products")}
    assert len(kernels) == 1
    name, kernel = next(iter(kernels.items()))
    assert len(re.findall(rf"^\s*{mnemonic}\b", inspect(made, name, target=Target(target)).assembly, re.MULTILINE)) >= 2, kernel.script()


@pytest.mark.parametrize("mod, lanes", [(product(24, 64, 1001)[0], 16), (convolution(32, 24, 14, 1), 8), (convolution(24, 40, 14, 1), 8)],
                         ids=["columns", "24 channels", "40 channels"])
def test_results_that_fill_no_vectors_of_the_widest_are_filled_up_or_in_narrower_ones(mod, lanes):
    taken, made = choices_of(mod, WITH)
    assert taken == ["bfloat16_products"]
    (kernel,) = [f for _, f in made.items() if f.attrs.get("scheduled") == "dot_products"]
    assert f"dpbf16ps.{32 * lanes}" in kernel.script()


def test_what_does_not_fit_stays_float32_and_says_why():
    taken, made = choices_of(product(8, 31, 32)[0], WITH)
    why = next(c.alternatives["bfloat16_products"] for c in made.choices.made if c.kind == "precision")
    assert taken == ["float32_products"] and "31 products for each result are no whole number of groups of 2" in why
    assert choices_of(product(8, 32, 14)[0], WITH)[0] == ["float32_products"]  # no whole vector of 16
    assert choices_of(product(8, 32, 32)[0], WITHOUT)[0] == []  # nothing to choose without an instruction
    assert choices_of(product(8, 32, 32)[0], WITH, "float32")[0] == []


@pytest.mark.skipif(not HOST.has("avx512bf16"), reason="compares with the processor")
@pytest.mark.parametrize("m, k, n", [(24, 64, 48), (1, 128, 64), (70, 512, 16), (13, 62, 60), (24, 64, 1001)])
def test_sums_are_float32_sums_of_rounded_factors(m, k, n):
    mod, weight = product(m, k, n)
    x = RNG.standard_normal((m, k)).astype(np.float32)
    made = rd.compile(mod, precision="bfloat16", threads=1)(x)
    exact = lambda a: a.astype(ml_dtypes.bfloat16).astype(np.float64)
    rounded, plain = exact(x) @ exact(weight), x.astype(np.float64) @ weight.astype(np.float64)
    scale = np.abs(x).astype(np.float64) @ np.abs(weight).astype(np.float64)
    assert np.all(np.abs(made - rounded) <= k * 2.0**-24 * scale + 1e-30)
    assert np.all(np.abs(made - plain) <= (2 * 2.0**-9 + k * 2.0**-24 + 2.0**-17) * scale)


def test_data_is_rounded_once_for_all_products_that_read_it():
    weights = [graph.Constant.of(RNG.standard_normal((32, 32)).astype(np.float32)) for _ in range(3)]

    def body(bb, x):
        parts = [bb.emit(make("matmul", x, w)) for w in weights]
        return make("add", bb.emit(make("add", parts[0], parts[1])), parts[2])

    mod = function([graph.TensorInfo((8, 32), "float32")], body)
    with options.override(precision="bfloat16"):
        made = precision(mod.replace(attrs=mod.attrs | {"target": WITH}))
    assert sum(getattr(b.value.op, "name", "") == "astype" for b in made["main"].body.bindings) == 1


@pytest.mark.parametrize("cpu, taken", [("sapphirerapids", "float32_products"), ("znver5", "bfloat16_products")])
def test_auto_rounds_factors_where_that_is_expected_to_pay(cpu, taken):
    """A few long columns: tiles of products are hardly filled, and all data have to be rounded first. What is asked for by type or node is not asked."""
    mod = product(4096, 16, 16)[0]
    (choice,) = prepared_choices(mod, cpu, "auto")
    times = choice.possible
    assert choice.taken == taken and (times["float32_products"] < times["bfloat16_products"]) == (taken == "float32_products")
    assert [c.taken for c in prepared_choices(mod, cpu, "bfloat16")] == ["bfloat16_products"]
    for way in times:
        assert [c.taken for c in prepared_choices(mod, cpu, "auto", {choice.site: way})] == [way]


@pytest.mark.parametrize("cpu, channels, taken", [("sapphirerapids", 16, "float32_products"), ("sapphirerapids", 256, "bfloat16_products"),
                                                  ("znver5", 16, "bfloat16_products")])
def test_auto_keeps_convolutions_of_few_channels_where_dot_products_take_longer(cpu, channels, taken):
    """No tile holds 16 channels, and dot products of vectors are the slower ones where there are tiles. Their data are rounded by what makes them."""
    mod = convolution(channels, 96, 56, 1)
    choices = {kind: prepared_choices(mod, cpu, kind, until=block_channels)[0] for kind in ("auto", "bfloat16")}
    times = choices["auto"].possible
    assert choices["auto"].taken == taken == min(times, key=times.get) and choices["bfloat16"].taken == "bfloat16_products"


def prepared_choices(mod, cpu, kind, choices=None, until=precision):
    """The choices of precision, before anything is scheduled."""
    with options.override(precision=kind):
        made = prepare(mod, target=Target(cpu, cores=1), pipeline=DEFAULT[: DEFAULT.index(until) + 1], choices=choices)
    return [c for c in made.choices.made if c.kind == "precision"]
