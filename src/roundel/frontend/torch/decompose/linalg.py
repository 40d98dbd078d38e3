# SPDX-License-Identifier: Apache-2.0
"""Linear algebra by three factorisations that are native: Cholesky's, LU with pivots, and solving with triangles."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .table import decomposes


def _matrix(b: Tensor, a: Tensor) -> tuple[Tensor, bool]:
    """A right-hand side as a matrix, and whether it was a vector."""
    vector = b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1])
    return (b.unsqueeze(-1), True) if vector else (b, False)


def _permutation(pivots: Tensor, n: int) -> Tensor:
    """Rows after the exchanges of LAPACK's pivots (from 1): (..., n)."""
    place = torch.arange(n)
    perm = place.expand(*pivots.shape[:-1], n)
    for k in range(pivots.shape[-1]):
        with_k = pivots[..., k:k + 1].to(torch.int64) - 1
        ours, theirs = perm[..., k:k + 1], perm.gather(-1, with_k)
        perm = torch.where(place == k, theirs, torch.where(place == with_k, ours, perm))
    return perm


def _rows(b: Tensor, perm: Tensor) -> Tensor:
    batch = torch.broadcast_shapes(b.shape[:-2], perm.shape[:-1])
    b = b.expand(*batch, *b.shape[-2:])
    return b.gather(-2, perm.unsqueeze(-1).expand(*batch, perm.shape[-1], b.shape[-1]))


@decomposes("linalg_lu_solve")
def lu_solve(lu: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """x with a x = b (or x a = b, or of the adjoint), given a's packed factors (*, n, n) and pivots (*, n)."""
    if not left:
        return lu_solve(lu, pivots, b.mT, left=True, adjoint=not adjoint).mT
    perm = _permutation(pivots, lu.shape[-1])
    if not adjoint:
        lower = torch.linalg.solve_triangular(lu, _rows(b, perm), upper=False, unitriangular=True)
        return torch.linalg.solve_triangular(lu, lower, upper=True)
    upper = torch.linalg.solve_triangular(lu.mT, b, upper=False)
    found = torch.linalg.solve_triangular(lu.mT, upper, upper=True, unitriangular=True)
    return _rows(found, perm.argsort(-1))


@decomposes("_linalg_solve_ex")
def solve_ex(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, ...]:
    """x with a x = b, and LAPACK's number that tells a singular matrix."""
    lu, pivots, info = torch.linalg.lu_factor_ex(a)
    matrix, vector = _matrix(b, a) if left else (b, False)
    found = lu_solve(lu, pivots, matrix, left=left)
    return found.squeeze(-1) if vector else found, lu, pivots, info


@decomposes("linalg_inv_ex")
def inv_ex(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """The inverse of (*, n, n), and LAPACK's number that tells a singular matrix."""
    lu, pivots, info = torch.linalg.lu_factor_ex(a)
    return lu_solve(lu, pivots, torch.eye(a.shape[-1], dtype=a.dtype).expand(a.shape)), info


def _parity(pivots: Tensor) -> Tensor:
    moved = pivots != torch.arange(1, pivots.shape[-1] + 1, dtype=torch.int32)
    return 1 - 2 * (moved.to(torch.int64).sum(-1) % 2)


@decomposes("_linalg_det")
def det(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The determinant of (*, n, n), by its factors."""
    lu, pivots, _ = torch.linalg.lu_factor_ex(a)
    return torch.diagonal(lu, 0, -2, -1).prod(-1) * _parity(pivots), lu, pivots


@decomposes("_linalg_slogdet")
def slogdet(a: Tensor) -> tuple[Tensor, ...]:
    """Sign and logarithm of the determinant's size."""
    lu, pivots, _ = torch.linalg.lu_factor_ex(a)
    d = torch.diagonal(lu, 0, -2, -1)
    return d.sign().prod(-1) * _parity(pivots), d.abs().log().sum(-1), lu, pivots


@decomposes("lu_unpack")
def lu_unpack(lu: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> tuple[Tensor, ...]:
    """Permutation, lower and upper factor from the packed form."""
    m, n = lu.shape[-2:]
    k = min(m, n)
    empty = torch.zeros(0, dtype=lu.dtype)
    p, lower, upper = empty, empty, empty
    if unpack_pivots:
        perm = _permutation(pivots, m)
        p = (perm.unsqueeze(-2) == torch.arange(m)[:, None]).to(lu.dtype)
    if unpack_data:
        lower = lu[..., :k].tril(-1) + torch.eye(m, k, dtype=lu.dtype)
        upper = lu[..., :k, :].triu()
    return p, lower, upper


@decomposes("linalg_lu")
def lu(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, ...]:
    """Permutation, lower and upper factor of (*, m, n)."""
    packed, pivots, _ = torch.linalg.lu_factor_ex(a, pivot=pivot)
    p, lower, upper = lu_unpack(packed, pivots)
    return p if pivot else torch.zeros(0, dtype=a.dtype), lower, upper


@decomposes("cholesky")
def cholesky(a: Tensor, upper: bool = False) -> Tensor:
    """The triangular factor of a positive definite matrix; the upper half is not read."""
    return torch.linalg.cholesky_ex(a, upper=upper)[0]


@decomposes("cholesky_solve")
def cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    """x with a x = b, given a's triangular factor."""
    low = factor.mT if upper else factor
    half = torch.linalg.solve_triangular(low, b, upper=False)
    return torch.linalg.solve_triangular(low.mT, half, upper=True)


@decomposes("cholesky_inverse")
def cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    """The inverse of a, given its triangular factor."""
    return cholesky_solve(torch.eye(factor.shape[-1], dtype=factor.dtype).expand(factor.shape), factor, upper)


@decomposes("triangular_solve")
def triangular_solve(b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> tuple[Any, Tensor]:
    """x with a x = b of a triangular a, and a itself."""
    low = a.mT if transpose else a
    found = torch.linalg.solve_triangular(low, b, upper=upper != transpose, unitriangular=unitriangular)
    batch = found.shape[:-2]
    return found, a.expand(*batch, *a.shape[-2:]).clone()


@decomposes("linalg_qr")
def qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Orthogonal and upper factor of (*, m, n): reduced, complete, or the upper one alone (mode r)."""
    m, n = a.shape[-2:]
    k = min(m, n)
    reflections, tau = torch.geqrf(a)
    if mode == "r":
        return torch.zeros(0, dtype=a.dtype), reflections[..., :k, :].triu()
    whole = mode == "complete" and m > n
    columns = torch.nn.functional.pad(reflections, (0, m - n)) if whole else reflections[..., :m if mode == "complete" else k]
    return torch.linalg.householder_product(columns, tau), reflections[..., : m if mode == "complete" else k, :].triu()


@decomposes("ormqr")
def ormqr(a: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of a matrix with the orthogonal factor that Householder vectors describe."""
    m, k = a.shape[-2:]
    q = torch.linalg.householder_product(torch.nn.functional.pad(a, (0, m - k)), tau)
    q = q.mT if transpose else q
    return torch.matmul(q, other) if left else torch.matmul(other, q)


@decomposes("linalg_pinv.atol_rtol_tensor")
def pinv(a: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False) -> Any:
    """The Moore-Penrose inverse: singular values up to the tolerance count as 0."""
    if a.numel() == 0:
        return a.new_zeros(*a.shape[:-2], a.shape[-1], a.shape[-2])
    default = torch.finfo(a.dtype).eps * max(a.shape[-2:])
    least = torch.zeros((), dtype=a.dtype) if atol is None else atol
    rtol = torch.where(least > 0, 0.0, default) if rtol is None else rtol
    if hermitian:
        values, vectors = torch.linalg.eigh(a)
        size = values.abs()
        keep = size > torch.maximum(least.unsqueeze(-1), rtol.unsqueeze(-1) * size.amax(-1, keepdim=True))
        inverse = torch.where(keep, 1 / values, 0.0)
        return torch.matmul(vectors * inverse.unsqueeze(-2), vectors.mT)
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    keep = s > torch.maximum(least.unsqueeze(-1), rtol.unsqueeze(-1) * s.amax(-1, keepdim=True))
    return torch.matmul(vh.mT * torch.where(keep, 1 / s, 0.0).unsqueeze(-2), u.mT)
