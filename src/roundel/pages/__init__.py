# SPDX-License-Identifier: Apache-2.0
"""A model as a static page that runs it in the browser."""

from .folder import files_of, kind_of
from .serve import serve
from .site import write_site

__all__ = ["files_of", "kind_of", "serve", "write_site"]
