# SPDX-License-Identifier: Apache-2.0
"""``tvm.target``: targets, and the one that a ``with`` names."""

from __future__ import annotations

from typing import Any

from ...ir.errors import OptionError
from ...target import Target as _Target

_within: list[Any] = []
_EMPTY = {"mcpu": "", "mtriple": "", "mattr": (), "libs": (), "keys": (), "model": "unknown", "device_name": "", "tag": "",
          "vtcm_capacity": 0, "max_function_args": 0, "l2_cache_size_bytes": 0, "supports_cooperative_matrix": False, "supports_integer_dot_product": False}
"""What an attribute is of which nothing was said; of others that is an AttributeError."""
_SAID_AS = {"device_name": "device"}


class Attributes(tuple):
    """What was said of a target, as pairs, and by name: ``target.attrs["arch"]``, ``target.attrs.get("mcpu")``."""

    said: dict[str, Any]

    def get(self, name: str, default: Any = None) -> Any:
        """The attribute of this name, written with ``-`` or ``_``."""
        return self.said.get(name.replace("-", "_"), default)

    def __getitem__(self, name: Any) -> Any:
        return self.said[name.replace("-", "_")] if isinstance(name, str) else super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        return name.replace("-", "_") in self.said if isinstance(name, str) else super().__contains__(name)


class _Host:
    """``Target.host()`` is this machine, ``target.host`` what was given as the host of a device."""

    def __get__(self, target: Any, of: type) -> Any:
        return _Target.host if target is None else target.attrs.get("host")


class Target(_Target):
    """`rd.Target`; ``with target:`` makes it that of ``build`` without one. What TVM calls an attribute of a target is found by its name."""

    host: Any = _Host()

    def __init__(self, target: Any = "llvm", host: Any = None, **overrides: Any) -> None:
        super().__init__(target, **overrides)
        attrs = Attributes(self.attrs)
        processor = {"mcpu": self.cpu, "mtriple": self.triple, "mattr": tuple(f"+{f}" for f in self.features), "num_cores": self.cores,
                     "vector_width": self.vector_bytes * 8, "l2_cache_size_bytes": self.l2_bytes}
        attrs.said = {**(processor if self.is_host_like else {}), **{k.replace("-", "_"): v for k, v in tuple(self.attrs)}}
        object.__setattr__(self, "attrs", attrs)
        if host is not None:
            attrs.said["host"] = Target(host)

    def __getattr__(self, name: str) -> Any:
        attrs = self.__dict__.get("attrs")
        if attrs is None or name.startswith("_"):
            raise AttributeError(name)
        if name in _EMPTY:
            found = attrs.get(_SAID_AS.get(name, name), _EMPTY[name])
            return list(found) if isinstance(found, tuple) else found
        if name not in attrs:
            raise AttributeError(f"nobody said what {name} of {self} is: {', '.join(attrs.said) or 'nothing'} was said")
        return attrs[name]

    @property
    def arch(self) -> str:
        """That of a device where it was said, else the processor's."""
        return str(self.attrs.get("arch") or super().arch)

    def with_host(self, host: Any = None) -> Target:
        """The same target with a host."""
        return Target(self, host=host)

    def export(self) -> dict[str, Any]:
        """Kind and attributes, of which ``Target`` makes an equal one."""
        return self.to_dict()

    def __enter__(self) -> Target:
        _within.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _within.pop()

    @staticmethod
    def current(allow_none: bool = True) -> Any:
        """The target of the innermost ``with``; None outside of all, or a ValueError."""
        if not _within and not allow_none:
            raise ValueError("there is no `with target:` around")
        return _within[-1] if _within else None

    @staticmethod
    def from_device(device: Any) -> Target:
        """The target of a device: this machine. Raises OptionError for one that programs cannot run on."""
        kind = getattr(device, "device_type", str(device).split(":")[0])
        if kind not in ("cpu", "llvm"):
            raise OptionError(f"there is no device {kind}", hint="programs run on the processor, tvm.cpu()")
        return Target(_Target.host())


__all__ = ["Target"]
