# SPDX-License-Identifier: Apache-2.0
"""The benchmarks are not part of the package; they are found from the project's root."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
