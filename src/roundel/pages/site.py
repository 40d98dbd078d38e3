# SPDX-License-Identifier: Apache-2.0
"""Writes the page: a model's module and weights, the ES module that runs it, and the page's own files, for any server of files."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from html import escape
from os import SEEK_END
from pathlib import Path
from typing import Any

from .. import api
from ..ir.errors import OptionError
from ..runtime import Model
from ..runtime.integrity import DIGEST, weights_name
from .asked import Asked, check_used
from .folder import ABOUT, written
from .kind import classes, told, wants_tokenizer
from .labels import fitting, labels_for
from .signature import signature
from .tokenizer import tokenizer_for

_WEB = Path(__file__).parent / "web"
_SHARED = ("page.css", "dom.mjs", "page.mjs", "tensors.mjs", "classes.mjs", "worker.mjs")
_TOKENS = ("tokenizer.mjs", "tokenizers.min.mjs")
_PARTS: dict[str, tuple[str, ...]] = {
    "picture": ("picture.mjs", "pictures.mjs"), "detection": ("detection.mjs", "boxes.mjs", "pictures.mjs"),
    "recognition": ("recognition.mjs", "letters.mjs", "pictures.mjs"), "sound": ("sound.mjs", "recorder.mjs", "waves.mjs", "letters.mjs", "mel.mjs"),
    "text": ("text.mjs", *_TOKENS), "embedding": ("embedding.mjs", *_TOKENS), "generation": ("generation.mjs", *_TOKENS), "numbers": ("numbers.mjs",),
}
"""The files of each kind of page, the first of which has its form."""
_MODULES = {f"model{kind}.wasm": f"wasm32{kind}" for kind in ("-relaxed-threads", "-threads", "-relaxed", "")}
"""Modules and their targets: a browser takes the first that it can run."""
_LOADERS = ("roundel.mjs", "roundel-thread.mjs", "roundel.d.mts")


def write_site(model: Any, folder: str | Path, *, title: str | None = None, kind: str | None = None, labels: str | Path | None = None,
               tokenizer: str | Path | None = None, sample: str | Path | None = None, mean: Sequence[float] = (), std: Sequence[float] = (), bgr: bool = False,
               size: int = 0, template: str = "{prompt}", rate: int = 16000, window: int = 0, overlap: int = 0, mel: str = "",
               dynamic: Mapping[str, int] | None = None, tell: Callable[[str], None] | None = None, **options: Any) -> Path:
    """Write a page that runs ``model`` on what its user gives it into ``folder``; returns the path of ``index.html``.

    ``kind``: one of ``kind.KINDS``; by default what the model takes and gives decides. ``labels``: a file of classes' names, or of letters, one a line.
    ``tokenizer``: a file ``tokenizer.json``. ``sample``: a picture or sound that the page offers. Pictures: ``mean`` and ``std`` (one number, or one for
    each channel) normalise numbers from 0 to 1, ``bgr`` puts blue first, ``size`` is the side in pixels where the model leaves it open. Sound: ``rate``,
    samples a second; ``window``, new ones of each run; ``overlap``, older ones ahead of them; ``mel``, how they become a spectrogram (`pages.mel`).
    Generation: ``template``, in which ``{prompt}`` stands for the user's text. ``tell`` is called with what would make another page of the model. ``dynamic``
    and other ``options`` are those of ``rd.compile``. Files of the page that was in the folder before go; others stay, and are never overwritten. Raises
    RoundelError, OSError.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{folder} is a file", hint="name a folder for the page")
    if "{prompt}" not in template:
        raise OptionError(f"the template {template!r} has no place for the text", hint="write {prompt} where it belongs")
    if small := next((f"{name}={size}" for name, size in (dynamic or {}).items() if isinstance(size, int) and size < 1), None):
        raise OptionError(f"with {small} a page has nothing to run the model on", hint="fix sizes to 1 or more")
    asked = Asked(kind, labels_for(model, labels), tuple(mean), tuple(std), bgr, size, tokenizer_for(model, tokenizer), template, rate, window, overlap, mel)
    offered = _sample(sample)
    module = api.import_model(model, dynamic=dynamic)
    taken = signature(module)
    kind, facts = told(taken, asked)
    given = {name for name, value in (("labels", labels), ("tokenizer", tokenizer), ("sample", sample)) if value is not None}
    check_used(kind, given | {f.name for f in fields(Asked) if f.name not in ("kind", "labels", "tokenizer") and getattr(asked, f.name) != f.default}, sample)
    if (names := fitting(asked.labels, classes(kind, taken, facts), labels)) != asked.labels:
        asked = replace(asked, labels=names)
        kind, facts = told(taken, asked)
    if tell is not None and wants_tokenizer(kind, taken, asked):
        tell("takes tokens: give --tokenizer FILE for a page of text")
    title = title or (Path(model).stem if isinstance(model, str | Path) else "model")
    about = {"title": title, "kind": kind, "form": _PARTS[kind][0], "modules": list(_MODULES),
             "labels": [name.strip() or f"class {k}" for k, name in enumerate(asked.labels)], "sample": offered and offered.name,
             "inputs": taken.inputs, "outputs": taken.outputs, "states": (), **facts}
    files = [*_SHARED, *_PARTS[kind]]
    kept = [*files, *(["tokenizer.json"] if "text" in facts else []), *([offered.name] if offered else [])]
    names = ("index.html", ABOUT, "offline.js", *_LOADERS, *_MODULES, *kept)
    with written(folder, [*names, *(weights_name(Path(file)) for file in _MODULES)]) as done:
        weights: dict[bytes, str] = {}  # by digest: modules whose weights are equal share a file
        for name, target in reversed(_MODULES.items()):  # one at a time, since each holds its weights
            _save(api.compile(module, target=target, **options), folder, name, weights)
        done.update(names, weights.values())
        if "text" in facts:
            (folder / "tokenizer.json").write_text(json.dumps(asked.tokenizer, ensure_ascii=False), encoding="utf-8")
        (folder / ABOUT).write_text(json.dumps({**about, "files": sorted(done)}, default=_as_json, ensure_ascii=False), encoding="utf-8")
        for name in files:
            (folder / name).write_text((_WEB / name).read_text(encoding="utf-8"), encoding="utf-8")
        if offered is not None and not ((folder / offered).exists() and (folder / offered).samefile(sample)):  # type: ignore[arg-type]
            shutil.copyfile(sample, folder / offered.name)  # type: ignore[arg-type]
        index = folder / "index.html"
        index.write_text((_WEB / "index.html").read_text(encoding="utf-8").replace("{{title}}", escape(title)), encoding="utf-8", errors="replace")
        _write_worker(folder, kept)
    return index


def _sample(sample: str | Path | None) -> Path | None:
    """The name in the page's folder of a file that the page offers. Raises OptionError where there is no such file."""
    if sample is None:
        return None
    try:
        if Path(sample).is_file():
            return Path(f"sample{Path(sample).suffix.lower()}")
    except ValueError:  # a NUL
        pass
    raise OptionError(f"there is no file {sample}", hint="give --sample a picture or a recording")


def _as_json(value: Any) -> Any:
    if is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    raise TypeError(f"{type(value).__name__} is no value of JSON")


def _save(model: Model, folder: Path, name: str, weights: dict[bytes, str]) -> None:
    """A module with its weights beside it; ``weights`` are those that are there, by their digest."""
    path = model.save(folder / name, side_file=True, header=True)
    beside = path.with_name(weights_name(path))
    if beside.is_file() and (file := weights.setdefault(_digest(beside), beside.name)) != beside.name:
        beside.unlink()
        model.save(path, side_file=file)


def _digest(weights: Path) -> bytes:
    with weights.open("rb") as file:
        file.seek(-DIGEST, SEEK_END)
        return file.read()


def _write_worker(folder: Path, files: Sequence[str]) -> None:
    """The service worker keeps these files for visits without a network; it is another one whenever one of them changes. The weights, which may
    be large, are kept by roundel.mjs."""
    kept = ["index.html", "site.json", *_MODULES, "roundel.mjs", "roundel-thread.mjs", *files]
    digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in kept)).hexdigest()[:16]
    text = (_WEB / "offline.js").read_text(encoding="utf-8")
    (folder / "offline.js").write_text(text.replace("{{version}}", digest).replace("{{files}}", json.dumps(["./", *kept])))
