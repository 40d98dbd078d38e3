# SPDX-License-Identifier: Apache-2.0
"""A process that compiles: ``python -m roundel.build.worker`` reads requests from stdin and writes answers to stdout.

A message is its length (8 bytes, little-endian) and a pickle: ``(kind, arguments, options)`` in, ``(True, answer)`` or
``(False, (what, why))`` out. LLVM's fatal errors end this process and not the one that asked.
"""

from __future__ import annotations

import gc
import os
import pickle
import struct
import sys
from typing import IO, Any

_LENGTH = struct.Struct("<Q")


def send(stream: IO[bytes], message: Any) -> None:
    """Write a message."""
    write(stream, pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))


def write(stream: IO[bytes], content: bytes) -> None:
    """Write a message that is pickled already."""
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read a message; raises EOFError at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return pickle.loads(content)


def main() -> None:
    """Serve requests until stdin ends."""
    from ..ir import options
    from ..ir.errors import RoundelError
    from .kernels import compile_kernel, compile_text

    answers = {"object": compile_text, "kernel": compile_kernel}
    gc.freeze()
    gc.set_threshold(1_000_000, 50, 100)  # as in ir/garbage.py
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever LLVM prints does not get between messages
    while True:
        try:
            kind, arguments, settings = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            with options.override(**settings):
                send(out, (True, answers[kind](*arguments)))
        except RoundelError as error:
            send(out, (False, (error.what, error.why)))


if __name__ == "__main__":
    main()
