# SPDX-License-Identifier: Apache-2.0
"""The rules that propose sketches, in the order in which they are asked: Roundel's own and those that a user registers."""

from __future__ import annotations

from ..ir import extensions
from ..ir.errors import OptionError
from .attention.attention import attention
from .generic.as_written import as_written
from .generic.fallback import fallback
from .generic.generic import generic, generic_padding
from .generic.spatial import spatial
from .pointwise.elementwise import elementwise
from .pointwise.points import points
from .pointwise.transposition import transposition
from .product.accelerated import accelerated
from .product.contraction import contraction
from .product.dot_products import dot_products
from .product.matvec import matvec
from .product.packed_products import packed_products
from .product.pair_products import pair_products
from .product.sliced_products import sliced_products
from .product.tile_products import tile_products
from .reduction.columns import columns
from .reduction.rows import rows
from .reduction.totals import totals
from .sketch import Rule
from .transform.bilinear import bilinear
from .transform.winograd import winograd
from .window.windows import windows

RULES: list[Rule] = [transposition, elementwise, winograd, bilinear, attention, accelerated, tile_products, pair_products, dot_products, packed_products,
                     sliced_products, matvec, contraction, columns, windows, rows, totals, points, generic, generic_padding, spatial, fallback, as_written]
"""Roundel's own. The last two fit every program."""
LAST: list[Rule] = RULES[-1:]
"""What takes no step."""


_registered: list[tuple[Rule, str | None]] = []


def register(rule: Rule, before: str | None = None) -> Rule:
    """Ask a rule of one's own too, from now on and in this process: before the rule named ``before``, by default before all of Roundel's. Of
    several, the last that was registered is asked first.

    Models that are compiled while a rule is registered are not kept in the cache on disk, where another program would find them. Raises
    OptionError where the rule is registered already, where another has its name, and where there is no rule named ``before``.
    """
    names = [r.name for r in rules_in_order()]
    if rule.name in names:
        raise OptionError(f"there is a rule {rule.name!r} already", hint="unregister it first, or give this one another name")
    if before is not None and before not in names:
        raise OptionError(f"there is no rule {before!r}", hint=f"there are {', '.join(names)}")
    _registered.append((rule, before))
    extensions.add(rule)
    return rule


def unregister(rule: Rule) -> None:
    """Ask a registered rule no more. Raises OptionError where it is not registered."""
    found = next((k for k, (r, _) in enumerate(_registered) if r is rule), None)
    if found is None:
        raise OptionError(f"rule {rule.name!r} is not registered")
    del _registered[found]
    extensions.remove(rule)


def rules_in_order() -> list[Rule]:
    """Who may propose: those that were registered, each at its place, and Roundel's own."""
    found = list(RULES)
    for added, before in _registered:
        found.insert(next((k for k, r in enumerate(found) if r.name == before), 0), added)
    return found


def rules_of_users() -> list[Rule]:
    """Those that were registered, the last one first."""
    return [r for r, _ in reversed(_registered)]
