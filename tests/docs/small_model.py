# SPDX-License-Identifier: Apache-2.0
"""The ``model.onnx`` of documents and command-line tests, which an example makes."""

import runpy
from pathlib import Path

write = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "small_model.py"))["write"]
