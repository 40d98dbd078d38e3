# SPDX-License-Identifier: Apache-2.0
"""A C function is called as it says: one that takes something else than the kernel gives it is an error, and no wrong numbers."""

import numpy as np
import pytest

import roundel as rd
from roundel import backends
from roundel.script import ir as I
from roundel.script import relax as R

from .test_mistakes import RELU, Relu, X


@I.ir_module
class Half:
    @R.function
    def main(x: R.Tensor((2, 4), "float16")):
        with R.dataflow():
            act = R.nn.relu(x)
            R.output(act)
        return act


@pytest.fixture
def compiled():
    """The model with its operator computed by a C function of this text."""
    made = []

    def compiled(text, *numbers, mod=Relu, **how):
        def implement(c):
            return backends.native(c, "cut", *(c.result.shape[0] if n == "n" else n for n in numbers), source="#include <stdint.h>\n" + text, **how)

        made.append(backends.register(backends.Backend("kit", RELU, implement)))
        try:
            return rd.compile(mod, choices={"act": "kit"})
        finally:
            backends.unregister(made.pop())

    return compiled


LOOP = "{ for (int64_t i = 0; i < 4 * n; i++) y[i] = x[i] > 0 ? x[i] : 0; }"
HEAD = "void cut(const float *x, float *y, int64_t n)"


@pytest.mark.parametrize(("text", "numbers", "how", "words"), [
    (HEAD + LOOP, (), {}, "too few arguments"),
    (HEAD + LOOP, ("n", 4, 5), {}, "too many arguments"),
    (HEAD + LOOP, ("n",), {"parallel": 1}, "int64_t number0, int64_t part"),
    (HEAD + LOOP, ("n",), {"parallel": 1, "ranges": True}, "int64_t first, int64_t count"),
    (HEAD + LOOP, ("n",), {"workspace": 64}, r"void \*workspace, int64_t number0"),
    (HEAD + LOOP, ("n",), {"statuses": {}}, "must return int32_t"),
    (HEAD + LOOP, ("n",), {"operands": (0, 0)}, r"const float \*operand0, const float \*operand0, float \*result"),
    (HEAD.replace("float", "double") + LOOP, ("n",), {}, "incompatible pointer type"),
    ("void cut(const float *x, float *y, double n)" + LOOP, ("n",), {}, "conversion|changes? value|precision"),
    (HEAD + LOOP, (1.5,), {}, "double number0"),
    ("int32_t cut(const float *x, float *y, int64_t n) { return 1; }", ("n",), {}, "must return void"),
    ("void other(const float *x, float *y, int64_t n)" + LOOP, ("n",), {}, "implicit|undeclared"),
])
def test_a_function_that_takes_something_else_is_refused(compiled, text, numbers, how, words):
    with pytest.raises(rd.RoundelError, match="(?s)backend kit: the C function cut is called as (void|int32_t) cut.*" f"({words})"):
        compiled(text, *numbers, **how)


@pytest.mark.parametrize("head", [
    HEAD, HEAD.replace("const ", ""), "void cut(const void *from, void *to, int64_t n)", "void cut(const float *restrict x, float *restrict y, uint64_t n)",
])
def test_what_fits_the_call_is_compiled(compiled, head):
    text = head + (LOOP if "void *" not in head else "{ const float *x = from; float *y = to;" + LOOP + "}")
    np.testing.assert_array_equal(compiled(text.replace("i < 4 * n", "i < 4 * (int64_t)n"), "n")(X), np.maximum(X, 0))


def test_a_number_with_a_point_is_a_double(compiled):
    text = "void cut(const float *x, float *y, int64_t n, double slope) { for (int64_t i = 0; i < 4 * n; i++) y[i] = x[i] > 0 ? x[i] : (float)slope * x[i]; }"
    np.testing.assert_allclose(compiled(text, "n", 0.25)(X), np.where(X > 0, X, X / 4))


@pytest.mark.parametrize("kind", ["uint16_t", "_Float16", "float"])
def test_numbers_of_16_bits_are_read_as_such(compiled, kind):
    half = X.astype(np.float16)
    text = f"void cut(const {kind} *x, {kind} *y) {{ for (int i = 0; i < 8; i++) y[i] = x[i]; }}"
    if kind == "float":
        with pytest.raises(rd.RoundelError, match="_Float16"):
            compiled(text, mod=Half)
    else:
        np.testing.assert_array_equal(compiled(text, mod=Half)(half), half)


def test_text_that_is_no_c_is_an_error_of_the_compiler(compiled):
    with pytest.raises(rd.RoundelError, match="the C text:2"):
        compiled("void cut(const float *x, float *y, int64_t n) { y[0] = x[0] }", "n")


@pytest.mark.parametrize("how", [{"operands": (-1,)}, {"operands": (1,)}, {"operands": (None,)}, {"pack": {0: np.asarray}}, {"pack": {3: np.asarray}},
                                 {"forms": {2: backends.Form()}}])
def test_positions_are_those_of_operands(compiled, how):
    with pytest.raises(rd.RoundelError, match="kit, pattern kit.relu: "):
        compiled(HEAD + LOOP, "n", **how)


def test_a_guard_is_called_as_it_says(compiled):
    with pytest.raises(rd.RoundelError, match=r"backend kit: the C function can is called as int32_t can\(int64_t number0\)"):
        compiled(f"int32_t can(void) {{ return 1; }}\n{HEAD}{LOOP}", "n", guard=("can", 1))
