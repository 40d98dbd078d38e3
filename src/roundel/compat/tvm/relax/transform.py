# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.transform``: passes. Roundel's ``fuse`` finds what may be merged and merges it, so that several of TVM's have nothing left to do."""

from __future__ import annotations

from typing import Any

from ....backends.run_codegen import run_codegen
from ....builder import bind_params, bind_sizes
from ....graph.algorithms.mixed_precision import mixed_precision
from ....graph.gradient import gradient
from ....graph.layout.convert_layout import convert_layout
from ....graph.tidy.lift_functions import lift_functions
from ....graph.tidy.lift_params import bundle_params, lift_params
from ....passes import get_pass
from ....relax.fuse_by_pattern import FusionPattern, PatternCheckContext, fuse_by_pattern
from ....relax.merge_composites import merge_composites
from ....training import normalizes_by_batches
from ..meta_schedule.database import Database
from ..rooms import missing
from ..running import DATABASE, as_target
from ..transform import Pass, PassContext, Sequential, function_pass, module_pass


def _on_function(name: str, change: Any) -> Pass:
    return Pass(lambda mod: mod.with_functions({name: change(mod[name])}), name=name)


def _named(*names: str) -> Any:
    """Passes of Roundel's that do what one of TVM's does, whose options they do not need."""

    def make(*_: Any, **__: Any) -> Pass:
        return Sequential([get_pass(name) for name in names], name=names[-1])

    make.__doc__ = "The pass " + ", then ".join(f"`{name}`" for name in names)
    return make


def _nothing(why: str) -> Any:
    """What there is no need of here."""

    def make(*_: Any, **__: Any) -> Pass:
        return Pass(lambda mod: mod, name="nothing")

    make.__doc__ = f"Nothing: {why}"
    return make


def BindParams(func_name: str, params: Any) -> Pass:
    """Parameters given for good: `roundel.builder.bind_params`"""
    return _on_function(func_name, lambda f: bind_params(f, params))


def BindSymbolicVars(binding_map: Any, func_name: str | None = None) -> Pass:
    """Symbolic dimensions given for good: `roundel.builder.bind_sizes`"""
    return _on_function(func_name or "main", lambda f: bind_sizes(f, binding_map))


def ConvertLayout(desired_layouts: Any, layout_cb: Any = None) -> Pass:
    """Operators in the layouts that are asked for: `roundel.graph.layout.convert_layout`"""
    return Pass(lambda mod: convert_layout(mod, layout_cb or desired_layouts), name="ConvertLayout")


def DecomposeOpsForTraining(func_name: str) -> Pass:
    """Batches are normalised by their own statistics: `roundel.training.normalizes_by_batches`"""
    return Pass(lambda mod: normalizes_by_batches(mod, func_name, True), name="DecomposeOpsForTraining")


def Gradient(func_name: str, require_grads: Any = None, target_index: int = 0) -> Pass:
    """A function ``NAME_adjoint`` with the gradients: `roundel.graph.gradient.gradient`"""
    return Pass(lambda mod: gradient(mod, func_name, require_grads, target_index), name="Gradient")


def LambdaLift() -> Pass:
    """Functions inside of functions become functions of the module: `roundel.graph.tidy.lift_functions`"""
    return Pass(lift_functions, name="LambdaLift")


def LiftTransformParams(shared_transform: Any = False) -> Pass:
    """What depends on parameters only as a function ``NAME_transform_params``: `roundel.graph.tidy.lift_params`"""
    return Pass(lambda mod: lift_params(mod, shared_transform), name="LiftTransformParams")


def BundleModelParams(param_tuple_name: str | None = None) -> Pass:
    """One tuple in place of all parameters that are no inputs: `roundel.graph.tidy.lift_params.bundle_params`"""
    return Pass(lambda mod: bundle_params(mod, param_tuple_name or "model_params"), name="BundleModelParams")


def ToMixedPrecision(out_dtype: str = "float32", fp16_input_names: Any = None) -> Pass:
    """Products of 16-bit factors: `roundel.graph.algorithms.mixed_precision`"""
    return Pass(lambda mod: mixed_precision(mod, "float16" if out_dtype == "float32" else out_dtype, out_dtype, fp16_input_names or ()),
                name="ToMixedPrecision")


def FuseOpsByPattern(patterns: Any, bind_constants: bool = True, annotate_codegen: bool = False, entry_function_names: Any = None) -> Pass:
    """Functions of their own for what patterns match: `roundel.relax.fuse_by_pattern`"""
    return Pass(lambda mod: fuse_by_pattern(mod, patterns, bind_constants, annotate_codegen), name="FuseOpsByPattern")


def MergeCompositeFunctions() -> Pass:
    """Neighbouring composite functions of a code generator as one region: `roundel.relax.merge_composites`"""
    return Pass(merge_composites, name="MergeCompositeFunctions")


def RunCodegen(target_options: Any = None, entry_functions: Any = None) -> Pass:
    """Regions with the attribute ``Codegen`` are computed by the backend of that name: `roundel.backends.run_codegen`"""
    return Pass(run_codegen, name="RunCodegen")


def MetaScheduleTuneTIR(work_dir: str, max_trials_global: int = 64, max_trials_per_task: int | None = None, **_: Any) -> Pass:
    """The tensor programs of the module are tuned, and stay what they are: `rd.tune`"""

    def tune(mod: Any) -> Any:
        Database(work_dir).tune(mod, as_target(None), max_trials_global)
        return mod

    return Pass(tune, name="MetaScheduleTuneTIR")


def MetaScheduleTuneIRMod(params: Any, work_dir: str, max_trials_global: int = 64, **options: Any) -> Pass:
    """As `MetaScheduleTuneTIR`"""
    return MetaScheduleTuneTIR(work_dir, max_trials_global, **options)


def MetaScheduleApplyDatabase(work_dir: str | None = None, **_: Any) -> Pass:
    """`build` uses what tuning found in this folder"""
    return Pass(lambda mod: mod.replace(attrs=mod.attrs | {DATABASE: str(Database(work_dir or ".").path)}), name="MetaScheduleApplyDatabase")


# `FuseOps` merges what it finds, tensor programs too: after it `FuseTIR` drops those that were merged
LegalizeOps = _named("decompose", "legalize")
FoldConstant = _named("fold_constants")
DeadCodeElimination = _named("eliminate_dead_code")
EliminateCommonSubexpr = _named("eliminate_common_subexpressions")
ConvertToDataflow = _named("convert_to_dataflow")
CanonicalizeBindings = _named("simplify")
DecomposeOpsForInference = _named("decompose")
InlinePrivateFunctions = _named("inline_functions")
FoldBatchnormToConv2D = _named("fold_scale")
FuseOps = _named("fuse")
FuseTIR = _named("eliminate_dead_code")
AnnotateTIROpPattern = _nothing("`FuseOps` looks itself")
Normalize = _nothing("functions are in normal form")
FuseTransposeMatmul = _nothing("a transposition is part of the product's strategy")
RewriteDataflowReshape = _nothing("a reshape is a view of the same memory")
ToNonDataflow = RemovePurityChecking = CallTIRRewrite = StaticPlanBlockMemory = LowerAllocTensor = _nothing("`build` lowers and plans memory")
KillAfterLastUse = RewriteCUDAGraph = LowerRuntimeBuiltin = VMShapeLower = AttachGlobalSymbol = ComputePrimValue = _nothing("`build` lowers and plans memory")


def AttachExternModules(ext_mods: Any) -> Pass:
    """Nothing: functions of other code are found by name when the model runs, `rd.register_func`"""
    return Pass(lambda mod: mod, name="AttachExternModules")


def __getattr__(name: str) -> Any:
    raise missing(f"tvm.relax.transform.{name}", name)


__all__ = ["FusionPattern", "PassContext", "PatternCheckContext", "function_pass", "module_pass"]
