# SPDX-License-Identifier: Apache-2.0
"""The pipeline runner: named passes in plain lists; timing, printing, verifying and the rewrite log wrap them from
outside.
"""

from ..target.pipelines import register_pipeline
from .observers import PrintAfter, Rewrite, RewriteLog, Timing
from .registry import Pass, all_passes, get_pass, name_of, pass_
from .run import Observer, run

__all__ = [
    "Observer",
    "Pass",
    "PrintAfter",
    "Rewrite",
    "RewriteLog",
    "Timing",
    "all_passes",
    "get_pass",
    "name_of",
    "pass_",
    "register_pipeline",
    "run",
]
