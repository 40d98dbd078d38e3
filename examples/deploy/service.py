# SPDX-License-Identifier: Apache-2.0
"""A small service around a compiled model: ``python service.py model.so [port]``. POST a .npy file of pictures to get one of scores; GET says that it is ready.

Needs roundel-runtime (or roundel) and the standard library. Requests are answered by threads, and the model runs outside of Python's lock.
"""

from __future__ import annotations

import io
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

try:
    import roundel_runtime as rd
except ModuleNotFoundError:
    import roundel as rd

MOST_PICTURES = 64  # of one request: sizes are bounded before the model sees them
MOST_BYTES = MOST_PICTURES * 3 * 32 * 32 * 4 + 1024


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    model: Any = None

    def do_GET(self) -> None:
        """Whether the service is ready, and what it serves."""
        self.answer(200, repr(self.model).encode(), "text/plain; charset=utf-8")

    def do_POST(self) -> None:
        """The scores of the pictures in the body."""
        length = int(self.headers.get("Content-Length", 0))
        if length > MOST_BYTES:
            return self.answer(413, f"at most {MOST_BYTES} bytes".encode(), "text/plain; charset=utf-8")
        try:
            pictures = np.load(io.BytesIO(self.rfile.read(length)), allow_pickle=False)
            scores = self.model(pictures)
        except (ValueError, EOFError) as error:  # no file of NumPy's, or arguments that do not fit: a CallError is a ValueError
            return self.answer(400, str(error).encode(), "text/plain; charset=utf-8")
        body = io.BytesIO()
        np.save(body, scores)
        return self.answer(200, body.getvalue(), "application/octet-stream")

    def answer(self, status: int, body: bytes, kind: str) -> None:
        """Send a response."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    Handler.model = rd.load(sys.argv[1], verify=True)
    Handler.model(np.zeros((MOST_PICTURES, 3, 32, 32), np.float32))  # warm up: weights are read, memory is made
    server = ThreadingHTTPServer(("0.0.0.0", int(sys.argv[2]) if len(sys.argv) > 2 else 8080), Handler)
    print(f"ready on port {server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
