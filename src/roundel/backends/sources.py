# SPDX-License-Identifier: Apache-2.0
"""C texts of kernels beside each other in one model: functions of one name that two texts define are two functions.

    float scale(float x) { return 2 * x; }         #define scale scale_3f9a01c2
    void kernel(...) { ... }                ->     #define kernel kernel_3f9a01c2
                                                   float scale(float x) ...
"""

from __future__ import annotations

import hashlib
import re

ASIDE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)  # comments and texts
_DEFINED = re.compile(r"^(?!\s*#)[\w\s*]*?\b(\w+)\s*\([^;{}()]*(?:\([^;{}()]*\)[^;{}()]*)*\)\s*\{", re.M)
_WORDS = frozenset(("if", "for", "while", "switch", "do", "else", "return", "sizeof"))


def defined(text: str) -> list[str]:
    """The functions that C text defines, as far as they do not come out of macros."""
    return [name for name in dict.fromkeys(_DEFINED.findall(ASIDE.sub(" ", text))) if name not in _WORDS]


def told_apart(text: str) -> tuple[str, dict[str, str]]:
    """C text whose functions have names that no other text's have, and these names by those that they had."""
    tag = hashlib.sha256(text.encode()).hexdigest()[:8]
    names = {name: f"{name}_{tag}" for name in defined(text)}
    return "".join(f"#define {old} {new}\n" for old, new in names.items()) + '#line 1 "the C text"\n' + text, names
