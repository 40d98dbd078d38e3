# SPDX-License-Identifier: Apache-2.0
"""``roundel targets``: the machines that can be named."""

from __future__ import annotations

from .json_output import JSON, print_json


def targets_command(as_json: bool = JSON) -> None:
    """List the named targets, and this machine."""
    from rich.console import Console
    from rich.table import Table

    from ..target import Target

    named = {name: Target.host() if name == "this machine" else Target(name) for name in ("this machine", *Target.named())}
    if as_json:
        print_json([{"name": name, "target": str(t), "triple": t.triple, "cpu": t.cpu, "vector_bits": t.vector_bytes * 8, "registers": t.vector_registers,
                     "cores": t.cores, "gflops_per_core": t.peak_gflops()} for name, t in named.items()])
        return
    table = Table(title="targets")
    for name in ("name", "cpu", "vector", "registers", "cores", "GFLOP/s per core (float32)"):
        table.add_column(name)
    for name, t in named.items():
        table.add_row(name, t.cpu, f"{t.vector_bytes * 8} bits", str(t.vector_registers), str(t.cores), f"{t.peak_gflops():.0f}")
    Console().print(table)
