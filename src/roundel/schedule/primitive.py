# SPDX-License-Identifier: Apache-2.0
"""What a schedule primitive is: a pure function from a program and tokens to a changed program and what it made.

    @primitive
    def fuse(tree: Tree, *loops: Loop) -> Change:
        ...

``Schedule`` turns each into a method that takes handles, and into an instruction of the trace.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NoReturn

from roundel.ir import Token
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import ScheduleError

from .tree import Tree

Loop = Token  # annotations of a primitive's parameters (``arguments`` says what is taken for each): the token of a loop, of a block
BlockToken = Token
Target = Token  # a loop or a block
Place = Any  # the token of a loop, or -1 or -2 from sample_compute_location
Factor = Any  # a number, an expression over sampled values, or None for what is left
BufferName = Any  # a buffer, its name, ("read", number) or ("write", number)
Map = Any  # an IndexMap, or a function of indices
Fill = Any  # what padding holds: a number, an expression, a function of indices
Printable = Any  # what script can show
Choice = Any  # what a sampling primitive chose: a position
Tile = Any  # what it chose: factors


@dataclass
class Change:
    """``made`` is what the caller gets handles for (tokens, expressions, lists of them); ``forward`` says where tokens
    that vanish went, or in words why they died; ``decision`` what a sampling primitive chose; ``recorded`` arguments
    in the form in which the trace keeps them."""

    tree: Tree
    made: Any = None
    forward: Mapping[Token, Token | str] = field(default_factory=dict)
    decision: Any = None
    recorded: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Primitive:
    """A named primitive; ``pure`` ones only look (``get_block``), ``samples`` ones take a generator and a decision."""

    name: str
    apply: Callable[..., Change]
    signature: inspect.Signature
    samples: bool
    blocks: frozenset[str]  # parameters where a block may be given by name

    @property
    def doc(self) -> str:
        """The docstring of the function: before and after, in script."""
        return self.apply.__doc__ or ""


PRIMITIVES: dict[str, Primitive] = {}


def primitive(fn: Callable[..., Change]) -> Callable[..., Change]:
    """Enter a function in the table of primitives under its name."""
    signature = inspect.signature(fn)
    found = signature.parameters
    blocks = frozenset(n for n, p in found.items() if "BlockToken" in str(p.annotation))
    PRIMITIVES[fn.__name__] = Primitive(fn.__name__, fn, signature, "decision" in found, blocks)
    return fn


def refuse(tree: Tree, at: Any, what: str, why: str = "", hint: str = "") -> NoReturn:
    """Raise the error that shows the offending statement (itself or its token) as script, with the loops around it."""
    stmt = tree.nodes[at] if isinstance(at, Token) else at
    outer = next(iter(tree.loops(stmt)), stmt) if stmt in tree.parents else stmt
    raise ScheduleError(what, where=tree.name, why="\n".join(t for t in (why, outer.script()) if t), hint=hint)
