# SPDX-License-Identifier: Apache-2.0
"""A server of a page's files for trying it on this machine; any other server of static files does as well."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class _Files(SimpleHTTPRequestHandler):
    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript", ".wasm": "application/wasm", ".weights": "application/octet-stream"}

    def end_headers(self) -> None:
        """The page is isolated from others, as browsers ask before they let threads share memory."""
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: who serves a page looks at the page."""


def serve(folder: str | Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of a folder for this machine alone (127.0.0.1), that listens; ``port`` 0 takes a free one. ``serve_forever`` of the result serves,
    its ``server_port`` is the port. Raises OSError where the port is taken."""
    return ThreadingHTTPServer(("127.0.0.1", port), partial(_Files, directory=str(folder)))
