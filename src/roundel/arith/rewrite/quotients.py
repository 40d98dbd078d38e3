# SPDX-License-Identifier: Apache-2.0
"""Rules for quotients and remainders of exact integers, rounded down or toward zero. A divisor is never 0 where a quotient has a value."""

from .pattern import mirrored, rules

_TRUNCATED_EXTREMA = """
div(min(x * c1, y), c2) -> min(x * div(c1, c2), div(y, c2)) if c1 >= 0 and c2 > 0 and c1 % c2 == 0 and x >= 0 and y >= 0
div(min(y, x * c1), c2) -> min(div(y, c2), x * div(c1, c2)) if c1 >= 0 and c2 > 0 and c1 % c2 == 0 and x >= 0 and y >= 0
"""

_FLOOR_EXTREMA = """
min(x * c1, y) // c2 -> min(x * (c1 // c2), y // c2) if c2 > 0 and c1 % c2 == 0
min(y, x * c1) // c2 -> min(y // c2, x * (c1 // c2)) if c2 > 0 and c1 % c2 == 0
"""

# toward zero: most hold of what is not negative
TRUNCATED_QUOTIENT = (
    *rules("""
div(div(x, c1), c2) -> div(x, c1 * c2) if c1 > 0 and c2 > 0
div(div(x, c1) + c2, c3) -> div(x + c1 * c2, c1 * c3) if c1 > 0 and c2 >= 0 and c3 > 0 and x >= 0
div(x * c1, c2) -> x * div(c1, c2) if c2 != 0 and c1 % c2 == 0
div(x * c1, c2) -> div(x, div(c2, c1)) if c1 > 0 and c2 > 0 and c2 % c1 == 0
div(x, x) -> 1
~ div(x * y, y) -> x
div(x * c1 + y, c2) -> x * div(c1, c2) + div(y, c2) if c1 >= 0 and c2 > 0 and c1 % c2 == 0 and x >= 0 and y >= 0
div(y + x * c1, c2) -> div(y, c2) + x * div(c1, c2) if c1 >= 0 and c2 > 0 and c1 % c2 == 0 and x >= 0 and y >= 0
"""),
    *rules(_TRUNCATED_EXTREMA),
    *rules(mirrored(_TRUNCATED_EXTREMA)),
    *rules("""
div(x * c1 + y + z, c2) ; div(y + x * c1 + z, c2) -> x * div(c1, c2) + div(y + z, c2) if c1 >= 0 and c2 > 0 and c1 % c2 == 0 and x >= 0 and y + z >= 0
div(x * c1 - y + z, c2) -> x * div(c1, c2) + div(z - y, c2) if c1 >= 0 and c2 > 0 and c1 % c2 == 0 and x >= 0 and z - y >= 0
div(x * c1 + y - z, c2) -> x * div(c1, c2) + div(y - z, c2) if c1 >= 0 and c2 > 0 and c1 % c2 == 0 and x >= 0 and y - z >= 0
div(x + c1, c2) -> div(x, c2) + div(c1, c2) if c1 > 0 and c2 > 0 and c1 % c2 == 0 and x >= 0
~ div(x + y, x) -> div(y, x) + 1 if x >= 0 and y >= 0
div((x + y) + z, x) ; div((y + x) + z, x) ; div(y + (z + x), x) ; div(y + (x + z), x) -> div(y + z, x) + 1 if x >= 0 and y + z >= 0
div(x * z + y, z) ; div(z * x + y, z) -> x + div(y, z) if x >= 0 and y >= 0 and z >= 0
div(y + x * z, z) ; div(y + z * x, z) -> div(y, z) + x if x >= 0 and y >= 0 and z >= 0
"""),
)

TRUNCATED_REMAINDER = rules("""
mod(x * c1, c2) -> 0 if c2 != 0 and c1 % c2 == 0
~ mod(x * y, y) -> 0
~ mod(x * c1, y * c2) => mod(x, y * div(c2, c1)) * c1 if c1 > 1 and c2 % c1 == 0
mod(x * c1 + y, c2) -> mod(y, c2) if c2 > 0 and c1 % c2 == 0 and x * c1 >= 0 and y >= 0
mod(x + c1, c2) -> mod(x, c2) if c2 > 0 and c1 >= 0 and c1 % c2 == 0 and x >= 0
mod(x + y * c1, c2) -> mod(x, c2) if c2 > 0 and c1 % c2 == 0 and x >= 0 and y * c1 >= 0
mod(x, c1) => mod(x, 0 - c1) if c1 < 0
""")

FLOOR_QUOTIENT = (
    *rules("""
x // c1 // c2 -> x // (c1 * c2) if c1 > 0 and c2 > 0
(x // c1 + c2) // c3 -> (x + c1 * c2) // (c1 * c3) if c1 > 0 and c3 > 0
x // x -> 1
~ (x * y) // y -> x
(x % 2 + 1) // 2 -> x % 2
"""),
    *rules(_FLOOR_EXTREMA),
    *rules(mirrored(_FLOOR_EXTREMA)),
    *rules("""
(x * c1 + y + z) // c2 ; (y + x * c1 + z) // c2 -> x * (c1 // c2) + (y + z) // c2 if c2 > 0 and c1 % c2 == 0
(x * c1 + y + z) // c2 -> x // (c2 // c1) if c1 > 0 and c2 > 0 and c2 % c1 == 0 and y + z >= 0 and y + z < c1
(x * c1 - y + z) // c2 ; (x * c1 + z - y) // c2 -> x * (c1 // c2) + (z - y) // c2 if c2 > 0 and c1 % c2 == 0
(x + c1) // c2 -> x // c2 + c1 // c2 if c2 > 0 and c1 % c2 == 0
(x * c1) // (x * c2) -> c1 // c2 if c2 > 0
~ (x + y) // x -> y // x + 1
((x + y) + z) // x ; ((y + x) + z) // x ; (y + (z + x)) // x ; (y + (x + z)) // x -> (y + z) // x + 1
(x * z + y) // z ; (z * x + y) // z -> x + y // z
(y + x * z) // z ; (y + z * x) // z -> y // z + x
(x * z * c1 + y) // (z * c1) -> x + y // (z * c1)
(x - x % c1) // c1 -> x // c1 if c1 != 0
"""),
)

FLOOR_REMAINDER = rules("""
(x * c1) % c2 -> (x * (c1 % c2)) % c2 if c2 != 0 and c1 % c2 != c1
(x * c1 + y) % c2 -> x % (c2 // c1) * c1 + y if c1 > 0 and c2 > 0 and c2 % c1 == 0 and y >= 0 and y < c1
(x * c1 + y) % c2 ; (y + x * c1) % c2 -> y % c2 if c2 > 0 and c1 % c2 == 0
(x * c1 + y) % c2 -> (x * (c1 % c2) + y) % c2 if c2 > 0 and c1 % c2 != c1
(x + c1) % c2 -> (x + c1 % c2) % c2 if c2 > 0 and c1 % c2 != c1
(x + y * c1) % c2 -> (x + y * (c1 % c2)) % c2 if c2 > 0 and c1 % c2 != c1
(x * c1) % (x * c2) -> x * (c1 % c2) if c2 != 0
~ (x * y) % y -> 0
~ (x + z % y) % y -> 0 if (x + z) % y == 0
(x - x % y) % y ; (x % y - x) % y -> 0
(x - x % z) % y ; (x % z - x) % y -> 0 if y + z == 0
(x * z * c1 + y) % (z * c1) -> y % (z * c1)
""")
