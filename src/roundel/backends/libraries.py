# SPDX-License-Identifier: Apache-2.0
"""The pass that chooses between generated code and backends, and the calls that come about.

    y = R.matmul(x, w)     ->     found = R.call_tir(cls.openblas_found, (), out_sinfo=R.Tensor((), "bool"))
                                  if found: y = R.call_tir(cls.openblas_matmul, (x, w), out_sinfo=...)
                                  else: y = R.matmul(x, w)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from ..arith import Analyzer
from ..graph.expectations import Expectations
from ..graph.rewriter import site_of
from ..graph.tidy.convert_to_dataflow import convert_to_dataflow
from ..ir import graph, options, tir
from ..ir.annotations import IMPORT_C, IMPORT_LLVM
from ..ir.attrs import Attrs
from ..ir.choice import Choices, Choosing
from ..ir.dtype import BOOL, HANDLE, INT32, INT64
from ..ir.errors import OptionError, RoundelError
from ..ir.module import IRModule
from ..ir.op import CALL_DPS_PACKED, CALL_TIR, FuseKind, OpDef
from ..ir.visit import free_vars, substitute
from ..relax.fuse_by_pattern import without
from ..relax.outline import Renamed, outline
from ..runtime.registry import register_func
from ..strategy.records import Records
from ..target import Target
from . import known
from .backend import GENERATED, Backend, Kernel
from .ends import shares
from .forms import Form, Formed, place
from .offers import Offer, Part, parts_of, plain

_numbers = itertools.count()  # of functions of Python


def libraries(mod: IRModule) -> IRModule:
    """Parts of the graph that backends can compute are computed by them where that is asked for, was measured to be faster, or is expected to be.

    The backends that the option ``libraries`` names take part, and those that ``choices`` ask for. What none of them takes stays as it is.
    """
    backends = _taking_part(mod)
    every = []
    for name, func in list(mod.items()) if backends else ():
        if isinstance(func, graph.Function):
            every.append(Calls(mod, name, plain(func), backends))
            mod = every[-1].module()
    for backend in backends:
        for site in (site for site, name in mod.choices.asked if name == backend.name):
            _check(every, site, backend)
    return convert_to_dataflow(mod) if backends else mod


def _check(every: Sequence[Calls], pattern: str, backend: Backend) -> None:
    """Raises OptionError where a backend is asked for at nodes (a name or a pattern of names) of which it can compute no part, or not begin with it."""
    name = backend.name
    named = lambda site: site == pattern or fnmatchcase(site, pattern)
    met = [calls for calls in every if any(named(site_of(b)) for b in calls.func.body.bindings)]
    parts = [p for calls in met for p in calls.parts if name in p.offers]
    if not met or any(named(p.site) for p in parts):
        return
    around = next((p.site for p in parts if any(named(site_of(b)) for b in p.offers[name].bindings)), None)
    patterns = ", ".join(dict.fromkeys(p.name for p in backend.fusion_patterns)) or "none"
    raise OptionError(f"{name} cannot be had", where=f"node {pattern!r}", why=f"none of its patterns matches there ({patterns})" if around is None else "",
                      hint="" if around is None else f"it is a part of what is chosen at {around!r}: ask for {name} there")


def _taking_part(mod: IRModule) -> list[Backend]:
    """The backends that may be chosen: those that `known.wanted` names, those that were the fastest in what was measured, those asked for."""
    asked, records, option = [name for _, name in mod.choices.asked], mod.choices.records, options.get("libraries")
    names, here = known.wanted(option), known.available() if asked else ()
    foreign = [name for name in asked if name in here]
    if option == known.OFF and foreign:
        raise OptionError(f"{foreign[0]} is asked for, and libraries={option!r} leaves generated code alone", where="choices",
                          hint=f"leave out the option `libraries` (or the variable ROUNDEL_LIBRARIES), or the choice of {foreign[0]}")
    if option is None and records is not None:
        names = [*names, *_installed(records)]
    return [known.find(name) for name in dict.fromkeys([*names, *foreign])]


def _installed(records: Records) -> list[str]:
    """The backends that records call, without those that are not there any more."""
    here = known.available() if records.backends else ()
    for name in records.backends:
        if name not in here:
            records.tell(f"{name} was measured to be the fastest for parts of models, and there is no such backend now: generated code runs instead")
    return [name for name in records.backends if name in here]


def expected(bindings: Sequence[graph.VarBinding], expectations: Expectations) -> float | None:
    """The cycles that generated code is expected to take: for operators that others are fused into, or for all where there are none such. None where
    sizes are symbolic, or an operator is decomposed later."""
    calls = [b.value for b in bindings if isinstance(b.value, graph.Call) and isinstance(b.value.op, OpDef)]
    anchors = [c for c in calls if c.op.kind == FuseKind.ANCHOR] or calls  # type: ignore[union-attr]
    if not all(_is_fixed(v.sinfo) for c in anchors for v in (c, *c.args) if isinstance(v.sinfo, graph.TensorInfo)):
        return None
    try:
        return sum(expectations.cycles(c, [k for k, a in enumerate(c.args) if isinstance(a, graph.Constant)]) for c in anchors)
    except (RoundelError, AttributeError, NotImplementedError):  # an operator without a tensor expression
        return None


class Calls:
    """One function of a module, whose bindings are all in plain blocks."""

    def __init__(self, mod: IRModule, name: str, func: graph.Function, backends: Sequence[Backend]) -> None:
        self.mod, self.name, self.func, self.backends = mod, name, func, backends
        self.target = mod.attrs.get("target") or Target.host()
        self.expectations = Expectations.of(mod)
        self.found: dict[Any, graph.VarBinding] = {}  # whether libraries are there, and what guards say, by what is asked
        self.parts: list[Part] = []
        self.ends: dict[str, dict[graph.Var, float]] = {}  # of the cycles of conversions, by backend and result
        self.python: list[str] = list(func.attrs.get("python", ()))  # what keeps the model from being shipped

    def module(self) -> IRModule:
        """The module with what was chosen called in the function."""
        choosing = Choosing(self.mod.choices, "library", versions={b.name: b.current_version for b in self.backends})
        taken: dict[graph.Var, str] = {}  # by whom, and where
        calls: dict[graph.Var, Formed] = {}
        self.parts = parts_of(self.func, self.backends, self.target)
        self.ends = {b.name: shares(self.func, [p.offers[b.name] for p in self.parts if b.name in p.offers], self._end) for b in self.backends}
        for part in sorted(self.parts, key=lambda part: _rank(part, choosing.before)):
            lost = {name: at for name, o in part.offers.items() if (at := next((taken[b.var] for b in o.bindings if b.var in taken), None))}
            if len(lost) == len(part.offers) and {GENERATED, *lost}.isdisjoint(choosing.before.asked_at(part.site)):
                continue
            offers = {name: o._replace(kernel=f"{lost[name]} takes a part of it") if name in lost else o for name, o in part.offers.items()}
            name = self._decided(choosing, replace(part, offers=offers))
            if name != GENERATED:
                chosen = offers[name]
                taken |= {b.var: f"{name} at {part.site!r}" for b in chosen.bindings}
                calls[chosen.bindings[-1].var] = self.formed(chosen, name)
        self.mod = self.mod.replace(choices=choosing.choices())
        return self.finished(without(self.func, taken.keys() - calls.keys(), {}), calls) if calls else self.mod

    def finished(self, func: graph.Function, calls: Mapping[graph.Var, Formed]) -> IRModule:
        """The module with a function in which calls of kernels (`formed`) compute these values: it first asks whether their libraries are there."""
        func = place(func, calls)
        first = graph.BindingBlock(tuple(self.found.values()))
        body = func.body.replace(blocks=(first, *func.body.blocks)) if self.found else func.body
        attrs = func.attrs | {"python": tuple(dict.fromkeys(self.python))} if self.python else func.attrs
        return self.mod.with_functions({self.name: func.replace(body=body, attrs=attrs)})

    # -- what is chosen

    def _decided(self, choosing: Choosing, part: Part) -> str:
        """The name of what computes a part of the graph; recorded under the name of the node whose operator counts most in it."""
        key = part.key() if self.mod.choices.records is not None else None
        cycles: dict[str, float | str | None] = {GENERATED: expected(part.longest, self.expectations)}
        cycles |= {n: self._offered(n, o) for n, o in part.offers.items()}
        cycles |= {n: why for n, why in choosing.faults(key).items() if n in cycles}
        known_cycles = {n: c for n, c in cycles.items() if isinstance(c, float | int)}
        preferred = min(known_cycles, key=lambda n: known_cycles[n]) if GENERATED in known_cycles else GENERATED
        return choosing.decide(part.site, part.subject, cycles, preferred, of=key)

    def _offered(self, backend: str, offer: Offer) -> float | str | None:
        """What a kernel is expected to take, with its share of the conversions at the ends of its chain; or why there is none."""
        if isinstance(offer.kernel, str) or offer.kernel.cycles is None:
            return offer.kernel if isinstance(offer.kernel, str) else None
        return offer.kernel.cycles + self.ends[backend].get(offer.bindings[-1].var, 0.0)

    def _end(self, conversion: graph.VarBinding) -> float:
        return 0.0 if getattr(conversion.value.op, "name", "") == "reshape" else expected([conversion], self.expectations) or 0.0  # type: ignore[attr-defined]

    # -- what is called

    def formed(self, offer: Offer, backend: str) -> Formed:
        """The call of an offer's kernel, and the forms that it wants operands in."""
        kernel = offer.kernel
        assert isinstance(kernel, Kernel)
        asked = None if kernel.library is None and not kernel.guard else self._asked(kernel, offer.sizes)
        before = () if asked is None or asked in self.found.values() else (asked,)
        return Formed(offer.operands, kernel.forms, lambda operands: self._called(offer, kernel, asked, backend, operands), before)

    def _called(self, offer: Offer, kernel: Kernel, asked: graph.VarBinding | None, backend: str, operands: Sequence[Any]) -> graph.GraphExpr:
        """The value of a part of the graph by its kernel, of operands in the forms that it wants, or by generated code where what was ``asked`` says
        that the kernel cannot run."""
        args = graph.Tuple([_packed(a, kernel.pack.get(k)) for k, a in enumerate(operands)])
        info = kernel.forms.get(-1, Form()).info(offer.result)
        if kernel.function is not None:
            symbol = f"roundel.{backend}.{next(_numbers)}"
            register_func(symbol, kernel.function)
            self.python.append(offer.composite.name)
            return graph.Call(CALL_DPS_PACKED, (graph.ExternFunc(symbol), args), sinfo_args=(info,), sinfo=info)
        callee = self._program(offer.composite.name.replace(".", "_"), kernel.program)
        call = graph.Call(CALL_TIR, (callee, args), sinfo_args=(info,), sinfo=info)
        return call if asked is None else graph.If(asked.var, _sequence(call), _body(offer, operands, kernel.forms), info)

    def _program(self, hint: str, program: Any) -> graph.GlobalVar:
        name = self.mod.unique_name(hint)
        self.mod = self.mod.with_functions({name: program})
        return graph.GlobalVar(name)

    def _asked(self, kernel: Kernel, sizes: Mapping[Any, Any]) -> graph.VarBinding:
        """Whether a kernel's library is there, and what its guard says. Asked once in the function, unless that depends on symbolic sizes.
        ``sizes`` are those of `Offer`."""
        library, guard = kernel.library, kernel.guard
        name, numbers = (guard[0] if guard else library.found_symbol), tuple(substitute(tir.as_index(n), sizes) for n in guard[1:])  # type: ignore[union-attr]
        key = (library.name if library is not None else "", name, numbers)
        if key in self.found:
            return self.found[key]
        flag, handle = tir.decl_buffer((), "bool", "flag"), tir.Var("flag", HANDLE)
        given = tuple(tir.Var(f"number{k}", INT64) for k in range(len(numbers)))

        def holds(symbol: str, *numbers: Any) -> tir.Stmt:
            return tir.BufferStore(flag, tir.cast(tir.Call("call_extern", (tir.StringImm(symbol), *numbers), INT32), BOOL), ())

        body = holds(library.found_symbol) if library is not None else None
        if guard:  # it may call the library
            body = holds(name, *given) if body is None else tir.seq(body, tir.If(tir.BufferLoad(flag, ()), holds(name, *given)))
        brought = {k: v for k, v in kernel.program.attrs.items() if k in (IMPORT_C, IMPORT_LLVM)} if guard else {IMPORT_C: (library.c_source,)}  # type: ignore[union-attr]
        attrs = Attrs({"scheduled": name, "fuse_kind": int(FuseKind.OPAQUE), **brought})
        info = graph.TensorInfo((), "bool")
        args = (self._program(name, tir.PrimFunc((handle, *given), body, ((handle, flag),), attrs)), graph.Tuple(()))
        args += (graph.ShapeExpr(numbers),) if numbers else ()
        made = graph.VarBinding(graph.Var(name, info), graph.Call(CALL_TIR, args, sinfo_args=(info,), sinfo=info))
        if not any(free_vars(n) for n in numbers):
            self.found[key] = made
        return made


def _rank(part: Part, choices: Choices) -> int:
    """What is asked for at a node by its name is decided first, then what is asked for by a pattern of names, then all that is left to what is expected:
    who comes later does not get the operators that are taken."""
    can = {name for name, offer in part.offers.items() if isinstance(offer.kernel, Kernel)}
    if any(site == part.site and name in can for site, name in choices.asked):
        return 0
    return 1 if can.intersection(choices.asked_at(part.site)) else 2


def _body(offer: Offer, operands: Sequence[Any], forms: Mapping[int, Form]) -> graph.SeqExpr:
    """The composite function's body, of operands in these forms, with its result in its form."""
    func, _ = outline(offer.bindings, [offer.bindings[-1].var], {}, bind_constants=False, dataflow=False)
    bindings: list[graph.VarBinding] = []

    def emit(value: Any) -> Any:
        bindings.append(graph.VarBinding(graph.Var("lv", value.sinfo), value))
        return bindings[-1].var

    plain = [forms[k].back(a, p.sinfo, emit) if k in forms else a for k, (a, p) in enumerate(zip(operands, func.params, strict=True))]
    table: dict[Any, Any] = dict(zip(func.params, plain, strict=True))
    table |= {b.var: graph.Var(b.var.name, b.var.sinfo) for b in func.body.bindings}
    body = Renamed(table).rewrite(func.body)
    bindings += body.bindings
    result = forms[-1].into(body.body, emit) if -1 in forms else body.body
    return graph.SeqExpr((graph.BindingBlock(tuple(bindings)),), result)


def _sequence(call: graph.Call) -> graph.SeqExpr:
    var = graph.Var("lv", call.sinfo)
    return graph.SeqExpr((graph.BindingBlock((graph.VarBinding(var, call),)),), var)


def _packed(operand: Any, pack: Callable[[Any], Any] | None) -> Any:
    return operand if pack is None else graph.Constant.of(pack(operand.data.numpy()))


def _is_fixed(info: Any) -> bool:
    return info.shape is not None and all(Analyzer().value(n) is not None for n in info.shape)
