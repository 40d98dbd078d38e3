# SPDX-License-Identifier: Apache-2.0
"""Candidates that are scheduled by those who build them."""

import pickle

import numpy as np
import pytest

from roundel import te
from roundel.ir import options
from roundel.ir.errors import ScheduleError
from roundel.strategy import Applied, Program, Sketch
from roundel.target import Target
from roundel.tune.measure import Artifact, Failure, Plan, Twin
from roundel.tune.measure.build import build
from roundel.tune.measure.plan import identity_of, packed, source_of
from roundel.tune.space import Space

from ..programs import doubled, product


def softmax():
    x, r, s = te.placeholder((32, 48), "float32", "X"), te.reduce_axis((0, 48)), te.reduce_axis((0, 48))
    top = te.compute((32,), lambda i: te.max(x[i, r], axis=r))
    e = te.compute((32, 48), lambda i, j: te.exp(x[i, j] - top[i]))
    total = te.compute((32,), lambda i: te.sum(e[i, s], axis=s))
    return te.create_prim_func([x, te.compute((32, 48), lambda i, j: e[i, j] / total[i])])


def windows():
    x, w = te.placeholder((1, 8, 18, 18), "float32", "X"), te.placeholder((16, 8, 3, 3), "float32", "W")
    c, p, q = te.reduce_axis((0, 8)), te.reduce_axis((0, 3)), te.reduce_axis((0, 3))
    return te.create_prim_func([x, w, te.compute((1, 16, 16, 16), lambda n, o, i, j: te.sum(x[n, c, i + p, j + q] * w[o, c, p, q], axis=(c, p, q)))])


@pytest.mark.parametrize("make", [product, softmax, windows])
def test_every_sketch_with_decisions_goes_to_another_process_and_leads_to_the_same_there(make):
    space = Space.of(Program(make(), Target.host()), threads=2)
    rng = np.random.default_rng(0)
    for way in space.ways:
        assert way.packed is not None or way.size <= 5, way.name  # five grains
        for rows in way.random(2, rng) if way.packed is not None else ():
            plan = Plan(way.packed, way.choice(rows))
            try:
                here = source_of(way.name, space.schedule(next(c for c in [space.find(way.name, way.choice(rows))] if c)))
            except ScheduleError:
                continue
            assert identity_of(pickle.loads(pickle.dumps(plan)).source) == identity_of(here)


def test_what_was_built_before_is_not_built_again():
    space = Space.of(Program(product(), Target.host()))
    with options.override(cache=False):
        first = build(space.plan(space.default), Target.host())
        assert isinstance(first, Artifact) and first.identity
        assert build(space.plan(space.default, frozenset([first.identity])), Target.host()) == Twin(first.identity)


def test_what_becomes_equal_when_it_is_lowered_is_not_compiled_again():
    """A note on a block makes another program of the same code."""
    sketch = Sketch("noted", Program(doubled(), Target.host()).schedule, _noted)
    first, other = (Plan(packed(sketch), {"note": n}) for n in (1, 2))
    made = build(first, Target.host())
    assert identity_of(first.source) != identity_of(other.source)
    assert build(Plan(other.packed, other.choice, frozenset([made.key])), Target.host()) == Twin(made.key)


def _noted(sch, choice):
    sch.annotate(sch.get_block("Y"), "note", choice["note"])
    return Applied(sch)


def test_candidates_that_are_called_alike_have_one_object_of_host_functions():
    sketch = Sketch("pieces", Program(doubled(), Target.host()).schedule, _in_pieces)
    one, other = (build(Plan(packed(sketch), {"by": n}), Target.host()) for n in (3, 5))
    assert one.key != other.key and one.built[0][0] != other.built[0][0]
    assert one.built[0][1] is other.built[0][1]


def _in_pieces(sch, choice):
    sch.split(sch.get_loops(sch.get_block("Y"))[0], [None, choice["by"]])
    return Applied(sch)


def test_functions_that_no_other_process_can_import_stay_here():
    schedule = Program(doubled(), Target.host()).schedule
    assert packed(Sketch("closure", schedule, lambda sch, choice: Applied(sch))) is None


def test_a_rule_that_fails_is_a_failed_candidate():
    schedule = Program(doubled(), Target.host()).schedule
    found = build(Plan(packed(Sketch("broken", schedule, _broken)), {}), Target.host())
    assert found == Failure("schedule", "sketch broken failed: ZeroDivisionError: no")


def _broken(sch, choice):
    raise ZeroDivisionError("no")
