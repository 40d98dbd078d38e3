# SPDX-License-Identifier: Apache-2.0
"""Proofs with symbolic extents, and what simplification makes of the expressions that schedules leave behind."""

import pytest

from roundel.arith import Analyzer
from roundel.ir import decl_buffer, tir
from roundel.ir.dtype import INT64
from roundel.ir.tir import Range, Var, ceildiv, eq, floordiv, floormod, index_const, max_, min_

I, J, K, T, U = (Var(name, INT64) for name in "ijktu")
N, M, H = (Var(name, INT64, True) for name in "nmh")


def simplified(an, pairs):
    for e, expected in pairs:
        assert an.simplify(e) is an.simplify(expected), (e, an.simplify(e))


def test_size_variables_are_not_negative():
    an = Analyzer()
    assert an.prove(N * 4 >= 0) and an.prove(N * M >= 0) and not an.prove(N >= 1)
    assert an.simplify(max_(N, 0)) is N


def test_quotient_and_remainder_meet():
    an = Analyzer({I: Range.of(16), J: Range.of(8)})
    simplified(
        an,
        [
            ((I * 8 + J) // 8, I),
            ((I * 8 + J) % 8, J),
            ((I // 4) * 4 + I % 4, I),
            (I - (I // 4) * 4, I % 4),
            ((I * 8 + J) // 16 * 16 + (I * 8 + J) % 16, I * 8 + J),
            (I // 4 % 2 * 4 + I % 4, I % 8),
            (I // 4 // 2, I // 8),
            (I % 8 // 4, I // 4 % 2),
            (I % 8 % 4, I % 4),
            ((I * 2 + 1) // 4, I // 2),
            ((I * 2 + 1) % 4, (I % 2) * 2 + 1),
        ],
    )


def test_symbolic_divisors():
    an = Analyzer({I: Range.of(N), J: Range.of(H), K: Range.of(M)})
    flat = (I * H + J) * M + K
    simplified(
        an,
        [
            (flat // M % H, J),
            (flat // (M * H), I),
            (flat % M, K),
            (flat // (H * M) * H + flat // M % H, I * H + J),
            (flat // (M * H * 4), I // 4),
            ((N * M + M) // M, N + 1),
            ((K * (M + 1) + J) // (M + 1) * (M + 1) + (K * (M + 1) + J) % (M + 1), K * (M + 1) + J),
        ],
    )
    assert an.prove(flat < N * H * M) and an.prove(flat // M < N * H)


def test_the_lesser_of_two_is_at_most_half_of_their_sum():
    an = Analyzer()
    assert an.prove(min_(I, N * 2 - 1 - I) < N) and an.prove(min_(I, 7 - I) <= 3) and not an.prove(min_(I, N * 2 - I) < N)


def test_tiles_of_a_symbolic_extent():
    an = Analyzer({I: Range.of(ceildiv(N, 16)), J: Range.of(16)})
    assert an.prove(ceildiv(N, 16) * 16 >= N) and an.prove(ceildiv(N, 16) * 16 - N < 16) and an.prove(I * 16 < N)
    assert an.prove(min_(N - I * 16, 16) >= 1) and an.prove(I * 16 + min_(N - I * 16, 16) <= N)
    assert not an.prove(I * 16 + J < N)
    with an.constraint(I * 16 + J < N):
        assert an.prove(I * 16 + J <= N - 1)
        simplified(an, [(min_(I * 16 + J, N - 1), I * 16 + J), (tir.if_then_else(J < N - I * 16, J, 0), J)])
    assert not an.prove(I * 16 + J < N)


def test_fused_loops_that_are_split():
    an = Analyzer({I: Range.of(ceildiv(N * M, 16)), J: Range.of(16)})
    f = I * 16 + J
    with an.constraint(f < N * M):
        assert an.prove(f // M < N) and an.prove(f % M < M) and an.prove(f // M >= 0)
    simplified(an, [(f // M * M + f % M, f)])


def test_divisibility():
    an = Analyzer()
    with an.constraint(eq(N % 8, 0)):
        simplified(an, [(N // 4 * 4, N), (N % 4, 0), (ceildiv(N, 4) * 4, N), ((N + J * 8) % 2, 0)])
    with an.constraint(eq(N, M * 4)):
        simplified(an, [(N // 4, M), (N % 4, 0), (N - M * 4, 0)])
    assert an.simplify(N % 4) is not an.simplify(index_const(0))


def test_balanced_split():
    a, b = Var("a", INT64, True), Var("b", INT64, True)
    an = Analyzer()
    an.assume(eq(N, 6 * a + 5 * b))
    an.bind(I, Range.of(a))
    an.bind(J, Range.of(b))
    assert an.prove(I * 6 + 5 < N) and an.prove(a * 6 + J * 5 + 4 < N)


def test_symbolic_factors():
    """Decisions of a sketch: t divides 512 and u divides 512 / t."""
    an = Analyzer({T: Range(index_const(1), index_const(512)), U: Range(index_const(1), index_const(512))})
    an.assume(eq(floormod(512, T), 0))
    an.assume(eq(floormod(floordiv(512, T), U), 0))
    an.bind(I, Range.of(floordiv(512, T)))
    an.bind(J, Range.of(T))
    simplified(
        an,
        [
            (floordiv(512, T) * T, 512),
            (floordiv(floordiv(512, T), U) * U * T, 512),
            ((I * T + J) // T, I),
            ((I * T + J) % T, J),
        ],
    )
    assert an.prove(I * T + J < 512)


@pytest.mark.parametrize(
    "a, b",
    [
        ((N * 5 + 3) // 4, N + (N + 3) // 4),
        (ceildiv(ceildiv(N, 2), 2), ceildiv(N, 4)),
        ((N + 2 - 3) // 2 + 1, (N - 1) // 2 + 1),
        (N // 16 * 16 + N % 16, N),
        ((N + 1) * (M + 1) - 1, N * M + N + M),
        (N - N % 4, N // 4 * 4),
        (min_(N, M) + max_(N, M), N + M),
    ],
)
def test_equal(a, b):
    assert Analyzer().prove_equal(a, b)


@pytest.mark.parametrize("a, b", [(N, M), (N // 2 * 2, N), (N * M, N), (ceildiv(N, 2), N // 2), (N % 4, 0)])
def test_not_equal(a, b):
    assert not Analyzer().prove_equal(a, b)


def test_conditions():
    an = Analyzer({I: Range.of(8), J: Range.of(4)})
    simplified(
        an,
        [
            (tir.logical_and(I < 5, I < 3), I < 3),
            (tir.logical_or(I < 5, I >= 5), tir.const(True)),
            (I * 4 + J < 16, I < 4),
            (tir.logical_not(tir.logical_and(I < 5, J < 2)), tir.logical_or(I >= 5, J >= 2)),
            (eq(I * 4 + J, 0), tir.logical_and(eq(I, 0), eq(J, 0))),
            (tir.logical_and(I < 2, I > 4), tir.const(False)),
            (I // 2 < 3, I < 6),
            (I * 2 < 7, I < 4),
            (eq(I * 2, 7), tir.const(False)),
        ],
    )


def test_conditions_on_memory_are_not_kept():
    a = decl_buffer((8,), "int64", "a")
    an = Analyzer()
    with an.constraint(eq(a[0], 3)):
        assert type(an.simplify(eq(a[0], 3))) is tir.EQ


def test_scopes_end():
    an = Analyzer()
    with an.scope():
        an.bind(I, 3)
        assert an.value(I + 1) == 4
    assert an.simplify(I) is I


def test_int32_indices_widen():
    x = Var("x", tir.IntImm(0, "int32").dtype)
    an = Analyzer({x: Range(tir.IntImm(0, "int32"), tir.IntImm(8, "int32"))})
    wide = tir.cast(x, "int64")
    assert an.bounds(wide * 4 + 3) == (3, 31)
    assert an.simplify((wide * 8 + 3) // 8) is wide
    assert an.simplify(tir.cast(x * 4 + 1, "int64")) is an.simplify(wide * 4 + 1)


def test_a_condition_that_holds_again_knows_what_was_bound_since():
    an = Analyzer({I: Range(index_const(0), N)})
    for _ in range(2):
        with an.constraint(I < 8):
            assert an.prove(I <= 7) and not an.prove(J < 4)
            with an.constraint(J < 4):
                assert an.prove(J + I < 11)
    an.bind(J, Range.of(4))
    with an.constraint(I < 8):
        assert an.prove(J < 4)
        an.bind(K, 5)
        an.assume(N < 3)
        assert an.value(K) == 5 and an.prove(I < 2)
    with an.constraint(I < 8):
        assert an.value(K) is None and not an.prove(I < 2)
    assert not an.prove(I < 8)


def test_products_are_greatest_at_a_corner():
    x, y, z = (Var(n, INT64) for n in "xyz")
    an = Analyzer()
    for v in (x, y, z):
        an.bind(v, Range(tir.index_const(1), tir.index_const(15)))
    assert an.prove(x * y < (x + y) * 8)
    assert an.prove(x * y * z < (x * y + y * z + z * x) * 6)
    assert not an.prove(x * y < (x + y) * 7)
    assert not an.prove(x * x * y < x * y * 15)
