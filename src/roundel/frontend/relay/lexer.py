# SPDX-License-Identifier: Apache-2.0
"""Relay's text as tokens with their places."""

from __future__ import annotations

import re

from ...ir.dataclass import dataclass
from ...ir.errors import ModelError

_TOKEN = re.compile(
    r'(?P<space>[ \t\r\n]+|//[^\n]*)|(?P<comment>/\*)|(?P<meta>meta\[[^\]]*\]\[\d+\])|(?P<number>-*(?:(?:inf|nan)f(?:16|32|64)?|'
    r'\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?:[fi](?:8|16|32|64)?)?)(?![A-Za-z_]))|(?P<text>"[^"]*")|(?P<local>%[A-Za-z_/][\w/]*(?:::[\w/]+)*)|(?P<graph>%\d+)|'
    r'(?P<global>@[A-Za-z_/][\w/.]*)|(?P<word>[A-Za-z_][\w/]*(?:\.[A-Za-z_][\w/]*)*)|(?P<sign>->|=>|<=|>=|==|!=|#\[|[-+*/<>=;:,.(){}\[\]?!])')


@dataclass(frozen=True)
class Token:
    """``kind`` is a group of the expression above (``end`` after the last); ``at`` its offset in the text."""

    kind: str
    text: str
    at: int


def tokens(source: str) -> list[Token]:
    """The tokens without spaces and comments, which may nest; raises ModelError that tells line and column."""
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise ModelError(f"{source[at]!r} is nothing that Relay's text has", where=place(source, at))
        kind = match.lastgroup or ""
        if kind == "comment":
            at = _after_comment(source, at)
            continue
        if kind != "space":
            found.append(Token(kind, match.group(), at))
        at = match.end()
    return [*found, Token("end", "the end of the text", at)]


def _after_comment(source: str, at: int) -> int:
    depth, begin = 0, at
    for mark in re.compile(r"/\*|\*/").finditer(source, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    raise ModelError("a comment does not end", where=place(source, begin))


def place(source: str, at: int) -> str:
    """Line and column of an offset."""
    return f"line {source.count(chr(10), 0, at) + 1}, column {at - source.rfind(chr(10), 0, at)}"
