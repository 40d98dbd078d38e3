# SPDX-License-Identifier: Apache-2.0
"""``rd.report``: a model's page, written to a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from ..ir import escape
from ..ir.errors import OptionError
from ..ir.signatures import readable
from ..runtime.profile import checked_seconds
from ..runtime.toolchain import atomic_output
from ..target import TargetLike
from .collect import collect
from .page import page, report_in


@readable
def report(model: Any, example_inputs: Sequence[Any] | None = None, out: str | Path = "report.html", *, target: TargetLike | None = None,
           threads: int | None = None, dynamic: Any = None, sizes: Mapping[str, int] | None = None, choices: Mapping[str, Any] | None = None,
           records: Any = None, seconds: float = 1.0, assembly: bool = True, against: str | Path | None = None) -> Path:
    """Write one file of HTML that shows a model from its graph to the assembly of its kernels.

        rd.report("model.onnx", out="report.html")

    - ``model`` and the other arguments are those of ``rd.compile``; also the path of a report made
      before, which is compared again.
    - ``sizes``: values of symbolic dimensions. Where a database of measurements is compiled from
      (``records``), kernels that are in it have their tuning curves.
    - ``seconds``: for how long the kernels are measured on random inputs; 0: not at all.
    - ``assembly``: whether kernels are compiled to show theirs.
    - ``against``: a report made before, of another version, machine or precision, to compare with.

    The file needs no network and no other file. Returns its path. Raises RoundelError.
    """
    from ..target.host import usable_cores

    checked_seconds(seconds)
    for path in filter(None, (out, against)):
        if not isinstance(path, str | PathLike):
            raise OptionError(f"a report cannot be written to or read from {escape.value(path)}", hint="give the path of a file, such as report.html")
    before = None if against is None else report_in(Path(against))
    if isinstance(model, str | Path) and Path(model).suffix in (".html", ".htm"):
        found = report_in(Path(model))
    else:
        found = collect(model, example_inputs, target=target, threads=threads or usable_cores(), dynamic=dynamic, sizes=sizes, choices=choices,
                        records=records, seconds=seconds, assembly=assembly)
    path = Path(out)
    with atomic_output(path) as temporary:
        temporary.write_text(page(found, before), encoding="utf-8")
    return path
