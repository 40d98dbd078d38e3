# SPDX-License-Identifier: Apache-2.0
"""Skips these tests where PyTorch is not installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]
