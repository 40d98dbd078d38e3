# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation as a site and checks it: ``python .ci/site.py FOLDER``. Fails for a warning, a link or an anchor that leads nowhere, a
public name without its place, and for anything that a page would load from a network."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import reference

ROOT = Path(__file__).resolve().parent.parent
_LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src")}


class Page(HTMLParser):
    """Anchors of a page, where its links lead, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif value and (tag, name) in _LOADS and dict(attrs).get("rel") != "canonical":
                self.loaded.append(value)
            elif tag == "a" and name == "href" and value:
                self.links.append(value)


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve()
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", ROOT / "mkdocs.yml", "--site-dir", folder]
    if subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False).returncode:
        return 1
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html")) if path.name != "404.html"}
    wrong = [*dead_links(folder, pages), *unplaced(folder, pages)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(pages)} pages, {sum(len(p.links) for p in pages.values())} links, {sum(len(p.anchors) for p in pages.values())} anchors")
    return bool(wrong)


def dead_links(folder: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Links inside the site that lead nowhere, and files of other places that a page would load."""
    for path, page in pages.items():
        name = path.relative_to(folder)
        yield from (f"{name} loads {url}" for url in page.loaded if urlsplit(url).scheme in ("http", "https"))
        for url in [*page.links, *page.loaded]:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{name} links to {url}, which is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name} links to {url}, which has no such place"


def unplaced(folder: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Public names that the reference does not have."""
    import roundel as rd

    top = pages[folder / "reference" / "index.html"].anchors
    yield from (f"rd.{name} is not in the reference" for name in rd.__all__ if not name.startswith("_") and f"roundel.{name}" not in top)
    for room in reference.PUBLIC:
        anchors = pages[folder / "reference" / room / "index.html"].anchors
        module = import_module(f"roundel.{room}")
        for name in reference.public_names(module):
            if f"roundel.{room}.{name}" not in anchors and type(getattr(module, name)).__name__ != "module":
                yield f"roundel.{room}.{name} is not in the reference"


if __name__ == "__main__":
    sys.exit(main())
