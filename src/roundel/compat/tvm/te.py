# SPDX-License-Identifier: Apache-2.0
"""``tvm.te``."""

from typing import Any

from ... import te as _te
from ...te import *  # noqa: F403


def __getattr__(name: str) -> Any:
    return getattr(_te, name)
