# SPDX-License-Identifier: Apache-2.0
"""`Target`: what a machine is. Immutable and hashable; `str` and `to_json` give what the constructor takes."""

from __future__ import annotations

import json
import reprlib
import shlex
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..ir import escape
from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from ..ir.processors import family_of
from . import keys, known
from .behaviour import Behaviour
from .machines import LEVELS, MACHINES
from .spec import ending_of, is_bare

_TYPE_BITS = {
    "float64": 64,
    "float32": 32,
    "float16": 16,
    "bfloat16": 16,
    "int64": 64,
    "int32": 32,
    "int16": 16,
    "int8": 8,
    "uint8": 8,
}
_FUNCTION_CYCLES = 20  # that functions take at least for a multiply-add of floats
MOST_BYTES = 1 << 20  # of a file that describes a target


L1, L2, L3, MEMORY = 1, 2, 3, 4
"""The levels that data comes from, of which the cost models ask how fast they are read."""


@dataclass(frozen=True, init=False, repr=False)
class Target(Behaviour):
    """A machine: ``Target("llvm -mcpu=znver3")``, ``Target("znver3")``, ``Target({"kind": "c"})``, ``Target("board.json")``, ``Target.host()``.

    It is all that cost models know of a machine. Figures that are not given come from the table of machines for the CPU, those of this
    machine that were measured from its profile (`roundel.target.profile`); keyword arguments override single fields.
    Raises OptionError for what it does not know.
    """

    kind: str
    triple: str
    cpu: str
    features: tuple[str, ...]  # LLVM's names, without "+"
    vector_bytes: int
    unit_bytes: int  # of what computes on vectors and loads them; through it, wider ones pass in parts
    vector_registers: int
    fma_latency: int  # cycles
    fma_ports: int  # vector multiply-adds per cycle
    loads: int  # of vectors, per cycle
    stores: float  # of vectors, per cycle
    issue: int  # instructions per cycle
    window: int  # instructions of the reorder buffer
    line_bytes: int  # of all caches
    l1_bytes: int  # data, of one core
    l1_ways: int
    l2_bytes: int  # of one core
    l2_ways: int
    l3_bytes: int  # what one core may fill; 0 where there is no such cache
    l1_rate: float  # bytes per cycle that one core reads from that level
    l2_rate: float
    l3_rate: float
    l2_stored: float  # the share of that rate at which lines are written that the level above does not hold
    l3_stored: float
    memory_stored: float
    miss_cycles: float  # that an access waits for the second-level cache, those aside that other instructions fill
    forwarding: float  # cycles from a store to a load of the same place
    entry_cycles: float  # to start and end an inner loop: its last branch is guessed wrong now and then
    wrong_branch: float  # cycles that are lost where a branch was guessed wrong
    gather_instructions: float  # for each lane of a vector that is loaded by itself
    add_ports: int  # vector additions per cycle beside multiply-adds; 0 where these take the same ports
    cold_share: float  # of the rate of a level, at which constants come from it that a run has not touched before
    cold_exposed: float  # of working, that waiting for such constants does not hide where both take equally long; the shorter one is, the less
    cores: int
    frequency_ghz: float
    dram_gbs: float  # what one core reads from memory
    all_dram_gbs: float  # ... and all cores together
    region_us: float  # microseconds of work that pay for a parallel region, and that a thread should take at once
    start_us: float  # microseconds that starting one takes
    attrs: tuple[tuple[str, Any], ...]  # of other kinds: arch, thread_warp_size, ...

    def __hash__(self) -> int:
        if "_hash" not in self.__dict__:  # it is a key of many tables
            object.__setattr__(self, "_hash", hash(tuple(getattr(self, name) for name in _NAMES)))
        return int(self.__dict__["_hash"])

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _NAMES}  # (texts have other hashes in another process)

    def __init__(self, spec: str | Mapping[str, Any] | Target = "llvm", **overrides: Any) -> None:
        for name, value in _complete(_changed(_fields_of(spec), overrides)).items():
            object.__setattr__(self, name, value)

    @staticmethod
    def host() -> Target:
        """This machine: its CPU, features and caches, and the cores that this process may use."""
        from .host import host

        return host()

    @staticmethod
    def named() -> tuple[str, ...]:
        """The names that the constructor knows."""
        return tuple(MACHINES)

    @property
    def arch(self) -> str:
        """First part of the triple: ``x86_64``, ``aarch64``, ``riscv64``, ``wasm32``."""
        return {"arm64": "aarch64", "amd64": "x86_64"}.get(first := self.triple.split("-")[0], first)

    @property
    def has_prefetch(self) -> bool:
        """Are there instructions that fetch what will be needed later?"""
        return not self.arch.startswith("wasm")

    @property
    def is_host_like(self) -> bool:
        """Is it a CPU that LLVM generates code for (not a device that needs a host)?"""
        return self.kind in ("llvm", "c")

    @property
    def is_bare(self) -> bool:
        """Whether its programs run without a system, on memory of some hundred kilobytes: a microcontroller."""
        return is_bare(self.triple)

    @property
    def has_floats(self) -> bool:
        """Whether it has instructions for float32, of which a multiply-add takes as long as only functions do otherwise."""
        return self.fma_latency < _FUNCTION_CYCLES

    @property
    def looks_up_bytes(self) -> bool:
        """Whether it looks up many bytes in a table of 256 at once, in registers."""
        return self.kind == "llvm" and self.has("avx512vbmi")

    @property
    def ending(self) -> str:
        """`roundel.target.spec.ending_of` this machine."""
        return ending_of(self.kind, self.triple)

    @property
    def llvm_features(self) -> str:
        """The features as LLVM wants them: ``+avx2,+fma``, after those that the table gives the processor and this target lacks: ``-avx512f``."""
        lacking = {*_complete({"kind": self.kind, "triple": self.triple, "cpu": self.cpu})["features"]} - {*self.features}
        return ",".join([*(f"-{f}" for f in sorted(lacking)), *(f"+{f}" for f in self.features)])

    @property
    def required_features(self) -> str:
        """What a built file demands of the CPU that opens it, for ``RdFunction.cpu_features``."""
        return ",".join(self.features)

    def has(self, feature: str) -> bool:
        """Does it have a feature, by LLVM's name, or an accelerator (``-device=``)?"""
        return feature in self.features or ("device", feature) in self.attrs

    def lanes(self, dtype: str) -> int:
        """Elements of ``dtype`` in one vector register."""
        return max(1, self.vector_bytes * 8 // _TYPE_BITS.get(str(dtype), 32))

    def holds_tile(self, rows: Any, vectors: Any, besides: int = 0) -> Any:
        """Do the registers hold the sums of so many rows by so many vectors, these vectors, and of the rows' operands one, or those that are loaded ahead?
        And so many ``besides``?"""
        left = self.vector_registers - rows * vectors - vectors - besides
        return (left >= 1) & (left >= self.operands_ahead * rows)

    def flops_per_cycle(self, dtype: str = "float32") -> float:
        """Floating-point operations (a multiply-add counts two) of one core in one cycle."""
        return 2.0 * self.fma_ports * self.lanes(dtype)

    def peak_gflops(self, dtype: str = "float32", cores: int = 1) -> float:
        """Estimate for ``cores`` cores; `roundel.target.peak` measures it."""
        return self.flops_per_cycle(dtype) * self.frequency_ghz * cores

    def level_of(self, nbytes: float) -> int:
        """The level (L1, L2, L3 or MEMORY) that a working set of so many bytes is read from."""
        sizes = (self.l1_bytes, self.l2_bytes, self.l3_bytes)
        return next((level for level, size in enumerate(sizes, L1) if nbytes <= size), MEMORY)

    def bytes_per_cycle(self, level: int, cores: int = 1) -> float:
        """Bytes that each of ``cores`` cores reads from a level in one cycle, in the vectors that the target has."""
        if level == MEMORY or (level == L3 and not self.l3_bytes):
            return min(self.dram_gbs, self.all_dram_gbs / cores) / self.frequency_ghz
        return min((self.l1_rate, self.l2_rate, self.l3_rate)[level - L1], float(self.loads * self.vector_bytes))

    def stored_per_cycle(self, level: int) -> float:
        """Bytes of lines that one core writes to a level in one cycle: beyond the first, a line is read to be owned, and written back."""
        if level == L1:
            return float(self.stores * self.vector_bytes)
        share = {L2: self.l2_stored, L3: self.l3_stored if self.l3_bytes else self.memory_stored, MEMORY: self.memory_stored}[level]
        return share * self.bytes_per_cycle(level)

    def bandwidth_gbs(self, nbytes: float, cores: int = 1) -> float:
        """Estimated read bandwidth (GB/s) of each of ``cores`` cores for a working set of that size."""
        return self.bytes_per_cycle(self.level_of(nbytes), cores) * self.frequency_ghz

    @property
    def fingerprint(self) -> str:
        """A digest of what code the machine can run, by which measurements of it are found. Rates, cores and sizes of caches do not count: what
        was measured holds however a model explains it."""
        from ..ir.digest import structural_digest  # of nodes too, which a model of the cache does not need

        features, attrs = tuple(sorted(self.features)), tuple((k, str(v)) for k, v in self.attrs)
        return structural_digest((self.kind, self.triple, self.cpu, features, self.vector_bytes, self.vector_registers, attrs))[:16]

    @property
    def folds_loads(self) -> bool:
        """Whether an arithmetic instruction may have an operand in memory, wherever it lies there."""
        return self.has("avx")

    @property
    def mask_registers(self) -> int:
        """Those that hold what a comparison of vectors says, one bit for each lane; 0: it is a vector itself."""
        return 7 if self.has("avx512f") else 0

    @property
    def folds_broadcasts(self) -> bool:
        """Whether such an operand may be one element for all lanes."""
        return self.has("avx512f")

    @property
    def region_cycles(self) -> float:
        """Cycles of work that pay for a parallel region, and that a thread should take at once."""
        return self.region_us * self.frequency_ghz * 1e3

    def with_(self, **overrides: Any) -> Target:
        """A copy with some fields changed."""
        return Target(self, **overrides)

    @property
    def start_cycles(self) -> float:
        """Cycles that starting a parallel region takes."""
        return self.start_us * self.frequency_ghz * 1e3

    def to_dict(self) -> dict[str, Any]:
        """All fields; ``Target(t.to_dict()) == t``."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["features"] = list(self.features)
        values["attrs"] = dict(self.attrs)
        return values

    def to_json(self) -> str:
        """`to_dict` as text; ``Target.from_json`` reads it."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Target:
        """The inverse of `to_json`."""
        return Target(json.loads(text))

    def __str__(self) -> str:
        """``llvm -mtriple=... -mcpu=...`` and what differs from the table's figures; ``Target(str(t)) == t``."""
        plain = _complete({"kind": self.kind, "triple": self.triple, "cpu": self.cpu})
        plain |= _per_cycle(plain, self.vector_bytes)
        parts = [self.kind]
        if self.is_host_like:
            parts += [f"-mtriple={self.triple}", f"-mcpu={self.cpu}"]
        if self.features != plain["features"]:
            base, mine = set(plain["features"]), set(self.features)
            parts.append(
                "-mattr=" + ",".join([f"+{f}" for f in sorted(mine - base)] + [f"-{f}" for f in sorted(base - mine)])
            )
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name not in ("kind", "triple", "cpu", "features", "attrs") and value != plain[f.name]:
                parts.append(f"-{f.name.replace('_', '-')}={value}")
        shown = {k: v if isinstance(v, str) else ",".join(v) if isinstance(v, tuple) else json.dumps(v) for k, v in self.attrs}
        return " ".join(parts + [f"-{k}={shlex.quote(v)}" for k, v in shown.items()])

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"


TargetLike = Target | str | Mapping[str, Any]
"""What makes a target: the constructor's argument. Where None may be given as well, it is this machine."""


_NAMES = tuple(f.name for f in fields(Target))
_ARCHITECTURES = {"arm64": "aarch64", "arm64e": "aarch64", "amd64": "x86_64", "i386": "x86_64", "i686": "x86_64"}


def _fields_of(spec: str | Mapping[str, Any] | Target) -> dict[str, Any]:
    """What a description says of each field; every key and value is checked."""
    if isinstance(spec, Target):
        return {name: getattr(spec, name) for name in _NAMES}
    if isinstance(spec, str):
        return _parse(spec)
    if not isinstance(spec, Mapping):
        raise OptionError(
            f"a target cannot be {escape.value(spec)}", hint='a string such as "llvm -mcpu=znver3", a dictionary, or Target.host()'
        )
    return _changed({}, spec)


def _parse(text: str) -> dict[str, Any]:
    text = text.strip()
    if text.startswith("{"):
        return _from_json(text, "the target")
    if text.endswith(".json"):
        return _read(Path(text))
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise OptionError(f"target {reprlib.repr(text)} cannot be read: {error}") from None
    if not words:
        raise OptionError("the target is empty", hint='for example "llvm -mcpu=znver3" or "host"')
    if words[0] in LEVELS and len(words) > 1:
        raise OptionError(f"{words[0]} names several machines, which have no options in common: {reprlib.repr(text)}",
                          hint=f"give the machines one by one in a list, such as rd.compile(target=[...]), or one of {', '.join(LEVELS[words[0]])}")
    if words[0] in LEVELS or "," in words[0]:
        raise OptionError(f"{reprlib.repr(text)} names several machines, and one is wanted here", hint="rd.compile and `roundel compile` make one file for "
                          f"several: here give one of {', '.join(LEVELS.get(words[0]) or words[0].split(','))}")
    if words[0] in ("host", "native"):
        start: dict[str, Any] = _fields_of(Target.host())
    elif words[0] in MACHINES:
        start = {"kind": MACHINES[words[0]].get("kind", "llvm"), "cpu": words[0]}
    else:
        start = {"kind": keys.check_kind(words[0], MACHINES)}
    rest = iter(words[1:])
    said: dict[str, Any] = {"mcpu": words[0]} if words[0] in MACHINES else {}
    for word in rest:
        if not word.startswith("-"):
            raise OptionError(f"target {reprlib.repr(text)} cannot be read at {reprlib.repr(word)}", hint="options look like -mcpu=znver3")
        key, equals, value = word.lstrip("-").partition("=")
        if not equals and not keys.is_flag(key):
            value = next(rest, "")
        if said.setdefault(key, value) != value:
            raise OptionError(f"target {reprlib.repr(text)} says two things of {key}", hint=f"one of {said[key]} and {value}")
    return _changed(start, {key: keys.from_text(key, value) for key, value in said.items()})


def _read(path: Path) -> dict[str, Any]:
    """The fields in a file, which is one object of JSON: of ``to_json``, or of some of the fields, written by hand."""
    name = f"the target's file {escape.name(str(path))}"
    try:
        if path.exists() and not path.is_file():
            raise OptionError(f"{name} is no file that can be read whole", hint="give a file of JSON")
        if path.stat().st_size > MOST_BYTES:
            raise OptionError(f"{name} has more than {MOST_BYTES:,} bytes, which no description of a target needs")
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # a name with a NUL is no name
        raise OptionError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return _from_json(content, name)


def _from_json(content: str | bytes, name: str) -> dict[str, Any]:
    try:
        given = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{name} is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise OptionError(f"{name} is no object of JSON", hint='such as {"kind": "llvm", "cpu": "cortex-a76", "cores": 4}')
    return _fields_of(given)


def _changed(given: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Fields, changed as somebody said, in common spellings too: what is no field is an attribute of the kind of target. Raises OptionError."""
    words = {str(key).lstrip("-"): value for key, value in said.items() if value is not None}
    kind = keys.check_kind(words.get("kind") or given.get("kind") or words.get("tag") or "llvm", MACHINES)
    more = words.pop("attrs", ())
    if not isinstance(more, Mapping) and not isinstance(more, tuple):
        raise OptionError(f"attrs of a target are a mapping, not {reprlib.repr(more)}")
    by: dict[str, Any] = {}
    named: list[str] = []
    out, attrs = {**given, "kind": kind}, dict(given.get("attrs", ()))
    for key, value in [*words.items(), *dict(more).items()]:
        name = keys.SPELLINGS.get(key, key.replace("-", "_"))
        if name in keys.FIGURES:
            value = keys.figure(key, name, value)
            name, value = ("vector_bytes", value // 8) if name == "vector_bits" else (name, value)
        elif name in ("triple", "cpu"):
            value = keys.text(name, value)
        elif name == "features":
            value = named = keys.features(value)
            value = keys.with_features(given["features"], value) if given.get("features") else value
        elif name != "kind":
            name, attrs[name] = keys.attribute(kind, key, value, lambda host: str(Target(host)))
            continue
        if by.setdefault(name, (key, value))[1] != value:
            raise OptionError(f"the target says two things of {name}", hint=f"{by[name][0]} or {key} is wrong")
        out[name] = value
    base = MACHINES.get(out.get("cpu") or "x86-64", {})
    known.check_named(kind, out.get("triple") or base.get("triple", ""), out.get("cpu") or "", named, base.get("features", ()))
    if "vector_bytes" in by and "fma_ports" in given:
        out |= {name: n for name, n in _per_cycle(given, out["vector_bytes"]).items() if name not in by}
    return {**out, "attrs": tuple(sorted(attrs.items()))}


def _per_cycle(machine: Mapping[str, Any], width: int) -> dict[str, float]:
    """Multiply-adds, additions, loads and stores of a cycle that a machine has of vectors of another width: of those that pass through its units in
    parts there are fewer."""
    unit = machine["unit_bytes"]
    parts, before = (max(n // unit, 1) for n in (width, machine["vector_bytes"]))
    whole = {name: max(machine[name] * before // parts, min(machine[name], 1)) for name in ("fma_ports", "add_ports", "loads")}
    return {**whole, "stores": machine["stores"] * before / parts}


def _complete(given: dict[str, Any]) -> dict[str, Any]:
    """Every field: what is given, else the table's figure for the CPU."""
    triple, cpu = given.get("triple") or "", given.get("cpu") or ""
    base = MACHINES.get(cpu) or _generic(triple, cpu)
    if triple and _architecture(triple) != _architecture(base["triple"]):
        raise OptionError(f"{cpu} is a processor of {_architecture(base['triple'])}, not of {triple}", hint="give -mtriple or -mcpu alone, or another of them")
    narrowed = _per_cycle(base, given.get("vector_bytes") or base["vector_bytes"])
    plain = {"cores": 1, "attrs": (), **base, **narrowed, "cpu": base.get("cpu", cpu or "x86-64")}
    out = {**plain, **{k: v for k, v in given.items() if v != "" and k != "cpu"}}
    # C source has no instructions by name: those of a machine are between its C compiler and whoever calls that. Of a board's processor the few are known
    # that C code has functions for (`codegen.c.instructions`), and forms of vectors in C are asked for
    out["features"] = keys.with_features(plain["features"], out["features"])
    if out.get("kind") == "c" and not is_bare(out["triple"]):
        out["features"] = tuple(f for f in keys.C_FORMS if f in out["features"] and f not in plain["features"])
    return {name: out[name] for name in _NAMES}


def _architecture(triple: str) -> str:
    return _ARCHITECTURES.get(first := triple.split("-")[0], first)


_BASELINES = {"": "x86-64", "x86_64": "x86-64", "aarch64": "cortex-a72", "arm64": "apple-m1", "riscv64": "rv64gcv", "wasm32": "wasm32", "wasm64": "wasm64",
              "arm": "cortex-a7", "i686": "i686", "riscv32": "rv32imac"}
"""The named machine whose figures stand for an architecture or, where that is not among them, for its family."""


def _generic(triple: str, cpu: str) -> dict[str, Any]:
    """Cautious figures for a CPU that the table does not have: the baseline of its architecture. Raises OptionError for an architecture that no code is
    generated for."""
    arch = triple.split("-")[0]
    name = _BASELINES.get(arch) or _BASELINES.get(family_of(triple))
    if name is None:
        raise OptionError(f"there is no machine {triple!r} that code is generated for",
                          hint='-mtriple is such as x86_64-unknown-linux-gnu; on other machines C source runs (target="c"); see `roundel targets`')
    return {
        **MACHINES[name],
        **({"triple": triple} if triple else {}),
        "cpu": cpu or MACHINES[name].get("cpu", "generic" if arch and arch != "x86_64" else name),
    }
