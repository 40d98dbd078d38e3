# SPDX-License-Identifier: Apache-2.0
"""How a text that a stranger chose, such as a tensor's name in a model file, is written into each kind of place.

A name may end a comment or a string, steer a terminal, reverse the order in which a line is read (https://trojansource.codes), hold a zero
byte or half a surrogate pair. Whatever puts one into a generated text does it by the function here that is named after the place.
"""

from __future__ import annotations

import hashlib
import keyword
import re
import reprlib
from pathlib import Path
from typing import Any

_LONGEST = 200  # characters of a name that people read; more would hide the rest
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 80
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _code(character: str) -> str:
    number = ord(character)
    return _SHORT.get(character) or (f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}")


def message(text: str) -> str:
    """In an error, a log or on a terminal: line breaks and tabs stay, other characters without a glyph of their own are written as codes."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c in "\n\t" else _code(c) for c in text)


def name(text: str) -> str:
    """In one line that people read: characters without a glyph and backslashes are written as codes, so different names stay different."""
    if text.isprintable() and "\\" not in text:
        return text
    return "".join("\\\\" if c == "\\" else c if c.isprintable() else _code(c) for c in text)


def short_name(text: str) -> str:
    """`name`, cut where it is longer than a line."""
    return name(text) if len(text) <= _LONGEST else f"{name(text[:_LONGEST])}... ({len(text)} characters)"


def value(given: Any) -> str:
    """Something that a user gave, as an error shows it: numbers and texts as Python writes them, cut where they are long; of anything else what it is,
    for Python's text of an object tells nobody anything."""
    if given is None or isinstance(given, bool | int | float | complex | str | bytes):
        return _BRIEF.repr(given)
    if isinstance(given, Path):
        return _BRIEF.repr(str(given))
    if isinstance(given, list | tuple | set | frozenset | dict):
        return f"{_article(type(given).__name__)} of {len(given)}" if not _is_plain(given) else _BRIEF.repr(given)
    if isinstance(given, type):
        return f"the class {given.__name__}"
    if hasattr(given, "dtype") and hasattr(given, "shape") and not hasattr(given, "script"):
        return f"an array of {given.dtype}{list(given.shape)}"
    if hasattr(given, "script"):  # a node: short ones as they are written
        text = repr(given)
        return text if len(text) <= 60 and "\n" not in text else f"{_article(type(given).__name__)} of a program"
    return "a function" if callable(given) and hasattr(given, "__name__") else _article(type(given).__name__)


def _is_plain(given: Any) -> bool:
    """Whether a collection holds nothing but numbers and texts."""
    if isinstance(given, dict):
        return all(map(_is_plain, given)) and all(map(_is_plain, given.values()))
    if isinstance(given, list | tuple | set | frozenset):
        return len(given) <= 100 and all(map(_is_plain, given))
    return given is None or isinstance(given, bool | int | float | complex | str | bytes)


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeio' else 'a'} {noun}"


def assertion(text: str) -> str:
    """In the message of an assertion, where ``{0}`` stands for a number."""
    return short_name(text).replace("{", "(").replace("}", ")")


def markup(text: str) -> str:
    """Where rich reads ``[bold]``."""
    from rich.markup import escape

    return escape(message(text))


def c_comment(text: str) -> str:
    """Between ``/*`` and ``*/`` or behind ``//``, in C and C++ with trigraphs too."""
    plain = short_name(text).replace("\\\\", "\\x5c")
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", lambda m: _code(m[0]), plain)


def c_string(text: str | bytes) -> str:
    """Between double quotes in C: everything but plain characters as octal bytes."""
    raw = encoded(text) if isinstance(text, str) else text
    return "".join(chr(b) if chr(b).isascii() and (chr(b).isalnum() or b in b"_-. ") else f"\\{b:03o}" for b in raw)


def c_identifier(text: str) -> str:
    """As the beginning of a name in C: letters, digits and underscores."""
    plain = re.sub(r"\W", "_", text, flags=re.ASCII)
    return "_" + plain if not plain or plain[0].isdigit() else plain


def llvm_string(raw: bytes) -> str:
    """Between the quotes of ``c"..."`` in LLVM's text."""
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in raw)


def encoded(text: str) -> bytes:
    """As the bytes of a C string: UTF-8, with codes for zero and for halves of surrogate pairs, which it cannot hold."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace")


def python_identifier(text: str) -> str:
    """As a name in a script, which no keyword is, nor one that Python changes in a class, as it does with ``__name``."""
    plain = re.sub(r"^__+", "_", re.sub(r"\W", "_", text, flags=re.ASCII)) or "v"
    plain = "_" + plain if plain[0].isdigit() else plain
    return f"{plain}_1" if keyword.iskeyword(plain) else plain


def python_string(text: str) -> str:
    """A string literal in a script, in double quotes where that needs no escapes."""
    written = repr(text)
    return f'"{written[1:-1]}"' if written[0] == "'" and '"' not in written and "\\'" not in written else written


def file_name(text: str) -> str:
    """As the name of a file without a folder. Different names are different files: what had to be changed is told by a hash."""
    plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in text)
    if plain == text and text[:1] not in ("", ".", "-") and len(text.encode()) <= 100:
        return text
    return f"{plain.lstrip('.-')[:25] or 'name'}-{digest(text)}"


def digest(text: str) -> str:
    """Eight characters that tell a text from others like it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
