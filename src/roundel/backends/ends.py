# SPDX-License-Identifier: Apache-2.0
"""What conversions cost at the ends of chains: kernels whose values meet in one form share the price of entering and leaving it.

    xh = permute_dims(x)                     100 cycles
    ah = conv_nhwc(xh); bh = relu(ah)
    ch = conv_nhwc(bh)                       each of both convolutions bears 100, if they take as long
    c = permute_dims(ch)                     100 cycles
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..graph.tidy.dead_code import eliminate_dead_code
from ..ir import graph
from ..ir.module import IRModule
from ..ir.op import CALL_TIR
from ..ir.visit import walk
from .backend import Kernel
from .forms import Form, Formed, Placed
from .offers import Offer

_KERNEL = graph.GlobalVar("kernel")


def shares(func: graph.Function, offers: Iterable[Offer], cycles: Callable[[graph.VarBinding], float]) -> dict[graph.Var, float]:
    """The cycles of conversions that each of one backend's offers has to bear, by the variables of their results, if all are taken: those of its chain,
    shared by what its kernels take themselves. ``cycles`` gives those of a conversion."""
    kernels = {o.bindings[-1].var: o for o in offers if isinstance(o.kernel, Kernel) and o.kernel.forms and o.kernel.cycles is not None}
    if not kernels:
        return {}
    placed = Placed(func, {var: _formed(o) for var, o in kernels.items()})
    chains = _Chains()
    for b in eliminate_dead_code(IRModule({"main": placed.func}))["main"].body.bindings:
        inside = placed.formed | placed.conversions
        if b.var in inside:
            chains.join(b.var, [n for n in walk(b.value) if isinstance(n, graph.Var) and n in inside])
            chains.cycles[b.var] = cycles(b) if b.var in placed.conversions else 0.0
    total: dict[Any, list[float]] = {}
    for var in chains.cycles:
        total.setdefault(chains.of(var), [0.0, 0.0])[0] += chains.cycles[var]
    chain = {var: chains.of(placed.results[var]) for var in kernels if placed.results[var] in chains.cycles}
    for var, name in chain.items():
        total[name][1] += kernels[var].kernel.cycles  # type: ignore[union-attr, operator]
    return {var: total[name][0] * kernels[var].kernel.cycles / total[name][1] for var, name in chain.items()}  # type: ignore[union-attr, operator]


def _formed(offer: Offer) -> Formed:
    """The call of some kernel of this offer's forms."""
    assert isinstance(offer.kernel, Kernel)
    info = offer.kernel.forms.get(-1, Form()).info(offer.result)
    call = lambda operands: graph.Call(CALL_TIR, (_KERNEL, graph.Tuple(tuple(operands))), sinfo_args=(info,), sinfo=info)
    return Formed(offer.operands, offer.kernel.forms, call)


class _Chains:
    """Variables that belong together."""

    def __init__(self) -> None:
        self.cycles: dict[graph.Var, float] = {}
        self.next: dict[graph.Var, graph.Var] = {}

    def of(self, var: graph.Var) -> graph.Var:
        """The one that stands for all that belong together with this one."""
        while var in self.next:
            var = self.next[var]
        return var

    def join(self, var: graph.Var, others: Iterable[graph.Var]) -> None:
        """These belong together."""
        for other in others:
            if (a := self.of(other)) is not (b := self.of(var)):
                self.next[a] = b
