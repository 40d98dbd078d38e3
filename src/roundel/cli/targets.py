# SPDX-License-Identifier: Apache-2.0
"""``roundel targets``: the machines that can be named."""

from __future__ import annotations


def targets_command() -> None:
    """List the named targets, and this machine."""
    from rich.console import Console
    from rich.table import Table

    from ..target import Target

    table = Table(title="targets")
    for name in ("name", "cpu", "vector", "registers", "cores", "GFLOP/s per core (float32)"):
        table.add_column(name)
    for name in ("this machine", *Target.named()):
        t = Target.host() if name == "this machine" else Target(name)
        table.add_row(name, t.cpu, f"{t.vector_bytes * 8} bits", str(t.vector_registers), str(t.cores), f"{t.peak_gflops():.0f}")
    Console().print(table)
