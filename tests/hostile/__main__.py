# SPDX-License-Identifier: Apache-2.0
"""The long form of the attacks.

    python -m tests.hostile                                    # which subjects there are
    python -m tests.hostile headers indices --count 100000     # so many attempts on each
    python -m tests.hostile headers --seconds 600              # one seed after another, for so long
    python -m tests.hostile schedules --count 5000 --start 1200   # without the first 1,200, where an earlier command ended
    python -m tests.hostile all --seed 4711

Most say on standard error how many attempts are done, after every hundred. Each finding is a line; the exit status is 1 when there is one. An
attempt follows from the seed and the count alone, so a finding can be had again.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

sys.path.append(str(Path(__file__).parents[1]))  # where the tests find each other

Attack = Callable[..., Iterator[str]]


def subjects() -> dict[str, str]:
    """The subjects, and the first line on what each attacks."""
    found = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not module.name.startswith(("_", "test_")):
            loaded = importlib.import_module(f"{__package__}.{module.name}")
            if hasattr(loaded, "attack"):
                found[module.name] = (loaded.__doc__ or "").strip().split("\n")[0]
    return found


def attack_on(subject: str) -> Attack:
    """The attack of the module with this name."""
    attack: Attack = importlib.import_module(f"{__package__}.{subject}").attack
    return attack


def findings(attack: Attack, count: int, seed: int, seconds: float | None, start: int = 0) -> Iterator[str]:
    """What one attack finds, without its first ``start`` attempts. With ``seconds`` it is made again with the next seed until they are over,
    unless it keeps time itself."""
    if seconds is not None and "seconds" in inspect.signature(attack).parameters:
        yield from attack(count, seed, seconds=seconds)
        return
    end = time.monotonic() + (seconds or 0)
    while True:
        for finding in attack(count, seed, **({"start": start} if start else {})):
            yield f"{finding} (seed {seed})"
        seed, start = seed + 1, 0
        if time.monotonic() >= end:
            return


def run(name: str, count: int, seed: int, seconds: float | None, start: int, console: Console) -> int:
    """Attack one subject; prints findings and a summary, returns how many findings there were."""
    attack, found, begun = attack_on(name), 0, time.monotonic()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        shown = progress.add_task(f"{name}: attacking", total=None)
        try:
            for finding in findings(attack, count, seed, seconds, start):
                found += 1
                progress.update(shown, description=f"{name}: {found} findings")
                console.print(f"{name}: {ascii(finding)[1:-1]}", markup=False, highlight=False, soft_wrap=True)
        except Exception:  # an attack that fails is a finding too
            found += 1
            console.print(f"{name}: the attack failed\n{traceback.format_exc()}", markup=False, highlight=False, soft_wrap=True)
    verdict = f"{found} finding{'s' if found > 1 else ''}" if found else "held"
    rounds = f"{count} attempts" if seconds is None else f"{seconds:g} s"
    console.print(f"{name}: {verdict} ({rounds} from seed {seed}, {time.monotonic() - begun:.1f} s)", markup=False, highlight=False)
    return found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help="what to attack, or 'all'; without one, the subjects are listed")
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="attempts on each subject (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--seconds", type=float, metavar="T", help="attack each subject for so long, with one seed after another")
    parser.add_argument("--start", type=int, default=0, metavar="K", help="leave out the first K attempts, where attempts do not follow from each other")
    given = parser.parse_args()
    console, known = Console(), subjects()
    if unknown := [n for n in given.subjects if n not in known and n != "all"]:
        parser.error(f"there is no subject {', '.join(unknown)}; known are {', '.join(known)}")
    if not given.subjects:
        for name, what in known.items():
            console.print(f"{name:12} {what}", markup=False, highlight=False, soft_wrap=True)
        return 0
    chosen = list(known) if "all" in given.subjects else given.subjects
    if given.start and (fixed := [n for n in chosen if "start" not in inspect.signature(attack_on(n)).parameters]):
        parser.error(f"{', '.join(fixed)}: attempts follow from those before them, so none can be left out")
    return int(any([run(name, given.count, given.seed, given.seconds, given.start, console) for name in chosen]))


if __name__ == "__main__":
    sys.exit(main())
