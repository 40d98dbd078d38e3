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
    return lambda *_, **__: Pass(get_pass(name), name=name)


def _nothing(*_: Any, **__: Any) -> Pass:
    """What another pass does in one step, or what there is no need of here."""
    return Pass(lambda mod: mod, name="nothing")


class _Transforms(SimpleNamespace):
    def __getattr__(self, name: str) -> Any:
        from ..rooms import missing

        raise missing(f"tvm.relax.transform.{name}", name)


transform = _Transforms(
    BindParams=lambda func_name, params: _on_function(func_name, lambda f: bind_params(f, params)),
    BindSymbolicVars=lambda binding_map, func_name=None: _on_function(func_name or "main", lambda f: bind_symbolic_vars(f, binding_map)),
    LegalizeOps=_named("legalize"), FoldConstant=_named("fold_constants"), DeadCodeElimination=_named("eliminate_dead_code"),
    EliminateCommonSubexpr=_named("eliminate_common_subexpressions"), ConvertToDataflow=_named("convert_to_dataflow"),
    CanonicalizeBindings=_named("simplify"), DecomposeOpsForInference=_named("decompose"), InlinePrivateFunctions=_named("inline_functions"),
    FoldBatchnormToConv2D=_named("fold_scale"), FuseOps=_named("fuse"), FuseTIR=_nothing, AnnotateTIROpPattern=_nothing, Normalize=_nothing,
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
