# SPDX-License-Identifier: Apache-2.0
"""A measurement in a process of its own: one that crashes or does not end leaves a line that says so, and the others go on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any


def measured_apart(command: Sequence[str], limit: float) -> dict[str, Any]:
    """What ``python -m benchmarks`` with these arguments prints as its last line, a JSON object; or ``failed``: why there is none. ``limit``: seconds."""
    try:
        made = subprocess.run([sys.executable, "-m", "benchmarks", *command], capture_output=True, text=True, timeout=limit, check=False)
        found: dict[str, Any] = json.loads(made.stdout.strip().splitlines()[-1])
        return found
    except subprocess.TimeoutExpired:
        return {"failed": f"not done in {limit:.0f} s"}
    except (IndexError, ValueError):
        return {"failed": f"ended with {made.returncode}: {' '.join(made.stderr.split())[-400:]}"}
