# SPDX-License-Identifier: Apache-2.0
"""No figure of a machine stands among the strategies and algorithms: cycles, bytes, rates and shares of caches are fields of the target."""

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

import roundel
from roundel.target import Target
from roundel.target.behaviour import Behaviour
from roundel.target.machines import MACHINES

ROOT = Path(roundel.__file__).parent
MODULES = sorted([*(ROOT / "strategy").rglob("*.py"), *(ROOT / "graph" / "algorithms").rglob("*.py")])
OF_A_MACHINE = ("CYCLES", "BYTES", "SHARE", "ROOM", "RATE", "LATENCY", "GHZ", "GBS")
FRACTIONS = {  # that are no figures of a machine, and why
    "graph/algorithms/causal.py": ({1e30}, "a score below all others"),
    "graph/algorithms/fixed_scales.py": ({2.0}, "powers of two by which scales are shifted"),
    "graph/algorithms/strassen.py": ({1.015, 1.05}, "what must be gained for weights that are larger"),
    "graph/algorithms/winograd.py": ({2.0, 16 / 9, 36 / 9}, "a bound of numbers that do not overflow, sizes of transformed kernels"),
    "strategy/contest.py": ({1.25, 1.12, 0.6}, "how far the model is trusted against the order of the rules"),
    "strategy/cost.py": ({6.0, 3.0, 2.0, 1.3, 1e9, 1e-9}, "how limits are put together, counts of instructions, nanoseconds"),
    "strategy/explain.py": ({1e-9}, "nanoseconds"),
    "strategy/functions.py": ({2.0}, "instructions of a choice"),
    "strategy/generic/candidates.py": ({1.5, 2.0, 2.5}, "which structures and tiles are looked into"),
    "strategy/generic/nests.py": ({0.25}, "the least that a statement counts"),
    "strategy/generation.py": ({1e9, 0.5, 2.0, 3.0, 1e-3}, "rough times of spaces that a user describes, in comparison with each other"),
    "strategy/match/accesses.py": ({10.0, 0.5, 0.25}, "what operations cost in comparison with each other"),
    "strategy/parallelism.py": ({1e-3}, "no division by zero"),
    "strategy/pointwise/transposition.py": ({0.5, 1.25}, "loads and stores of an element, of which vectors move several; how far the model is trusted"),
    "strategy/product/packed_products.py": ({3.0}, "instructions that unpack a vector of words"),
    "strategy/product/pair_products.py": ({3.0, 4.0}, "counts of instructions"),
    "strategy/product/register_tile.py": ({4.0}, "bytes of float32"),
    "strategy/product/sliced_products.py": ({10.0, 4.0, 2.0}, "counts of instructions, a latency where nobody told one"),
    "strategy/roofline.py": ({1e-9, 1e18}, "nanoseconds, an extent that is not bounded"),
        "strategy/transform/winograd.py": ({1.25}, "how far the model is trusted about two orders of the stages"),
    "strategy/transform/winograd_cycles.py": ({3.0}, "operations of the test of a pixel"),
}


def names_of(module: Path) -> list[str]:
    """The constants of a module that are numbers."""
    found = []
    for n in ast.parse(module.read_text()).body:
        if isinstance(n, ast.Assign) and not any(isinstance(x, ast.Call | ast.Attribute) for x in ast.walk(n.value)):
            if any(isinstance(x, ast.Constant) and isinstance(x.value, int | float) for x in ast.walk(n.value)):
                found += [t.id for t in n.targets if isinstance(t, ast.Name)]
    return found


def fractions_of(module: Path) -> set[float]:
    """The numbers with a fraction in a module, quotients of numbers included; 0 and 1 tell nothing."""
    found = set()
    for n in ast.walk(ast.parse(module.read_text())):
        if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) and isinstance(n.left, ast.Constant) and isinstance(n.right, ast.Constant):
            found.add(n.left.value / n.right.value)
        elif isinstance(n, ast.Constant) and isinstance(n.value, float):
            found.add(n.value)
    return found - {0.0, 1.0}


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(ROOT)))
def test_figures_of_a_machine_stand_in_the_target(module):
    assert not [n for n in names_of(module) if n.endswith(OF_A_MACHINE)]
    allowed, why = FRACTIONS.get(str(module.relative_to(ROOT)), (set(), "none is needed"))
    assert fractions_of(module) <= allowed, why


@pytest.mark.parametrize("field", fields(Behaviour), ids=lambda f: f.name)
def test_every_figure_is_documented_and_can_be_given(field):
    source = (ROOT / "target" / "behaviour.py").read_text()
    assert f"    {field.name}: {field.type}\n    \"\"\"" in source
    other = {"int": 77, "float": 1.5 if field.name == "masked" else 0.77}[field.type]
    told = Target("znver5", **{field.name: other})
    assert getattr(told, field.name) == other and Target(str(told)) == told and told != Target("znver5")
    assert all(field.name in machine for machine in MACHINES.values())


def test_machines_that_do_not_look_ahead_have_figures_of_their_own():
    assert Target("rv64gcv").exposed > Target("znver5").exposed
    assert Target("neoverse-n1").ordered_instructions < Target("znver5").ordered_instructions


MODELS = {"strategy/cost.py": "the one model",
          "strategy/product/tile_products_candidates.py": "that of tile registers", "strategy/product/packed_products.py": "that of packed matrices",
          "strategy/product/sliced_products.py": "that of slices of bytes",
          "strategy/generation.py": "a rough one, of spaces that users describe", "strategy/roofline.py": "bounds"}
"""Modules outside ``target/`` that put a time together of a machine's figures."""
TERMS = {
    "graph/algorithms/strassen.py", "graph/layout/chains.py", "strategy/attention/stage_times.py", "strategy/contest.py", "strategy/expected.py",
    "strategy/generic/candidates.py", "strategy/generic/nests.py", "strategy/parallelism.py", "strategy/pointwise/elementwise.py",
    "strategy/pointwise/points.py", "strategy/pointwise/transposition.py", "strategy/product/contraction.py", "strategy/product/contraction_candidates.py",
    "strategy/reduction/totals.py", "strategy/transform/winograd.py", "strategy/transform/winograd_cycles.py",
}
"""... that add one term to what the model says, or ask what pays for a parallel region."""
FIGURES = [f.name for f in fields(Behaviour) if f.name.endswith(("cycles", "share", "exposed", "beside", "rate"))]
RATES = re.compile(rf"\b(?:target|machine)\.(?:{'|'.join([*FIGURES, 'bytes_per_cycle', 'bandwidth_gbs', 'fma_latency', 'region_cycles', 'start_cycles'])})\b")


def test_the_places_that_compute_times_are_known_and_counted_on_the_page():
    found = {str(m.relative_to(ROOT)) for m in ROOT.rglob("*.py") if "target" not in m.relative_to(ROOT).parts and RATES.search(m.read_text())}
    assert found == MODELS.keys() | TERMS
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
    assert f"| {len(found)}: {len(MODELS)} models" in page
