# SPDX-License-Identifier: Apache-2.0
"""Graph-level expressions and bindings. Functions are kept in A-normal form: operands are variables, constants or tuples of them."""

from __future__ import annotations

from operator import index
from typing import Any

from ..attrs import EMPTY, Attrs
from ..constants import ConstData
from ..dtype import DType
from ..errors import TypeInferenceError
from ..node import Node, Span, node
from ..op import OpDef
from ..tir.expr import Expr as PrimExpr
from ..tir.ops import as_index, const
from .operators import Operators
from .struct_info import FuncInfo, ObjectInfo, PrimInfo, ShapeInfo, StructInfo, TensorInfo, TupleInfo


class GraphExpr(Operators, Node):
    """Base of graph expressions; ``sinfo`` says what is known of the value."""

    __slots__ = ()
    sinfo: StructInfo
    __hash__ = object.__hash__


def _item(whole: GraphExpr, items: tuple, index: Any) -> Any:
    if isinstance(index, int) and not -len(items) <= index < len(items):
        raise IndexError(f"{type(whole).__name__} index out of range: {index} of {len(items)}")
    return items[index]


@node
class Var(GraphExpr):
    """A variable outside (or leaving) a dataflow block, by identity."""

    name: str
    sinfo: StructInfo = ObjectInfo()

    def __reduce__(self) -> tuple:
        return type(self), (self.name, self.sinfo)

    @property
    def name_hint(self) -> str:
        """``name``, by TVM's name."""
        return self.name


@node
class DataflowVar(Var):
    """A variable visible only in its dataflow block."""


@node(intern=True)
class GlobalVar(Node):
    """A function of the module, by name."""

    name: str

    @property
    def name_hint(self) -> str:
        """``name``, by TVM's name."""
        return self.name


@node
class ExternFunc(GraphExpr):
    """A function known by name through the FFI. In a module it gives that function a name there."""

    name: str
    sinfo: StructInfo = ObjectInfo()

    @property
    def attrs(self) -> Attrs:
        """It has none."""
        return EMPTY


@node
class Constant(GraphExpr):
    """A constant tensor, as a handle into the content-hashed pool."""

    data: ConstData
    sinfo: StructInfo

    @staticmethod
    def of(value: Any, dtype: Any = None) -> Constant:
        """From an array, a number or a ConstData (numbers default to int64, float32 or bool)."""
        import numpy as np

        if not isinstance(value, ConstData):
            if dtype is None and isinstance(value, float) and not isinstance(value, np.generic):
                dtype = "float32"
            value = ConstData(np.asarray(value, None if dtype is None else DType(dtype).numpy))
        return Constant(value, TensorInfo(value.shape, value.dtype))


@node
class ShapeExpr(GraphExpr):
    """A shape value ``R.shape([n, 4])`` (numbers are taken as expressions)."""

    values: tuple[PrimExpr, ...]

    @staticmethod
    def _coerce(values: Any) -> tuple:
        return (tuple([v if isinstance(v, PrimExpr) else as_index(index(v)) for v in values]),)

    @property
    def sinfo(self) -> StructInfo:  # type: ignore[override]
        """The values as a shape."""
        return ShapeInfo(self.values)

    def __getitem__(self, index: Any) -> Any:
        """One of the values."""
        return _item(self, self.values, index)

    def __iter__(self) -> Any:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)


@node
class PrimValue(GraphExpr):
    """A scalar value (``R.prim_value``)."""

    value: PrimExpr

    @staticmethod
    def _coerce(value: Any) -> tuple:
        return (value if isinstance(value, PrimExpr) else const(value),)

    @property
    def sinfo(self) -> StructInfo:  # type: ignore[override]
        """The type of the number, and the number."""
        return PrimInfo(self.value.dtype, self.value)


@node
class StringValue(GraphExpr):
    """A string value (``R.str``)."""

    value: str
    sinfo: StructInfo = ObjectInfo()


@node
class DTypeValue(GraphExpr):
    """A data type as a value (``R.dtype``)."""

    value: DType
    sinfo: StructInfo = ObjectInfo()


@node
class Tuple(GraphExpr):
    """A tuple of values."""

    fields: tuple[GraphExpr, ...]

    @staticmethod
    def _coerce(fields: Any) -> tuple:
        return (tuple(fields),)

    @property
    def sinfo(self) -> StructInfo:  # type: ignore[override]
        """The struct infos of the fields."""
        return TupleInfo(tuple(f.sinfo for f in self.fields))

    def __getitem__(self, index: Any) -> Any:
        """One of the fields."""
        return _item(self, self.fields, index)

    def __iter__(self) -> Any:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


@node
class TupleGetItem(GraphExpr):
    """Field ``index`` of a tuple."""

    tuple_value: GraphExpr
    index: int

    @property
    def sinfo(self) -> StructInfo:  # type: ignore[override]
        """That of the field, nothing known where the tuple is opaque."""
        whole = self.tuple_value.sinfo
        return whole.fields[self.index] if isinstance(whole, TupleInfo) else ObjectInfo()


@node
class Call(GraphExpr):
    """A call of an operator (OpDef), a function of the module (GlobalVar), an ExternFunc or a variable.

    ``attrs`` are the operator's attributes, ``sinfo_args`` the struct info given explicitly (``call_tir``'s out_sinfo),
    ``sinfo`` what is known of the result. The special operators: ``call_tir(gv, Tuple[, ShapeExpr])``,
    ``call_dps_packed(ExternFunc, Tuple)``, ``call_packed`` is a Call whose op is an ExternFunc.
    """

    op: OpDef | GlobalVar | GraphExpr
    args: tuple[GraphExpr | GlobalVar, ...]
    attrs: Attrs = EMPTY
    sinfo_args: tuple[StructInfo, ...] = ()
    sinfo: StructInfo = ObjectInfo()
    span: Span | None = None
    _children = ("op", "args", "sinfo_args", "sinfo")

    @staticmethod
    def _coerce(op: Any, args: Any, attrs: Any, sinfo_args: Any, sinfo: StructInfo, span: Span | None) -> tuple:
        """Lists are taken for tuples, None for no attributes. Raises TypeInferenceError for a variable that is known to be no function."""
        if isinstance(op, Var) and not isinstance(op.sinfo, FuncInfo | ObjectInfo):
            raise TypeInferenceError(f"{op.name} is called, and is no function", why=f"it is {op.sinfo!r}")
        attrs = attrs if type(attrs) is Attrs else Attrs(attrs)
        return op, tuple(args), attrs, tuple(sinfo_args or ()), sinfo, span


@node
class If(GraphExpr):
    """A conditional value; ``condition`` is a bool scalar, the branches are SeqExprs."""

    condition: GraphExpr
    true_branch: SeqExpr
    false_branch: SeqExpr
    sinfo: StructInfo = ObjectInfo()

    @property
    def cond(self) -> GraphExpr:
        """``condition``, by TVM's name."""
        return self.condition


@node
class While(GraphExpr):
    """A loop value: ``loop_vars`` start as ``init``; while ``condition`` (a SeqExpr giving a bool scalar) holds, ``body``
    (a SeqExpr giving a tuple like loop_vars) gives their next values. The value is the tuple of the last ones.
    """

    loop_vars: tuple[Var, ...]
    init: tuple[GraphExpr, ...]
    condition: SeqExpr
    body: SeqExpr
    sinfo: StructInfo = ObjectInfo()


class Binding(Node):
    """Base of bindings."""

    __slots__ = ()
    var: Var
    value: GraphExpr


@node
class VarBinding(Binding):
    """``var = value``"""

    var: Var
    value: GraphExpr
    span: Span | None = None


@node
class MatchCast(Binding):
    """``var = R.match_cast(value, sinfo)``: checked at run time; defines the symbolic variables that are new in ``sinfo``."""

    var: Var
    value: GraphExpr
    sinfo: StructInfo
    span: Span | None = None

    @property
    def struct_info(self) -> StructInfo:
        """``sinfo``, by TVM's name."""
        return self.sinfo


@node
class BindingBlock(Node):
    """Bindings in order."""

    bindings: tuple[Binding, ...]


@node
class DataflowBlock(BindingBlock):
    """Bindings without side effects or control flow, free to be reordered and rewritten."""


@node
class SeqExpr(GraphExpr):
    """Blocks of bindings, then a value."""

    blocks: tuple[BindingBlock, ...]
    body: GraphExpr

    @property
    def sinfo(self) -> StructInfo:  # type: ignore[override]
        """That of the result."""
        return self.body.sinfo

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """All bindings, in order."""
        return tuple(b for block in self.blocks for b in block.bindings)
