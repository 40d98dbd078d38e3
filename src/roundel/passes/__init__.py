# SPDX-License-Identifier: Apache-2.0
"""What a pass is, and the runner of pipelines."""

from .named import find_pass, known_passes, pass_

__all__ = ["find_pass", "known_passes", "pass_"]
