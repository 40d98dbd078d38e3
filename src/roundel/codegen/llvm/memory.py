# SPDX-License-Identifier: Apache-2.0
"""Loads and stores: scalars, contiguous and strided vectors, gathers, predicated ones, bools and packed 4-bit types."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ...ir import tir
from ...ir.dtype import INT64, DType
from ...ir.errors import BuildError
from ..storage import element_bytes, is_packed
from ..writes import writes
from .address import Linear, add_scaled, halves, linear, linear_strides, offset, packed_place, pointer, times
from .arithmetic import broadcast, build_vector, concat, extract_lanes, pick_lanes, shuffle
from .emitter import EXPR, STMT, Emitter
from .lookups import looked_up
from .types import llvm_type, memory_type, splat, suffix_of

STREAMED_BYTES = 64  # a line of the cache


def as_ramp(e: tir.Expr) -> tuple[tir.Expr, tir.Expr] | None:
    """Base and stride when the vector is an arithmetic progression."""
    kind = type(e)
    if kind is tir.Ramp:
        return e.base, e.stride
    if kind is tir.Broadcast:
        return e.value, tir.IntImm(0, e.value.dtype)
    if kind in (tir.Add, tir.Sub):
        a, b = as_ramp(e.a), as_ramp(e.b)
        if a is None or b is None:
            return None
        combine = tir.add if kind is tir.Add else tir.sub
        return combine(a[0], b[0]), combine(a[1], b[1])
    if kind is tir.Mul:
        a, b = as_ramp(e.a), as_ramp(e.b)
        if a is None or b is None:
            return None
        for (base, stride), (factor, step) in ((a, b), (b, a)):
            if type(step) is tir.IntImm and step.value == 0:
                return tir.mul(base, factor), tir.mul(stride, factor)
        return None
    if kind is tir.Cast and (inner := as_ramp(e.value)) is not None and inner[0].is_index:
        return tir.cast(inner[0], e.dtype.element), tir.cast(inner[1], e.dtype.element)
    return None


class Access:
    """The elements one load or store touches: ``first`` and ``step`` between lanes, or one offset per lane (``is_scattered``)."""

    def __init__(self, em: Emitter, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> None:
        self.em, self.buffer, self.indices = em, buffer, indices
        self.lanes = max((i.dtype.lanes for i in indices), default=1)
        self.is_scattered = False
        self.step: Linear = ({}, 1)
        if self.lanes == 1:
            self.first = offset(em, buffer, indices)
            return
        bases: list[Any] = []
        step: Linear = ({}, 0)
        for i, stride in zip(indices, linear_strides(em, buffer)):
            if i.dtype.lanes == 1:
                bases.append(i)
                continue
            ramp = as_ramp(i)
            if ramp is None:
                self.is_scattered = True
                return
            bases.append(ramp[0])
            t, c = times(linear(em, ramp[1]), stride)
            step = add_scaled(step[0], t, 1), step[1] + c
        self.first, self.step = offset(em, buffer, tuple(bases)), step

    @cached_property
    def per_lane(self) -> list[Linear]:
        """The offsets of lanes that are scattered."""
        columns = [[i] * self.lanes if i.dtype.lanes == 1 else _lane_exprs(self.em, i) for i in self.indices]
        return [offset(self.em, self.buffer, tuple(column[k] for column in columns)) for k in range(self.lanes)]

    @property
    def contiguous(self) -> bool:
        """Whether the lanes lie side by side, in order."""
        return not self.is_scattered and self.step == ({}, 1)

    @property
    def same(self) -> bool:
        """All lanes are one element."""
        return not self.is_scattered and self.step == ({}, 0)

    def lane(self, k: int) -> Linear:
        """The offset of lane k."""
        if self.is_scattered:
            return self.per_lane[k]
        return add_scaled(self.first[0], self.step[0], k), self.first[1] + k * self.step[1]


def access_of(em: Emitter, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> Access:
    """The access; remembered, for what is loaded is often stored again (not gathers, whose lanes are registers)."""
    key = buffer, indices
    hit = em.accesses.get(key)
    if hit is None:
        hit = Access(em, buffer, indices)
        if not hit.is_scattered:
            em.accesses[key] = hit
    return hit


def _lane_exprs(em: Emitter, index: tir.Expr) -> list[tir.Expr]:
    """The lanes of a vector of indices, computed, as variables of their own."""
    out: list[tir.Expr] = []
    depth = len(em.scopes)  # beyond every scope: known only in this statement
    for reg in extract_lanes(em, em.value(index), index.dtype):
        v = tir.Var("lane", index.dtype.element)
        em.bind(v, reg, depth)
        out.append(v if v.dtype is INT64 else tir.Cast(INT64, v))
    return out


def align_text(em: Emitter, buffer: tir.Buffer, where: Linear, nbytes: int) -> str:
    """What is known of the alignment: the element's size, or more where the memory is ours."""
    size = element_bytes(buffer.dtype.element)
    known = em.align.get(buffer.data, size)
    for k in (*where[0].values(), where[1]):
        while (k * size * buffer.dtype.lanes) % known:
            known //= 2
    return f"align {max(1, min(known, nbytes & -nbytes))}"


# ---- loads -------------------------------------------------------------------------------------------------


@writes(EXPR, tir.BufferLoad)
def _load(em: Emitter, e: tir.BufferLoad) -> str:
    access = access_of(em, e.buffer, e.indices)
    if access.is_scattered and (found := looked_up(em, e)) is not None:
        return found
    if e.predicate is not None:
        return _masked_load(em, e, access)
    if is_packed(e.buffer.dtype):
        return _packed_load(em, e, access)
    if access.lanes == 1 or access.contiguous:
        return _plain_load(em, e.buffer, access.first, e.dtype)
    element = e.buffer.dtype
    if element.lanes > 1:
        raise BuildError(f"a strided load of vectors from {e.buffer.name} cannot be compiled")
    if access.same:
        return broadcast(em, _plain_load(em, e.buffer, access.first, element), e.dtype)
    return build_vector(em, [_plain_load(em, e.buffer, access.lane(k), element) for k in range(access.lanes)], e.dtype)


def _plain_load(em: Emitter, buffer: tir.Buffer, where: Linear, dtype: DType) -> str:
    t = memory_type(dtype)
    facts = ", !invariant.load !0" if buffer.data in em.readonly else ""
    where_text = pointer(em, buffer, where)
    raw = em.op(f"load {t}, ptr {where_text}, {align_text(em, buffer, where, _nbytes(dtype))}{facts}")
    return em.op(f"icmp ne {t} {raw}, {'0' if dtype.lanes == 1 else 'zeroinitializer'}") if dtype.is_bool else raw


def _nbytes(dtype: DType) -> int:
    return element_bytes(dtype.element) * dtype.lanes


def _masked_load(em: Emitter, e: tir.BufferLoad, access: Access) -> str:
    """Lanes whose predicate is false are not touched and give zero."""
    t, mask = memory_type(e.dtype), em.value(e.predicate)
    if is_packed(e.buffer.dtype):
        return _guarded_lanes(em, e, access, mask)
    if e.dtype.lanes == 1:
        return em.value(tir.IfThenElse(e.predicate, tir.BufferLoad(e.buffer, e.indices), tir.const(0, e.dtype)))
    raw, lanes = "", 0
    for lane, dtype, part in _parts(em, e.dtype, mask):
        piece = _masked_part(em, e.buffer, access, lane, dtype, part)
        memory = DType("uint8") if dtype.is_bool else dtype.element
        raw, lanes = concat(em, raw, lanes, piece, dtype.lanes, memory) if lanes else (piece, dtype.lanes)
    return em.op(f"icmp ne {t} {raw}, zeroinitializer") if e.dtype.is_bool else raw


def _parts(em: Emitter, dtype: DType, mask: str) -> list[tuple[int, DType, str]]:
    """What is accessed at a time with a mask: its first lane, its type, its part of the mask. WebAssembly's code generator (LLVM 22) takes masks of 32
    and 64 lanes for comparisons of bytes, and aborts where they are not ("SETCC vector element counts must match")."""
    if dtype.lanes not in (32, 64) or not em.platform.arch.startswith("wasm"):
        return [(0, dtype, mask)]
    flags = DType("bool").with_lanes(dtype.lanes)
    return [(k, dtype.element.with_lanes(16), shuffle(em, mask, flags, range(k, k + 16))) for k in range(0, dtype.lanes, 16)]


def _masked_part(em: Emitter, buffer: tir.Buffer, access: Access, lane: int, dtype: DType, mask: str) -> str:
    """Loads these lanes of an access from ``lane`` on."""
    t, masks = memory_type(dtype), f"<{dtype.lanes} x i1>"
    if access.contiguous:
        first = access.lane(lane)
        where, size = pointer(em, buffer, first), align_text(em, buffer, first, _nbytes(dtype)).split()[1]
        name = em.declare(f"llvm.masked.load.{suffix_of(t)}.p0", t, "ptr", "i32", masks, t)
        return em.op(f"call {t} {name}(ptr {where}, i32 {size}, {masks} {mask}, {t} zeroinitializer)")
    pointers, size = _pointers_from(em, buffer, access, lane, dtype.lanes), element_bytes(dtype.element)
    ptrs = f"<{dtype.lanes} x ptr>"
    name = em.declare(f"llvm.masked.gather.{suffix_of(t)}.v{dtype.lanes}p0", t, ptrs, "i32", masks, t)
    return em.op(f"call {t} {name}({ptrs} {pointers}, i32 {size}, {masks} {mask}, {t} zeroinitializer)")


@writes(EXPR, tir.Shuffle)
def _shuffle(em: Emitter, e: tir.Shuffle) -> str:
    """Loads of memory that adjoins, in order, are one load."""
    loads = e.vectors
    lanes = sum(v.dtype.lanes for v in loads)
    if len(loads) == 1 or tuple(e.indices) != tuple(range(lanes)) or any(
            type(v) is not tir.BufferLoad or v.buffer is not loads[0].buffer or v.predicate is not None for v in loads):
        return pick_lanes(em, e)
    first, *others = (access_of(em, v.buffer, v.indices) for v in loads)
    end, adjoin = first.lanes, first.contiguous and not is_packed(first.buffer.dtype)
    for access in others:
        terms, constant = access.first
        adjoin = adjoin and access.contiguous and terms == first.first[0] and constant == first.first[1] + end
        end += access.lanes
    return _plain_load(em, first.buffer, first.first, e.dtype) if adjoin else pick_lanes(em, e)


def _pointers(em: Emitter, buffer: tir.Buffer, access: Access) -> str:
    t = f"<{access.lanes} x ptr>"
    moving = [k for k, i in enumerate(access.indices) if i.dtype.lanes > 1]
    terms, stride = linear_strides(em, buffer)[moving[0]]
    if access.is_scattered and len(moving) == 1 and not terms and not buffer.dtype.is_handle and buffer.dtype.lanes == 1:
        index = access.indices[moving[0]]  # instructions that gather add a vector of indices to one address
        base = pointer(em, buffer, offset(em, buffer, tuple(tir.index_const(0) if k in moving else i for k, i in enumerate(access.indices))))
        wide = tir.cast(index, INT64.with_lanes(access.lanes))
        steps = em.value(wide if stride == 1 else wide * stride)
        return em.op(f"getelementptr i{8 * element_bytes(buffer.dtype.element)}, ptr {base}, <{access.lanes} x i64> {steps}")
    vector = "poison"
    for k in range(access.lanes):
        vector = em.op(f"insertelement {t} {vector}, ptr {pointer(em, buffer, access.lane(k))}, i64 {k}")
    return vector


def _pointers_from(em: Emitter, buffer: tir.Buffer, access: Access, lane: int, lanes: int) -> str:
    """Of so many lanes."""
    all_of_them, t = _pointers(em, buffer, access), f"<{access.lanes} x ptr>"
    if lanes == access.lanes:
        return all_of_them
    chosen = ", ".join(f"i32 {k}" for k in range(lane, lane + lanes))
    return em.op(f"shufflevector {t} {all_of_them}, {t} poison, <{lanes} x i32> <{chosen}>")


def _guarded_lanes(em: Emitter, e: tir.BufferLoad, access: Access, mask: str) -> str:
    flags = extract_lanes(em, mask, e.predicate.dtype)
    out, element = [], e.dtype.element
    for k, flag in enumerate(flags):
        yes, done, start = em.name("lane"), em.name("done"), em.block
        em.branch(flag, yes, done)
        em.start(yes)
        with em.branch_values():
            loaded, end = _packed_element(em, e.buffer, access.lane(k)), em.block
        em.jump(done)
        em.start(done)
        out.append(em.op(f"phi {llvm_type(element)} [ {loaded}, %{end} ], [ 0, %{start} ]"))
    return build_vector(em, out, e.dtype)


# ---- stores ------------------------------------------------------------------------------------------------


@writes(STMT, tir.BufferStore)
def _store(em: Emitter, s: tir.BufferStore) -> None:
    access = access_of(em, s.buffer, s.indices)
    dtype = s.value.dtype
    if s.predicate is not None and s.predicate.dtype.lanes == 1:
        em.statement(tir.If(s.predicate, s.replace(predicate=None)))
        return
    value = em.value(s.value)
    if is_packed(s.buffer.dtype):
        _packed_store(em, s, access, value)
    else:
        if access.lanes > dtype.lanes:  # a scalar stored to all lanes
            dtype = dtype.with_lanes(access.lanes)
            value = broadcast(em, value, dtype)
        if dtype.is_bool:
            value = _to_bytes(em, value, dtype)
        _store_value(em, s, access, dtype, value)
    em.values.stored(s.buffer.data, em.distinct)


def _to_bytes(em: Emitter, value: str, dtype: DType) -> str:
    return em.op(f"zext {llvm_type(dtype)} {value} to {memory_type(dtype)}")


def _store_value(em: Emitter, s: tir.BufferStore, access: Access, dtype: DType, value: str) -> None:
    if s.predicate is not None:
        _masked_store(em, s, access, dtype, value)
    elif access.lanes == 1 or access.contiguous:
        _plain_store(em, s.buffer, access.first, dtype, value)
    else:
        for k in range(access.lanes):
            lane = em.op(f"extractelement {memory_type(dtype)} {value}, i64 {k}")
            _plain_store(em, s.buffer, access.lane(k), dtype.element, lane)


def _plain_store(em: Emitter, buffer: tir.Buffer, where: Linear, dtype: DType, value: str) -> None:
    place, align = pointer(em, buffer, where), align_text(em, buffer, where, _nbytes(dtype))
    text = f"store {memory_type(dtype)} {value}, ptr {place}, "
    if em.streaming and em.depth[buffer.data] == 0 and _nbytes(dtype) % STREAMED_BYTES == 0:
        _streamed_store(em, text, place, align)
    else:
        em.line(text + align)


def _streamed_store(em: Emitter, text: str, place: str, align: str) -> None:
    """Past the caches where the address allows it: the instruction for that wants aligned vectors."""
    em.streamed = True
    yes, no, done = em.name("streamed"), em.name("plain"), em.name("done")
    beyond = em.op(f"and i64 {em.op(f'ptrtoint ptr {place} to i64')}, {STREAMED_BYTES - 1}")
    em.branch(em.op(f"icmp eq i64 {beyond}, 0"), yes, no)
    for label, rest in ((yes, f"align {STREAMED_BYTES}, !nontemporal !1"), (no, align)):
        em.start(label)
        em.line(text + rest)
        em.jump(done)
    em.start(done)


def _leading_lanes(predicate: tir.Expr) -> int | None:
    """How many lanes, the first ones, a predicate holds for, where it says so by numbers."""
    if type(predicate) is tir.And:
        both = [_leading_lanes(p) for p in (predicate.a, predicate.b)]
        return None if None in both else min(both)  # type: ignore[type-var]
    sides = [as_ramp(e) for e in (predicate.a, predicate.b)] if type(predicate) is tir.LT else [None]
    numbers = [n.value if type(n) is tir.IntImm else None for s in sides for n in s or (None,)]
    if None in numbers or numbers[1] - numbers[3] != 1:
        return None
    return min(max(numbers[2] - numbers[0], 0), predicate.dtype.lanes)


def _masked_store(em: Emitter, s: tir.BufferStore, access: Access, dtype: DType, value: str) -> None:
    if _leading_lanes(s.predicate) == 1:  # LLVM 22 stores four bytes for the one of such a narrowed vector
        _plain_store(em, s.buffer, access.lane(0), dtype.element, em.op(f"extractelement {memory_type(dtype)} {value}, i64 0"))
        return
    for lane, part, mask in _parts(em, dtype, em.value(s.predicate)):
        t, masks = memory_type(part), f"<{part.lanes} x i1>"
        memory = (DType("uint8") if dtype.is_bool else dtype.element).with_lanes(dtype.lanes)
        piece = value if part is dtype else shuffle(em, value, memory, range(lane, lane + part.lanes))
        if access.contiguous:
            first = access.lane(lane)
            name = em.declare(f"llvm.masked.store.{suffix_of(t)}.p0", "void", t, "ptr", "i32", masks)
            size = align_text(em, s.buffer, first, _nbytes(part)).split()[1]
            em.line(f"call void {name}({t} {piece}, ptr {pointer(em, s.buffer, first)}, i32 {size}, {masks} {mask})")
            continue
        ptrs, nbytes = f"<{part.lanes} x ptr>", element_bytes(dtype.element)
        name = em.declare(f"llvm.masked.scatter.{suffix_of(t)}.v{part.lanes}p0", "void", t, ptrs, "i32", masks)
        em.line(f"call void {name}({t} {piece}, {ptrs} {_pointers_from(em, s.buffer, access, lane, part.lanes)}, i32 {nbytes}, {masks} {mask})")


# ---- packed types: several elements in a byte, the lowest bits first ---------------------------------------


def _packed_element(em: Emitter, buffer: tir.Buffer, where: Linear) -> str:
    t = llvm_type(buffer.dtype)
    place, shift = packed_place(em, buffer, where)
    byte = em.op(f"load i8, ptr {place}, align 1")
    shifted = byte if type(shift) is tir.IntImm and not shift.value else em.op(f"lshr i8 {byte}, {em.value(shift)}")
    return em.op(f"trunc i8 {shifted} to {t}")


def _packed_load(em: Emitter, e: tir.BufferLoad, access: Access) -> str:
    bits, lanes = e.buffer.dtype.bits, access.lanes
    per = 8 // bits
    even = halves(em, access.first, per) if access.contiguous and lanes > per and lanes % per == 0 else None
    if even is None:
        if lanes == 1:
            return _packed_element(em, e.buffer, access.first)
        return build_vector(em, [_packed_element(em, e.buffer, access.lane(k)) for k in range(lanes)], e.dtype)
    count, byte = lanes // per, DType("uint8")
    t = llvm_type(byte.with_lanes(count))
    raw = em.op(f"load {t}, ptr {pointer(em, e.buffer, even[0])}, align 1")
    parts, width = raw, count
    for p in range(1, per):
        shifted = em.op(f"lshr {t} {raw}, {splat(str(p * bits), byte.with_lanes(count))}")
        parts, width = concat(em, parts, width, shifted, count, byte)
    wide = byte.with_lanes(lanes)
    mixed = shuffle(em, parts, wide, [p * count + k for k in range(count) for p in range(per)])
    return em.op(f"trunc {llvm_type(wide)} {mixed} to {llvm_type(e.dtype)}")


def _packed_store(em: Emitter, s: tir.BufferStore, access: Access, value: str) -> None:
    """Whole bytes where the position is even; else each element reads and writes its byte."""
    lanes, bits, dtype = access.lanes, s.buffer.dtype.bits, s.value.dtype
    per = 8 // bits
    even = (
        halves(em, access.first, per)
        if access.contiguous and lanes > per and lanes % per == 0 and s.predicate is None
        else None
    )
    if even is not None:
        _packed_vector(em, s, even[0], value, lanes)
        return
    values = [value] if lanes == 1 else extract_lanes(em, value, dtype) if dtype.lanes > 1 else [value] * lanes
    flags = [None] * lanes if s.predicate is None else extract_lanes(em, em.value(s.predicate), s.predicate.dtype)
    for k, (v, flag) in enumerate(zip(values, flags)):
        _under(em, flag, lambda v=v, k=k: _packed_write(em, s.buffer, access.lane(k) if lanes > 1 else access.first, v))


def _under(em: Emitter, flag: str | None, write: Any) -> None:
    if flag is None:
        write()
        return
    yes, done = em.name("lane"), em.name("done")
    em.branch(flag, yes, done)
    em.start(yes)
    with em.branch_values():
        write()
    em.jump(done)
    em.start(done)


def _packed_write(em: Emitter, buffer: tir.Buffer, where: Linear, value: str) -> None:
    bits = buffer.dtype.bits
    place, shift = packed_place(em, buffer, where)
    amount = em.value(shift)
    keep = em.op(f"xor i8 {em.op(f'shl i8 {(1 << bits) - 1}, {amount}')}, -1")
    old = em.op(f"and i8 {em.op(f'load i8, ptr {place}, align 1')}, {keep}")
    new = em.op(f"shl i8 {em.op(f'zext {llvm_type(buffer.dtype)} {value} to i8')}, {amount}")
    em.line(f"store i8 {em.op(f'or i8 {old}, {new}')}, ptr {place}, align 1")


def _packed_vector(em: Emitter, s: tir.BufferStore, where: Linear, value: str, lanes: int) -> None:
    bits, byte = s.buffer.dtype.bits, DType("uint8")
    per = 8 // bits
    count, wide = lanes // per, llvm_type(byte.with_lanes(lanes))
    if s.value.dtype.lanes == 1:
        value = broadcast(em, value, s.buffer.dtype.with_lanes(lanes))
    bytes_ = em.op(f"zext {llvm_type(s.buffer.dtype.with_lanes(lanes))} {value} to {wide}")
    t, packed = llvm_type(byte.with_lanes(count)), ""
    for p in range(per):
        part = shuffle(em, bytes_, byte.with_lanes(lanes), [k * per + p for k in range(count)])
        part = part if p == 0 else em.op(f"shl {t} {part}, splat (i8 {p * bits})")
        packed = part if p == 0 else em.op(f"or {t} {packed}, {part}")
    em.line(f"store {t} {packed}, ptr {pointer(em, s.buffer, where)}, align 1")
