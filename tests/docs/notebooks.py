# SPDX-License-Identifier: Apache-2.0
"""The notebooks of docs/course: their cells, and ``python -m tests.docs.notebooks``, which runs them and keeps what they show
(needs ``pip install nbclient ipykernel``)."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

COURSE = Path(__file__).resolve().parents[2] / "docs" / "course"


def code_cells(path: Path) -> Iterator[tuple[str, str]]:
    """Name and source of each code cell."""
    for k, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            yield f"{path.name}:{k}", "".join(cell["source"])


def execute(path: Path) -> None:
    """Run a notebook in a folder of its own and write it again with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, 4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(book, timeout=300, resources={"metadata": {"path": folder}}).execute()
        for cell in book.cells:
            cell.get("metadata", {}).pop("execution", None)
            for output in cell.get("outputs", ()):
                for key in ("text", "data"):
                    if key in output:
                        output[key] = json.loads(re.sub(re.escape(folder) + r"|/tmp/ipykernel_\d+", "", json.dumps(output[key])))
        cells = [[o for o in c.get("outputs", ()) if o.get("name") != "stderr"] for c in book.cells]
        for cell, outputs in zip(book.cells, cells, strict=True):
            if cell.cell_type == "code":
                cell["outputs"] = outputs
    temporary = path.with_suffix(".new")
    nbformat.write(book, temporary)
    os.replace(temporary, path)


if __name__ == "__main__":
    for found in sorted(COURSE.glob("*.ipynb")):
        print(found.name, flush=True)
        execute(found)
