# SPDX-License-Identifier: Apache-2.0
"""Compiling from a database: what was measured is taken as it was, by any program that is equal but for names, and nothing else changes."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

import roundel as rd
from roundel import driver, strategy
from roundel.ir import structural_equal, tir
from roundel.ir.errors import OptionError
from roundel.ir.record import Key, Rival, Timing
from roundel.strategy import Program, choose
from roundel.strategy.pack_constants import constant_params
from roundel.strategy.records import key_of
from roundel.strategy.replay import record_of
from roundel.target import Target
from roundel.tune.database import Database
from roundel.tune.measured import measured_for

RNG = np.random.default_rng(0)
BEFORE = driver.DEFAULT[: driver.DEFAULT.index(driver.schedule_module)]


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROUNDEL_CACHE_DIR", str(tmp_path / "cache"))


def network(prefix="n", width=96):
    """Two layers and a softmax; ``prefix`` begins every name."""
    p, weights = prefix, [numpy_helper.from_array(w, f"{prefix}w{k}") for k, w in enumerate((FIRST[:, :width], LAST[:width]))]
    nodes = [helper.make_node("MatMul", [f"{p}x", f"{p}w0"], [f"{p}a"], name=f"{p}first"), helper.make_node("Relu", [f"{p}a"], [f"{p}b"]),
             helper.make_node("MatMul", [f"{p}b", f"{p}w1"], [f"{p}c"], name=f"{p}last"), helper.make_node("Softmax", [f"{p}c"], [f"{p}y"])]
    ends = [helper.make_tensor_value_info(f"{prefix}x", TensorProto.FLOAT, (32, 64)), helper.make_tensor_value_info(f"{prefix}y", TensorProto.FLOAT, (32, 48))]
    return helper.make_model(helper.make_graph(nodes, prefix, ends[:1], ends[1:], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


FIRST, LAST = RNG.standard_normal((64, 96), np.float32), RNG.standard_normal((96, 48), np.float32)
X = RNG.standard_normal((32, 64), np.float32)


def programs(model):
    """The tensor programs of a model, as they are before they are scheduled."""
    mod = driver.prepare(rd.import_model(model), target=Target.host(), pipeline=BEFORE)
    constants = constant_params(mod)
    return {n: Program(f, Target.host(), constants.get(n, ())) for n, f in mod.items() if isinstance(f, tir.PrimFunc) and f.root_block is not None}


def other_choice(program):
    """A schedule that the compiler would not take, and its record."""
    found = next(a for a in choose(program.func, program.target, program.constants) if a.fits and a.sketch is not None)
    table = found.sketch.candidates
    decisions = table.decisions(int(table.ranking()[len(table) // 2])) if table is not None else {}
    applied = found.sketch.schedule(decisions)
    second = [Rival("generic", {"tile": 8}, 1.1e-4)]
    return applied, record_of(program, found.name, applied, threads=1, timings=[Timing((), 1e-4)], default=1.2e-4, second=second)


@pytest.fixture
def tuned(tmp_path):
    """A database with a record for each kernel of the network with candidates, and the schedules."""
    database, made = Database(tmp_path / "tuned.jsonl"), {}
    for name, program in programs(network()).items():
        applied, record = other_choice(program)
        made[name] = applied.func
        assert database.append(record)
    return database, made


def scheduled(model, database, **asked):
    mod = driver.prepare(rd.import_model(model), target=Target.host(), pipeline=[*BEFORE, driver.pin_programs, driver.schedule_module],
                         records=measured_for(database, Target.host(), 1), **asked)
    return {n: f for n, f in mod.items() if isinstance(f, tir.PrimFunc)}


def same(a, b):
    return structural_equal(a.replace(attrs=b.attrs), b)


def test_kernels_are_scheduled_as_it_was_measured(tuned):
    database, made = tuned
    found, untuned = scheduled(network(), database), scheduled(network(), False)
    assert all(same(found[n], made[n]) for n in made)
    assert any(not same(found[n], untuned[n]) for n in made)


def test_a_renamed_model_finds_its_records(tuned):
    database, made = tuned
    assert all(same(f, g) for f, g in zip(scheduled(network("other"), database).values(), made.values(), strict=True))
    model = rd.compile(network("other"), records=database, threads=1)
    assert model.metadata["records"] == {"kernels": len(made), "database": "tuned.jsonl"}
    np.testing.assert_allclose(model(X), rd.compile(network(), records=False, threads=1)(X), rtol=1e-4, atol=1e-6)


def test_other_programs_do_not(tuned):
    database, _ = tuned
    model = rd.compile(network(width=80), records=database, threads=1)
    assert model.metadata["records"]["kernels"] < len(programs(network()))


def test_what_is_pinned_goes_before_what_was_measured(tuned):
    database, made = tuned
    kernel = next(n for n in made if "matmul" in n)
    found = scheduled(network(), database, choices={kernel: {"rows": 2}})
    assert not same(found[kernel], made[kernel]) and all(same(found[n], made[n]) for n in made if n != kernel)


def test_a_recorded_schedule_stays_when_its_rule_is_edited(tuned, monkeypatch):
    """Whatever becomes of the rules: here none of them proposes anything any more, and one takes every program."""
    database, made = tuned

    @strategy.rule
    def takes_all(program):
        yield strategy.Sketch("takes_all", program.schedule, lambda sch, choice: strategy.Applied(sch))

    strategy.register(takes_all)
    try:
        found, untuned = scheduled(network(), database), scheduled(network(), False)
    finally:
        strategy.unregister(takes_all)
    assert all(f.attrs["scheduled"] == "takes_all" for f in untuned.values()) and all(same(found[n], made[n]) for n in made)


@pytest.mark.parametrize(("given", "kernels"), [("threads", 0), ("target", 0), ("accuracy", 0), ("rates", 3)])
def test_a_record_holds_for_its_machine_threads_and_options(tuned, given, kernels):
    database, _ = tuned
    host = Target.host()
    other = {"threads": {"threads": 2}, "target": {"target": host.with_(vector_bytes=16, vector_registers=16), "threads": 1},
             "accuracy": {"accuracy": "strict", "threads": 1}, "rates": {"target": host.with_(l2_bytes=host.l2_bytes // 2, dram_gbs=99.0), "threads": 1}}[given]
    assert rd.compile(network(), records=database, **other).metadata.get("records", {}).get("kernels", 0) == kernels


def test_a_record_that_cannot_be_replayed_is_told_with_the_kernels_name_and_left_out(tuned, tmp_path, caplog):
    database, made = tuned
    broken, spoilt = Database(tmp_path / "broken"), next(iter(made))
    for r, name in zip(database, made, strict=True):
        broken.append(replace(r, trace=[["get_block", {"dict": {}}, {"dict": {"name": 99}}, [], None]]) if name == spoilt else r)
    found, untuned = scheduled(network(), broken), scheduled(network(), False)
    assert same(found[spoilt], untuned[spoilt]) and all(same(found[n], made[n]) for n in made if n != spoilt)
    assert any(f"kernel {spoilt} is not compiled from its record (measured" in r.message for r in caplog.records)
    assert "record cannot be replayed" in found[spoilt].attrs["schedule_notes"][0]


def test_choose_puts_a_record_before_all_sketches(tuned):
    database, made = tuned
    name, program = next(iter(programs(network()).items()))
    first, *others = choose(program.func, program.target, program.constants, records=measured_for(database, program.target, 1))
    assert first.record is not None and first.fits and same(first.applied.func, made[name]) and any(a.fits for a in others)


# --- which database


def test_the_users_own_is_used_unless_it_is_refused(tuned, own_cache, monkeypatch, tmp_path):
    database, made = tuned
    Database().append(*database)
    assert rd.compile(network(), threads=1).metadata["records"]["kernels"] == len(made)
    assert "records" not in rd.compile(network(), threads=1, records=False).metadata
    monkeypatch.setenv("ROUNDEL_RECORDS", "off")
    assert "records" not in rd.compile(network(), threads=1).metadata
    monkeypatch.setenv("ROUNDEL_RECORDS", str(database.path))
    assert rd.compile(network(), threads=1).metadata["records"]["database"] == "tuned.jsonl"
    (tmp_path / "empty").touch()
    assert "records" not in rd.compile(network(), threads=1, records=tmp_path / "empty").metadata


@pytest.mark.parametrize("given", [3, b"x", "no/such/file", True])
def test_what_is_no_database(given):
    with pytest.raises(OptionError, match=r"records cannot be|there is no database"):
        rd.compile(network(), records=given)


def test_models_in_the_cache_know_what_they_were_compiled_from(tuned, own_cache, nothing_added, tmp_path, caplog):
    database, made = tuned
    path = tmp_path / "model.onnx"
    save(network(), path)
    caplog.set_level(logging.INFO, "roundel.api")

    def kernels(**how):
        caplog.clear()
        model = rd.compile(path, threads=1, **how)
        return model.metadata.get("records", {}).get("kernels", 0), "from the cache" in caplog.text

    assert kernels() == (0, False) and kernels() == (0, True)
    assert kernels(records=database) == (len(made), False) and kernels(records=database) == (len(made), True)
    assert kernels() == (0, True)
    first = next(iter(database))
    database.append(replace(first, trace=None, timings=(Timing((), 1.0),)))
    assert kernels(records=database) == (len(made), True)  # a trial changes nothing
    database.append(replace(first, timings=(Timing((), 1e-6),)))
    assert kernels(records=database) == (len(made), False)


def test_a_model_of_the_cache_is_loaded_without_the_compiler(tuned, nothing_added, tmp_path):
    import subprocess
    import sys

    database, _ = tuned
    path = tmp_path / "model.onnx"
    save(network(), path)
    rd.compile(path, threads=1, records=database)
    code = (f"import sys, roundel as rd; rd.compile({str(path)!r}, threads=1, records={str(database.path)!r});"
            "print([m for m in ('onnx', 'llvmlite', 'roundel.strategy', 'roundel.schedule') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_a_database_nothing_is_looked_for(own_cache, monkeypatch):
    monkeypatch.setattr(strategy.records, "structural_digest", lambda *_, **__: pytest.fail("a digest was made"))
    assert measured_for(None, Target.host(), 1) is None
    rd.compile(network(), threads=1)


def test_keys_are_of_what_is_compiled(tuned):
    database, _ = tuned
    for program in programs(network()).values():
        assert isinstance(key_of(program, 1), Key) and database.best(key_of(program, 1)) is not None
