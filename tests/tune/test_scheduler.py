# SPDX-License-Identifier: Apache-2.0
"""The task that promises to save the most time is next."""

from roundel.tune.scheduler import Share, choose_task


def test_new_tasks_come_first_the_longest_before_others():
    shares = [Share(1, 1.0), Share(1, 5.0), Share(4, 2.0)]
    order = []
    while len(order) < 3:
        order.append(choose_task(shares))
        shares[order[-1]].tell(shares[order[-1]].seconds)
    assert order == [2, 1, 0]


def test_a_new_task_that_takes_next_to_nothing_does_not_come_first():
    shares = [Share(1, 1.0), Share(1, 1e-5)]
    shares[0].tell(1.0)
    assert choose_task(shares) == 0


def test_a_task_that_gains_is_worked_on_again():
    shares = [Share(1, 1.0), Share(1, 1.0)]
    for _ in range(6):
        shares[0].tell(shares[0].seconds)
        shares[1].tell(shares[1].seconds * 0.9)
    assert choose_task(shares) == 1


def test_no_task_is_forgotten():
    shares = [Share(1, 1.0), Share(1, 0.1)]
    for _ in range(200):
        k = choose_task(shares)
        shares[k].tell(shares[k].seconds)
    assert all(len(s.bests) >= 20 for s in shares)


def test_nothing_is_left_when_all_are_done():
    assert choose_task([Share(1, 1.0, is_done=True)]) is None and choose_task([]) is None
