# SPDX-License-Identifier: Apache-2.0
"""Passes of one's own stand at named points of the default pipeline, and the model says which it was made by."""

import numpy as np
import pytest

import roundel as rd
from roundel import driver
from roundel.ir import graph, tir
from roundel.passes import get_pass, pass_, register_pipeline
from roundel.script import ir as I
from roundel.script import relax as R


@I.ir_module
class Layer:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32")):
        with R.dataflow():
            a = R.nn.relu(x)
            b = R.add(a, x)
            R.output(b)
        return b


def test_each_point_sees_the_module_as_it_says(tmp_path):
    seen = {}

    def looking(name):
        def look(mod):
            seen[name] = mod
            return mod

        return look

    pipeline = driver.pipeline(**{name: looking(name) for name in driver.POINTS})
    assert [p for p in pipeline if p in driver.DEFAULT] == driver.DEFAULT
    model = rd.compile(Layer, pipeline=pipeline)
    x = np.random.default_rng(0).standard_normal((3, 8), dtype=np.float32)
    np.testing.assert_allclose(model(x), np.maximum(x, 0) + x, rtol=1e-6)
    programs = {name: [f for _, f in mod.items() if isinstance(f, tir.PrimFunc)] for name, mod in seen.items()}
    assert list(seen) == list(driver.POINTS) and [len(programs[n]) for n in seen] == [0, 0, 2, 1, 1]
    assert isinstance(seen["kernels"]["main"], graph.Function)
    assert "scheduled" not in programs["kernels"][0].attrs and "scheduled" in programs["scheduled"][0].attrs
    saved = rd.load(model.save(tmp_path / "model.so"))
    assert saved.metadata["pipeline"].count("look") == len(driver.POINTS) and "fuse" in saved.metadata["pipeline"]


def test_several_passes_at_a_point_come_in_their_order_and_unknown_points_are_refused():
    first, second = (lambda mod: mod), (lambda mod: mod)
    pipeline = driver.pipeline(programs=[first, second])
    at = pipeline.index(first)
    assert pipeline[at + 1] is second and pipeline[at + 2].name == "fuse" and len(pipeline) == len(driver.DEFAULT) + 2
    with pytest.raises(rd.RoundelError, match="no point 'later'"):
        driver.pipeline(later=first)


def test_a_target_has_a_pipeline_of_its_own_which_the_model_keeps(tmp_path):
    """By processor before by kind; what is given goes before both; the saved names are passes again."""
    calls = []

    @pass_("of_this_machine")
    def of_this_machine(mod):
        calls.append("machine")
        return mod

    host = rd.target.Target.host()
    register_pipeline(host.kind, driver.pipeline(imported=lambda mod: calls.append("kind") or mod))
    register_pipeline(host.cpu, driver.pipeline(operators=of_this_machine))
    try:
        model = rd.compile(Layer)
        assert calls == ["machine"] and "of_this_machine" in rd.load(model.save(tmp_path / "model.so")).metadata["pipeline"]
        again = [get_pass(name) for name in model.metadata["pipeline"]]
        assert again == driver.pipeline(operators=of_this_machine)
        rd.compile(Layer, pipeline=driver.DEFAULT)
        register_pipeline(host.cpu, None)
        rd.compile(Layer)
        assert calls == ["machine", "kind"]
    finally:
        register_pipeline(host.kind, None)
        register_pipeline(host.cpu, None)
    rd.compile(Layer)
    assert calls == ["machine", "kind"]
    with pytest.raises(rd.RoundelError, match="a pipeline cannot be 'fuse'"):
        register_pipeline("c", "fuse")
