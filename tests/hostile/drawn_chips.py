# SPDX-License-Identifier: Apache-2.0
"""Accelerators that nobody has seen: tiles, types, layouts and memories are drawn, and so are the models that run on them.

A chip is described through the public interface alone. Its driver is C that computes what the description says and knows the size of each memory. Layers
in a chain, with a residual connection, and with a size that only the run tells give what the processor gives, sums of integers bit for bit. A product
that the chip does not compute is one of which `explain` says why its instruction does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import numpy as np

import roundel as rd
from roundel.builder import BlockBuilder
from roundel.intrinsics import accelerators
from roundel.ir import IRModule, graph, tir
from roundel.ir.dtype import INT64
from roundel.ops import make
from roundel.script import parse
from roundel.target import Target

NAME = "drawn"
TYPES = [("int8", "int8", "int32"), ("uint8", "int8", "int32"), ("int16", "int16", "int32"), ("float16", "float16", "float32"),
         ("float32", "float32", "float32")]
C_TYPES = {"int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "int32": "int32_t", "float16": "uint16_t", "float32": "float"}


@dataclass(frozen=True)
class Chip:
    """``axes``: extents by name, those of rows, columns and sums; ``layouts``: the axes of data, weights and sums in the order of memory; ``scopes``: their
    memories; ``memories``: bytes, alignment and banks by scope; ``order``: which operand is which parameter."""

    axes: dict[str, int]
    layouts: tuple[str, str, str]
    types: tuple[str, str, str]
    scopes: tuple[str, str, str]
    memories: dict[str, tuple[int, int, int]]
    order: tuple[int, ...]

    def shape(self, operand: int) -> tuple[int, ...]:
        """Of an operand's tile."""
        return tuple(self.axes[a] for a in self.layouts[operand])

    def nbytes(self, operand: int) -> int:
        """Of an operand's tile."""
        return prod(self.shape(operand)) * np.dtype(self.types[operand]).itemsize


def drawn(rng: np.random.Generator) -> Chip:
    """A chip."""
    axes = {a: int(rng.integers(1, 10)) for a in "mnk"}
    axes |= {a: int(rng.integers(2, 4)) for a in "pq" if rng.random() < 0.2}  # more rows, more columns
    mixed = lambda names: "".join(rng.permutation([a for a in names if a in axes]))
    layouts = (mixed("mpk"), mixed("nqk"), mixed("mpnq"))
    types = TYPES[rng.integers(len(TYPES))]
    shared = rng.random()
    scopes = tuple(f"{NAME}.{s}" for s in (("one",) * 3 if shared < 0.3 else ("in", "in", "out") if shared < 0.5 else ("data", "weights", "sums")))
    chip = Chip(axes, layouts, types, scopes, {}, tuple(int(k) for k in rng.permutation(3)))  # type: ignore[arg-type]
    for scope in dict.fromkeys(scopes):
        banks, alignment = int(rng.choice([1, 1, 2, 4])), int(rng.choice([4, 4, 16, 64]))
        tiles = sum(chip.nbytes(k) + alignment for k in range(3) if scopes[k] == scope)
        chip.memories[scope] = (-(-tiles * int(rng.integers(3, 40)) // (banks * alignment)) * banks * alignment * banks, alignment, banks)
    return chip


def description(chip: Chip) -> Any:
    """The instruction as a tensor program."""
    names = "AWC"
    at = lambda k: f"{names[k]}[{', '.join('v' + a for a in chip.layouts[k])}]"
    whole = lambda k: f"{names[k]}[{', '.join(f'0:{n}' for n in chip.shape(k))}]"
    params = ", ".join(f'{names[k]}: T.Buffer({chip.shape(k)}, "{chip.types[k]}", scope="{chip.scopes[k]}")' for k in chip.order)
    wide = lambda k: at(k) if chip.types[k] == chip.types[2] else f'T.cast({at(k)}, "{chip.types[2]}")'
    loops = "".join(chip.axes)
    kinds = "".join("R" if a == "k" else "S" for a in loops)
    bound = ", ".join("v" + a for a in loops) + ("," if len(loops) == 1 else "")
    return parse(f"""
@T.prim_func
def product({params}):
    with T.block("root"):
        T.reads({whole(2)}, {whole(0)}, {whole(1)})
        T.writes({whole(2)})
        for {', '.join(loops)} in T.grid({', '.join(str(chip.axes[a]) for a in loops)}):
            with T.block("product"):
                {bound} = T.axis.remap("{kinds}", [{', '.join(loops)}])
                {at(2)} = {at(2)} + {wide(0)} * {wide(1)}
""")


def driver(chip: Chip) -> str:
    """The chip in C: what leaves a memory is a failure."""
    place = lambda k: " + ".join(f"{a} * {prod(chip.axes[b] for b in chip.layouts[k][n + 1:])}" for n, a in enumerate(chip.layouts[k])) or "0"
    parts = [f"static unsigned char {_c(s)}[{size}] __attribute__((aligned(64)));\n"
             f"void {_c(s)}_load(int64_t to, const void *from, int64_t n) {{ if (inside(to, n, {size})) memcpy({_c(s)} + to, from, n); }}\n"
             f"void {_c(s)}_store(void *to, int64_t from, int64_t n) {{ if (inside(from, n, {size})) memcpy(to, {_c(s)} + from, n); }}\n"
             f"void {_c(s)}_clear(int64_t at, int64_t n) {{ if (inside(at, n, {size})) memset({_c(s)} + at, 0, n); }}\n"
             for s, (size, _, _) in chip.memories.items()]
    operands = "".join(f"  {C_TYPES[chip.types[k]]} *x{k} = ({C_TYPES[chip.types[k]]} *)({_c(chip.scopes[k])} + at{k});\n" for k in range(3))
    aligned = lambda k: gcd(chip.nbytes(k), chip.memories[chip.scopes[k]][1])  # buffers begin at multiples of the memory's alignment, tiles behind each other
    checks = " | ".join(f"!inside(at{k}, {chip.nbytes(k)}, {chip.memories[chip.scopes[k]][0]}) | at{k} % {aligned(k)} != 0" for k in range(3))
    loops = "".join(f"for (int {a} = 0; {a} < {n}; {a}++) " for a, n in chip.axes.items())
    wide = "half" if chip.types[0] == "float16" else f"({C_TYPES[chip.types[2]]})"
    return f"""#include <stdint.h>
#include <string.h>
static int32_t fault, busy;
static int inside(int64_t at, int64_t n, int64_t size) {{ if (at < 0 || at + n > size) fault = 1; return !fault; }}
int32_t {NAME}_begin(void) {{ fault = 0; return busy++ ? 2 : 0; }}
int32_t {NAME}_finish(void) {{ busy = 0; return fault; }}
static float half(uint16_t x) {{ /* of numbers that are not too small to be normal, and finite */
  union {{ uint32_t bits; float value; }} y = {{ (uint32_t)(x & 0x8000) << 16 | (x & 0x7fff ? ((uint32_t)(x & 0x7fff) << 13) + (112u << 23) : 0) }};
  return y.value;
}}
{''.join(parts)}
void {NAME}_product({', '.join(f'int64_t at{k}' for k in chip.order)}) {{
  if ({checks}) {{ fault = fault ? fault : 3; return; }}
{operands}  {loops}
    x2[{place(2)}] += {wide}(x0[{place(0)}]) * {wide}(x1[{place(1)}]);
}}
"""


def _c(scope: str) -> str:
    return scope.replace(".", "_")


def described(chip: Chip) -> accelerators.Accelerator:
    """The chip as a package describes it."""
    made = accelerators.Accelerator(NAME, source=driver(chip), begin=f"{NAME}_begin", finish=f"{NAME}_finish", engines=("all",),
                                    statuses={1: "an address outside of a memory", 2: "busy", 3: "an address that is not aligned"})
    for scope, (size, alignment, banks) in chip.memories.items():
        made.memory(scope, size, alignment, banks)
    for scope in dict.fromkeys(chip.scopes[:2]):
        made.loads(scope, f"{_c(scope)}_load", engine="all", bytes_per_cycle=8)
    made.stores(chip.scopes[2], f"{_c(chip.scopes[2])}_store", engine="all", bytes_per_cycle=8)
    made.clears(chip.scopes[2], f"{_c(chip.scopes[2])}_clear", engine="all", bytes_per_cycle=32)
    made.computes(f"{NAME}_product", description(chip), engine="all", cycles=prod(chip.axes.values()) / 16)
    return made


def network(types: tuple[str, str, str], rng: np.random.Generator) -> tuple[IRModule, tuple[int, ...]]:
    """Up to three products in a chain, or convolutions, with residual connections; the shape of the input, whose first size may be 0: any."""
    data, weight, total = types
    width, is_symbolic, pictures = int(rng.integers(5, 50)), bool(rng.random() < 0.4), bool(rng.random() < 0.3)
    size = tir.Var("n", INT64, True) if is_symbolic else int(rng.integers(2, 40)) if not pictures else 1
    shape = (size, width, *(int(rng.integers(4, 9)) for _ in range(2 * pictures)))
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo(shape, data))
    emit = lambda *a, **k: bb.emit(make(*a, **k))
    with bb.function("main", [x]):
        with bb.dataflow():
            value, outer = x, width
            for layer in range(int(rng.integers(1, 4))):
                last, outer = outer, width if rng.random() < 0.5 else int(rng.integers(3, 60))
                window = int(rng.choice([1, 3])) if pictures else 0
                w = graph.Constant.of(_numbers(weight, (outer, last, window, window) if pictures else (last, outer), rng))
                kept = value
                sums = emit("nn.conv2d", value, w, padding=window // 2, out_dtype=total) if pictures else emit("matmul", value, w, out_dtype=total)
                scaled = emit("multiply", emit("astype", sums, dtype="float32"), np.float32(1 / (40 * last)))
                if outer == last and layer:
                    scaled = emit("add", scaled, emit("astype", kept, dtype="float32"))
                value = scaled if data.startswith("float") else emit("minimum", emit("maximum", emit("round", scaled), np.float32(0)), np.float32(100))
                value = emit("astype", value, dtype=data)
            out = bb.emit_output(value)
        bb.emit_func_output(out)
    return bb.get(), (0 if is_symbolic else size, *shape[1:])  # type: ignore[arg-type, return-value]


def _numbers(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if dtype.startswith("float"):
        return rng.integers(-8, 9, shape).astype(dtype)  # products and sums of such are exact
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -200), min(info.max, 200) + 1, shape).astype(dtype)


def attack(count: int, seed: int, start: int = 0) -> Iterator[str]:
    """Each attempt is a chip and a model on it."""
    for k in range(start, count):
        rng = np.random.default_rng([seed, k])
        chip = drawn(rng)
        finding = tried(chip, rng)
        if finding:
            yield f"attempt {k}: {finding}, on {chip}"


def tried(chip: Chip, rng: np.random.Generator) -> str:
    """What is wrong with a model on a chip; nothing where nothing is."""
    mod, shape = network(chip.types, rng)
    made = accelerators.register(described(chip))
    try:
        model = rd.compile(mod, target=Target(f"x86-64-v3 -device={NAME}"), threads=1)
        plain = rd.compile(mod, target="x86-64-v3", threads=1)
        for rows in (1, 3, 17) if shape[0] == 0 else shape[:1]:
            x = _numbers(chip.types[0], (rows, *shape[1:]), rng)
            got, want = np.asarray(model(x)), np.asarray(plain(x))
            if not np.allclose(got.astype(np.float64), want.astype(np.float64), rtol=2e-3 if chip.types[0].startswith("float") else 0, atol=1e-3):
                return f"{(got != want).mean():.1%} of the results of {rows} rows differ"
        return left_without_reason(mod)
    except rd.RoundelError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        accelerators.unregister(made)


def left_without_reason(mod: IRModule) -> str:
    """The first product that the chip, which is registered, does not compute, and of whose instruction nothing is said; nothing where there is none."""
    rows = rd.explain(mod, target=Target(f"x86-64-v3 -device={NAME}"), threads=1).kernels
    for row in rows:
        is_product = any(name in row["kernel"] for name in ("matmul", "conv2d"))
        if is_product and row["rule"] != NAME and f"{NAME}.{NAME}_product" not in row["instructions_refused"]:
            return f"{row['kernel']} is left to the processor: {row['instructions_refused']}"
    return ""
