# SPDX-License-Identifier: Apache-2.0
"""The thread pool's stress program, in the ways that the runtime can be built."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from roundel.runtime import library, toolchain

STRESS = Path(__file__).parent / "stress.c"


def run_stress(folder: Path, *flags: str, arguments: tuple[str, ...] = (), **environment: str) -> str:
    program = folder / "stress"
    sources = [*library.source_dir().glob("*.c"), STRESS]
    toolchain.run(
        [
            *toolchain.compiler(),
            "-std=gnu11",
            "-O1",
            "-g",
            *flags,
            f"-I{library.source_dir()}",
            *sources,
            "-o",
            program,
            "-lpthread",
            "-ldl",
        ]
    )
    done = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0 and done.stdout.endswith("ok\n"), done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("threads", ["1", "2", "16"])
def test_stress(tmp_path, threads):
    run_stress(tmp_path, arguments=(threads,))


def test_without_futex_and_without_spinning(tmp_path):
    run_stress(tmp_path, "-DRD_NO_FUTEX", arguments=("4",), ROUNDEL_SPIN_US="0")


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the sanitizer's library may be missing")
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_under_a_sanitizer(tmp_path, sanitizer):
    if not has_library(tmp_path, sanitizer):
        pytest.skip(f"this compiler comes without the library of -fsanitize={sanitizer}")
    run_stress(tmp_path, f"-fsanitize={sanitizer}", arguments=("4", "nofork"))


def has_library(folder: Path, sanitizer: str) -> bool:
    """Whether an empty program can be linked with the sanitizer: then one that cannot is broken itself."""
    source = folder / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    try:
        toolchain.run([*toolchain.compiler(), f"-fsanitize={sanitizer}", source, "-o", folder / "empty"])
    except toolchain.BuildError:
        return False
    return True


def test_a_runtime_that_does_not_build_is_no_reason_to_skip(tmp_path):
    with pytest.raises(toolchain.BuildError, match="deliberate"):
        run_stress(tmp_path, "-include", str(_broken(tmp_path)))


def _broken(folder: Path) -> Path:
    header = folder / "broken.h"
    header.write_text('#error "deliberate"\n')
    return header


def test_number_of_threads(tmp_path):
    import sys

    script = "from roundel.runtime import library; print(library.runtime().roundel_num_threads(None))"
    for value, expected in (("3", 3), ("0", None), ("junk", None), ("", None)):
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "ROUNDEL_NUM_THREADS": value},
        )
        assert int(done.stdout) == (expected or min(int(done.stdout), len(os.sched_getaffinity(0))))
    pinned = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}}); {script}"
    done = subprocess.run([sys.executable, "-c", pinned], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
