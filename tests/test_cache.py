# SPDX-License-Identifier: Apache-2.0
"""Kept models: what was compiled is what runs and what is saved, whatever becomes of files, tensors, the cache and the disk."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import roundel as rd
from roundel import cache
from roundel.ir import cache_entry, cache_folder, options

from . import test_model_files
from .test_model_files import X, age, write

pytestmark = pytest.mark.usefixtures("nothing_added")
root = test_model_files.root  # the cache


def entry_of(root):
    (found,) = (root / "models").iterdir()
    return found


CHANGES = {
    "in place": lambda p: p.write_bytes(bytes(p.stat().st_size)),
    "shorter": lambda p: os.truncate(p, 10),
    "replaced": lambda p: (p.with_name("new").write_bytes(bytes(p.stat().st_size)), p.with_name("new").rename(p)),
    "removed": lambda p: p.unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kept", ["first", "second", "off"])
@pytest.mark.parametrize("external", [None, "w.pb"])
def test_what_was_compiled_is_what_is_saved(root, tmp_path, kept, change, external):
    path = write(tmp_path / "m.onnx", 3, external)
    with options.override(cache=kept != "off"):
        model = rd.compile(path)
        if kept == "second":
            model = rd.compile(path)
        CHANGES[change](tmp_path / (external or "m.onnx"))
        np.testing.assert_array_equal(model(X)[0], 192)
        np.testing.assert_array_equal(rd.load(model.save(tmp_path / "saved.so"))(X)[0], 192)


@pytest.mark.parametrize("becomes", ["evicted", "removed", "replaced"])
def test_a_kept_model_is_saved_after_its_entry_is_gone(root, tmp_path, becomes):
    path = write(tmp_path / "m.onnx", 3)
    models = [rd.compile(path), rd.compile(path)]
    if becomes == "evicted":
        with options.override(cache_size=0):
            cache._evict("another")
    elif becomes == "removed":
        shutil.rmtree(root)
    else:
        (tmp_path / "other").mkdir()
        rd.compile(write(tmp_path / "other" / "m.onnx", 4))
        one, two = (root / "models").iterdir()
        for a, b in ((one, tmp_path / "aside"), (two, one), (tmp_path / "aside", two)):
            a.rename(b)
    for number, model in enumerate(models):
        np.testing.assert_array_equal(rd.load(model.save(tmp_path / f"saved{number}.so", side_file=bool(number)))(X)[0], 192)


@pytest.mark.parametrize("target", ["cortex-a72", "rv64gc", ["armv8-a", "armv8.2-a"]])
def test_a_model_for_another_machine_is_compiled_once(root, tmp_path, monkeypatch, target):
    path = write(tmp_path / "m.onnx", 3)
    first = rd.compile(path, target=target)
    file = first.save(tmp_path / "m.so").read_bytes()
    monkeypatch.setattr("roundel.driver.compile_module", None)
    monkeypatch.setattr("roundel.driver.compile_levels", None)
    again = rd.compile(path, target=target)
    assert (again.inputs, again.metadata, again.weights_nbytes) == (first.inputs, first.metadata, first.weights_nbytes)
    assert again.save(tmp_path / "m.so").read_bytes() == file
    with pytest.raises(rd.RoundelError, match=r"compiled for another machine\nit is for (aarch64|riscv64)"):
        again(X)


def test_a_kept_file_that_is_written_to_is_not_saved(root, tmp_path):
    model = rd.compile(write(tmp_path / "m.onnx", 3))
    parts = entry_of(root) / "model.parts"
    parts.write_bytes(bytes(parts.stat().st_size))
    with pytest.raises(rd.RoundelError, match=r"model\.parts was changed"):
        model.save(tmp_path / "saved.so")


def test_parameters_of_pytorch_are_captured(tmp_path):
    torch = pytest.importorskip("torch")
    layer = torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.LayerNorm(48))
    expected = layer(torch.ones(1, 64)).detach().numpy()
    model = rd.compile(layer, (torch.ones(1, 64),))
    with torch.no_grad():
        for p in layer.parameters():
            p.fill_(7)
    np.testing.assert_allclose(model(X), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(rd.load(model.save(tmp_path / "saved.so"))(X), expected, rtol=1e-5, atol=1e-5)


def test_arrays_and_messages_are_captured(tmp_path):
    import onnx

    proto = onnx.load(write(tmp_path / "m.onnx", 3))
    model = rd.compile(proto)
    proto.graph.initializer[0].raw_data = bytes(64 * 64 * 4)
    np.testing.assert_array_equal(rd.load(model.save(tmp_path / "saved.so"))(X)[0], 192)


@pytest.mark.parametrize("name", ["model.so", "model.weights", "model.parts", "contents", "verified"])
@pytest.mark.parametrize("damage", ["empty", "cut off", "flipped", "removed", "a folder"])
def test_damaged_entries_are_made_again(root, tmp_path, name, damage):
    path = write(tmp_path / "m.onnx", 3)
    rd.compile(path)
    file = entry_of(root) / name
    content = file.read_bytes()
    file.unlink()
    if damage == "a folder":
        file.mkdir()
    elif damage != "removed":
        flipped = content[:50] + bytes([content[50] ^ 4]) + content[51:] if len(content) > 50 else b""
        file.write_bytes({"empty": b"", "cut off": content[: len(content) // 2], "flipped": flipped}[damage])
    for _ in range(2):
        np.testing.assert_array_equal(rd.compile(path)(X)[0], 192)
    whole = cache_entry.find("models", entry_of(root).name)
    assert whole is not None and set(whole.files) >= {"model.so", "model.parts"}


def test_damaged_notes_and_objects_are_made_again(root, tmp_path):
    path = write(tmp_path / "m.onnx", 3)
    age(path)
    rd.compile(path)
    files = [p for kind in ("files", "objects") for p in (root / kind).rglob("*") if p.is_file()]
    assert len(files) > 1
    for content in (b"", b"nonsense"):
        for file in files:
            file.write_bytes(content)
        cache_folder.remove(entry_of(root))
        np.testing.assert_array_equal(rd.compile(path)(X)[0], 192)


def test_a_planted_library_is_not_loaded(root, tmp_path):
    """In a folder that others may write to, and as another user's file in a folder of our own."""
    path = write(tmp_path / "m.onnx", 3)
    rd.compile(path)
    planted, kept = tmp_path / "planted.so", entry_of(root) / "model.so"
    source = f'#include <stdio.h>\n__attribute__((constructor)) static void f(void) {{ fclose(fopen("{tmp_path}/ran", "w")); }}'
    subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", planted], input=source, text=True, check=True)
    kept.write_bytes(planted.read_bytes())
    for where, mode in ((kept, 0o666), (kept.parent, 0o777), (root, 0o777)):
        before = where.stat().st_mode
        where.chmod(mode)
        np.testing.assert_array_equal(rd.compile(path)(X)[0], 192)
        if where.exists():
            where.chmod(before)
    if os.geteuid() == 0:
        kept.write_bytes(planted.read_bytes())
        os.chown(kept, 54321, 54321)
        np.testing.assert_array_equal(rd.compile(path)(X)[0], 192)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_refuses_costs_time_only(root, tmp_path, monkeypatch, code):
    path, real = write(tmp_path / "m.onnx", 3), os.open
    rd.compile(write(tmp_path / "warm.onnx", 1))  # brings the C runtime

    def refuse(name, flags, *args, **named):
        if flags & os.O_CREAT and str(root) in str(name):
            raise OSError(code, os.strerror(code), name)
        return real(name, flags, *args, **named)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "mkdir", refuse if code == errno.EROFS else os.mkdir)
    model = rd.compile(path)
    np.testing.assert_array_equal(model(X)[0], 192)


def test_no_place_for_temporary_files_is_a_clear_error(root, tmp_path, monkeypatch):
    model = rd.compile(write(tmp_path / "m.onnx", 3))

    def none(*_, **__):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.mkdtemp", none)
    with pytest.raises(rd.RoundelError, match=r"no place for temporary files(.|\n)*TMPDIR"):
        model.save(tmp_path / "saved.so")


def test_the_environment_is_checked_whatever_is_asked_for(root, tmp_path, monkeypatch):
    path = write(tmp_path / "m.onnx", 3)
    for name in ("ROUNDEL_CACHE_SIZE", "ROUNDEL_WORKERS", "ROUNDEL_WEIGHT_GROWTH"):
        with monkeypatch.context() as patch, pytest.raises(rd.RoundelError, match=f"{name} cannot be 'abc'"):
            patch.setenv(name, "abc")
            rd.compile(path)


def test_a_kept_model_brings_nothing_heavy(root, tmp_path):
    path = write(tmp_path / "m.onnx", 3, "w.pb")
    age(path, tmp_path / "w.pb")
    code = f"import roundel as rd, sys, numpy as np; rd.compile({str(path)!r})(np.ones((1, 64), np.float32)); print(*sys.modules)"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | {"ROUNDEL_CACHE_DIR": str(root)})
    assert not {"onnx", "llvmlite", "concurrent.futures", "roundel.tune.database", "statistics"} & set(done.stdout.split())


def test_what_loads_kept_models_imports_no_nodes():
    code = "import sys, roundel.api, roundel.cache, roundel.origin, roundel.runtime, roundel.target.host, roundel.tune.measured; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"roundel.ir.tir", "roundel.ir.graph", "roundel.ir.module", "roundel.passes", "subprocess"} & set(done.stdout.split())
