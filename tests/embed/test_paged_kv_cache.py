# SPDX-License-Identifier: Apache-2.0
"""Paged caches of keys and values: several sequences through the interpreter and compiled code, against attention written out in NumPy."""

import numpy as np
import pytest

import roundel as rd
from roundel.embed.paged_kv_cache import PagedKVCache
from roundel.ir.errors import CallError
from roundel.relax.frontend import nn
from roundel.relax.frontend.nn.llm import kv_cache

QUERIES, KEYS, WIDTH, PAGE = 4, 2, 6, 4
THETA, SCALE = 100.0, 0.5


class Layer(nn.Module):
    """Attention of one layer, and its cache."""

    def step(self, qkv: nn.Tensor, cache: kv_cache.PagedKVCache):
        return cache.attention_with_fused_qkv(1, qkv, QUERIES), cache.get_query_positions(qkv.shape[1]), cache

    def create(self, sequences, tokens, chunk, page):
        return kv_cache.TIRPagedKVCache(
            max_batch_size=sequences, max_total_seq_len=tokens, prefill_chunk_size=chunk, page_size=page, num_hidden_layers=2, num_attention_heads=QUERIES,
            num_key_value_heads=KEYS, qk_head_dim=WIDTH, rope_mode=1, rope_scale=SCALE, rope_theta=THETA, rotary_dim=4)


def exported():
    step = {"qkv": nn.spec.Tensor((1, "rows", QUERIES + 2 * KEYS, WIDTH)), "cache": nn.spec.Object(kv_cache.PagedKVCache)}
    spec = {"step": step, "create": dict.fromkeys(("sequences", "tokens", "chunk", "page"), int)}
    return Layer().export_tvm(nn.spec.ModuleSpec.from_raw(spec))[0]


def turned(x: np.ndarray) -> np.ndarray:
    """Heads (positions, heads, width) with the first four numbers rotated: pairs two apart."""
    out = x.copy()
    for position in range(len(x)):
        for k in range(2):
            angle = position * SCALE * THETA ** (-k / 2)
            a, b = x[position, :, k], x[position, :, k + 2]
            out[position, :, k] = a * np.cos(angle) - b * np.sin(angle)
            out[position, :, k + 2] = b * np.cos(angle) + a * np.sin(angle)
    return out


def attention(qkv: np.ndarray) -> np.ndarray:
    """A whole sequence at once, (positions, heads, width)."""
    q, k, v = turned(qkv[:, :QUERIES]), turned(qkv[:, QUERIES : QUERIES + KEYS]), qkv[:, QUERIES + KEYS :]
    k, v = (np.repeat(x, QUERIES // KEYS, axis=1) for x in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(WIDTH)
    scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), v)


def through(functions, parts) -> dict[int, np.ndarray]:
    """What sequences give that come in parts: ((sequence, rows), ...) for each forward pass."""
    begin, end, add = (rd.get_func(f"vm.builtin.kv_state_{n}") for n in ("begin_forward", "end_forward", "add_sequence"))
    cache = functions["create"]((3,), (64,), (32,), (PAGE,))
    made: dict[int, list[np.ndarray]] = {}
    for group in parts:
        for number, _ in group:
            if number not in made:
                add(cache, number)
        begin(cache, [n for n, _ in group], [len(x) for _, x in group])
        start = [sum(map(len, made.get(n, ()))) for n, _ in group]
        out, positions, cache = functions["step"](np.concatenate([x for _, x in group])[None], cache)
        end(cache)
        np.testing.assert_array_equal(positions, np.concatenate([s + np.arange(len(x)) for s, (_, x) in zip(start, group, strict=True)]))
        at = 0
        for number, x in group:
            made.setdefault(number, []).append(np.array(out)[0, at : at + len(x)])
            at += len(x)
    return {n: np.concatenate(xs) for n, xs in made.items()}


@pytest.mark.parametrize("run", [rd.interpret, rd.build])
def test_sequences_that_come_in_parts_see_what_they_would_at_once(run):
    rng = np.random.default_rng(0)
    whole = {n: rng.standard_normal((rows, QUERIES + 2 * KEYS, WIDTH)).astype(np.float32) for n, rows in ((7, 11), (3, 6))}
    parts = [[(7, whole[7][:5])], [(3, whole[3][:1]), (7, whole[7][5:6])], [(7, whole[7][6:]), (3, whole[3][1:5])], [(3, whole[3][5:])]]
    found = through(run(exported()), parts)
    for number, qkv in whole.items():
        np.testing.assert_allclose(found[number], attention(qkv), rtol=2e-5, atol=2e-6)


def cache_of(tokens: int) -> PagedKVCache:
    return PagedKVCache(max_sequences=2, max_tokens=tokens, max_chunk=8, page_size=PAGE, layers=1, query_heads=QUERIES, kv_heads=KEYS, key_width=WIDTH)


def test_pages_go_back_when_sequences_end_or_are_cut():
    cache = cache_of(16)
    free = cache.available_pages
    cache.add_sequence(0)
    cache.begin_forward([0], [7])
    qkv = np.random.default_rng(1).standard_normal((7, QUERIES + 2 * KEYS, WIDTH)).astype(np.float32)
    out = np.zeros((7, QUERIES, WIDTH), np.float32)
    cache.attention(0, 1.0, qkv, out)
    cache.end_forward()
    assert (cache.total_length, free - cache.available_pages) == (7, 2)
    cache.fork_sequence(0, 1, 5)
    cache.pop(0, 4)
    assert (cache.total_length, free - cache.available_pages) == (8, 3)
    cache.begin_forward([1], [2])  # goes on as its parent did
    again = np.zeros((2, QUERIES, WIDTH), np.float32)
    cache.attention(0, 1.0, qkv[5:], again)
    np.testing.assert_allclose(again, out[5:], rtol=1e-6)
    cache.clear()
    assert cache.available_pages == free


@pytest.mark.parametrize(("wrong", "said"), [
    (lambda c: c.begin_forward([4], [1]), "no sequence 4"),
    (lambda c: c.add_sequence(0), "a sequence 0 already"),
    (lambda c: [c.begin_forward([0], [8]) for _ in range(4)], "is full"),
    (lambda c: c.begin_forward([0], [9]), "more than the cache takes"),
    (lambda c: c.pop(0, 1), "has 0 positions"),
    (lambda c: c.attention(0, 1.0, np.zeros((2, 8, WIDTH)), np.zeros((2, QUERIES, WIDTH))), "was told of 0"),
])  # fmt: skip
def test_what_a_cache_refuses(wrong, said):
    cache = cache_of(8)
    cache.add_sequence(0)
    with pytest.raises(CallError, match=said):
        wrong(cache)
