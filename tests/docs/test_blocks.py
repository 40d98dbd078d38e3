# SPDX-License-Identifier: Apache-2.0
"""Every code block of the README and of docs/ runs, in order, one page at a time in a folder with a ``model.onnx``.

``python`` blocks share one namespace; ``sh`` blocks run in the shell with ``roundel`` and ``python`` being those under test;
``c`` blocks are written to the file that their first line names, as are ``python`` blocks that begin with such a name. Those of CONTRIBUTING.md run in the
root of the checkout. Blocks that install Roundel are run by .ci/run and by people, not here.
"""

from __future__ import annotations

import linecache
import os
import re
import shutil
import socket
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from roundel.schedule import PRIMITIVES

from . import small_model

ROOT = Path(__file__).resolve().parents[2]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [ROOT / "README.md", CONTRIBUTING, *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_INSTALLS = "pip install"
_KINDS = {"python", "sh", "c", "mermaid", "text", "toml", "console"}
_WITHOUT_CODE = {"README", "glossary", "operators", "torch-operators"}  # of the pages in docs/


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """What one page compiled, and the machine's measured peak, serve the next."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def workplace(tmp_path, cache, monkeypatch):
    small_model.write(tmp_path / "model.onnx")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, command in (("roundel", f'"{sys.executable}" -m roundel "$@"'), ("python", f'"{sys.executable}" "$@"')):
        (tools / name).write_text(f"#!/bin/sh\nexec {command}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]]))  # ruff is beside python
    monkeypatch.setenv("ROUNDEL_CACHE_DIR", str(cache))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PORT", str(free.getsockname()[1]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_python(text: str, name: str, scope: dict) -> None:
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)  # decorators of scripts read their source
    exec(compile(text, name, "exec"), scope)


def run_shell(text: str, name: str, folder: Path) -> None:
    done = subprocess.run(["sh", "-e"], input=text, text=True, cwd=folder, capture_output=True, timeout=240)
    assert done.returncode == 0, f"{name}:\n{text}\n{done.stdout}{done.stderr}"


def forget_operators(monkeypatch) -> None:
    """PyTorch operators that a page defines are gone after it."""
    from roundel.frontend.torch import registry, support

    support.rows()  # Roundel's own are read by now
    monkeypatch.setattr(registry, "TABLE", dict(registry.TABLE))
    monkeypatch.setattr(registry, "OWN", set(registry.OWN))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_page(page, workplace, monkeypatch):
    if "@rd.torch.operator" in page.read_text():
        forget_operators(monkeypatch)
    if 'backend="roundel"' in page.read_text() and not entry_points(group="torch_dynamo_backends", name="roundel"):
        pytest.skip("PyTorch finds the backend once Roundel is installed")
    if page.stem in ("cli", "cross-compile", "microcontrollers", "web"):
        pytest.importorskip("ziglang")
    if page.stem == "web":
        pytest.importorskip("wasmtime")
    if page.stem == "CONTRIBUTING" and (shutil.which("ruff") is None or shutil.which("lint-imports") is None):
        pytest.skip("what checks style is installed for development only")
    if page.stem == "web" and shutil.which("node") is None:
        pytest.skip("there is no node")
    if page.stem == "tutorial-embedding-service":
        pytest.importorskip("transformers")
    scope = {"__name__": f"page_{page.stem}"}
    text = page.read_text()
    ran = 0
    for found in _BLOCK.finditer(text):
        language, block = found.groups()
        name = f"{page.name}:{text.count(chr(10), 0, found.start()) + 1}"
        if language == "python" and (file := re.match(r"# (\w+\.py)$", block, re.M)):
            (workplace / file[1]).write_text(block)
        elif language == "python":
            run_python(block, name, scope)
        elif language == "sh" and _INSTALLS not in block:
            run_shell(block, name, ROOT if page == CONTRIBUTING else workplace)
        elif language == "c":
            target = re.match(r"/\* (\S+\.c)", block)
            assert target, f"{name}: the first line names the file"
            (workplace / target[1]).write_text(block)
        ran += 1
    assert ran or page.stem in _WITHOUT_CODE


def test_blocks_that_install_stand_alone():
    """Each can be the first that somebody runs: what it activates it makes."""
    for page in PAGES:
        for _, block in _BLOCK.findall(page.read_text()):
            lines = block.splitlines()
            for k, line in enumerate(lines):
                if made := re.match(r"\. (\S+)/bin/activate", line):
                    assert any(re.match(rf"python3 -m venv {re.escape(made[1])}$", before) for before in lines[:k]), f"{page.name}: {block}"


def test_no_block_is_left_out():
    for page in PAGES:
        text = page.read_text()
        found = _BLOCK.findall(text)
        assert {language for language, _ in found} <= _KINDS, page.name
        assert len(re.findall(r"^\s*(```|~~~)", text, re.M)) == 2 * len(found), f"{page.name} has a block that is not of the form ```language"


def test_hooks_before_a_commit_are_steps_of_the_integration():
    """What passes them is not refused for its style later: each hook is a command of .ci/run, with the same settings."""
    hooks = re.findall(r"entry: (?:python )?(\S+)", (ROOT / ".pre-commit-config.yaml").read_text())
    integration = (ROOT / ".ci" / "run").read_text()
    assert len(hooks) == 3 and all(hook in integration for hook in hooks)


def test_the_index_has_every_page():
    index = (ROOT / "docs" / "README.md").read_text()
    assert all(f"]({page.name})" in index for page in (ROOT / "docs").glob("*.md") if page.stem != "README")


def test_the_glossary_points_to_what_is_there():
    for name in re.findall(r"`([\w/]+(?:/|\.py))`", (ROOT / "docs" / "glossary.md").read_text()):
        assert (ROOT / "src" / "roundel" / name).exists(), name


def test_the_options_page_has_every_option():
    from roundel.ir import options

    text = (ROOT / "docs" / "options.md").read_text()
    assert not [o.env for o in options.REGISTRY.values() if f"`{o.env}`" not in text]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links(page):
    prose = re.sub(r"`[^`\n]+`", "", _BLOCK.sub("", page.read_text()))
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_schedule_primitive_is_on_its_page():
    page = (ROOT / "docs" / "schedule-primitives.md").read_text(encoding="utf-8")
    own = [name for name, primitive in PRIMITIVES.items() if primitive.apply.__module__.startswith("roundel.")]  # other pages define some
    assert own and not [name for name in own if f"`{name}`" not in page]
