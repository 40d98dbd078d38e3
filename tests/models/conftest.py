# SPDX-License-Identifier: Apache-2.0
"""Whole models. Those of libraries need transformers and onnxscript; the benchmark's models are found from the project's root."""

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
_OF_LIBRARIES = ["test_architectures.py", "test_benchmark_models.py", "test_minilm.py", "test_packaged_models.py"]
collect_ignore_glob = [] if all(map(find_spec, ("torch", "transformers", "onnxscript"))) else _OF_LIBRARIES
