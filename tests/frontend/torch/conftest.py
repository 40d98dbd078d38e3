# SPDX-License-Identifier: Apache-2.0
"""Skips these tests where PyTorch is not installed; lets them import what stands beside them."""

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]
