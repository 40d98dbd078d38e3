# SPDX-License-Identifier: Apache-2.0
"""What a pattern matches goes into functions of their own, which compute the same."""

import numpy as np
import pytest

import roundel as rd
from roundel.ir import graph
from roundel.relax.dpl import is_op, make_fused_bias_activation_pattern, wildcard
from roundel.relax.fuse_by_pattern import FusionPattern, fuse_by_pattern
from roundel.script import ir as I
from roundel.script import relax as R

ONES = np.ones(8, np.float32)


@I.ir_module
class Layers:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 8), "float32"), b: R.Tensor((8,), "float32")):
        with R.dataflow():
            first = R.matmul(x, w)
            shifted = R.add(first, b)
            act = R.nn.relu(shifted)
            second = R.matmul(act, w)
            again = R.add(second, R.const(ONES))
            both = R.multiply(again, second)
            R.output(both)
        return both


def _composites(mod):
    return {name: f for name, f in mod.items() if "Composite" in f.attrs}


def _same(mod):
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s, dtype=np.float32) for s in ((3, 8), (8, 8), (8,)))
    for run in (rd.interpret, rd.build):
        np.testing.assert_allclose(run(mod)["main"](x, w, b), rd.interpret(Layers)["main"](x, w, b), rtol=2e-5, atol=1e-5)


def test_what_matches_becomes_a_function_and_what_is_used_elsewhere_does_not():
    product = is_op("relax.matmul")(wildcard(), wildcard())
    mod = fuse_by_pattern(Layers, [FusionPattern("lib.matmul_add", is_op("relax.add")(product, wildcard()))])
    (name, made), = _composites(mod).items()
    assert name == "fused_matmul_add" and made.attrs["Composite"] == "lib.matmul_add" and [p.name for p in made.params] == ["x", "w", "b"]
    assert "R.add(first" not in mod["main"].script() and "R.add(second" in mod["main"].script(), "the second product is used twice"
    _same(mod)


def test_patterns_come_in_order_of_priority():
    long = make_fused_bias_activation_pattern("relax.matmul", with_bias=True, activation="relax.nn.relu")
    short = make_fused_bias_activation_pattern("relax.matmul")
    mod = fuse_by_pattern(Layers, [("lib.dense", long), ("lib.matmul", short)], annotate_codegen=True)
    regions = [f for _, f in mod.items() if "Codegen" in f.attrs]
    assert sorted(f.body.bindings[0].value.attrs["Composite"] for f in regions) == ["lib.dense", "lib.matmul"], "each holds its composite function"
    assert all(f.attrs["Codegen"] == "lib" and "global_symbol" in f.attrs for f in regions) and not _composites(mod)
    _same(mod)
    mod = fuse_by_pattern(Layers, [("lib.matmul", short), ("lib.dense", long)])
    assert [f.attrs["Composite"] for f in _composites(mod).values()] == ["lib.matmul"]  # both products are equal: one function, called twice
    _same(mod)


@pytest.mark.parametrize("bind", [True, False])
def test_constants_are_part_of_a_function_or_its_operands(bind):
    pattern = is_op("relax.add")(wildcard(), wildcard())
    mod = fuse_by_pattern(Layers, [("lib.add", pattern)], bind_constants=bind)
    assert sorted(len(f.params) for f in _composites(mod).values()) == ([1, 2] if bind else [2])  # equal functions are one
    _same(mod)


def test_a_check_sees_the_parts_by_name_and_may_refuse():
    weight = wildcard()
    product = is_op("relax.matmul")(wildcard(), weight)
    seen = []

    def check(context):
        seen.append((context.annotated_expr["w"], context.matched_expr.op.name, [v.name for v in context.matched_bindings]))
        return isinstance(context.annotated_expr["product"], graph.Call) and len(context.var_usages[next(iter(context.matched_bindings))]) > 1

    mod = fuse_by_pattern(Layers, [("lib.matmul", product, {"w": weight, "product": product}, check)])
    assert [(v.name, op, names) for v, op, names in seen] == [("w", "matmul", ["second"]), ("w", "matmul", ["first"])]
    assert "R.matmul(x" in mod["main"].script() and len(_composites(mod)) == 1
    _same(mod)
