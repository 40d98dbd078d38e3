# SPDX-License-Identifier: Apache-2.0
"""How a program is scheduled: alternatives in their order, what is dropped and why, what is asked for by name, products of any size."""

import itertools
import logging
import re

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.builder import BlockBuilder
from roundel.driver import DEFAULT, prepare
from roundel.ir import graph, tir
from roundel.ir.dtype import INT64
from roundel.ir.equal import structural_equal
from roundel.ir.errors import ScheduleError
from roundel.ops import make
from roundel.strategy import explain, rules, schedule_module
from roundel.strategy.candidates import Candidates
from roundel.strategy.choose import attempt, choose
from roundel.strategy.schedule_module import schedule_program
from roundel.strategy.sketch import Applied, Rule, Sketch, rule
from roundel.target import Target
from roundel.target.machines import MACHINES


def linear(k, n, rows):
    """x @ w + b for constant w and b; ``rows`` None: any number."""
    count = tir.Var("rows", INT64, True) if rows is None else tir.index_const(rows)
    x = graph.Var("x", graph.TensorInfo((count, tir.index_const(k)), "float32"))
    w, b = (graph.Constant.of(np.ones(shape, np.float32)) for shape in ((k, n), (n,)))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(make("add", bb.emit(make("matmul", x, w)), b)))
    return bb.get()


@rule
def _failing(program):
    raise IndexError("list index out of range")


@rule
def _failing_later(program):
    yield Sketch("failing later", program.schedule, lambda sch, choice: [][0])


def test_a_schedule_made_by_hand_is_kept_in_a_model():
    """The kernel goes through the whole pipeline beside others, and no rule begins anew."""
    from roundel.script import relax as R

    a, b = te.placeholder((32, 16), name="A"), te.placeholder((32, 16), name="B")
    sch = rd.Schedule(te.create_prim_func([a, b, te.compute((32, 16), lambda i, j: a[i, j] - b[i, j], name="C")]))
    i, j = sch.get_loops(sch.get_block("C"))
    sch.vectorize(sch.split(j, factors=[None, 4])[1])
    sch.parallel(i)
    bb = rd.BlockBuilder()
    kernel = bb.add_func(sch.mod["main"], "by_hand")
    x, y = (graph.Var(n, R.Tensor((32, 16), "float32")) for n in "xy")
    with bb.function("main", [x, y]):
        with bb.dataflow():
            d = bb.emit(R.call_tir(kernel, (x, y), out_sinfo=R.Tensor((32, 16), "float32")))
            out = bb.emit_output(R.nn.relu(d))
        bb.emit_func_output(out)
    done = prepare(bb.get(), target=Target.host())
    kept = next(f for n, f in done.items() if n == "by_hand")
    assert kept.attrs["scheduled"] == "as_written" and "T.vectorized(4)" in kept.script() and "T.parallel(32" in kept.script()


@pytest.mark.rules_may_fail
def test_a_rule_that_fails_is_passed_over(monkeypatch, caplog):
    monkeypatch.setattr(rules, "RULES", [_failing, _failing_later, *rules.RULES])
    with caplog.at_level(logging.WARNING, "roundel.schedule"):
        mod = prepare(linear(64, 16, 1))
    kernels = [f for _, f in mod.items() if f.attrs.get("kind") == "kernel"]
    for name in ("_failing", "failing later"):
        assert f"{name}: failed: IndexError: list index out of range" in kernels[0].attrs["schedule_notes"]
        assert f"{name} failed on program" in caplog.text
    before = prepare(linear(64, 16, 1), pipeline=DEFAULT[: DEFAULT.index(schedule_module)])
    found = explain.explain_module(before, Target.host())
    assert found[0].passed_over["_failing"] == "failed: IndexError: list index out of range"


def test_something_is_left_when_all_rules_fail(monkeypatch):
    monkeypatch.setattr(rules, "RULES", [rules.as_written])
    assert all(f.attrs.get("scheduled") == "as_written" for _, f in prepare(linear(8, 3, 2)).items() if f.attrs.get("kind") == "kernel")


def product(m=7, n=40, k=19):
    a, b, r = te.placeholder((m, k), "float32", "A"), te.placeholder((k, n), "float32", "B"), te.reduce_axis((0, k), "k")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")]).with_attr("global_symbol", "mm")


def guessing(name, model, *cycles):
    """A rule with a decision ``x`` of whose values 0, 1, ... these cycles are expected."""
    def propose(program):
        table = Candidates({"x": np.arange(len(cycles))}, np.array(cycles, float))
        yield Sketch(name, program.schedule, lambda sch, choice: Applied(sch, decisions=choice), table)

    return Rule(name, propose, model)


def test_alternatives_are_made_one_after_another():
    made = []

    def noting(name):
        def steps(sch, choice):
            made.append(name)
            return Applied(sch)

        return Rule(name, lambda program: [Sketch(name, program.schedule, steps)])

    found = choose(product(), Target.host(), rules=[noting("a"), Rule("none", lambda program: []), noting("b")])
    assert next(found).name == "a" and made == ["a"]
    assert [(f.name, f.fits, f.why_not) for f in found] == [("none", False, "the program does not have its structure"), ("b", True, "")]


def test_every_alternative_of_a_product():
    found = {a.name: a for a in choose(product(), Target.host())}
    assert [n for n, a in found.items() if a.fits] == ["contraction", "columns", "windows", "rows", "generic", "fallback", "as_written"]
    assert found["contraction"].expected > 0 and found["fallback"].expected is None and found["points"].why_not


def test_rules_of_one_model_compete_by_expected_cycles():
    slow, fast, other = guessing("slow", "m", 900, 800), guessing("fast", "m", 950, 300), guessing("other", None, 1)
    assert [(a.name, a.choice["x"], a.expected) for a in choose(product(), Target.host(), rules=[slow, other, fast])] == [
        ("fast", 1, 300), ("slow", 1, 800), ("other", 0, 1)]
    assert [a.name for a in choose(product(), Target.host(), rules=[guessing("a", None, 9), guessing("b", "m", 5)])] == ["a", "b"]


def test_a_sketch_schedules_any_choice_and_stays_as_it_is():
    func, target = product(), Target("znver4")
    sketch = next(a.sketch for a in choose(func, target) if a.fits)
    before = sketch.start.func.script()
    assert sketch.space["vectors"] == [1, 2, 3, 4, 5] and sketch.expected(sketch.best()) == sketch.candidates.cycles.min()
    for k in (0, 5, len(sketch.candidates) - 1):
        decisions = sketch.candidates.decisions(k)
        again, pinned = sketch.schedule(decisions), attempt(rules.contraction, func.with_attr("decisions", decisions), target)
        assert again.decisions == pinned.applied.decisions == again.decisions | decisions
        assert structural_equal(again.func, pinned.applied.func.replace(attrs=again.func.attrs))
    assert sketch.start.func.script() == before


@pytest.mark.parametrize("name", ["contraction", "columns", "windows", "rows", "generic", "fallback", "as_written"])
def test_a_sketch_that_is_asked_for_is_taken(name):
    found = explain.explain_program(product().with_attr("decisions", {"sketch": name}), Target.host())
    assert found.rule == name
    assert name == "contraction" or found.passed_over["contraction"] == f"sketch {name} is asked for"
    made, _ = schedule_program(product(), Target.host(), pins={"sketch": name})
    assert made.attrs["scheduled"] == name


@pytest.mark.parametrize("pins, message", [
    ({"sketch": "winograd"}, "mm: there is no sketch 'winograd'.*does not have its structure.*contraction, .*rows, generic, fallback, as_written"),
    ({"sketch": "nothing"}, "there is no sketch 'nothing'"),
    ({"chains": 4}, "sketch contraction has no decision 'chains'.*its decisions are rows, vectors, .*grain; another sketch is asked for by 'sketch'"),
    ({"sketch": "fallback", "rows": 4}, "sketch fallback has no decision 'rows'.*its decisions are grain"),
    ({"sketch": "contraction", "vectors": 9}, "sketch contraction cannot have vectors=9.*vectors can be 1 to 5"),
    ({"vectors": 4, "rows": 7}, "sketch contraction cannot have rows=7 with vectors=4.*rows can be 1 to 6"),
])
def test_what_is_asked_for_and_cannot_be_had_is_an_error(pins, message):
    with pytest.raises(ScheduleError, match=re.compile(message, re.DOTALL)):
        schedule_program(product(), Target("znver4"), pins=pins)


def test_a_pinned_sketch_that_is_not_legal_is_an_error():
    def steps(sch, choice):
        raise ScheduleError("this loop cannot be parallel")

    bad = Rule("bad", lambda program: [Sketch("bad", program.schedule, steps)])
    with pytest.raises(ScheduleError, match="sketch bad cannot be had with sketch=bad\n.*this loop cannot be parallel"):
        list(choose(product(), Target.host(), pins={"sketch": "bad"}, rules=[bad, rules.fallback]))
    assert [a.name for a in choose(product(), Target.host(), rules=[bad, rules.fallback]) if a.fits] == ["fallback"]


SOME = [(k, n, rows) for k, n, rows in itertools.product((1, 7, 512, 2048), (1, 2, 3, 4, 5, 8, 16, 17), (1, 3, None)) if k in (512, 2048) or n in (1, 5, 16)]


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "apple-m1", "wasm32"])
def test_products_of_all_sizes_have_a_schedule(target):
    assert target in MACHINES
    for size in SOME:
        prepare(linear(*size), target=Target(target))


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_one_row_and_few_columns(columns):
    import torch

    import roundel as rd

    layer, x = torch.nn.Linear(512, columns), torch.randn(1, 512, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(rd.compile(layer, [x])(x.numpy()), layer(x).detach().numpy(), rtol=1e-5, atol=1e-5)
