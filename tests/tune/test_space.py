# SPDX-License-Identifier: Apache-2.0
"""The space of a program: sketches with their tables, the default among them."""

import numpy as np
import pytest

from roundel import te
from roundel.ir.equal import structural_equal
from roundel.ir.errors import OptionError
from roundel.strategy import choose, schedule_program, template
from roundel.strategy.program import Program
from roundel.target import Target
from roundel.tune.space import Space

from .programs import product, space, table

TARGET = Target.host()


@pytest.mark.parametrize("which", ["all", "rules", "generic"])
def test_the_default_is_what_the_untuned_compiler_makes(which):
    func = product()
    found = Space.of(Program(func, TARGET), which)
    made, _ = schedule_program(func, TARGET)
    assert structural_equal(found.schedule(found.default).func.body, made.body)


def test_a_space_has_the_sketches_that_are_asked_for():
    program = Program(product(), TARGET)
    names = {which: {w.name for w in Space.of(program, which).ways} for which in ("all", "rules", "generic")}
    assert "generic" not in names["rules"] and names["all"] >= names["rules"] | names["generic"]
    generic = Space.of(program, ["generic"])
    sizes = {w.name: w.size for w in generic.ways}
    assert sizes.pop("contraction") == 1 and list(sizes) == ["generic"]  # the default is always there, its sketch's other candidates are not
    assert generic.find("contraction", generic.choice(generic.default)) == generic.default
    with pytest.raises(OptionError, match="no space"):
        Space.of(program, "everything")
    with pytest.raises(OptionError, match="no rule"):
        Space.of(program, ["everything"])


def test_a_template_of_ones_own_is_in_the_space():
    def halves(sch, target):
        i, *_ = sch.get_loops(sch.get_block("C"))
        sch.split(i, [None, sch.knob("rows", [2, 4])])

    found = Space.of(Program(product(), TARGET), [template(halves)])
    assert [found.choice(c) for c in found if found.sketch(c).name == "halves"] == [{"rows": 2}, {"rows": 4}]


def test_several_reductions_are_decided_independently():
    a, r, s = te.placeholder((16, 32), "float32", "A"), te.reduce_axis((0, 32), "r"), te.reduce_axis((0, 16), "s")
    rows = te.compute((16,), lambda i: te.max(a[i, r], axis=r), "M")
    columns = te.compute((32,), lambda j: te.sum(a[s, j] * rows[s], axis=s), "S")
    found = Space.of(Program(te.create_prim_func([a, columns]), TARGET), "generic")
    (way,) = [w for w in found.ways if w.name == "generic"]
    assert len(way.tables) == 2 and way.size == len(way.tables[0]) * len(way.tables[1])
    choice = way.choice((0, 1))
    assert {n.split(".")[0] for n in choice} == {"M", "S"}
    assert way.sketch.schedule(choice).func


def test_candidates_are_found_by_their_decisions():
    found = Space.of(Program(product(), TARGET))
    for candidate in list(found)[::97]:
        assert found.schedule is not None and found.find(found.sketch(candidate).name, found.choice(candidate)) == candidate
    assert found.find("contraction", {"rows": 999}) is None and found.find("nobody", {}) is None


def test_ranked_candidates_are_in_order_and_mutations_differ_in_one_decision():
    found = space(table(lambda c: c["x"] * 10 + c["y"], x=range(5), y=range(7)))
    (way,) = found.ways
    cycles = way.cycles(way.ranked(100))
    assert len(cycles) == 35 and (np.diff(cycles) >= 0).all()
    rng = np.random.default_rng(0)
    own = way.choice((17,))
    for row in way.mutated((17,), 50, rng).tolist():
        assert sum(way.choice(row)[n] != own[n] for n in own) == 1


def test_a_rule_that_fails_costs_its_candidates_only():
    def breaks(sch, target):
        sch.knob("x", [1, 2])
        raise RuntimeError("a mistake")

    found = Space.of(Program(product(), TARGET), ["generic", template(breaks)])
    assert "breaks" not in {w.name for w in found.ways}


def test_several_threads_have_a_grain_to_decide():
    program = Program(product(1024, 256, 256), TARGET)
    found = Space.of(program, "rules", threads=2)
    default = found.schedule(found.default).decisions["grain"]
    same = [c for c in found if c.way == found.default.way and c.rows[:-1] == found.default.rows[:-1]]
    grains = {found.choice(c)["grain"]: found.schedule(c).decisions["grain"] for c in same}
    assert grains == {n: n for n in {max(1, int(default * 2.0**p)) for p in (-2, -1, 0, 1, 2)}}
    assert found.choice(found.default)["grain"] == default
    loops = [x for x in found.schedule(same[-1]).schedule.trace if x.kind == "annotate"]
    assert loops  # it is in the trace, so records have it
    assert found.find(found.sketch(same[-1]).name, found.schedule(same[-1]).decisions) == same[-1]  # as a record has it


def test_grain_is_pinned_like_any_decision():
    func = product(1024, 256, 256)
    pinned = next(a for a in choose(func, TARGET, pins={"sketch": "contraction", "grain": 3}) if a.fits)
    assert pinned.choice["grain"] == 3 == pinned.applied.decisions["grain"]
    assert next(a for a in choose(func, TARGET, pins={"grain": 1 << 40}) if a.fits).applied.decisions["grain"] < 1 << 40  # all of the loop, at most
