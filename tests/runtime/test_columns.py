# SPDX-License-Identifier: Apache-2.0
"""Tables for terminals of 80 columns."""

from roundel.runtime.columns import Row, hanging, table

LONG = "fused_" + "_".join(["conv2d_add"] * 12)


def test_names_are_whole_and_figures_stand_under_their_heads():
    text = table("kernel", ("calls", "ms"), [Row("short", ("1", "0.25")), Row(LONG, ("12", "3.5"), ("rows=6 " * 20,))], "two kernels")
    lines = text.splitlines()
    assert lines[0] == "two kernels" and lines[2].split() == ["kernel", "calls", "ms"] and LONG in lines
    ends = {line.index("0.25") + 4 for line in lines if "0.25" in line} | {line.index("3.5") + 3 for line in lines if "3.5" in line}
    assert ends == {len(lines[2])} and all(len(line) <= 80 for line in lines if line != LONG)


def test_long_words_are_not_cut():
    assert hanging(f"see {LONG} there")[1].strip() == LONG
