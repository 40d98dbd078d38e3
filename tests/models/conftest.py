# SPDX-License-Identifier: Apache-2.0
"""Whole models. They need torch, transformers and onnxscript; the benchmark's models are found from the project's root."""

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
collect_ignore_glob = [] if all(map(find_spec, ("torch", "transformers", "onnxscript"))) else ["test_*.py"]
