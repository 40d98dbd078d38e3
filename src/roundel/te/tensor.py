# SPDX-License-Identifier: Apache-2.0
"""Tensors of tensor expressions: a Tensor is a Buffer that knows how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from roundel.ir.attrs import EMPTY, Attrs
from roundel.ir.dataclass import dataclass
from roundel.ir.dtype import HANDLE, INT64, DType
from roundel.ir.errors import RoundelError
from roundel.ir.node import node
from roundel.ir.saved import saved
from roundel.ir.tir import Buffer, Expr, IterVar, Stmt, Var, as_index, const


@node
class Tensor(Buffer):
    """``A[i, j]`` is one element. ``definition`` is the stage that makes it, ``value_index`` which output of it."""

    definition: Definition  # type: ignore[misc]
    value_index: int = 0

    _children = ()

    def __getitem__(self, indices: Any) -> Expr:
        items = indices if isinstance(indices, tuple) else (indices,)
        if len(items) < len(self.shape) and not any(isinstance(i, slice) for i in items):
            return Slice(self, items)  # type: ignore[return-value]
        if len(items) != len(self.shape):
            raise RoundelError(f"tensor {self.name} has {len(self.shape)} dimensions and is indexed with {len(items)}")
        if isinstance(self.definition, Literal):
            return self.definition.value
        return Buffer.__getitem__(self, items)

    def __call__(self, *indices: Any) -> Expr:
        return self[indices]

    if TYPE_CHECKING:  # elementwise operators, which ``arithmetic`` installs; of a tensor without dimensions and a scalar they are expressions

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __neg__(self) -> Tensor: ...

    def asexpr(self) -> Expr:
        """The element of a tensor without dimensions."""
        if self.shape:
            raise RoundelError(f"tensor {self.name} has {self.ndim} dimensions and stands where a scalar is needed", hint="index it")
        return self[()]

    @property
    def op(self) -> Operation:
        """The stage that makes the tensor: its name, attributes, axes, bodies and inputs."""
        return _OPERATIONS[type(self.definition)](self)

    def __repr__(self) -> str:
        return f"Tensor({self.name}: {self.dtype}[{', '.join(map(_short, self.shape))}])"


@dataclass(frozen=True)
class Slice:
    """``A[i]`` of a tensor with more dimensions: the rest of the indices is to follow, ``A[i][j]``."""

    tensor: Tensor
    indices: tuple[Any, ...]

    def __getitem__(self, indices: Any) -> Any:
        return self.tensor[(*self.indices, *(indices if isinstance(indices, tuple) else (indices,)))]

    def __iter__(self) -> Any:
        raise TypeError(f"{len(self.indices)} of the {self.tensor.ndim} indices of tensor {self.tensor.name} are given; a part of a tensor is no sequence")

    def asexpr(self) -> Expr:
        """Not an element: raises RoundelError."""
        raise RoundelError(f"tensor {self.tensor.name} has {self.tensor.ndim} dimensions and is indexed with {len(self.indices)}",
                           hint=f"{self.tensor.name}[{', '.join('ijklmn'[: self.tensor.ndim])}] is one element")


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "neg", "lt", "le", "gt", "ge"):
    setattr(Slice, f"__{_name}__", lambda self, *others: self.asexpr())  # raises


def _short(dim: Expr) -> str:
    return str(getattr(dim, "value", getattr(dim, "name", dim)))


class Definition:
    """Base of what defines tensors; ``inputs`` are the tensors it reads."""

    inputs: tuple[Tensor, ...] = ()


@saved
@dataclass(eq=False)
class Placeholder(Definition):
    """Given from outside."""


@saved
@dataclass(eq=False)
class Literal(Definition):
    """Every element is this constant; reading one gives the constant itself, so that no memory is involved."""

    value: Expr


@saved
@dataclass(eq=False)
class Compute(Definition):
    """One expression per output over ``axes``; an expression may be a Reduce at the top."""

    axes: tuple[IterVar, ...]
    bodies: tuple[Expr, ...]
    attrs: Attrs = EMPTY
    inputs: tuple[Tensor, ...] = ()


@dataclass(eq=False)
class Extern(Definition):
    """A stage written as a statement, for every point of ``axes``: ``build(inputs, outputs, scratch, *points)``. It writes all of ``outputs``,
    whichever of them are used."""

    axes: tuple[IterVar, ...]
    build: Callable[..., Stmt]
    scratch: tuple[Buffer, ...] = ()
    attrs: Attrs = EMPTY
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()


@saved
@dataclass(eq=False)
class Scan(Definition):
    """Rows one after another: the first are those of ``init``, each further one is what ``update`` makes of the rows of ``state`` before it."""

    init: tuple[Tensor, ...]
    update: tuple[Tensor, ...]
    state: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Operation:
    """A stage seen from one of its tensors."""

    tensor: Tensor

    @property
    def name(self) -> str:
        """The stage's name: the tensor's, without the number of the output."""
        return self.tensor.name.removesuffix(f"_v{self.tensor.value_index}")

    @property
    def attrs(self) -> Attrs:
        """The attributes it was made with, but the tag."""
        return Attrs({k: v for k, v in getattr(self.tensor.definition, "attrs", EMPTY).items() if k != "tag"})

    @property
    def tag(self) -> str:
        """The tag it was made with, or nothing."""
        return str(getattr(self.tensor.definition, "attrs", EMPTY).get("tag", ""))

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The axes of its outputs."""
        return getattr(self.tensor.definition, "axes", ())

    @property
    def body(self) -> tuple[Expr, ...]:
        """The elements of its outputs, by ``axis``."""
        return getattr(self.tensor.definition, "bodies", ())

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes it reduces over."""
        return next((b.axes for b in self.body if hasattr(b, "axes")), ())

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors it reads."""
        return self.tensor.definition.inputs

    @property
    def num_outputs(self) -> int:
        """How many tensors it makes."""
        return len(self.body) or len(getattr(self.tensor.definition, "update", ())) or 1

    def output(self, index: int) -> Tensor:
        """The tensor of one of its outputs."""
        if index == self.tensor.value_index:
            return self.tensor
        if not 0 <= index < len(self.body):
            raise RoundelError(f"{self.name} has {self.num_outputs} outputs, not an output {index}")
        return self.tensor.replace(name=f"{self.name}_v{index}", dtype=self.body[index].dtype, value_index=index)


@saved
class PlaceholderOp(Operation):
    """That of a tensor given from outside."""


@saved
class ComputeOp(Operation):
    """That of elements by expressions."""


class ExternOp(Operation):
    """That of a statement."""


@saved
class ScanOp(Operation):
    """That of rows one after another."""


_OPERATIONS: dict[type, type[Operation]] = {Placeholder: PlaceholderOp, Literal: ComputeOp, Compute: ComputeOp, Extern: ExternOp, Scan: ScanOp}


def make_tensor(definition: Definition, shape: Sequence[Any], dtype: Any, name: str, value_index: int = 0) -> Tensor:
    """A tensor of this shape (numbers or index expressions) made by ``definition``."""
    return Tensor(
        name=name,
        dtype=DType(dtype),
        shape=tuple(as_index(s) for s in shape),
        strides=(),
        elem_offset=None,
        scope="global",
        data=Var(name + "_data", HANDLE),
        definition=definition,
        value_index=value_index,
    )


def placeholder(shape: Sequence[Any], dtype: Any = "float32", name: str = "placeholder") -> Tensor:
    """A tensor given from outside."""
    return make_tensor(Placeholder(), shape if isinstance(shape, tuple | list) else (shape,), dtype, name)


def literal(value: Any, shape: Sequence[Any] = (), dtype: Any = None) -> Tensor:
    """A tensor that is one constant everywhere."""
    expr = const(value, dtype)
    return make_tensor(Literal(expr), shape, expr.dtype, "literal")


def var(name: str = "n", dtype: Any = "int64") -> Var:
    """A scalar variable."""
    return Var(name, DType(dtype))


def size_var(name: str = "n") -> Var:
    """A shape variable: int64, known to be >= 0."""
    return Var(name, INT64, True)
