# SPDX-License-Identifier: Apache-2.0
"""What this machine was measured to do: measured once, kept, believed where it is plausible, the same again when measured again."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import roundel as rd
from roundel.builder import BlockBuilder
from roundel.driver import target_of
from roundel.ir import IRModule, graph, options
from roundel.ops import make
from roundel.target import Target, host, peak, profile
from roundel.target.host import described, host_for
from roundel.target.machines import MACHINES
from roundel.target.profile import Profile
from roundel.target.target import L2, L3, MEMORY

ZEN5 = Target("znver5")
EMERALD = Profile(gflops=165.8, l1_gbs=314, l2_gbs=117, l3_gbs=25.3, dram_gbs=13.8, cores=2, all_gflops=320, all_dram_gbs=22.2)
"""Of one virtual machine on an Emerald Rapids."""


@pytest.fixture
def anew(tmp_path, monkeypatch):
    """Measured rates, of a machine that nobody has measured; the list of what was measured since."""
    monkeypatch.setenv("ROUNDEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ROUNDEL_RATES", "measured")
    done = []

    def measure(table, seconds=profile.SECONDS):
        done.append(table)
        return as_table(table, dram_gbs=table.dram_gbs / 2)

    monkeypatch.setattr(profile, "measure", measure)
    monkeypatch.setattr(profile, "is_busy", lambda: False)
    monkeypatch.setattr(profile.others, "since", lambda begin: 0.0)
    monkeypatch.setattr(profile, "_tried", set())
    return done


def as_table(table, **changed):
    """A profile that tells what the table tells, but for some figures."""
    read, written = ("l1_gbs", "l2_gbs", "l3_gbs", "dram_gbs"), ("l2_stored_gbs", "l3_stored_gbs", "dram_stored_gbs")
    names = (*read, *written, "gflops", "all_gflops", "all_dram_gbs", "frequency_ghz")
    return Profile(**{n: profile.expected(n, table) for n in names} | changed, cores=table.cores, l3_bytes=table.l3_bytes)


def test_a_machine_is_measured_in_two_seconds():
    begun = time.process_time()
    found = profile.measure(described())
    assert time.process_time() - begun < 2 * described().cores
    assert all(profile.plausible(n, getattr(found, n), described()) for n in profile.PLAUSIBLE if n not in found.doubted)
    assert found.l1_gbs > found.dram_gbs and found.cores == described().cores


def test_rates_are_those_that_were_measured():
    table = Target("sapphirerapids", cores=2)
    made = EMERALD.of(table)
    for level, gbs in ((L2, 117), (L3, 25.3), (MEMORY, 13.8)):
        assert made.bytes_per_cycle(level) == pytest.approx(gbs / (165.8 / 64), rel=0.13)
    assert made.fma_ports == 2 and Target(str(made)) == made and Target.from_json(made.to_json()) == made
    assert replace(EMERALD, gflops=83, frequency_ghz=2.6).of(table).fma_ports == 1  # processors of a name that lack one unit


def test_what_is_written_to_a_level_has_a_rate_of_its_own():
    found = as_table(ZEN5, l2_stored_gbs=profile.expected("l2_stored_gbs", ZEN5) / 2, cold_exposed=0.82).of(ZEN5)
    assert found.stored_per_cycle(L2) == pytest.approx(ZEN5.stored_per_cycle(L2) / 2, rel=0.05) and found.l2_rate == ZEN5.l2_rate
    assert found.stored_per_cycle(L3) == ZEN5.stored_per_cycle(L3) and found.cold_exposed == 0.6
    table = Target("sapphirerapids", cores=2)
    old = EMERALD.of(table)  # a profile that does not tell: the table's shares of the rates that it tells
    assert old.stored_per_cycle(L3) == table.l3_stored * old.bytes_per_cycle(L3) and old.cold_exposed == table.cold_exposed


def test_what_is_near_the_table_is_the_table():
    assert as_table(ZEN5).of(ZEN5) == ZEN5
    noisy = as_table(ZEN5, dram_gbs=ZEN5.dram_gbs * 0.97, l2_gbs=profile.expected("l2_gbs", ZEN5) * 1.03)
    assert noisy.of(ZEN5) == ZEN5


def test_measuring_again_changes_nothing():
    """Figures near the border between two steps must not make other code out of noise."""
    for share in (0.88, 0.9, 0.92, 0.5, 0.3):
        first = as_table(ZEN5, dram_gbs=45 * share)
        for noise in (0.9, 0.95, 1.05, 1.1):
            again = profile.settled(replace(first, dram_gbs=first.dram_gbs * noise), first)
            assert again.of(ZEN5) == first.of(ZEN5)
    assert profile.settled(as_table(ZEN5, dram_gbs=20), as_table(ZEN5)).dram_gbs == 20


def test_what_is_not_plausible_is_not_believed(monkeypatch):
    monkeypatch.setattr(peak, "best_rate", lambda work, seconds: 1e-3)
    monkeypatch.setattr(peak, "typical_rate", lambda work, seconds: 1e-3)
    found = profile.measure(described())
    assert set(found.doubted) == set(profile.PLAUSIBLE) and found.of(described()).with_(all_dram_gbs=described().all_dram_gbs) == described()


def test_a_virtual_machine_is_told_of_a_cache_that_it_shares(monkeypatch):
    """By the table's rates it has what the table tells; the rest is measured."""
    told = MACHINES["sapphirerapids"]["l3_bytes"] * 8
    answer = {"cpu": "sapphirerapids", "triple": "x86_64-unknown-linux-gnu", "features": MACHINES["sapphirerapids"]["features"]}
    monkeypatch.setattr(host, "_ask_llvm", lambda: answer)
    monkeypatch.setattr(host, "_caches", lambda: {"l3_bytes": told})
    for flags, expected in (("flags : fpu hypervisor", told // 8), ("flags : fpu", told)):
        monkeypatch.setattr(host, "_cpuinfo_head", lambda flags=flags: flags)
        assert host.described.__wrapped__().l3_bytes == expected
    monkeypatch.setattr(peak, "typical_rate", lambda work, seconds: 100.0)
    table = described().with_(l3_bytes=told // 8)
    assert profile._room(table, told, peak.Memory(1 << 20), 100.0, 10.0, lambda: 0.0) == told


def test_nothing_is_measured_that_decides_nothing(anew):
    assert Target.host() == host_for(1000) == described() and not anew  # few weights: they are in a cache
    assert host_for(100 << 20).dram_gbs < described().dram_gbs and len(anew) == 1
    assert Target.host() == host_for(100 << 20) == host_for(0) != described() and len(anew) == 1
    with options.override(rates="table"):
        assert Target.host() == host_for(100 << 20) == described()


def test_a_busy_machine_is_measured_by_a_later_process(anew, monkeypatch):
    monkeypatch.setattr(profile, "is_busy", lambda: True)
    assert host_for(100 << 20) == described() and not anew
    monkeypatch.setattr(profile, "is_busy", lambda: False)
    monkeypatch.setattr(profile, "_tried", set())
    assert host_for(100 << 20) != described() and len(anew) == 1


def test_what_was_measured_while_others_used_the_machine_is_not_kept(anew, monkeypatch, caplog):
    monkeypatch.setattr(profile.others, "since", lambda begin: 0.3)
    assert host_for(100 << 20) == described() and len(anew) == 1
    assert host_for(100 << 20) == described() and len(anew) == 1  # a process tries once
    assert profile.kept(described()) is None
    with caplog.at_level(logging.WARNING, "roundel.target"):
        profile.refresh(described())  # asked for: kept, and said
    assert profile.kept(described()) is not None and "others used this machine" in caplog.text


def test_every_figure_is_measured_when_there_is_no_time():
    found = profile.measure(described(), seconds=0)
    assert min(found.gflops, found.l1_gbs, found.dram_gbs, found.all_gflops, found.all_dram_gbs) > 0


def test_figures_are_kept(anew, monkeypatch, caplog):
    made = host_for(100 << 20)
    monkeypatch.setattr(profile, "_kept", {})  # another process
    assert Target.host() == made and len(anew) == 1
    with caplog.at_level(logging.INFO, "roundel.target"):
        profile.refresh(described())
    assert len(anew) == 2 and "measured this machine in" in caplog.text


def test_models_for_other_machines_measure_nothing(anew):
    assert Target("znver3") == Target("llvm -mcpu=znver3") and not anew


def test_models_are_compiled_anew_where_rates_have_changed(anew, tmp_path, nothing_added):
    """The key of a model that is kept holds what the machine was when it was compiled."""
    path = tmp_path / "model.onnx"
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    onnx.save(helper.make_model(helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y])), path)
    kept = lambda: len(list((tmp_path / "cache" / "models").iterdir()))
    rd.compile(path)
    rd.compile(path)
    assert kept() == 1
    host_for(100 << 20)
    rd.compile(path)
    assert kept() == 2


def test_compiling_measures_where_there_are_many_weights(anew):
    weights = graph.Constant.of(np.ones((described().l2_bytes // 2048, 1024), np.float32))  # of twice the second-level cache
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo((1, weights.data.shape[0]), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(make("matmul", x, weights)))
    assert target_of("host") == target_of(None, IRModule({})) == described() and not anew
    assert target_of(None, bb.get()) != described() and len(anew) == 1
