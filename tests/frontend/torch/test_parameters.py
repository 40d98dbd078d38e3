# SPDX-License-Identifier: Apache-2.0
"""Parameters of exported programs as inputs, with their values apart."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
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


class Scaled(torch.Tensor):
    """A weight of bytes with a scale for each row, a tensor that is made of others as those of torchao are."""

    @staticmethod
    def __new__(cls, whole, scale):
        return torch.Tensor._make_wrapper_subclass(cls, whole.shape, dtype=scale.dtype)

    def __init__(self, whole, scale):
        self.whole, self.scale = whole, scale

    def __tensor_flatten__(self):
        return ["whole", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, parts, context, size, stride):
        return cls(parts["whole"], parts["scale"])

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.linear:
            x, weight, bias = args
            return func(x, weight.whole.to(x.dtype) * weight.scale[:, None], bias)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return cls(args[0].whole, args[0].scale)
        raise NotImplementedError(str(func))


@pytest.mark.parametrize("how", ["module", "program"])
def test_weights_that_are_made_of_other_tensors_stay_in_their_bytes(how):
    torch.manual_seed(0)
    model, x = torch.nn.Sequential(torch.nn.Linear(160, 144)).eval(), torch.randn(3, 160)
    whole, scale = torch.randint(-127, 128, (144, 160), dtype=torch.int8), torch.rand(144) / 100
    model[0].weight = torch.nn.Parameter(Scaled(whole, scale), requires_grad=False)
    want = torch.nn.functional.linear(x, whole * scale[:, None], model[0].bias)
    made = rd.compile(model, (x,)) if how == "module" else rd.compile(torch.export.export(model, (x,)))
    np.testing.assert_allclose(made(x.numpy()), want.detach().numpy(), rtol=1e-5, atol=1e-5)
    assert made.weights_nbytes < 2 * whole.numel()


def test_products_of_bytes():
    weight = torch.randint(-127, 128, (64, 48), dtype=torch.int8)

    class Product(torch.nn.Module):
        def forward(self, x):
            return torch._int_mm(x, weight)

    x = torch.randint(-128, 128, (32, 64), dtype=torch.int8)
    np.testing.assert_array_equal(rd.compile(Product(), (x,))(x.numpy()), x.int().numpy() @ weight.int().numpy())
