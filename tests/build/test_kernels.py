# SPDX-License-Identifier: Apache-2.0
"""Kernels compiled in worker processes and here give the same code; constants made from others are recipes."""

import gc

import numpy as np
import pytest

from roundel.api import load
from roundel.build import compile_module
from roundel.build.ahead import current, working_ahead
from roundel.build.kernels import compile_kernels
from roundel.build.units import Units
from roundel.driver import prepare
from roundel.ir import options
from roundel.ir.constants import ConstData
from roundel.ir.dtype import DType
from roundel.ir.garbage import rare_collection
from roundel.lower import lower
from roundel.script import from_source
from roundel.target import Target
from roundel.target.spec import MachineSpec

MODEL = """
from roundel.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((40, 48), "float32"), y: R.Tensor((48, 40), "float32")):
        with R.dataflow():
            a = R.matmul(x, y)
            b = R.nn.softmax(a)
            c = R.matmul(y, b)
            d = R.nn.softmax(c)
            e = R.sum(d, axis=0)
            R.output(e)
        return e
"""


def test_shared_kernels_are_those_made_here(tmp_path):
    spec = MachineSpec.host()
    with options.override(cache_dir=str(tmp_path)):
        mod = prepare(from_source(MODEL), target=Target.host())
        units, objects = compile_kernels(mod, spec)
        own = Units(lower(mod), spec)
        made = {u.symbol for u in own.kernels()}
    assert made == set(objects) and units.symbols == {n: s for n, s in own.symbols.items() if n in units.symbols}
    assert all(o[:4] == b"\x7fELF" for o in objects.values())


@pytest.mark.parametrize("model", [MODEL, MODEL.replace("(40, 48)", '("n", 48)').replace("R.matmul(y, b)", "R.add(a, b)")], ids=["static", "symbolic"])
def test_kernels_are_compiled_while_others_are_scheduled(tmp_path, model):
    spec = MachineSpec.host()
    with options.override(cache_dir=str(tmp_path), workers=2):
        with working_ahead(spec):
            mod = prepare(from_source(model), target=Target.host())
            asked = current().asked.copy()
            assert all(current().found(n, mod[n], spec) for n in asked)
            current().asked = asked.copy()
            kernels = {n: f for n, f in mod.items() if f.attrs.get("kind") == "kernel"}
            changed = next(iter(kernels))
            mod = mod.with_functions({changed: kernels[changed].with_attr("noalias", False)})
            units, objects = compile_kernels(mod, spec)
            assert not current().asked
        assert current() is None and asked.keys() == kernels.keys()
        own = Units(lower(mod), spec)
        assert {u.symbol for u in own.kernels()} == set(objects) and own.symbols[changed] == units.symbols[changed]
        with working_ahead(spec):
            prepare(from_source(model), target=Target.host())
            asked = current().asked.copy()
        assert all(a.future.done() or a.future.running() for a in asked.values())


def test_weights_are_written_while_kernels_are_compiled(tmp_path):
    """What ``save`` writes then is the same file, moved; and made again when it is saved once more."""
    text = MODEL.replace("R.sum(d, axis=0)", 'R.sum(R.matmul(d, R.const("sha:WEIGHTS", R.Tensor((40, 8000), "float32"))), axis=0)')
    weights = ConstData(np.random.default_rng(0).standard_normal((40, 8000)).astype("f"))
    mod = from_source(text.replace("sha:WEIGHTS", weights.key))
    with options.override(cache_dir=str(tmp_path), workers=2):
        built = compile_module(prepare(mod, target=Target.host()), weights_file=tmp_path / "weights")
    assert (tmp_path / "weights").stat().st_size == built.nbytes + 64
    first = built.save(tmp_path / "first.so", side_file=True)
    assert not (tmp_path / "weights").exists()
    second = built.save(tmp_path / "second.so", side_file=True)
    assert first.with_suffix(".weights").read_bytes() == second.with_suffix(".weights").read_bytes()
    x, y = (np.random.default_rng(k).standard_normal(s).astype("f") for k, s in enumerate(((40, 48), (48, 40))))
    np.testing.assert_array_equal(load(first)(x, y), load(second)(x, y))


def test_derived_constants_are_made_when_asked_for():
    made = []
    source = ConstData(np.arange(5000.0, dtype="f"))

    def double(a):
        made.append(1)
        return a * 2

    first, second, other = (
        ConstData.derived(double, (source,), recipe, shape=(5000,), dtype=DType("float32")) for recipe in ("twice", "twice", "thrice")
    )
    assert first.key == second.key != other.key and not made
    held = first.numpy()
    assert first.numpy() is held and len(made) == 1
    del held
    gc.collect()
    np.testing.assert_array_equal(first.numpy(), np.arange(5000) * 2)
    assert len(made) == 2


def test_collection_is_rare_only_within():
    before = gc.get_threshold()
    with pytest.raises(ZeroDivisionError), rare_collection(), rare_collection():
        assert gc.get_threshold()[0] == 1_000_000
        1 / 0
    assert gc.get_threshold() == before
