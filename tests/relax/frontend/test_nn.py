# SPDX-License-Identifier: Apache-2.0
"""Models written as modules: what is exported computes what PyTorch computes with the same weights."""

from __future__ import annotations

import types

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir import assert_structural_equal
from roundel.ir.errors import BuilderError, RoundelError
from roundel.passes.well_formed import well_formed
from roundel.relax.frontend import nn
from roundel.script import parse

torch = pytest.importorskip("torch")


class MLP(nn.Module):
    def __init__(self):
        self.fc1, self.fc2 = nn.Linear(12, 8), nn.Linear(8, 3, bias=False)

    def forward(self, x):
        h = nn.op.relu(self.fc1(x))
        return self.fc2(h + h)


class TorchMLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = torch.nn.Linear(12, 8), torch.nn.Linear(8, 3, bias=False)

    def forward(self, x):
        h = torch.relu(self.fc1(x))
        return self.fc2(h + h)


class Net(nn.Module):
    def __init__(self):
        self.conv = nn.Conv2D(3, 8, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(2)])
        self.out = nn.LayerNorm(8)

    def forward(self, x):
        x = nn.op.silu(self.norm(self.conv(x)))
        x = x.mean(axis=[2, 3])
        return self.out(self.blocks(x))


class TorchNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.GroupNorm(2, 8)
        self.blocks = torch.nn.ModuleList([torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()) for _ in range(2)])
        self.out = torch.nn.LayerNorm(8)

    def forward(self, x):
        x = torch.nn.functional.silu(self.norm(self.conv(x))).mean((2, 3))
        for block in self.blocks:
            x = block(x)
        return self.out(x)


@pytest.mark.parametrize("ours, theirs, shape, dims", [
    (MLP, TorchMLP, (5, 12), ("n", 12)), (Net, TorchNet, (2, 3, 9, 9), ("n", 3, "h", "h")),
])  # fmt: skip
def test_exported_functions_take_the_parameters_behind_their_inputs(ours, theirs, shape, dims):
    torch.manual_seed(0)
    reference = theirs().eval()
    model = ours()
    model.load_state_dict(reference.state_dict())
    mod, params = model.export_tvm({"forward": {"x": nn.spec.Tensor(dims, "float32")}})
    assert well_formed(mod) == [] and mod["forward"].attrs["num_input"] == 1
    assert [name for name, _ in params] == list(reference.state_dict())
    assert_structural_equal(parse(mod.script()), mod)
    x = torch.randn(shape)
    want = reference(x).detach().numpy()
    weights = [p.data for _, p in params]
    np.testing.assert_allclose(np.asarray(rd.build(mod)["forward"](x.numpy(), *weights)), want, rtol=2e-4, atol=2e-5)
    bound = mod["forward"].bind_params({name: p.data for name, p in params})
    np.testing.assert_allclose(rd.interpret(rd.IRModule({"main": bound}))(x.numpy()), want, rtol=2e-4, atol=2e-5)


class Words(nn.Module):
    """Two methods, a tied weight, a number, a tensor expression, several results."""

    def __init__(self):
        self.embed, self.head = nn.Embedding("vocabulary", 4), nn.Linear(4, "vocabulary", bias=False)
        self.head.weight = self.embed.weight

    def encode(self, ids):
        return self.embed(ids)

    def decode(self, x, times):
        scaled = nn.op.tensor_expr_op(lambda a: te.compute(a.shape, lambda i, j: a[i, j] * 2.0), "twice", [x])
        first, second = nn.op.split(nn.op.concat([x, scaled], dim=0), 2)
        return self.head(first - 1.0), (second, second.reshape(-1) * 0.5 + nn.op.full((times,), 0.0, "float32").sum())


def test_methods_tied_weights_and_results():
    mod, params = Words().export_tvm({
        "encode": {"ids": nn.spec.Tensor(("n",), "int64")},
        "decode": {"x": nn.spec.Tensor((3, 4), "float32"), "times": nn.spec.Int()},
    })  # fmt: skip
    assert [name for name, _ in params] == ["embed.weight"]
    table, x = np.random.default_rng(0).standard_normal((2, 7, 4)).astype("float32")[0], np.ones((3, 4), "float32")
    run = rd.interpret(mod)
    np.testing.assert_array_equal(run["encode"](np.array([2, 0]), table), table[[2, 0]])
    logits, (second, flat) = run["decode"](x, 5, table)
    np.testing.assert_allclose(logits, np.zeros((3, 7)), atol=1e-6)
    np.testing.assert_array_equal(second, 2 * x)
    np.testing.assert_array_equal(flat, np.ones(12))


def test_parameters_have_types():
    model = MLP().to("float16")
    mod, _ = model.export_tvm({"forward": {"x": nn.spec.Tensor((2, 12), "float16")}})
    assert {p.sinfo.dtype for p in mod["forward"].params} == {"float16"}


@pytest.mark.parametrize("attempt, said", [
    (lambda: nn.op.relu(nn.Tensor(None)), "inside of an export"),
    (lambda: MLP().fc1.weight.expr, "no value outside of an export"),
    (lambda: nn.op.dense, "linear"),
    (lambda: MLP().export_tvm({"run": {}}), "no method run"),
    (lambda: MLP().export_tvm({"forward": {"x": (2, 12)}}), "nn.spec.Tensor"),
    (lambda: MLP().load_state_dict({"fc1.weight": np.ones((8, 12), "float32")}), "missing: fc1.bias, fc2.weight"),
    (lambda: setattr(MLP().fc1.weight, "data", np.ones((3, 3), "float32")), "do not fit the parameter"),
])  # fmt: skip
def test_mistakes(attempt, said):
    with pytest.raises((RoundelError, AttributeError), match=said):
        attempt()


def test_names_can_be_asked_for():
    assert hasattr(nn.op, "relu") and not hasattr(nn.op, "relux") and not hasattr(nn, "relux")


def test_modules_of_the_room_hide_no_operator():
    for name in dir(nn):
        if isinstance(getattr(nn, name), types.ModuleType):
            assert name in ("core", "layers", "llm", "op", "spec", "torch_names", "extern_module"), name
    assert callable(nn.extern)


@pytest.mark.parametrize("mode", ["plain", "packed"])
def test_a_module_compiles_itself_with_the_values_of_its_parameters(mode):
    class Layer(nn.Module):
        def __init__(self):
            self.linear = nn.Linear(4, 3)

        def forward(self, x):
            return nn.op.relu(self.linear(x))

        def twice(self, x):
            return self.linear(x), x + x

    layer = Layer()
    x = nn.spec.Tensor(("n", 4), "float32")
    spec = {"forward": {"x": x, "$": {"param_mode": mode}}, "twice": {"x": x}}
    with pytest.raises(BuilderError, match=r"linear.weight, linear.bias have no values"):
        layer.jit(spec)
    theirs = torch.nn.Linear(4, 3)
    layer.load_state_dict({f"linear.{k}": v.detach() for k, v in theirs.state_dict().items()})
    run, data = layer.jit(spec), torch.randn(5, 4)
    torch.testing.assert_close(run["forward"](data), torch.relu(theirs(data)).detach())
    product, double = run["twice"](data)
    torch.testing.assert_close(product, theirs(data).detach())
    torch.testing.assert_close(double, data + data)
    assert isinstance(run["forward"](data.numpy()), np.ndarray)
    with pytest.raises(BuilderError, match="cuda"):
        layer.jit(spec, device="cuda")
