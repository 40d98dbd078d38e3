# SPDX-License-Identifier: Apache-2.0
"""Targets: spellings, round trips, figures, this machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from roundel.ir.errors import OptionError
from roundel.target import Target
from roundel.target.host import _level, _x86_vectors, usable_cores
from roundel.target.machines import MACHINES
from roundel.target.target import L1, L2, L3, MEMORY

ALL = [Target(name) for name in Target.named()] + [
    Target.host(),
    Target("llvm"),
    Target("llvm -mcpu=znver3 -num-cores=16"),
    Target("llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+dotprod"),
    Target("cuda -arch=sm_80"),
    Target(
        {"kind": "cuda", "arch": "sm_86", "max_num_threads": 1024, "keys": ["cuda", "gpu"], "host": {"kind": "llvm"}}
    ),
    Target("znver4", features="-avx512bf16,+sha"),
    Target.host().with_(cores=1, l2_bytes=1 << 19),
    Target("c"),
]


@pytest.mark.parametrize("target", ALL, ids=lambda t: str(t)[:40])
def test_round_trips(target):
    assert Target.from_json(target.to_json()) == target
    assert Target(target.to_dict()) == target and Target(target) == target
    assert hash(Target(target)) == hash(target)
    if not any(isinstance(v, tuple) for _, v in target.attrs):
        assert Target(str(target)) == target


def test_spellings_agree():
    for spec in (
        "znver3",
        "llvm -mcpu=znver3",
        "llvm -mcpu znver3",
        {"kind": "llvm", "mcpu": "znver3"},
        {"kind": "llvm", "-mcpu": "znver3"},
        '{"kind": "llvm", "mcpu": "znver3"}',
    ):
        assert Target(spec) == Target("znver3")
    t = Target("llvm -mcpu=skylake-avx512 -mattr=+avx512vnni,-avx512cd -num-cores=8 -vector-width=256")
    assert t.has("avx512vnni") and t.has("fma") and not t.has("avx512cd") and t.cores == 8 and t.vector_bytes == 32


def test_figures():
    t = Target("znver3")
    assert (t.lanes("float32"), t.lanes("float64"), t.lanes("int8"), t.vector_registers, t.flops_per_cycle()) == (
        8,
        4,
        32,
        16,
        32,
    )
    assert t.bandwidth_gbs(1000) > t.bandwidth_gbs(100_000) > t.bandwidth_gbs(1_000_000) > t.bandwidth_gbs(1 << 30) > 0
    assert "+fma" in t.llvm_features.split(",") and "fma" in t.required_features.split(",")
    assert Target("apple-m1").arch == "aarch64" and Target("rv64gcv").arch == "riscv64"
    for name, machine in MACHINES.items():
        assert machine["vector_bytes"] in (16, 32, 64) and machine["l1_bytes"] < machine["l2_bytes"], name


def test_immutable():
    with pytest.raises(AttributeError):
        Target("znver3").cores = 3


@pytest.mark.parametrize(
    "spec, message",
    [
        ("", "empty"),
        ("nonsense", "no target 'nonsense'"),
        ("llvm mcpu=znver3", "cannot be read at"),
        (3, "cannot be 3"),
        ({"kind": "llvm", "cores": "many"}, "cores of a target is a number"),
    ],
)
def test_mistakes(spec, message):
    with pytest.raises(OptionError, match=message):
        Target(spec)


def test_an_unknown_cpu_gets_its_architectures_baseline():
    t = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=future")
    assert t.cpu == "future" and t.vector_bytes == 16
    assert Target("llvm -mtriple=riscv64-linux-gnu").arch == "riscv64"


def test_host():
    h = Target.host()
    assert h.cores == usable_cores() <= (os.cpu_count() or 1)
    assert h.l1_bytes >= 8 << 10 and h.l2_bytes > h.l1_bytes and h is Target.host()
    assert Target("host") == h and Target("host -num-cores=1").cores == 1


def test_host_needs_no_llvm_the_second_time():
    Target.host()
    script = "import sys; from roundel.target import Target; Target.host(); print('llvmlite' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "False\n"
    )


def test_hidden_features_narrow_the_vectors():
    assert _level({"sse2"}) == "x86-64" and _level(set(MACHINES["x86-64-v3"]["features"])) == "x86-64-v3"
    assert _x86_vectors({"avx2", "fma"}, MACHINES["znver5"]) == {"vector_bytes": 32, "vector_registers": 16}
    assert _x86_vectors({"avx512f", "avx512vl"}, MACHINES["znver5"]) == {}


def test_nothing_is_inherited_from_another_architecture():
    """Whoever adds a machine says how its core reads, or which core it has."""
    for name, machine in MACHINES.items():
        others = [m for n, m in MACHINES.items() if Target(n).arch != Target(name).arch]
        rates = ("l1_rate", "l2_rate", "l3_rate", "issue", "window")
        assert all([machine[r] for r in rates] != [m[r] for r in rates] for m in others), name
        assert machine["l1_rate"] >= machine["l2_rate"] >= machine["l3_rate"] > machine["dram_gbs"] / machine["frequency_ghz"] / 1.5, name
        assert machine["dram_gbs"] <= machine["all_dram_gbs"] and machine["l1_bytes"] % (machine["l1_ways"] * machine["line_bytes"]) == 0, name
    assert Target("apple-m1").line_bytes == 128


def test_levels():
    t = Target("znver5")
    sizes = (t.l1_bytes, t.l1_bytes + 1, t.l3_bytes, t.l3_bytes + 1)
    assert [t.level_of(n) for n in sizes] == [L1, L2, L3, MEMORY]
    rates = [t.bytes_per_cycle(level) for level in (L1, L2, L3, MEMORY)]
    assert rates == sorted(rates, reverse=True) and rates[-1] == t.dram_gbs / t.frequency_ghz
    assert t.with_(vector_bytes=16).bytes_per_cycle(L1) == 16 * t.loads  # a core reads no more than its vectors hold
    assert t.bytes_per_cycle(MEMORY, 100) == t.all_dram_gbs / 100 / t.frequency_ghz
    board = Target("cortex-a72")  # without a last cache what is beyond the second comes from memory
    assert board.level_of(board.l2_bytes + 1) == MEMORY and board.bytes_per_cycle(L3) == board.bytes_per_cycle(MEMORY)


def test_a_file_describes_a_board(tmp_path):
    path = tmp_path / "board.json"
    path.write_text('{"kind": "llvm", "cpu": "cortex-a76", "cores": 4, "dram_gbs": 7.5, "line_bytes": 128}')
    t = Target(str(path))
    assert (t.cores, t.dram_gbs, t.line_bytes) == (4, 7.5, 128) and t.l1_bytes == Target("cortex-a76").l1_bytes
    path.write_text(t.to_json())
    assert Target(str(path)) == t == Target(str(t))
    path.write_text("not JSON")
    with pytest.raises(OptionError, match="is not JSON"):
        Target(str(path))
    with pytest.raises(OptionError, match="cannot be read"):
        Target(str(tmp_path / "nowhere.json"))
    with pytest.raises(OptionError, match="more than 0"):
        Target("znver3", dram_gbs=0)
