# SPDX-License-Identifier: Apache-2.0
"""Families of ATen operators beyond the everyday ones: linear algebra, search, scatters, complex numbers, control flow, data-dependent sizes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import torch
from against import Module, check, draw
from torch._higher_order_ops import associative_scan, scan, while_loop

import roundel as rd
from roundel.frontend.torch.decompose import TABLE
from roundel.ir.errors import BuildError

F, L = torch.nn.functional, torch.linalg
NAN, INF = float("nan"), float("inf")
A, B = draw(2, 5, 5), draw(2, 5, 3)
SPD = A @ A.mT + torch.eye(5)
VALUES = torch.tensor([[3.0, 1, 2, 1, 3], [NAN, 2, 2, -1, 0], [5, 5, 4, INF, -INF]])
EDGES = torch.tensor([0.0, -0.0, 1.5, -3e-42, 1e30, INF, -INF, NAN])
X, IMAGE = draw(3, 5), draw(2, 3, 6, 7)
INDEX = torch.tensor([[0, 2, 0, 1, 1]])

def _positive(n):
    size = n.item()
    torch._check(size >= 1)
    return size


CASES = {
    "cholesky": (L.cholesky, SPD),
    "cholesky upper": (lambda a: L.cholesky(a, upper=True), SPD),
    "cholesky_solve": (lambda b, a: torch.cholesky_solve(b, L.cholesky(a)), B, SPD),
    "cholesky_inverse": (lambda a: torch.cholesky_inverse(L.cholesky(a)), SPD[0]),
    "lu": (lambda a: tuple(L.lu(a)), draw(6, 4)),
    "lu_factor": (lambda a: tuple(L.lu_factor(a)), A),
    "solve": (L.solve, A, B),
    "solve from the right": (lambda a, b: L.solve(a, b, left=False), A, B.mT.contiguous()),
    "inv": (L.inv, A),
    "det": (L.det, A),
    "slogdet": (lambda a: tuple(L.slogdet(a)), A),
    "solve_triangular": (lambda a, b: L.solve_triangular(a, b, upper=True), SPD, B),
    "solve_triangular right": (lambda a, b: L.solve_triangular(a, b, upper=False, left=False), SPD, B.mT.contiguous()),
    "qr": (lambda a: tuple(L.qr(a)), draw(2, 6, 4)),
    "qr complete": (lambda a: tuple(L.qr(a, "complete")), draw(6, 4)),
    "legendre": (torch.special.legendre_polynomial_p, X, torch.tensor([0.0, 1, 2, 5, -1])),
    "kthvalue": (lambda x: tuple(x.kthvalue(2, 1)), X),
    "median": (lambda x: tuple(x.median(1)), VALUES),
    "nanmedian": (lambda x: tuple(x.nanmedian(1)), VALUES),
    "mode": (lambda x: tuple(x.mode(1)), VALUES[::2]),
    "cummax": (lambda x: tuple(x.cummax(1)), VALUES),
    "cummin": (lambda x: tuple(x.cummin(0)), VALUES),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), X),
    "searchsorted": (lambda x: torch.searchsorted(torch.tensor([-1.0, 0, 0, 2]), x, right=True), X),
    "histc": (lambda x: torch.histc(x, 4, -2, 2), X),
    "cdist": (torch.cdist, X, draw(4, 5)),
    "pdist": (F.pdist, X),
    "unfold": (lambda x: x.unfold(1, 3, 2), X),
    "diagonal": (lambda x: x.diagonal(-1, 1, 3), IMAGE),
    "diagonal_scatter": (lambda x: x.diagonal_scatter(torch.ones(3), 1), X),
    "as_strided": (lambda x: x.as_strided((3, 3), (1, 2), 1), X),
    "scatter_reduce": (lambda x: x.scatter_reduce(0, INDEX, torch.ones(1, 5), "prod"), X),
    "scatter_reduce alone": (lambda x: x.scatter_reduce(0, INDEX, torch.ones(1, 5), "amax", include_self=False), X),
    "index_reduce": (lambda x: x.index_reduce(0, torch.tensor([1, 1]), torch.ones(2, 5), "mean"), X),
    "masked_scatter": (lambda x: x.masked_scatter(x > 0, torch.arange(15.0)), X),
    "put": (lambda x: x.put(torch.tensor([3, -1]), torch.tensor([1.0, 2])), X),
    "copysign": (torch.copysign, EDGES, EDGES.flip(0)),
    "frexp": (lambda x: tuple(torch.frexp(x)), EDGES),
    "nextafter": (torch.nextafter, EDGES, EDGES.flip(0)),
    "hypot": (torch.hypot, EDGES, EDGES.flip(0)),
    "ldexp": (torch.ldexp, X, torch.tensor([0, 1, -3, 10, 2])),
    "bits": (lambda x: x.view(torch.int32), X),
    "pool indices": (lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), IMAGE),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (3, 2)), IMAGE),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), IMAGE, draw(2, 4, 3, 2) / 3),
    "bilinear antialiased": (lambda x: F.interpolate(x, (3, 4), mode="bilinear", antialias=True), IMAGE),
    "bicubic antialiased": (lambda x: F.interpolate(x, (3, 9), mode="bicubic", antialias=True), IMAGE),
    "antialiased corners": (lambda x: F.interpolate(x, (1, 9), mode="bilinear", antialias=True, align_corners=True), IMAGE),
    "antialiased by data": (lambda x, n: F.interpolate(x, (_positive(n), 4), mode="bicubic", antialias=True), IMAGE, torch.tensor(3)),
    "bilinear layer": (lambda a, b, w=draw(4, 5, 3): F.bilinear(a, b, w), X, draw(3, 3)),
    "avg_pool divisor": (lambda x: F.avg_pool2d(x, 2, ceil_mode=True, divisor_override=3), IMAGE),
    "training batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), IMAGE),
    "triu_indices": (lambda x: x + torch.triu_indices(3, 4).sum(), X),
    "nonzero": (lambda x: (x > 0).nonzero(), X),
    "masked_select": (lambda x: x[x > 0] * 2, X),
    "unique": (lambda x: torch.unique(x, return_inverse=True, return_counts=True), VALUES[::2]),
    "unique_consecutive": (lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), VALUES[0]),
    "item": (lambda x, i: x.narrow(0, i.item(), 1) + 0, X, torch.tensor(1)),
    "repeat_interleave": (lambda x, n: (x.repeat_interleave(n, 0), torch.repeat_interleave(n, output_size=6)), draw(4, 3), torch.tensor([2, 0, 3, 1])),
    "bincount": (lambda i, w: (i.bincount(), i.bincount(w, 9), i.bincount(i), i[:0].bincount(minlength=2)), torch.tensor([2, 0, 3, 2]), draw(4)),
    "slice_scatter": (lambda x: x.slice_scatter(torch.ones(3, 2), 1, 1, 5, 2), X),
    "softmax of a number": (lambda x: (torch.ops.aten._softmax(x[0, 0], 0, False), F.log_softmax(x[0, 0], -1)), X),
    "linear_cross_entropy": (lambda x, w: F.linear_cross_entropy(x, w, torch.tensor([1, 0, 3])), X, draw(4, 5)),
    "cond": (lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,)), X),
    "while_loop": (lambda x: tuple(while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))), X),
    "scan": (lambda x: tuple(scan(lambda c, y: (c + y, c * y), x[0], x, dim=0)), X),
    "associative_scan": (lambda x: associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic"), X),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name):
    function, *inputs = CASES[name]
    check(function, *inputs, strict=False)


Z = torch.complex(draw(3, 4), draw(3, 4).flip(0))
POINTS = torch.complex(draw(3, 5), draw(3, 5))
POINTS[0, :4] = torch.tensor([0, complex(-3, -0.0), -3, -1e-8j])
COMPILED = {
    "fft": (torch.fft.fft, X),
    "long fft": (torch.fft.fft, draw(2, 180)),
    "rfft2": (torch.fft.rfft2, IMAGE),
    "irfft": (lambda x: torch.fft.irfft(x, 7), Z),
    "arithmetic": (lambda z: (z * z.conj() + 1j * z - 2) / (z + 3), Z),
    "abs and angle": (lambda z: (z.abs(), z.angle()), Z),
    "parts": (lambda z: (z.real + z.imag, torch.view_as_real(z.t().contiguous())), Z),
    "matmul": (lambda z: z @ z.mH, Z),
    "polar": (torch.polar, X.abs(), X),
    "complex functions": (lambda z: tuple(f(z) for f in (torch.sqrt, torch.sin, torch.cos, torch.sinh, torch.cosh, torch.sigmoid)), POINTS),
    "complex functions but at 0": (lambda z: tuple(f(z) for f in (torch.log, torch.rsqrt)), POINTS[1:]),
    "complex powers": (lambda z: (z**2, z**3, z**0.5, z**2.5, z**0, 2**z, z ** (z.conj() + 1), z[1:] ** -1), POINTS),
    "complex norms": (lambda z: (L.vector_norm(z), z.norm(dim=1), L.vector_norm(z, 1)), POINTS),
    "rare functions of complex numbers": (lambda z: (torch.asin(z), torch.tanh(z), z.prod(), L.inv(z[:, :3])), POINTS),
    "svd": (lambda a: tuple(L.svd(a)), X),
    "eigenvalues": (L.eigvals, A),
    "eigenvectors of nothing": (lambda a: tuple(L.eig(a)), torch.zeros(2, 0, 0)),
    "loops": (lambda x: tuple(scan(lambda c, y: (c + y, c * y), x[0], x, dim=0)), X),
    "loop over a number": (lambda x: tuple(while_loop(lambda i, x: i > -3, lambda i, x: (i - 1, x * 2 + i), (2, x)))[1], X),
    "loop until enough is positive": (lambda x: while_loop(lambda x: x[x > 0].sum() < 99, lambda x: (x * 2,), (x,))[0], X),
    "unique": (lambda x: torch.unique(x, return_counts=True), VALUES[::2]),
    "solve": (L.solve, A, B),
}


def compiled(function, *inputs):
    return rd.compile(torch.export.export(Module(function), inputs, strict=False))


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_agrees_with_pytorch(name):
    function, *inputs = COMPILED[name]
    torch.testing.assert_close(compiled(function, *inputs)(*inputs), function(*inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", [torch.copysign, torch.nextafter, lambda a, b: torch.frexp(a)[0] * b])
def test_programs_of_single_elements_are_fused(function):
    a, b = EDGES.repeat(5)[:37], EDGES.flip(0).repeat_interleave(5)[:37]
    model = rd.compile(Module(function), (a, b))
    assert len(model.kernels) == 1
    torch.testing.assert_close(model(a, b), function(a, b), rtol=0, atol=0, equal_nan=True)


def test_an_input_changed_in_place():
    def change(x, y):
        x.mul_(2)[1:] += y
        return x.sum()

    x, y = torch.ones(3), torch.ones(2)
    model = compiled(change, x.clone(), y)
    found = model(x, y)
    assert found == 8 and x.tolist() == [2.0, 3.0, 3.0]


def test_random_numbers_come_from_pytorch_and_are_not_shipped(tmp_path):
    model = compiled(lambda x: x + torch.rand_like(x), X)
    torch.manual_seed(1)
    expected = X + torch.rand_like(X)
    torch.manual_seed(1)
    torch.testing.assert_close(model(X), expected)
    assert not torch.equal(model(X), model(X))
    with pytest.raises(BuildError, match=r"rand_like"):
        model.save(tmp_path / "random.so")


def test_transforms_over_a_symbolic_size():
    n = torch.export.Dim("n", min=2, max=64)
    module = Module(lambda x: torch.fft.ifft(torch.fft.fft(x) * 2).real)
    model = rd.compile(torch.export.export(module, (draw(2, 12),), dynamic_shapes=(({1: n},),), strict=False))
    for size in (4, 13, 22):
        x = draw(2, size)
        torch.testing.assert_close(model(x), 2 * x)


SPECIAL = ("digamma", "erfinv", "i0", "special_airy_ai", "special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1",
           "special_erfcx", "special_i0e", "special_i1", "special_i1e", "special_modified_bessel_k0", "special_modified_bessel_k1", "special_ndtri",
           "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1", "special_spherical_bessel_j0")


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_over_their_range(name):
    op = getattr(torch.ops.aten, name).default
    near, far = torch.linspace(-1, 1, 401), torch.logspace(-12, 1.9, 200)
    x = torch.cat([near, near.abs(), near * 30, far, -far, torch.tensor([NAN, 0.0, -0.0, 1.0, -1.0])])
    torch.testing.assert_close(TABLE[op](x), op(x), rtol=1e-4, atol=1e-5, equal_nan=True)


def test_special_functions_compiled():
    check(lambda x: torch.special.bessel_y1(x) + torch.special.i1(x) + torch.digamma(x) + torch.special.airy_ai(x), X, strict=False)


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_modified_bessel_functions_in_float32(name):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-12, 12, 20001), rng.uniform(-91, 91, 5000), 10.0 ** rng.uniform(-30, 30, 1000), [5, -5]]).astype("f")
    want = getattr(scipy.special, name)(x.astype(np.float64))
    inside = np.abs(want) < np.finfo("f").max
    got = np.asarray(rd.compile(Module(getattr(torch.special, name)), (torch.from_numpy(x),))(x))
    assert np.max(np.abs(got - want)[inside] / np.spacing(np.abs(want[inside].astype("f")))) <= 6
    np.testing.assert_array_equal(got[~inside], np.sign(want[~inside]) * np.float32(np.inf))
    odd = np.array([0, -0.0, np.nan, 92, -92, 120, -120], "f")
    got = np.asarray(rd.compile(Module(getattr(torch.special, name)), (torch.from_numpy(odd),))(odd))
    with np.errstate(over="ignore"):
        want = getattr(scipy.special, name)(odd.astype(np.float64)).astype("f")
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("name", ["erfinv", "ndtri"])
def test_inverses_of_the_error_function_in_float32(name):
    rng = np.random.default_rng(0)
    near_one = 1 - 2.0 ** -rng.uniform(1, 24, 1000)
    x = np.concatenate([rng.uniform(0, 1, 30001), near_one, 10.0 ** -rng.uniform(1, 44, 1000), [np.nextafter(np.float32(1), 0)]]).astype("f")
    x = x[(x > 0) & (x < 1)]
    model = rd.compile(Module(getattr(torch.special, name)), (torch.from_numpy(x),))
    want = getattr(scipy.special, name)(x.astype(np.float64))
    assert np.max(np.abs(np.asarray(model(x)) - want) / np.spacing(np.abs(want.astype("f")))) <= 4
    for odd in (x[:3], np.array([0, 1, -1, 1.5, -2, np.nan, np.inf, -np.inf], "f")):
        check(getattr(torch.special, name), torch.from_numpy(odd))


@pytest.mark.parametrize(("norm_first", "mask_type"), [(False, None), (True, 0), (False, 1), (True, 2)])
def test_layers_that_pytorch_runs_as_one_operator(norm_first, mask_type):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
    padding = torch.tensor([[False, False, True], [False, False, False]])
    masks = {None: None, 0: torch.triu(torch.ones(3, 3, dtype=torch.bool), 1), 1: padding, 2: padding[:, None, None].expand(2, 2, 3, 3)}
    attention = [p for part in (layer.self_attn, layer.self_attn.out_proj) for p in part.parameters(recurse=False)]
    others = [p for part in (layer.norm1, layer.norm2, layer.linear1, layer.linear2) for p in (part.weight, part.bias)]
    args = (draw(2, 3, 8), 8, 2, *attention, norm_first, norm_first, 1e-5, *others, masks[mask_type], mask_type)
    op = torch.ops.aten._transformer_encoder_layer_fwd.default
    with torch.no_grad():
        torch.testing.assert_close(TABLE[op](*args), op(*args), rtol=1e-4, atol=1e-5)
