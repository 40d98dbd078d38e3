# SPDX-License-Identifier: Apache-2.0
"""Emulators of other machines, and which target each runs; a test skips those that are not installed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from roundel.ir.processors import this_family
from roundel.target.machines import LEVELS


@dataclass(frozen=True)
class Emulated:
    """``target``: what models are compiled for; ``command``: the emulator of a machine that has no more than that, or the program that starts others on
    this machine; ``library_threads``: the most threads of a program that takes the machine's C library there."""

    target: str
    command: str
    compiler: str
    library_threads: int | None = None

    @property
    def with_libraries(self) -> str:
        """The command for programs that take the C library of the machine, which lies where Debian puts that of a cross compiler."""
        return f"{self.command} -L /usr/{self.compiler.removesuffix('-gcc')}" if self.command.startswith("qemu") else self.command

    def missing(self) -> str:
        """What has to be installed to run it; empty where all is there."""
        return ", ".join(name for name in (self.command.split()[0], self.compiler) if shutil.which(name) is None)


MACHINES = {
    "aarch64": Emulated("cortex-a53", "qemu-aarch64-static -cpu cortex-a53", "aarch64-linux-gnu-gcc"),
    "aarch64 with everything": Emulated("neoverse-v1", "qemu-aarch64-static -cpu max", "aarch64-linux-gnu-gcc"),
    "aarch64 with vectors of 256 bits": Emulated("neoverse-v1-sve", "qemu-aarch64-static -cpu max,sve-default-vector-length=32", "aarch64-linux-gnu-gcc"),
    "armv7": Emulated("cortex-a7", "qemu-arm-static -cpu cortex-a7", "arm-linux-gnueabihf-gcc"),
    "riscv64": Emulated("rv64gc", "qemu-riscv64-static", "riscv64-linux-gnu-gcc"),
    "riscv64 with vectors of 128 bits": Emulated("rv64gcv", "qemu-riscv64-static -cpu rv64,v=true,vlen=128,vext_spec=v1.0", "riscv64-linux-gnu-gcc"),
    "riscv64 with vectors of 256 bits": Emulated("rv64gcv", "qemu-riscv64-static -cpu rv64,v=true,vlen=256,vext_spec=v1.0", "riscv64-linux-gnu-gcc"),
    "i686": Emulated("i686", "qemu-i386-static -cpu pentium3,+sse2", "i686-linux-gnu-gcc", library_threads=1),  # QEMU 7.2 hangs in any second pthread_create
}

ONE_FILE = {  # machines that take their level of a file for several, or the one that ROUNDEL_LEVEL asks for
    **{f"x86 as {cpu}": Emulated("x86-64-any", f"qemu-x86_64-static -cpu {cpu}", "x86_64-linux-gnu-gcc") for cpu in ("Nehalem", "Haswell", "Skylake-Server")},
    **{f"Arm as {cpu}": Emulated("aarch64-any", f"qemu-aarch64-static -cpu {cpu}", "aarch64-linux-gnu-gcc")
       for cpu in ("cortex-a53", "cortex-a72", "neoverse-n1", "max")},
    **{f"Arm as max at {level}": Emulated("aarch64-any", f"qemu-aarch64-static -cpu max -E ROUNDEL_LEVEL={level}", "aarch64-linux-gnu-gcc")
       for level in LEVELS["aarch64-any"]},
}
if this_family() == "x86_64":
    ONE_FILE["this machine"] = Emulated("x86-64-any", "env", "cc")
    ONE_FILE.update((f"this machine at {level}", Emulated("x86-64-any", f"env ROUNDEL_LEVEL={level}", "cc")) for level in LEVELS["x86-64-any"])
