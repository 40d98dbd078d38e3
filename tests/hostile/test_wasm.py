# SPDX-License-Identifier: Apache-2.0
"""A few operators as WebAssembly modules; ``python -m tests.hostile wasm --count N`` tries as many as one likes."""

from .wasm import attack


def test_operators_in_node():
    assert not list(attack(5, seed=5))
