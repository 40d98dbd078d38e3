# SPDX-License-Identifier: Apache-2.0
"""Libraries and users' own kernels beside generated code: what a backend is, which there are, and the pass that chooses between all of them.

    from roundel import backends

    backends.register(backends.Backend("mine", [("mine.relu", is_op("relax.nn.relu")(wildcard()))], implement))
    rd.compile(model, choices={"/act/Relu": "mine"})
"""

from __future__ import annotations

from .backend import Backend, Composite, Form, Kernel, Library, native, python, shared
from .known import available, find, register, registered, unregister

__all__ = ["Backend", "Composite", "Form", "Kernel", "Library", "available", "find", "native", "python", "register", "registered", "shared", "unregister"]
