# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share: models, symbolic dimensions, input files, random inputs."""

from __future__ import annotations

import json
import math
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import typer

from ..ir import options
from ..ir.errors import CallError, OptionError
from ..ir.escape import short_name
from ..runtime.inputs import MOST_SIZE, dims_of_inputs, known_dims, random_input


def _no_run(items: list[str]) -> list[str]:
    """Raises OptionError where sizes of a run are given to a command that runs nothing."""
    if items:
        raise OptionError("--dim gives sizes of a run, and this command runs nothing", hint=f"to compile for this size only: --fix {items[0]}")
    return items

if TYPE_CHECKING:
    from ..boards import RemoteModel


def one_of(*values: str) -> Any:
    """What the shell offers where one of these values is to be typed."""
    return lambda incomplete: [v for v in values if v.startswith(incomplete)]


def _targets(context: typer.Context, incomplete: str) -> list[str]:
    """The machines that a command can do something for: what is only looked at needs no linker."""
    from ..build.link import linker_of
    from ..target import Target

    is_linked = context.info_name in ("compile", "run", "bench")
    return [name for name in Target.named() if name.startswith(incomplete) and not (is_linked and linker_of(Target(name).triple) is None)]


MODEL = typer.Argument(..., help="An ONNX file, or a model compiled by `roundel compile` (.so).", show_default=False)
TARGET = typer.Option(None, "--target", autocompletion=_targets,
                      help="What to compile for: a name from `roundel targets`, or such as 'llvm -mcpu=znver3'. Default: this machine.")
THREADS = typer.Option(None, "--threads", min=1, help="Most threads that one run uses. Default: all cores this process may use.")
ON = typer.Option(None, "--on", metavar="BOARD", show_default=False, help="Where to run what was compiled for --target: ssh://user@host, or an emulator's "
                  "command such as qemu-aarch64-static. Default: here.")
DIM = typer.Option([], "--dim", metavar="NAME=SIZE", help="Size that a symbolic dimension has in a run, such as seq=77; the code is for all sizes. May be "
                   "given several times.")
FIX = typer.Option([], "--fix", metavar="NAME=SIZE", help="Compile for this size of a symbolic dimension only, such as batch=1. May be given several times.")
VERIFY = typer.Option(False, "--verify", help="Check results after every pass with the interpreter; names the first pass that changes them.")
ACCURACY = typer.Option(None, "--accuracy", autocompletion=one_of("strict", "default", "fast"), help="Numerics: strict, default or fast.")
PRECISION = typer.Option(None, "--precision", autocompletion=one_of("float32", "bfloat16", "float16", "auto"),
                         help="Round the factors of matrix products and convolutions to 16 bits, where the machine has instructions for it.")
HOT = typer.Option([], "--hot", metavar="NAME=SIZE[,...]", help="Sizes that get code of their own beside that for all sizes, such as batch=1,seq=128.")
WEIGHTS = typer.Option(None, "--weights", autocompletion=one_of("float16", "bfloat16"), help="Store the weights of matrix products as float16 or bfloat16.")
BOUNDS_CHECKS = typer.Option(None, "--bounds-checks/--no-bounds-checks", help="Whether indices that are data are checked at run time. Default: yes.")
CHOOSE = typer.Option([], "--choose", metavar="NODE=CHOICE", help="Compute a node (or all of a pattern such as /layer1/*) in this way, such as "
                      'direct, winograd4, plain, strassen, bfloat16, separate, unpacked, or its kernel with decisions of JSON, {"rows": 6}; '
                      "`roundel explain --json` lists them. May be given several times.")


def _compile_from(ctx: typer.Context, database: str | None) -> str | None:
    """Make a database the one that is compiled from while the command runs."""
    if database is not None:
        ctx.with_resource(options.override(records=database))
    return database


def _with_libraries(ctx: typer.Context, names: str | None) -> str | None:
    """Have backends take part while the command runs."""
    if names is not None:
        ctx.with_resource(options.override(libraries=names))
    return names


LIBRARIES = typer.Option(None, "--libraries", metavar="NAME,NAME,...", callback=_with_libraries, help="Backends, such as openblas, whose kernels take part "
                         "beside generated code; all, or off. Default: those that were measured to be the fastest.")
DB = typer.Option(None, "--db", callback=_compile_from, show_default=False, help="Database of measured schedules, as `roundel tune` makes it, to compile "
                  "from; off for none. Default: the user's own.")


def duration(value: float) -> float:
    """Raises typer.BadParameter for what is no length of time."""
    if not 0 <= value < math.inf:
        raise typer.BadParameter(f"{value} is no number of seconds: give one of 0 or more")
    return value


NO_DIM = typer.Option([], "--dim", hidden=True, callback=_no_run)
"""Of commands that compile and do not run: says what to write instead."""


def dims(items: Sequence[str], flag: str = "--dim") -> dict[str, int]:
    """``["seq=77"]`` as a mapping; raises typer.BadParameter."""
    out: dict[str, int] = {}
    for item in items:
        name, _, size = item.partition("=")
        if not name.strip() or not re.fullmatch(r"[+-]?[0-9]{1,19}", size.strip()):
            raise typer.BadParameter(f"{short_name(item)} is not NAME=SIZE with a whole number", param_hint=flag)
        if not 0 <= int(size) <= MOST_SIZE:
            raise typer.BadParameter(f"{short_name(item)}: a size is 0 or more, and the most is {MOST_SIZE}", param_hint=flag)
        if out.setdefault(name.strip(), int(size)) != int(size):
            raise typer.BadParameter(f"{name.strip()} cannot be both {out[name.strip()]} and {size}", param_hint=flag)
    return out


def sizes_of_run(dim: Sequence[str], fix: Sequence[str]) -> dict[str, int]:
    """What ``--dim`` says of a model for which ``--fix`` closed some dimensions; raises typer.BadParameter."""
    sizes, fixed = dims(dim), dims(fix, "--fix")
    for name in sizes.keys() & fixed.keys():
        raise typer.BadParameter(f"{name} is {fixed[name]} in every run of this model: --fix says so", param_hint="--dim")
    return sizes


def chosen(items: Sequence[str]) -> dict[str, list[Any]] | None:
    """``["/conv1/Conv=direct", '/fc/Gemm={"rows": 6}']`` as a mapping, None for nothing; raises typer.BadParameter. Names of nodes may have an
    equals sign in them."""
    out: dict[str, list[Any]] = {}
    for item in items:
        node, _, wanted = item.partition("={") if item.endswith("}") else item.rpartition("=")
        if not node or not wanted:
            raise typer.BadParameter(f"{short_name(item)} is not NODE=ALTERNATIVE", param_hint="--choose")
        out.setdefault(node, []).append(_decisions(item, "{" + wanted) if item.endswith("}") else wanted)
    return out or None


def _decisions(item: str, text: str) -> dict[str, Any]:
    """Decisions of a kernel from JSON."""
    try:
        return dict(json.loads(text))
    except ValueError as error:
        raise typer.BadParameter(f"{item} is not NODE=DECISIONS with an object of JSON: {error}", param_hint="--choose") from None


def open_model(path: Path, *, target: str | None = None, threads: int | None = None, verify: bool = False, dynamic: Mapping[str, int] | None = None,
               hot: Sequence[Mapping[str, int]] = (), accuracy: str | None = None, precision: str | None = None, weights: str | None = None) -> Any:
    """A callable Model from an ONNX file or a compiled one."""
    from .. import api

    if is_compiled(path):
        given = {"--target": target, "--verify": verify, "--fix": dynamic, "--hot": hot, "--accuracy": accuracy, "--precision": precision,
                 "--weights": weights}
        given_late(path, given)
        return api.load(path, threads=threads)
    return api.compile(path, target=target, threads=threads, verify=verify, dynamic=dynamic or None, hot=hot, accuracy=accuracy,
                       precision=precision, weights=weights)


def given_late(path: Path, given: Mapping[str, Any]) -> None:
    """Raises OptionError where something is asked of a compiled file that was decided when it was compiled."""
    if late := [name for name, value in given.items() if value]:
        raise OptionError(f"{path.name} is compiled already, {' and '.join(late)} comes too late", hint="give it to `roundel compile`")


def sent_to(board: str | None, compiled: Any, path: Path, threads: int | None) -> RemoteModel | None:
    """The model as it runs on a board; None where no board is named. Raises OptionError, BuildError."""
    if board is None:
        return None
    from ..boards import RemoteModel

    if is_compiled(path):
        raise OptionError(f"{path.name} is linked already, and a board gets a program that is linked anew", hint="give --on the ONNX file that it came from")
    return RemoteModel(compiled, board, threads=threads)


def is_compiled(path: Path) -> bool:
    """Whether a file's name says that it is a shared library."""
    return path.suffix in (".so", ".dylib", ".dll")


def gather_inputs(infos: Sequence[Any], given: Sequence[str], sizes: Mapping[str, int], seed: int = 0) -> list[np.ndarray]:
    """Arrays for all inputs: from ``name=file.npy``, ``file.npz`` (by name), random where nothing is given. Raises CallError."""
    known_dims(dims_of_inputs(infos), sizes)
    names = [i.name for i in infos]
    known: dict[str, np.ndarray] = {}
    for item in given:
        known.update(_read(item, names))
    learnt = dict(sizes)
    for i in infos:
        for dim, size in zip(i.shape, known[i.name].shape if i.name in known else (), strict=False):
            if isinstance(dim, str) and learnt.setdefault(dim, size) != size:
                raise CallError(f"{i.name} has {dim}={size}, which is {learnt[dim]} elsewhere", hint="--dim and the inputs must agree")
    return [known[i.name] if i.name in known else random_input(i, learnt, seed + k) for k, i in enumerate(infos)]


@contextmanager
def interruptible() -> Iterator[None]:
    """For calls of a model: Ctrl-C ends the process at once, since Python would hear of it only when the call returns."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def described(infos: Sequence[Any], arrays: Sequence[np.ndarray]) -> str:
    """What a model was called with: names, types and sizes."""
    return ", ".join(f"{short_name(i.name)} {a.dtype}{list(a.shape)}" for i, a in zip(infos, arrays, strict=True))


def _read(item: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The inputs in one ``name=file`` or ``file``; raises CallError."""
    name, eq, file = item.partition("=")
    if not (file if eq else name):
        raise CallError(f"{item!r} names no file", hint="write NAME=FILE.npy or FILE.npz")
    if eq and name not in names:
        raise CallError(f"the model has no input {name!r}", hint=f"its inputs are {', '.join(names)}")
    path = Path(file if eq else name)
    if not path.is_file():
        raise CallError(f"there is no input file {path}")
    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError, BadZipFile):
        raise CallError(f"{path} is not a NumPy file, or it is cut off", hint="write it with numpy.save or numpy.savez") from None
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        if not eq and len(names) != 1:
            raise CallError(f"which input is {path}?", hint=f"write name={path} with one of {', '.join(names)}")
        return {name if eq else names[0]: loaded}
    found = {k: loaded[k] for k in loaded.files if k in ((name,) if eq else names)}
    if not found:
        raise CallError(f"{path} holds {', '.join(loaded.files) or 'nothing'}, and none of the inputs {', '.join([name] if eq else names)}")
    return found
