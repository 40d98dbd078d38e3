# SPDX-License-Identifier: Apache-2.0
"""C text compiled together with calls of its functions as programs call them: a function that takes something else is an error of the compiler.

    import_c:        "void scale(const double *x, double *y, int64_t n) { ... }"
    import_c_calls:  "mykit: void scale(const float *operand0, float *result, int64_t number0)"       ->      BuildError
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

from ..ir.errors import BuildError
from ..ir.prototype import Prototype

_OTHERS = {"_Float16": "uint16_t", "__bf16": "uint16_t", "bool": "uint8_t"}  # as which C code reads these too
_HINT = ("a function gets pointers to the operands that operands= names and to the result, the workspace if there is one, the numbers, and with "
         "parallel= the part, or with ranges= the first part and how many; it returns int32_t with statuses=, and nothing otherwise")
_CHECK = """
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wint-conversion"
#pragma GCC diagnostic error "-Wimplicit-function-declaration"
#pragma GCC diagnostic error "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wpointer-sign"
#line 1 "{title}"
static inline void roundel_check_{number}({declared}) {{ {name}({given}); _Static_assert({returns}, "{name} must return {result}"); }}
"""


def compiled(text: str, calls: Sequence[str], compile_text: Callable[[str], bytes]) -> bytes:
    """What a compiler makes of a C text in which functions are called so: each call is the text of a `Prototype`. Raises BuildError."""
    made = [Prototype.of(call) for call in calls]
    try:
        return compile_text(text + "".join(_check(str(call), call, k) for k, call in enumerate(made)))
    except BuildError:
        alone = compile_text(text)  # the fault may be its own
    for call in made:
        _must_fit(text, call, compile_text)
    return alone


def _must_fit(text: str, call: Prototype, compile_text: Callable[[str], bytes]) -> None:
    """Raises BuildError where a function of a text cannot be called so."""
    kinds = [kind for kind in _OTHERS if re.search(rf"\b{kind}\b", call.declaration)]
    found = ""
    for taken in product(*((kind, _OTHERS[kind]) for kind in kinds)):
        same = dict(zip(kinds, taken, strict=True))
        try:
            other = tuple(re.sub(r"\w+", lambda m: same.get(m[0], m[0]), p) for p in call.parameters)  # noqa: B023 (called at once)
            compile_text(text + _check(str(call), replace(call, parameters=other), 0))
            return
        except BuildError as error:
            found = found or next((line.partition("error:")[2].strip() for line in str(error).splitlines() if "error:" in line), str(error))
    found = re.sub(rf"\b({call.name})_[0-9a-f]{{8}}\b", r"\1", found)  # as backends tell texts apart
    raise BuildError(f"the C function {call.name} is called as {call.declaration}", where=f"backend {call.who}", why=f"the compiler says: {found}", hint=_HINT)


def _check(title: str, call: Prototype, number: int) -> str:
    """C text that calls a function so. Pointers to operands are not to constants: a function that forgot to say so works."""
    types = [re.sub(r"\bconst |\w+$", "", p) for p in call.parameters]
    names = [f"roundel_{k}" for k in range(len(types))]
    made = f"__typeof__({call.name}({', '.join(names)}))"
    kinds = ("void",) if call.result == "void" else ("int", "unsigned")
    text = _CHECK.format(title=title, number=number, name=call.name, result=call.result, given=", ".join(names),
                         declared=", ".join(f"{t}{n}" for t, n in zip(types, names, strict=True)),
                         returns=" || ".join(f"__builtin_types_compatible_p({made}, {kind})" for kind in kinds))
    head, line, rest = text.partition("#line")  # the title stays as it is
    title_line, newline, body = rest.partition("\n")
    body = re.sub(r"\b(u?int\d+)_t (?=\*|\w+[,)])", lambda m: f"__{m[1].upper()}_TYPE__ ", body)  # the text may not include stdint.h
    return head + line + title_line + newline + re.sub(r"\bbool (?=\*)", "_Bool ", body)
