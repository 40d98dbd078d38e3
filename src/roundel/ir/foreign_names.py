# SPDX-License-Identifier: Apache-2.0
"""Classes of other systems that are made otherwise there: called, one makes a node of Roundel's; ``isinstance`` asks whether something is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Named(type):
    node: type
    make: Callable[..., Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.make(*args, **kwargs)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.node)


def named_like(node: type) -> Callable[[Callable[..., Any]], Any]:
    """A class with the name, arguments and documentation of the decorated function, whose instances are those of ``node``."""
    return lambda make: _Named(make.__name__, (), {"node": node, "make": staticmethod(make), "__doc__": make.__doc__})
