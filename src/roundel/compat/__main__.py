# SPDX-License-Identifier: Apache-2.0
"""``python -m roundel.compat`` prints the page docs/from-tvm.md."""

from .page import page

print(page(), end="")
