# SPDX-License-Identifier: Apache-2.0
"""Composite operators of exported programs are taken apart one by one, equal ones once; the rest of the program is imported as it was exported."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from against import draw

import roundel as rd
from roundel.driver import prepare
from roundel.frontend.torch import composite
from roundel.frontend.torch.export import from_exported_program
from roundel.frontend.torch.importer import KEEP, decompositions
from roundel.interp import interpret

F = torch.nn.functional


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(width), torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Image(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.groups = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.GroupNorm(2, 8)

    def forward(self, x):
        x = F.hardswish(self.norm(self.conv(x)))
        return F.interpolate(F.max_pool2d(self.groups(x), 2), scale_factor=2.0, mode="bilinear").flatten(1).chunk(2, 1)


class InPlace(torch.nn.Module):
    def forward(self, x):
        y = x.clone()
        y[:, 0] = 0
        return F.relu(y, inplace=True).add_(x)


class State(torch.nn.Module):
    def forward(self, x):
        x.mul_(2)
        return x + 1


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: F.layer_norm(x, (8,)), lambda x: x - 1, (x,))


def exported(model, *args, **more):
    with torch.no_grad():
        return torch.export.export(model.eval(), args, **more)


PROGRAMS = {
    "blocks": (torch.nn.Sequential(Block(8), Block(8)), (draw(3, 8),), None),
    "blocks of any length": (torch.nn.Sequential(Block(8), Block(8)), (draw(3, 8),), ({0: torch.export.Dim("n", min=2, max=99)},)),
    "image": (Image(), (draw(2, 3, 6, 8),), None),
    "attention": (torch.nn.MultiheadAttention(8, 2, batch_first=True), (draw(2, 5, 8), draw(2, 7, 8), draw(2, 7, 8)), None),
    "encoder": (torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (draw(2, 5, 8),), None),
    "recurrent": (torch.nn.LSTM(4, 6, batch_first=True), (draw(2, 5, 4),), None),
    "gated": (torch.nn.GRU(4, 6, 2, bidirectional=True), (draw(5, 2, 4),), None),
    "plain recurrent": (torch.nn.RNN(4, 6, bias=False), (draw(5, 2, 4),), None),
    "in place": (InPlace(), (draw(3, 4),), None),
    "state": (State(), (draw(3, 4),), None),
    "branches": (Branches(), (draw(3, 8),), None),
}
WHOLE = {"in place", "state", "branches"}
"""Those that PyTorch makes functional first: something is changed in place, or there are graphs within the graph."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_pytorch(name):
    model, args, shapes = PROGRAMS[name]
    program = exported(model, *args, dynamic_shapes=shapes)
    apart = composite.parts_of(program, decompositions(), KEEP)
    assert (apart is None) == (name in WHOLE)
    got = interpret(from_exported_program(program))["main"](*(a.clone().numpy() for a in args))
    want = [w for w in torch.utils._pytree.tree_leaves(model.eval()(*(a.clone() for a in args))) if w is not None]
    for g, w in zip(torch.utils._pytree.tree_leaves(got), want):
        torch.testing.assert_close(torch.as_tensor(g), w, rtol=1e-4, atol=1e-5)


def test_only_what_is_unknown_is_traced_and_equal_operators_once(monkeypatch):
    traced = []

    def counted(node, table):
        traced.append(str(node.target))
        return real(node, table)

    real = composite._traced
    monkeypatch.setattr(composite, "_traced", counted)
    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", lambda *_: pytest.fail("the whole program was traced again"))
    program = exported(torch.nn.Sequential(*(Block(8) for _ in range(20))), draw(3, 8))
    from_exported_program(program)
    assert sorted(traced) == ["aten.layer_norm.default", "aten.linear.default", "aten.linear.default"]


def test_the_users_program_stays_as_it_was():
    program = exported(Image(), draw(2, 3, 6, 8))
    before = str(program.graph)
    from_exported_program(program)
    assert str(program.graph) == before


def test_parts_have_the_name_of_their_node():
    """Choices are asked for by the names of the program's nodes, of which equal ones share their parts."""
    network = torch.nn.Sequential(torch.nn.Conv2d(16, 16, 3), torch.nn.Conv2d(16, 16, 3)).eval()
    made = prepare(rd.import_model(network, [torch.randn(1, 16, 9, 9)]), choices={"conv2d_1": "direct"})
    assert [c.site for c in made.choices.made if c.kind == "algorithm"] == ["conv2d", "conv2d_1"]


def test_one_operand_given_twice_and_two_operands_are_different_calls():
    class Net(torch.nn.Module):
        def forward(self, x, y):
            return torch.logaddexp(x, x), torch.logaddexp(x, y), torch.special.xlog1py(x, x), torch.special.xlog1py(x, y)

    x, y = torch.rand(3, 4) + 0.5, torch.rand(3, 4) + 2
    mod = from_exported_program(torch.export.export(Net(), (x, y)))
    for found, wanted in zip(rd.interpret(mod)["main"](x.numpy(), y.numpy()), Net()(x, y), strict=True):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-6)
