# SPDX-License-Identifier: Apache-2.0
"""Which ATen operators are supported, and how: what ``roundel report torch`` and ``docs/torch-operators.md`` show."""

from __future__ import annotations

from . import ops, pairs, registry
from .decompose import TABLE
from .host import on_host

assert ops  # imported to fill the table

INTRODUCTION = """# ATen operators

`roundel report torch` generates this page.

- *native*: compiled directly.
- *composed*: decomposed into native operators when the program is imported. The same holds for all composite operators that PyTorch itself can
  decompose (`torch.export.default_decompositions()`); they are not listed.
- *PyTorch*: the compiled model calls PyTorch back, so it runs only in a process with Python and PyTorch. `Model.save` refuses such a model
  with an error that names the operator.
- *complex*: the operator also takes and gives complex tensors.
"""


def rows() -> list[tuple[str, str, str]]:
    """(operator, how, complex) in alphabetical order."""
    how = {name: "PyTorch" if fn is on_host else "native" for name, fn in registry.TABLE.items()}
    for overload in TABLE:
        name = str(overload).removeprefix("aten.")
        if how.get(name.split(".")[0]) != "native":
            how[name.removesuffix(".default")] = "composed"
    for name in pairs.TABLE:
        how.setdefault(name, "native")
    return [(name, kind, "yes" if kind != "PyTorch" and pairs.supports(name) else "") for name, kind in sorted(how.items())]


def markdown() -> str:
    """The page."""
    lines = [INTRODUCTION, "| operator | how | complex |", "| --- | --- | --- |", *(f"| `{n}` | {h} | {c} |" for n, h, c in rows())]
    return "\n".join(lines) + "\n"
