# SPDX-License-Identifier: Apache-2.0
"""WebAssembly models in node: `Node` runs saved modules with the ES module that Roundel ships."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from roundel.runtime import web

FOUND = shutil.which("node")
_SCRIPT = Path(__file__).with_suffix(".mjs")


class Failed(Exception):
    """What `RoundelError` said in node; ``code`` is its code, or the class of another error."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Node:
    """``with Node() as node: node.run("m.wasm", [array])``: one process of node, with ``flags``, which is asked one thing after the other."""

    def __init__(self, *flags: str) -> None:
        self.flags = flags

    def __enter__(self) -> Node:
        module = Path(web.__file__).parent / "roundel.mjs"
        self.process = subprocess.Popen([str(FOUND), *self.flags, str(_SCRIPT), str(module)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, file: Path, **more: Any) -> Any:
        """The answer of tests/node_models.mjs; raises Failed."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps({"file": str(file), **more}) + "\n")
        self.process.stdin.flush()
        said = json.loads(self.process.stdout.readline() or '{"error": "node ended", "code": "ended"}')
        if "error" in said:
            raise Failed(said["error"], said["code"])
        return said["answer"]

    def run(self, file: Path, inputs: list[np.ndarray], **more: Any) -> list[np.ndarray]:
        """The results of the model in a file; raises Failed."""
        given = [{"dtype": str(a.dtype), "shape": list(a.shape), "data": base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()} for a in inputs]
        return [np.frombuffer(base64.b64decode(o["data"]), bfloat16 if o["dtype"] == "bfloat16" else o["dtype"]).reshape(o["shape"])
                for o in self.ask(file, inputs=given, **more)]
