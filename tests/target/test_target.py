# SPDX-License-Identifier: Apache-2.0
"""Targets: spellings, round trips, figures, this machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from roundel.ir.errors import OptionError
from roundel.target import Target
from roundel.target.host import _named, _nearest, _x86_vectors, usable_cores
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
        assert machine["vector_bytes"] in (4, 8, 16, 32, 64) and machine["l1_bytes"] < machine["l2_bytes"], name


def test_immutable():
    with pytest.raises(AttributeError):
        Target("znver3").cores = 3


@pytest.mark.parametrize(
    "spec, message",
    [
        ("", "empty"),
        ("nonsense", "no target 'nonsense'"),
        ("znver33", "no target 'znver33'\nhint: is znver3 meant"),
        ("/etc/passwd", "no target '/etc/passwd'"),
        ("etc/passwd", "no target 'etc/passwd'"),
        ("llvm mcpu=znver3", "cannot be read at"),
        ("llvm '", "cannot be read: No closing quotation"),
        ("llvm -foo=1", "no 'foo'\nhint: they have"),
        ("llvm -dram-gbss=7", "no 'dram-gbss'\nhint: is dram_gbs meant"),
        ("llvm -mpcu=znver3", "no 'mpcu'\nhint: is mcpu meant"),
        ("llvm -arch=sm_80", "targets of kind llvm have no 'arch'"),
        ("llvm -cores=2 -cores=3", "two things of cores"),
        ("llvm -cores=2 -num-cores=3", "two things of cores"),
        ("llvm -cores=2.5", "a whole number from 1"),
        ("llvm -cores", "a whole number from 1"),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=znver3", "znver3 is a processor of x86_64"),
        ("llvm -mcpu='a b'", "cpu of a target is a name"),
        ("llvm -mattr=+avx2,;", "each of the features of a target is a name"),
        ("znver3 -mattr=+avx51f,-avx2,-nonsense", "no feature 'nonsense' for x86_64"),
        ("neoverse-v1-sve -mattr=-dotprodd", r"no feature 'dotprodd' for aarch64-unknown-linux-gnu\nhint: is dotprod meant"),
        ("c -mattr=+nonsense", "targets of kind c have no feature 'nonsense'\nhint: they have mve.fp, vector-extensions; which other"),
        ("c -mcpu=haswell -mattr=+avx2", "targets of kind c have no feature 'avx2'"),
        ("c -mattr=+vector-extension", "hint: is vector-extensions meant"),
        ("cortex-m4 -mattr=-dspp", "targets of kind c have no feature 'dspp'\nhint: is dsp meant"),
        ({"kind": "c", "features": ["avx2"]}, "targets of kind c have no feature 'avx2'"),
        ("cortex-m4 -mcpu=cortex-m7", "two things of mcpu"),
        ("x86-64-all", "no target 'x86-64-all'\nhint: is x86-64-any meant"),
        ("{", "is not JSON"),
        ('{"a": ' * 10_000, "is not JSON"),
        (3, "cannot be 3"),
        ({"kind": 3}, "no target 3"),
        ({"kind": "llvm", "cores": "many"}, "cores of a target is a whole number"),
        ({"kind": "llvm", "cores": "2"}, "cores of a target is a whole number"),
        ({"kind": "llvm", "cores": True}, "cores of a target is a whole number"),
        ({"kind": "llvm", "cores": 10**400}, "cores of a target is a whole number"),
        ({"kind": "llvm", "dram_gbs": -1.0}, "dram_gbs of a target is a number from"),
        ({"kind": "llvm", "vector_bytes": 33}, "a power of two from 4 to 256, not 33"),
        ({"kind": "llvm", "features": {"avx2": 1}}, "features of a target are names"),
        ({"kind": "llvm", "features": [2]}, "each of the features of a target is a name"),
        ({"kind": "llvm", "attrs": 3}, "attrs of a target are a mapping"),
        ({"kind": "cuda", "keys": 3}, "keys of a target is a list of texts"),
        ({"kind": "cuda", "max_num_threads": -1}, "max_num_threads of a target is a whole number, 0 or more"),
        ({"kind": "cuda", "host": "nonsense"}, "no target 'nonsense'"),
    ],
    ids=lambda v: str(v)[:40],
)
def test_mistakes(spec, message):
    with pytest.raises(OptionError, match=message):
        Target(spec)


def test_a_mistake_in_what_is_changed():
    with pytest.raises(OptionError, match=r"no 'core'\nhint: is cores meant"):
        Target("znver3", core=2)
    with pytest.raises(OptionError, match="a whole number from 1"):
        Target.host().with_(cores=0)


def test_options_of_other_compilers_are_kept():
    for spec in ({"kind": "llvm", "opt-level": 0}, {"keys": ["cpu"], "kind": "llvm", "tag": ""}, {"tag": "nvidia/nvidia-a100", "l2_cache_size_bytes": 12345},
                 {"kind": "vulkan", "supports_float16": True}, "cuda -libs=thrust,cublas", "nvidia/geforce-rtx-3090-ti", "vulkan -supports_float16"):
        t = Target(spec)
        assert Target(str(t)) == Target(t.to_dict()) == t
    assert dict(Target("vulkan -supports_float16 -max_num_threads=8").attrs) == {"supports_float16": True, "max_num_threads": 8}


def test_features_are_changed_by_signs_and_told_by_a_list():
    has = set(Target("znver3").features)
    assert set(Target("znver3", features="-avx2,+sha").features) == set(Target("znver3", features=["-avx2", "+sha"]).features) == has - {"avx2"} | {"sha"}
    assert Target("znver3", features=["avx2"]).features == ("avx2",) and Target("znver3", features=[]).features == ()
    host = Target.host()
    assert set(host.with_(features=f"-{host.features[0]}").features) == {*host.features[1:]}


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
    assert _nearest({"sse2"}) == "x86-64" and _nearest(set(MACHINES["x86-64-v3"]["features"])) == "x86-64-v3"
    assert _x86_vectors({"avx2", "fma"}, MACHINES["znver5"]) == {"vector_bytes": 32, "vector_registers": 16}
    assert _x86_vectors({"avx512f", "avx512vl"}, MACHINES["znver5"]) == {}


def test_a_processor_goes_by_what_it_can_do():
    """Hypervisors make up the number of the model by which LLVM names it."""
    for name, machine in MACHINES.items():
        if machine["triple"].startswith("x86_64"):
            features = set(machine["features"])
            assert _named(name, features) == name and _named(name, features - {"amx-tile", "amx-int8", "amx-bf16"}) == name
            assert set(MACHINES[_nearest(features)]["features"]) == features
    tiles = set(MACHINES["sapphirerapids"]["features"])
    assert _named("rocketlake", tiles) == _named("cascadelake", tiles) == _named("cascadelake", tiles | {"prefetchi"}) == "sapphirerapids"
    assert _named("somelake", {"sse2"}) == "somelake" and _named("somelake", {"avx512fp16"}) == "somelake"  # nothing that is alike


def test_nothing_is_inherited_from_another_architecture():
    """Whoever adds a machine says how its core reads, or which core it has."""
    family = {"i686": "x86_64", "wasm64": "wasm32"}  # whose cores may be the same
    kin = {name: "none" if Target(name).is_bare else family.get(Target(name).arch, Target(name).arch) for name in MACHINES}
    for name, machine in MACHINES.items():
        others = [m for n, m in MACHINES.items() if kin[n] != kin[name]]
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


def test_narrow_vectors_pass_through_units_that_take_wide_ones_in_parts():
    """Zen 4 has units of 256 bits: one multiply-add and load of 512 bits in a cycle, two of fewer; other processors have as many of all."""
    assert [(Target("znver4", vector_bytes=n).fma_ports, Target("znver4", vector_bytes=n).loads) for n in (64, 32, 16)] == [(1, 1), (2, 2), (2, 2)]
    assert [(Target("znver4", vector_bytes=n).stores, Target("znver4", vector_bytes=n).add_ports) for n in (64, 32)] == [(0.5, 1), (1, 2)]
    assert [Target(name, vector_bytes=16).fma_ports for name in ("znver5", "znver3", "x86-64", "cortex-a76")] == [2, 2, 1, 2]
    narrow = Target("llvm -mcpu=znver4 -vector-width=256")
    assert narrow.peak_gflops() == Target("znver4").peak_gflops() and narrow == Target("znver4").with_(vector_bytes=32)
    for t in (narrow, narrow.with_(fma_ports=1), Target("znver4", fma_ports=2), narrow.with_(vector_bytes=64)):
        assert Target(str(t)) == t == Target.from_json(t.to_json())


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
    path.write_text("[]")
    with pytest.raises(OptionError, match="is no object of JSON"):
        Target(str(path))
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("nowhere.json", "folder.json", "pipe.json", "a\0b.json"):
        with pytest.raises(OptionError, match="can ?not be read|no file that can be read"):
            Target(str(tmp_path / name))
    with pytest.raises(OptionError, match=r"from 0.001 to"):
        Target("znver3", dram_gbs=0)


def test_code_has_no_instructions_that_a_target_lacks():
    """What the table gives a processor and a target does not have is switched off, before what it has: some features come with others."""
    for cpu in ("skylake", "sapphirerapids"):
        plain, lacking = Target(cpu), Target(f"llvm -mcpu={cpu} -mattr=-fma,-f16c")
        assert "-" not in {f[0] for f in plain.llvm_features.split(",")}
        assert lacking.llvm_features.startswith("-f16c,-fma,+") and "+fma" not in lacking.llvm_features
