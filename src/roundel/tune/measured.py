# SPDX-License-Identifier: Apache-2.0
"""A database as the compiler sees it: the fastest schedule for each program on one machine, with so many threads, under the current options.

This is read for models that come from the cache too, so what reads a database is imported where there is one.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir import escape, options
from ..ir.errors import OptionError
from ..target import Target, TargetLike
from ..target.host import target_for
from .place import default_path

if TYPE_CHECKING:
    from ..ir.record import ChoiceRecord, Key, Record
    from .database import Database

OFF = "off"  # in place of a path: nothing that was measured is used


class Measured:
    """The records of a database for a ``target`` and a number of ``threads``. ``digest`` says what they are, all together; ``kernels`` are those
    that kernels were compiled from, by the kernels' names."""

    def __init__(self, database: Database, target: Target, threads: int) -> None:
        self.database, self.target, self.threads, self.options = database, target.fingerprint, threads, options.of_schedules()
        self.digest = f"{database.digest(self.target)} {threads} {self.options}"
        self.kernels: dict[str, Record] = {}

    def best(self, program: str) -> Record | None:
        """The fastest schedule that was measured of a program (its digest)."""
        return self.database.best(self._key(program))

    def trials(self, program: str) -> list[Record]:
        """Everything that was measured of a program, in the order of the file, failed candidates included."""
        return self.database.trials(self._key(program))

    def choice(self, signature: str) -> ChoiceRecord | None:
        """What was measured to be the best at nodes of a kind."""
        return self.database.choice(self._key(signature))

    def choices_at(self, signature: str) -> list[ChoiceRecord]:
        """What was measured last at nodes of a kind, with any number of threads and any options."""
        return self.database.choices_at(signature, self.target)

    @cached_property
    def backends(self) -> list[str]:
        """The backends (`roundel.backends`) that were measured to be the fastest for anything."""
        found = (c for c in self.database.choices(self.target) if (c.key.threads, c.key.options) == (self.threads, self.options))
        return sorted({c.taken for c in found if c.taken in c.libraries})

    def _key(self, program: str) -> Key:
        from ..ir.record import Key

        return Key(program, self.target, self.threads, self.options)

    def taken(self, kernel: str, record: Record) -> None:
        """Note that a kernel is compiled from a record."""
        self.kernels[kernel] = record

    def summary(self) -> dict[str, Any]:
        """For the metadata of a model: how many kernels were compiled from records, and of which database."""
        return {"kernels": len(self.kernels), "database": self.database.path.name if self.database.path else ""}

    def __str__(self) -> str:
        n = len(self.kernels)
        return f"{n} kernel{'' if n == 1 else 's'} from records of {self.database.path}"

    def tell(self, message: str) -> None:
        """Warn of a record that cannot be used, once."""
        self.database.tell(message)


def measured_for(given: Any, target: TargetLike | None, threads: int | None) -> Measured | None:
    """What is compiled from: a database or the path of one that was ``given`` (None: the option ``records``, or else the user's own; False or
    "off": nothing), for a machine (None: this one) and the threads of one run (None: all its cores). None where nothing was measured for the machine.

    Raises OptionError for what is no database, and where there is none at a path that was given.
    """
    given = options.get("records") if given is None else OFF if given is False else given
    if given == OFF:
        return None
    if isinstance(given, str | os.PathLike | None):
        path = Path(given) if given is not None else default_path()
        if path is None or not os.path.isfile(path):  # False also for what cannot be a name
            if given is not None:
                raise OptionError(f"there is no database {str(given)!r}", hint="`roundel tune` makes one")
            return None
        given = path
    from .database import Database

    if isinstance(given, Database):
        given.refresh()
    elif not isinstance(given, Path):
        raise OptionError(f"records cannot be {escape.value(given)}", hint='give a database or its path; "off" for none')
    database = given if isinstance(given, Database) else Database(given)
    machine = target_for(target, 0)
    return Measured(database, machine, threads or machine.cores) if database.digest(machine.fingerprint) else None
