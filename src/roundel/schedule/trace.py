# SPDX-License-Identifier: Apache-2.0
"""Traces: what was done to a program, printable as Python, as JSON, to be replayed, also with other decisions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roundel.ir import Var, free_vars, substitute, tir
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import ScheduleError
from roundel.ir.tir import Expr, IndexMap

from .handles import BlockRV, LoopRV
from .primitive import PRIMITIVES

if TYPE_CHECKING:
    from .schedule import Schedule

HANDLES = (BlockRV, LoopRV, Var)
LOOKING = frozenset({"get_block", "get_loops", "get_child_blocks", "get_producers", "get_consumers", "get_output_blocks", "sample_categorical",
                     "sample_perfect_tile", "sample_compute_location"})  # instructions that change no program


@dataclass(frozen=True, eq=False)
class Instruction:
    """One primitive as it was called: ``inputs`` by parameter name hold handles and expressions over sampled values
    (a ``*args`` parameter holds a list), ``attrs`` plain values; ``outputs`` are the handles it made."""

    kind: str
    inputs: Mapping[str, Any]
    attrs: Mapping[str, Any]
    outputs: tuple[Any, ...]
    decision: Any = None

    @property
    def samples(self) -> bool:
        """Whether it holds a decision that can be changed."""
        return PRIMITIVES[self.kind].samples if self.kind in PRIMITIVES else False


class Trace:
    """An immutable list of instructions; ``decisions`` replace what some of them have chosen."""

    def __init__(self, instructions: Sequence[Instruction] = (), decisions: Mapping[Instruction, Any] | None = None) -> None:
        self.instructions = tuple(replace(i, decision=decisions[i]) if i in decisions else i for i in instructions) if decisions else tuple(instructions)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __len__(self) -> int:
        return len(self.instructions)

    @property
    def insts(self) -> list[Instruction]:
        """The instructions, by TVM's name."""
        return list(self.instructions)

    def get_decision(self, instruction: Instruction) -> Any:
        """What a sampling instruction of this trace chose."""
        return self.decisions.get(instruction)

    def append(self, instruction: Instruction) -> Trace:
        """A longer trace."""
        return Trace((*self.instructions, instruction))

    @property
    def decisions(self) -> dict[Instruction, Any]:
        """What each sampling instruction chose."""
        return {i: i.decision for i in self.instructions if i.samples}

    def simplified(self, remove_postproc: bool = False) -> Trace:
        """The trace without instructions that only look and whose results nothing uses; with ``remove_postproc`` up to ``enter_postproc``."""
        kept: list[Instruction] = []
        used: set[Any] = set()
        for i in reversed(self._before_postproc() if remove_postproc else self.instructions):
            if i.kind not in LOOKING or any(o in used for o in i.outputs):
                kept.append(i)
                used.update(h for v in i.inputs.values() for h in _handles_in(v))
        return Trace(kept[::-1])

    def _before_postproc(self) -> tuple[Instruction, ...]:
        kinds = [i.kind for i in self.instructions]
        return self.instructions[: kinds.index("enter_postproc")] if "enter_postproc" in kinds else self.instructions

    def with_decision(self, instruction: Instruction | int, decision: Any, remove_postproc: bool = False) -> Trace:
        """The trace with another choice at a sampling instruction (itself, or the n-th sampling one); with ``remove_postproc`` up to
        ``enter_postproc``."""
        if remove_postproc:
            return Trace(self._before_postproc()).with_decision(instruction, decision)
        sampling = [i for i in self.instructions if i.samples]
        target = sampling[instruction] if isinstance(instruction, int) else instruction
        if target not in sampling:
            raise ScheduleError("with_decision needs a sampling instruction of this trace")
        return Trace([replace(i, decision=decision) if i is target else i for i in self.instructions])

    def with_decisions(self, decisions: Sequence[Any]) -> Trace:
        """The trace with these choices at its sampling instructions, in order."""
        if len(decisions) != len(self.decisions):
            raise ScheduleError(f"{len(decisions)} decisions for a trace with {len(self.decisions)}")
        chosen = iter(decisions)
        return Trace([replace(i, decision=next(chosen)) if i.samples else i for i in self.instructions])

    def apply_to(self, sch: Schedule, *, decide: Callable[[Instruction], Any] | None = None,
                 arguments: Callable[[Schedule, str, Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]] | None = None) -> dict[Any, Any]:
        """Do the same to another schedule; gives back where each handle of this trace went.

        ``decide`` may choose at sampling instructions (None keeps the recorded decision). ``arguments(sch, kind, inputs, attrs)`` may give an
        instruction other plain arguments than its ``attrs``, just before it is done.
        """
        table: dict[Any, Any] = {}
        for i in self.instructions:
            decision = decide(i) if decide is not None and i.samples else None
            inputs, attrs = _translate(dict(i.inputs), table), dict(i.attrs)
            if arguments is not None:
                attrs = dict(arguments(sch, i.kind, inputs, attrs))
            made = sch.perform(i.kind, inputs, attrs, i.decision if decision is None else decision)
            flat = flatten(made)
            if len(flat) != len(i.outputs):
                raise ScheduleError(
                    f"{i.kind} made {len(flat)} handles where the trace has {len(i.outputs)}",
                    hint="the program differs too much from the traced one",
                )
            table.update(zip(i.outputs, flat))
        return table

    def apply_to_schedule(self, sch: Schedule, remove_postproc: bool = False, decision_provider: Callable[[Instruction], Any] | None = None) -> None:
        """``apply_to``, with TVM's parameters: with ``remove_postproc`` up to ``enter_postproc``."""
        Trace(self._before_postproc() if remove_postproc else self.instructions).apply_to(sch, decide=decision_provider)

    # --- text

    def as_python(self) -> list[str]:
        """One line of Python per instruction, on a schedule named ``sch``."""
        names = _Names()
        return [_line(i, names) for i in self.instructions]

    def show(self) -> None:
        """Print the trace as Python."""
        print(self)

    def __str__(self) -> str:
        return "\n".join(["def apply(sch):", *("    " + line for line in self.as_python() or ["pass"])])

    __repr__ = __str__

    def as_json(self) -> str:
        """A text that ``from_json`` reads."""
        return json.dumps(self.as_data())

    @staticmethod
    def from_json(text: str) -> Trace:
        """The trace that ``as_json`` wrote."""
        return Trace.from_data(json.loads(text))

    @staticmethod
    def apply_json_to_schedule(json_obj: str, sch: Schedule) -> None:
        """Apply the trace that ``as_json`` wrote to a schedule of the same program."""
        Trace.from_json(json_obj).apply_to_schedule(sch)

    def as_data(self, sizes: Sequence[Var] = ()) -> list[Any]:
        """What ``as_json`` writes, as lists and dictionaries. ``sizes`` are variables of the program, which are written by their position."""
        names = _Names()
        names.names.update((v, f"n{k}") for k, v in enumerate(sizes))
        write = lambda x: encode(x, names)
        return [[i.kind, write(dict(i.inputs)), write(dict(i.attrs)), write(list(i.outputs)), write(i.decision)] for i in self.instructions]

    @staticmethod
    def from_data(data: Sequence[Any], sizes: Sequence[Var] = ()) -> Trace:
        """The trace that ``as_data`` wrote, for a program with these sizes."""
        handles: dict[str, Any] = {f"n{k}": v for k, v in enumerate(sizes)}
        read = lambda x: decode(x, handles)
        return Trace([Instruction(kind, read(inputs), read(attrs), tuple(read(outputs)), read(decision)) for kind, inputs, attrs, outputs, decision in data])


def flatten(made: Any) -> list[Any]:
    """The handles in what a primitive made."""
    if made is None:
        return []
    return [h for m in made for h in flatten(m)] if isinstance(made, list | tuple) else [made]


def _handles_in(value: Any) -> list[Any]:
    """The handles that occur in an argument."""
    if isinstance(value, list | tuple):
        return [h for v in value for h in _handles_in(v)]
    return [*free_vars(value)] if isinstance(value, Expr) else [value] if isinstance(value, HANDLES) else []


def has_handles(value: Any) -> bool:
    """Whether handles occur in an argument."""
    if isinstance(value, list | tuple):
        return any(map(has_handles, value))
    return isinstance(value, HANDLES) or (isinstance(value, Expr) and bool(free_vars(value)))


def _translate(value: Any, table: Mapping[Any, Any]) -> Any:
    if isinstance(value, dict):
        return {k: _translate(v, table) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_translate(v, table) for v in value]
    if isinstance(value, Expr):
        return substitute(value, {v: table[v] for v in free_vars(value) if v in table})
    return table.get(value, value) if isinstance(value, BlockRV | LoopRV) else value


# --- names, Python and JSON


class _Names:
    """Names of handles in order of appearance: b0, l1, v2."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}

    def __call__(self, handle: Any) -> str:
        if handle not in self.names:
            letter = {BlockRV: "b", LoopRV: "l"}.get(type(handle), "v")
            self.names[handle] = f"{letter}{len(self.names)}"
        return self.names[handle]


def _line(i: Instruction, names: _Names) -> str:
    args = []
    values = {**i.inputs, **i.attrs}
    for name, p in PRIMITIVES[i.kind].signature.parameters.items() if i.kind in PRIMITIVES else ():
        if name in values:
            if p.kind is p.VAR_POSITIONAL:
                args += [python(v, names) for v in values[name]]
            elif values[name] is not p.default or p.default is p.empty:
                args.append(f"{name}={python(values[name], names)}")
    if not args and i.kind not in PRIMITIVES:
        args = [f"{k}={python(v, names)}" for k, v in values.items()]
    if i.decision is not None:
        args.append(f"decision={python(i.decision, names)}")
    known = i.kind != "sample_perfect_tile" or len(i.outputs) == values.get("n", 0)
    outputs = ("" if known else "_, ") + ", ".join(map(names, i.outputs))
    if i.outputs and _many(i):
        outputs += "," if len(i.outputs) == 1 else ""
    return (f"{outputs} = " if outputs else "") + f"sch.{i.kind}({', '.join(args)})"


def _many(i: Instruction) -> bool:
    return i.kind in (
        "get_loops",
        "get_child_blocks",
        "get_producers",
        "get_consumers",
        "get_output_blocks",
        "split",
        "loop_partition",
        "cache_inplace",
        "cache_index",
        "sample_perfect_tile",
    )


def python(value: Any, names: _Names) -> str:
    """A value as Python source."""
    if isinstance(value, BlockRV | LoopRV):
        return names(value)
    if isinstance(value, Expr):
        return _expression(value, names)
    if isinstance(value, IndexMap):
        table = {v: Var(v.name, v.dtype) for v in value.initial_indices}
        items = [_expression(e, names, keep=set(table)) for e in value.final_indices]
        for at in reversed(value.separators):
            items.insert(at, repr(IndexMap.AXIS_SEPARATOR))
        return f"lambda {', '.join(v.name for v in value.initial_indices)}: ({', '.join(items)},)"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(python(v, names) for v in value) + "]"
    return repr(value)


_OPERATORS = {tir.Add: "+", tir.Sub: "-", tir.Mul: "*", tir.FloorDiv: "//", tir.FloorMod: "%"}


def _expression(e: Expr, names: _Names, keep: set[Var] | None = None) -> str:
    if type(e) is Var:
        return e.name if keep and e in keep else names(e)
    if type(e) in _OPERATORS:
        return f"({_expression(e.a, names, keep)} {_OPERATORS[type(e)]} {_expression(e.b, names, keep)})"
    return repr(e.value) if type(e) in (tir.IntImm, tir.FloatImm, tir.StringImm) else repr(e)


_OP_NAMES = {"+": tir.add, "-": tir.sub, "*": tir.mul, "//": tir.floordiv, "%": tir.floormod}


def encode(value: Any, names: _Names) -> Any:
    """A value as JSON: handles, expressions and index maps are tagged lists."""
    if isinstance(value, BlockRV | LoopRV | Var):
        return {"rv": names(value)}
    if type(value) in _OPERATORS:
        return {"op": _OPERATORS[type(value)], "args": [encode(value.a, names), encode(value.b, names)]}
    if isinstance(value, tir.IntImm | tir.FloatImm | tir.StringImm):
        return {"imm": value.value, "dtype": str(value.dtype)}
    if isinstance(value, IndexMap):
        for k, v in enumerate(value.initial_indices):
            names.names[v] = f"${k}:{v.name}"
        return {
            "map": [encode(v, names) for v in value.initial_indices],
            "to": [encode(e, names) for e in value.final_indices],
            "cut": list(value.separators),
        }
    if isinstance(value, Mapping):
        return {"dict": {k: encode(v, names) for k, v in value.items()}}
    if isinstance(value, list | tuple):
        return [encode(v, names) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ScheduleError(f"a trace with {value!r} ({type(value).__name__}) in it cannot be written as JSON")


def decode(value: Any, handles: dict[str, Any]) -> Any:
    """What ``encode`` wrote."""
    if isinstance(value, list):
        return [decode(v, handles) for v in value]
    if not isinstance(value, dict):
        return value
    read = lambda x: decode(x, handles)
    if "rv" in value:
        name = value["rv"]
        if name[0] == "$":
            handles.setdefault(name, Var(name.split(":", 1)[1], tir.index_const(0).dtype))
        if name not in handles:
            handles[name] = {"b": BlockRV, "l": LoopRV}.get(name[0], lambda: Var(name, tir.index_const(0).dtype))()
        return handles[name]
    if "op" in value:
        return _OP_NAMES[value["op"]](*map(read, value["args"]))
    if "imm" in value:
        return tir.StringImm(value["imm"]) if value["dtype"] == "str" else tir.const(value["imm"], value["dtype"])
    if "map" in value:
        return IndexMap(tuple(map(read, value["map"])), tuple(map(read, value["to"])), tuple(value["cut"]))
    return {k: read(v) for k, v in value["dict"].items()}


def index_map_data(index_map: IndexMap) -> Any:
    """An index map as JSON."""
    return encode(index_map, _Names())
