# SPDX-License-Identifier: Apache-2.0
"""Rules for vectors: of whole numbers that may wrap around, and of exact ones (every name stands for an index)."""

from .pattern import rules

WRAPPING = rules("""
min(min(x, broadcast(y, n)), broadcast(z, n)) -> min(x, broadcast(min(y, z), n))
max(max(x, broadcast(y, n)), broadcast(z, n)) -> max(x, broadcast(max(y, z), n))
""")

EXACT = rules("""
ramp(x, s, n) < ramp(y, s, n) -> broadcast(x < y, n)
ramp(x, s, n) <= ramp(y, s, n) -> broadcast(x <= y, n)

# steps that the divisor divides
div(ramp(x, c1, n), broadcast(c2, n)) -> ramp(div(x, c2), div(c1, c2), n) if c2 > 0 and c1 >= 0 and c1 % c2 == 0 and x >= 0
mod(ramp(x, c1, n), broadcast(c2, n)) -> broadcast(mod(x, c2), n) if c2 > 0 and c1 >= 0 and c1 % c2 == 0 and x >= 0
ramp(x, c1, n) // broadcast(c2, n) -> ramp(x // c2, c1 // c2, n) if c2 != 0 and c1 % c2 == 0
ramp(x, c1, n) % broadcast(c2, n) -> broadcast(x % c2, n) if c2 != 0 and c1 % c2 == 0

# all lanes have one quotient
div(ramp(x, c1, n), broadcast(c2, n)) => broadcast(div(x, c2), n) if n > 0 and c2 > 0 and c1 >= 0 and x >= 0 and x % c2 + (n - 1) * c1 < c2
mod(ramp(x, c1, n), broadcast(c2, n)) => ramp(mod(x, c2), c1, n) if n > 0 and c2 > 0 and c1 >= 0 and x >= 0 and x % c2 + (n - 1) * c1 < c2
ramp(x, c1, n) // broadcast(c2, n) => broadcast(x // c2, n) if n > 0 and c2 > 0 and c1 >= 0 and x % c2 + (n - 1) * c1 < c2
ramp(x, c1, n) % broadcast(c2, n) => ramp(x % c2, c1, n) if n > 0 and c2 > 0 and c1 >= 0 and x % c2 + (n - 1) * c1 < c2

# remainders of a multiple of the divisor and a constant
mod(ramp(x * c3 + c4, c1, n), broadcast(c2, n)) -> mod(ramp(c4 % c2, c1, n), broadcast(c2, n)) if c2 > 0 and c3 % c2 == 0 and c1 >= 0 and x * c3 + c4 >= 0
mod(ramp(x * c3, c1, n), broadcast(c2, n)) -> mod(ramp(0, c1, n), broadcast(c2, n)) if c2 > 0 and c3 % c2 == 0 and c1 >= 0 and x * c3 >= 0
ramp(x * c3 + c4, c1, n) % broadcast(c2, n) -> ramp(c4 % c2, c1, n) % broadcast(c2, n) if c2 > 0 and c3 % c2 == 0
ramp(x * c3, c1, n) % broadcast(c2, n) -> ramp(0, c1, n) % broadcast(c2, n) if c2 > 0 and c3 % c2 == 0
""")
