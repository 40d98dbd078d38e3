# SPDX-License-Identifier: Apache-2.0
"""Parameters of exported programs as inputs, with their values apart."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.frontend.torch import from_exported_program
from roundel.interp import interpret
from roundel.ir import assert_structural_equal, graph
from roundel.relax.frontend import detach_params
from roundel.script import parse

torch = pytest.importorskip("torch")


class Normed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)

    def forward(self, x):
        return self.norm(self.fc(x))


def exported():
    torch.manual_seed(0)
    model, x = Normed().eval(), torch.randn(5, 4)
    return torch.export.export(model, (x,)), x.numpy(), model(x).detach().numpy()


def test_parameters_as_inputs():
    program, x, want = exported()
    mod, values = detach_params(from_exported_program(program, keep_params_as_input=True))
    main = mod["main"]
    assert main.attrs["num_input"] == 1 and "params" not in main.attrs
    assert len(main.params) == 1 + len(values["main"]) and len(values["main"]) >= 6
    np.testing.assert_allclose(interpret(mod)["main"](x, *values["main"]), want, rtol=1e-4, atol=1e-5)
    bound = main.bind_params(dict(zip(main.params[1:], values["main"], strict=True)))
    np.testing.assert_allclose(interpret(mod.with_functions({"main": bound}))["main"](x), want, rtol=1e-4, atol=1e-5)


def test_attached_values_print():
    mod = from_exported_program(exported()[0], keep_params_as_input=True)
    assert_structural_equal(parse(mod.script()), mod)


def test_a_single_result_as_a_tuple():
    program, x, want = exported()
    mod = from_exported_program(program, unwrap_unit_return_tuple=False)
    assert isinstance(mod["main"].ret_sinfo, graph.TupleInfo)
    (found,) = interpret(mod)["main"](x)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
