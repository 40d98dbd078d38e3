# SPDX-License-Identifier: Apache-2.0
"""Emulators of other machines, and which target each runs; a test skips those that are not installed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass


@dataclass(frozen=True)
class Emulated:
    """``target``: what models are compiled for; ``command``: the emulator of a machine that has no more than that."""

    target: str
    command: str
    compiler: str

    def missing(self) -> str:
        """What has to be installed to run it; empty where all is there."""
        return ", ".join(name for name in (self.command.split()[0], self.compiler) if shutil.which(name) is None)


MACHINES = {
    "aarch64": Emulated("cortex-a53", "qemu-aarch64-static -cpu cortex-a53", "aarch64-linux-gnu-gcc"),
    "aarch64 with everything": Emulated("neoverse-v1", "qemu-aarch64-static -cpu max", "aarch64-linux-gnu-gcc"),
    "armv7": Emulated("cortex-a7", "qemu-arm-static -cpu cortex-a7", "arm-linux-gnueabihf-gcc"),
    "riscv64": Emulated("rv64gc", "qemu-riscv64-static", "riscv64-linux-gnu-gcc"),
    "riscv64 with vectors of 128 bits": Emulated("rv64gcv", "qemu-riscv64-static -cpu rv64,v=true,vlen=128,vext_spec=v1.0", "riscv64-linux-gnu-gcc"),
    "riscv64 with vectors of 256 bits": Emulated("rv64gcv", "qemu-riscv64-static -cpu rv64,v=true,vlen=256,vext_spec=v1.0", "riscv64-linux-gnu-gcc"),
    "i686": Emulated("i686", "qemu-i386-static -cpu pentium3,+sse2", "i686-linux-gnu-gcc"),
}
