# SPDX-License-Identifier: Apache-2.0
"""Modules that branch on their data, exported for the branches that the example inputs take.

Many models ask something of their inputs that is the same in every use, such as whether a mask hides anything. PyTorch's draft export follows the
examples there, and has the program assert that each condition is as it was.
"""

from __future__ import annotations

import io
import logging
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from ...ir.errors import ModelError
from ...ir.warning import warn

_CONDITION = "Runtime assertion failed for expression"
_WHY = "the inputs take another branch of the program than the example inputs did, for which it was compiled"
_LINE = re.compile(r'File "([^"]*)", line (\d+), in .*\n\s*(.*)\Z')


def exported(model: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], shapes: Any) -> Any:
    """What torch.export makes of a module, on the path of the examples where it branches on its data. Raises ModelError where it takes neither."""
    import torch

    printed = io.StringIO()
    try:
        with _silent(printed):
            return torch.export.export(model, args, dict(keywords), dynamic_shapes=shapes)
    except Exception as error:
        _leave_out(printed, getattr(error, "partial_fx_graph", ""))
        program = _exported_on_one_path(model, args, keywords, shapes) if "data-dependent" in str(error) else None
        if program is None:
            raise ModelError(f"torch.export does not take this {type(model).__name__}", why=str(error).strip().split("\n\n")[0],
                             hint="does it run with these inputs? Branches on data need torch.cond; torch.compile(module, backend=\"roundel\") "
                             "leaves them to Python") from error
        warn(f"this {type(model).__name__} branches on its data: it is compiled for the branches that the example inputs take, and a run that "
             "takes others ends with an error")
        return program
    finally:
        sys.stderr.write(printed.getvalue())


def _exported_on_one_path(model: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], shapes: Any) -> Any:
    """The exported program, or None where it would depend on the data of the examples in another way than by conditions that it asserts."""
    import torch

    with _silent(io.StringIO()):
        try:
            program = torch.export.draft_export(model, args, dict(keywords), dynamic_shapes=shapes)
        except Exception:  # torch.export has told already what it does not take
            return None
    return program if all(map(_is_condition, program._report.failures)) else None


def explain_conditions(nodes: Sequence[Any]) -> None:
    """Have the assertions of a program that draft export made say what it means when they fail."""
    for n in nodes:
        if str(n.target) == "aten._assert_scalar.default":
            place, condition = _asked_at(n), str(n.args[1]).removeprefix(_CONDITION)
            n.args = (n.args[0], _WHY + (f" ({place})" if place else f": condition{condition}"))


def _asked_at(node: Any) -> str:
    """The line of the user's program that an assertion comes from."""
    found = _LINE.search(str(node.meta.get("stack_trace") or "").rstrip())
    return f"`{found[3].rstrip(':')}` in line {found[2]} of {Path(found[1]).name}" if found else ""


def _is_condition(failure: Any) -> bool:
    """Whether what draft export took from the data is a truth value, which the program asserts; numbers are taken without."""
    return failure.failure_type.name == "DATA_DEPENDENT_ERROR" and str(failure.data.get("result")) in ("True", "False")


@contextmanager
def _silent(printed: io.StringIO) -> Iterator[None]:
    """Without PyTorch's advice on what to change in the module and its warnings of its own code; what goes to standard error goes to ``printed``."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with redirect_stderr(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        logging.disable(before)


def _leave_out(printed: io.StringIO, graph: str) -> None:
    """Take back the graph that PyTorch had traced when it met what it does not take."""
    text = printed.getvalue().replace(f"{graph}\n", "") if graph else printed.getvalue()
    printed.seek(0)
    printed.truncate()
    printed.write(text)
