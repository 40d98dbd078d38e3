# SPDX-License-Identifier: Apache-2.0
"""``python -m roundel``."""

from .cli import main

main()
