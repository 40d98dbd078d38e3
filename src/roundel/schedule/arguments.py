# SPDX-License-Identifier: Apache-2.0
"""What primitives take: every argument is checked against the kind that its parameter's annotation names, before a primitive runs.

A number may be a sampled value or arithmetic on such values where it says so; what else a primitive asks of its arguments it checks itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from random import Random
from typing import Any

from numpy import bool_

from roundel.ir import Buffer
from roundel.ir.errors import ScheduleError
from roundel.ir.tir import BufferRegion, CommReducer, Expr, FloatImm, IndexMap, IntImm

from ..ir import escape
from .decisions import OPEN
from .handles import BlockRV, Handle, LoopRV
from .primitive import Primitive

Test = Callable[[Any], bool]


def check_arguments(primitive: Primitive, values: Mapping[str, Any]) -> None:
    """Raises ScheduleError for an argument of another kind than its parameter's."""
    for name, value in values.items():
        parameter = primitive.signature.parameters.get(name)
        if parameter is None:
            raise ScheduleError(f"{primitive.name} has no parameter {name}", hint=f"it has {', '.join(list(primitive.signature.parameters)[1:])}")
        kind = KINDS[parameter.annotation]
        for one in value if parameter.kind is parameter.VAR_POSITIONAL else (value,):
            if not kind[0](one):
                shown = f"a {one.what}" if isinstance(one, Handle) else escape.value(one)
                raise ScheduleError(f"{primitive.name} cannot take {shown} as {name}", why=f"{name} is {kind[1]}")


def as_numbers(primitive: Primitive, name: str, value: Any) -> Any:
    """An argument with its sampled values resolved: for a parameter that is an integer, or a list of them, as Python's numbers."""
    if "int" not in primitive.signature.parameters[name].annotation:
        return value
    if isinstance(value, list):
        return [as_numbers(primitive, name, v) for v in value]
    return value.value if type(value) is IntImm else value


def applied(function: Callable[..., Any], variables: Sequence[Any], what: str, **named: Any) -> Any:
    """What a function of indices gives; raises ScheduleError where it does not take as many."""
    try:
        inspect.signature(function).bind(*variables, **named)
    except (TypeError, ValueError) as e:
        raise ScheduleError(f"{what} is not a function of {len(variables) + len(named)} indices", why=str(e)) from e
    return function(*variables, **named)


def _is(*types: type) -> Test:
    return lambda v: isinstance(v, types)


def _maybe(test: Test) -> Test:
    return lambda v: v is None or test(v)


def _many(test: Test) -> Test:
    return lambda v: isinstance(v, Sequence) and not isinstance(v, str | bytes) and all(map(test, v))


def _number(v: Any) -> bool:
    """An integer, or an expression over sampled integers."""
    return isinstance(v, Integral) or (isinstance(v, Expr) and v.dtype.is_int and v.dtype.lanes == 1)


def _real(v: Any) -> bool:
    return isinstance(v, Real | IntImm | FloatImm)


def _decided(test: Test) -> Test:
    """A decision, or that it stays open."""
    return lambda v: v is None or v == OPEN if isinstance(v, str | None) else test(v)


def _names_buffer(v: Any) -> bool:
    pair = isinstance(v, tuple | list) and len(v) == 2 and isinstance(v[0], str) and (_number(v[1]) or isinstance(v[1], str))
    return isinstance(v, Buffer | str) or pair


def _maps(v: Any) -> bool:
    return callable(v) or isinstance(v, IndexMap)


def _printable(v: Any) -> bool:
    """Whether script can show a value, so that a program with it can be read back."""
    unknown: list[Any] = []

    def node(n: Any) -> str:
        if not isinstance(n, Expr | IndexMap | CommReducer | Buffer | BufferRegion):
            unknown.append(n)
        return ""

    if not _named_by_text(v):
        return False
    from roundel.script.printer.values import value_text  # of what is no plain value, which is rare: the room of scripts takes long to import

    value_text(v, node)
    return not unknown


def _named_by_text(v: Any) -> bool:
    """Whether the keys of all dictionaries in a value are texts."""
    if isinstance(v, Mapping):
        return all(isinstance(k, str) and _named_by_text(x) for k, x in v.items())
    return all(map(_named_by_text, v)) if isinstance(v, tuple | list) else True


_BLOCK, _TEXT = _is(BlockRV), _is(str)

KINDS: dict[str, tuple[Test, str]] = {
    "BlockToken": (_BLOCK, "a block, or the name of one"),
    "Loop": (_is(LoopRV), "a loop"),
    "Place": (lambda v: isinstance(v, LoopRV) or (isinstance(v, Expr) and _number(v)), "a loop, or what sample_compute_location gave"),
    "Target": (_is(BlockRV, LoopRV), "a block or a loop"),
    "Target | Sequence[BlockToken]": (lambda v: isinstance(v, BlockRV | LoopRV) or _many(_BLOCK)(v), "a block, a loop, or a list of blocks"),
    "Sequence[BlockToken] | None": (_maybe(_many(_BLOCK)), "a list of blocks, or of names of blocks"),
    "int": (_number, "an integer"),
    "int | str": (lambda v: _number(v) or isinstance(v, str), "the number of a buffer, or its name"),
    "Sequence[int]": (_many(_number), "a list of integers"),
    "Sequence[Sequence[int]]": (_many(_many(_number)), "a list of lists of integers"),
    "Sequence[float]": (_many(_real), "a list of numbers"),
    "Sequence[Factor]": (_many(_maybe(_number)), "a list of integers, sampled values, and None for what is left"),
    "bool": (_is(bool, bool_, Integral, IntImm), "True or False"),
    "str": (_TEXT, "a text"),
    "str | None": (_maybe(_TEXT), "a text"),
    "BufferName": (_names_buffer, 'a buffer, its name, ("read", number) or ("write", number)'),
    "Map": (_maps, "a function of indices, or an IndexMap"),
    "Fill": (_maybe(lambda v: _real(v) or isinstance(v, Expr) or _maps(v)), "a number, or a function of indices"),
    "Printable": (_printable, "a number, a text, an expression, a buffer, or a list or dictionary of these, which script can show"),
    "Choice": (_decided(_number), "an integer"),
    "Tile": (_decided(_many(_number)), "a list of integers"),
    "Random | None": (_maybe(_is(Random)), "a generator of random numbers"),
}
"""By the text of a parameter's annotation: whether a value is of this kind, and the kind in words."""
