# SPDX-License-Identifier: Apache-2.0
"""Signals while a model runs: the main thread, where Python runs the handlers of signals, has them run some five times a second.

No handler is installed. Where the program's own handler raises (as that of Ctrl-C does), the run ends and the call raises what was raised;
otherwise the run goes on.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_int, c_uint64, c_void_p

STATUS = 7  # RD_INTERRUPTED of roundel.h


class _Functions(ctypes.Structure):
    """``RdPython`` of the runtime: what it calls in this interpreter."""

    _fields_ = tuple((name, c_void_p) for name in ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Fetch", "PyErr_Restore"))


_FUNCTIONS = _Functions(*[ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p).value for name, _ in _Functions._fields_])


def install(library: ctypes.CDLL) -> None:
    """Have runs of the main thread see to signals."""
    main = threading.main_thread().ident
    library.rd_python_signals.restype, library.rd_python_signals.argtypes = None, [c_void_p, c_uint64]
    library.rd_python_signals(ctypes.byref(_FUNCTIONS), main or 0)


def reraise(library: ctypes.CDLL) -> None:
    """Raise what the handler raised that ended the last run."""
    address = ctypes.cast(library.rd_python_raise, c_void_p).value
    assert address is not None
    ctypes.PYFUNCTYPE(c_int)(address)()  # such functions look for an error when they return
