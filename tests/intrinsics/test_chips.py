# SPDX-License-Identifier: Apache-2.0
"""Chips of installed packages: a target's name finds them, once and only where one is named."""

from __future__ import annotations

import sys

from roundel.intrinsics import chips
from roundel.target import Target


def test_an_installed_package_brings_a_chip(tmp_path, monkeypatch):
    (tmp_path / "mychip.py").write_text("from roundel.intrinsics.accelerators import Accelerator\n"
                                        "CHIP = Accelerator('mychip', source='', begin='b', finish='f', engines=('all',))\n")
    about = tmp_path / "mychip-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mychip\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[roundel.accelerators]\nmychip = mychip:CHIP\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        found = chips.of_target(Target("x86-64 -device=mychip"))
        assert found is not None and found.name == "mychip" and found is sys.modules["mychip"].CHIP
        assert Target("x86-64 -device=mychip").has("mychip") and not Target("x86-64").has("mychip")
        assert chips.of_target(Target("x86-64")) is None and chips.of_target(Target("x86-64 -device=another")) is None
    finally:
        chips.unregister(found)
        chips._looked_for.discard("mychip")
        sys.modules.pop("mychip", None)
