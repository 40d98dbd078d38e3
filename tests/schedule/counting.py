# SPDX-License-Identifier: Apache-2.0
"""Runs through the loops of a concrete program and counts: instances of blocks, elements touched below each loop."""

from __future__ import annotations

import itertools
import operator
from collections import defaultdict

from roundel.ir import PrimFunc, tir

OPS = {
    tir.Add: operator.add, tir.Sub: operator.sub, tir.Mul: operator.mul, tir.FloorDiv: operator.floordiv, tir.FloorMod: operator.mod,
    tir.Min: min, tir.Max: max, tir.LT: operator.lt, tir.LE: operator.le, tir.GT: operator.gt, tir.GE: operator.ge, tir.EQ: operator.eq,
}


def value(e, env):
    """The value of an index expression or condition."""
    if isinstance(e, tir.IntImm):
        return e.value
    if isinstance(e, tir.Var):
        return env[e]
    if type(e) in OPS:
        return OPS[type(e)](value(e.a, env), value(e.b, env))
    if type(e) is tir.And:
        return value(e.a, env) and value(e.b, env)
    if type(e) is tir.Or:
        return value(e.a, env) or value(e.b, env)
    raise TypeError(type(e))


class Count:
    """``issued``, ``useful``: by block name. ``touched[block, buffer, depth]``: the most elements of the hull of what one
    iteration of the first ``depth`` loops touches."""

    def __init__(self, func: PrimFunc) -> None:
        self.issued, self.useful = defaultdict(int), defaultdict(int)
        self.seen = defaultdict(set)
        self.run(func.body, {}, ())
        self.touched = defaultdict(int)
        for (block, buffer, _at, depth), places in self.seen.items():
            size = 1
            for c, n in zip(zip(*places), buffer.shape):  # a guarded read may reach out of the buffer
                size *= min(max(c) - min(c) + 1, n.value)
            self.touched[block, buffer, depth] = max(self.touched[block, buffer, depth], size)

    def run(self, s, env, at):
        if type(s) is tir.Seq:
            for c in s.stmts:
                self.run(c, env, at)
        elif type(s) is tir.For:
            for x in range(value(s.min, env), value(s.min, env) + value(s.extent, env)):
                self.run(s.body, {**env, s.loop_var: x}, (*at, x))
        elif type(s) is tir.BlockRealize:
            self.block(s, env, at)

    def block(self, r, env, at):
        name = r.block.name
        self.issued[name] += 1
        if not value(r.predicate, env):
            return
        self.useful[name] += 1
        env = env | {iv.var: value(v, env) for iv, v in zip(r.block.iter_vars, r.iter_values)}
        for region in (*r.block.reads, *r.block.writes):
            spans = [range(value(x.min, env), value(x.min, env) + value(x.extent, env)) for x in region.region]
            for place in itertools.product(*spans):
                for depth in range(len(at) + 1):
                    self.seen[name, region.buffer, at[:depth], depth].add(place)
        self.run(r.block.body, env, at)
