# SPDX-License-Identifier: Apache-2.0
"""What passes see of the bindings in front of the one that they rewrite."""

from roundel.graph.rewriter import GraphRewriter, may_call
from roundel.ir import graph
from roundel.script import ir as I
from roundel.script import relax as R


@I.ir_module
class Two:
    """Two dataflow blocks; ``a`` is known in the first alone."""

    @R.function
    def main(x: R.Tensor((3, 4), "float32")) -> R.Tensor((4, 3), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.reshape(a, R.shape([4, 3]))
            c = R.reshape(x, R.shape([4, 3]))
            d = R.concat((a, x), axis=0)
            R.output(b, c, d)
        with R.dataflow():
            e = R.add(b, c)
            R.output(e)
        return e


class _Seen(GraphRewriter):
    """Which variables have a producer when the second block is rewritten."""

    def __init__(self, mod):
        super().__init__(mod)
        self.seen, self.inside = {}, {}

    def call(self, call, binding):
        table = self.seen if binding.var.name == "e" else self.inside
        for var in self.values:
            table[var.name] = self.producer(var) is not None
        return call


def test_what_a_block_made_of_variables_of_its_own_is_not_seen_behind_it():
    seen = _Seen(Two)
    seen.module()
    assert seen.inside["b"] and seen.seen.get("c") and not any(seen.seen.get(name) for name in ("b", "d"))
    assert isinstance(Two["main"].body.blocks[0], graph.DataflowBlock)


@I.ir_module
class Branches:
    """An operator in a branch alone."""

    @R.function
    def main(p: R.Tensor((), "bool"), x: R.Tensor((3,), "float32")):
        if p:
            y = R.exp(x)
        else:
            y = R.negative(x)
        return y


def test_which_operators_a_module_may_call():
    assert may_call(Two, ["sort", "concat"]) and may_call(Two, {"add"})
    assert not may_call(Two, ["sort", "matmul"])
    assert may_call(Branches, ["sort"]), "branches are not looked into"
