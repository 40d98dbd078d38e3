# SPDX-License-Identifier: Apache-2.0
"""Models of many kinds, written as TVM's text and JSON, give what PyTorch gives."""

import numpy as np
import pytest

import roundel as rd

from .models import MODELS
from .written import as_json, as_params, as_text


def _checked(module, model, tolerance=2e-5):
    found = rd.compile(module)(**model.inputs)
    found = found if isinstance(found, tuple | list) else (found,)
    assert len(found) == len(model.expected)
    for a, b in zip(found, model.expected, strict=True):
        assert np.asarray(a).dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a), b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", MODELS)
def test_text(name):
    model = MODELS[name]()
    _checked(rd.import_relay(as_text(model.module), model.params), model)


@pytest.mark.parametrize("name", MODELS)
def test_json_and_a_file_of_parameters(name, tmp_path):
    model = MODELS[name]()
    (tmp_path / "model.json").write_text(as_json(model.module))
    (tmp_path / "model.params").write_bytes(as_params(model.params))
    _checked(rd.import_relay(tmp_path / "model.json", str(tmp_path / "model.params")), model)


@pytest.mark.parametrize("name", ["mobilenet", "lstm_loop", "wide_and_deep"])
def test_parameters_that_are_not_given_stay_inputs(name):
    model = MODELS[name]()
    module = rd.import_relay(as_text(model.module))
    assert set(module["main"].attrs["input_names"]) == {*model.inputs, *model.params}
    model.inputs = {**model.inputs, **model.params}
    _checked(module, model)


@pytest.mark.parametrize("name", MODELS)
def test_the_interpreter_gives_the_same(name):
    model = MODELS[name]()
    found = rd.interpret(rd.import_relay(as_json(model.module), model.params))["main"](*model.inputs.values())
    for a, b in zip(found if isinstance(found, tuple | list) else (found,), model.expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=2e-4, atol=2e-4)
