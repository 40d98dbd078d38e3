# SPDX-License-Identifier: Apache-2.0
"""Elementary functions cost the instructions of the arithmetic that code generation writes for them."""

from __future__ import annotations

import pytest

from roundel.codegen.expand import EXPANSIONS
from roundel.ir import tir
from roundel.ir.dtype import DType
from roundel.ir.visit import walk
from roundel.strategy.functions import instructions
from roundel.target import Target


def _of(name: str, target: Target, dtype: str = "float32") -> float:
    given = DType(dtype)
    count = 2 if name in ("pow", "atan2", "fmod") else 1
    return instructions(tir.Call(name, tuple(tir.Var(f"x{k}", given) for k in range(count)), given), target)


@pytest.mark.parametrize("name", sorted(EXPANSIONS))
def test_every_function_has_a_price(name: str) -> None:
    for target in map(Target, ("sapphirerapids", "haswell", "neoverse-n1")):
        assert 8 <= _of(name, target) < 400 or name == "fmod"
        assert _of(name, target, "float64") > 0  # by a library


@pytest.mark.parametrize("name", sorted(EXPANSIONS.keys() - {"fmod", "lgamma", "erfc"}))
def test_prices_follow_the_expansions(name: str) -> None:
    """No less than the multiply-adds alone, and no more than all nodes, where divisions and roots are what they are."""
    target, x = Target("haswell"), tir.Var("x", DType("float32"))
    expanded = EXPANSIONS[name](*([x] if name not in ("pow", "atan2") else [x, x]), scales=False)
    nodes = [n for n in walk(expanded) if not isinstance(n, tir.Var | tir.FloatImm | tir.IntImm | tir.StringImm)]
    slow = sum(type(n) is tir.Div or (type(n) is tir.Call and n.op == "sqrt") for n in nodes)
    multiplied = sum(type(n) is tir.Call and n.op == "fma" for n in {*nodes})
    assert multiplied <= _of(name, target) <= 2 * len({*nodes}) + slow * target.division_instructions


def test_what_needs_no_scaling_instruction_costs_less_where_there_is_one() -> None:
    assert _of("exp", Target("sapphirerapids")) < _of("exp", Target("haswell"))
    assert _of("sqrt", Target("haswell")) >= Target("haswell").division_instructions
