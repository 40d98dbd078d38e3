# SPDX-License-Identifier: Apache-2.0
"""The ``@node`` decorator: small immutable classes with slots, interned on demand.

    @node
    class For(Stmt):
        loop_var: Var
        ...

makes ``__slots__``, a positional constructor with defaults, ``_fields`` (all names), ``_children`` (the fields that
hold nodes or tuples of nodes) and ``replace``. ``@node(intern=True)`` hands out one object per distinct field values,
so equal means identical. Nodes are never changed after construction.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, dataclass_transform

from . import above
from .dataclass import dataclass

T = TypeVar("T", bound=type)
_LEAF = re.compile(r"^(tuple\[)?(str|int|float|bool|DType|Attrs|Choices|Token|Span|ForKind|IterKind|Any|object|Callable|Layout|ConstData|OpDef|Buffer)\b")
_ONE = re.compile(r"^(Expr|Stmt|Var|Range|Block|BufferRegion)( \| None)?$")  # kinds of fields that hold a node
_MANY = re.compile(r"^tuple\[(Expr|Stmt|IterVar|Range|BufferRegion|MatchBufferRegion), \.\.\.\]$")  # ... that hold nodes
_interned: dict[tuple, weakref.ref] = {}


@dataclass(frozen=True)
class Span:
    """Where something was written: a script's file, line and column, or a model's node (then line is 0, and ``name`` the node's own).
    ``nodes``: where several nodes became one, the names of all."""

    file: str
    line: int = 0
    column: int = 0
    name: str = ""
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class Token:
    """Identity of a loop or block that survives rewriting; equality of programs ignores it."""

    __slots__ = ()


class _Slot(weakref.ref):
    """A weak reference that removes its own entry from the interning table."""

    __slots__ = ("key",)


def _forget(slot: Any, table: dict = _interned) -> None:  # the default outlives this module's names at interpreter exit
    if table.get(slot.key) is slot:
        del table[slot.key]


class Node:
    """Base of all IR nodes."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _children: tuple[str, ...] = ()
    _hidden: tuple[str, ...] = ()  # fields that structural equality ignores
    _printer: Callable[[Any], str] | None = None  # installed by roundel.script

    def replace(self: Any, **changes: Any) -> Any:
        """A copy with some fields changed; the same object when nothing differs."""
        for k, v in changes.items():
            if getattr(self, k) is not v:
                break
        else:
            return self
        return self._with(changes)

    def _with(self: Any, changes: dict[str, Any]) -> Any:
        """A copy with some fields changed."""
        raise TypeError(f"{type(self).__name__} has no field {next(k for k in changes if k not in self._fields)!r}")

    def _below(self) -> list[Node]:
        """Child nodes in field order (buffers are references, not children)."""
        return []

    @staticmethod
    def _rebuilt(how: Any, node: Any) -> Any:
        """The node with its children replaced: ``how.rewrite`` maps a node, ``how.rewrite_items`` a tuple of nodes, ``how.rewrite_field`` anything else."""
        return node

    def script(self, **options: Any) -> str:
        """This node as TVMScript text (any node; a module or function parses back)."""
        return above.script().print_script(self, **options)

    def show(self, **options: Any) -> None:
        """Print the script, highlighted on a terminal."""
        above.script().show(self, **options)

    def __repr__(self) -> str:
        return self.script(imports=False)

    def fields_text(self) -> str:
        """The class with its fields, for nodes that the script language has no form for."""
        parts = ", ".join(f"{f}={getattr(self, f)!r}" for f in self._fields if f not in self._hidden)
        return f"{type(self).__name__}({parts})"

    def __reduce__(self) -> tuple:
        return type(self), tuple(getattr(self, f) for f in self._fields)


def _collect(cls: type) -> tuple[dict[str, str], dict[str, Any]]:
    annotations: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        declared = base.__dict__.get("_declared") or (base.__dict__.get("__annotations__", {}) if base is cls else {})
        for name, kind in declared.items():
            if not name.startswith("_") and not str(kind).startswith("ClassVar"):
                annotations[name] = str(kind)
        defaults.update(getattr(base, "_defaults", {}))
    for name in cls.__dict__.get("__annotations__", {}):
        if name in cls.__dict__:
            defaults[name] = cls.__dict__[name]
    return annotations, defaults


def _constructor(cls: type, fields: dict[str, str], defaults: dict[str, Any], derive: dict[str, str], intern: bool) -> str:
    args = ", ".join(f"{f}=_d_{f}" if f in defaults else f for f in fields)
    sets = [f"self.{f} = {f}" for f in fields] + [f"self.{f} = {code}" for f, code in derive.items()]
    names = "".join(f + ", " for f in fields)
    coerce = f"{names.rstrip(', ')}{',' if len(fields) == 1 else ''} = cls._coerce({names})" if hasattr(cls, "_coerce") else ""
    lists = [f"if type({f}) is list: {f} = tuple({f})" for f, kind in fields.items() if kind.startswith("tuple[")]
    if not intern:
        given = lists + ([coerce.replace("cls.", "self.")] if coerce else [])
        fresh = [f"if {f} is None: {f} = _Token()" for f, kind in fields.items() if kind.startswith("Token")]
        memo = ["self._facts = None"] if "_facts" in _all_slots(cls) else []
        body = "\n    ".join(given + fresh + sets + memo) or "pass"
        return f"def __init__(self, {args}):\n    {body}\n"
    key = f"cls._key({names})" if hasattr(cls, "_key") else f"(cls, {names})"
    memo = ["self._facts = None"] if "_facts" in _all_slots(cls) else []
    check = [f"cls._check({names})"] if hasattr(cls, "_check") else []  # of a new one only: what is known already was right
    body = "\n    ".join([*check, "self = _new(cls)", *sets, *memo])
    find = f"key = {key}\n    slot = _table.get(key)\n    if slot is not None:\n        self = slot()\n        if self is not None: return self"
    first = [find] if getattr(cls, "_equal_as_given", False) else []  # what is given may be equal already to what it is taken for
    given = "\n    ".join([*first, *lists, *([coerce] if coerce else []), find])
    return (f"def __new__(cls, {args}):\n    {given}\n    {body}\n"
            f"    slot = _Slot(self, _forget)\n    slot.key = key\n    _table[key] = slot\n    return self\n")


def nodes_in(value: Any) -> Iterator[Node]:
    """The nodes that the value of a field holds: itself, or those in tuples and dicts."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for v in value:
            yield from nodes_in(v)
    elif type(value) is dict:
        yield from value.values()


def _walking(fields: dict[str, str], children: tuple[str, ...]) -> str:
    """Source of ``_below`` and ``_rebuilt`` for a class: loops over fields, written out."""
    below, new = [], []
    for f in children:
        one, many = _ONE.match(fields[f]), _MANY.match(fields[f])
        maybe = bool(one and one[2])
        below.append(f"*(() if self.{f} is None else (self.{f},))" if maybe else f"self.{f}" if one else f"*self.{f}" if many
                     else f"*_nodes_in(self.{f})")
        made = f"how.{'rewrite' if one else 'rewrite_items' if many else 'rewrite_field'}(self.{f})"
        new.append(f"{f} = None if self.{f} is None else {made}" if maybe else f"{f} = {made}")
    same = " and ".join(f"{f} is self.{f}" for f in children)
    args = ", ".join(f if f in children else f"self.{f}" for f in fields)
    return (f"def _below(self):\n    return [{', '.join(below)}]\n"
            "def _rebuilt(how, self):\n    " + "\n    ".join(new)
            + f"\n    return self if {same} else type(self)({args})\n")


def _copying(fields: dict[str, str]) -> str:
    """Source of ``_with`` for a class: the constructor with each field, or what it is changed to."""
    args = ", ".join(f"changes[{f!r}] if {f!r} in changes else self.{f}" for f in fields)
    return (f"def _with(self, changes):\n    if not changes.keys() <= _names: return _with_none(self, changes)\n"
            f"    return type(self)({args})\n")


def _all_slots(cls: type) -> set[str]:
    return {s for base in cls.__mro__ for s in getattr(base, "__slots__", ())}


@dataclass_transform(eq_default=False)
def node(cls: T | None = None, *, intern: bool = False, derive: dict[str, str] | None = None, hidden: tuple[str, ...] = (),
         weak: bool = False) -> Any:
    """Turn an annotated class into a node class.

    ``derive`` maps further slots to the Python expression that computes them from the fields; ``hidden`` names
    fields that structural equality ignores (tokens and spans always are). ``weak``: there may be weak references to it, as to all interned nodes.
    """
    if cls is None:
        return lambda c: node(c, intern=intern, derive=derive, hidden=hidden, weak=weak)
    fields, defaults = _collect(cls)
    # fields without default come first, so that subclasses may add required ones
    fields = dict(sorted(fields.items(), key=lambda f: f[0] in defaults))
    taken = _all_slots(cls.__mro__[1])
    derive = derive or {}
    slots = tuple(f for f in (*fields, *derive) if f not in taken)
    if (intern or weak) and "__weakref__" not in taken:
        slots += ("__weakref__",)
    space = {k: v for k, v in cls.__dict__.items() if k not in fields and k not in ("__dict__", "__weakref__", "__slots__")}
    space.update(
        __slots__=slots, _declared=dict(cls.__dict__.get("__annotations__", {})), _fields=tuple(fields), _defaults=defaults,
        _children=cls.__dict__.get("_children") or tuple(f for f, kind in fields.items() if not _LEAF.match(kind)),
        _hidden=tuple(f for f, kind in fields.items() if kind.startswith(("Token", "Span"))) + hidden)
    space.setdefault("__qualname__", cls.__qualname__)
    made = type(cls)(cls.__name__, cls.__bases__, space)
    env = {"_new": object.__new__, "_table": _interned, "_Slot": _Slot, "_forget": _forget, "_Token": Token, "_nodes_in": nodes_in,
           **{f"_d_{k}": v for k, v in defaults.items()}, **vars(__import__("sys").modules[cls.__module__])}
    name = "__new__" if intern else "__init__"
    exec(_constructor(made, fields, defaults, derive, intern), env)
    env["_names"], env["_with_none"] = frozenset(fields), Node._with
    exec(_copying(fields), env)
    made._with = env["_with"]
    made_fn = env[name]
    made_fn.__qualname__ = f"{cls.__qualname__}.{name}"
    setattr(made, name, staticmethod(made_fn) if intern else made_fn)
    if made._children:
        exec(_walking(fields, made._children), env)
        made._below, made._rebuilt = env["_below"], staticmethod(env["_rebuilt"])
    return made
