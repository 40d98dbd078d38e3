# SPDX-License-Identifier: Apache-2.0
"""Shape changes and moves of elements."""

from __future__ import annotations

import pytest
from opcheck import T, opcheck

from roundel import te
from roundel.ir import graph
from roundel.ir.errors import TypeInferenceError
from roundel.ops import make

N = {"n": 3}


@pytest.mark.parametrize(
    "dims, shape",
    [
        (("n", 4, 6), (-1, 24)),
        (("n", 4, 6), (0, 0, -1)),
        (("n", 4, 6), (0, 2, 2, 6)),
        (("n", 4, 6), (0, 4, 2, 3)),
        ((2, "n", 6), (-1,)),
        ((1, "n", 1), ("n",)),
        (("n", 12), ("n", 3, 4)),
        ((4, 6), (8, 3)),
        ((0, 3), (3, 0)),
        ((1,), ()),
        ((), (1, 1)),
        ((2, 3, 4, 5), (6, 20)),
        (("n", 2, 5), (5, 2, "n")),
        ((2, "n", 3, 4), (0, 0, -1)),
        (("n", 7), (7, -1)),
    ],
)
def test_reshape(dims, shape):
    values = tuple(shape)
    if any(isinstance(s, str) for s in values):
        opcheck("reshape", T(*dims), lambda n: tuple(n if s == "n" else s for s in shape), dims=N)
    else:
        opcheck("reshape", T(*dims), values, dims=N)


def test_reshape_cancels_symbolic_factors():
    n, m = te.size_var("n"), te.size_var("m")
    x = graph.Var("x", graph.TensorInfo((n, m, 12), "float32"))
    assert make("reshape", x, (n, m, 4, -1)).sinfo.shape[3].value == 3
    assert make("reshape", x, (-1, 12)).sinfo.ndim == 2
    with pytest.raises(TypeInferenceError, match="do not make a shape"):
        make("reshape", x, (n, m, 13))
    with pytest.raises(TypeInferenceError, match="more than one dimension"):
        make("reshape", x, (-1, -1))


def test_other_shape_changes():
    opcheck("flatten", T("n", 2, 3), dims=N)
    opcheck("nn.batch_flatten", T("n", 2, 3), dims=N)
    opcheck("nn.batch_flatten", T("n", 2, 3), dims=N, axis=-1)
    opcheck("nn.batch_flatten", T(3, 2), axis=0)
    opcheck("squeeze", T("n", 1, 3, 1), dims=N)
    opcheck("squeeze", T("n", 1, 3, 1), dims=N, axis=[-1])
    opcheck("expand_dims", T("n", 4), dims=N, axis=[0, -1])
    opcheck("expand_dims", T("n", 4), dims=N, axis=1)
    opcheck("broadcast_to", T("n", 1, 4), lambda n: (2, n, 5, 4), dims=N)
    opcheck("broadcast_to", T("n", 1), (2, -1, 5), dims=N)
    opcheck("shape_to_tensor", lambda n: (n, 4, n * 2), dims=N)


def test_moves():
    opcheck("permute_dims", T("n", 4, 5), dims=N)
    opcheck("permute_dims", T("n", 4, 5), dims=N, axes=(0, -1, 1))
    opcheck("flip", T("n", 4), dims=N, axis=0)
    opcheck("flip", T("n", 4), dims=N, axis=[0, -1])
    opcheck("tile", T("n", 4), (2, 1, 3), dims=N)
    opcheck("tile", T("n", 4, 2), lambda n: (n, 2), dims=N)
    opcheck("repeat", T("n", 4), dims=N, repeats=3, axis=-1)
    opcheck("repeat", T("n", 4), dims=N, repeats=2)
    opcheck("roll", T("n", 4), dims=N, shift=(1, -6), axis=(0, 1))
    opcheck("roll", T("n", 4), dims=N, shift=2, axis=0)
    for name in ("tril", "triu"):
        for k in (-2, 0, 1):
            opcheck(name, T("n", 4, 5, dtype="int32"), dims=N, k=k)


def test_concat_split_stack():
    opcheck("concat", (T("n", 4), T("n", 1), T("n", 0), T("n", 3)), dims=N, axis=-1)
    opcheck("concat", (T("n", 4), T("m", 4)), dims={"n": 3, "m": 5}, axis=0)
    opcheck("concat", (T(5, dtype="bool"),), axis=0)
    opcheck("stack", (T("n", 4), T("n", 4)), dims=N, axis=1)
    opcheck("stack", (T("n", 4), T("n", 4), T("n", 4)), dims=N, axis=-1)
    opcheck("split", T("n", 7), dims=N, indices_or_sections=3, axis=1)
    opcheck("split", T("n", 7), dims=N, indices_or_sections=(2, 2, 5), axis=-1)
    opcheck("split", T(2, "n"), dims={"n": 6}, indices_or_sections=2, axis=1)
    opcheck("split", T(2, "n"), dims={"n": 6}, indices_or_sections=(2,), axis=1)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks(mode):
    opcheck("depth_to_space", T("n", 12, 3, 5), dims=N, block_size=2, mode=mode)
    opcheck("space_to_depth", T("n", 3, 4, 6), dims=N, block_size=2, mode=mode)


def test_misuse():
    n = te.size_var("n")
    x = graph.Var("x", graph.TensorInfo((n, 4), "float32"))
    for call, message in (
        (lambda: make("concat", (x, x), axis=2), "out of range"),
        (lambda: make("squeeze", x, axis=1), "is 4, not 1"),
        (lambda: make("permute_dims", x, axes=(0, 0)), "repeated"),
        (lambda: make("broadcast_to", x, (n, 5)), "does not broadcast"),
    ):
        with pytest.raises(TypeInferenceError, match=message):
            call()
