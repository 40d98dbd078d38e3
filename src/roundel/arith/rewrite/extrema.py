# SPDX-License-Identifier: Apache-2.0
"""Rules for minima and maxima of exact integers; those that hold of either are written once."""

from .pattern import mirrored, rules

_EITHER = """
min(x, x) -> x
min(max(x, y), min(x, y)) ; min(max(x, y), min(y, x)) ; min(min(x, y), max(x, y)) ; min(min(x, y), max(y, x)) -> min(x, y)
min(min(x, y), x) ; min(min(x, y), y) ; min(x, min(x, y)) ; min(y, min(x, y)) -> min(x, y)
~ min(max(x, y), x) -> x
~ min(max(x, y), max(x, z)) -> max(min(y, z), x)
~ min(min(x, y), min(x, z)) -> min(min(y, z), x)
~ min(y + x, z + x) -> min(y, z) + x
min(y - x, z - x) -> min(y, z) - x
min(x - y, x - z) -> x - max(y, z)
min(min(x, c1), c2) -> min(x, min(c1, c2))
min(quot(x, c1), quot(y, c1)) -> quot(min(x, y), c1) if c1 > 0
min(quot(x, c1), quot(y, c1)) -> quot(max(x, y), c1) if c1 < 0
min(x * c1, y * c1) -> min(x, y) * c1 if c1 > 0
min(x * c1, y * c1) -> max(x, y) * c1 if c1 < 0
min(x * c1, c2) -> min(x, c2 // c1) * c1 if c1 > 0 and c2 % c1 == 0
min(x * c1, c2) -> max(x, c2 // c1) * c1 if c1 < 0 and c2 % c1 == 0
min(min(x, c1), y) => min(min(x, y), c1)
min(c1 - x, c2) => c1 - max(x, c1 - c2) if c2 != 0
min(select(b, x, y), select(b, z, w)) -> select(b, min(x, z), min(y, w))
"""

MINIMUM = (
    *rules("""
~ min(quot(x + c1, c2) * c2, x) -> x if c2 > 0 and c1 + 1 == c2
~ min(quot(x + c1, c2) * c2, max(x, c2)) -> max(x, c2) if c2 > 0 and c1 + 1 == c2 and x >= 1
~ min(x // c2 * c2, x) -> x // c2 * c2 if c2 > 0
"""),
    *rules(_EITHER),
)

MAXIMUM = (
    *rules("""
~ max(quot(x + c1, c2) * c2, x) -> quot(x + c1, c2) * c2 if c2 > 0 and c1 + 1 == c2
~ max(x // c2 * c2, x) -> x if c2 > 0
"""),
    *rules(mirrored(_EITHER)),
)
