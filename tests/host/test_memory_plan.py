# SPDX-License-Identifier: Apache-2.0
"""The arena: tensors alive at the same time never share a byte, and the plan is no larger than it has to be."""

from hypothesis import given
from hypothesis import strategies as st

from roundel.host.memory_plan import ALIGNMENT, Request, align, plan
from roundel.ir import Var, substitute, tir
from roundel.ir.dtype import INT64


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 20), st.integers(0, 5)), max_size=30))
def test_static_requests_do_not_overlap(items):
    requests = [Request(tir.index_const(n), first, first + more) for n, first, more in items]
    made = plan(requests)
    spans = [(o.value, o.value + r.nbytes.value, r) for o, r in zip(made.offsets, requests, strict=True)]
    assert all(o % ALIGNMENT == 0 and end <= made.total.value for o, end, _ in spans)
    for k, (a, a_end, r) in enumerate(spans):
        for b, b_end, other in spans[:k]:
            assert not r.overlaps(other) or a_end <= b or b_end <= a
    peak = max((sum(align(r.nbytes.value) for r in requests if r.first <= t <= r.last) for t in range(26)), default=0)
    assert made.total.value >= peak


def test_a_chain_needs_two_tensors():
    requests = [Request(tir.index_const(640), k, k + 1) for k in range(10)]
    assert plan(requests).total.value == 2 * 640


@given(st.integers(1, 50))
def test_symbolic_requests_share_slots(n):
    size = Var("n", INT64, True)
    requests = [Request(size * (4 * k), k, k + 1) for k in (1, 2, 3, 4)]
    made = plan(requests)
    at = [int(_value(o, size, n)) for o in made.offsets]
    for k in range(3):
        low, high = sorted((k, k + 1), key=lambda i: at[i])
        assert at[low] + 4 * (low + 1) * n <= at[high]
    assert _value(made.total, size, n) <= 2 * (16 * n + ALIGNMENT)


def _value(e, var, n):
    from roundel.arith import Analyzer

    return Analyzer().simplify(substitute(e, {var: tir.index_const(n)})).value
