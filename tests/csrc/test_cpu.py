# SPDX-License-Identifier: Apache-2.0
"""What the runtime takes for a processor of x86 that has a feature: the processor says so, the system saves the registers, and for tiles lets the process
use them. The runtime's own source, with processors and systems that are imitated, so that it needs none of them."""

from __future__ import annotations

import subprocess

import pytest

from roundel.ir.processors import this_family
from roundel.runtime import library, toolchain

SSE, AVX, AVX512, TILES = 0x02, 0x06, 0xE6, 0x600E6  # the registers that a system saves, as bits of XCR0

IMITATED = """
#include <stdint.h>
static uint32_t says;
static uint64_t saves;
static int __get_cpuid_count(uint32_t leaf, uint32_t subleaf, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d) {
  (void)leaf, (void)subleaf;
  *a = *b = *c = *d = says;
  return 1;
}
#define __get_cpuid(leaf, a, b, c, d) __get_cpuid_count(leaf, 0, a, b, c, d)
#define __asm__ /* volatile("xgetbv" ...) follows */
#define volatile(...) (low = (uint32_t)saves, high = (uint32_t)(saves >> 32))
"""

PROGRAM = """
#include <stdio.h>
#include "cpu.c"
static int allows;
int os_allow_tiles(void) { return allows; }
int main(int count, char **given) {
  char name[64];
  if (count != 5) return 1;
  says = atoi(given[1]) ? ~0u : 0;
  saves = strtoull(given[2], NULL, 0);
  allows = atoi(given[3]);
  const char *lacking = cpu_lacks(given[4], name);
  printf("%s", lacking ? lacking : "");
  return 0;
}
"""

pytestmark = pytest.mark.skipif(this_family() not in ("x86_64", "i686"), reason="the part of the runtime for x86")


@pytest.fixture(scope="module")
def lacks(tmp_path_factory):
    """Which of these features a processor that has all or none lacks, under a system that saves these registers, and allows tiles or not."""
    folder = tmp_path_factory.mktemp("cpu")
    (folder / "cpuid.h").write_text(IMITATED)
    (folder / "program.c").write_text(PROGRAM)
    toolchain.run([*toolchain.compiler(), "-std=gnu11", f"-I{folder}", f"-I{library.source_dir()}", folder / "program.c", "-o", folder / "program"])

    def ask(features: str, has_all: bool = True, saves: int = TILES, allows: bool = True) -> str:
        command = [folder / "program", str(int(has_all)), hex(saves), str(int(allows)), features]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    return ask


def test_a_processor_that_has_all(lacks):
    assert lacks("+sse2,+avx2,+avx512f,+amx-tile,+amx-int8,+amx-bf16,-xop,+unheard-of") == ""


@pytest.mark.parametrize("feature", ["sse4.2", "popcnt", "avx2", "fma", "avx512vnni", "avx512bf16", "amx-int8"])
def test_a_processor_without(lacks, feature):
    assert lacks(feature, has_all=False) == feature and lacks(f"-{feature}", has_all=False) == ""


@pytest.mark.parametrize("saves, has, has_not", [
    (0, "sse4.2,bmi2,lzcnt", "avx"), (SSE, "sse4.2,movbe", "avx2"), (AVX, "avx2,fma,f16c,avxvnni", "avx512f"), (AVX512, "avx2,avx512f,avx512fp16", "amx-tile"),
])
def test_a_system_that_does_not_save_the_registers(lacks, saves, has, has_not):
    assert lacks(has, saves=saves) == "" and lacks(f"{has},{has_not}", saves=saves) == has_not


@pytest.mark.parametrize("feature", ["amx-tile", "amx-int8", "amx-bf16"])
def test_a_system_that_does_not_allow_tiles(lacks, feature):
    assert lacks(f"avx512f,{feature}", allows=False) == feature and lacks("avx512f,avx512fp16", allows=False) == ""
