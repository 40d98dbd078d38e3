# SPDX-License-Identifier: Apache-2.0
"""Modules that branch on their data, exported for the branches that the example inputs take.

Many models ask something of their inputs that is the same in every use, such as whether a mask hides anything. PyTorch's draft export follows the
examples there, and has the program assert that each condition is as it was.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_CONDITION = "Runtime assertion failed for expression"
_WHY = "the inputs take another branch of the program than the example inputs did, for which it was compiled{}: condition"
_LINE = re.compile(r'File "([^"]*)", line (\d+), in .*\n\s*(.*)\Z')


def exported_on_one_path(model: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], shapes: Any) -> Any:
    """The exported program, or None where it would depend on the data of the examples in another way than by conditions that it asserts."""
    import torch

    with _silent():
        try:
            program = torch.export.draft_export(model, args, dict(keywords), dynamic_shapes=shapes)
        except Exception:  # torch.export has told already what it does not take
            return None
    return program if all(map(_is_condition, program._report.failures)) else None


def explain_conditions(nodes: Sequence[Any]) -> None:
    """Have the assertions of a program that draft export made say what it means when they fail."""
    for n in nodes:
        if str(n.target) == "aten._assert_scalar.default":
            n.args = (n.args[0], str(n.args[1]).replace(_CONDITION, _WHY.format(_asked_at(n))))


def _asked_at(node: Any) -> str:
    """The line of the user's program that an assertion comes from."""
    found = _LINE.search(str(node.meta.get("stack_trace") or "").rstrip())
    return f" (`{found[3].rstrip(':')}` in line {found[2]} of {Path(found[1]).name})" if found else ""


def _is_condition(failure: Any) -> bool:
    """Whether what draft export took from the data is a truth value, which the program asserts; numbers are taken without."""
    return failure.failure_type.name == "DATA_DEPENDENT_ERROR" and str(failure.data.get("result")) in ("True", "False")


@contextmanager
def _silent() -> Iterator[None]:
    """Without PyTorch's advice on what to change in the module."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
