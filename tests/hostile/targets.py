# SPDX-License-Identifier: Apache-2.0
"""Descriptions of targets with one mistake, or none: a right one says what it said in every spelling, a wrong one is an OptionError."""

from __future__ import annotations

import json
import math
import random
import string
from collections.abc import Iterator
from typing import Any

from roundel.ir.errors import OptionError
from roundel.target import Target
from roundel.target.keys import FIGURES, KINDS, SPELLINGS, TEXTS, Number, attributes

from .attempts import attempts

_WRONG_VALUES = ["", " ", "many", "2x", "0x10", "1e", "--", "\0", "é" * 9, True, False, -1, -(2**63), 2**63, 10**400, 0.5, math.nan, math.inf, -math.inf, None,
                 [], [1], {}, {"kind": "llvm"}, (), object, b"8", "9" * 5000]


def attack(count: int, seed: int, start: int = 0) -> Iterator[str]:
    """So many descriptions."""
    for number in attempts(range(count), start):
        rng = random.Random(f"{seed}-{number}")
        kind, start = rng.choice([("llvm", "llvm"), ("llvm", "host"), *(("llvm", name) for name in Target.named()), *((k, k) for k in KINDS)])
        said = {name: _figure(rng, FIGURES[name]) for name in rng.sample(sorted(FIGURES), rng.randrange(4))}
        if "vector_bits" in said:
            said.pop("vector_bytes", None)
        mistake = rng.choice([None, None, _unknown_key, _wrong_value, _words, _broken_text])
        yield from _right(rng, start, said) if mistake is None else _wrong(*mistake(rng, kind, start, said))


def _figure(rng: random.Random, number: Number) -> int | float:
    if number.power:
        return 1 << rng.randint(int(number.least).bit_length() - 1, int(number.most).bit_length() - 1)
    value = rng.choice([number.least, number.most, math.exp(rng.uniform(math.log(max(number.least, 1e-3)), math.log(number.most)))])
    return math.ceil(value) if number.whole else float(value)


def _right(rng: random.Random, start: str, said: dict[str, Any]) -> Iterator[str]:
    """The same target in all ways to say it."""
    other = {field: word for word, field in SPELLINGS.items()}
    words = {other[name] if name in other and rng.random() < 0.5 else name.replace("_", rng.choice("_-")): value for name, value in said.items()}
    text = " ".join([start, *(f"-{word}={value}" for word, value in words.items())])
    try:
        target = Target(text)
        ways = {"changed": Target(start, **said), "string": Target(str(target)), "dictionary": Target(target.to_dict()), "JSON": Target(target.to_json())}
    except Exception as error:
        yield f"{text!r} is refused: {type(error).__name__}: {error}"
        return
    for way, same in ways.items():
        if same != target or hash(same) != hash(target):
            yield f"{text!r} as {way} is {same!r}"
    for name, value in said.items():
        if (got := target.vector_bytes * 8 if name == "vector_bits" else getattr(target, name)) != value or type(got) is not type(value):
            yield f"{text!r}: {name} is {got!r}"


def _unknown_key(rng: random.Random, kind: str, start: str, said: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    known = [*FIGURES, *SPELLINGS, *TEXTS, "features", *attributes(kind)]
    word = rng.choice(known)
    place = rng.randrange(len(word))
    word = word[:place] + rng.choice([rng.choice(string.ascii_lowercase), "", word[place] * 2]) + word[place + 1 :]
    if word.replace("-", "_").strip("_") in {k.replace("-", "_") for k in [*known, "attrs"]}:
        word = "foo"
    return (f"{start} -{word}={rng.choice(['1', 'a', ''])}", {}) if rng.random() < 0.5 else (start, {**said, word or "foo": 1})


def _wrong_value(rng: random.Random, kind: str, start: str, said: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    name = rng.choice(sorted(FIGURES))
    number = FIGURES[name]
    outside = [number.most * 2, number.least / 2 if number.least > 1e-3 else 0.0, -1]
    value = rng.choice([v for v in [*_WRONG_VALUES, *outside] if v is not None and number.read(v) is None])
    return start, {**said, name: value}


def _words(rng: random.Random, kind: str, start: str, said: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """What is no description at all."""
    text = "".join(rng.choice([*string.printable, "é", "\0", "/", "-", "="]) for _ in range(rng.randrange(40)))
    wrong = [f"/{text}", f"../{text}", f"{text}?", "/etc/passwd", "/dev/zero.json", f"llvm {text}?", f"{{{text}", 7, None, [], [start], b"llvm",
             {"kind": text + "?"}, {"kind": 3}, {"attrs": 3}, {3: 3}, {"kind": start, "cpu": "a b"},
             {"features": 3}, {"features": [3]}, {"features": {"avx2": 1}}]
    return rng.choice(wrong), {}


def _broken_text(rng: random.Random, kind: str, start: str, said: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """JSON that is cut off."""
    text = json.dumps({"kind": kind, **said, "cores": 2})
    return text[: rng.randrange(1, len(text))], {}


def _wrong(spec: Any, changes: dict[str, Any]) -> Iterator[str]:
    try:
        target = Target(spec, **changes)
    except OptionError as error:
        if len(str(error)) > 3000:
            yield f"{str(spec)[:99]!r} {str(changes)[:99]}: the message has {len(str(error))} characters"
    except Exception as error:
        yield f"{spec!r} {changes}: {type(error).__name__}: {error}"
    else:
        yield f"{spec!r} {changes} is accepted as {target!r}"
