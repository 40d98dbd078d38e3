# SPDX-License-Identifier: Apache-2.0
"""``roundel targets``: the machines that can be named, and what is known of this one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from .json_output import JSON, print_json

THIS = "this machine"


def targets_command(
    measure: bool = typer.Option(False, "--measure", help="Measure this machine now (two seconds at most) and keep the figures, which compiling reads."),
    as_json: bool = JSON,
) -> None:
    """List the named targets, and this machine: what it was measured to do, and what the table tells."""
    from rich.console import Console
    from rich.table import Table

    from ..build.link import linker_of
    from ..passes.progress import shown
    from ..target import Target
    from ..target.host import described
    from ..target.profile import kept, refresh

    if measure:
        with shown("measuring this machine"):
            refresh(described())
    profile = kept(described())
    named = {name: Target.host() if name == THIS else Target(name) for name in (THIS, *Target.named())}
    if as_json:
        print_json([{"name": name, "target": str(t), "triple": t.triple, "cpu": t.cpu, "vector_bits": t.vector_bytes * 8, "registers": t.vector_registers,
                     "cores": t.cores, "gflops_per_core": t.peak_gflops(), "linked_by": linker_of(t.triple), "figures": t.to_dict(),
                     **({"measured": profile and asdict(profile)} if name == THIS else {})} for name, t in named.items()])
        return
    table = Table(title="targets")
    for name in ("name", "vector", "registers", "cores", "GFLOP/s of a core", "linked by"):
        table.add_column(name, no_wrap=name == "name")
    for name, t in named.items():
        shown_as = f"{name} ({t.cpu})" if name == THIS else name
        table.add_row(shown_as, f"{t.vector_bytes * 8} bits", str(t.vector_registers), str(t.cores), f"{t.peak_gflops():.0f}",
                      linker_of(t.triple) or "-")
    Console(emoji=False).print(table, _figures(profile, described(), named[THIS]))


def _figures(profile: Any, table: Any, used: Any) -> Any:
    """A table of what was measured of this machine, what the table of machines tells, and what cost models read."""
    from rich.table import Table

    from ..target.profile import expected

    title = "this machine was not measured yet: roundel targets --measure" if profile is None else "this machine"
    out = Table("", "measured", "table", "cost models", title=title)
    for name, label in (("gflops", "GFLOP/s of a core"), ("frequency_ghz", "GHz"), ("l1_gbs", "GB/s from the first-level cache"),
                        ("l2_gbs", "GB/s from the second"), ("l3_gbs", "GB/s from the last"), ("dram_gbs", "GB/s from memory"),
                        ("l2_stored_gbs", "GB/s written to the second-level cache"), ("l3_stored_gbs", "GB/s written to the last"),
                        ("dram_stored_gbs", "GB/s written to memory"),
                        ("all_gflops", "GFLOP/s of all cores"), ("all_dram_gbs", "GB/s from memory, all cores")):
        found = "" if profile is None else "not believed" if name in profile.doubted else f"{getattr(profile, name):.1f}"
        out.add_row(label, found, f"{expected(name, table):.1f}", f"{expected(name, used):.1f}")
    cold = "" if profile is None or profile.cold_exposed < 0 else f"{profile.cold_exposed:.1f}"
    out.add_row("share of cold weights that is not hidden", cold, f"{table.cold_exposed:.1f}", f"{used.cold_exposed:.1f}")
    room = "" if profile is None else f"{profile.l3_bytes / 2**20:.0f}"
    out.add_row("MiB of the last cache", room, f"{table.l3_bytes / 2**20:.0f}", f"{used.l3_bytes / 2**20:.0f}")
    return out
