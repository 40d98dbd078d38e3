# SPDX-License-Identifier: Apache-2.0
"""Rooms import downwards: what ``lint-imports`` cannot see, imports by name, are all in ``roundel.ir.above``."""

from __future__ import annotations

import re
from pathlib import Path

import roundel

ROOT = Path(roundel.__file__).parent
BY_NAME = re.compile(r"""(?:import_module|__import__)\(\s*f?["'](?:roundel\b|\.)""")


def test_only_one_file_imports_rooms_by_name():
    """``roundel/__init__.py`` stands above all rooms and imports each on its first use."""
    found = [str(path.relative_to(ROOT)) for path in sorted(ROOT.rglob("*.py")) if BY_NAME.search(path.read_text())]
    own = ["ir/__init__.py", "runtime/__init__.py", "script/parser/entry.py", "tune/__init__.py"]  # each imports its own room
    assert found == sorted(["__init__.py", "ir/above.py", *own])


def test_every_room_is_on_the_page_of_the_architecture():
    """A newcomer finds each folder of the package in the table of rooms."""
    table = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text().split("## The rooms")[1].split("##")[0]
    named = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))))
    rooms = {p.name for p in ROOT.iterdir() if (p / "__init__.py").exists()}
    assert rooms <= named and named - rooms == {"api", "driver"}
