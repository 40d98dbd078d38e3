# SPDX-License-Identifier: Apache-2.0
"""Rules for comparisons of exact integers and for what is made of them. ``a <= b`` follows the rules of ``not b < a``."""

from .pattern import rules

EQUAL = rules("""
c1 == x => x == c1
x - c1 == c2 -> x == c2 + c1
c1 - x == c2 -> x == c1 - c2
x + c1 == c2 -> x == c2 - c1
x * y == 0 => x == 0 or y == 0
x == x -> True
""")

LESS = rules("""
~ x + y < x + z -> y < z
y - x < z - x -> y < z
x - y < x - z -> z < y
~ x < x + z -> 0 < z
x < x - z -> z < 0
~ x + z < x -> z < 0
x - z < x -> 0 < z
x * c1 < y * c1 -> x < y if c1 > 0
x * c1 < y * c1 -> y < x if c1 < 0

# a multiple or a quotient against a constant
x * c2 < c1 -> x < 0 - (0 - c1) // c2 if c2 > 0
x * c2 < c1 -> c1 // c2 < x if c2 < 0
c1 < x * c2 -> c1 // c2 < x if c2 > 0
c1 < x * c2 -> x < 0 - (0 - c1) // c2 if c2 < 0
div(x, c1) < c2 -> x < c1 * c2 if c1 > 0 and c2 > 0
div(x, c1) < c2 -> x < c1 * (c2 - 1) + 1 if c1 > 0 and c2 <= 0
c1 < div(x, c2) -> (c1 + 1) * c2 - 1 < x if c1 >= 0 and c2 > 0
c1 < div(x, c2) -> c1 * c2 < x if c1 < 0 and c2 > 0
x // c1 < c2 -> x < c1 * c2 if c1 > 0
c1 < x // c2 -> (c1 + 1) * c2 - 1 < x if c2 > 0

# a multiple of the quotient against the dividend: the remainder tells
quot(x, c1) * c1 < x -> 0 < rem(x, c1) if c1 != 0
x < quot(x, c1) * c1 -> rem(x, c1) < 0 if c1 != 0
quot(x, c1) * c1 < x + y ; quot(x, c1) * c1 < y + x -> 0 < rem(x, c1) + y if c1 != 0
quot(x, c1) * c1 < x - y ; quot(x, c1) * c1 + y < x ; y + quot(x, c1) * c1 < x -> y < rem(x, c1) if c1 != 0
quot(x + c2, c1) * c1 < x -> c2 < rem(x + c2, c1) if c1 != 0
quot(x + c2, c1) * c1 < x + y ; quot(x + c2, c1) * c1 < y + x -> c2 < rem(x + c2, c1) + y if c1 != 0
quot(x + c2, c1) * c1 < x - y -> y < rem(x + c2, c1) + (0 - c2) if c1 != 0

min(x, y) < z => x < z or y < z
max(x, y) < z => x < z and y < z
z < min(x, y) => z < x and z < y
z < max(x, y) => z < x or z < y

# constants on one side
c1 < x + c2 ; c1 - x < c2 => c1 - c2 < x
c1 < c2 - x ; x + c1 < c2 => x < c2 - c1
c1 < x - c2 => c1 + c2 < x
x - c2 < c1 => x < c1 + c2
x < c1 - y => x + y < c1
c1 - y < x => c1 < x + y
""")

NOT = rules("""
not not p -> p
not x <= y -> y < x
not x >= y -> x < y
not x < y -> y <= x
not x > y -> x <= y
not x == y -> x != y
not x != y -> x == y
not (p or q) => (not p) and (not q)
not (p and q) => (not p) or (not q)
""")

AND = rules("""
~ p and not p -> False
p and p -> p
~ x == y and x != y -> False
~ x <= y and y < x -> False
~ x < c1 and c2 < x -> False if c2 + 1 >= c1
~ x < c1 and c2 <= x ; x <= c1 and c2 < x -> False if c2 >= c1
~ x <= c1 and c2 <= x -> False if c2 > c1
x == c1 and x == c2 -> x == c1 and c1 == c2
~ x == c1 and x != c2 -> x == c1 and c1 != c2

# what a quotient and a remainder say of the dividend
~ x // c2 == c1 and x % c2 == c3 => x == c1 * c2 + c3 if c2 > 0 and c3 >= 0 and c3 < c2
~ x // c2 == c1 and x % c2 < c3 => c1 * c2 <= x and x < c1 * c2 + c3 if c2 > 0 and c3 <= c2
~ x // c2 == c1 and x % c2 <= c3 => c1 * c2 <= x and x <= c1 * c2 + c3 if c2 > 0 and c3 < c2
~ x // c2 == c1 and c3 <= x % c2 => c1 * c2 + c3 <= x and x < (c1 + 1) * c2 if c2 > 0 and c3 >= 0
~ x // c2 == c1 and c3 < x % c2 => c1 * c2 + c3 < x and x < (c1 + 1) * c2 if c2 > 0 and c3 >= 0
~ 0 <= x + y * c2 and x + y * c2 < c1 => y == x // c1 if c1 > 0 and c2 == 0 - c1
x < c1 and x % c2 < c3 => x < c1 - c2 + c3 and x % c2 < c3 if c2 > 0 and c1 % c2 == 0 and c3 >= 0 and c3 < c2
x < c1 and x % c2 < c3 => x < c1 - c1 % c2 + c3 and x % c2 < c3 if c2 > 0 and c1 % c2 > c3 and c3 >= 0
x <= c1 and x % c2 < c3 => x < c1 + 1 - c2 + c3 and x % c2 < c3 if c2 > 0 and (c1 + 1) % c2 == 0 and c3 >= 0 and c3 < c2
x <= c1 and x % c2 < c3 => x < c1 + 1 - (c1 + 1) % c2 + c3 and x % c2 < c3 if c2 > 0 and (c1 + 1) % c2 > c3 and c3 >= 0
p and (q and r) => (p and q) and r
""")

OR = rules("""
~ p or not p -> True
p or p -> p
~ x == y or x != y -> True
~ x <= y or y < x -> True
x < y or y < x -> x != y
~ x < c1 or c2 < x -> True if c2 < c1
~ x <= c1 or c2 < x ; x < c1 or c2 <= x -> True if c2 <= c1
~ x <= c1 or c2 <= x -> True if c2 <= c1 + 1
x != c1 or x != c2 -> x != c1 or c1 != c2
~ x != c1 or x == c2 -> x != c1 or c1 == c2
~ x < y or x == y => x <= y
p or (q or r) => (p or q) or r
""")

CHOICE = rules("""
select(p, x, x) -> x
if_then_else(p, x, x) -> x
if_then_else(p, if_then_else(q, x, y), y) -> if_then_else(p and q, x, y)
""")
