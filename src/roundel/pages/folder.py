# SPDX-License-Identifier: Apache-2.0
"""The folder of a page: which of its files are an earlier page's, and which belong to somebody else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..ir.errors import OptionError

ABOUT = "site.json"


def kind_of(folder: Path) -> str:
    """The kind of the page that is in a folder."""
    return str(json.loads((folder / ABOUT).read_text(encoding="utf-8"))["kind"])


def files_of(folder: Path) -> set[str]:
    """The files of the page that is in a folder; empty where there is none."""
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        return {name for name in about["files"] if name == Path(name).name}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return set()


@contextmanager
def written(folder: Path, names: Iterable[str]) -> Iterator[set[str]]:
    """Makes the folder for a page that may write these files, and yields a set for those that it writes; at the end the earlier page's other files go. Where
    the page cannot be written, a folder that was not there before goes. Raises OptionError where a file is in the way that no page wrote."""
    before = files_of(folder)
    try:
        foreign = next((name for name in sorted(names) if name not in before and (folder / name).exists()), None)
        if foreign is not None:
            raise OptionError(f"{folder / foreign} is there, and no page that was written before has it", hint="name another folder with -o, or move the file")
        made = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # a name with a NUL is no name
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"{folder} cannot be written", why=getattr(error, "strerror", None) or str(error)) from None
    files: set[str] = set()
    try:
        yield files
    except BaseException:
        if made:
            shutil.rmtree(made[-1], ignore_errors=True)
        raise
    for name in before - files:
        if (folder / name).is_file():
            (folder / name).unlink()
