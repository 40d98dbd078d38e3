# SPDX-License-Identifier: Apache-2.0
"""What this machine was measured to do: the rates that cost models read instead of the table's.

They are measured once for a machine and a number of cores, in two seconds at most, and kept in the cache. A virtual machine shares caches and
memory with strangers, and processors of one name read them at rates that are a factor of three apart; which algorithm is the fastest
depends on it. Rates are taken in steps from what the table tells, so that the next measurement gives the same choices (and the same keys of
what is kept).
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from functools import partial
from statistics import median

from ..ir import cache_folder, options
from ..ir.dataclass import dataclass
from . import others, peak
from .machines import MACHINES
from .target import L1, L2, L3, MEMORY, Target

SECONDS = 1.5
"""What it takes to measure a machine at most, to get memory for it aside."""
STEP = 1.1           # from one value of a rate to the next
SAME = 1.18         # a new figure that is no farther from the one before is the same
LARGEST = 256 << 20 # bytes that are read from memory
MOST_PASSES = 5     # until one finds nothing that is better: others come and go
BETTER = 1.06       # times as much
BUSY = 1.5          # threads that want to run, for each core, of a machine that is not measured
OTHERS = 0.15       # of the processors taken by others, while figures were measured that are not kept unless they were asked for
NEAR_SHARE = 0.5    # of a cache that data fills which is read at its rate
PLAUSIBLE = {"frequency_ghz": (0.4, 1.7), "gflops": (0.3, 1.7), "l1_gbs": (0.3, 2.5), "l2_gbs": (0.3, 2.5), "l3_gbs": (0.1, 4.0), "dram_gbs": (0.1, 5.0),
             "l2_stored_gbs": (0.2, 4.0), "l3_stored_gbs": (0.1, 4.0), "dram_stored_gbs": (0.1, 5.0)}
"""Least and most of what the table tells that is believed of a processor that it knows; of others, three times less and more."""
_LEVELS = {"l1_gbs": L1, "l2_gbs": L2, "l3_gbs": L3, "dram_gbs": MEMORY}
_STORED = {"l2_stored_gbs": L2, "l3_stored_gbs": L3, "dram_stored_gbs": MEMORY}
SHARED = ("l3_", "dram_")  # figures of what others use too
_REVISION = 4  # of how it is measured: figures from before are not used
_log = logging.getLogger("roundel.target")


@dataclass(frozen=True)
class Profile:
    """Of one core: GFLOP/s in float32 (a multiply-add counts two), GB/s read from each level, GHz, GB/s of lines written to each level but the first
    (0: not known); of all ``cores``: GFLOP/s and GB/s from memory (0: not known). ``frequency_ghz`` is 0 where only GFLOP/s tell it, ``l3_bytes`` how
    much of the last cache is read at its rate (0: what the table says). ``cold_exposed`` is the field of `Target` (below 0: not known). ``doubted`` are
    the figures that were measured and not believed, and are the table's."""

    gflops: float
    l1_gbs: float
    l2_gbs: float
    l3_gbs: float
    dram_gbs: float
    cores: int = 1
    all_gflops: float = 0.0
    all_dram_gbs: float = 0.0
    l2_stored_gbs: float = 0.0
    l3_stored_gbs: float = 0.0
    dram_stored_gbs: float = 0.0
    frequency_ghz: float = 0.0
    l3_bytes: int = 0
    cold_exposed: float = -1.0
    doubted: tuple[str, ...] = ()

    def of(self, table: Target) -> Target:
        """The machine that ``table`` describes, with these rates."""
        ghz = max(self.frequency_ghz, self.gflops / table.flops_per_cycle(), self.l1_gbs / (table.loads * table.vector_bytes))
        taken = _stepped(ghz, table.frequency_ghz)

        def rate(name: str, expected: float) -> float:
            """Bytes per cycle."""
            return expected if name in self.doubted else _stepped(getattr(self, name) / ghz, expected)

        dram = float(f"{rate('dram_gbs', table.dram_gbs / table.frequency_ghz) * taken:.4g}")
        told = expected("all_dram_gbs", table)  # of so many cores, where the table tells of all that the memory has
        shared = _stepped(self.all_dram_gbs / ghz * taken, told)
        return table.with_(
            frequency_ghz=taken,
            fma_ports=_ports(self.gflops, ghz, table),
            l1_rate=rate("l1_gbs", table.bytes_per_cycle(L1)),
            l2_rate=rate("l2_gbs", table.bytes_per_cycle(L2)),
            l3_rate=rate("l3_gbs", table.bytes_per_cycle(L3)) if table.l3_bytes else table.l3_rate,
            dram_gbs=dram,
            all_dram_gbs=table.all_dram_gbs if shared == told or not self.all_dram_gbs else max(shared, dram),
            l3_bytes=self.l3_bytes or table.l3_bytes,
            cold_exposed=self._cold_exposed(table),
            **{f"{level}_stored": self._stored(level, table) for level in ("l2", "l3", "memory")},
        )

    def _cold_exposed(self, table: Target) -> float:
        """Half of the way from the table's: a loop over panels hides more than a kernel, which waits for its first panel and for lines that it writes too
        (with vectors of 32 bytes 0.1 in the loop, 0.5 in convolutions)."""
        if self.cold_exposed < 0 or "dram_gbs" in self.doubted:
            return table.cold_exposed
        return round((min(self.cold_exposed, 1.0) + table.cold_exposed) / 2, 1)

    def _stored(self, level: str, table: Target) -> float:
        """The share of a level's rate at which lines are written to it."""
        told, name = getattr(table, f"{level}_stored"), level.replace("memory", "dram")
        if {f"{name}_gbs", f"{name}_stored_gbs"} & {*self.doubted}:
            return float(told)
        return _stepped(getattr(self, f"{name}_stored_gbs") / getattr(self, f"{name}_gbs"), told)


def _stepped(value: float, table: float) -> float:
    """The nearest value of those that are so many steps from the table's: the table's own where the two hardly differ."""
    return float(f"{table * STEP ** round(math.log(value / table, STEP)):.4g}") if value > 0 else table


def _ports(gflops: float, ghz: float, table: Target) -> int:
    """Multiply-adds of a cycle: some processors of a name have one unit for the widest vectors, where others have two."""
    seen = round(gflops / (2.0 * table.lanes("float32") * ghz))
    return min(max(seen, 1), table.fma_ports) if gflops else table.fma_ports


def this_machine() -> Profile:
    """The figures of this machine, which are measured now if they never were."""
    from .host import described

    return kept(described()) or refresh(described())


def known(table: Target) -> Target:
    """The machine that ``table`` describes, with its measured rates where there are any."""
    profile = kept(table)
    return table if profile is None else _of(profile, table)


def measured(table: Target) -> Target:
    """... which are measured now where there are none. Where others use the machine meanwhile, the figures would tell of them: then the
    table's are used until a later process finds the machine quiet."""
    if kept(table) is None and _key(table) not in _tried:
        _tried.add(_key(table))
        begin = others.now()
        found = None if is_busy() else measure(table)
        if found is not None and others.since(begin) <= OTHERS:
            _keep(found, table)
        else:
            _log.info("this machine is too busy to be measured: the table's figures are used until it is not")
    return known(table)


def is_busy() -> bool:
    """Whether far more threads want to run than there are cores: then each is given slices of time, and finds the caches as others left them."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > BUSY * (os.cpu_count() or 1)


_made: dict[tuple[Profile, Target], Target] = {}
_kept: dict[str, Profile | None] = {}
_tried: set[str] = set()  # machines that this process found busy, or measured


def _of(profile: Profile, table: Target) -> Target:
    if (profile, table) not in _made:
        _made[profile, table] = profile.of(table)
    return _made[profile, table]


def kept(table: Target) -> Profile | None:
    """The profile of this machine that was measured before, None where there is none (or the cache cannot be read)."""
    key = _key(table)
    if key not in _kept:
        content = cache_folder.read(_file(table))
        _kept[key] = None if content is None else _from_json(content)
    return _kept[key]


def refresh(table: Target, seconds: float = SECONDS) -> Profile:
    """Measure this machine, which ``table`` describes, now and keep the figures. One that is about what it was before stays."""
    begin, before = others.now(), kept(table)
    new = measure(table, seconds)
    if others.since(begin) > OTHERS:
        _log.warning("others used this machine while it was measured, and may have made its rates lower: roundel targets --measure measures again")
    profile = new if before is None else settled(new, before)
    _log.info("measured this machine in %.2f s", time.perf_counter() - begin.clock)
    _keep(profile, table)
    return profile


def _keep(profile: Profile, table: Target) -> None:
    for name in profile.doubted:
        _log.warning("%s of this machine was measured and is not believed: the table's figure is used", name)
    cache_folder.write(_file(table), content=json.dumps(asdict(profile)).encode())
    _kept[_key(table)] = profile


def settled(new: Profile, before: Profile) -> Profile:
    """New figures, but for those that are about what they were before: noise must not change what is compiled."""
    same = {}
    for f in fields(Profile):
        a, b = getattr(new, f.name), getattr(before, f.name)
        if isinstance(a, float) and a > 0 and b > 0 and max(a / b, b / a) < SAME:
            same[f.name] = b
    return replace(new, **same)


def _key(table: Target) -> str:
    return f"{options.cache_dir()} {_file(table)}"


def _file(table: Target) -> str:
    return f"profile-{hashlib.sha256(f'{_REVISION} {table}'.encode()).hexdigest()[:16]}.json"


def _from_json(content: bytes) -> Profile:
    given = json.loads(content)
    return Profile(**given | {"doubted": tuple(given["doubted"])})


def measure(table: Target, seconds: float = SECONDS) -> Profile:
    """Measure this machine, which ``table`` describes. Of what a core has for itself, each figure is the best of short rounds by CPU time, so that others on
    the machine disturb little; of the last cache and of memory, which others use too, it is the middle one. One outside of what is plausible is measured
    again, and if it stays there it is 0, so that the table's is used."""
    from .host import last_cache

    begun = time.perf_counter()
    told = max(table.l3_bytes, last_cache()) if table.l3_bytes else 0
    large = peak.Memory(max(4 * min(told, LARGEST // 4), LARGEST // 2))
    left = lambda share: max((seconds - (time.perf_counter() - begun)) * share, 0.0)
    beyond = table.l2_bytes + min(table.l3_bytes, 4 * table.l2_bytes) >> 1
    works: dict[str, Callable[[], peak.Work]] = {
        "frequency_ghz": partial(peak.chain_work, table),
        "gflops": partial(peak.fma_work, table),
        "l1_gbs": partial(peak.read_work, table, large, table.l1_bytes // 2),
        "l2_gbs": partial(peak.read_work, table, large, table.l2_bytes // 2),
        "dram_gbs": partial(peak.read_work, table, large, large.nbytes),
    }
    if table.l3_bytes:
        works["l3_gbs"] = partial(peak.read_work, table, large, beyond)
        works["l3_stored_gbs"] = partial(peak.write_work, table, large, beyond)
    written = partial(peak.write_work, table, large)
    works |= {"l2_stored_gbs": partial(written, table.l2_bytes // 2), "dram_stored_gbs": partial(written, large.nbytes)}
    loops = {name: make() for name, make in works.items()}
    figures = dict.fromkeys(loops, 0.0)
    for _ in range(MOST_PASSES):  # over what a core has for itself
        found = {name: peak.best_rate(loop, left(0.06)) for name, loop in loops.items() if not name.startswith(SHARED)}
        better = any(found[name] > BETTER * figures[name] for name in found)
        figures |= {name: max(found[name], figures[name]) for name in found}
        if not better:
            break
    figures |= {name: peak.typical_rate(loop, left(0.06)) for name, loop in loops.items() if name.startswith(SHARED)}
    doubted = []
    for name, value in figures.items():
        if not plausible(name, value, table):
            again = _rate(name, loops[name], left(0.3))
            figures[name] = again if plausible(name, again, table) else expected(name, table)
            doubted += [] if plausible(name, again, table) else [name]
    for level in ("", "stored_"):
        figures.setdefault(f"l3_{level}gbs", figures[f"dram_{level}gbs"])
    cold = _cold_exposed(table, large, figures["dram_gbs"], partial(left, 0.1))
    known = not {"l3_gbs", "dram_gbs"} & {*doubted}
    room = _room(table, told, large, figures["l3_gbs"], figures["dram_gbs"], partial(left, 0.15)) if known else table.l3_bytes
    together = {"all_gflops": figures["gflops"], "all_dram_gbs": figures["dram_gbs"]}
    if table.cores > 1:
        each = large.nbytes // table.cores
        parts = iter(range(0, table.cores * each, each))
        together["all_gflops"] = peak.on_all_cores(partial(peak.fma_work, table), table.cores, min(left(0.2), 0.1))
        together["all_dram_gbs"] = peak.on_all_cores(lambda: peak.read_work(table, large, each, next(parts)), table.cores, min(left(0.5), 0.2), median)
    return Profile(**figures, **together, cores=table.cores, l3_bytes=room, cold_exposed=cold, doubted=tuple(doubted))


def _rate(name: str, work: peak.Work, seconds: float) -> float:
    return peak.typical_rate(work, seconds) if name.startswith(SHARED) else peak.best_rate(work, seconds)


def plausible(name: str, value: float, table: Target) -> bool:
    """Whether a figure of a profile may be one of the machine that ``table`` describes."""
    low, high = PLAUSIBLE[name]
    if table.cpu not in MACHINES:
        low, high = low / 3, high * 3
    return low * expected(name, table) <= value <= high * expected(name, table)


def expected(name: str, table: Target) -> float:
    """What the table tells of a figure."""
    if name in _LEVELS:
        return table.bytes_per_cycle(_LEVELS[name]) * table.frequency_ghz
    if name in _STORED:
        return table.stored_per_cycle(_STORED[name]) * table.frequency_ghz
    if name.startswith("all_"):
        return table.peak_gflops(cores=table.cores) if name == "all_gflops" else min(table.cores * table.dram_gbs, table.all_dram_gbs)
    return table.peak_gflops() if name == "gflops" else float(getattr(table, name))


def _cold_exposed(table: Target, memory: peak.Memory, gbs: float, left: Callable[[], float]) -> float:
    """What products with weights that come from memory, panel after panel, do not hide of the shorter of working and waiting: the mean for one and for two
    passes over a panel. With more, waiting is short; where it matters, layers have few rows."""
    found = []
    for passes in (1, 2):
        near, far = (1.0 / peak.typical_rate(peak.panels_work(table, memory, passes, is_far), left()) for is_far in (False, True))
        found.append((far - max(near, 1.0 / gbs)) / min(near, 1.0 / gbs))
    return max(sum(found) / len(found), 0.0)


def _room(table: Target, told: int, memory: peak.Memory, near: float, far: float, left: Callable[[], float]) -> int:
    """How much of the last cache, of ``told`` bytes, there is for one core: the largest of its halves, quarters, ... that data of half the size is
    read from at a rate nearer to that of the cache than to that of memory. Others use it too, and a virtual machine may be told of what it does not
    have."""
    if not told or near <= far or not far:
        return table.l3_bytes
    size = min(told, memory.nbytes)
    while size > 4 * table.l2_bytes:
        if peak.typical_rate(peak.read_work(table, memory, int(size * NEAR_SHARE)), left()) ** 2 >= near * far:
            break
        size //= 2
    return told if size == memory.nbytes else size
