# SPDX-License-Identifier: Apache-2.0
"""Walking and changing statements by functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..ir import graph, substitute, tir, walk
from ..ir.node import Node
from ..ir.specialize import renew_defs

Change = Callable[[Any], Any]


def pre_order_visit(program: Node, visit: Callable[[Node], Any]) -> None:
    """``visit`` for every node, parents first; where it gives False the children are left out."""
    if visit(program) is not False:
        for child in program._below():
            pre_order_visit(child, visit)


def post_order_visit(program: Node, visit: Callable[[Node], Any]) -> None:
    """``visit`` for every node, children first; one that stands at several places is visited once."""
    seen: set[Node] = set()

    def go(node: Node) -> None:
        if node in seen:
            return
        seen.add(node)
        for child in node._below():
            go(child)
        visit(node)

    go(program)


def ir_transform(program: Any, preorder: Change | None, postorder: Change | None, only_enable: Iterable[str | type] | None = None) -> Any:
    """A statement changed by functions of a node: what ``preorder`` gives for a node replaces it, and its children are not looked at
    (None: go on); ``postorder`` is asked when the children are done (None: leave it). ``only_enable`` names the kinds of nodes that
    are asked about, as classes or as ``"tir.Call"``."""
    kinds = None if only_enable is None else {k.rpartition(".")[2] if isinstance(k, str) else k.__name__ for k in only_enable}

    def go(node: Any) -> Any:
        asked = kinds is None or type(node).__name__ in kinds
        if asked and preorder is not None and (found := preorder(node)) is not None:
            return found
        made = node._rebuilt(everywhere, node)
        if asked and postorder is not None and (found := postorder(made)) is not None:
            return found
        return made

    everywhere = _Everywhere(go)
    return program.replace(body=go(program.body)) if isinstance(program, tir.PrimFunc) else go(program)


class _Everywhere:
    """A change for the nodes that a node's fields hold."""

    def __init__(self, change: Change) -> None:
        self.rewrite = change

    def rewrite_items(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        """A tuple of nodes, changed."""
        return tuple(map(self.rewrite, items))

    def rewrite_field(self, value: Any) -> Any:
        """What holds nodes in other ways than as a node or a tuple of them."""
        if isinstance(value, tuple):
            return tuple(map(self.rewrite_field, value))
        return self.rewrite(value) if isinstance(value, Node) and not isinstance(value, graph.GlobalVar) else value


def stmt_list(body: tir.Stmt) -> list[tir.Stmt]:
    """The statements of a sequence; a statement that is none, alone."""
    return list(body.stmts) if isinstance(body, tir.Seq) else [body]


def stmt_substitute(body: Any, values: Mapping[tir.Var, Any]) -> Any:
    """A statement or expression with numbers or expressions in place of variables."""
    return substitute(body, {v: tir.const(e, v.dtype) if not isinstance(e, tir.Expr) else e for v, e in values.items()})


__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "renew_defs", "stmt_list", "stmt_substitute", "substitute", "walk"]
