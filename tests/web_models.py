# SPDX-License-Identifier: Apache-2.0
"""Models with real weights as WebAssembly modules in node, wasmtime and Chromium, against this machine's native code.

    python -m tests.web_models                                         # all of them, for wasm32
    python -m tests.web_models --target wasm64-relaxed --models minilm --engines wasmtime Chromium --node /opt/node24/bin/node

It needs the packages that `tests.boards.real_models` names; models whose package is missing are left out, and so are engines that are not installed. It
prints a line for each model and engine: how far outputs are from those here, as a share of the largest, and how many integers differ; its status is 1 where a
float is off by more than 1e-4, an integer differs, a module is larger than 400 KiB or an engine fails.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import roundel as rd
from tests import browser, node_models
from tests.boards.real_models import MODELS, differences
from tests.browser_models import Page
from tests.node_models import Failed, Node

Run = Callable[..., list[np.ndarray]]
_LARGEST = 400 << 10  # bytes of a module without its weights


def in_node(file: Path, outputs: int, left: ExitStack, node: str) -> Run:
    """A run in a process of node."""
    node_models.FOUND = node
    process = left.enter_context(Node())
    return lambda *inputs: process.run(file, list(inputs))


def in_wasmtime(file: Path, outputs: int, left: ExitStack, node: str) -> Run:
    """A run by wasmtime's interface."""
    from tests.wasmtime_models import Instance

    instance = Instance(file)
    return lambda *inputs: instance.run(inputs, outputs)


def in_chromium(file: Path, outputs: int, left: ExitStack, node: str) -> Run:
    """A run in a page."""
    page = left.enter_context(Page(file.parent))
    page.load(file.name)
    return lambda *inputs: page.run(inputs)


ENGINES: dict[str, tuple[Callable[[Path, int, ExitStack, str], Run], Callable[[], Any]]] = {
    "node": (in_node, lambda: node_models.FOUND),
    "wasmtime": (in_wasmtime, lambda: find_spec("wasmtime")),
    "Chromium": (in_chromium, lambda: browser.FOUND),
}
"""How each runs a module, and whether it is installed."""


def lines(names: list[str], engines: list[str], target: str, folder: Path, node: str) -> Iterator[tuple[str, bool]]:
    """What is found out, line by line, and whether it is as it should be."""
    for name in names:
        real = MODELS[name]
        path = real.file(folder)
        want = real.calls(rd.compile(path), 1)
        model = rd.compile(path, target=target)
        file = model.save(folder / f"{name}-{target}.wasm", side_file=True)
        outputs, size = len(model.outputs), file.stat().st_size
        for engine in engines:
            what = f"{name} in {engine} ({target}, {size >> 10} KiB, weights {model.weights_nbytes / 1e6:.1f} MB)"
            with ExitStack() as left:
                begin = time.monotonic()
                try:
                    off, integers = differences(real.calls(ENGINES[engine][0](file, outputs, left, node), 1), want)
                except Failed as error:
                    yield f"{what}: {error}", False
                    continue
                yield f"{what}: {off:.1e}, {integers} integers differ; {time.monotonic() - begin:.1f} s", off <= 1e-4 and not integers and size <= _LARGEST


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.web_models", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--engines", nargs="*", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--target", default="wasm32")
    parser.add_argument("--node", default=node_models.FOUND, help="the program; default: node")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "roundel-real-models"), help="where exported models and modules are kept")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    names = [n for n in given.models if find_spec(MODELS[n].package) is not None]
    all_good = True
    for line, good in lines(names, [e for e in given.engines if ENGINES[e][1]()], given.target, given.folder, given.node):
        print(line, flush=True)
        all_good &= good
    return int(not all_good)


if __name__ == "__main__":
    sys.exit(main())
