# SPDX-License-Identifier: Apache-2.0
"""Writes the page: a model's module and weights, the ES module that runs it, and the page's own files, for any server of files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from os import SEEK_END
from pathlib import Path
from typing import Any

from .. import api
from ..ir.errors import OptionError
from ..runtime import Model
from ..runtime.integrity import DIGEST, weights_name
from .kind import chosen, picture_of

_WEB = Path(__file__).parent / "web"
_COPIED = ("page.css", "dom.mjs", "page.mjs", "picture.mjs", "numbers.mjs", "worker.mjs")
_MODULES = {f"model{kind}.wasm": f"wasm32{kind}" for kind in ("-relaxed-threads", "-threads", "-relaxed", "")}
"""Modules and their targets: a browser takes the first that it can run."""
_MOST_LABELS = 1 << 20  # bytes of a file of labels


def write_site(model: str | Path, folder: str | Path, *, title: str | None = None, kind: str | None = None, labels: str | Path | None = None,
               mean: Sequence[float] = (), std: Sequence[float] = (), **options: Any) -> Path:
    """Write a page that runs ``model`` on what its user gives it into ``folder``; returns the path of ``index.html``.

    ``kind``: ``picture`` or ``numbers``; by default what the model takes decides. ``labels``: a file of classes' names, one a line. ``mean`` and ``std``
    (one number, or one for each channel): how pictures are normalised, of numbers from 0 to 1. ``options`` are those of ``rd.compile``.
    Raises RoundelError, OSError.
    """
    folder, names = Path(folder), [] if labels is None else _labels(Path(labels))
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{folder} is a file", hint="name a folder for the page")
    compiled = {name: api.compile(model, target=target, **options) for name, target in _MODULES.items()}
    one = next(iter(compiled.values()))
    picture = picture_of(one.inputs, one.outputs, mean, std)
    asked = chosen(kind, picture)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # a name with a NUL is no name
        raise OptionError(f"{folder} cannot be written", why=getattr(error, "strerror", None) or str(error)) from None
    _save(compiled, folder)
    title = title or (Path(model).stem if isinstance(model, str | Path) else "model")
    facts = {"title": title, "kind": asked, "modules": list(_MODULES), "labels": names, "picture": picture and asdict(picture)}
    (folder / "site.json").write_text(json.dumps(facts, indent=1))
    for name in _COPIED:
        (folder / name).write_text((_WEB / name).read_text(encoding="utf-8"))
    index = folder / "index.html"
    index.write_text((_WEB / "index.html").read_text(encoding="utf-8").replace("{{title}}", escape(title)), encoding="utf-8", errors="replace")
    _write_worker(folder)
    return index


def _save(compiled: dict[str, Model], folder: Path) -> None:
    """The modules, each with its weights beside it; those whose weights are equal share a file."""
    by_digest: dict[bytes, str] = {}
    for name, model in reversed(compiled.items()):
        path = model.save(folder / name, side_file=True, header=True)
        weights = path.with_name(weights_name(path))
        if not weights.is_file():
            continue
        file = by_digest.setdefault(_digest(weights), weights.name)
        if file != weights.name:
            weights.unlink()
            model.save(path, side_file=file)


def _digest(weights: Path) -> bytes:
    with weights.open("rb") as file:
        file.seek(-DIGEST, SEEK_END)
        return file.read()


def _write_worker(folder: Path) -> None:
    """The service worker keeps these files for visits without a network; it is another one whenever one of them changes. The weights, which may
    be large, are kept by roundel.mjs."""
    kept = ["index.html", "site.json", *_MODULES, "roundel.mjs", "roundel-thread.mjs", *_COPIED]
    digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in kept)).hexdigest()[:16]
    text = (_WEB / "offline.js").read_text(encoding="utf-8")
    (folder / "offline.js").write_text(text.replace("{{version}}", digest).replace("{{files}}", json.dumps(["./", *kept])))


def _labels(path: Path) -> list[str]:
    try:
        if path.stat().st_size > _MOST_LABELS or not path.is_file():
            raise OptionError(f"{path} is no file of labels", hint="a text file with the name of one class in each line")
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise OptionError(f"{path} is no text", hint="a file of labels has the name of one class in each line, as UTF-8") from None
    except (OSError, ValueError) as error:
        raise OptionError(f"{path} cannot be read", why=getattr(error, "strerror", None) or str(error)) from None
