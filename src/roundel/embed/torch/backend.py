# SPDX-License-Identifier: Apache-2.0
"""``torch.compile(model, backend="roundel")``: AOTAutograd's functional ATen graphs, compiled by Roundel.

Without gradients, parameters and buffers are constants of the compiled model (folded, packed) but for those that it changes itself; a change
in place from outside is noticed at the next call, which compiles again, and what changes twice becomes an input. With gradients the
forward graph is compiled with parameters as inputs and the backward graph runs in PyTorch. Symbolic sizes stay symbolic: one artifact for all.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch._subclasses import FakeTensor
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

from ...driver import compile_module
from ...frontend.torch.dtypes import Sizes
from ...frontend.torch.importer import convert_graph, decompositions
from ...frontend.torch.layouts import Layouts, Symbols, number
from ...ir import options as option_registry
from ...ir import tir
from ...ir.errors import OptionError, UnsupportedError
from ...runtime import Model

OPTIONS = ("target", "threads", "pipeline")
SAMPLED = 256
"""How many bytes of a constant are looked at in each call, about."""


def roundel(gm: GraphModule, example_inputs: Sequence[Any], *, mode: str | None = None, options: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The backend. ``options``: ``target``, ``threads``, ``pipeline`` of ``rd.compile``. Raises RoundelError (wrapped by PyTorch)."""
    settings = dict(options or {})
    if unknown := [k for k in settings if k not in OPTIONS]:
        raise OptionError(f"the backend has no option {unknown[0]!r}", hint=f"one of {', '.join(OPTIONS)}")
    own = [t for _, t in (*gm.named_parameters(remove_duplicate=False), *gm.named_buffers(remove_duplicate=False))]
    lasting = [*own, *(x if _lasting(x) else None for x in example_inputs)]
    compiled = aot_autograd(
        fw_compiler=lambda graph, inputs: _boxed(CompiledGraph(graph, [None] * len(inputs), settings)),
        inference_compiler=lambda graph, inputs: _boxed(CompiledGraph(graph, _constants(lasting, len(inputs)), settings)),
        bw_compiler=lambda graph, inputs: _boxed(lambda args: graph(*args)),
        decompositions=decompositions(),
    )
    return compiled(gm, example_inputs)


def _constants(lasting: Sequence[Any], count: int) -> list[Any]:
    """The tensors that are constants of a graph, None for its other inputs and for those that it changes itself."""
    if len(lasting) != count:
        return [None] * count
    context = TracingContext.try_get()
    infos = [] if context is None or context.fw_metadata is None else context.fw_metadata.input_info
    if len(infos) != count:
        return list(lasting)
    return [None if info.mutates_data else t for t, info in zip(lasting, infos, strict=True)]


def _lasting(value: Any) -> bool:
    """Whether an input of the graph is a parameter or buffer of the model, with content to look at."""
    if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor) or value.is_inference():
        return False
    return isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None


def _boxed(call: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def run(args: list[Any]) -> Any:
        taken = list(args)
        args.clear()  # PyTorch's "boxed" convention: what is not needed any more can be freed
        return call(taken)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


class _Watched:
    """A tensor that stands for a constant, and whether it changed since: its memory, PyTorch's count of changes, and a sample of its bytes,
    as what is written through ``.data`` or NumPy is not counted (all bytes of a small tensor)."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        stored = torch.empty(0, dtype=torch.uint8).set_(tensor.detach().untyped_storage())
        self.sample = stored.numpy()[:: max(stored.numel() // SAMPLED, 1) | 1]
        self.state = self._state(tensor)

    def _state(self, tensor: Any) -> tuple[int, int, bytes]:
        return tensor.data_ptr(), tensor._version, self.sample.tobytes()

    def changed(self, tensor: Any) -> bool:
        """Whether ``tensor``, which is passed now, is another or has another content."""
        return self._state(tensor) != self.state


class CompiledGraph:
    """One ATen graph as a compiled model; ``known`` has the tensor of every placeholder that is a constant, else None."""

    def __init__(self, gm: GraphModule, known: Sequence[Any], settings: Mapping[str, Any]) -> None:
        self.nodes, self.settings = list(gm.graph.nodes), settings
        self.placeholders = [n for n in self.nodes if n.op == "placeholder"]
        found = {n: getattr(gm, n.target) for n in self.nodes if n.op == "get_attr"}
        self.attributes = {n: v for n, v in found.items() if isinstance(v, torch.Tensor)}
        self.results = list(next(n for n in self.nodes if n.op == "output").args[0])
        for value in (n.meta.get("val") for n in self.placeholders):
            if isinstance(value, torch.Tensor) and value.device.type != "cpu":
                raise UnsupportedError(f"an input is on {value.device}", hint="the backend compiles for CPUs; move the model with .cpu()")
        self.numbers = Symbols([n.meta.get("val") for n in self.placeholders])
        changing = {self.placeholders.index(r) for r in self.results if isinstance(r, Node) and r in self.placeholders}
        self.known = {k: t for k, t in enumerate(known) if t is not None and k not in changing}
        self.refreshed: set[int] = set()
        with _disable_current_modes():  # PyTorch traces with fake tensors; these are real
            self._compile(self.known)

    def _compile(self, constants: Mapping[int, Any]) -> None:
        self.constants = {k: _Watched(t) for k, t in constants.items()}
        self.computed = list(dict.fromkeys(r for r in self.results if self._is_computed(r)))
        self.layouts = Layouts([n.meta["val"] for n in self.computed if _is_tensor(n)], [n.meta.get("val") for n in self.placeholders])
        self.inputs = [k for k, n in enumerate(self.placeholders) if k not in constants and _is_tensor(n)]
        self.symbols = {str(n.meta["val"].node.expr): k for k, n in enumerate(self.placeholders) if hasattr(n.meta.get("val"), "node")}
        if not self.computed:
            return
        sizes = Sizes()
        inputs = [self.placeholders[k] for k in self.inputs]
        told = {str(s.node.expr) for n in inputs for s in n.meta["val"].shape if hasattr(s, "node")}
        self.witnesses = [name for name in self.symbols if name not in told and not name.isdigit()]
        variables = {name: sizes.variable(name) for name in self.witnesses}
        tensors = {**{self.placeholders[k]: t for k, t in constants.items()}, **self.attributes}
        module = convert_graph(self.nodes, inputs, tensors, self.computed, sizes, _named(variables))
        threads = self.settings.get("threads") or option_registry.get("threads")
        with option_registry.override(grow=False):  # PyTorch has said how its results lie in memory
            built = compile_module(module, target=self.settings.get("target"), pipeline=self.settings.get("pipeline"))
        self.model = Model(built.load(threads=threads), saver=built.save)

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        """Run on the graph's inputs; a list of its results."""
        self._check_constants(args)
        found: dict[Any, Any] = dict(zip(self.placeholders, args))
        found.update(self.attributes)
        if self.computed:
            tensors = [args[k].detach() for k in self.inputs]
            tensors += [torch.empty((int(args[self.symbols[name]]), 0), dtype=torch.uint8) for name in self.witnesses]
            out = self.model(*tensors)
            given = dict(zip(self.computed, out if len(self.computed) > 1 else (out,)))
            placed = iter(self.layouts.place([v for n, v in given.items() if _is_tensor(n)], {} if self.layouts.all_plain else self.numbers.of(args)))
            found.update((n, next(placed) if _is_tensor(n) else _python(v, n.meta["val"])) for n, v in given.items())
        return [found[r] if isinstance(r, Node) and r in found else self._number(r, args) for r in self.results]

    def _is_computed(self, result: Any) -> bool:
        """Whether the compiled model gives a result: a tensor, or a number that depends on data."""
        if not isinstance(result, Node) or result.op in ("placeholder", "get_attr"):
            return False
        value = result.meta.get("val")
        return _is_tensor(result) or (hasattr(value, "node") and not self.numbers.told(value))

    def _check_constants(self, args: Sequence[Any]) -> None:
        """Compile again when a parameter has changed; one that changes a second time becomes an input."""
        changed = [k for k, known in self.constants.items() if known.changed(args[k])]
        if changed:
            again = self.refreshed.intersection(changed)
            self.refreshed.update(changed)
            self._compile({k: args[k] for k in self.constants if k not in again})

    def _number(self, result: Any, args: Sequence[Any]) -> Any:
        """A result that is no tensor: a symbolic size at these inputs, a number, None."""
        if _is_token(result):
            return None
        return number(result.meta.get("val") if isinstance(result, Node) else result, self.numbers.of(args))


def _named(variables: Mapping[str, tir.Var]) -> dict[str, tir.Var]:
    return {f"size_{name}": v for name, v in variables.items()}


def _python(tensor: Any, like: Any) -> Any:
    """A scalar tensor as a number."""
    return {torch.SymFloat: float, torch.SymBool: bool}.get(type(like), int)(tensor.item())


def _is_tensor(node: Any) -> bool:
    return isinstance(node, Node) and isinstance(node.meta.get("val"), torch.Tensor) and not _is_token(node)


def _is_token(node: Any) -> bool:
    """Whether a value only orders effects; at run time it is None."""
    made = node.args[0] if isinstance(node, Node) and node.target is operator.getitem and node.args[1] == 0 else None
    return (isinstance(made, Node) and str(made.target) == "with_effects") or (
        isinstance(node, Node) and node.op == "placeholder" and any(str(u.target) == "with_effects" and u.args[0] is node for u in node.users))
