# SPDX-License-Identifier: Apache-2.0
"""The keys of a target's description: what each may hold, and what is said of one that is none.

A description comes from a user, a file or a script: a word that is misspelt, or a figure that no machine has, would change what the cost
models choose without a word. So every key is one of these tables, and its value of the type and within the range that stand there.
"""

from __future__ import annotations

import difflib
import numbers
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from .behaviour import Behaviour
from .machines import LEVELS

K, M, G = 1 << 10, 1 << 20, 1 << 30
C_FORMS = ("mve.fp", "vector-extensions")  # features of a target of kind c that say in which form vectors are written (`codegen.c`)
CPU_KINDS = ("llvm", "c", "hexagon", "ext_dev")
DEVICE_KINDS = ("cuda", "nvptx", "rocm", "metal", "opencl", "vulkan", "webgpu", "trn")
KINDS = CPU_KINDS + DEVICE_KINDS
# Who names machines in the field's tags, such as nvidia/geforce-rtx-3090-ti.
_VENDORS = ("apple", "arm", "aws", "nvidia", "qcom", "raspberry-pi", "riscv")
_TAG = re.compile(rf"({'|'.join(_VENDORS)})(/[a-z0-9][a-z0-9._-]*)+")
_WORD = re.compile(r"[A-Za-z0-9_.+-]+")

# Spellings that are common in the field, and the field of `Target` that each sets.
SPELLINGS = {"mtriple": "triple", "mcpu": "cpu", "mattr": "features", "num-cores": "cores", "num_cores": "cores", "vector-width": "vector_bits",
             "vector_width": "vector_bits"}


@dataclass(frozen=True)
class Number:
    """A number from ``least`` to ``most``; ``whole``, or a power of two."""

    least: float
    most: float
    whole: bool = True
    power: bool = False

    def __str__(self) -> str:
        kind = "a power of two" if self.power else "a whole number" if self.whole else "a number"
        return f"{kind} from {self.least:,} to {self.most:,}"

    def read(self, value: Any) -> int | float | None:
        """The value as this kind of number; None for what is none."""
        fits = isinstance(value, numbers.Integral if self.whole else numbers.Real) and not isinstance(value, bool)
        if not fits or not self.least <= value <= self.most or (self.power and int(value).bit_count() != 1):  # false for a NaN too
            return None
        return int(value) if self.whole else float(value)


def _behaviour(name: str) -> Number:
    """The range of a figure of `Behaviour`, by what its name says it is."""
    if name.endswith(("_cycles", "_instructions")):
        return Number(0, 1000, whole=False)
    if name.endswith("_bytes"):
        return Number(0, M)
    if name.endswith("_steps"):
        return Number(1, 1000)
    if name.endswith(("_passes", "_times")):
        return Number(0, 1000, whole=name.endswith("_passes"))
    return Number(1, 100, whole=False) if name == "masked" else Number(0 if name.endswith(("exposed", "ahead")) else 1e-3, 1, whole=False)


# fmt: off
FIGURES: dict[str, Number] = {
    "vector_bits": Number(32, 2048, power=True),  # another way to say vector_bytes
    "vector_bytes": Number(4, 256, power=True),
    "unit_bytes": Number(4, 256, power=True),
    "vector_registers": Number(1, 1024),
    "fma_latency": Number(1, 100),
    "fma_ports": Number(1, 32),
    "loads": Number(1, 32),
    "stores": Number(1e-3, 32, whole=False),
    "issue": Number(1, 64),
    "window": Number(1, 8192),
    "line_bytes": Number(8, 4 * K, power=True),
    "l1_bytes": Number(256, 64 * M),
    "l1_ways": Number(1, 4 * K),
    "l2_bytes": Number(256, 4 * G),
    "l2_ways": Number(1, 4 * K),
    "l3_bytes": Number(0, 64 * G),
    "l1_rate": Number(1e-3, 8192, whole=False),
    "l2_rate": Number(1e-3, 8192, whole=False),
    "l3_rate": Number(1e-3, 8192, whole=False),
    **dict.fromkeys(("l2_stored", "l3_stored", "memory_stored"), Number(1e-3, 4, whole=False)),
    "miss_cycles": Number(0, 1000, whole=False),
    "forwarding": Number(0, 100, whole=False),
    "entry_cycles": Number(0, 1000, whole=False),
    "wrong_branch": Number(0, 1000, whole=False),
    "gather_instructions": Number(1, 100, whole=False),
    "add_ports": Number(0, 8),
    "cold_share": Number(1e-3, 1, whole=False),
    "cold_exposed": Number(0, 1, whole=False),
    "cores": Number(1, 64 * K),
    "frequency_ghz": Number(1e-3, 100, whole=False),
    "dram_gbs": Number(1e-3, 1e5, whole=False),
    "all_dram_gbs": Number(1e-3, 1e6, whole=False),
    "region_us": Number(1e-3, 1e6, whole=False),
    "start_us": Number(0, 1e6, whole=False),
    **{f.name: _behaviour(f.name) for f in fields(Behaviour)},
}
# fmt: on
TEXTS = ("kind", "triple", "cpu")

_COUNT, _FLAG, _TEXT, _TEXTS = "count", "flag", "text", "texts"
_WANTED = {_COUNT: "a whole number, 0 or more", _FLAG: "true or false", _TEXT: "a text", _TEXTS: "a list of texts"}


def _flags(names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), _FLAG)


_ANY_KIND = {"keys": _TEXTS, "tag": _TEXT, "libs": _TEXTS, "device": _TEXT, "model": _TEXT, "host": _TEXT}
_CPU = {"mabi": _TEXT, "mfloat-abi": _TEXT, "march": _TEXT, "jit": _TEXT, "cl-opt": _TEXTS, "opt-level": _COUNT, "workspace-byte-alignment": _COUNT,
        "constants-byte-alignment": _COUNT, "vtcm-capacity": _COUNT, "llvm-options": _TEXTS,
        **_flags("fast-math fast-math-nnan fast-math-ninf fast-math-nsz fast-math-arcp fast-math-contract fast-math-reassoc")}
_DEVICE = {
    "arch": _TEXT, "device_type": _TEXT, "device_name": _TEXT, "driver_name": _TEXT,
    **dict.fromkeys(
        "max_num_threads max_threads_per_block max_shared_memory_per_block thread_warp_size registers_per_block l2_cache_size_bytes max_function_args "
        "texture_spatial_limit texture_depth_limit image_base_address_alignment partition_size max_sbuf_size_per_partition max_psum_size_per_partition "
        "supported_subgroup_operations max_block_size_x max_block_size_y max_block_size_z max_push_constants_size max_uniform_buffer_range "
        "max_storage_buffer_range max_per_stage_descriptor_storage_buffer driver_version vulkan_api_version max_spirv_version".split(), _COUNT),
    **_flags("supports_float16 supports_float32 supports_float64 supports_int8 supports_int16 supports_int32 supports_int64 supports_8bit_buffer "
             "supports_16bit_buffer supports_storage_buffer_storage_class supports_push_descriptor supports_dedicated_allocation "
             "supports_integer_dot_product supports_cooperative_matrix supports_subgroups"),
}


def attributes(kind: str) -> Mapping[str, str]:
    """What a kind of target may have beside the fields: options of the field's other compilers, kept with the target and read by nothing that
    compiles for CPUs."""
    return {**_ANY_KIND, **(_CPU if kind in CPU_KINDS else _DEVICE)}


class TargetKind(str):
    """The kind of a target: its name, which programs written for TVM read as ``target.kind.name``."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name as a plain text."""
        return str.__str__(self)


def check_kind(kind: Any, machines: Iterable[str]) -> TargetKind:
    """A kind of target, or the tag of a machine. Raises OptionError for anything else."""
    if isinstance(kind, str) and (kind in KINDS or _TAG.fullmatch(kind)):
        return TargetKind(kind)
    near = _all_nearest(kind, [*KINDS, *machines, *LEVELS])
    raise OptionError(f"there is no target {reprlib.repr(kind)}", hint=f"is {' or '.join(near)} meant?" if near else
                      f"kinds are {', '.join(KINDS)}; machines are {', '.join([*machines, *LEVELS])}; a file that describes one ends in .json")


def figure(word: str, name: str, value: Any) -> int | float:
    """A figure of a machine, which was called ``word``. Raises OptionError for one that no machine has."""
    found = FIGURES[name].read(value)
    if found is None:
        raise OptionError(f"{word} of a target is {FIGURES[name]}, not {reprlib.repr(value)}")
    return found


def text(name: str, value: Any) -> str:
    """A name, such as that of a processor; ``""`` and None say nothing. Raises OptionError for what is no name."""
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise OptionError(f"{name} of a target is a name of letters, digits and any of _.+-, not {reprlib.repr(value)}")
    return value


def features(value: Any) -> list[str]:
    """Names of features. Those with a sign change what a processor has, and so do all in a text with commas; a list without signs is all that it
    has. Raises OptionError for what is no name."""
    listed = [f if f[0] in "+-" else f"+{f}" for f in value.split(",") if f] if isinstance(value, str) else value
    if isinstance(listed, Mapping) or not isinstance(listed, Iterable):
        raise OptionError(f"features of a target are names such as avx2, in a list or with commas between them, not {reprlib.repr(value)}")
    return [text("each of the features", f) for f in listed if f != ""]


def with_features(has: Iterable[str], named: Iterable[str]) -> tuple[str, ...]:
    """What a processor has that had some features, and of which others were named."""
    named = list(named)
    added, removed = {f.lstrip("+") for f in named if f[0] != "-"}, {f[1:] for f in named if f[0] == "-"}
    changes = any(f[0] in "+-" for f in named)
    return tuple(sorted(((set(has) if changes else set()) | added) - removed))


def attribute(kind: str, name: str, value: Any, read_target: Callable[[Any], str]) -> tuple[str, Any]:
    """Another key and its value, which can be hashed. Raises OptionError for a key that targets of that kind do not have."""
    known = attributes(kind)
    name = next((n for n in known if n.replace("-", "_") == name.replace("-", "_")), name)
    if name not in known:
        names = [*FIGURES, *TEXTS, "features", *known]
        near = _nearest(name.replace("-", "_"), names) or _nearest(name, [*SPELLINGS, *known])
        raise OptionError(f"targets of kind {kind} have no {reprlib.repr(name)}", hint=f"is {near} meant?" if near else f"they have {', '.join(names)}")
    if name == "host":
        return name, read_target(value)
    wanted, fits = known[name], False
    if wanted == _TEXTS:
        value = tuple(value.split(",") if isinstance(value, str) else value) if isinstance(value, str | list | tuple) else None
        fits = value is not None and all(isinstance(v, str) for v in value)
    elif wanted == _TEXT:
        fits = isinstance(value, str)
    elif wanted == _FLAG:
        value, fits = bool(value), value in (0, 1)
    elif wanted == _COUNT:
        fits = isinstance(value, numbers.Integral) and not isinstance(value, bool) and 0 <= value < 1 << 63
    if not fits:
        raise OptionError(f"{name} of a target is {_WANTED[wanted]}, not {reprlib.repr(value)}")
    return name, value


def from_text(word: str, value: str) -> Any:
    """What a word of a target's string says: numbers and flags as such, everything else as it stands."""
    name = SPELLINGS.get(word, word.replace("-", "_"))
    kind = {n.replace("-", "_"): k for n, k in {**_CPU, **_DEVICE}.items()}.get(name)
    if kind == _FLAG:
        return {"": True, "1": True, "true": True, "0": False, "false": False}.get(value.lower(), value)
    if name in FIGURES or kind == _COUNT:
        for read in (int, float):
            try:
                return read(value)
            except ValueError:
                continue
    return value


def is_flag(word: str) -> bool:
    """Whether a word of a target's string stands alone: ``-supports_float16``."""
    return {**_CPU, **_DEVICE}.get(word) == _FLAG


def _nearest(name: Any, names: Iterable[str]) -> str:
    return next(iter(difflib.get_close_matches(str(name)[:100], list(names), 1, 0.7)), "")


def _all_nearest(name: Any, names: Iterable[str]) -> list[str]:
    """Those that are as near as the nearest, since of a family no member is nearer than others: cortex-m0 is as far from -m3 as from -m7."""
    near = difflib.get_close_matches(str(name)[:100], names := list(names), len(names), 0.7)
    ratio = lambda other: difflib.SequenceMatcher(None, other, str(name)[:100]).ratio()
    return sorted(n for n in near if ratio(n) == ratio(near[0]))
