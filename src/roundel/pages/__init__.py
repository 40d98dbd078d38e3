# SPDX-License-Identifier: Apache-2.0
"""A model as a static page that runs it in the browser."""

from .serve import serve
from .site import write_site

__all__ = ["serve", "write_site"]
