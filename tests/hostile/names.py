# SPDX-License-Identifier: Apache-2.0
"""Names that a model file may give to its tensors, nodes, functions and sizes, and that were made to break the text they are put into."""

from __future__ import annotations

import random

_ENDS = ("*/", "/*", "//", "//\\", "\\", "\\\n", "??/", "??/\n", "'", '"', '"""', "\n", "\r", "\r\n", "\0", "\x1b[31m", "\x1b]0;title\x07",
         "\x7f", "\x85", "\u2028", "\u2029", "\u202e", "\u2066", "\u2069", "\u200b", "\ufeff", "\u00a0", "é", "名前", "😀", "\ud800", "\udfff",
         "%s", "%n", "{0}", "{x}", "$(id)", "`id`", ";", "|", "&&", "../", "/", "..", ".", "-", "--", "@", "#", "# ",
         "[red]", "[/]", "[link=file:///]", "<b>", "</script>",
         "&lt;", "->", "--> ", "```", "|---|", "\t", " ", "", "%%{init}%%", "]]>", "u", "\\u0000", "\\x41", "\\N{BULLET}", "!", "%", "_", "__", "0")
_PAYLOADS = ("int injected = 1;", "#error injected", "#define main injected", "#include </dev/zero>", "__import__('os').abort()", "injected", "x", "X", "y",
             "main", "data", "shape", "t", "int", "return", "class", "template", "NULL", "stdin", "errno", "inline", "lambda", "None", "self", "R", "T", "I",
             "rd_fail", "model", "model_run", "_exit", "linux", "unix", "INT64_MAX", "con", "aux", "define void @f()", "ret void }", "float32[n, 4]", "con.txt")


def hostile_name(random: random.Random) -> str:
    """One name: pieces that end a comment, a string, a line or a terminal's patience, around what should then be read as code."""
    kind = random.randrange(12)
    if kind == 0:
        return random.choice(_PAYLOADS)
    if kind == 1:
        return random.choice(_ENDS) * random.choice((1, 2, 3))
    if kind == 2:
        return "".join(chr(random.choice((random.randrange(0x20), random.randrange(0x80, 0x300), random.randrange(0x2000, 0x2070),
                                          random.randrange(0xD800, 0xE000), random.randrange(0x110000)))) for _ in range(random.randrange(1, 12)))
    if kind == 3:
        return random.choice(("a", "*/", "\\", "é", "\n")) * random.choice((100, 1000, 5000))
    parts = [random.choice(_ENDS), random.choice(_PAYLOADS), random.choice(_ENDS)]
    return "".join(parts * random.choice((1, 1, 1, 2)))


def hostile_names(count: int, seed: int) -> list[str]:
    """``count`` of them, the same ones for the same seed; some are equal, some become equal when they are cut or cleaned."""
    source = random.Random(seed)
    return [hostile_name(source) for _ in range(count)]
