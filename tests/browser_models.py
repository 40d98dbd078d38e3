# SPDX-License-Identifier: Apache-2.0
"""WebAssembly models in a browser without a window: `Page` runs saved modules with the ES module that Roundel ships."""

from __future__ import annotations

import base64
import json
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from roundel.pages import serve
from roundel.runtime import web
from tests.browser import Browser
from tests.node_models import Failed

_LOAD = """(async () => {
  const { load } = await import("./roundel.mjs");
  try {
    window.model = await load(new URL(%s, location.href));
    return { names: model.inputs.map((i) => i.dtype) };
  } catch (error) { return { error: error.message, code: error.code ?? error.constructor.name }; }
})()"""
_RUN = """(async () => {
  const arrays = { float32: Float32Array, float64: Float64Array, float16: Uint16Array, int8: Int8Array, int16: Int16Array, int32: Int32Array,
    int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array, bool: Uint8Array };
  const text = async (data) => new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.readAsDataURL(new Blob([data]));
  });
  try {
    const bytes = async (file) => (await fetch(file, { cache: "no-store" })).arrayBuffer(); // of this run
    const given = await Promise.all(%s.map(async ({ file, dtype, shape }) => ({ shape, data: new arrays[dtype](await bytes(file)) })));
    const begin = performance.now();
    const outputs = Object.values(window.model.run(given));
    const ms = performance.now() - begin;
    return { ms, outputs: await Promise.all(outputs.map(async ({ dtype, shape, data }) => ({ dtype, shape, data: data.length ? await text(data) : "" }))) };
  } catch (error) { return { error: error.message, code: error.code ?? error.constructor.name }; }
})()"""


class Page:
    """``with Page(folder) as page: page.load("m.wasm"); page.run([array])``, of modules in a folder, which is served on this machine. ``ms``: how long the
    last run took."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ms = folder, 0.0
        self.inputs = tempfile.TemporaryDirectory(dir=folder, prefix="given-")

    def __enter__(self) -> Page:
        web.copy_into(self.folder)
        (self.folder / "blank.html").write_text("<!doctype html><title>models</title><body><p>models</p>")
        self.server = serve(self.folder)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.browser = Browser().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.browser.__exit__(*error)
        self.server.shutdown()
        self.server.server_close()
        self.inputs.cleanup()

    def load(self, name: str) -> None:
        """A module of the folder, in a page of its own; raises Failed."""
        self.browser.visit(f"http://localhost:{self.server.server_port}/blank.html")
        self._asked(_LOAD % json.dumps(name))

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results of the model that was loaded; raises Failed."""
        given = []
        for k, array in enumerate(inputs):
            path = Path(self.inputs.name, f"{k}.bin")
            path.write_bytes(np.ascontiguousarray(array).tobytes())
            given.append({"file": f"{path.parent.name}/{path.name}", "dtype": str(array.dtype), "shape": list(array.shape)})
        said = self._asked(_RUN % json.dumps(given))
        self.ms = said["ms"]
        return [np.frombuffer(base64.b64decode(o["data"]), o["dtype"]).reshape(o["shape"]) for o in said["outputs"]]

    def _asked(self, script: str) -> dict:
        said = self.browser.run(script)
        if "error" in said:
            raise Failed(said["error"], said["code"])
        return said
