# SPDX-License-Identifier: Apache-2.0
"""Tensor program functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ..attrs import EMPTY, Attrs
from ..dtype import VOID, DType
from ..node import Node, Span, node
from .buffer import Buffer
from .expr import Var
from .stmt import Block, BlockRealize, Stmt


class BaseFunc(Node):
    """Base of the functions a module holds."""

    __slots__ = ()
    attrs: Attrs

    def with_attr(self, name: str | Mapping[str, object], value: object = None) -> Self:
        """A copy with one attribute set, or with those of a dict."""
        return self.replace(attrs=self.attrs | (name if isinstance(name, Mapping) else {name: value}))

    @property
    def __name__(self) -> str:
        """The name under which it is exported; ``main`` of a private function."""
        return str(self.attrs.get("global_symbol", "main"))

    def without_attr(self, *names: str) -> BaseFunc:
        """A copy without these attributes."""
        return self.replace(attrs=self.attrs.without(*names))


class BufferMap(tuple[tuple[Var, Buffer], ...]):
    """Pairs of a parameter and its buffer, in the order of the parameters; they are found by the parameter, too: ``func.buffer_map[func.params[0]]``."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, Var):
            return super().__getitem__(key)
        for param, buffer in self:
            if param is key:
                return buffer
        raise KeyError(f"{key.name} is no parameter with a buffer; those are {', '.join(p.name for p, _ in self) or 'none'}")

    def __contains__(self, key: object) -> bool:
        return key in self.keys() if isinstance(key, Var) else super().__contains__(key)

    def keys(self) -> tuple[Var, ...]:
        """The parameters."""
        return tuple(param for param, _ in self)

    def values(self) -> tuple[Buffer, ...]:
        """The buffers."""
        return tuple(buffer for _, buffer in self)

    def items(self) -> BufferMap:
        """The pairs."""
        return self

    def get(self, key: Var, default: Any = None) -> Any:
        """The buffer of a parameter, ``default`` for what is none."""
        return self[key] if key in self else default


@node(weak=True)
class PrimFunc(BaseFunc):
    """A tensor program. ``params`` are scalars or handles; ``buffer_map`` (pairs in parameter order) says which buffer
    a handle is. The body of a schedulable function is the realize of a root block without iteration variables.

    Attributes in use: ``global_symbol`` (exported under this name), ``kind`` (``"host"`` or ``"task"`` after lowering),
    ``num_outputs`` (how many trailing buffers are written for the caller), ``target``, ``noalias``.
    """

    params: tuple[Var, ...]
    body: Stmt
    buffer_map: tuple[tuple[Var, Buffer], ...] = ()
    attrs: Attrs = EMPTY
    ret_dtype: DType = VOID
    span: Span | None = None

    @staticmethod
    def _coerce(params: Any, body: Any, buffer_map: Any, *rest: Any) -> tuple:
        if type(buffer_map) is not BufferMap:
            buffer_map = BufferMap(buffer_map.items() if isinstance(buffer_map, Mapping) else buffer_map)
        return (params, body, buffer_map, *rest)

    @property
    def buffers(self) -> Mapping[Var, Buffer]:
        """Parameter to buffer."""
        return {param: buffer for param, buffer in self.buffer_map}

    @property
    def buffer_params(self) -> tuple[Buffer, ...]:
        """The buffers of the parameters, in order (scalars left out)."""
        found = self.buffers
        return tuple(found[p] for p in self.params if p in found)

    def with_body(self, new_body: Stmt, span: Span | None = None) -> PrimFunc:
        """A copy with another body."""
        return self.replace(body=new_body)

    def specialize(self, params: Mapping[Var, Any]) -> PrimFunc:
        """The program for given sizes and buffers: ``func.specialize({n: 128, a: decl_buffer((128, 128))})``. Raises BuildError."""
        from ..specialize import specialize  # it rewrites functions

        return specialize(self, params)

    @property
    def struct_info(self) -> Any:
        """What callers know of it: tensors and scalars go in, nothing or a scalar comes back."""
        from ..graph.struct_info import FuncInfo, PrimInfo, TensorInfo, TupleInfo  # those are made of expressions
        from ..purity import effects

        found = self.buffers
        params = tuple(TensorInfo(found[p].shape, found[p].dtype) if p in found else PrimInfo(p.dtype) for p in self.params)
        return FuncInfo(params, TupleInfo(()) if self.ret_dtype is VOID else PrimInfo(self.ret_dtype), not effects(self))

    @property
    def root_block(self) -> Block | None:
        """The root block, or None when the function is not in block form."""
        body = self.body
        return body.block if isinstance(body, BlockRealize) and not body.block.iter_vars else None
