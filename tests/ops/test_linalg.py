# SPDX-License-Identifier: Apache-2.0
"""Factorisations of matrices and orthogonal polynomials."""

from __future__ import annotations

import numpy as np
import pytest
from opcheck import T, opcheck

from roundel.ops.polynomials import KINDS


def square(n, *batch, seed=0):
    return np.random.default_rng(seed).standard_normal((*batch, n, n))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_cholesky(n):
    a = square(n, 2)
    a = a @ a.swapaxes(-1, -2) + np.eye(n)
    low, info = opcheck("linalg.cholesky", T(values=a, dtype="float64"))
    assert not info.any()
    np.testing.assert_allclose(low, np.linalg.cholesky(a), rtol=1e-8)


def test_cholesky_of_an_indefinite_matrix_tells_the_minor():
    low, info = opcheck("linalg.cholesky", T(values=np.diag([1.0, -1.0, 2.0]), dtype="float64"))
    assert info == 2 and np.isnan(low[1, 1])


@pytest.mark.parametrize("shape", [(2, 5, 5), (7, 3), (3, 7), (1, 1), (0, 3, 3)])
@pytest.mark.parametrize("pivot", [True, False])
def test_lu(shape, pivot):
    a = np.random.default_rng(1).standard_normal(shape)
    lu, pivots, _ = opcheck("linalg.lu", T(values=a, dtype="float64"), pivot=pivot, tolerance=1e-6)
    k = min(shape[-2:])
    for i in np.ndindex(*shape[:-2]):
        back = (np.tril(lu[i][:, :k], -1) + np.eye(shape[-2], k)) @ np.triu(lu[i][:k])
        for step in reversed(range(k)):
            other = pivots[i][step] - 1
            back[[step, other]] = back[[other, step]]
        np.testing.assert_allclose(back, a[i], atol=1e-9)


def test_lu_of_a_singular_matrix_tells_the_step():
    assert opcheck("linalg.lu", T(values=np.zeros((2, 2)), dtype="float64"))[2] == 1


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_solve_triangular(upper, unit):
    a, b = square(5, 2) + 4 * np.eye(5), square(5, 2, seed=1)[..., :3]
    found = opcheck("linalg.solve_triangular", T(values=a, dtype="float64"), T(values=b, dtype="float64"), upper=upper, unit=unit)
    triangle = np.triu(a) if upper else np.tril(a)
    if unit:
        triangle = triangle * (1 - np.eye(5)) + np.eye(5)
    np.testing.assert_allclose(triangle @ found, b, atol=1e-9)


@pytest.mark.parametrize("shape", [(2, 6, 4), (4, 4), (3, 7), (5, 1)])
def test_householder(shape):
    a = np.random.default_rng(1).standard_normal(shape)
    qr, tau = opcheck("linalg.householder", T(values=a, dtype="float64"))
    k = min(shape[-2:])
    q = opcheck("linalg.householder_product", T(values=qr[..., :k], dtype="float64"), T(values=tau, dtype="float64"))
    np.testing.assert_allclose(q @ np.triu(qr[..., :k, :]), a, atol=1e-9)
    np.testing.assert_allclose(q.swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)), atol=1e-9)


@pytest.mark.parametrize("family", KINDS)
def test_polynomials(family):
    opcheck("polynomial", T("m", 1, dtype="float64"), T(values=np.arange(-1.0, 6.0), dtype="float64"), dims={"m": 3}, family=family)


def test_polynomials_have_their_known_values():
    x, n = np.linspace(-1, 1, 7)[:, None], np.arange(5.0)
    found = opcheck("polynomial", T(values=x, dtype="float64"), T(values=n, dtype="float64"), family="chebyshev_t")
    np.testing.assert_allclose(found, np.cos(n * np.arccos(x)), atol=1e-12)
