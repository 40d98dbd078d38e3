# SPDX-License-Identifier: Apache-2.0
"""Python's operators between graph values: ``x + 1`` is a call of ``add`` (comparison by ``==`` stays that of objects)."""

from __future__ import annotations

from typing import Any

from ..op import get_op


def _call(name: str, *args: Any) -> Any:
    from .make_call import make_call  # that module builds on the one that builds on this

    return make_call(get_op(name), args)


class Operators:
    """A mixin of graph values."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return _call("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _call("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _call("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _call("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return _call("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _call("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _call("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _call("divide", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _call("floor_divide", self, other)

    def __mod__(self, other: Any) -> Any:
        return _call("mod", self, other)

    def __pow__(self, other: Any) -> Any:
        return _call("power", self, other)

    def __matmul__(self, other: Any) -> Any:
        return _call("matmul", self, other)

    def __neg__(self) -> Any:
        return _call("negative", self)

    def __lt__(self, other: Any) -> Any:
        return _call("less", self, other)

    def __le__(self, other: Any) -> Any:
        return _call("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return _call("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return _call("greater_equal", self, other)

    def __getitem__(self, index: int) -> Any:
        """A field of a tuple."""
        fields = getattr(self.sinfo, "fields", None)  # type: ignore[attr-defined]
        if not isinstance(index, int) or fields is None:
            raise TypeError("only fields of tuples are taken by [...]; R.strided_slice and R.take cut tensors")
        if not -len(fields) <= index < len(fields):
            raise IndexError(f"the tuple has {len(fields)} fields")
        from .expr import TupleGetItem  # that module builds on this one

        return TupleGetItem(self, index % len(fields))  # type: ignore[arg-type]

    def __iter__(self) -> Any:
        return iter([self[k] for k in range(len(getattr(self.sinfo, "fields", ())))])  # type: ignore[attr-defined]

    def astype(self, dtype: Any) -> Any:
        """The tensor with elements of another type."""
        return _call("astype", self, dtype)

    @property
    def struct_info_(self) -> Any:
        """``sinfo``, or None where nothing is known."""
        from .struct_info import ObjectInfo  # that module builds on this one

        return None if isinstance(self.sinfo, ObjectInfo) else self.sinfo  # type: ignore[attr-defined]

    @property
    def struct_info(self) -> Any:
        """``sinfo``, by TVM's name."""
        return self.sinfo  # type: ignore[attr-defined]

    ty = struct_info
    """The name since TVM 0.24."""
    _checked_type_ = struct_info
    """The name of 2022."""

    @property
    def shape_(self) -> Any:
        """The shape of a tensor, by TVM's name of 2022."""
        return self.sinfo.shape  # type: ignore[attr-defined]
