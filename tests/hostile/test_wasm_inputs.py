# SPDX-License-Identifier: Apache-2.0
"""WebAssembly models that are used wrongly; ``python -m tests.hostile wasm_inputs --count N`` tries as often as one likes."""

from .wasm_inputs import attack


def test_models_in_node_that_are_used_wrongly():
    assert not list(attack(400, seed=5))
