# SPDX-License-Identifier: Apache-2.0
"""GGUF files against the gguf package (blocks) and against NumPy (a small model, token by token), and broken files."""

import numpy as np
import pytest

import roundel as rd
from roundel.frontend.gguf import from_gguf, read
from roundel.frontend.gguf.blocks import KINDS
from roundel.ir.errors import RoundelError

gguf = pytest.importorskip("gguf")
LAYERS, WIDTH, HEADS, SHARED, INNER, WORDS = 2, 256, 4, 2, 288, 71
HEAD = WIDTH // HEADS


@pytest.mark.parametrize("kind", [k for k, kind in KINDS.items() if kind.parts], ids=lambda k: KINDS[k].name)
def test_blocks_are_those_of_the_gguf_package(kind):
    found = KINDS[kind]
    data = np.random.default_rng(kind).integers(0, 256, (3, 2 * found.nbytes)).astype(np.uint8)
    with np.errstate(all="ignore"):
        want = gguf.quants.dequantize(data.copy(), gguf.GGMLQuantizationType(kind))
        np.testing.assert_array_equal(found.plain(data.reshape(-1), want.shape), want)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A file with blocks of several kinds, and its numbers."""
    rng, path = np.random.default_rng(1), tmp_path_factory.mktemp("gguf") / "small.gguf"
    writer, held = gguf.GGUFWriter(str(path), "llama"), {}
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(SHARED)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(1000.0)

    def add(name, *shape, kind=None):
        value = (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32) if len(shape) > 1 else rng.uniform(0.5, 1.5, shape).astype(np.float32)
        if kind is None:
            writer.add_tensor(name, value)
        else:
            packed = gguf.quants.quantize(value, kind)
            writer.add_tensor(name, packed, raw_dtype=kind)
            value = gguf.quants.dequantize(packed, kind)
        held[name] = value

    q = gguf.GGMLQuantizationType
    add("token_embd.weight", WORDS, WIDTH, kind=q.Q8_0)
    add("output_norm.weight", WIDTH)
    for k in range(LAYERS):
        for name, columns, depth, kind in (("attn_q", WIDTH, WIDTH, q.Q4_0), ("attn_k", SHARED * HEAD, WIDTH, q.Q4_1), ("attn_v", SHARED * HEAD, WIDTH, q.Q5_0),
                                           ("attn_output", WIDTH, WIDTH, q.Q8_0), ("ffn_gate", INNER, WIDTH, q.Q4_1), ("ffn_up", INNER, WIDTH, q.F16),
                                           ("ffn_down", WIDTH, INNER, q.Q5_1)):
            add(f"blk.{k}.{name}.weight", columns, depth, kind=kind)
        for name in ("attn_norm", "ffn_norm"):
            add(f"blk.{k}.{name}.weight", WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, held


def expected(w, tokens):
    """Logits of the last of some tokens, in float64."""
    w = {k: v.astype(np.float64) for k, v in w.items()}
    norm = lambda x, name: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * w[name]
    x, n = w["token_embd.weight"][tokens], len(tokens)
    angles = np.arange(n)[:, None] * 1000.0 ** (-np.arange(0, HEAD, 2) / HEAD)

    def turned(v):
        pairs = v.reshape(n, -1, HEAD // 2, 2)
        a = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles)[:, None]
        return np.stack([a.real, a.imag], -1).reshape(n, -1, HEAD)

    for k in range(LAYERS):
        of = lambda name, v, k=k: v @ w[f"blk.{k}.{name}.weight"].T
        h = norm(x, f"blk.{k}.attn_norm.weight")
        q, key, value = turned(of("attn_q", h)), turned(of("attn_k", h)), of("attn_v", h).reshape(n, SHARED, HEAD)
        key, value = (np.repeat(v, HEADS // SHARED, 1) for v in (key, value))
        scores = np.einsum("ihd,jhd->hij", q, key) / np.sqrt(HEAD) + np.where(np.tri(n), 0, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        seen = np.einsum("hij,jhd->ihd", weights / weights.sum(-1, keepdims=True), value).reshape(n, WIDTH)
        x = x + of("attn_output", seen)
        h = norm(x, f"blk.{k}.ffn_norm.weight")
        gate = of("ffn_gate", h)
        x = x + of("ffn_down", gate / (1 + np.exp(-gate)) * of("ffn_up", h))
    return norm(x, "output_norm.weight")[-1] @ w["token_embd.weight"].T


def test_a_model_reads_tokens_at_once_and_one_after_another(model):
    path, held = model
    compiled = rd.compile(path)
    assert compiled.weights_nbytes < 0.6 * 4 * sum(v.size for v in held.values())
    tokens, caches = np.array([5, 70, 0, 33, 12], np.int64), [np.zeros((SHARED, 0, HEAD), np.float32)] * (2 * LAYERS)
    close = lambda got, count: np.testing.assert_allclose(got, expected(held, tokens[:count]), rtol=1e-4, atol=1e-4)
    logits, *kept = compiled(tokens[:3], *caches)
    close(logits, 3)
    for k in (3, 4):
        logits, *kept = compiled(tokens[k: k + 1], *kept)
        close(logits, k + 1)
    assert kept[0].shape == (SHARED, 5, HEAD)


def test_broken_files_are_errors(model, tmp_path):
    whole = model[0].read_bytes()
    rng, broken = np.random.default_rng(0), tmp_path / "broken.gguf"
    for k in range(60):
        data = bytearray(whole if k % 2 else whole[: int(rng.integers(0, 3000))])
        for at in rng.integers(0, min(len(data), 1500), 4) if len(data) else []:
            data[at] = int(rng.integers(0, 256))
        broken.write_bytes(data)
        try:
            from_gguf(read(broken))
        except RoundelError:
            pass


def test_mistakes(model):
    with pytest.raises(RoundelError, match="the model has no size"):
        rd.import_model(model[0], dynamic={"batch": 1})
