# SPDX-License-Identifier: Apache-2.0
"""``Schedule``: a program under transformation, handles into it, and the trace of what was done."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping
from typing import Any

from roundel.ir import IRModule, Token, Var, escape, free_vars, substitute, tir
from roundel.ir.errors import ScheduleError
from roundel.ir.jumps import without_jumps
from roundel.ir.tir import Expr, For, IndexMap, PrimFunc

from . import (
    blockize,
    cache,
    cache_index,
    chosen,
    copy_at,
    decompose_padding,
    epilogue,
    find,
    inline,
    kinds,
    layout,
    loops,
    move,
    neutral,
    once,
    online,
    padding,
    reduction,
    reindex_cache,
    rfactor,
    rolling,
    sampling,
    sliding_tiles,
    tensorize,
    tiles,
    unsafe,
    zeros,
)
from .arguments import as_numbers, check_arguments
from .decisions import OPEN, Decision
from .features import Features, features
from .handles import BlockRV, HandleError, LoopRV, StmtSRef
from .primitive import PRIMITIVES, Primitive
from .trace import Instruction, Trace, flatten, has_handles
from .tree import Tree, with_own_tokens


def method(fn: Callable[..., Any], **earlier: str) -> Callable[..., Any]:
    """A primitive as a method: handles instead of tokens, handles back. ``earlier`` are names that parameters had in TVM once."""
    found = PRIMITIVES[fn.__name__]

    @functools.wraps(fn)
    def call(self: Schedule, *args: Any, **keywords: Any) -> Any:
        bound = found.signature.bind(self, *args, **{earlier.get(k, k): v for k, v in keywords.items()})
        values = dict(list(bound.arguments.items())[1:])
        decision = values.pop("decision", None)
        values = {k: list(v) if found.signature.parameters[k].kind is found.signature.parameters[k].VAR_POSITIONAL else v for k, v in values.items()}
        return self.perform(found.name, values, {}, decision)

    call.__signature__ = found.signature  # type: ignore[attr-defined]
    return call


class Schedule:
    """Transforms the tensor programs of a module by primitives; handles stay valid, and everything is traced.

    ``mod`` is an IRModule or a PrimFunc (which becomes ``main``). ``sch.mod`` is the current program. Errors are
    ScheduleErrors that show the offending statement and leave the schedule as it was. With ``unresolved`` the numbers
    that are sampled stay variables of the program (``sch.decisions``), as for ``sketches``. ``debug_mask``,
    ``error_render_level`` and ``enable_check`` are TVM's: programs are checked always, errors are always in full.
    """

    def __init__(
        self,
        mod: IRModule | PrimFunc,
        *,
        seed: int | random.Random | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
        unresolved: bool = False,
    ) -> None:
        if isinstance(mod, PrimFunc):
            mod = IRModule({"main": mod})
        if not isinstance(mod, IRModule):
            raise ScheduleError(f"there is nothing to schedule in {escape.value(mod)}",
                                hint="give a tensor program (T.prim_func, te.create_prim_func) or an IRModule")
        self._mod = mod.with_functions({k: with_own_tokens(without_jumps(f)) for k, f in mod.items() if isinstance(f, PrimFunc)})
        self._trees: dict[str, Tree] = {}
        self._values: dict[Any, Any] = {}  # handle -> token, value, or why it died
        self._working_on: str | None = None
        self.trace = Trace()
        self._random = seed if isinstance(seed, random.Random) else random.Random(seed)
        self.unresolved = unresolved

    # --- state

    def __repr__(self) -> str:
        return self.mod.script(imports=False)

    @property
    def mod(self) -> IRModule:
        """The program as it is now."""
        return self._mod

    @property
    def func(self) -> PrimFunc:
        """The tensor program worked on (the only one, or the one chosen by ``work_on``)."""
        return self._mod[self._function()]  # type: ignore[return-value]

    @property
    def block_names(self) -> list[str]:
        """Those of the function worked on, in the order in which the blocks stand, the root's first."""
        return [b.name for b in self._tree(self._function()).blocks()]

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions of the function worked on that are open."""
        return self._tree(self._function()).decisions

    def features(self) -> Features:
        """Work, parallelism, registers and bytes of the function worked on: closed forms in its open decisions."""
        return features(self._tree(self._function()))

    def fork(self, seed: int | None = None) -> Schedule:
        """An independent schedule at the same point; handles are good in both."""
        new = object.__new__(Schedule)
        new.__dict__.update(self.__dict__)
        new._trees, new._values = dict(self._trees), dict(self._values)
        new._random = random.Random(self._random.getrandbits(64) if seed is None else seed)
        return new

    copy = fork

    def seed(self, seed: int) -> None:
        """Start the generator of random choices anew."""
        self._random = random.Random(seed)

    def fork_seed(self) -> int:
        """A seed for another generator."""
        return self._random.getrandbits(31)

    def remove_rv(self, rand_var: Any) -> None:
        """Forget a handle."""
        self._values.pop(rand_var, None)

    @property
    def func_working_on(self) -> str | None:
        """The function that ``work_on`` chose."""
        return self._working_on

    def show(self, **options: Any) -> None:
        """Print the program and the trace."""
        self._mod.show(**options)
        self.trace.show()

    def work_on(self, func_name: str) -> None:
        """Blocks are looked up by name in this function from now on."""
        if not isinstance(func_name, str) or not isinstance(self._mod.functions.get(func_name), PrimFunc):
            raise ScheduleError(f"there is no tensor program {func_name!r}", why=f"the module has {', '.join(self._mod.functions)}")
        self._working_on = func_name

    def get(self, handle: Any) -> Any:
        """What a handle stands for now: a For, a Block, or a value."""
        if isinstance(handle, BlockRV | LoopRV):
            token = self._token(handle)
            return self._tree_of(token)[1].nodes[token]
        return self._resolve(handle)

    def get_sref(self, handle: BlockRV | LoopRV) -> StmtSRef:
        """Where a handle points now."""
        return StmtSRef(self.get(handle))

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of this name, in ``func_name`` or the function worked on."""
        if func_name is None and sum(isinstance(f, PrimFunc) for f in self._mod.functions.values()) > 1:
            func_name = self._function()
        return self.perform("get_block", {}, {"name": name, **({"func_name": func_name} if func_name else {})})

    get_sblock = get_block
    get_loops = method(find.get_loops)
    get_child_blocks = method(find.get_child_blocks)
    get_producers = method(find.get_producers)
    get_consumers = method(find.get_consumers)
    get_output_blocks = method(find.get_output_blocks)
    enter_postproc = method(find.enter_postproc)

    split = method(loops.split)
    fuse = method(loops.fuse)
    reorder = method(loops.reorder)
    merge = method(loops.merge)
    merge_online = method(online.merge_online)
    loop_partition = method(loops.loop_partition)
    add_unit_loop = method(loops.add_unit_loop)

    parallel = method(kinds.parallel)
    vectorize = method(kinds.vectorize)
    unroll = method(kinds.unroll)
    bind = method(kinds.bind)
    annotate = method(kinds.annotate)
    unannotate = method(kinds.unannotate)
    set_scope = method(kinds.set_scope)
    storage_align = method(kinds.storage_align)

    cache_read = method(cache.cache_read)
    cache_write = method(cache.cache_write)
    cache_inplace = method(cache.cache_inplace)
    cache_index = method(cache_index.cache_index)
    read_at = method(copy_at.read_at)
    write_at = method(copy_at.write_at)
    reindex_cache_read = method(reindex_cache.reindex_cache_read)
    reindex_cache_write = method(reindex_cache.reindex_cache_write)
    compute_at = method(move.compute_at)
    reverse_compute_at = method(move.reverse_compute_at)
    rolling_buffer = method(rolling.rolling_buffer)
    compute_inline = method(inline.compute_inline)
    reverse_compute_inline = method(inline.reverse_compute_inline)
    fuse_reduction_epilogue = method(epilogue.fuse_reduction_epilogue)
    decompose_reduction = method(reduction.decompose_reduction)
    drop_neutral = method(neutral.drop_neutral)
    drop_unused = method(neutral.drop_unused)
    skip_zeros = method(zeros.skip_zeros)
    run_once = method(once.run_once)
    only_where_chosen = method(chosen.only_where_chosen)
    rfactor = method(rfactor.rfactor)
    blockize = method(blockize.blockize, loop="target")
    tensorize = method(tensorize.tensorize)

    transform_layout = method(layout.transform_layout)
    set_axis_separator = method(layout.set_axis_separator)
    transform_block_layout = method(layout.transform_block_layout)
    reindex = method(layout.reindex)
    pad_einsum = method(padding.pad_einsum)
    tile_einsum = method(tiles.tile_einsum)
    slide_einsum = method(sliding_tiles.slide_einsum)
    decompose_padding = method(decompose_padding.decompose_padding)
    annotate_buffer_access = method(unsafe.annotate_buffer_access)
    unsafe_hide_buffer_access = method(unsafe.unsafe_hide_buffer_access)
    unsafe_set_dtype = method(unsafe.unsafe_set_dtype)
    reorder_block_iter_var = method(layout.reorder_block_iter_var)

    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> bool:
        """Whether ``decompose_padding`` takes a block at a loop."""
        try:
            self.fork(0).decompose_padding(block, loop)
        except ScheduleError:
            return False
        return True

    knob = method(sampling.knob)
    sample_categorical = method(sampling.sample_categorical)
    sample_perfect_tile = method(sampling.sample_perfect_tile)
    sample_compute_location = method(sampling.sample_compute_location)

    # --- doing

    def perform(self, kind: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], decision: Any = None) -> Any:
        """Do a primitive by name, with its arguments by parameter name, and record it."""
        primitive = PRIMITIVES[kind]
        values = self._by_name(primitive, {**inputs, **attrs})
        check_arguments(primitive, {**values, **({} if decision is None else {"decision": decision})})
        func_name, tree = self._where(values)
        if decision is None and self.unresolved and kind in sampling.CAN_STAY_OPEN:
            decision = OPEN
        many = values.get(_variadic(primitive), ())
        change = primitive.apply(tree, *self._resolve(many), **self._keywords(primitive, values, decision))
        made = self._handles(change.made, change.tree)
        if change.tree is not tree:
            self._trees[func_name] = change.tree
            self._mod = self._mod.with_functions({func_name: change.tree.func})
            self._forward(kind, tree, change)
        self._record(kind, {**values, **change.recorded}, flatten(made), change.decision)
        return made

    def _record(self, kind: str, values: Mapping[str, Any], outputs: list[Any], decision: Any) -> None:
        inputs = {k: v for k, v in values.items() if has_handles(v)}
        attrs = {k: v for k, v in values.items() if k not in inputs}
        self.trace = self.trace.append(Instruction(kind, inputs, attrs, tuple(outputs), decision))

    def _by_name(self, primitive: Primitive, values: Mapping[str, Any]) -> dict[str, Any]:
        return {k: self._named(v) if k in primitive.blocks else v for k, v in values.items()}

    def _named(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._named(v) for v in value]
        return self.get_block(value) if isinstance(value, str) else value

    def _keywords(self, primitive: Primitive, values: Mapping[str, Any], decision: Any) -> dict[str, Any]:
        out = {k: as_numbers(primitive, k, self._resolve(v)) for k, v in values.items() if k != _variadic(primitive)}
        if primitive.samples:
            out.update(decision=decision, rng=self._random)
        return out

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, BlockRV | LoopRV):
            return self._token(value)
        if isinstance(value, list | tuple):
            return [self._resolve(v) for v in value]
        if callable(value):  # a function of indices, which may use sampled values
            return functools.wraps(value)(lambda *a, **k: self._resolve(value(*a, **k)))
        if isinstance(value, IndexMap):
            return IndexMap(value.initial_indices, tuple(map(self._resolve, value.final_indices)), *(getattr(value, f) for f in value._fields[2:]))
        if isinstance(value, Expr) and free_vars(value):
            return substitute(value, {v: self._values[v] for v in free_vars(value) if v in self._values})
        return value

    def _token(self, handle: Any) -> Token:
        found = self._values.get(handle)
        if isinstance(found, Token):
            return found
        what = "block" if isinstance(handle, BlockRV) else "loop"
        raise HandleError(f"this {what} is no longer there", why=found or "the handle is of another schedule")

    def _function(self) -> str:
        if self._working_on is not None:
            return self._working_on
        names = [k for k, f in self._mod.items() if isinstance(f, PrimFunc)]
        if len(names) == 1 or "main" in names:
            return names[0] if len(names) == 1 else "main"
        raise ScheduleError(
            "which function?",
            why=f"the module has {', '.join(names) or 'no tensor programs'}",
            hint="sch.work_on(name)",
        )

    def _tree(self, name: str) -> Tree:
        tree = self._trees.get(name)
        if tree is None or tree.func is not self._mod[name]:
            tree = self._trees[name] = Tree(self._mod[name])  # type: ignore[arg-type]
        return tree

    def _tree_of(self, token: Token) -> tuple[str, Tree]:
        for name, f in self._mod.items():
            if isinstance(f, PrimFunc) and token in self._tree(name).nodes:
                return name, self._tree(name)
        raise ScheduleError("this handle's statement is no longer in the program")

    def _where(self, values: Mapping[str, Any]) -> tuple[str, Tree]:
        for value in flatten(list(values.values())):
            if isinstance(value, BlockRV | LoopRV):
                return self._tree_of(self._token(value))
        name = values.get("func_name") or self._function()
        if not isinstance(self._mod.functions.get(name), PrimFunc):
            raise ScheduleError(f"there is no tensor program {name!r}", why=f"the module has {', '.join(self._mod.functions)}")
        return name, self._tree(name)

    def _handles(self, made: Any, tree: Tree) -> Any:
        if made is None:
            return None
        if isinstance(made, list | tuple):
            return [self._handles(m, tree) for m in made]
        handle: Any
        if isinstance(made, Token):
            handle = (LoopRV if type(tree.nodes[made]) is For else BlockRV)(self)
            self._values[handle] = made
            return handle
        handle = Var("v", tir.index_const(0).dtype)
        self._values[handle] = tir.as_index(made)
        return handle

    def _forward(self, kind: str, before: Tree, change: Any) -> None:
        after = change.tree.nodes
        if before.nodes.keys() <= after.keys():
            return
        for handle, token in list(self._values.items()):
            if isinstance(token, Token) and token in before.nodes and token not in after:
                self._values[handle] = change.forward.get(token, f"{kind} removed it")


def _variadic(primitive: Primitive) -> str:
    return next((n for n, p in primitive.signature.parameters.items() if p.kind is p.VAR_POSITIONAL), "")


__all__ = ["IndexMap", "Schedule"]
