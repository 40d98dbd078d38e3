# SPDX-License-Identifier: Apache-2.0
"""The module that a step of training needs, of a model: its loss, the gradients of its parameters, and what moves these.

    backbone(inputs, params, states) -> results, states             the model, which is given
    backbone_loss(inputs, params, states, targets) -> loss, states
    backbone_loss_adjoint(...) -> (loss, states), gradients
    optimizer(params, gradients, optim_states) -> params, optim_states
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.gradient import gradient
from ..graph.tidy.convert_to_dataflow import straight_function
from ..ir import graph
from ..ir.attrs import Attrs
from ..ir.errors import RoundelError
from ..ir.module import IRModule
from ..ir.op import get_op
from ..ir.visit import Rewriter, on
from .loss import Loss
from .optimizer import Optimizer

BACKBONE, LOSS, ADJOINT, OPTIMIZER = "backbone", "backbone_loss", "backbone_loss_adjoint", "optimizer"


def setup(mod: IRModule, loss: Loss, optimizer: Optimizer, loss_args: Sequence[graph.StructInfo]) -> IRModule:
    """The module with the functions above, of one with a function ``backbone`` and the attributes ``param_num`` and ``state_num``.

    The parameters of ``backbone`` are inputs, then ``param_num`` parameters, then ``state_num`` states, such as moving statistics, whose new values are
    the last of its results. ``loss_args`` are the types of what the loss takes: predictions, targets and so on. Batches are normalised by their own
    statistics in training and by the moving ones in ``backbone``. The module's attributes tell ``input_num`` too, and ``optim_state``, the states of the
    optimizer before the first step. Raises RoundelError for a module that is not of this form.
    """
    params, states = _counts(mod)
    mod = append_loss(mod, BACKBONE, loss(*loss_args), loss.num_backbone_outputs, LOSS)
    mod = normalizes_by_batches(normalizes_by_batches(mod, BACKBONE, False), LOSS, True)
    inputs = len(mod[BACKBONE].params) - params - states
    moved = mod[LOSS].params[inputs:inputs + params]
    mod = gradient(mod, LOSS, moved, 0)
    function = optimizer.init(moved).get_function()
    mod = mod.with_functions({OPTIMIZER: function.with_attr("global_symbol", OPTIMIZER)})
    before = tuple(map(graph.Constant.of, optimizer.state or ()))
    return mod.replace(attrs=mod.attrs | {"input_num": inputs, "optim_state": before})


def append_loss(mod: IRModule, name: str, loss: graph.Function, outputs: int = 1, new_name: str | None = None) -> IRModule:
    """The module with a function ``NAME_loss`` beside the function ``name``: it takes the loss's other parameters too and returns the loss of the first
    ``outputs`` results, then the other results. Raises RoundelError where the loss does not take these results."""
    model = mod[name] if name in mod else None
    if not isinstance(model, graph.Function):
        raise RoundelError(f"there is no graph function {name}", hint=f"functions there are: {', '.join(mod)}")
    results = model.ret_sinfo.fields if isinstance(model.ret_sinfo, graph.TupleInfo) else (model.ret_sinfo,)
    if not outputs <= len(results) or not outputs <= len(loss.params):
        raise RoundelError(f"the loss is of {outputs} results", why=f"{name} has {len(results)}, the loss takes {len(loss.params)}")
    for param, result in zip(loss.params[:outputs], results, strict=False):
        if getattr(param.sinfo, "ndim", -1) != getattr(result, "ndim", -1) or getattr(param.sinfo, "dtype", None) != getattr(result, "dtype", None):
            raise RoundelError(f"the loss takes {param.sinfo} as {param.name}, {name} gives {result}")
    new, inner = new_name or f"{name}_loss", mod.unique_name("loss")
    whole, number = graph.Var("out", model.ret_sinfo), graph.Var("loss", loss.ret_sinfo)
    fields = [graph.TupleGetItem(whole, k) for k in range(len(results))] if isinstance(model.ret_sinfo, graph.TupleInfo) else [whole]
    steps = [graph.VarBinding(whole, graph.Call(graph.GlobalVar(name), model.params, sinfo=model.ret_sinfo)),
             graph.VarBinding(number, graph.Call(graph.GlobalVar(inner), (*fields[:outputs], *loss.params[outputs:]), sinfo=loss.ret_sinfo))]
    kept = [graph.Var(f"out_{k}", f.sinfo) for k, f in enumerate(fields[outputs:])]
    steps += [graph.VarBinding(v, f) for v, f in zip(kept, fields[outputs:], strict=True)]
    result = graph.Tuple((number, *kept)) if kept else number
    body = graph.SeqExpr((graph.BindingBlock(tuple(steps)),), result)
    attrs = Attrs({k: v for k, v in model.attrs.items() if k != "global_symbol"} | {"global_symbol": new})
    func = graph.Function((*model.params, *loss.params[outputs:]), body, result.sinfo, True, attrs)
    return mod.with_functions({new: straight_function(mod.with_functions({inner: loss}), new, func)})


def normalizes_by_batches(mod: IRModule, name: str, training: bool) -> IRModule:
    """The module whose function ``name`` normalises batches by their own statistics and moves the others (``training``), or by the others."""
    func = mod[name]
    return mod.with_functions({name: func.replace(body=_Normalizing(training).rewrite(func.body))})


class _Normalizing(Rewriter):
    def __init__(self, training: bool) -> None:
        self.training = training

    @on(graph.Call)
    def _call(self, call: graph.Call) -> graph.Call:
        if call.op is not get_op("nn.batch_norm") or call.attrs.get("training", False) is self.training:
            return call
        return call.replace(attrs=call.attrs | {"training": self.training})


def _counts(mod: IRModule) -> tuple[int, int]:
    """How many parameters and states the backbone has."""
    func = mod[BACKBONE] if BACKBONE in mod else None
    if not isinstance(func, graph.Function):
        raise RoundelError(f"there is no graph function {BACKBONE}", hint=f"functions there are: {', '.join(mod)}")
    counts = [mod.attrs.get(name) for name in ("param_num", "state_num")]
    if not all(isinstance(getattr(c, "value", c), int) for c in counts):
        raise RoundelError("the module does not say how many parameters and states the model has", hint='I.module_attrs({"param_num": 2, "state_num": 0})')
    params, states = (int(getattr(c, "value", c)) for c in counts)
    results = len(func.ret_sinfo.fields) if isinstance(func.ret_sinfo, graph.TupleInfo) else 1
    if len(func.params) < params + states or results <= states:
        raise RoundelError(f"{BACKBONE} has {len(func.params)} parameters and {results} results, too few for {params} parameters and {states} states")
    return params, states


__all__ = ["append_loss", "normalizes_by_batches", "setup"]
