# SPDX-License-Identifier: Apache-2.0
"""Instructions for products of narrow numbers on extreme operands: the implementation computes what the description says, in the interpreter and where the
instruction can be run: on this processor, or in an emulator of one that has it.

An attempt is one set of operands for each instruction: the ends of the types, single ends among zeros, infinities, NaNs, and numbers too small to be normal.
Instructions that neither this processor nor an emulator has are only compared in the interpreter.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import roundel as rd
from roundel.boards import RemoteModel
from roundel.builder import BlockBuilder
from roundel.interp import interpret
from roundel.intrinsics import TensorIntrin
from roundel.intrinsics.registry import SCALAR
from roundel.ir import IRModule, Rewriter, Var, graph, on, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import HANDLE
from roundel.script import relax as R
from roundel.target import Target
from tests.boards.machines import MACHINES
from tests.intrinsics.test_instructions import BFLOAT16, PRODUCTS, agree, described

EMULATED = ("aarch64 with everything", "riscv64 with vectors of 128 bits", "riscv64 with vectors of 256 bits")


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` sets of operands for each instruction."""
    for number, intrin in enumerate(PRODUCTS):
        given = operands(intrin, count, np.random.default_rng([seed, number]))
        wanted = np.stack([described(intrin, [x[k] for x in given]) for k in range(count)])
        for where, made in places(intrin, given):
            for k in range(count):
                try:
                    agree(intrin, made[k], [x[k] for x in given], wanted[k])
                except AssertionError as error:
                    yield f"{intrin.name} {where}, operands {[x[k].tolist() for x in given]}: {' '.join(str(error).split())[:200]}"
                    break


def operands(intrin: TensorIntrin, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """So many of each operand, of a kind of numbers that changes from one to the next."""
    return [np.stack([_numbers(str(b.dtype), [n.value for n in b.shape], k % 5, rng) for k in range(count)]) for b in intrin.desc.buffer_params]


def _numbers(dtype: str, shape: list[int], kind: int, rng: np.random.Generator) -> np.ndarray:
    if np.dtype(BFLOAT16 if dtype == "bfloat16" else dtype).kind == "i" or dtype.startswith("uint"):
        info = np.iinfo(dtype)
        ends = [x for x in (info.min, info.max, -128, -127, 127, 128, 255, 0, 1) if info.min <= x <= info.max]
        one = np.where(rng.random(shape) < 0.1, rng.choice(ends, shape), 0)
        whole = np.full(shape, rng.choice(ends))
        drawn = [rng.choice(ends, shape), one, whole, rng.integers(info.min, info.max, shape, endpoint=True), rng.choice(ends[:2], shape)]
        return np.asarray(drawn[kind]).astype(dtype)
    large = 100.0 if dtype == "float16" else 1e15
    normal = rng.standard_normal(shape)
    floats = [rng.choice([np.nan, np.inf, -np.inf, 1.0, -2.0, 0.0], shape), rng.choice([1e-40, -3e-39, 6e-8, 1e-38, 2.0], shape),
              rng.choice([large, -large, 1 / large, 0.0, -0.0], shape), normal, np.where(rng.random(shape) < 0.1, np.inf, normal)]
    with np.errstate(over="ignore"):
        return floats[kind].astype(BFLOAT16 if dtype == "bfloat16" else dtype)


def places(intrin: TensorIntrin, given: list[np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Where an instruction is run, and what it makes there of these operands."""
    count = len(given[0])
    for part, program in (("as described", intrin.desc), ("as implemented", intrin.impl)):
        made = given[2].copy()
        interpret(IRModule({"main": many(program, count, tir.ForKind.PARALLEL)}))["main"](*given[:2], given[2], made)
        yield f"{part}, interpreted", made
    if SCALAR not in intrin.needs and intrin.runs_on(Target.host()):
        made = given[2].copy()
        rd.build(IRModule({"main": many(intrin.impl, count, tir.ForKind.SERIAL)}), threads=1)["main"](*given, made)
        yield "on this processor", made
    if SCALAR in intrin.needs:
        return
    for name in EMULATED:
        machine = MACHINES[name]
        if not machine.missing() and intrin.runs_on(Target(machine.target)):
            yield f"on {name}", emulated(intrin, given, machine.target, machine.command)


def emulated(intrin: TensorIntrin, given: list[np.ndarray], target: str, command: str) -> np.ndarray:
    """What an instruction makes in an emulator."""
    builder, params = BlockBuilder(), [graph.Var(n, graph.TensorInfo(x.shape, str(x.dtype))) for n, x in zip("abc", given, strict=True)]
    kernel = many(intrin.impl, len(given[0]), tir.ForKind.SERIAL).with_attr("scheduled", "by hand")
    with builder.function("main", params):
        with builder.dataflow():
            made = builder.emit_output(R.call_tir(builder.add_func(kernel, "kernel"), params, params[2].sinfo))
        builder.emit_func_output(made)
    return np.asarray(RemoteModel(rd.compile(builder.get(), target=target), command, timeout=120)(*given))


class _Each(Rewriter):
    """Accesses of an instruction's operands become those of one of many."""

    def __init__(self, buffers: dict[tir.Buffer, tir.Buffer], k: Var) -> None:
        self.buffers, self.k = buffers, k

    @on(tir.BufferLoad, tir.BufferStore)
    def _access(self, access: tir.BufferLoad | tir.BufferStore) -> tir.Node:
        new = self.generic(access)
        return new.replace(buffer=self.buffers[new.buffer], indices=(self.k, *new.indices)) if new.buffer in self.buffers else new

    @on(tir.BufferRegion)
    def _region(self, region: tir.BufferRegion) -> tir.BufferRegion:
        return tir.BufferRegion(self.buffers[region.buffer], (tir.Range(self.k, tir.index_const(1)), *region.region))


def many(program: tir.PrimFunc, count: int, kind: tir.ForKind) -> tir.PrimFunc:
    """A, B and what C was before, and a fourth buffer that becomes what an instruction makes of each of so many of them."""
    params, buffers = [], []
    for b in (*program.buffer_params, program.buffer_params[2]):
        buffers.append(tir.decl_buffer((count, *b.shape), b.dtype, b.name if len(buffers) < 3 else "D"))
        params.append(Var(buffers[-1].name, HANDLE))
    k = Var("k", "int64", True)
    table = dict(zip(program.buffer_params, (*buffers[:2], buffers[3]), strict=True))
    root = program.root_block
    assert root is not None
    inside = _Each(table, k).rewrite(root.body)
    loops = [Var(f"c{d}", "int64", True) for d in range(program.buffer_params[2].ndim)]
    copy: tir.Stmt = tir.BufferStore(buffers[3], tir.BufferLoad(buffers[2], (k, *loops)), (k, *loops))
    for v, n in reversed(list(zip(loops, program.buffer_params[2].shape, strict=True))):
        copy = tir.For(v, tir.index_const(0), n, tir.ForKind.SERIAL, copy)
    whole = tuple(tir.BufferRegion(b, tuple(tir.Range.of(n) for n in b.shape)) for b in buffers)
    realized = lambda name, body, own=(): tir.BlockRealize((), tir.const(True, "bool"), tir.Block((), whole[:3], whole[3:], name, body, None, own))
    each = realized("each", tir.seq(copy, inside), root.alloc_buffers)
    realize = realized("root", tir.For(k, tir.index_const(0), tir.index_const(count), kind, each))
    return tir.PrimFunc(tuple(params), realize, tuple(zip(params, buffers, strict=True)), Attrs({"global_symbol": "main"}))


