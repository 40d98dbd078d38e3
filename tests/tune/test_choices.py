# SPDX-License-Identifier: Apache-2.0
"""Which way to compute a node was measured goes before what is expected, wherever the same operator stands, and behind what is asked for."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from roundel import driver
from roundel.ir.choice import EXPECTED, MEASURED, PINNED
from roundel.ir.record import ChoiceRecord, Key
from roundel.target import Target
from roundel.tune.database import Database
from roundel.tune.measured import Measured, measured_for

RNG, TARGET = np.random.default_rng(0), Target("znver5")
WEIGHTS = RNG.standard_normal((64, 64, 3, 3), np.float32) / 24


def convolution(name="conv", stride=1, size=56, weights=WEIGHTS):
    """One convolution of 3x3, and what it is named."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], name=name, pads=[1] * 4, strides=[stride] * 2)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (1, 64, size, size)), ("y", None))]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")])
    return rd.import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def product(rows=512, name="product"):
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name=name)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (rows, 1024)), ("y", None))]
    weights = [numpy_helper.from_array(RNG.standard_normal((1024, 1024), np.float32), "w")]
    return rd.import_model(helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:], weights),
                                             opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def algorithm(mod, records, **asked):
    """The choice of an algorithm that a module's only node got."""
    done = driver.prepare(mod, target=TARGET, pipeline=[*driver.OPTIMIZE, *driver.LOWER], records=records, **asked)
    return next(c for c in done.choices.made if c.kind == "algorithm")


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "tuned.jsonl")


def measured(database):
    return Measured(database, TARGET, 1)


def record(choice, taken, **facts):
    return ChoiceRecord(Key(choice.signature, TARGET.fingerprint, 1, "accuracy=default"), taken, {taken: 1e-3, choice.taken: 2e-3}, choice.subject, **facts)


CASES = {"convolution": (convolution, ("direct", "winograd2", "winograd4")), "product": (product, ("plain", "strassen"))}


@pytest.mark.parametrize(("make", "taken"), [(make, taken) for make, names in CASES.values() for taken in names])
def test_what_was_measured_is_taken_at_every_such_node(database, make, taken):
    expected = algorithm(make(), measured(database))
    assert expected.reason == EXPECTED and expected.signature
    assert database.append(record(expected, taken))
    found = algorithm(make(name="another"), measured(database))
    assert (found.taken, found.reason) == (taken, MEASURED)
    assert algorithm(make(), measured_for(False, TARGET, 1)).taken == expected.taken


def test_what_is_asked_for_goes_before_it(database):
    database.append(record(algorithm(convolution(), measured(database)), "direct"))
    found = algorithm(convolution(), measured(database), choices={"conv": "winograd2"})
    assert (found.taken, found.reason) == ("winograd2", PINNED)


@pytest.mark.parametrize("other", [{"size": 28}, {"weights": WEIGHTS[:32]}])
def test_other_operators_have_records_of_their_own(database, other):
    database.append(record(algorithm(convolution(), measured(database)), "direct"))
    assert algorithm(convolution(**other), measured(database)).reason == EXPECTED


def test_the_values_of_weights_do_not_count(database):
    database.append(record(algorithm(convolution(), measured(database)), "direct"))
    assert algorithm(convolution(weights=WEIGHTS * 2), measured(database)).reason == MEASURED


def test_what_cannot_be_had_is_not_taken(database):
    """Such as Winograd's algorithm where the weights became too large for it."""
    database.append(record(algorithm(convolution(), measured(database)), "winograd4"))
    found = algorithm(convolution(weights=WEIGHTS * 1e37), measured(database))
    assert (found.taken, found.reason) == ("direct", EXPECTED)


def test_the_last_measurement_counts(database):
    choice = algorithm(convolution(), measured(database))
    database.append(record(choice, "winograd2", at=2.0), record(choice, "direct", at=1.0))
    assert database.choice(record(choice, "").key).taken == "winograd2"
    assert database.choice(replace(record(choice, "").key, threads=2)) is None


def test_records_of_choices_shape_what_is_compiled(database):
    before = database.digest(TARGET.fingerprint)
    database.append(record(algorithm(convolution(), measured(database)), "direct"))
    assert database.digest(TARGET.fingerprint) != before and not list(database)


def test_products_of_symbolic_rows(database):
    choice = algorithm(product("n"), measured(database))
    assert choice.taken == "strassen" and choice.condition
    database.append(record(choice, "plain"))
    found = algorithm(product("m"), measured(database))
    assert (found.taken, found.reason, found.condition) == ("plain", MEASURED, "")
    database.append(record(choice, "strassen"))
    again = algorithm(product("m"), measured(database))
    assert (again.taken, again.reason) == ("strassen", MEASURED) and again.condition.split()[-1] == choice.condition.split()[-1]


def test_without_records_no_signature_is_made():
    assert algorithm(convolution(), None).signature == ""
