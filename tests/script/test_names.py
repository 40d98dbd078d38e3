# SPDX-License-Identifier: Apache-2.0
"""Names of printed scripts: each is free in its scope, the lowest number is taken, and finding it takes no longer the more there are."""

from __future__ import annotations

from roundel.script.printer.names import Names


class Counting(set):
    """Names, and how often one was looked for."""

    asked = 0

    def __contains__(self, name):
        Counting.asked += 1
        return super().__contains__(name)


def test_many_names_of_one_hint_are_found_in_few_looks():
    names = Names()
    names.frames[0].taken = Counting(names.frames[0].taken)
    found = [names.fresh("lv") for _ in range(3000)]
    assert found[:3] == ["lv", "lv_1", "lv_2"] and found[-1] == "lv_2999"
    assert Counting.asked <= 3 * 3000


def test_the_lowest_free_number_is_taken_also_behind_a_scope():
    names = Names(["x_2"])
    assert [names.fresh("x"), names.fresh("x"), names.fresh("x")] == ["x", "x_1", "x_3"]
    with names.frame():
        assert names.fresh("x") == "x_4" and names.fresh("y") == "y"
    assert names.fresh("x") == "x_4" and names.fresh("y") == "y"
