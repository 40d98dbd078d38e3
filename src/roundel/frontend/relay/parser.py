# SPDX-License-Identifier: Apache-2.0
"""Relay's text to its expressions: the format ``#[version = "0.0.5"]`` that ``mod.astext()`` writes, with or without its metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...ir.errors import ModelError
from . import expr as relay
from .lexer import Token, place, tokens

_BINARY = {"*": ("multiply", 12), "/": ("divide", 12), "+": ("add", 10), "-": ("subtract", 10), "<": ("less", 8), "<=": ("less_equal", 8),
           ">": ("greater", 8), ">=": ("greater_equal", 8), "==": ("equal", 7), "!=": ("not_equal", 7)}
_SCALARS = re.compile(r"(bool|u?int\d+|float\d+|bfloat16)$")
_CLOSING = {"{": "}", "(": ")", "[": "]"}
_WIDTHS = {("f", "16"), ("f", "32"), ("f", "64"), ("i", "8"), ("i", "16"), ("i", "32"), ("i", "64")}
_DEEPEST = 200  # nested expressions: what a program wrote is nearly flat
_METADATA = re.compile(r"^#\[metadata\]", re.MULTILINE)


def parse(source: str) -> relay.Module:
    """The module of a text: of functions, or of one function or expression, which becomes ``main``. Raises ModelError that tells the line."""
    from .saved import load_metadata

    split = _METADATA.search(source)
    metadata = load_metadata(source[split.end():]) if split else {}
    return _Parser(source[:split.start()] if split else source, metadata).module()


class _Scope:
    """Names of variables and of graph nodes, with those of the scopes outside."""

    def __init__(self, outer: _Scope | None = None) -> None:
        self.outer, self.names = outer, dict[str, relay.Expr]()

    def find(self, name: str) -> relay.Expr | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None


class _Parser:
    def __init__(self, source: str, metadata: Mapping[str, list[Any]]) -> None:
        self.source, self.metadata = source, metadata
        self.tokens, self.at, self.depth = tokens(source), 0, 0
        self.globals: dict[str, relay.GlobalVar] = {}
        self.free: list[relay.Var] = []

    # -- tokens
    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)  # the end stays the end
        return token

    def ahead(self, text: str) -> bool:
        """Whether the token after the next one is this sign."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)].text == text

    def sees(self, *texts: str) -> bool:
        """Whether the next token is one of these words or signs."""
        return self.token.kind in ("sign", "word") and self.token.text in texts

    def takes(self, text: str) -> bool:
        if self.sees(text):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.takes(text):
            raise self.error(f"{text!r} is expected, not {self.token.text!r}")

    def kind(self, kind: str, what: str) -> str:
        if self.token.kind != kind:
            raise self.error(f"{what} is expected, not {self.token.text!r}")
        return self.next().text

    def error(self, what: str) -> ModelError:
        return ModelError(what, where=f"Relay text, {place(self.source, self.token.at)}")

    def skip_group(self) -> None:
        """Skip a bracket and what it holds."""
        if not self.sees(*_CLOSING):
            raise self.error(f"a bracket is expected, not {self.token.text!r}")
        closing = [_CLOSING[self.next().text]]
        while closing:
            token = self.next()
            if token.kind == "end":
                raise self.error(f"{closing[-1]!r} is expected before the end of the text")
            if token.kind == "sign" and token.text in _CLOSING:
                closing.append(_CLOSING[token.text])
            elif token.kind == "sign" and token.text == closing[-1]:
                closing.pop()

    # -- modules and functions
    def module(self) -> relay.Module:
        """The whole text."""
        if self.takes("#["):
            while not self.takes("]"):
                if self.next().kind == "end":
                    raise self.error("']' is expected")
        functions: dict[str, relay.Function] = {}
        while self.sees("def", "type", "extern"):
            if self.takes("def"):
                name = self.kind("global", "the name of a function")[1:]
                functions[name] = self.function(_Scope())
            else:  # data types: an error where a function uses one
                self.next()
                while not self.sees("{", "def", "type", "extern") and self.token.kind != "end":
                    self.next()
                if self.sees("{"):
                    self.skip_group()
        if self.token.kind != "end":
            if functions:
                raise self.error(f"a definition is expected, not {self.token.text!r}")
            found = self.body(_Scope(), "the end of the text")
            functions["main"] = found if isinstance(found, relay.Function) else relay.Function(tuple(self.free), found)
        if not functions:
            raise self.error("the text has no function")
        return relay.Module(functions)

    def function(self, scope: _Scope) -> relay.Function:
        """Parameters, attributes, result type and body."""
        if self.sees("["):  # parameters of types
            self.skip_group()
        self.expect("(")
        inner, params, attrs = _Scope(scope), [], {}
        while not self.takes(")"):
            if self.token.kind == "local":
                params.append(self.variable(inner))
            else:
                name = self.kind("word", "a parameter or an attribute")
                self.expect("=")
                attrs[name] = self.value()
            if not self.sees(")"):
                self.expect(",")
        if self.takes("->"):
            self.type()
        self.expect("{")
        return relay.Function(tuple(params), self.body(inner, "}"), attrs)

    def variable(self, scope: _Scope) -> relay.Var:
        """``%x: type``, made known in the scope."""
        name = self.kind("local", "a variable")
        if self.sees("{"):  # its virtual device
            self.skip_group()
        var = relay.Var(name[1:], self.type() if self.takes(":") else None)
        scope.names[name] = var
        return var

    def body(self, scope: _Scope, end: str) -> relay.Expr:
        """Bindings and the result, as far as the closing bracket (or the end of the text)."""
        lets: list[tuple[relay.Var, relay.Expr]] = []
        while True:
            if self.takes("let"):
                var = self.variable(scope)  # a function may call itself
                self.expect("=")
                lets.append((var, self.expression(scope)))
                self.expect(";")
            elif self.takes("free_var"):
                self.free.append(self.variable(scope))
                self.expect(";")
            elif self.token.kind == "graph" and self.ahead("="):
                name = self.next().text
                self.next()
                scope.names[name] = self.expression(scope)
                self.expect(";")
            else:
                break
        result = self.expression(scope)
        self.takes(";")
        if not (self.token.kind == "end" if end != "}" else self.takes("}")):
            raise self.error(f"{repr(end) if end == '}' else end} is expected, not {self.token.text!r}")
        for var, value in reversed(lets):
            result = relay.Let(var, value, result)
        return result

    # -- expressions
    def expression(self, scope: _Scope, above: int = 0) -> relay.Expr:
        """An expression of operators that bind more than ``above``."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"expressions are nested more than {_DEEPEST} deep")
        left = self.postfix(scope)
        while self.token.kind == "sign" and self.token.text in _BINARY and _BINARY[self.token.text][1] > above:
            name, binding = _BINARY[self.next().text]
            left = relay.Call(name, (left, self.expression(scope, binding)))
        self.depth -= 1
        return left

    def postfix(self, scope: _Scope) -> relay.Expr:
        """An atom, called and taken apart."""
        found = self.atom(scope)
        while True:
            if self.sees("("):
                args, attrs = self.arguments(scope)
                if isinstance(found, str) and found in ("ref", "ref_read", "ref_write"):
                    found = relay.Refused("a reference")
                else:
                    found = relay.Call(found, args, attrs)
            elif self.takes("."):
                for index in self.kind("number", "the number of a field").split("."):
                    if not index.isdigit():
                        raise self.error(f"the number of a field is expected, not {index!r}")
                    found = relay.Item(self.whole(found), int(index))
            else:
                return self.whole(found)

    def whole(self, found: relay.Expr | str) -> relay.Expr:
        """An expression, not the name of an operator."""
        return relay.Refused(f"the operator {found} as a value") if isinstance(found, str) else found

    def arguments(self, scope: _Scope) -> tuple[tuple[relay.Expr, ...], dict[str, Any]]:
        """Operands, then attributes."""
        self.expect("(")
        args: list[relay.Expr] = []
        attrs: dict[str, Any] = {}
        while not self.takes(")"):
            if self.token.kind == "word" and self.ahead("="):
                name = self.next().text
                self.next()
                attrs[name] = self.value()
            else:
                args.append(self.expression(scope))
            if not self.sees(")"):
                self.expect(",")
        return tuple(args), attrs

    def atom(self, scope: _Scope) -> relay.Expr | str:
        token = self.token
        if token.kind == "number":
            return relay.Constant(_scalar(self.next().text))
        if token.kind == "meta":
            found = self.meta()
            return found if isinstance(found, relay.Expr) else relay.Refused(f"{token.text}, which its text does not hold: astext() leaves constants out "
                                                                             "unless told otherwise, JSON has them")
        if token.kind in ("local", "graph"):
            known = scope.find(token.text)
            if known is None:
                raise self.error(f"{token.text} is not defined")
            self.next()
            return known
        if token.kind == "global":
            name = self.next().text[1:]
            return self.globals.setdefault(name, relay.GlobalVar(name))
        if token.kind == "word":
            return self.word(scope)
        if self.takes("("):
            return self.group(scope, ")")
        if self.takes("["):
            fields = self.group(scope, "]")
            return fields if isinstance(fields, relay.Tuple) else relay.Tuple((fields,))
        raise self.error(f"an expression is expected, not {token.text!r}")

    def word(self, scope: _Scope) -> relay.Expr | str:
        """What begins with a word: a truth value, a function, a branch, or the name of an operator."""
        word = self.next().text
        if word in ("True", "False"):
            return relay.Constant(np.asarray(word == "True"))
        if word == "fn":
            return self.function(scope)
        if word == "if":
            self.expect("(")
            condition = self.expression(scope)
            self.expect(")")
            self.expect("{")
            then = self.body(_Scope(scope), "}")
            self.expect("else")
            self.expect("{")
            return relay.If(condition, then, self.body(_Scope(scope), "}"))
        if word == "match":
            self.takes("?")
            self.skip_group()
            if self.sees("{"):
                self.skip_group()
            return relay.Refused("pattern matching of data types")
        return word

    def group(self, scope: _Scope, end: str) -> relay.Expr:
        """What stands between brackets: an expression, or a tuple."""
        fields: list[relay.Expr] = []
        comma = False
        while not self.takes(end):
            fields.append(self.expression(scope))
            if not self.sees(end):
                self.expect(",")
                comma = True
        return fields[0] if len(fields) == 1 and not comma else relay.Tuple(tuple(fields))

    # -- attributes and types
    def meta(self) -> Any:
        """An entry of the text's metadata; None where they are left out."""
        key, _, index = self.next().text.removeprefix("meta[").removesuffix("]").partition("][")
        entries = self.metadata.get(key.strip('"'), [])
        return entries[int(index)] if int(index) < len(entries) else None

    def value(self) -> Any:
        """The value of an attribute as a Python value."""
        token = self.next()
        if token.kind == "number":
            return _scalar(token.text).item()
        if token.kind == "text":
            return token.text[1:-1]
        if token.kind == "meta":
            self.at -= 1
            return self.meta()
        if token.kind == "word":
            return {"True": True, "False": False, "None": None, "nullptr": None}.get(token.text, token.text)
        if token.text in ("[", "("):
            items = []
            while not self.takes(_CLOSING[token.text]):
                items.append(self.value())
                if not self.sees(_CLOSING[token.text]):
                    self.expect(",")
            return items
        self.at -= 1
        raise self.error(f"the value of an attribute is expected, not {token.text!r}")

    def type(self) -> Any:
        """A type."""
        if self.takes("("):
            fields = []
            while not self.takes(")"):
                fields.append(self.type())
                if not self.sees(")"):
                    self.expect(",")
            return relay.TupleType(tuple(fields))
        if self.takes("?"):
            return None
        word = self.kind("word", "a type")
        if word == "Tensor":
            self.expect("[")
            shape = self.shape()
            self.expect(",")
            dtype = self.kind("word", "a dtype")
            self.expect("]")
            return relay.TensorType(shape, dtype)
        if _SCALARS.match(word):
            return relay.TensorType((), word)
        if self.sees("[", "("):
            self.skip_group()
        if word == "fn" and self.takes("->"):
            self.type()
        return relay.OtherType(word)

    def shape(self) -> tuple[Any, ...]:
        """Dimensions between parentheses: numbers, ``?`` and names, which are sizes that only the run tells."""
        self.expect("(")
        dims: list[Any] = []
        while not self.takes(")"):
            token = self.next()
            if token.kind == "number" and _scalar(token.text).dtype.kind == "i":
                dims.append(int(_scalar(token.text)))
            elif token.text == "?" or token.kind in ("word", "local"):
                dims.append(relay.ANY)
            else:
                self.at -= 1
                raise self.error(f"a dimension is expected, not {token.text!r}")
            if not self.sees(")"):
                self.expect(",")
        return tuple(dims)


def _scalar(text: str) -> np.ndarray:
    """A number of the text: ``1f`` is float32, ``1`` int32 (int64 where it does not fit), ``1i64`` and ``1f16`` say their width."""
    digits = text.lstrip("-")
    negative = (len(text) - len(digits)) % 2 == 1
    match = re.fullmatch(r"(inf|nan|[\d.eE+-]+?)(?:([fi])(\d*))?", digits)
    if match is None:
        raise ModelError(f"{text!r} is no number of Relay's text")
    literal, kind, width = match.groups()
    if (width and (kind, width) not in _WIDTHS) or (kind == "i" and not literal.isdigit()):
        raise ModelError(f"{text!r} is no number of Relay's text")
    if kind == "f" or (kind is None and not literal.isdigit()):
        try:
            value = float(literal)
        except ValueError as error:
            raise ModelError(f"{text!r} is no number of Relay's text") from error
        return np.asarray(-value if negative else value, f"float{width or 32}")
    number = -int(literal) if negative else int(literal)
    bits = int(width or 64)
    if not -2 ** (bits - 1) <= number < 2 ** (bits - 1):
        raise ModelError(f"the integer {text} does not fit into {bits} bits")
    return np.asarray(number, f"int{width}" if width else "int32" if -2 ** 31 <= number < 2 ** 31 else "int64")
