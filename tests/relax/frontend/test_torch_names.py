# SPDX-License-Identifier: Apache-2.0
"""``nn.op`` with PyTorch's names and arguments: each function against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.relax.frontend import nn

torch = pytest.importorskip("torch")
F = torch.nn.functional
op = nn.op
RNG = np.random.default_rng(5)


def _f(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


X, SIGNAL, PICTURE = _f(3, 4, 6), _f(2, 4, 7), _f(1, 3, 5, 6)
CASES = {
    "unsqueeze": (lambda x: op.unsqueeze(x, 1), (X,), lambda x: x[:, None]), "permute": (lambda x: op.permute(x, [2, 0, 1]), (X,),
                  lambda x: x.permute(2, 0, 1)),
    "method": (lambda x: x.permute([2, 0, 1]).unsqueeze(0), (X,), lambda x: x.permute(2, 0, 1)[None]),
    "chunk": (lambda x: op.chunk(x, 2, dim=1)[1], (X,), lambda x: x[:, 2:]), "gelu": (lambda x: op.gelu(x, "tanh"), (X,),
              lambda x: F.gelu(x, approximate="tanh")),
    "triu": (lambda x: op.triu(x, 1), (X,), lambda x: x.triu(1)), "tril": (lambda x: op.tril(x, -1), (X,), lambda x: x.tril(-1)),
    "squeeze": (lambda x: op.squeeze(x), (_f(3, 1),), lambda x: x[:, 0]), "astype": (lambda x: op.astype(x, "int32"), (X,), lambda x: x.int()),
    "layer_norm": (lambda x, w, b: op.layer_norm(x, (4, 6), w, b), (X, _f(4, 6), _f(4, 6)), lambda x, w, b: F.layer_norm(x, (4, 6), w, b)),
    "group_norm": (lambda x, w, b: op.group_norm(x, 2, w, b), (X, _f(4), _f(4)), lambda x, w, b: F.group_norm(x, 2, w, b)),
    "rms_norm": (lambda x, w: op.rms_norm(x, w, -1), (X, _f(6)), lambda x, w: F.rms_norm(x, (6,), w, 1e-5)), "prelu": (op.prelu, (X, _f(4)), F.prelu),
    "pad": (lambda x: op.pad(x, [0, 0, 1, 0, 0, 2], value=3.0), (X,), lambda x: F.pad(x, (0, 2, 1, 0), value=3)),
    "attention": (lambda q, k, v: op.scaled_dot_product_attention(q, k, v, is_causal=True), (_f(2, 5, 3, 4), _f(2, 5, 3, 4), _f(2, 5, 3, 4)),
                  lambda *qkv: F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in qkv), is_causal=True).transpose(1, 2)),
    "interpolate": (lambda x: op.interpolate(x, scale_factor=2), (PICTURE,), lambda x: F.interpolate(x, scale_factor=2)),
    "interpolate bilinear": (lambda x: op.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True), (PICTURE,),
                             lambda x: F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True)),
    "conv1d_transpose": (lambda x, w, b: op.conv1d_transpose(x, w, b, 2, 1, 1), (SIGNAL, _f(4, 5, 3), _f(5)),
                         lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1)),
    "full": (lambda x: op.full((2, 3), 1.5) + op.empty((2, 3)), (X,), lambda x: torch.full((2, 3), 1.5)),
    "softplus": (lambda x: op.softplus(x, 2.0, 3.0), (X,), lambda x: F.softplus(x, 2.0, 3.0)), "topk": (lambda x: op.topk(x, 2, axis=1)[0], (X,),
                 lambda x: x.topk(2, 1)[0]),
    "where": (lambda x: op.where(op.greater(x, 0.0), x, op.negative(x)), (X,), torch.abs), "cumsum": (lambda x: op.cumsum(x, axis=1), (X,),
              lambda x: x.cumsum(1)),
}  # fmt: skip


def _exported(function, arrays):
    class Model(nn.Module):
        def forward(self, *inputs):
            return function(*inputs)

    names = [f"x{k}" for k in range(len(arrays))]
    source = f"class Named(Model):\n    def forward(self, {', '.join(names)}):\n        return super().forward({', '.join(names)})"
    space = {"Model": Model}
    exec(source, space)  # an export asks a method for its parameters' names
    specs = {n: nn.spec.Tensor(list(a.shape), str(a.dtype)) for n, a in zip(names, arrays)}
    mod, _ = space["Named"]().export_tvm({"forward": specs})
    return rd.interpret(mod)["forward"](*arrays)


@pytest.mark.parametrize("name", CASES)
def test_against_pytorch(name):
    function, arrays, expected = CASES[name]
    wanted = expected(*map(torch.from_numpy, arrays)).numpy()
    np.testing.assert_allclose(np.asarray(_exported(function, arrays)), wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("size", [8, 7])
def test_embeddings_of_timesteps(size):
    steps = np.float32([0, 1, 40])
    found = np.asarray(_exported(lambda t: op.get_timestep_embedding(t, size, flip_sin_to_cos=True, downscale_freq_shift=0), [steps]))
    angles = steps[:, None] * np.exp(-np.log(10000) * np.arange(size // 2) / (size // 2))
    wanted = np.concatenate([np.cos(angles), np.sin(angles), np.zeros((3, size % 2))], 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_transposed_convolution_has_the_weights_of_pytorch():
    ours, theirs = nn.ConvTranspose1D(4, 6, 3, stride=2, padding=1, output_padding=1), torch.nn.ConvTranspose1d(4, 6, 3, 2, 1, 1)
    ours.load_state_dict({k: v.detach().numpy() for k, v in theirs.state_dict().items()})
    mod, params = ours.export_tvm({"forward": {"x": nn.spec.Tensor([2, 4, 7], "float32")}})
    out = rd.interpret(mod)["forward"](SIGNAL, *(p.data for _, p in params))
    np.testing.assert_allclose(np.asarray(out), theirs(torch.from_numpy(SIGNAL)).detach().numpy(), rtol=1e-5, atol=1e-5)
