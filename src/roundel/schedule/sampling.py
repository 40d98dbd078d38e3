# SPDX-License-Identifier: Apache-2.0
"""Random choices that the trace records as decisions: tile sizes, categories, where to compute a block.

Numbers may stay open (``decision="open"``): the result is then a variable of the program, with range and divisibility.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from random import Random

from roundel.ir import Token
from roundel.ir.errors import ScheduleError
from roundel.ir.tir import For

from . import move, scopes
from .decisions import OPEN, Decision, categorical_decision, tile_decision
from .primitive import BlockToken, Change, Choice, Loop, Tile, primitive, refuse
from .tree import Tree, has_reduction, is_one


@primitive
def sample_categorical(tree: Tree, candidates: Sequence[int], probs: Sequence[float], decision: Choice = None, rng: Random | None = None) -> Change:
    """One of ``candidates``; the decision is its position."""
    if len(candidates) != len(probs) or not candidates:
        refuse(tree, tree.root, "sample_categorical needs as many probabilities as candidates")
    if not 0 < sum(map(float, probs)) < inf or min(map(float, probs)) < 0:
        refuse(tree, tree.root, "sample_categorical needs probabilities that are not negative, and not all zero", f"they are {list(probs)}")
    if decision == OPEN:
        return _left_open(tree, categorical_decision(_name(tree, "choice"), candidates), many=False)
    if decision is None:
        assert rng is not None
        decision = rng.choices(range(len(candidates)), weights=probs)[0]
    if not 0 <= int(decision) < len(candidates):
        refuse(tree, tree.root, f"decision {decision} is not a position among {len(candidates)} candidates")
    return Change(tree, candidates[int(decision)], decision=int(decision))


@primitive
def knob(tree: Tree, name: str, values: Sequence[int], decision: Choice = None, rng: Random | None = None) -> Change:
    """One of ``values``, the first unless another is asked for. The decision has this name, and is the position of the value.

    A schedule with knobs is a template: whoever replays it chooses by name (``roundel.strategy.template``).
    """
    if not values:
        refuse(tree, tree.root, f"knob {name!r} needs at least one value")
    if any(d.name == name for d in tree.decisions):
        refuse(tree, tree.root, f"there are two knobs of the name {name!r}")
    if decision == OPEN:
        return _left_open(tree, categorical_decision(name, values), many=False)
    decision = int(decision or 0)
    if not 0 <= decision < len(values):
        refuse(tree, tree.root, f"decision {decision} is not a position among the {len(values)} values of knob {name!r}")
    return Change(tree, values[decision], decision=decision)


@primitive
def sample_perfect_tile(tree: Tree, loop: Loop, n: int, max_innermost_factor: int = 16, decision: Tile = None, rng: Random | None = None) -> Change:
    """``n`` factors (the decision) whose product is the loop's extent, the last at most ``max_innermost_factor``.

    A decision recorded for another extent is brought to the nearest factors of this one. Of a loop whose extent is no constant the factors are
    None (what is left) and ones.
    """
    node: For = tree.nodes[loop]
    extent = tree.analyzer(node).value(node.extent)
    if not 1 <= n <= MOST_FACTORS or max_innermost_factor < 1:
        refuse(tree, node, f"sample_perfect_tile needs 1 to {MOST_FACTORS} factors and a positive limit of the last, and not {n} and {max_innermost_factor}")
    if extent is None:  # whatever else it is a multiple of is not known
        return Change(tree, [None] + [1] * (n - 1), decision=[1] * n)
    if decision == OPEN:
        rows = tiles(extent, n, max_innermost_factor)
        if not rows:
            refuse(tree, node, f"loop {node.loop_var.name} has no perfect tile of {n} factors, the last at most {max_innermost_factor}")
        return _left_open(tree, tile_decision(_name(tree, node.loop_var.name + "_tile"), extent, rows), many=True)
    assert rng is not None
    factors = _random_tile(extent, n, max_innermost_factor, rng) if decision is None else _fit(extent, [int(d) for d in decision], n)
    return Change(tree, factors, decision=factors)


MOST_FACTORS = 64  # more than any extent has that are not 1
CAN_STAY_OPEN = ("knob", "sample_categorical", "sample_perfect_tile")


def _left_open(tree: Tree, decision: Decision, many: bool) -> Change:
    made = list(decision.variables)
    return Change(tree.with_decision(decision), made if many else made[0], decision=OPEN)


def _name(tree: Tree, hint: str) -> str:
    """``hint``, with a number where a decision has that name."""
    taken = {d.name for d in tree.decisions}
    return next(n for n in (hint, *(f"{hint}{k}" for k in range(1, len(taken) + 2))) if n not in taken)


def divisors(n: int) -> list[int]:
    """All divisors of n > 0, ascending."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return small + [n // d for d in reversed(small) if d * d != n]


def tiles(extent: int, n: int, limit: int) -> list[list[int]]:
    """Every list of ``n`` factors with product ``extent`` and the last at most ``limit``."""
    if n == 1:
        return [[extent]] if extent <= limit else []
    out = []
    for d in divisors(extent):
        if d <= limit:
            out += [[*head, d] for head in tiles(extent // d, n - 1, extent)]
    return out


def _random_tile(extent: int, n: int, limit: int, rng: Random) -> list[int]:
    """Uniform over ways to hand out the extent from the innermost factor on."""
    rest, out = max(extent, 1), []
    for k in range(n - 1):
        options = [d for d in divisors(rest) if k > 0 or d <= limit]
        out.append(rng.choice(options))
        rest //= out[-1]
    return [extent if extent == 0 else rest, *out[::-1]]


def _fit(extent: int, wanted: list[int], n: int) -> list[int]:
    if len(wanted) != n:
        raise ScheduleError(f"a decision of {len(wanted)} factors where {n} are needed")
    rest, out = max(extent, 1), []
    for w in reversed(wanted[1:]):
        out.append(min(divisors(rest), key=lambda d: (abs(d - w), d)))
        rest //= out[-1]
    return [rest, *out[::-1]]


def locations(tree: Tree, block: BlockToken) -> list[Token]:
    """Loops of more than one iteration under which compute_at may put the block, outermost first."""
    users = scopes.consumers(tree, tree.nodes[block])
    if not users:
        return []
    common = [x for x in tree.loops(users[0]) if all(x in tree.loops(u) for u in users)]
    out = []
    for x in common:
        if is_one(x.extent):
            continue
        try:
            move.compute_at(tree, block, x.token)  # type: ignore[arg-type]
        except ScheduleError:
            continue
        out.append(x.token)
    return out  # type: ignore[return-value]


@primitive
def sample_compute_location(tree: Tree, block: BlockToken, decision: Choice = None, rng: Random | None = None) -> Change:
    """A loop for compute_at, -1 (leave the block) or -2 (inline it); the decision is the loop's position, -1 or -2."""
    if decision == OPEN:
        why, hint = "it is part of the program's structure", "sketches(func, rule) makes a sketch for each place"
        refuse(tree, tree.realize(block), "where a block is computed cannot stay open", why, hint)
    found = locations(tree, block)
    if decision is None:
        assert rng is not None
        options = [-1, *range(len(found)), *([] if has_reduction(tree.nodes[block]) else [-2])]
        decision = rng.choice(options)
    decision = int(decision)
    if not -2 <= decision < len(found):
        decision = -1
    return Change(tree, found[decision] if decision >= 0 else decision, decision=decision)
