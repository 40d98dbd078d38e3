# SPDX-License-Identifier: Apache-2.0
"""A machine that runs programs made here: one that ssh reaches, or an emulator of one."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..ir.dataclass import dataclass
from ..ir.errors import CallError, OptionError

_SSH = "ssh://"
_NUMBER, _CLEANING = "process.number", 30.0  # the file in which the program's process is told; seconds for removing what is left
_WATCHED = ("cd {place} && {{ exec 3<&0; {called} < /dev/null 3<&- & echo $! > {number}; "
            "{{ cat <&3 > /dev/null; kill -9 $(cat {number}); rm -rf {place}; }} > /dev/null 2>&1 & watcher=$!; "
            "wait $(cat {number}); status=$?; kill -9 $watcher; exit $status; }}")
"""How a board runs a program: until that ends, or the connection does, by which the program and its folder go too."""
_CANNOT_EXECUTE = 126  # what shells end with then
_OTHER_MACHINE = ("Exec format error", "Invalid ELF image", "cannot execute binary file")  # what systems, emulators and shells say of foreign programs
_NO_LIBRARIES = "Could not open '/lib/ld-"  # what emulators say of a program whose C library they do not find
_QUIET = ("-o", "BatchMode=yes")  # ssh asks nobody for a password


class ProgramError(CallError):
    """A program on a board did not come to its end. ``signal``: the name of the one that ended it, if one did; ``is_late``: whether its time was over."""

    def __init__(self, what: str, *, signal: str = "", is_late: bool = False, **more: str) -> None:
        super().__init__(what, **more)  # type: ignore[arg-type]
        self.signal, self.is_late = signal, is_late


@dataclass(frozen=True)
class Board:
    """``prefix`` is the command that runs a program when the program's path is put behind it (none: this machine runs it itself); ``host`` is
    where ssh finds the board, ``user@host``, and ``port`` its port; without a host the program runs here. ``memory``: the most bytes of addresses that a
    program may take, the emulator's own among them (0: no limit).
    """

    prefix: tuple[str, ...] = ()
    host: str = ""
    port: int = 22
    memory: int = 0

    @staticmethod
    def of(text: str) -> Board:
        """A board as users write it: ``ssh://pi@raspberrypi`` (with ``:port``), ``qemu-aarch64-static -cpu max``, or nothing for this machine.

        Raises OptionError for a command that is not there, or an address that is none."""
        if text.startswith(_SSH):
            host, _, port = text[len(_SSH) :].partition(":")
            if not host or host.startswith("-") or any(c.isspace() for c in host) or not (port or "22").isdigit():
                raise OptionError(f"{text!r} is no address of a board", hint="write ssh://user@host or ssh://user@host:port")
            _found("ssh")
            return Board((), host, int(port or 22))
        try:
            prefix = tuple(shlex.split(text))
        except ValueError as error:
            raise OptionError(f"{text!r} is no command: {error}", hint="write it as in a shell, such as 'qemu-aarch64-static -cpu max'") from None
        if prefix:
            _found(prefix[0])
        return Board(prefix)

    def run(self, folder: Path, program: str, arguments: Sequence[str], timeout: float) -> None:
        """Run a program that lies in ``folder``, from there; the files that it writes, whose names end in ``.out``, are in the folder afterwards.
        Nothing is left on a board.

        Raises CallError where the program fails, ends by a signal, or takes longer than ``timeout`` seconds, and where the board cannot be reached."""
        limit = f"ulimit -v {-(-self.memory // 1024)}; " if self.memory else ""
        if not self.host:
            called = [*self.prefix, str(folder / program), *arguments]
            self._finish(["sh", "-c", f"{limit}exec {shlex.join(called)}"] if limit else called, timeout, folder)
            return
        place = self._finish([*self._ssh(), "mktemp -d"], timeout).strip()
        if not place.startswith("/"):
            raise CallError(f"{self.host} made no folder for the program", why=f"it said {place[:200]!r}")
        try:
            self._copy([str(p) for p in sorted(folder.iterdir())], f"{self.host}:{place}/", timeout)
            called = limit + shlex.join([*self.prefix, "./" + program, *arguments])
            input_, held = os.pipe()  # whose end the board sees when this process is gone, however it ended
            with _closing(input_, held):
                self._finish([*self._ssh(), _WATCHED.format(place=shlex.quote(place), called=called, number=_NUMBER)], timeout, input_=input_)
            self._copy([f"{self.host}:{place}/*.out"], str(folder), timeout)
        finally:
            self._clean(place)

    def _clean(self, place: str) -> None:
        """Remove a folder of the board, and end the program there: one whose time is over goes on when ssh ends. A board that has gone is left alone."""
        quoted = shlex.quote(place)
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([*self._ssh(), f"kill -9 $(cat {quoted}/{_NUMBER}) 2> /dev/null; rm -rf {quoted}"], stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=_CLEANING, check=False)

    def _ssh(self) -> list[str]:
        return ["ssh", *_QUIET, "-p", str(self.port), self.host]

    def _copy(self, sources: Sequence[str], to: str, timeout: float) -> None:
        self._finish(["scp", *_QUIET, "-q", "-P", str(self.port), *sources, to], timeout)

    def _finish(self, command: Sequence[str], timeout: float, folder: Path | None = None, input_: int = subprocess.DEVNULL) -> str:
        """What a command prints; the command and all that it started are ended after ``timeout`` seconds."""
        with self._started(command, folder, input_) as process:
            try:
                out, said = process.communicate(timeout=timeout)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)  # its output is not read to the end: one that left the group may keep it open
                if isinstance(error, subprocess.TimeoutExpired):
                    raise ProgramError(f"the program did not end within {timeout:g} seconds on {self}", is_late=True,
                                       hint="give it more time, or a smaller input") from None
                raise
        if process.returncode:
            why = "\n".join([*said.strip().splitlines()[-5:], _ended(process.returncode)])
            raise ProgramError(f"the program failed on {self}", why=why, hint=_hint(process.returncode, said), signal=_signal(process.returncode))
        return out

    def _started(self, command: Sequence[str], folder: Path | None, input_: int) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(command, cwd=folder, stdin=input_, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                    start_new_session=True)
        except OSError as error:
            raise ProgramError(f"the program could not be started on {self}", why=str(error.strerror), hint=_hint(0, str(error.strerror))) from None

    def __str__(self) -> str:
        return f"{_SSH}{self.host}" if self.host else shlex.join(self.prefix) or "this machine"


@contextlib.contextmanager
def _closing(*files: int) -> Iterator[None]:
    try:
        yield
    finally:
        for file in files:
            os.close(file)


def _found(command: str) -> None:
    if shutil.which(command) is None:
        raise OptionError(f"there is no command {command!r} here", hint="install it, or write where it is; an emulator of Debian's is "
                          "called qemu-aarch64-static, qemu-riscv64-static, ... (package qemu-user-static)")


def _ended(status: int) -> str:
    """How a program ended; shells tell of a signal in words of their own, or not at all."""
    return f"it ended by signal {name}" if (name := _signal(status)) else f"it ended with status {status}"


def _signal(status: int) -> str:
    """The name of the signal that ended a program; empty for none."""
    try:
        return signal.Signals(-status if status < 0 else status - 128).name
    except ValueError:
        return ""


def _hint(status: int, said: str) -> str:
    """What would do where a program ended with ``status``, and something was ``said``."""
    if any(words in said for words in _OTHER_MACHINE):
        return "the program is for another kind of machine than the board or emulator: name that one's (`--target`; `roundel targets` lists them)"
    if _NO_LIBRARIES in said:
        return ("the emulator does not find the C library of that machine: say where it is, such as qemu-aarch64-static -L /usr/aarch64-linux-gnu (Debian's "
                "package libc6-arm64-cross), or install a C compiler for the machine, which links programs that need none")
    if status == _CANNOT_EXECUTE:
        return "if the program is for another kind of machine, name the board's (`--target`; `roundel targets` lists them)"
    illegal = status in (-signal.SIGILL, 128 + signal.SIGILL)
    return "the machine has not all the instructions of the target: name a smaller one, or tell the emulator (-cpu max)" if illegal else ""
