# SPDX-License-Identifier: Apache-2.0
"""What the site has beside the files of docs/: the reference, the course's notebooks as pages, and the pages in the root of the tree (a hook of MkDocs)."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).resolve().parent))
import reference

ROOT = Path(__file__).resolve().parent.parent
IN_ROOT = ("CONTRIBUTING.md", "CHANGELOG.md")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made."""
    for name in IN_ROOT:
        files.append(File.generated(config, name, content=re.sub(r"\]\(docs/", "](", (ROOT / name).read_text())))
    for room in reference.PUBLIC:
        files.append(File.generated(config, f"reference/{room}.md", content=reference.page(room)))
    for book in sorted((ROOT / "docs" / "course").glob("*.ipynb")):
        files.append(File.generated(config, f"course/{book.stem}.md", content=notebook(json.loads(book.read_text()))))
    return files


def on_config(config: Any) -> Any:
    """The reference's pages in the table of contents."""
    for section in config.nav:
        if "Reference" in section:
            section["Reference"] += [{room: f"reference/{room}.md"} for room in reference.PUBLIC]
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as they are in the site, where the root's pages lie beside those of docs/ and notebooks are pages."""
    if page.file.src_uri == "reference.md":
        rooms = "\n".join(f"| [`roundel.{room}`](reference/{room}.md) | {text.replace('../', '')} |" for room, text in reference.PUBLIC.items())
        markdown = reference.with_docstrings(markdown) + f"\n## Modules\n\n| module | what it has |\n| --- | --- |\n{rooms}\n"
    markdown = re.sub(rf"\]\(\.\./({'|'.join(map(re.escape, IN_ROOT))})", r"](\1", markdown)
    if "/" not in page.file.src_uri:  # files of the tree that the site has not
        markdown = re.sub(r"\[([^\]]+)\]\(\.\./[\w./-]+\)", r"\1", markdown)
    return re.sub(r"(\]\([\w/-]+)\.ipynb\)", r"\1.md)", markdown)


def notebook(book: dict[str, Any]) -> str:
    """A notebook as a page: text, code, and what the code showed."""
    parts = []
    for cell in book["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if picture := "".join(data.get("image/svg+xml", ())):
                parts.append(re.sub(r"\n\s*\n", "\n", picture[picture.index("<svg") :]))
            elif text := "".join(output.get("text", data.get("text/plain", ()))):
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
