# SPDX-License-Identifier: Apache-2.0
"""The loop that does the work is found in the assembly of several machines."""

import pytest

from roundel.reports.assembly import inner_loops, plain, working_loop

X86 = """
	.text
f:                                      # @f
	xorl	%eax, %eax
.LBB0_1:                                # outer
	movq	%rax, %rcx
.LBB0_2:                                # copies
	vmovups	(%rdi), %zmm0
	vmovups	%zmm0, (%rsi)
	jne	.LBB0_2
.LBB0_3:                                # sums
	vfmadd231ps	(%rdi), %zmm1, %zmm0
	addq	$64, %rdi
	cmpq	%rdi, %rdx
	jne	.LBB0_3
	incq	%rax
	jb	.LBB0_1
	retq
"""
ARM = """
f:
.LBB0_1:
	ldr	q1, [x0], #16
	fmla	v0.4s, v1.4s, v2.s[0]
	subs	x2, x2, #1
	b.ne	.LBB0_1
	ret
"""
RISCV = """
f:
.LBB0_1:
	vle32.v	v8, (a0)
	vfmacc.vf	v10, fa0, v8
	addi	a0, a0, 32
	bne	a0, a1, .LBB0_1
	ret
"""


@pytest.mark.parametrize(("text", "instruction"), [(X86, "vfmadd231ps"), (ARM, "fmla"), (RISCV, "vfmacc.vf")], ids=["x86", "arm", "riscv"])
def test_the_innermost_loop_with_the_most_arithmetic(text, instruction):
    loop = inner_loops(text)[0]
    assert loop.arithmetic == 1 and instruction in "".join(loop.lines) and working_loop(text) == "\n".join(loop.lines)


def test_loops_around_loops_and_copies_come_after_or_not_at_all():
    first, second = inner_loops(X86)
    assert (first.lines[0], second.lines[0]) == (".LBB0_3:", ".LBB0_2:") and second.arithmetic == 0


def test_where_nothing_loops_all_instructions_are_shown():
    assert working_loop("f:\n\t.cfi_startproc\n\tretq # done\n").split() == ["f:", "retq"]


def test_directives_and_comments_are_left_out():
    assert plain(X86)[0] == "f:" and not any("outer" in line or ".text" in line for line in plain(X86)) and any("#16" in line for line in plain(ARM))
