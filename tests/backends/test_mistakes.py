# SPDX-License-Identifier: Apache-2.0
"""Mistakes in backends of one's own: each is an error that names the backend, and none is wrong numbers or an error of Python."""

import warnings

import numpy as np
import pytest

import roundel as rd
from roundel import backends
from roundel.backends import known
from roundel.ir.errors import OptionError
from roundel.relax.dpl import is_op, wildcard
from roundel.relax.fuse_by_pattern import FusionPattern
from roundel.script import ir as I
from roundel.script import relax as R


@I.ir_module
class Relu:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            act = R.nn.relu(x)
            R.output(act)
        return act


X = np.linspace(-4, 4, 8, dtype=np.float32).reshape(2, 4)
PATTERN = is_op("relax.nn.relu")(wildcard())
RELU = [("kit.relu", PATTERN)]


@pytest.fixture
def compiled():
    """The model with its operator computed by what an implementation returns."""
    def compiled(implement, patterns=RELU):
        backend = backends.register(backends.Backend("kit", patterns, implement))
        try:
            return rd.compile(Relu, choices={"act": "kit"})
        finally:
            backends.unregister(backend)

    return compiled


def test_a_function_that_returns_its_result_is_an_error(compiled):
    with pytest.raises(rd.RoundelError, match="kit.*act.*returned a ndarray(?s:.*)out="):
        compiled(lambda c: backends.python(lambda x, out: np.maximum(x, 0)))(X)


def test_a_function_may_return_the_array_that_it_wrote(compiled):
    np.testing.assert_array_equal(compiled(lambda c: backends.python(lambda x, out: np.maximum(x, 0, out=out)))(X), np.maximum(X, 0))


def test_inputs_are_not_written(compiled):
    def spoiling(x, out):
        x[:] = 0

    with pytest.raises(ValueError, match="read-only"):
        compiled(lambda c: backends.python(spoiling))(X)


@pytest.mark.parametrize("made", [
    lambda c: backends.python(lambda x: None), lambda c: backends.python(lambda x, y, out: None), lambda c: backends.python(lambda x, out: None, operands=(1,)),
    lambda c: backends.python(lambda x, out: None, operands=(-1,)), lambda c: backends.python(3), lambda c: None, lambda c: True, lambda c: backends.Kernel(),
    lambda c: backends.Kernel("program"), lambda c: 1 / 0, lambda: "none",
])
def test_what_is_no_kernel_names_the_backend_the_pattern_and_the_node(compiled, made):
    with pytest.raises(rd.RoundelError, match="backend kit, pattern kit.relu at act: "):
        compiled(made)


def test_a_check_that_fails_names_the_backend(compiled):
    with pytest.raises(rd.RoundelError, match="backend kit, pattern kit.relu at act: .*AttributeError"):
        compiled(lambda c: "never", [("kit.relu", PATTERN, {}, lambda match: match.nothing)])


@pytest.mark.parametrize("given", [("x",), PATTERN, "x", ("x", "y"), (PATTERN, "x"), ("x", PATTERN, lambda match: True), ("x", PATTERN, {}, 3),
                                   ("x", PATTERN, {}, None, 0)])
def test_what_is_no_pattern(given):
    with pytest.raises(OptionError, match="pattern"):
        backends.Backend("kit", [given], lambda c: "never")


def test_what_is_a_pattern():
    check = bool
    for given in (("x", PATTERN), ("x", PATTERN, {}), ("x", PATTERN, None, check), ("x", PATTERN, {"a": PATTERN}, check), FusionPattern("x", PATTERN)):
        (found,) = backends.Backend("kit", [given], lambda c: "never").fusion_patterns
        assert found.name == "x" and found.pattern is PATTERN and found.annotation_patterns is not None


@pytest.mark.parametrize("name", ["off", "all", "fused", "separate", "generated", "a b", "", "1a"])
def test_names_that_mean_something_else(name):
    with pytest.raises(OptionError, match="cannot be called"):
        backends.Backend(name, RELU, lambda c: "never")


@pytest.mark.parametrize("wrong", [lambda: backends.register("x"), lambda: backends.unregister("x"), lambda: backends.Backend("kit", RELU, None)])
def test_what_is_no_backend(wrong):
    with pytest.raises(OptionError):
        wrong()


class Entry:
    value = "nosuchmodule:B"

    def load(self):
        raise ImportError("there is no nosuchmodule")


def test_one_broken_package_does_not_keep_all_others_away(monkeypatch):
    monkeypatch.setattr(known, "_installed", lambda: {"broken": Entry()})
    known._loaded.cache_clear()
    with pytest.warns(UserWarning, match="broken.*no nosuchmodule.*left out"):
        assert known.wanted("all") == ["openblas", "onednn"]
    with warnings.catch_warnings(), pytest.raises(OptionError, match="broken"):
        warnings.simplefilter("error")
        known.find(*known.wanted("broken"))
