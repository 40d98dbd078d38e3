# SPDX-License-Identifier: Apache-2.0
"""What is logged: under ``roundel``, by room, silent unless a program or ``--verbose`` listens."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import roundel as rd
from docs import small_model
from roundel.cli.app import app
from roundel.ir import options

pytestmark = pytest.mark.usefixtures("nothing_added")


@pytest.fixture
def onnx_file(tmp_path, monkeypatch):
    small_model.write(tmp_path / "model.onnx")
    monkeypatch.setenv("ROUNDEL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "model.onnx"


def test_compiling_and_loading_are_told_with_times_and_passes_in_detail(onnx_file, caplog):
    caplog.set_level(logging.DEBUG, "roundel")
    rd.compile(onnx_file).save(onnx_file.with_suffix(".so"))
    rd.compile(onnx_file)
    rd.load(onnx_file.with_suffix(".so"))
    info = [r.getMessage() for r in caplog.records if r.name == "roundel.api" and r.levelno == logging.INFO]
    for beginning in ("compiled model.onnx in ", "loaded model.onnx from the cache in ", "loaded model.so in "):
        assert any(line.startswith(beginning) for line in info), info
    passes = [r.getMessage() for r in caplog.records if r.name == "roundel.passes"]
    assert any(line.startswith("pass fuse: 0.") for line in passes) and all(r.levelno == logging.DEBUG for r in caplog.records if r.name == "roundel.passes")


def test_nothing_is_shown_unless_somebody_listens(onnx_file):
    script = f"import roundel as rd; rd.compile({str(onnx_file)!r}); rd.compile({str(onnx_file)!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env={**os.environ, "ROUNDEL_NUM_THRAEDS": "1"})
    assert done.stderr == "" and done.stdout == ""


def test_variables_that_nothing_reads_are_told_with_the_nearest_name(caplog, monkeypatch):
    monkeypatch.setenv("ROUNDEL_NUM_THRAEDS", "1")
    monkeypatch.setenv("ROUNDEL_\x1b[31mX", "1")
    monkeypatch.setenv("ROUNDEL_SHUFFLE", "0")
    options.tell_unread_variables.cache_clear()
    options.check_environment()
    options.check_environment()
    told = [r.getMessage() for r in caplog.records if r.name == "roundel.options"]
    assert told == ["nothing reads the environment variable ROUNDEL_NUM_THRAEDS; is ROUNDEL_NUM_THREADS meant?",
                    "nothing reads the environment variable ROUNDEL_\\x1b[31mX"] or sorted(told)[0].endswith("ROUNDEL_NUM_THREADS meant?")
    assert len(told) == 2 and not any("\x1b" in line for line in told)


def test_every_variable_of_the_environment_that_is_read_is_known(caplog, monkeypatch):
    import roundel.cache  # defines an option

    assert roundel.cache
    for option in options.REGISTRY.values():
        monkeypatch.setenv(option.env, "")
    options.tell_unread_variables.cache_clear()
    options.check_environment()
    assert not [r for r in caplog.records if r.name == "roundel.options"]


def test_verbose(onnx_file, monkeypatch):
    log = logging.getLogger("roundel")
    before, level = list(log.handlers), log.level
    try:
        shown = {flags: CliRunner().invoke(app, [*flags, "compile", str(onnx_file)]).stderr for flags in (("-v",), (), ("-v", "--verbose"))}
    finally:
        log.handlers, log.level = before, level
        log.manager._clear_cache()
    assert "roundel" not in shown[()]
    assert "INFO roundel.api: compiled model.onnx" in shown[("-v",)] and "DEBUG" not in shown[("-v",)]
    assert "INFO roundel.api: loaded model.onnx from the cache" in shown[("-v", "--verbose")]
