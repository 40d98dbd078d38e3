# SPDX-License-Identifier: Apache-2.0
"""Rules for sums, differences and products of exact integers."""

from .pattern import mirrored, rules

_EXTREMA_IN_SUMS = """
min(x, y - z) + z -> min(x + z, y)
min(x - z, y) + z -> min(x, y + z)
~ min(x, y + z * c1) + z * c2 -> min(x + z * c2, y) if c1 == 0 - c2
min(x, y + c1) + c2 -> min(x + c2, y) if c1 == 0 - c2
min(x + c1, y) + c2 -> min(x, y + c2) if c1 == 0 - c2
"""

_EXTREMA_IN_DIFFERENCES = """
min(x, y) - y ; x - max(y, x) -> min(x - y, 0)
x - max(x, y) ; min(y, x) - y -> min(0, x - y)
min(x + y, z) - x ; min(y + x, z) - x -> min(y, z - x)
min(z, x + y) - x ; min(z, y + x) - x -> min(z - x, y)
x - min(x + y, z) ; x - min(y + x, z) -> max(0 - y, x - z)
x - min(z, x + y) ; x - min(z, y + x) -> max(x - z, 0 - y)
~ min(x, y) - min(x, y) -> 0
~ min(x, y) - min(z, w) -> x - z if x - z == y - w
"""

ADD = (
    *rules("""
~ (c1 - x) + c2 -> (c1 + c2) - x
c1 + x => x + c1
~ (x - y) + y -> x
~ (x - y) + (y - z) -> x - z
"""),
    *rules(_EXTREMA_IN_SUMS),
    *rules(mirrored(_EXTREMA_IN_SUMS)),
    *rules("""
~ max(x, y) + min(x, y) -> x + y
(x + c1) + c2 -> x + (c1 + c2)
(x - c1) + c2 -> x + (c2 - c1)
x + x -> x * 2
~ x * y + x => (y + 1) * x
~ x * y + x * z => (y + z) * x

~ quot(x, y) * y + rem(x, y) -> x
~ (x % c2 + c1) // c2 + x // c2 -> (x + c1) // c2 if c2 > 0
~ x // 2 + x % 2 => (x + 1) // 2
~ (x + c1) % 2 + x % 2 -> 1 if c1 % 2 == 1

# constants last, minima and maxima first, quotients before remainders
~ x + (c1 - y) => (x - y) + c1
(x + c1) + y ; x + (c1 + y) ; x + (y + c1) => (x + y) + c1
x + max(y, z) => max(y, z) + x
x + min(y, z) => min(y, z) + x
rem(y, c1) + x * c1 => x * c1 + rem(y, c1)

select(b, x, y) + select(b, z, w) -> select(b, x + z, y + w)
"""),
)

SUBTRACT = (
    *rules("""
~ (x + y) - y -> x
~ x - (y + x) -> 0 - y
"""),
    *rules(_EXTREMA_IN_DIFFERENCES),
    *rules(mirrored(_EXTREMA_IN_DIFFERENCES)),
    *rules("""
x - x -> 0
~ x * y - x => (y - 1) * x
~ x - x * y => (1 - y) * x
~ x * y - x * z => (y - z) * x
(x + c1) - c2 -> x + (c1 - c2)
(c1 - x) - c2 -> (c1 - c2) - x
c1 - (c2 - x) -> x + (c1 - c2)
c1 - (x + c2) -> (c1 - c2) - x
(c1 - x) - (c2 - y) => (y - x) + (c1 - c2)
~ (x + y) - (x + z) -> y - z

# a dividend less its quotient times the divisor is the remainder
x - quot(x, c1) * c1 -> rem(x, c1) if c1 != 0
quot(x, c1) * c1 - x -> 0 - rem(x, c1) if c1 != 0
x - quot(x + y, c1) * c1 ; x - quot(y + x, c1) * c1 -> rem(x + y, c1) - y if c1 != 0
quot(x + y, c1) * c1 - x ; quot(y + x, c1) * c1 - x -> y - rem(x + y, c1) if c1 != 0
x - quot(x - y, c1) * c1 -> rem(x - y, c1) + y if c1 != 0
quot(x - y, c1) * c1 - x -> 0 - rem(x - y, c1) - y if c1 != 0
x * c2 - quot(x, c1) * c3 -> rem(x, c1) * c2 if c1 != 0 and c3 == c1 * c2
quot(x, c1) * c3 - x * c2 -> 0 - rem(x, c1) * c2 if c1 != 0 and c3 == c1 * c2
x * c2 - quot(x + y, c1) * c3 ; x * c2 - quot(y + x, c1) * c3 -> (rem(x + y, c1) - y) * c2 if c1 != 0 and c3 == c1 * c2
quot(x + y, c1) * c3 - x * c2 ; quot(y + x, c1) * c3 - x * c2 -> (y - rem(x + y, c1)) * c2 if c1 != 0 and c3 == c1 * c2
x * c2 - quot(x - y, c1) * c3 -> (rem(x - y, c1) + y) * c2 if c1 != 0 and c3 == c1 * c2
quot(x - y, c1) * c3 - x * c2 -> (0 - rem(x - y, c1) - y) * c2 if c1 != 0 and c3 == c1 * c2

# quotients of what differs by a constant
div(x + c1, c3) - div(x + c2, c3) -> div(mod(x + c2 % c3, c3) + (c1 - c2), c3) if c3 > 0 and c1 >= c2 and x + c2 >= 0 and x + c2 % c3 >= 0
div(x + c1, c3) - div(x, c3) -> div(mod(x, c3) + c1, c3) if c3 > 0 and c1 >= 0 and x >= 0
(x + c1) // 2 - (x + c2) // 2 => x % 2 * (c1 % 2 - c2 % 2) + (c1 // 2 - c2 // 2)
x // 2 - (x + c2) // 2 => x % 2 * (0 - c2 % 2) - c2 // 2
(x + c1) // 2 - x // 2 => x % 2 * (c1 % 2) + c1 // 2
(x + 1) // 2 - x % 2 => x // 2
(x + c1) // c3 - (x + c2) // c3 -> ((x + c2 % c3) % c3 + (c1 - c2)) // c3 if c3 > 0
(x + c1) // c3 - x // c3 -> (x % c3 + c1) // c3 if c3 > 0

# sums rather than differences, constants last
x - c1 -> x + (0 - c1)
(x + c1) - y => (x - y) + c1
x - (y + c1) => (x - y) + (0 - c1)
x - (y - z) => (x + z) - y
x - y * c1 => x + y * (0 - c1)

select(b, x, y) - select(b, z, w) -> select(b, x - z, y - w)
select(b, x, y) - y -> select(b, x - y, 0)
select(b, x, y) - x -> select(b, 0, y - x)
"""),
)

MULTIPLY = rules("""
(x + c1) * c2 -> x * c2 + c1 * c2
(x * c1) * c2 -> x * (c1 * c2)
~ min(x, y) * max(x, y) -> x * y
((x - x % c2) // c1) * c1 -> x - x % c2 if c1 != 0 and (c1 == c2 or c1 == 0 - c2)
x * (c1 * y) ; x * (y * c1) => (x * y) * c1
c1 * x => x * c1
(x - y) * c1 => (y - x) * (0 - c1) if c1 < 0
""")
