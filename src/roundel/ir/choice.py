# SPDX-License-Identifier: Apache-2.0
"""Choices: what a pass decided at each place of a model (between algorithms, layouts, kernels), what else there was, and what was asked for.

A pass that can compute a node in several ways asks for each node what is taken, and leaves a record of it::

    choosing = Choosing(mod.choices, "algorithm")
    taken = choosing.decide("/conv1/Conv", "conv2d 1x64x56x56 by 64x64x3x3", {"direct": 4e6, "winograd4": "the channels fill no vectors"}, "direct")
    return mod.replace(choices=choosing.choices())

What was asked for can be checked once all passes that choose have run (`Choices.check`): only then is it known which places there are.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import escape
from .attrs import EMPTY, Attrs
from .dataclass import dataclass
from .errors import OptionError

if TYPE_CHECKING:
    from .record import ChoiceRecord

MOST_SHOWN = 8  # places in a message

MEASURED, PINNED, EXPECTED = "measured", "pinned", "expected"
"""What decided on a schedule: a record, who compiled, or a model of the machine."""

OF_THE_CALL = ("constant_params", "decisions", "fuse_kind", "global_symbol", "noalias", "num_outputs", "pinned_at", "schedule_notes", "target", "tir.noalias")
"""Attributes of a program that say who calls it, how, and what was asked for, and nothing of what it computes."""


@dataclass(frozen=True, eq=False, repr=False)
class Later:
    """Cycles that are worked out when somebody asks for them: a pass that does not compare its alternatives spends no time on what they take. ``work``
    gives them, or None where nothing is expected."""

    work: Callable[[], float | None]

    @cached_property
    def cycles(self) -> float | None:
        """The cycles, worked out once."""
        return self.work()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Later)  # a choice is known by its place and subject

    def __hash__(self) -> int:
        return hash(Later)

    def __repr__(self) -> str:
        return "Later()"


Alternatives = Mapping[str, float | str | Later | None]
"""For each algorithm by name the cycles of one core that are expected of it (None: nothing is), or a text: why it cannot be had."""


@dataclass(frozen=True)
class Choice:
    """What was decided at ``site``, the name of the model's node. ``subject`` says what is computed there, ``taken`` is one of
    ``alternatives``. ``condition``: on what sizes at run time it is taken, "" for all. ``kind``: between algorithms, layouts, ways to store
    weights, or boundaries of kernels. ``reason``: whether it was asked for, measured or expected to be the best. ``signature``: under which the
    choice is found among measurements, where there are any; ``measured``: the seconds of alternatives in these."""

    site: str
    subject: str
    taken: str
    alternatives: Attrs = EMPTY
    condition: str = ""
    kind: str = "algorithm"
    reason: str = EXPECTED
    signature: str = ""
    measured: Attrs = EMPTY

    @property
    def names(self) -> list[str]:
        """Of the alternatives that can be had here."""
        return [name for name, found in self.alternatives.items() if not isinstance(found, str)]

    @property
    def possible(self) -> dict[str, float | None]:
        """The alternatives that can be had here, with the cycles that are expected of them."""
        found = {name: self.alternatives[name] for name in self.names}
        return {name: cycles.cycles if isinstance(cycles, Later) else cycles for name, cycles in found.items()}


@dataclass(frozen=True)
class Choices:
    """The choices of a module. ``asked``: names or patterns of sites with the alternative asked for; ``pins``: names or patterns of sites or
    tensor programs with decisions of schedules; ``made``: what was decided so far. ``records``: measurements that go before what models expect
    (`roundel.strategy.records.Records`). ``kernels``: by its name what is known of each kernel, its ``rule``, ``decisions`` and ``nodes``, for a
    compiled model to tell."""

    asked: tuple[tuple[str, str], ...] = ()
    pins: tuple[tuple[str, Attrs], ...] = ()
    made: tuple[Choice, ...] = ()
    records: Any = None
    kernels: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False)

    @staticmethod
    def of(given: Mapping[str, Any] | None) -> Choices:
        """What ``rd.compile(choices=...)`` takes: for each site (or pattern) the name of an alternative, a mapping of decisions of the schedule
        of its kernel, or several of these; mappings also for tensor programs by their names. Raises OptionError for anything else."""
        if not isinstance(given or {}, Mapping):
            raise OptionError(f"choices cannot be {escape.value(given)}", hint='give them by the name of a node, such as {"/conv1/Conv": "direct"}')
        asked, pins = [], []
        for site, wanted in (given or {}).items():
            every = [wanted] if isinstance(wanted, str | Mapping) else wanted
            if not isinstance(site, str) or not isinstance(every, Sequence) or not all(isinstance(one, str | Mapping) for one in every):
                raise OptionError(f"the choice for {escape.value(site)} cannot be {escape.value(wanted)}",
                                  hint="give the name of an algorithm, such as direct, or a mapping of decisions of its kernel")
            asked += [(site, one) for one in every if isinstance(one, str)]
            pins += [(site, Attrs(one)) for one in every if isinstance(one, Mapping)]
        return Choices(tuple(asked), tuple(pins))

    def replace_pins(self, pins: tuple[tuple[str, Attrs], ...]) -> Choices:
        """The same with other decisions of tensor programs."""
        return self if pins == self.pins else replace(self, pins=pins)

    def with_kernels(self, known: Mapping[str, Mapping[str, Any]]) -> Choices:
        """The same with more that is known of kernels, by their names."""
        return replace(self, kernels={name: {**self.kernels.get(name, {}), **known.get(name, {})} for name in (self.kernels | known)}) if known else self

    def asked_at(self, site: str) -> list[str]:
        """The algorithms that are asked for at a site, those by its very name before those by a pattern."""
        own = [name for pattern, name in self.asked if pattern == site]
        return own + [name for pattern, name in self.asked if pattern != site and fnmatchcase(site, pattern)]

    def check(self, backends: Sequence[str] = ()) -> None:
        """Raises OptionError for what was asked for and was taken at no site that its pattern names. ``backends``: names that may be meant at any."""
        for pattern, name in self.asked:
            self._check(pattern, name, backends, [c for c in self.made if c.site == pattern or fnmatchcase(c.site, pattern)])

    def _check(self, pattern: str, name: str, backends: Sequence[str], matched: Sequence[Choice]) -> None:
        if not matched:
            sites = list(dict.fromkeys(c.site for c in self.made))
            near = difflib.get_close_matches(pattern, sites, 3)
            hint = f"is {' or '.join(near)} meant?" if near else f"there are choices at {_listed(sites)}" if sites else "the model has no such place"
            raise OptionError(f"{name} is asked for at {pattern!r}, and there is nothing to be chosen at a node of that name", hint=hint)
        known = [c for c in matched if name in c.alternatives]
        where = f"node {matched[0].site!r}" if len({c.site for c in matched}) == 1 else f"the nodes that {pattern!r} names"
        if not known:
            names = dict.fromkeys(n for c in matched for n in c.alternatives)
            others = f"; the backends are {_listed(backends)}" if backends else ""
            raise OptionError(f"there is no algorithm {name!r}", where=where, hint=f"there are {', '.join(names)}{others}")
        possible = [c for c in known if name in c.names]
        if not possible:
            why = f"{known[0].subject}: {known[0].alternatives[name]}"
            raise OptionError(f"{name} cannot be had", where=where, why=why, hint=f"it may be {', '.join(known[0].names)}")
        if all(c.taken != name and c.site == pattern for c in possible):
            raise OptionError(f"both {name} and {possible[0].taken} are asked for", where=where, hint="only one of them can be taken")


@dataclass
class Choosing:
    """The choices of a pass that is under way, those of ``kind`` if it does not say otherwise. ``versions``: of alternatives that have one, by name;
    what was measured with others does not count."""

    before: Choices
    kind: str = "algorithm"
    made: dict[Choice, None] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    _digests: dict[int, tuple[Any, str]] = field(default_factory=dict, repr=False, compare=False)  # of tensor programs, which are kept

    def asked(self, site: str, alternatives: Alternatives) -> str | None:
        """Which of the alternatives is asked for at a site and can be had; None for none."""
        if not self.before.asked:
            return None
        return next((name for name in self.before.asked_at(site) if name in alternatives and not isinstance(alternatives[name], str)), None)

    def wanted(self, site: str, alternatives: Alternatives, of: Any = None, kind: str = "") -> str | None:
        """Which of the alternatives is asked for and can be had, or else was measured to be the best for the call ``of``; None for none."""
        return self._decided(site, alternatives, self.signature(of, kind))[0]

    def decide(self, site: str, subject: str, alternatives: Alternatives, preferred: str, kind: str = "", of: Any = None) -> str:
        """What is taken at a site: what is asked for where it can be had, else what was measured to be the best for the call ``of``, else
        ``preferred``. Recorded."""
        signature = self.signature(of, kind)
        wanted, reason = self._decided(site, alternatives, signature)
        taken, found = wanted or preferred, self._found(signature)
        seconds = Attrs({n: s for n, s in found.seconds.items() if n in alternatives}) if found is not None else EMPTY
        self.record(Choice(site, subject, taken, Attrs(alternatives), "", kind or self.kind, reason, signature, seconds))
        return taken

    def note(self, site: str, subject: str, alternatives: Alternatives, taken: str, kind: str = "", of: Any = None, condition: str = "") -> None:
        """Keep what was taken at a site for the call ``of``, with the reason."""
        signature = self.signature(of, kind)
        wanted, reason = self._decided(site, alternatives, signature)
        self.record(Choice(site, subject, taken, Attrs(alternatives), condition, kind or self.kind, reason if wanted == taken else EXPECTED, signature))

    def _decided(self, site: str, alternatives: Alternatives, signature: str) -> tuple[str | None, str]:
        """What is asked for or was measured, and can be had, and which of both it is."""
        if (asked := self.asked(site, alternatives)) is not None:
            return asked, PINNED
        found = self._found(signature)
        return (found.taken, MEASURED) if found is not None and not isinstance(alternatives.get(found.taken, ""), str) else (None, EXPECTED)

    def faults(self, of: Any, kind: str = "") -> dict[str, str]:
        """Which alternatives were wrong or crashed when they were measured for the call ``of``, in the versions that there are now, and how. The number
        of threads and the options do not matter."""
        found: dict[str, str] = {}
        for record in self.before.records.choices_at(signature) if (signature := self.signature(of, kind)) else ():
            told = {**{n: f"it failed when it was measured: {why}" for n, why in record.crashed.items()},
                    **{n: f"it was wrong when it was measured: {why}" for n, why in record.wrong.items()}}
            found |= {n: why for n, why in told.items() if n in record.libraries and self.versions.get(n) == record.libraries[n]}
        return found

    def _found(self, signature: str) -> ChoiceRecord | None:
        found = self.before.records.choice(signature) if signature else None
        for name, version in found.libraries.items() if found is not None else ():
            if self.versions.get(name, version) != version:
                self.before.records.tell(f"{name} was measured in version {version or 'unknown'}, and is {self.versions[name] or 'unknown'} now: what was "
                                         "measured of it is not used; `roundel tune` measures again")
                return None
        return found

    def signature(self, of: Any, kind: str = "") -> str:
        """The digest of what a choice of a ``kind`` is about: a call's operator, its attributes, the shapes and types of its operands and which of
        them are constants, or any other program. Empty where there are no records, so that it would be of no use."""
        if of is None or self.before.records is None:
            return ""
        from .digest import structural_digest  # programs are made of modules, which hold choices
        from .graph.expr import Constant

        if (op := getattr(of, "op", None)) is None:
            return structural_digest((kind or self.kind, of), without_attrs=OF_THE_CALL)
        operands = tuple((getattr(a.sinfo, "dtype", None), getattr(a.sinfo, "shape", None), isinstance(a, Constant)) for a in of.args)
        return structural_digest((kind or self.kind, op.name, of.attrs, operands))

    def programs(self, *around: Any) -> tuple[Any, ...] | None:
        """What a choice about tensor programs is known by: their digests, each made once, and anything else as it is. None where there are no
        records, so that it would be of no use."""
        if self.before.records is None:
            return None
        from .digest import structural_digest
        from .tir import PrimFunc

        def of(one: Any) -> Any:
            if not isinstance(one, PrimFunc):
                return one
            if id(one) not in self._digests:
                self._digests[id(one)] = one, structural_digest(one, without_attrs=OF_THE_CALL)
            return self._digests[id(one)][1]

        return tuple(map(of, around))

    def record(self, choice: Choice) -> None:
        """Keep a choice that was made already."""
        self.made[choice] = None

    def choices(self) -> Choices:
        """Those from before and those of this pass, equal ones once."""
        return replace(self.before, made=tuple(dict.fromkeys((*self.before.made, *self.made)))) if self.made else self.before


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:MOST_SHOWN]) + (f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else "")
