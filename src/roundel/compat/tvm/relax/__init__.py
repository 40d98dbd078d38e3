# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .... import relax as _relax
from ....builder import bind_params, bind_symbolic_vars
from ....ir import graph
from ....ir.module import IRModule
from ....passes import get_pass
from ....passes.well_formed import well_formed as _problems
from ....relax import *  # noqa: F403
from ....relax import analysis as _analysis
from ....relax import expr_functor
from ....relax import frontend as _frontend
from ....relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from ..running import VirtualMachine, build
from ..transform import Pass, PassContext, Sequential, function_pass, module_pass

Expr, StructInfo, Binding, BindingBlock, DataflowBlock = graph.GraphExpr, graph.StructInfo, graph.Binding, graph.BindingBlock, graph.DataflowBlock
MatchCast = graph.MatchCast


def _on_function(name: str, change: Any) -> Pass:
    return Pass(lambda mod: mod.with_functions({name: change(mod[name])}), name=name)


def _named(name: str) -> Any:
    """A pass of Roundel's that does what one of TVM's does, whose options it does not need."""

    def make(*_: Any, **__: Any) -> Pass:
        return Pass(get_pass(name), name=name)

    make.__doc__ = f"The pass `{name}`"
    return make


def _nothing(why: str) -> Any:
    """What there is no need of here."""

    def make(*_: Any, **__: Any) -> Pass:
        return Pass(lambda mod: mod, name="nothing")

    make.__doc__ = why
    return make


def _bind_params(func_name: str, params: Any) -> Pass:
    """Parameters given for good: `roundel.builder.bind_params`"""
    return _on_function(func_name, lambda f: bind_params(f, params))


def _bind_symbolic_vars(binding_map: Any, func_name: str | None = None) -> Pass:
    """Symbolic dimensions given for good: `roundel.builder.bind_symbolic_vars`"""
    return _on_function(func_name or "main", lambda f: bind_symbolic_vars(f, binding_map))


class _Transforms(SimpleNamespace):
    def __getattr__(self, name: str) -> Any:
        from ..rooms import missing

        raise missing(f"tvm.relax.transform.{name}", name)


transform = _Transforms(
    BindParams=_bind_params, BindSymbolicVars=_bind_symbolic_vars,
    LegalizeOps=_named("legalize"), FoldConstant=_named("fold_constants"), DeadCodeElimination=_named("eliminate_dead_code"),
    EliminateCommonSubexpr=_named("eliminate_common_subexpressions"), ConvertToDataflow=_named("convert_to_dataflow"),
    CanonicalizeBindings=_named("simplify"), DecomposeOpsForInference=_named("decompose"), InlinePrivateFunctions=_named("inline_functions"),
    FoldBatchnormToConv2D=_named("fold_scale"), FuseOps=_named("fuse"),
    FuseTIR=_nothing("Nothing: `FuseOps` merges what it finds"), AnnotateTIROpPattern=_nothing("Nothing: `FuseOps` looks itself"),
    Normalize=_nothing("Nothing: functions are in normal form"),
    module_pass=module_pass, function_pass=function_pass, Sequential=Sequential, PassContext=PassContext,
)
"""Passes. Roundel's ``fuse`` finds what may be merged and merges it: ``AnnotateTIROpPattern`` and ``FuseTIR`` have nothing left to do."""

analysis = SimpleNamespace(
    **{name: getattr(_analysis, name) for name in _analysis.__all__},
    well_formed=lambda value, check_struct_info=True: not _problems(value if isinstance(value, IRModule) else IRModule({"main": value})),
)


def _from_onnx(model: Any, shape_dict: Any = None, dtype_dict: Any = None, opset: Any = None, keep_params_in_input: bool = False, **_: Any) -> IRModule:
    from ....frontend.onnx import from_onnx

    return from_onnx(model)


def _from_exported_program(program: Any, **options: Any) -> IRModule:
    from ....frontend.torch import from_exported_program

    return from_exported_program(program, **options)


frontend = SimpleNamespace(onnx=SimpleNamespace(from_onnx=_from_onnx), torch=SimpleNamespace(from_exported_program=_from_exported_program),
                           nn=_frontend.nn, detach_params=_frontend.detach_params)


def __getattr__(name: str) -> Any:
    from ..rooms import missing

    try:
        return getattr(_relax, name)
    except AttributeError:
        raise missing(f"tvm.relax.{name}", name) from None


__all__ = ["Binding", "BindingBlock", "DataflowBlock", "Expr", "MatchCast", "PyExprMutator", "PyExprVisitor", "StructInfo", "VirtualMachine", "analysis",
           "build", "expr_functor", "frontend", "mutator", "transform", "visitor"]
