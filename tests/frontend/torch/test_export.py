# SPDX-License-Identifier: Apache-2.0
"""Programs as a whole: compiled, with dynamic shapes, shared weights, several results; and what is refused."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import roundel as rd
from roundel.ir import graph
from roundel.ir.errors import ModelError, UnsupportedError


class Tied(torch.nn.Module):
    """An embedding whose table is the output's weight too."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(11, 6)
        self.out = torch.nn.Linear(6, 11, bias=False)
        self.out.weight = self.table.weight

    def forward(self, ids, scale=2.0):
        h = torch.tanh(self.table(ids)) * scale
        return {"logits": self.out(h), "hidden": [h, h.sum(-1)]}


def test_compiled_with_dynamic_shapes():
    torch.manual_seed(0)
    module, n = Tied(), torch.export.Dim("n", min=2, max=40)
    model = rd.compile(module, (torch.tensor([[1, 2, 3]]),), dynamic=({1: n},))
    for length in (3, 1, 17):
        ids = torch.arange(length)[None] % 11
        expected = module(ids)
        for found, wanted in zip(model(ids), (expected["logits"], *expected["hidden"])):
            assert isinstance(found, torch.Tensor)
            torch.testing.assert_close(found, wanted)
    assert isinstance(model(np.array([[4, 5]]))[0], np.ndarray)


def test_weights_are_shared_not_copied():
    module = Tied()
    program = torch.export.export(module, (torch.tensor([[1, 2, 3]]),))
    constants = []
    main = rd.import_model(program)["main"]
    for block in main.body.blocks:
        for binding in block.bindings:
            constants += [a for a in getattr(binding.value, "args", ()) if isinstance(a, graph.Constant) and a.data.shape == (11, 6)]
    assert len(constants) == 2 and constants[0].data is constants[1].data
    assert constants[0].data.numpy().ctypes.data == module.table.weight.data_ptr()


def test_a_model_with_unknown_operators_is_refused_with_all_of_them():
    for name in ("first", "second"):
        torch.library.define(f"acme::{name}", "(Tensor x) -> Tensor")
        torch.library.register_fake(f"acme::{name}", torch.empty_like)
    first, second = torch.ops.acme.first, torch.ops.acme.second

    class Odd(torch.nn.Module):
        def forward(self, x):
            return first(x) + second(x) + first(x + 1)

    with pytest.raises(UnsupportedError, match=r"2 operators") as error:
        rd.compile(Odd(), (torch.ones(3),))
    assert "acme.first.default, 2 nodes" in str(error.value) and "acme.second" in str(error.value)


def test_state_is_refused():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count

    with pytest.raises(UnsupportedError, match="count"):
        rd.compile(Counter(), (torch.ones(2),))


def test_arguments_that_are_no_model():
    with pytest.raises(ModelError, match="example inputs"):
        rd.compile(Tied())
    with pytest.raises(ModelError):
        rd.frontend.torch.from_torch(3)
    with pytest.raises(ModelError, match=r"(?s)does not take this Tied.*run with these inputs"):
        rd.compile(Tied(), (torch.ones(2, 3, 5, 7, 11),))


def test_an_operator_of_the_user(monkeypatch):
    from roundel.frontend.torch import registry

    monkeypatch.setattr(registry, "TABLE", dict(registry.TABLE))
    monkeypatch.setattr(registry, "OWN", set())

    @rd.torch.operator("special_modified_bessel_i1")
    def convert(node, x):
        return node.make("multiply", x, x)

    class Uses(torch.nn.Module):
        def forward(self, x):
            return torch.special.modified_bessel_i1(x)

    main = rd.interpret(rd.import_model(Uses(), (torch.full((2,), 3.0),)))["main"]
    np.testing.assert_allclose(main(np.full(2, 3, np.float32)), [9, 9])


def test_a_module_keeps_its_mode():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.9)).train()
    model[0].eval()
    rd.import_model(model, (torch.ones(1, 2),))
    assert model.training and model[1].training and not model[0].training


def test_the_page_of_operators_is_current():
    from roundel.frontend.torch.support import markdown

    assert (Path(__file__).parents[3] / "docs" / "torch-operators.md").read_text() == markdown(), "roundel report torch > docs/torch-operators.md"


def test_a_program_without_results_is_refused():
    class Nothing(torch.nn.Module):
        def forward(self, x):
            return None

    with pytest.raises(rd.RoundelError, match="the program returns nothing"):
        rd.compile(Nothing(), (torch.ones(2),))


def test_sizes_have_the_names_that_the_user_gave():
    class Two(torch.nn.Module):
        def forward(self, x, pair, *, z):
            return x + pair["a"][0] + z, torch.relu(pair["b"])

    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    x, pair = torch.ones(3, 2), {"a": (torch.ones(3, 2),), "b": torch.ones(5)}
    by_name = {"x": {0: batch}, "pair": {"a": ({0: batch},), "b": (length,)}, "z": {0: batch}}
    mod = rd.frontend.torch.from_torch(Two(), (x, pair), dynamic_shapes=by_name, example_kwargs={"z": x})
    assert [str(p.sinfo.shape[0].name) for p in mod["main"].params] == ["batch", "batch", "length", "batch"]


class ByNumber(torch.nn.Module):
    def forward(self, x, n):
        return x * n + torch.arange(n).sum(), torch.ones(n, 2)


class Scaled(torch.nn.Module):
    def forward(self, x, n):
        return x * n


@pytest.mark.parametrize(("model", "numbers"), [(ByNumber(), (5, 1)), (Scaled(), (4, -3, 0))])
def test_numbers_are_inputs(model, numbers):
    program = torch.export.export(model, (torch.ones(4), 3), dynamic_shapes={"x": {0: torch.export.Dim("rows")}, "n": torch.export.Dim.DYNAMIC})
    compiled = rd.compile(program)
    assert [(i.name, i.shape) for i in compiled.inputs] == [("x", ("rows",)), ("n", ())]
    x = torch.arange(6.0)
    for n in numbers:
        want, got = (v if isinstance(v, tuple) else (v,) for v in (model(x, n), compiled(x, n)))
        for w, g in zip(want, got, strict=True):
            torch.testing.assert_close(g, w)


class OfItsData(torch.nn.Module):
    """Asks of its data what the examples answer: a condition on numbers, and one on a size."""

    def forward(self, x):
        if (x > 0).all():
            first = x[: x.long()[0].item()]
            return first * 2 if first.shape[0] > 1 else first
        return x - 1


def test_branches_on_data_are_those_of_the_examples():
    x = torch.arange(2.0, 10)
    with pytest.warns(UserWarning, match="branches that the example inputs take"):
        model = rd.compile(OfItsData(), (x,), threads=1)
    for data in (x, x + 1):
        assert torch.equal(torch.as_tensor(model(data)), OfItsData()(data))
    for data in (-x, x - 1):
        with pytest.raises(rd.RoundelError, match=r"another branch of the program than the example inputs did.* \(`.*` in line \d+ of test_export.py\)"):
            model(data)


class Talks(OfItsData):
    """Prints while it is exported."""

    def forward(self, x):
        print("the model says so", file=sys.stderr)
        return super().forward(x)


@pytest.mark.parametrize("module", [OfItsData(), Talks()])
def test_nothing_but_a_warning_at_the_users_line_is_printed(module, capfd, caplog):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        rd.compile(module, (torch.arange(2.0, 10),), threads=1)
    assert [(w.category, w.filename) for w in found if w.category is not ResourceWarning] == [(UserWarning, __file__)]
    out, err = capfd.readouterr()
    assert not out and set(err.splitlines()) <= {"the model says so"} and not [r for r in caplog.records if r.levelno > logging.DEBUG]
    assert bool(err) == isinstance(module, Talks)


class OfANumber(torch.nn.Module):
    def forward(self, x):
        return x * int(x.sum().item())


def test_numbers_of_the_examples_are_not_taken_for_the_models():
    with pytest.raises(rd.RoundelError, match="torch.export does not take this OfANumber"):
        rd.compile(OfANumber(), (torch.ones(3),))
