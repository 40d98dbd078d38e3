# SPDX-License-Identifier: Apache-2.0
"""Makes the flat programs of ``tests/codegen`` importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "codegen"))
