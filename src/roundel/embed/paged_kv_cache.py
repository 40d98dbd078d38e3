# SPDX-License-Identifier: Apache-2.0
"""A paged cache of keys and values for language models that serve several sequences (Kwon et al., Efficient memory management for large language model
serving with PagedAttention, SOSP 2023).

Keys and values of all sequences lie in pages of a fixed number of positions; a sequence has a table of its pages, so that it grows without being copied
and what ends gives its pages back. A model reaches the cache by the packed functions below, `roundel.relax.frontend.nn.llm.kv_cache` writes the calls:

    begin_forward(cache, sequences, lengths)  ->  the model, whose layers call attention  ->  end_forward(cache)

Attention is a compiled graph function that gathers a sequence's pages. Importing this module registers the functions, ``vm.builtin.*``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ..builder import BlockBuilder
from ..driver import compile_module
from ..ir import graph, tir
from ..ir.dataclass import dataclass
from ..ir.dtype import INT64, DType
from ..ir.errors import CallError
from ..ops import make
from ..runtime.registry import register_func

ROPE_MODES = ("none", "normal", "inline")
"""How positions enter queries and keys: not at all, or rotated (Su et al., RoFormer, 2021); both ways of rotating give the same here."""


@dataclass
class _Sequence:
    """Pages of one sequence, in order, and how many positions of them hold something."""

    pages: list[int] = field(default_factory=list)
    length: int = 0


class PagedKVCache:
    """Keys and values of ``layers`` layers for at most ``max_sequences`` sequences, ``max_tokens`` positions in all, in pages of ``page_size``.

    A key has ``kv_heads`` heads of ``key_width`` numbers, a value ``value_width``; each head serves ``query_heads // kv_heads`` heads of queries.
    ``rope`` is one of `ROPE_MODES`: the first ``rotary_width`` numbers of a head rotate with position * ``rope_scale``, at frequencies of base
    ``rope_theta``.
    """

    def __init__(self, *, max_sequences: int, max_tokens: int, max_chunk: int, page_size: int, layers: int, query_heads: int, kv_heads: int,
                 key_width: int, value_width: int | None = None, rope: str = "none", rope_scale: float = 1.0, rope_theta: float = 10000.0,
                 rotary_width: int | None = None, dtype: str = "float32") -> None:
        self.max_sequences, self.max_chunk, self.page_size = max_sequences, max_chunk, page_size
        self.query_heads, self.kv_heads = query_heads, kv_heads
        self.key_width, self.value_width = key_width, key_width if value_width is None else value_width
        self.rope, self.rope_scale = rope, rope_scale
        rotary = self.key_width if rotary_width is None else rotary_width
        self._frequencies = rope_theta ** -(np.arange(0, rotary, 2, dtype=np.float64) / rotary)
        pages = -(-max_tokens // page_size) + max_sequences  # each sequence may leave one partly empty
        element = DType(dtype).numpy
        self.keys = np.zeros((layers, pages, page_size, kv_heads, self.key_width), element)
        self.values = np.zeros((layers, pages, page_size, kv_heads, self.value_width), element)
        self._free = list(range(pages))[::-1]
        self._sequences: dict[int, _Sequence] = {}
        self._current: list[tuple[_Sequence, int, int]] = []  # of the forward pass: a sequence, its length before, how many are appended
        self._attend = _attention(dtype, page_size, query_heads, kv_heads, key_width, self.value_width)

    # -- sequences

    def add_sequence(self, number: int) -> None:
        """A new sequence without positions. Raises CallError where there is one of this number, or no room for another."""
        if number in self._sequences:
            raise CallError(f"the cache has a sequence {number} already", hint="kv_state_remove_sequence first")
        if len(self._sequences) >= self.max_sequences:
            raise CallError(f"the cache holds {self.max_sequences} sequences, all are in use", hint="make it for more, max_batch_size")
        self._sequences[number] = _Sequence()

    def remove_sequence(self, number: int) -> None:
        """Forget a sequence; its pages are free for others. Raises CallError where there is none."""
        self._free += self._sequence(number).pages
        del self._sequences[number]

    def fork_sequence(self, parent: int, child: int, position: int = -1) -> None:
        """A new sequence with the first ``position`` positions of another, -1: all. Its pages are its own. Raises CallError."""
        source = self._sequence(parent)
        count = source.length if position == -1 else position
        if not 0 <= count <= source.length:
            raise CallError(f"sequence {parent} has {source.length} positions, {position} were asked for")
        self.add_sequence(child)
        made = self._sequences[child]
        self._reserve(made, count)
        for old, new in zip(source.pages, made.pages, strict=False):
            self.keys[:, new], self.values[:, new] = self.keys[:, old], self.values[:, old]
        made.length = count

    def pop(self, number: int, count: int) -> None:
        """Drop the last ``count`` positions of a sequence. Raises CallError for more than it has."""
        sequence = self._sequence(number)
        if not 0 <= count <= sequence.length:
            raise CallError(f"sequence {number} has {sequence.length} positions, {count} cannot be dropped")
        sequence.length -= count
        kept = -(-sequence.length // self.page_size)
        self._free += sequence.pages[kept:]
        del sequence.pages[kept:]

    def clear(self) -> None:
        """Forget all sequences."""
        for number in list(self._sequences):
            self.remove_sequence(number)
        self._current = []

    @property
    def available_pages(self) -> int:
        """Pages that no sequence has."""
        return len(self._free)

    @property
    def total_length(self) -> int:
        """Positions of all sequences together."""
        return sum(s.length for s in self._sequences.values())

    def _sequence(self, number: int) -> _Sequence:
        if number not in self._sequences:
            known = ", ".join(map(str, self._sequences)) or "none"
            raise CallError(f"the cache has no sequence {number}", why=f"those it has: {known}", hint="kv_state_add_sequence first")
        return self._sequences[number]

    def _reserve(self, sequence: _Sequence, length: int) -> None:
        more = -(-length // self.page_size) - len(sequence.pages)
        if more > len(self._free):
            raise CallError(f"the cache is full: {more} pages of {self.page_size} positions are asked for, {len(self._free)} are free",
                            hint="make it for more positions, max_total_seq_len, or remove sequences")
        sequence.pages += [self._free.pop() for _ in range(more)]

    # -- a forward pass

    def begin_forward(self, numbers: Iterable[int], lengths: Iterable[int]) -> None:
        """The model is to compute so many new positions of these sequences, one sequence after another. Raises CallError."""
        pairs = [(self._sequence(int(n)), int(c)) for n, c in zip(numbers, lengths, strict=True)]
        if sum(count for _, count in pairs) > self.max_chunk:
            raise CallError(f"{sum(c for _, c in pairs)} positions at a time are more than the cache takes", why=f"prefill_chunk_size is {self.max_chunk}",
                            hint="compute them in parts, or make it for larger ones")
        self._current = []
        for sequence, count in pairs:
            self._reserve(sequence, sequence.length + count)
            self._current.append((sequence, sequence.length, count))
            sequence.length += count

    def end_forward(self) -> None:
        """The new positions are computed."""
        self._current = []

    @property
    def positions(self) -> np.ndarray:
        """Of each row of the forward pass the position in its sequence."""
        return np.concatenate([np.arange(start, start + count, dtype=np.int32) for _, start, count in self._current] or [np.zeros(0, np.int32)])

    def attention(self, layer: int, scale: float, qkv: np.ndarray, out: np.ndarray) -> None:
        """Append keys and values of the forward pass, and write what its queries find in their sequences.

        ``qkv`` has a row for each new position, (rows, query_heads + 2 * kv_heads, width), ``out`` is (rows, query_heads, value_width); a query sees its own
        position and those before. Raises CallError for another number of rows than `begin_forward` was told.
        """
        positions = self.positions
        if len(qkv) != len(positions):
            raise CallError(f"{len(qkv)} rows of queries, keys and values were given", why=f"kv_state_begin_forward was told of {len(positions)}")
        queries, keys = self.query_heads, self.query_heads + self.kv_heads
        q, k, v = (self._rotated(qkv[:, :queries], positions), self._rotated(qkv[:, queries:keys], positions), qkv[:, keys:, : self.value_width])
        row = 0
        for sequence, start, count in self._current:
            table = np.array(sequence.pages, np.int32)
            where = np.arange(start, start + count)
            page, slot = table[where // self.page_size], where % self.page_size
            self.keys[layer, page, slot] = k[row : row + count]
            self.values[layer, page, slot] = v[row : row + count]
            out[row : row + count] = self._attend(np.ascontiguousarray(q[row : row + count]) * np.float32(scale), self.keys[layer], self.values[layer], table,
                                                  np.array(start, np.int64))
            row += count

    def _rotated(self, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Heads (rows, heads, width) with their positions: pairs of numbers, half the rotary width apart, turn."""
        if self.rope == "none":
            return x.astype(np.float32)
        half = len(self._frequencies)
        angles = (positions[:, None] * float(self.rope_scale) * self._frequencies)[:, None]
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        wide = x.astype(np.float32)
        first, second, rest = wide[..., :half], wide[..., half : 2 * half], wide[..., 2 * half :]
        return np.concatenate((first * cos - second * sin, second * cos + first * sin, rest), axis=-1)


@functools.cache
def _attention(dtype: str, page_size: int, query_heads: int, kv_heads: int, key_width: int, value_width: int) -> Any:
    """Queries (rows, heads, width), all pages of a layer, the table of a sequence's pages, the position of the first query -> (rows, heads, width)."""
    rows, pages, held = (tir.Var(n, INT64, True) for n in ("rows", "pages", "held"))
    given = lambda name, element, *dims: graph.Var(name, graph.TensorInfo(tuple(map(tir.as_index, dims)), DType(element)))
    q = given("q", "float32", rows, query_heads, key_width)
    keys, values = (given(name, dtype, pages, page_size, kv_heads, width) for name, width in (("keys", key_width), ("values", value_width)))
    table, start = given("table", "int32", held), given("start", "int64")
    bb = BlockBuilder()
    emit = lambda name, *args, **attrs: bb.emit(make(name, *args, **attrs))
    with bb.function("attend", [q, keys, values, table, start]):
        shape = lambda *dims: graph.ShapeExpr(tuple(map(tir.as_index, dims)))
        gathered = []
        for pool, width in ((keys, key_width), (values, value_width)):
            taken = emit("reshape", emit("take", pool, table, axis=0), shape(1, held * page_size, kv_heads, width))
            gathered.append(taken if dtype == "float32" else emit("astype", taken, dtype="float32"))
        at = emit("add", emit("expand_dims", emit("arange", graph.PrimValue(rows), dtype="int64"), axis=1), start)
        seen = emit("less_equal", emit("arange", graph.PrimValue(held * page_size), dtype="int64"), at)
        zero, never = (graph.Constant.of(v, "float32") for v in (0.0, -np.inf))
        mask = emit("reshape", emit("where", seen, zero, never), shape(1, 1, rows, held * page_size))
        found = emit("nn.attention", emit("expand_dims", q, axis=0), *gathered, mask, scale=1.0)
        bb.emit_func_output(emit("reshape", found, shape(rows, query_heads, value_width)))
    return compile_module(bb.finalize()).load()["attend"]


def reshape(tensor: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The same elements under another shape."""
    return np.reshape(tensor, tuple(map(int, shape)))


def _create(max_sequences: int, max_tokens: int, max_chunk: int, page_size: int, layers: int, query_heads: int, kv_heads: int, key_width: int,
            value_width: int, rope: int, rope_scale: float, rope_theta: float, rotary_width: int, dtype: str) -> PagedKVCache:
    return PagedKVCache(max_sequences=max_sequences, max_tokens=max_tokens, max_chunk=max_chunk, page_size=page_size, layers=layers, query_heads=query_heads,
                        kv_heads=kv_heads, key_width=key_width, value_width=value_width, rope=ROPE_MODES[rope], rope_scale=rope_scale, rope_theta=rope_theta,
                        rotary_width=rotary_width, dtype=dtype)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "paged_attention_kv_cache_create": _create, "reshape": reshape,
    "kv_state_add_sequence": PagedKVCache.add_sequence, "kv_state_remove_sequence": PagedKVCache.remove_sequence,
    "kv_state_fork_sequence": PagedKVCache.fork_sequence, "kv_state_popn": PagedKVCache.pop, "kv_state_clear": PagedKVCache.clear,
    "kv_state_begin_forward": PagedKVCache.begin_forward, "kv_state_end_forward": PagedKVCache.end_forward,
    "attention_kv_cache_attention_with_fused_qkv": PagedKVCache.attention,
    "attention_kv_cache_get_query_positions": lambda cache: cache.positions,
    "attention_kv_cache_get_num_available_pages": lambda cache: cache.available_pages,
    "attention_kv_cache_get_total_sequence_length": lambda cache: cache.total_length,
}
"""The functions by which models and their callers reach a cache, behind ``vm.builtin.``."""

for _name, _function in FUNCTIONS.items():
    register_func(f"vm.builtin.{_name}", _function, override=True)
