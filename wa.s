	.file	"<string>"
	.text
	.globl	rk_52a36e0747b77818780a
	.p2align	4
	.type	rk_52a36e0747b77818780a,@function
rk_52a36e0747b77818780a:
	pushq	%r15
	pushq	%r14
	pushq	%r12
	pushq	%rbx
	subq	$56, %rsp
	movq	%rsi, %r12
	movl	$592064, %esi
	movq	%rcx, %r14
	movq	%rdx, %r15
	movq	%rdi, %rbx
	callq	rd_heap_alloc@PLT
	testq	%rax, %rax
	je	.LBB0_2
	movq	rk_52a36e0747b77818780a.0@GOTPCREL(%rip), %rsi
	movl	$16, %ecx
	movl	$4, %r8d
	movq	%rbx, (%rsp)
	movq	%r12, 8(%rsp)
	movq	%rax, 16(%rsp)
	movq	%rsp, %rdx
	movq	%rbx, %rdi
	movq	%rax, %r12
	callq	rd_parallel_for@PLT
	movq	rk_52a36e0747b77818780a.1@GOTPCREL(%rip), %rsi
	leaq	24(%rsp), %rdx
	movl	$8, %ecx
	movl	$2, %r8d
	movq	%rbx, 24(%rsp)
	movq	%r15, 32(%rsp)
	movq	%r12, 40(%rsp)
	movq	%rbx, %rdi
	movq	%r14, 48(%rsp)
	callq	rd_parallel_for@PLT
	movq	%rbx, %rdi
	movq	%r12, %rsi
	callq	rd_heap_free@PLT
.LBB0_2:
	addq	$56, %rsp
	popq	%rbx
	popq	%r12
	popq	%r14
	popq	%r15
	retq
.Lfunc_end0:
	.size	rk_52a36e0747b77818780a, .Lfunc_end0-rk_52a36e0747b77818780a

	.section	.rodata.cst4,"aM",@progbits,4
	.p2align	2, 0x0
.LCPI1_0:
	.long	0x40800000
.LCPI1_1:
	.long	0x40a00000
.LCPI1_2:
	.long	0x40000000
	.text
	.p2align	4
	.type	rk_52a36e0747b77818780a.0.body,@function
rk_52a36e0747b77818780a.0.body:
	cmpq	%rdx, %rsi
	jge	.LBB1_20
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	andq	$-64, %rsp
	subq	$21952, %rsp
	vbroadcastss	.LCPI1_0(%rip), %zmm23
	vbroadcastss	.LCPI1_1(%rip), %zmm13
	vbroadcastss	.LCPI1_2(%rip), %zmm24
	imulq	$12544, %rsi, %rax
	leaq	3264(%rsp), %rdi
	leaq	18432(%rsp), %r9
	leaq	7232(%rsp), %r10
	leaq	1152(%rsp), %r11
	vxorps	%xmm2, %xmm2, %xmm2
	addq	%rax, %rcx
	movq	%rsi, %rax
	shlq	$10, %rax
	leaq	575680(%rax,%r8), %r8
	.p2align	4
.LBB1_2:
	movq	$-1, %rbx
	movq	%r11, %r14
	.p2align	4
.LBB1_3:
	vmovaps	%zmm2, (%r14)
	incq	%rbx
	addq	$64, %r14
	cmpq	$17, %rbx
	jb	.LBB1_3
	movl	$1, %r12d
	leaq	2368(%rsp), %r15
	movq	%rdi, %rbx
	movq	%rcx, %r14
	.p2align	4
.LBB1_5:
	leaq	(%r12,%r12,8), %rax
	xorl	%r13d, %r13d
	shlq	$7, %rax
	vmovaps	%zmm2, 1152(%rsp,%rax)
	xorl	%eax, %eax
	.p2align	4
.LBB1_6:
	vmovups	(%r14,%r13), %zmm0
	incq	%rax
	vmovaps	%zmm0, (%r15,%r13)
	addq	$64, %r13
	cmpq	$14, %rax
	jb	.LBB1_6
	movl	$14, %r13d
	movq	%rbx, %rax
	.p2align	4
.LBB1_8:
	vmovaps	%zmm2, (%rax)
	incq	%r13
	addq	$64, %rax
	cmpq	$17, %r13
	jb	.LBB1_8
	addq	$1152, %r15
	addq	$896, %r14
	addq	$1152, %rbx
	cmpq	$14, %r12
	leaq	1(%r12), %r12
	jb	.LBB1_5
	movl	$15, %r14d
	movq	%r9, %rbx
	.p2align	4
.LBB1_11:
	movq	$-1, %r15
	movq	%rbx, %rax
	.p2align	4
.LBB1_12:
	vmovaps	%zmm2, (%rax)
	incq	%r15
	addq	$64, %rax
	cmpq	$17, %r15
	jb	.LBB1_12
	addq	$1152, %rbx
	cmpq	$17, %r14
	leaq	1(%r14), %r14
	jb	.LBB1_11
	movq	%r10, %rbx
	movq	%r8, %r14
	xorl	%r15d, %r15d
	.p2align	4
.LBB1_15:
	movq	$-1, %r12
	xorl	%r13d, %r13d
	.p2align	4
.LBB1_16:
	vmovaps	-3712(%rbx,%r13,4), %zmm17
	vmovaps	-1408(%rbx,%r13,4), %zmm21
	vmovaps	-4864(%rbx,%r13,4), %zmm20
	vmovaps	-2560(%rbx,%r13,4), %zmm22
	vmovaps	-4800(%rbx,%r13,4), %zmm16
	vmovaps	-2496(%rbx,%r13,4), %zmm28
	vmovaps	-3648(%rbx,%r13,4), %zmm15
	vmovaps	-1344(%rbx,%r13,4), %zmm6
	vmovaps	%zmm23, %zmm7
	vmovaps	%zmm23, %zmm8
	vmovaps	%zmm23, %zmm25
	vmovaps	-4736(%rbx,%r13,4), %zmm12
	vmovaps	-3776(%rbx,%r13,4), %zmm14
	vmovaps	-1472(%rbx,%r13,4), %zmm10
	vmovaps	-2624(%rbx,%r13,4), %zmm26
	vmovaps	-4928(%rbx,%r13,4), %zmm27
	vmovaps	%zmm23, %zmm30
	vmovaps	%zmm23, %zmm4
	vmovaps	%zmm23, %zmm5
	vmovaps	-3584(%rbx,%r13,4), %zmm11
	vmovaps	-1280(%rbx,%r13,4), %zmm19
	vmovaps	-3520(%rbx,%r13,4), %zmm3
	vmovaps	-1216(%rbx,%r13,4), %zmm18
	vmovaps	%zmm23, %zmm29
	vmovaps	%zmm23, %zmm31
	vmovaps	-3456(%rbx,%r13,4), %zmm0
	incq	%r12
	vfnmadd213ps	%zmm21, %zmm17, %zmm7
	vfnmadd213ps	%zmm22, %zmm20, %zmm8
	vmovaps	%zmm16, 192(%rsp)
	vfnmadd213ps	%zmm28, %zmm16, %zmm25
	vmovaps	-2432(%rbx,%r13,4), %zmm16
	vfnmadd213ps	%zmm10, %zmm14, %zmm4
	vfnmadd213ps	%zmm26, %zmm27, %zmm5
	vfnmadd213ps	%zmm19, %zmm11, %zmm29
	vfnmadd213ps	%zmm18, %zmm3, %zmm31
	vmovaps	%zmm12, 64(%rsp)
	vaddps	%zmm8, %zmm7, %zmm9
	vaddps	%zmm5, %zmm4, %zmm2
	vsubps	%zmm5, %zmm4, %zmm4
	vmovaps	%zmm9, 1088(%rsp)
	vmovaps	%zmm23, %zmm9
	vfnmadd213ps	%zmm6, %zmm15, %zmm9
	vmovaps	%zmm4, 768(%rsp)
	vsubps	%zmm8, %zmm7, %zmm4
	vmovaps	%zmm2, 1024(%rsp)
	vmovaps	%zmm23, %zmm8
	vfnmadd213ps	%zmm16, %zmm12, %zmm30
	vmovaps	%zmm16, 128(%rsp)
	vmovaps	-4672(%rbx,%r13,4), %zmm16
	vmovaps	%zmm4, 896(%rsp)
	vmovaps	%zmm13, %zmm4
	vaddps	%zmm25, %zmm9, %zmm1
	vsubps	%zmm25, %zmm9, %zmm5
	vmovaps	%zmm23, %zmm9
	vsubps	%zmm30, %zmm29, %zmm7
	vaddps	%zmm30, %zmm29, %zmm12
	vmovaps	-1152(%rbx,%r13,4), %zmm29
	vmovaps	%zmm24, %zmm30
	vmovaps	%zmm1, 576(%rsp)
	vmovaps	-2368(%rbx,%r13,4), %zmm1
	vmovaps	%zmm5, 704(%rsp)
	vmovaps	%zmm23, %zmm5
	vmovaps	%zmm7, 832(%rsp)
	vmovaps	-4608(%rbx,%r13,4), %zmm7
	vmovaps	%zmm12, 640(%rsp)
	vfnmadd213ps	%zmm29, %zmm0, %zmm8
	vfnmadd213ps	%zmm1, %zmm16, %zmm5
	vmovaps	%zmm1, %zmm25
	vmulps	-6080(%rbx,%r13,4), %zmm23, %zmm1
	vaddps	%zmm5, %zmm31, %zmm2
	vsubps	%zmm5, %zmm31, %zmm5
	vsubps	%zmm14, %zmm10, %zmm31
	vmovaps	%zmm5, 512(%rsp)
	vmovaps	-2304(%rbx,%r13,4), %zmm5
	vmovaps	%zmm2, 320(%rsp)
	vfnmadd231ps	%zmm13, %zmm14, %zmm1
	vaddps	%zmm10, %zmm1, %zmm2
	vmulps	-5952(%rbx,%r13,4), %zmm23, %zmm1
	vfnmadd213ps	%zmm5, %zmm7, %zmm9
	vmovaps	%zmm2, 256(%rsp)
	vmulps	-6016(%rbx,%r13,4), %zmm23, %zmm2
	vaddps	%zmm9, %zmm8, %zmm12
	vsubps	%zmm9, %zmm8, %zmm8
	vmulps	-5824(%rbx,%r13,4), %zmm23, %zmm9
	vmovaps	%zmm8, 960(%rsp)
	vmovaps	%zmm12, 448(%rsp)
	vsubps	%zmm20, %zmm22, %zmm12
	vfnmadd231ps	%zmm13, %zmm15, %zmm1
	vsubps	%zmm15, %zmm6, %zmm15
	vfnmadd231ps	%zmm13, %zmm17, %zmm2
	vsubps	%zmm17, %zmm21, %zmm17
	vaddps	%zmm6, %zmm1, %zmm8
	vmulps	-5888(%rbx,%r13,4), %zmm23, %zmm1
	vmovaps	%zmm24, %zmm6
	vfnmadd231ps	%zmm13, %zmm3, %zmm9
	vsubps	%zmm3, %zmm18, %zmm3
	vaddps	%zmm21, %zmm2, %zmm14
	vsubps	%zmm11, %zmm19, %zmm21
	vaddps	%zmm18, %zmm9, %zmm9
	vsubps	%zmm27, %zmm26, %zmm18
	vfmadd213ps	%zmm31, %zmm18, %zmm30
	vfnmadd213ps	%zmm31, %zmm24, %zmm18
	vmovaps	%zmm24, %zmm31
	vfnmadd231ps	%zmm13, %zmm11, %zmm1
	vmovaps	%zmm24, %zmm11
	vfmadd213ps	%zmm17, %zmm12, %zmm11
	vfnmadd213ps	%zmm17, %zmm24, %zmm12
	vsubps	%zmm7, %zmm5, %zmm17
	vaddps	%zmm19, %zmm1, %zmm10
	vmulps	-5760(%rbx,%r13,4), %zmm23, %zmm1
	vfnmadd231ps	%zmm13, %zmm0, %zmm1
	vsubps	%zmm0, %zmm29, %zmm13
	vmovaps	64(%rsp), %zmm0
	vaddps	%zmm29, %zmm1, %zmm2
	vmovaps	192(%rsp), %zmm1
	vmovaps	%zmm24, %zmm29
	vmovaps	%zmm2, (%rsp)
	vmovaps	%zmm27, %zmm2
	vmovaps	%zmm20, %zmm27
	vmovaps	128(%rsp), %zmm20
	vmulps	%zmm23, %zmm2, %zmm2
	vfnmadd231ps	%zmm26, %zmm4, %zmm2
	vmulps	%zmm23, %zmm27, %zmm26
	vmulps	%zmm23, %zmm0, %zmm27
	vsubps	%zmm1, %zmm28, %zmm19
	vmulps	%zmm23, %zmm1, %zmm1
	vfnmadd231ps	%zmm22, %zmm4, %zmm26
	vmulps	%zmm23, %zmm16, %zmm22
	vmovaps	%zmm2, 384(%rsp)
	vfmadd213ps	%zmm15, %zmm19, %zmm31
	vfnmadd213ps	%zmm15, %zmm24, %zmm19
	vsubps	%zmm0, %zmm20, %zmm15
	vmovaps	%zmm23, %zmm0
	vfnmadd231ps	%zmm28, %zmm4, %zmm1
	vfnmadd231ps	%zmm20, %zmm4, %zmm27
	vfnmadd213ps	%zmm9, %zmm8, %zmm0
	vfnmadd231ps	%zmm25, %zmm4, %zmm22
	vfmadd213ps	%zmm21, %zmm15, %zmm29
	vfnmadd213ps	%zmm21, %zmm24, %zmm15
	vsubps	%zmm16, %zmm25, %zmm21
	vmulps	%zmm23, %zmm7, %zmm16
	vsubps	%zmm8, %zmm9, %zmm7
	vfnmadd231ps	%zmm5, %zmm4, %zmm16
	vmulps	256(%rsp), %zmm23, %zmm5
	vfmadd213ps	%zmm3, %zmm21, %zmm6
	vfnmadd213ps	%zmm3, %zmm24, %zmm21
	vmovaps	%zmm24, %zmm3
	vfmadd213ps	%zmm13, %zmm17, %zmm3
	vfnmadd213ps	%zmm13, %zmm24, %zmm17
	vmovaps	%zmm4, %zmm13
	vfnmadd231ps	%zmm4, %zmm8, %zmm5
	vmovaps	%zmm23, %zmm4
	vfnmadd213ps	%zmm10, %zmm14, %zmm4
	vmovaps	640(%rsp), %zmm8
	vaddps	%zmm9, %zmm5, %zmm2
	vaddps	%zmm4, %zmm0, %zmm5
	vmovaps	576(%rsp), %zmm9
	vmovups	%zmm2, -575680(%r14,%r13)
	vsubps	%zmm4, %zmm0, %zmm2
	vsubps	%zmm14, %zmm10, %zmm4
	vmovups	%zmm5, -559232(%r14,%r13)
	vmovaps	%zmm24, %zmm5
	vmulps	%zmm23, %zmm14, %zmm0
	vfmadd213ps	%zmm7, %zmm4, %zmm5
	vfnmadd213ps	%zmm7, %zmm24, %zmm4
	vmovups	%zmm2, -542784(%r14,%r13)
	vfnmadd231ps	%zmm10, %zmm13, %zmm0
	vaddps	(%rsp), %zmm0, %zmm2
	vmovaps	320(%rsp), %zmm0
	vmovaps	1088(%rsp), %zmm7
	vmovaps	%zmm23, %zmm10
	vmovups	%zmm5, -526336(%r14,%r13)
	vmovups	%zmm4, -509888(%r14,%r13)
	vmulps	1024(%rsp), %zmm23, %zmm4
	vfnmadd213ps	%zmm0, %zmm9, %zmm10
	vmovups	%zmm2, -493440(%r14,%r13)
	vfnmadd231ps	%zmm13, %zmm9, %zmm4
	vsubps	%zmm9, %zmm0, %zmm9
	vaddps	%zmm0, %zmm4, %zmm2
	vmovaps	%zmm23, %zmm4
	vfnmadd213ps	%zmm8, %zmm7, %zmm4
	vmulps	%zmm23, %zmm7, %zmm0
	vmovups	%zmm2, -476992(%r14,%r13)
	vfnmadd231ps	%zmm8, %zmm13, %zmm0
	vaddps	%zmm4, %zmm10, %zmm5
	vsubps	%zmm4, %zmm10, %zmm2
	vsubps	%zmm7, %zmm8, %zmm4
	vmovaps	512(%rsp), %zmm10
	vmovaps	896(%rsp), %zmm7
	vmovaps	832(%rsp), %zmm8
	vmovups	%zmm5, -460544(%r14,%r13)
	vmovaps	%zmm24, %zmm5
	vfmadd213ps	%zmm9, %zmm4, %zmm5
	vfnmadd213ps	%zmm9, %zmm24, %zmm4
	vmovups	%zmm2, -444096(%r14,%r13)
	vmovaps	704(%rsp), %zmm9
	vaddps	448(%rsp), %zmm0, %zmm2
	vmovaps	%zmm23, %zmm0
	vmovups	%zmm5, -427648(%r14,%r13)
	vmovups	%zmm4, -411200(%r14,%r13)
	vmulps	768(%rsp), %zmm23, %zmm4
	vfnmadd213ps	%zmm10, %zmm9, %zmm0
	vmovups	%zmm2, -394752(%r14,%r13)
	vfnmadd231ps	%zmm13, %zmm9, %zmm4
	vsubps	%zmm9, %zmm10, %zmm9
	vaddps	%zmm10, %zmm4, %zmm2
	vmovaps	%zmm23, %zmm4
	vfnmadd213ps	%zmm8, %zmm7, %zmm4
	vmovups	%zmm2, -378304(%r14,%r13)
	vaddps	%zmm4, %zmm0, %zmm5
	vsubps	%zmm4, %zmm0, %zmm2
	vsubps	%zmm7, %zmm8, %zmm4
	vmulps	%zmm23, %zmm7, %zmm0
	vmovups	%zmm5, -361856(%r14,%r13)
	vmovaps	%zmm24, %zmm5
	vfmadd213ps	%zmm9, %zmm4, %zmm5
	vfnmadd213ps	%zmm9, %zmm24, %zmm4
	vmovups	%zmm2, -345408(%r14,%r13)
	vfnmadd231ps	%zmm8, %zmm13, %zmm0
	vaddps	960(%rsp), %zmm0, %zmm2
	vmovaps	%zmm23, %zmm0
	vfnmadd213ps	%zmm6, %zmm31, %zmm0
	vmovaps	%zmm23, %zmm8
	vmovups	%zmm5, -328960(%r14,%r13)
	vmovups	%zmm4, -312512(%r14,%r13)
	vmulps	%zmm23, %zmm30, %zmm4
	vfnmadd231ps	%zmm13, %zmm31, %zmm4
	vmovups	%zmm2, -296064(%r14,%r13)
	vaddps	%zmm6, %zmm4, %zmm2
	vmovaps	%zmm23, %zmm4
	vfnmadd213ps	%zmm29, %zmm11, %zmm4
	vmovups	%zmm2, -279616(%r14,%r13)
	vaddps	%zmm4, %zmm0, %zmm5
	vsubps	%zmm4, %zmm0, %zmm2
	vsubps	%zmm31, %zmm6, %zmm0
	vmovaps	%zmm24, %zmm4
	vaddps	-64(%rbx,%r13,4), %zmm22, %zmm6
	vmovups	%zmm5, -263168(%r14,%r13)
	vsubps	%zmm11, %zmm29, %zmm5
	vmovups	%zmm2, -246720(%r14,%r13)
	vmulps	%zmm23, %zmm18, %zmm2
	vfmadd213ps	%zmm0, %zmm5, %zmm4
	vfnmadd213ps	%zmm0, %zmm24, %zmm5
	vfnmadd231ps	%zmm13, %zmm19, %zmm2
	vmovups	%zmm4, -230272(%r14,%r13)
	vmulps	%zmm23, %zmm11, %zmm4
	vmovups	%zmm5, -213824(%r14,%r13)
	vmovaps	%zmm23, %zmm5
	vfnmadd213ps	%zmm21, %zmm19, %zmm5
	vfnmadd231ps	%zmm29, %zmm13, %zmm4
	vaddps	%zmm3, %zmm4, %zmm0
	vsubps	%zmm19, %zmm21, %zmm4
	vmovups	%zmm0, -197376(%r14,%r13)
	vaddps	%zmm21, %zmm2, %zmm0
	vmovaps	%zmm23, %zmm2
	vfnmadd213ps	%zmm15, %zmm12, %zmm2
	vmovups	%zmm0, -180928(%r14,%r13)
	vaddps	%zmm2, %zmm5, %zmm3
	vsubps	%zmm2, %zmm5, %zmm0
	vsubps	%zmm12, %zmm15, %zmm2
	vaddps	-128(%rbx,%r13,4), %zmm27, %zmm5
	vmovups	%zmm3, -164480(%r14,%r13)
	vmovaps	%zmm24, %zmm3
	vfmadd213ps	%zmm4, %zmm2, %zmm3
	vfnmadd213ps	%zmm4, %zmm24, %zmm2
	vmovups	%zmm0, -148032(%r14,%r13)
	vmulps	%zmm23, %zmm12, %zmm0
	vaddps	-192(%rbx,%r13,4), %zmm1, %zmm4
	vfnmadd231ps	%zmm15, %zmm13, %zmm0
	vmovups	%zmm3, -131584(%r14,%r13)
	vmovaps	384(%rsp), %zmm3
	vmovups	%zmm2, -115136(%r14,%r13)
	vaddps	-320(%rbx,%r13,4), %zmm3, %zmm2
	vaddps	-256(%rbx,%r13,4), %zmm26, %zmm3
	vaddps	%zmm17, %zmm0, %zmm0
	vmovups	%zmm0, -98688(%r14,%r13)
	vfnmadd213ps	%zmm6, %zmm4, %zmm8
	vsubps	%zmm4, %zmm6, %zmm1
	vmulps	%zmm23, %zmm2, %zmm0
	vmovaps	%zmm23, %zmm2
	vfnmadd213ps	%zmm5, %zmm3, %zmm2
	vfnmadd231ps	%zmm13, %zmm4, %zmm0
	vmovaps	%zmm24, %zmm4
	vaddps	%zmm2, %zmm8, %zmm7
	vaddps	%zmm6, %zmm0, %zmm0
	vmovups	%zmm0, -82240(%r14,%r13)
	vsubps	%zmm2, %zmm8, %zmm0
	vsubps	%zmm3, %zmm5, %zmm2
	vmovups	%zmm7, -65792(%r14,%r13)
	vfmadd213ps	%zmm1, %zmm2, %zmm4
	vfnmadd213ps	%zmm1, %zmm24, %zmm2
	vaddps	(%rbx,%r13,4), %zmm16, %zmm1
	vmovups	%zmm0, -49344(%r14,%r13)
	vmulps	%zmm23, %zmm3, %zmm0
	vfnmadd231ps	%zmm5, %zmm13, %zmm0
	vmovups	%zmm4, -32896(%r14,%r13)
	vmovups	%zmm2, -16448(%r14,%r13)
	vaddps	%zmm1, %zmm0, %zmm0
	vmovups	%zmm0, (%r14,%r13)
	addq	$64, %r13
	cmpq	$3, %r12
	jb	.LBB1_16
	addq	$256, %r14
	addq	$4608, %rbx
	cmpq	$3, %r15
	leaq	1(%r15), %r15
	jb	.LBB1_15
	incq	%rsi
	addq	$12544, %rcx
	addq	$1024, %r8
	vxorps	%xmm2, %xmm2, %xmm2
	cmpq	%rdx, %rsi
	jl	.LBB1_2
	leaq	-40(%rbp), %rsp
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
.LBB1_20:
	vzeroupper
	retq
.Lfunc_end1:
	.size	rk_52a36e0747b77818780a.0.body, .Lfunc_end1-rk_52a36e0747b77818780a.0.body

	.globl	rk_52a36e0747b77818780a.0
	.p2align	4
	.type	rk_52a36e0747b77818780a.0,@function
rk_52a36e0747b77818780a.0:
	pushq	%rax
	movq	%rsi, %rax
	movq	%rdi, %rsi
	movq	(%rdx), %rdi
	movq	8(%rdx), %rcx
	movq	16(%rdx), %r8
	movq	%rax, %rdx
	callq	rk_52a36e0747b77818780a.0.body
	popq	%rax
	retq
.Lfunc_end2:
	.size	rk_52a36e0747b77818780a.0, .Lfunc_end2-rk_52a36e0747b77818780a.0

	.section	.rodata.cst4,"aM",@progbits,4
	.p2align	2, 0x0
.LCPI3_0:
	.long	0x3e800000
.LCPI3_1:
	.long	0xbe2aaaab
.LCPI3_2:
	.long	0x3d2aaaab
.LCPI3_3:
	.long	0x3daaaaab
.LCPI3_4:
	.long	0x40000000
.LCPI3_5:
	.long	0x40800000
.LCPI3_6:
	.long	0x41000000
	.text
	.p2align	4
	.type	rk_52a36e0747b77818780a.1.body,@function
rk_52a36e0747b77818780a.1.body:
	pushq	%rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	subq	$264, %rsp
	movq	%rsi, %rbx
	movl	$592064, %esi
	movq	%r9, 8(%rsp)
	movq	%r8, (%rsp)
	movq	%rcx, %r13
	movq	%rdx, 16(%rsp)
	callq	rd_scratch@PLT
	testq	%rax, %rax
	je	.LBB3_35
	cmpq	16(%rsp), %rbx
	jge	.LBB3_35
	leaq	583872(%rax), %rcx
	vbroadcastss	.LCPI3_0(%rip), %zmm0
	vbroadcastss	.LCPI3_1(%rip), %zmm1
	vbroadcastss	.LCPI3_2(%rip), %zmm2
	vbroadcastss	.LCPI3_3(%rip), %zmm3
	vbroadcastss	.LCPI3_4(%rip), %zmm29
	vbroadcastss	.LCPI3_5(%rip), %zmm7
	vbroadcastss	.LCPI3_6(%rip), %zmm31
	leaq	295872(%rax), %rdx
	leaq	(%rbx,%rbx,8), %rsi
	addq	$476, (%rsp)
	movq	%rax, 88(%rsp)
	movq	%rcx, 80(%rsp)
	movq	8(%rsp), %rcx
	movq	%rdx, 72(%rsp)
	imulq	$25088, %rbx, %rdx
	shlq	$15, %rsi
	leaq	512(%rsi,%r13), %rsi
	leaq	2880(%rdx,%rcx), %rdi
	leaq	11840(%rdx,%rcx), %rcx
	leaq	281344(%rax), %rdx
	movq	%rdx, 40(%rsp)
	movq	%rdi, 32(%rsp)
	leaq	292864(%rax), %rdi
	movq	%rcx, 24(%rsp)
	movq	%rdi, 48(%rsp)
	jmp	.LBB3_3
	.p2align	4
.LBB3_34:
	movq	64(%rsp), %rbx
	movq	56(%rsp), %rsi
	addq	$25088, 32(%rsp)
	addq	$25088, 24(%rsp)
	incq	%rbx
	addq	$294912, %rsi
	cmpq	16(%rsp), %rbx
	jge	.LBB3_35
.LBB3_3:
	imulq	$25088, %rbx, %rcx
	movq	%rbx, 64(%rsp)
	addq	8(%rsp), %rcx
	movq	(%rsp), %rbx
	movq	%rsi, 56(%rsp)
	movq	%rsi, %r11
	movq	%rcx, 96(%rsp)
	xorl	%ecx, %ecx
	.p2align	4
.LBB3_4:
	movq	%rcx, 104(%rsp)
	leaq	(%rcx,%rcx,8), %rcx
	movq	%r11, 112(%rsp)
	xorl	%edx, %edx
	shlq	$13, %rcx
	addq	%rax, %rcx
	movq	%rcx, 128(%rsp)
	movq	80(%rsp), %rcx
	.p2align	4
.LBB3_5:
	movq	%r11, %rsi
	movq	%rcx, %rdi
	xorl	%r8d, %r8d
	.p2align	4
.LBB3_6:
	movq	$-64, %r9
	movq	%rsi, %r10
	.p2align	4
.LBB3_7:
	vmovups	-512(%r10), %zmm11
	vmovups	-128(%r10), %zmm9
	vmovups	-384(%r10), %zmm19
	vmovups	-448(%r10), %zmm13
	vmovups	(%r10), %zmm30
	vmovups	-320(%r10), %zmm23
	vmovups	-256(%r10), %zmm27
	vmovups	-192(%r10), %zmm28
	vmovaps	%zmm1, %zmm21
	vmovaps	%zmm3, %zmm18
	vmovaps	%zmm1, %zmm20
	vmovaps	%zmm1, %zmm22
	vmovaps	%zmm3, %zmm17
	vaddps	%zmm9, %zmm11, %zmm8
	vmulps	%zmm0, %zmm11, %zmm24
	vmulps	%zmm2, %zmm11, %zmm6
	vmulps	%zmm0, %zmm19, %zmm26
	vmulps	%zmm2, %zmm13, %zmm11
	vaddps	%zmm30, %zmm19, %zmm12
	vmulps	%zmm0, %zmm13, %zmm25
	vmulps	%zmm1, %zmm8, %zmm15
	vmovups	-64(%r10), %zmm8
	vmulps	%zmm0, %zmm24, %zmm5
	vfnmadd231ps	%zmm1, %zmm9, %zmm6
	vaddps	%zmm26, %zmm24, %zmm4
	vmulps	%zmm1, %zmm12, %zmm16
	addq	$576, %r10
	vmovaps	%zmm5, -288896(%rdi,%r9)
	vmulps	%zmm2, %zmm24, %zmm5
	vfmadd213ps	%zmm15, %zmm23, %zmm21
	vfnmadd231ps	%zmm1, %zmm23, %zmm15
	vfmadd213ps	%zmm16, %zmm28, %zmm22
	vmovaps	%zmm3, %zmm24
	vfnmadd231ps	%zmm1, %zmm28, %zmm16
	vfmadd213ps	%zmm6, %zmm23, %zmm18
	vfnmadd231ps	%zmm23, %zmm3, %zmm6
	vmulps	%zmm1, %zmm4, %zmm23
	vfnmadd231ps	%zmm1, %zmm26, %zmm5
	vmulps	%zmm0, %zmm21, %zmm4
	vaddps	%zmm8, %zmm13, %zmm10
	vfnmadd231ps	%zmm1, %zmm8, %zmm11
	vmulps	%zmm2, %zmm19, %zmm13
	vmovaps	%zmm3, %zmm19
	vmulps	%zmm2, %zmm6, %zmm12
	vfmadd213ps	%zmm5, %zmm25, %zmm24
	vfnmadd231ps	%zmm25, %zmm3, %zmm5
	vmulps	%zmm1, %zmm10, %zmm14
	vfnmadd231ps	%zmm1, %zmm30, %zmm13
	vfmadd213ps	%zmm11, %zmm27, %zmm17
	vfnmadd231ps	%zmm27, %zmm3, %zmm11
	vfmadd213ps	%zmm14, %zmm27, %zmm20
	vfnmadd231ps	%zmm1, %zmm27, %zmm14
	vmovaps	%zmm1, %zmm27
	vfmadd213ps	%zmm23, %zmm25, %zmm27
	vfnmadd231ps	%zmm1, %zmm25, %zmm23
	vfmadd213ps	%zmm13, %zmm28, %zmm19
	vfnmadd231ps	%zmm28, %zmm3, %zmm13
	vmovaps	%zmm27, -280640(%rdi,%r9)
	vmovaps	%zmm23, -272384(%rdi,%r9)
	vmovaps	%zmm24, -264128(%rdi,%r9)
	vmovaps	%zmm5, -255872(%rdi,%r9)
	vaddps	%zmm22, %zmm21, %zmm5
	vmulps	%zmm2, %zmm21, %zmm21
	vmovaps	%zmm26, -247616(%rdi,%r9)
	vmovaps	%zmm4, -239360(%rdi,%r9)
	vmovaps	%zmm1, %zmm24
	vmovaps	%zmm3, %zmm4
	vfnmadd231ps	%zmm1, %zmm13, %zmm12
	vfnmadd231ps	%zmm1, %zmm22, %zmm21
	vmulps	%zmm1, %zmm5, %zmm23
	vaddps	%zmm16, %zmm15, %zmm5
	vfmadd213ps	%zmm23, %zmm20, %zmm24
	vfnmadd231ps	%zmm1, %zmm20, %zmm23
	vfmadd213ps	%zmm21, %zmm20, %zmm4
	vfnmadd231ps	%zmm20, %zmm3, %zmm21
	vmulps	%zmm0, %zmm15, %zmm20
	vmulps	%zmm2, %zmm15, %zmm15
	vfnmadd231ps	%zmm1, %zmm16, %zmm15
	vmovaps	%zmm24, -231104(%rdi,%r9)
	vmovaps	%zmm23, -222848(%rdi,%r9)
	vmovaps	%zmm4, -214592(%rdi,%r9)
	vmovaps	%zmm21, -206336(%rdi,%r9)
	vmovaps	%zmm22, -198080(%rdi,%r9)
	vmovaps	%zmm20, -189824(%rdi,%r9)
	vmulps	%zmm1, %zmm5, %zmm20
	vmovaps	%zmm1, %zmm21
	vmovaps	%zmm3, %zmm4
	vmulps	%zmm2, %zmm18, %zmm5
	vfmadd213ps	%zmm20, %zmm14, %zmm21
	vfmadd213ps	%zmm15, %zmm14, %zmm4
	vfnmadd231ps	%zmm1, %zmm14, %zmm20
	vfnmadd231ps	%zmm14, %zmm3, %zmm15
	vmulps	%zmm0, %zmm18, %zmm14
	vfnmadd231ps	%zmm1, %zmm19, %zmm5
	vmovaps	%zmm21, -181568(%rdi,%r9)
	vmovaps	%zmm20, -173312(%rdi,%r9)
	vmovaps	%zmm4, -165056(%rdi,%r9)
	vaddps	%zmm19, %zmm18, %zmm4
	vmovaps	%zmm15, -156800(%rdi,%r9)
	vmovaps	%zmm16, -148544(%rdi,%r9)
	vmovaps	%zmm14, -140288(%rdi,%r9)
	vmovaps	%zmm1, %zmm15
	vmulps	%zmm1, %zmm4, %zmm14
	vmulps	%zmm0, %zmm6, %zmm4
	vfmadd213ps	%zmm14, %zmm17, %zmm15
	vfnmadd231ps	%zmm1, %zmm17, %zmm14
	vmovaps	%zmm15, -132032(%rdi,%r9)
	vmovaps	%zmm3, %zmm15
	vfmadd213ps	%zmm5, %zmm17, %zmm15
	vfnmadd231ps	%zmm17, %zmm3, %zmm5
	vmovaps	%zmm14, -123776(%rdi,%r9)
	vmovaps	%zmm15, -115520(%rdi,%r9)
	vmovaps	%zmm5, -107264(%rdi,%r9)
	vaddps	%zmm13, %zmm6, %zmm5
	vmovaps	%zmm19, -99008(%rdi,%r9)
	vmovaps	%zmm4, -90752(%rdi,%r9)
	vmovaps	%zmm3, %zmm4
	vfmadd213ps	%zmm12, %zmm11, %zmm4
	vmovaps	%zmm1, %zmm15
	vfnmadd231ps	%zmm11, %zmm3, %zmm12
	vmulps	%zmm1, %zmm5, %zmm14
	vaddps	%zmm30, %zmm9, %zmm5
	vfmadd213ps	%zmm14, %zmm11, %zmm15
	vfnmadd231ps	%zmm1, %zmm11, %zmm14
	vmulps	%zmm0, %zmm9, %zmm11
	vmulps	%zmm2, %zmm9, %zmm9
	vfnmadd231ps	%zmm1, %zmm30, %zmm9
	vmovaps	%zmm15, -82496(%rdi,%r9)
	vmovaps	%zmm14, -74240(%rdi,%r9)
	vmovaps	%zmm4, -65984(%rdi,%r9)
	vmovaps	%zmm12, -57728(%rdi,%r9)
	vmovaps	%zmm13, -49472(%rdi,%r9)
	vmovaps	%zmm11, -41216(%rdi,%r9)
	vmulps	%zmm1, %zmm5, %zmm11
	vmovaps	%zmm1, %zmm12
	vmovaps	%zmm3, %zmm4
	vfmadd213ps	%zmm11, %zmm8, %zmm12
	vfmadd213ps	%zmm9, %zmm8, %zmm4
	vfnmadd231ps	%zmm1, %zmm8, %zmm11
	vfnmadd231ps	%zmm8, %zmm3, %zmm9
	vmovaps	%zmm12, -32960(%rdi,%r9)
	vmovaps	%zmm11, -24704(%rdi,%r9)
	vmovaps	%zmm4, -16448(%rdi,%r9)
	vmovaps	%zmm9, -8192(%rdi,%r9)
	vmovaps	%zmm30, 64(%rdi,%r9)
	addq	$64, %r9
	je	.LBB3_7
	subq	$-128, %rdi
	addq	$1152, %rsi
	cmpq	$15, %r8
	leaq	1(%r8), %r8
	jb	.LBB3_6
	addq	$2048, %rcx
	addq	$18432, %r11
	cmpq	$3, %rdx
	leaq	1(%rdx), %rdx
	jb	.LBB3_5
	movq	72(%rsp), %r15
	movq	%rbx, 120(%rsp)
	movq	%rbx, %rsi
	xorl	%eax, %eax
	.p2align	4
.LBB3_11:
	leaq	(%rax,%rax,2), %rdx
	movq	%rax, 192(%rsp)
	movq	%r15, %rax
	movq	%rsi, %r14
	xorl	%ecx, %ecx
	shlq	$12, %rdx
	addq	128(%rsp), %rdx
	.p2align	4
.LBB3_12:
	movq	%rcx, %r12
	shlq	$11, %r12
	movq	%r14, %rdi
	xorl	%ebx, %ebx
	addq	%rdx, %r12
	.p2align	4
.LBB3_13:
	movq	%rbx, %r11
	shlq	$7, %r11
	vxorps	%xmm8, %xmm8, %xmm8
	movq	%rax, %rbp
	movq	%rdi, %r10
	vxorps	%xmm9, %xmm9, %xmm9
	vxorps	%xmm10, %xmm10, %xmm10
	vxorps	%xmm11, %xmm11, %xmm11
	vxorps	%xmm12, %xmm12, %xmm12
	vxorps	%xmm13, %xmm13, %xmm13
	vxorps	%xmm14, %xmm14, %xmm14
	vxorps	%xmm15, %xmm15, %xmm15
	vxorps	%xmm16, %xmm16, %xmm16
	vxorps	%xmm17, %xmm17, %xmm17
	vxorps	%xmm18, %xmm18, %xmm18
	vxorps	%xmm19, %xmm19, %xmm19
	vxorps	%xmm20, %xmm20, %xmm20
	vxorps	%xmm21, %xmm21, %xmm21
	vxorps	%xmm22, %xmm22, %xmm22
	vxorps	%xmm23, %xmm23, %xmm23
	xorl	%r9d, %r9d
	.p2align	4
.LBB3_14:
	movq	$-32, %r13
	movq	%rbp, %r8
	.p2align	4
.LBB3_15:
	vbroadcastss	-252(%r10,%r13), %zmm4
	vmovaps	-960(%r8), %zmm26
	vmovaps	-896(%r8), %zmm27
	vbroadcastss	-380(%r10,%r13), %zmm5
	vbroadcastss	-316(%r10,%r13), %zmm28
	vmovaps	-832(%r8), %zmm24
	vbroadcastss	-444(%r10,%r13), %zmm25
	vmovaps	-704(%r8), %zmm6
	vfmadd231ps	%zmm26, %zmm4, %zmm11
	vfmadd231ps	%zmm4, %zmm27, %zmm19
	vbroadcastss	-124(%r10,%r13), %zmm4
	vfmadd231ps	%zmm26, %zmm5, %zmm9
	vfmadd231ps	%zmm5, %zmm27, %zmm17
	vbroadcastss	-188(%r10,%r13), %zmm5
	vfmadd231ps	%zmm26, %zmm28, %zmm10
	vfmadd231ps	%zmm28, %zmm27, %zmm18
	vmovaps	-768(%r8), %zmm28
	vfmadd231ps	%zmm26, %zmm25, %zmm8
	vfmadd231ps	%zmm25, %zmm27, %zmm16
	vmovaps	-640(%r8), %zmm25
	vfmadd231ps	%zmm26, %zmm4, %zmm13
	vfmadd231ps	%zmm4, %zmm27, %zmm21
	vbroadcastss	4(%r10,%r13), %zmm4
	vfmadd231ps	%zmm26, %zmm5, %zmm12
	vfmadd231ps	%zmm5, %zmm27, %zmm20
	vbroadcastss	-60(%r10,%r13), %zmm5
	vfmadd231ps	%zmm26, %zmm4, %zmm15
	vfmadd231ps	%zmm27, %zmm4, %zmm23
	vbroadcastss	-312(%r10,%r13), %zmm4
	vfmadd231ps	%zmm26, %zmm5, %zmm14
	vfmadd231ps	%zmm5, %zmm27, %zmm22
	vbroadcastss	-440(%r10,%r13), %zmm5
	vbroadcastss	-376(%r10,%r13), %zmm26
	vbroadcastss	-372(%r10,%r13), %zmm27
	vfmadd231ps	%zmm24, %zmm4, %zmm10
	vfmadd231ps	%zmm4, %zmm28, %zmm18
	vbroadcastss	-184(%r10,%r13), %zmm4
	vfmadd231ps	%zmm24, %zmm5, %zmm8
	vfmadd231ps	%zmm5, %zmm28, %zmm16
	vbroadcastss	-248(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm26, %zmm9
	vfmadd231ps	%zmm26, %zmm28, %zmm17
	vbroadcastss	8(%r10,%r13), %zmm26
	vfmadd231ps	%zmm6, %zmm27, %zmm9
	vfmadd231ps	%zmm27, %zmm25, %zmm17
	vbroadcastss	12(%r10,%r13), %zmm27
	vfmadd231ps	%zmm24, %zmm4, %zmm12
	vfmadd231ps	%zmm4, %zmm28, %zmm20
	vbroadcastss	-56(%r10,%r13), %zmm4
	vfmadd231ps	%zmm24, %zmm5, %zmm11
	vfmadd231ps	%zmm5, %zmm28, %zmm19
	vbroadcastss	-120(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm26, %zmm15
	vfmadd231ps	%zmm28, %zmm26, %zmm23
	vbroadcastss	-436(%r10,%r13), %zmm26
	vfmadd231ps	%zmm25, %zmm27, %zmm23
	vfmadd231ps	%zmm6, %zmm27, %zmm15
	vbroadcastss	-368(%r10,%r13), %zmm27
	vfmadd231ps	%zmm24, %zmm4, %zmm14
	vfmadd231ps	%zmm4, %zmm28, %zmm22
	vbroadcastss	-308(%r10,%r13), %zmm4
	vfmadd231ps	%zmm24, %zmm5, %zmm13
	vfmadd231ps	%zmm5, %zmm28, %zmm21
	vbroadcastss	-244(%r10,%r13), %zmm5
	vmovaps	-576(%r8), %zmm24
	vfmadd231ps	%zmm26, %zmm25, %zmm16
	vfmadd231ps	%zmm6, %zmm26, %zmm8
	vfmadd231ps	%zmm24, %zmm27, %zmm9
	vfmadd231ps	%zmm6, %zmm4, %zmm10
	vfmadd231ps	%zmm4, %zmm25, %zmm18
	vbroadcastss	-180(%r10,%r13), %zmm4
	vfmadd231ps	%zmm6, %zmm5, %zmm11
	vfmadd231ps	%zmm5, %zmm25, %zmm19
	vbroadcastss	-116(%r10,%r13), %zmm5
	vfmadd231ps	%zmm6, %zmm4, %zmm12
	vfmadd231ps	%zmm4, %zmm25, %zmm20
	vbroadcastss	-52(%r10,%r13), %zmm4
	vfmadd231ps	%zmm6, %zmm5, %zmm13
	vfmadd231ps	%zmm5, %zmm25, %zmm21
	vbroadcastss	-432(%r10,%r13), %zmm5
	vfmadd231ps	%zmm4, %zmm25, %zmm22
	vfmadd231ps	%zmm6, %zmm4, %zmm14
	vbroadcastss	-304(%r10,%r13), %zmm4
	vmovaps	-512(%r8), %zmm25
	vfmadd231ps	%zmm24, %zmm5, %zmm8
	vfmadd231ps	%zmm5, %zmm25, %zmm16
	vbroadcastss	-240(%r10,%r13), %zmm5
	vfmadd231ps	%zmm27, %zmm25, %zmm17
	vbroadcastss	16(%r10,%r13), %zmm27
	vfmadd231ps	%zmm24, %zmm4, %zmm10
	vfmadd231ps	%zmm4, %zmm25, %zmm18
	vbroadcastss	-176(%r10,%r13), %zmm4
	vfmadd231ps	%zmm24, %zmm5, %zmm11
	vfmadd231ps	%zmm5, %zmm25, %zmm19
	vbroadcastss	-112(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm27, %zmm15
	vfmadd231ps	%zmm25, %zmm27, %zmm23
	vbroadcastss	-364(%r10,%r13), %zmm27
	vfmadd231ps	%zmm24, %zmm4, %zmm12
	vfmadd231ps	%zmm4, %zmm25, %zmm20
	vbroadcastss	-48(%r10,%r13), %zmm4
	vfmadd231ps	%zmm24, %zmm5, %zmm13
	vfmadd231ps	%zmm5, %zmm25, %zmm21
	vbroadcastss	-428(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm4, %zmm14
	vfmadd231ps	%zmm4, %zmm25, %zmm22
	vbroadcastss	-300(%r10,%r13), %zmm4
	vmovaps	-448(%r8), %zmm24
	vmovaps	-384(%r8), %zmm25
	vfmadd231ps	%zmm24, %zmm5, %zmm8
	vfmadd231ps	%zmm5, %zmm25, %zmm16
	vbroadcastss	-236(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm27, %zmm9
	vfmadd231ps	%zmm27, %zmm25, %zmm17
	vbroadcastss	20(%r10,%r13), %zmm27
	vfmadd231ps	%zmm24, %zmm4, %zmm10
	vfmadd231ps	%zmm4, %zmm25, %zmm18
	vbroadcastss	-172(%r10,%r13), %zmm4
	vfmadd231ps	%zmm24, %zmm5, %zmm11
	vfmadd231ps	%zmm5, %zmm25, %zmm19
	vbroadcastss	-108(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm27, %zmm15
	vfmadd231ps	%zmm25, %zmm27, %zmm23
	vbroadcastss	-360(%r10,%r13), %zmm27
	vfmadd231ps	%zmm24, %zmm4, %zmm12
	vfmadd231ps	%zmm4, %zmm25, %zmm20
	vbroadcastss	-44(%r10,%r13), %zmm4
	vfmadd231ps	%zmm24, %zmm5, %zmm13
	vfmadd231ps	%zmm5, %zmm25, %zmm21
	vbroadcastss	-424(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm4, %zmm14
	vfmadd231ps	%zmm4, %zmm25, %zmm22
	vbroadcastss	-296(%r10,%r13), %zmm4
	vmovaps	-320(%r8), %zmm24
	vmovaps	-256(%r8), %zmm25
	vfmadd231ps	%zmm24, %zmm5, %zmm8
	vfmadd231ps	%zmm5, %zmm25, %zmm16
	vbroadcastss	-232(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm27, %zmm9
	vfmadd231ps	%zmm27, %zmm25, %zmm17
	vbroadcastss	24(%r10,%r13), %zmm27
	vfmadd231ps	%zmm24, %zmm4, %zmm10
	vfmadd231ps	%zmm4, %zmm25, %zmm18
	vbroadcastss	-168(%r10,%r13), %zmm4
	vfmadd231ps	%zmm24, %zmm5, %zmm11
	vfmadd231ps	%zmm5, %zmm25, %zmm19
	vbroadcastss	-104(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm27, %zmm15
	vfmadd231ps	%zmm25, %zmm27, %zmm23
	vbroadcastss	-356(%r10,%r13), %zmm27
	vfmadd231ps	%zmm24, %zmm4, %zmm12
	vfmadd231ps	%zmm4, %zmm25, %zmm20
	vbroadcastss	-40(%r10,%r13), %zmm4
	vfmadd231ps	%zmm24, %zmm5, %zmm13
	vfmadd231ps	%zmm5, %zmm25, %zmm21
	vbroadcastss	-420(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm4, %zmm14
	vfmadd231ps	%zmm4, %zmm25, %zmm22
	vbroadcastss	-292(%r10,%r13), %zmm4
	vmovaps	-192(%r8), %zmm24
	vmovaps	-128(%r8), %zmm25
	vfmadd231ps	%zmm24, %zmm5, %zmm8
	vfmadd231ps	%zmm5, %zmm25, %zmm16
	vbroadcastss	-228(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm27, %zmm9
	vfmadd231ps	%zmm27, %zmm25, %zmm17
	vbroadcastss	28(%r10,%r13), %zmm27
	vfmadd231ps	%zmm24, %zmm4, %zmm10
	vfmadd231ps	%zmm4, %zmm25, %zmm18
	vbroadcastss	-164(%r10,%r13), %zmm4
	vfmadd231ps	%zmm24, %zmm5, %zmm11
	vfmadd231ps	%zmm5, %zmm25, %zmm19
	vbroadcastss	-100(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm27, %zmm15
	vfmadd231ps	%zmm25, %zmm27, %zmm23
	vbroadcastss	-352(%r10,%r13), %zmm27
	vfmadd231ps	%zmm24, %zmm4, %zmm12
	vfmadd231ps	%zmm4, %zmm25, %zmm20
	vbroadcastss	-36(%r10,%r13), %zmm4
	vfmadd231ps	%zmm24, %zmm5, %zmm13
	vfmadd231ps	%zmm5, %zmm25, %zmm21
	vbroadcastss	-416(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm4, %zmm14
	vfmadd231ps	%zmm4, %zmm25, %zmm22
	vbroadcastss	-288(%r10,%r13), %zmm4
	vmovaps	-64(%r8), %zmm24
	vmovaps	(%r8), %zmm25
	addq	$1024, %r8
	vfmadd231ps	%zmm24, %zmm5, %zmm8
	vfmadd231ps	%zmm5, %zmm25, %zmm16
	vbroadcastss	-224(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm27, %zmm9
	vfmadd231ps	%zmm27, %zmm25, %zmm17
	vbroadcastss	32(%r10,%r13), %zmm27
	vfmadd231ps	%zmm24, %zmm4, %zmm10
	vfmadd231ps	%zmm4, %zmm25, %zmm18
	vbroadcastss	-160(%r10,%r13), %zmm4
	vfmadd231ps	%zmm24, %zmm5, %zmm11
	vfmadd231ps	%zmm5, %zmm25, %zmm19
	vbroadcastss	-96(%r10,%r13), %zmm5
	vfmadd231ps	%zmm24, %zmm27, %zmm15
	vfmadd231ps	%zmm25, %zmm27, %zmm23
	vfmadd231ps	%zmm24, %zmm4, %zmm12
	vfmadd231ps	%zmm4, %zmm25, %zmm20
	vbroadcastss	-32(%r10,%r13), %zmm4
	addq	$32, %r13
	vfmadd231ps	%zmm24, %zmm5, %zmm13
	vfmadd231ps	%zmm5, %zmm25, %zmm21
	vfmadd231ps	%zmm24, %zmm4, %zmm14
	vfmadd231ps	%zmm4, %zmm25, %zmm22
	je	.LBB3_15
	addq	$1024, %r10
	addq	$2048, %rbp
	cmpq	$3, %r9
	leaq	1(%r9), %r9
	jb	.LBB3_14
	vmovaps	%zmm8, (%r12,%r11,4)
	vmovaps	%zmm9, 64(%r12,%r11,4)
	vmovaps	%zmm10, 128(%r12,%r11,4)
	vmovaps	%zmm11, 192(%r12,%r11,4)
	vmovaps	%zmm12, 256(%r12,%r11,4)
	vmovaps	%zmm13, 320(%r12,%r11,4)
	vmovaps	%zmm14, 384(%r12,%r11,4)
	vmovaps	%zmm15, 448(%r12,%r11,4)
	vmovaps	%zmm16, 1024(%r12,%r11,4)
	vmovaps	%zmm17, 1088(%r12,%r11,4)
	vmovaps	%zmm18, 1152(%r12,%r11,4)
	vmovaps	%zmm19, 1216(%r12,%r11,4)
	vmovaps	%zmm20, 1280(%r12,%r11,4)
	vmovaps	%zmm21, 1344(%r12,%r11,4)
	vmovaps	%zmm22, 1408(%r12,%r11,4)
	vmovaps	%zmm23, 1472(%r12,%r11,4)
	addq	$512, %rdi
	testq	%rbx, %rbx
	leaq	1(%rbx), %rbx
	je	.LBB3_13
	addq	$16448, %r14
	addq	$8256, %rax
	cmpq	$5, %rcx
	leaq	1(%rcx), %rcx
	jb	.LBB3_12
	movq	192(%rsp), %rax
	addq	$98688, %rsi
	addq	$49536, %r15
	cmpq	$5, %rax
	leaq	1(%rax), %rax
	jb	.LBB3_11
	movq	112(%rsp), %r11
	movq	120(%rsp), %rbx
	movq	104(%rsp), %rax
	addq	$73728, %r11
	addq	$4096, %rbx
	leaq	1(%rax), %rcx
	cmpq	$3, %rax
	movq	88(%rsp), %rax
	jb	.LBB3_4
	movq	40(%rsp), %r13
	movq	24(%rsp), %rbp
	movq	48(%rsp), %rdx
	movq	32(%rsp), %r10
	xorl	%ebx, %ebx
	jmp	.LBB3_22
	.p2align	4
.LBB3_33:
	addq	$12544, %r10
	addq	$1024, %rdx
	addq	$12544, %rbp
	addq	$1024, %r13
	testq	%rbx, %rbx
	leaq	1(%rbx), %rbx
	jne	.LBB3_34
.LBB3_22:
	imulq	$12544, %rbx, %r15
	addq	96(%rsp), %r15
	movq	%rbx, %r14
	shlq	$10, %r14
	movq	%rdx, %r9
	movq	%r10, %rdi
	xorl	%r8d, %r8d
	addq	%rax, %r14
	.p2align	4
.LBB3_23:
	imulq	$3584, %r8, %r12
	movq	%r8, %r11
	shlq	$8, %r11
	movq	$-1, %rcx
	xorl	%esi, %esi
	addq	%r14, %r11
	.p2align	4
.LBB3_24:
	vmovaps	-280576(%r9,%rsi), %zmm9
	vmovaps	-268288(%r9,%rsi), %zmm10
	vmovaps	-292864(%r9,%rsi), %zmm8
	vmovaps	-256000(%r9,%rsi), %zmm5
	vmovaps	-243712(%r9,%rsi), %zmm4
	vmovaps	-233472(%r9,%rsi), %zmm6
	incq	%rcx
	vaddps	-206848(%r9,%rsi), %zmm9, %zmm9
	vaddps	-194560(%r9,%rsi), %zmm10, %zmm10
	vaddps	-219136(%r9,%rsi), %zmm8, %zmm8
	vaddps	-159744(%r9,%rsi), %zmm6, %zmm6
	vaddps	-133120(%r9,%rsi), %zmm9, %zmm9
	vaddps	-120832(%r9,%rsi), %zmm10, %zmm10
	vaddps	-145408(%r9,%rsi), %zmm8, %zmm8
	vaddps	-86016(%r9,%rsi), %zmm6, %zmm6
	vaddps	-59392(%r9,%rsi), %zmm9, %zmm9
	vaddps	-47104(%r9,%rsi), %zmm10, %zmm10
	vaddps	-71680(%r9,%rsi), %zmm8, %zmm8
	vaddps	-12288(%r9,%rsi), %zmm6, %zmm6
	vaddps	%zmm10, %zmm9, %zmm12
	vsubps	%zmm10, %zmm9, %zmm9
	vmovaps	%zmm29, %zmm10
	vaddps	%zmm12, %zmm8, %zmm11
	vaddps	-182272(%r9,%rsi), %zmm5, %zmm8
	vmovaps	-278528(%r9,%rsi), %zmm5
	vaddps	-108544(%r9,%rsi), %zmm8, %zmm8
	vaddps	-34816(%r9,%rsi), %zmm8, %zmm13
	vaddps	-169984(%r9,%rsi), %zmm4, %zmm8
	vaddps	-96256(%r9,%rsi), %zmm8, %zmm8
	vaddps	-22528(%r9,%rsi), %zmm8, %zmm14
	vmovaps	%zmm7, %zmm8
	vaddps	%zmm14, %zmm13, %zmm4
	vsubps	%zmm14, %zmm13, %zmm13
	vmovaps	-266240(%r9,%rsi), %zmm14
	vaddps	-192512(%r9,%rsi), %zmm14, %zmm14
	vaddps	%zmm4, %zmm11, %zmm11
	vfmadd213ps	%zmm12, %zmm7, %zmm4
	vfmadd213ps	%zmm9, %zmm13, %zmm10
	vfmadd213ps	%zmm9, %zmm31, %zmm13
	vmovaps	-290816(%r9,%rsi), %zmm12
	vaddps	-217088(%r9,%rsi), %zmm12, %zmm12
	vaddps	-118784(%r9,%rsi), %zmm14, %zmm14
	vmovups	%zmm4, 128(%rsp)
	vmovaps	-231424(%r9,%rsi), %zmm4
	vaddps	-143360(%r9,%rsi), %zmm12, %zmm12
	vaddps	-45056(%r9,%rsi), %zmm14, %zmm14
	vaddps	-157696(%r9,%rsi), %zmm4, %zmm9
	vaddps	-69632(%r9,%rsi), %zmm12, %zmm12
	vaddps	-83968(%r9,%rsi), %zmm9, %zmm9
	vaddps	-10240(%r9,%rsi), %zmm9, %zmm9
	vaddps	%zmm9, %zmm13, %zmm4
	vaddps	-204800(%r9,%rsi), %zmm5, %zmm13
	vmovaps	-253952(%r9,%rsi), %zmm5
	vmovaps	%zmm31, %zmm9
	vaddps	-131072(%r9,%rsi), %zmm13, %zmm13
	vmovups	%zmm4, 192(%rsp)
	vmovaps	-241664(%r9,%rsi), %zmm4
	vaddps	-57344(%r9,%rsi), %zmm13, %zmm13
	vaddps	%zmm14, %zmm13, %zmm16
	vsubps	%zmm14, %zmm13, %zmm13
	vmovaps	%zmm29, %zmm14
	vaddps	%zmm16, %zmm12, %zmm15
	vaddps	-180224(%r9,%rsi), %zmm5, %zmm12
	vmovaps	-276480(%r9,%rsi), %zmm5
	vaddps	-106496(%r9,%rsi), %zmm12, %zmm12
	vaddps	-32768(%r9,%rsi), %zmm12, %zmm17
	vaddps	-167936(%r9,%rsi), %zmm4, %zmm12
	vmovaps	-229376(%r9,%rsi), %zmm4
	vaddps	-94208(%r9,%rsi), %zmm12, %zmm12
	vaddps	-20480(%r9,%rsi), %zmm12, %zmm18
	vaddps	%zmm18, %zmm17, %zmm12
	vsubps	%zmm18, %zmm17, %zmm17
	vmovaps	-264192(%r9,%rsi), %zmm18
	vaddps	-190464(%r9,%rsi), %zmm18, %zmm18
	vfmadd213ps	%zmm13, %zmm17, %zmm14
	vfmadd213ps	%zmm13, %zmm31, %zmm17
	vaddps	-155648(%r9,%rsi), %zmm4, %zmm13
	vaddps	%zmm12, %zmm15, %zmm15
	vfmadd213ps	%zmm16, %zmm7, %zmm12
	vmovaps	-288768(%r9,%rsi), %zmm16
	vmovaps	-239616(%r9,%rsi), %zmm4
	vaddps	-215040(%r9,%rsi), %zmm16, %zmm16
	vaddps	-116736(%r9,%rsi), %zmm18, %zmm18
	vaddps	-81920(%r9,%rsi), %zmm13, %zmm13
	vaddps	-141312(%r9,%rsi), %zmm16, %zmm16
	vaddps	-43008(%r9,%rsi), %zmm18, %zmm18
	vaddps	-8192(%r9,%rsi), %zmm13, %zmm13
	vaddps	-67584(%r9,%rsi), %zmm16, %zmm16
	vaddps	%zmm13, %zmm17, %zmm13
	vaddps	-202752(%r9,%rsi), %zmm5, %zmm17
	vmovaps	-251904(%r9,%rsi), %zmm5
	vaddps	-129024(%r9,%rsi), %zmm17, %zmm17
	vaddps	-55296(%r9,%rsi), %zmm17, %zmm17
	vaddps	%zmm18, %zmm17, %zmm20
	vsubps	%zmm18, %zmm17, %zmm17
	vmovaps	%zmm29, %zmm18
	vaddps	%zmm20, %zmm16, %zmm19
	vaddps	-178176(%r9,%rsi), %zmm5, %zmm16
	vmovaps	-274432(%r9,%rsi), %zmm5
	vaddps	-104448(%r9,%rsi), %zmm16, %zmm16
	vaddps	-30720(%r9,%rsi), %zmm16, %zmm21
	vaddps	-165888(%r9,%rsi), %zmm4, %zmm16
	vmovaps	-227328(%r9,%rsi), %zmm4
	vaddps	-92160(%r9,%rsi), %zmm16, %zmm16
	vaddps	-18432(%r9,%rsi), %zmm16, %zmm22
	vaddps	%zmm22, %zmm21, %zmm16
	vsubps	%zmm22, %zmm21, %zmm21
	vmovaps	-262144(%r9,%rsi), %zmm22
	vaddps	-188416(%r9,%rsi), %zmm22, %zmm22
	vfmadd213ps	%zmm17, %zmm21, %zmm18
	vfmadd213ps	%zmm17, %zmm31, %zmm21
	vaddps	-153600(%r9,%rsi), %zmm4, %zmm17
	vaddps	%zmm16, %zmm19, %zmm19
	vfmadd213ps	%zmm20, %zmm7, %zmm16
	vmovaps	-286720(%r9,%rsi), %zmm20
	vmovaps	-237568(%r9,%rsi), %zmm4
	vaddps	-212992(%r9,%rsi), %zmm20, %zmm20
	vaddps	-114688(%r9,%rsi), %zmm22, %zmm22
	vaddps	-79872(%r9,%rsi), %zmm17, %zmm17
	vaddps	-139264(%r9,%rsi), %zmm20, %zmm20
	vaddps	-40960(%r9,%rsi), %zmm22, %zmm22
	vaddps	-6144(%r9,%rsi), %zmm17, %zmm17
	vaddps	-65536(%r9,%rsi), %zmm20, %zmm20
	vaddps	%zmm17, %zmm21, %zmm17
	vaddps	-200704(%r9,%rsi), %zmm5, %zmm21
	vmovaps	-249856(%r9,%rsi), %zmm5
	vaddps	-126976(%r9,%rsi), %zmm21, %zmm21
	vaddps	-53248(%r9,%rsi), %zmm21, %zmm21
	vaddps	%zmm22, %zmm21, %zmm24
	vsubps	%zmm22, %zmm21, %zmm21
	vmovaps	%zmm29, %zmm22
	vaddps	%zmm24, %zmm20, %zmm23
	vaddps	-176128(%r9,%rsi), %zmm5, %zmm20
	vmovaps	-272384(%r9,%rsi), %zmm5
	vaddps	-102400(%r9,%rsi), %zmm20, %zmm20
	vaddps	-28672(%r9,%rsi), %zmm20, %zmm25
	vaddps	-163840(%r9,%rsi), %zmm4, %zmm20
	vmovaps	-225280(%r9,%rsi), %zmm4
	vaddps	-90112(%r9,%rsi), %zmm20, %zmm20
	vaddps	-16384(%r9,%rsi), %zmm20, %zmm26
	vaddps	%zmm26, %zmm25, %zmm20
	vsubps	%zmm26, %zmm25, %zmm25
	vmovaps	-260096(%r9,%rsi), %zmm26
	vaddps	-186368(%r9,%rsi), %zmm26, %zmm26
	vfmadd213ps	%zmm21, %zmm25, %zmm22
	vfmadd213ps	%zmm21, %zmm31, %zmm25
	vaddps	-151552(%r9,%rsi), %zmm4, %zmm21
	vaddps	%zmm20, %zmm23, %zmm23
	vfmadd213ps	%zmm24, %zmm7, %zmm20
	vmovaps	-284672(%r9,%rsi), %zmm24
	vmovaps	-235520(%r9,%rsi), %zmm4
	vmovaps	%zmm29, %zmm7
	vaddps	-210944(%r9,%rsi), %zmm24, %zmm24
	vaddps	-112640(%r9,%rsi), %zmm26, %zmm26
	vaddps	-77824(%r9,%rsi), %zmm21, %zmm21
	vaddps	-137216(%r9,%rsi), %zmm24, %zmm24
	vaddps	-38912(%r9,%rsi), %zmm26, %zmm26
	vaddps	-4096(%r9,%rsi), %zmm21, %zmm21
	vaddps	-63488(%r9,%rsi), %zmm24, %zmm24
	vaddps	%zmm21, %zmm25, %zmm21
	vaddps	-198656(%r9,%rsi), %zmm5, %zmm25
	vmovaps	-247808(%r9,%rsi), %zmm5
	vaddps	-124928(%r9,%rsi), %zmm25, %zmm25
	vaddps	-51200(%r9,%rsi), %zmm25, %zmm25
	vaddps	%zmm26, %zmm25, %zmm27
	vsubps	%zmm26, %zmm25, %zmm25
	vmovaps	%zmm7, %zmm26
	vaddps	%zmm27, %zmm24, %zmm28
	vaddps	-174080(%r9,%rsi), %zmm5, %zmm24
	vmovaps	-245760(%r9,%rsi), %zmm5
	vaddps	-172032(%r9,%rsi), %zmm5, %zmm5
	vaddps	-100352(%r9,%rsi), %zmm24, %zmm24
	vaddps	-98304(%r9,%rsi), %zmm5, %zmm5
	vaddps	-26624(%r9,%rsi), %zmm24, %zmm29
	vaddps	-161792(%r9,%rsi), %zmm4, %zmm24
	vmovaps	-223232(%r9,%rsi), %zmm4
	vaddps	-24576(%r9,%rsi), %zmm5, %zmm5
	vaddps	-88064(%r9,%rsi), %zmm24, %zmm24
	vaddps	-14336(%r9,%rsi), %zmm24, %zmm30
	vaddps	%zmm30, %zmm29, %zmm24
	vsubps	%zmm30, %zmm29, %zmm29
	vmovaps	-258048(%r9,%rsi), %zmm30
	vaddps	-184320(%r9,%rsi), %zmm30, %zmm30
	vfmadd213ps	%zmm25, %zmm29, %zmm26
	vfmadd213ps	%zmm25, %zmm31, %zmm29
	vaddps	-149504(%r9,%rsi), %zmm4, %zmm25
	vmovaps	-270336(%r9,%rsi), %zmm4
	vaddps	%zmm24, %zmm28, %zmm28
	vfmadd213ps	%zmm27, %zmm8, %zmm24
	vmovaps	-282624(%r9,%rsi), %zmm27
	vaddps	-110592(%r9,%rsi), %zmm30, %zmm30
	vaddps	-208896(%r9,%rsi), %zmm27, %zmm27
	vaddps	-75776(%r9,%rsi), %zmm25, %zmm25
	vaddps	-36864(%r9,%rsi), %zmm30, %zmm30
	vaddps	-135168(%r9,%rsi), %zmm27, %zmm27
	vaddps	-2048(%r9,%rsi), %zmm25, %zmm25
	vaddps	-61440(%r9,%rsi), %zmm27, %zmm27
	vaddps	%zmm25, %zmm29, %zmm25
	vaddps	-196608(%r9,%rsi), %zmm4, %zmm29
	vaddps	%zmm6, %zmm5, %zmm4
	vsubps	%zmm6, %zmm5, %zmm5
	vmovaps	%zmm7, %zmm6
	vaddps	-122880(%r9,%rsi), %zmm29, %zmm29
	vaddps	-49152(%r9,%rsi), %zmm29, %zmm29
	vaddps	%zmm30, %zmm29, %zmm31
	vsubps	%zmm30, %zmm29, %zmm29
	vmovaps	-221184(%r9,%rsi), %zmm30
	vfmadd213ps	%zmm29, %zmm5, %zmm6
	vfmadd213ps	%zmm29, %zmm9, %zmm5
	vaddps	-147456(%r9,%rsi), %zmm30, %zmm29
	vaddps	%zmm31, %zmm27, %zmm27
	vaddps	%zmm28, %zmm23, %zmm30
	vaddps	-73728(%r9,%rsi), %zmm29, %zmm29
	vaddps	%zmm4, %zmm27, %zmm27
	vfmadd213ps	%zmm31, %zmm8, %zmm4
	vmovaps	%zmm9, %zmm31
	vaddps	(%r9,%rsi), %zmm29, %zmm29
	vaddps	%zmm29, %zmm5, %zmm5
	vaddps	%zmm19, %zmm15, %zmm29
	vsubps	%zmm19, %zmm15, %zmm15
	vsubps	%zmm28, %zmm23, %zmm19
	vmovaps	%zmm7, %zmm23
	vxorps	%xmm28, %xmm28, %xmm28
	vfmadd213ps	%zmm15, %zmm19, %zmm23
	vfmadd213ps	%zmm15, %zmm9, %zmm19
	vaddps	%zmm29, %zmm11, %zmm11
	vaddps	%zmm30, %zmm11, %zmm11
	vfmadd213ps	%zmm29, %zmm8, %zmm30
	vmovaps	%zmm7, %zmm29
	vmovaps	%zmm8, %zmm7
	vaddps	%zmm27, %zmm19, %zmm15
	vaddps	%zmm18, %zmm14, %zmm19
	vsubps	%zmm18, %zmm14, %zmm14
	vaddps	%zmm26, %zmm22, %zmm27
	vsubps	%zmm26, %zmm22, %zmm18
	vmovaps	%zmm29, %zmm22
	vmaxps	%zmm11, %zmm28, %zmm11
	vaddps	%zmm19, %zmm10, %zmm10
	vfmadd213ps	%zmm14, %zmm18, %zmm22
	vfmadd213ps	%zmm14, %zmm9, %zmm18
	vaddps	%zmm16, %zmm12, %zmm14
	vsubps	%zmm16, %zmm12, %zmm12
	vsubps	%zmm24, %zmm20, %zmm16
	vmovups	%zmm11, -2880(%rdi,%rsi,4)
	vmaxps	%zmm23, %zmm28, %zmm11
	vaddps	%zmm27, %zmm10, %zmm10
	vfmadd213ps	%zmm19, %zmm8, %zmm27
	vaddps	128(%rsp), %zmm14, %zmm19
	vmovups	%zmm11, -2816(%rdi,%rsi,4)
	vmaxps	%zmm30, %zmm28, %zmm11
	vaddps	%zmm6, %zmm18, %zmm6
	vaddps	%zmm24, %zmm20, %zmm18
	vmovups	%zmm11, -2752(%rdi,%rsi,4)
	vmaxps	%zmm15, %zmm28, %zmm11
	vmaxps	%zmm10, %zmm28, %zmm10
	vmovups	%zmm11, -2688(%rdi,%rsi,4)
	vmaxps	%zmm6, %zmm28, %zmm6
	vmovups	%zmm10, -1984(%rdi,%rsi,4)
	vmaxps	%zmm22, %zmm28, %zmm10
	vmovups	%zmm10, -1920(%rdi,%rsi,4)
	vmaxps	%zmm27, %zmm28, %zmm10
	vmovups	%zmm10, -1856(%rdi,%rsi,4)
	vmovups	%zmm6, -1792(%rdi,%rsi,4)
	vaddps	%zmm18, %zmm19, %zmm8
	vmovaps	%zmm29, %zmm19
	vfmadd213ps	%zmm12, %zmm16, %zmm19
	vfmadd213ps	%zmm12, %zmm9, %zmm16
	vaddps	%zmm17, %zmm13, %zmm12
	vaddps	192(%rsp), %zmm12, %zmm9
	vsubps	%zmm17, %zmm13, %zmm13
	vfmadd213ps	%zmm14, %zmm7, %zmm18
	vaddps	%zmm25, %zmm21, %zmm14
	vmovaps	%zmm29, %zmm17
	vmaxps	%zmm8, %zmm28, %zmm6
	vaddps	%zmm4, %zmm16, %zmm4
	vsubps	%zmm25, %zmm21, %zmm16
	vmaxps	%zmm19, %zmm28, %zmm10
	vmaxps	%zmm18, %zmm28, %zmm8
	vmovups	%zmm6, -1088(%rdi,%rsi,4)
	vmovups	%zmm10, -1024(%rdi,%rsi,4)
	vmovups	%zmm8, -960(%rdi,%rsi,4)
	vfmadd213ps	%zmm13, %zmm16, %zmm17
	vfmadd213ps	%zmm13, %zmm31, %zmm16
	vmaxps	%zmm4, %zmm28, %zmm4
	vmovups	%zmm4, -896(%rdi,%rsi,4)
	vaddps	%zmm14, %zmm9, %zmm9
	vfmadd213ps	%zmm12, %zmm7, %zmm14
	vaddps	%zmm5, %zmm16, %zmm5
	vmaxps	%zmm17, %zmm28, %zmm8
	vmaxps	%zmm9, %zmm28, %zmm6
	vmaxps	%zmm5, %zmm28, %zmm5
	vmovups	%zmm6, -192(%rdi,%rsi,4)
	vmaxps	%zmm14, %zmm28, %zmm6
	vmovups	%zmm8, -128(%rdi,%rsi,4)
	vmovups	%zmm6, -64(%rdi,%rsi,4)
	vmovups	%zmm5, (%rdi,%rsi,4)
	addq	$64, %rsi
	cmpq	$2, %rcx
	jb	.LBB3_24
	vmovaps	37056(%r11), %zmm8
	vmovaps	12480(%r11), %zmm5
	vmovaps	24768(%r11), %zmm6
	vmovaps	192(%r11), %zmm4
	vmovaps	49344(%r11), %zmm11
	vmovaps	45248(%r11), %zmm25
	vmovaps	57536(%r11), %zmm26
	addq	$3584, %rdi
	addq	$256, %r9
	vaddps	110784(%r11), %zmm8, %zmm8
	vaddps	86208(%r11), %zmm5, %zmm5
	vaddps	98496(%r11), %zmm6, %zmm6
	vaddps	73920(%r11), %zmm4, %zmm4
	vaddps	118976(%r11), %zmm25, %zmm25
	vaddps	131264(%r11), %zmm26, %zmm26
	vaddps	184512(%r11), %zmm8, %zmm8
	vaddps	159936(%r11), %zmm5, %zmm5
	vaddps	172224(%r11), %zmm6, %zmm6
	vaddps	147648(%r11), %zmm4, %zmm4
	vaddps	192704(%r11), %zmm25, %zmm25
	vaddps	204992(%r11), %zmm26, %zmm26
	vaddps	258240(%r11), %zmm8, %zmm10
	vaddps	123072(%r11), %zmm11, %zmm8
	vaddps	233664(%r11), %zmm5, %zmm5
	vaddps	245952(%r11), %zmm6, %zmm6
	vaddps	221376(%r11), %zmm4, %zmm4
	vaddps	266432(%r11), %zmm25, %zmm25
	vaddps	278720(%r11), %zmm26, %zmm26
	vaddps	196800(%r11), %zmm8, %zmm8
	vaddps	270528(%r11), %zmm8, %zmm12
	vaddps	%zmm6, %zmm5, %zmm9
	vsubps	%zmm6, %zmm5, %zmm5
	vmovaps	61632(%r11), %zmm6
	vaddps	%zmm26, %zmm25, %zmm27
	vsubps	%zmm26, %zmm25, %zmm30
	vmovaps	%zmm29, %zmm25
	vaddps	%zmm9, %zmm4, %zmm4
	vaddps	%zmm12, %zmm10, %zmm8
	vsubps	%zmm12, %zmm10, %zmm12
	vmovaps	%zmm29, %zmm10
	vaddps	%zmm8, %zmm4, %zmm11
	vaddps	135360(%r11), %zmm6, %zmm4
	vfmadd213ps	%zmm5, %zmm12, %zmm10
	vfmadd213ps	%zmm5, %zmm31, %zmm12
	vfmadd213ps	%zmm9, %zmm7, %zmm8
	vmovaps	14528(%r11), %zmm6
	vaddps	88256(%r11), %zmm6, %zmm5
	vmovaps	26816(%r11), %zmm6
	vaddps	100544(%r11), %zmm6, %zmm6
	vaddps	209088(%r11), %zmm4, %zmm4
	vaddps	161984(%r11), %zmm5, %zmm5
	vaddps	174272(%r11), %zmm6, %zmm6
	vaddps	282816(%r11), %zmm4, %zmm4
	vaddps	235712(%r11), %zmm5, %zmm5
	vaddps	248000(%r11), %zmm6, %zmm6
	vaddps	%zmm4, %zmm12, %zmm9
	vmovaps	39104(%r11), %zmm12
	vmovaps	2240(%r11), %zmm4
	vaddps	112832(%r11), %zmm12, %zmm12
	vaddps	75968(%r11), %zmm4, %zmm4
	vaddps	%zmm6, %zmm5, %zmm13
	vsubps	%zmm6, %zmm5, %zmm5
	vmovaps	63680(%r11), %zmm6
	vaddps	186560(%r11), %zmm12, %zmm12
	vaddps	149696(%r11), %zmm4, %zmm4
	vaddps	260288(%r11), %zmm12, %zmm14
	vmovaps	51392(%r11), %zmm12
	vaddps	223424(%r11), %zmm4, %zmm4
	vaddps	125120(%r11), %zmm12, %zmm12
	vaddps	198848(%r11), %zmm12, %zmm12
	vaddps	272576(%r11), %zmm12, %zmm16
	vaddps	%zmm13, %zmm4, %zmm4
	vaddps	%zmm16, %zmm14, %zmm12
	vsubps	%zmm16, %zmm14, %zmm16
	vmovaps	%zmm29, %zmm14
	vaddps	%zmm12, %zmm4, %zmm15
	vaddps	137408(%r11), %zmm6, %zmm4
	vfmadd213ps	%zmm5, %zmm16, %zmm14
	vfmadd213ps	%zmm5, %zmm31, %zmm16
	vfmadd213ps	%zmm13, %zmm7, %zmm12
	vmovaps	16576(%r11), %zmm6
	vaddps	90304(%r11), %zmm6, %zmm5
	vmovaps	28864(%r11), %zmm6
	vaddps	102592(%r11), %zmm6, %zmm6
	vaddps	211136(%r11), %zmm4, %zmm4
	vaddps	164032(%r11), %zmm5, %zmm5
	vaddps	176320(%r11), %zmm6, %zmm6
	vaddps	284864(%r11), %zmm4, %zmm4
	vaddps	237760(%r11), %zmm5, %zmm5
	vaddps	250048(%r11), %zmm6, %zmm6
	vaddps	%zmm4, %zmm16, %zmm13
	vmovaps	41152(%r11), %zmm16
	vmovaps	4288(%r11), %zmm4
	vaddps	114880(%r11), %zmm16, %zmm16
	vaddps	78016(%r11), %zmm4, %zmm4
	vaddps	%zmm6, %zmm5, %zmm17
	vsubps	%zmm6, %zmm5, %zmm5
	vmovaps	65728(%r11), %zmm6
	vaddps	188608(%r11), %zmm16, %zmm16
	vaddps	151744(%r11), %zmm4, %zmm4
	vaddps	262336(%r11), %zmm16, %zmm18
	vmovaps	53440(%r11), %zmm16
	vaddps	225472(%r11), %zmm4, %zmm4
	vaddps	127168(%r11), %zmm16, %zmm16
	vaddps	200896(%r11), %zmm16, %zmm16
	vaddps	274624(%r11), %zmm16, %zmm20
	vaddps	%zmm17, %zmm4, %zmm4
	vaddps	%zmm20, %zmm18, %zmm16
	vsubps	%zmm20, %zmm18, %zmm20
	vmovaps	%zmm29, %zmm18
	vaddps	%zmm16, %zmm4, %zmm19
	vaddps	139456(%r11), %zmm6, %zmm4
	vfmadd213ps	%zmm5, %zmm20, %zmm18
	vfmadd213ps	%zmm5, %zmm31, %zmm20
	vfmadd213ps	%zmm17, %zmm7, %zmm16
	vmovaps	18624(%r11), %zmm6
	vaddps	92352(%r11), %zmm6, %zmm5
	vmovaps	30912(%r11), %zmm6
	vaddps	104640(%r11), %zmm6, %zmm6
	vaddps	213184(%r11), %zmm4, %zmm4
	vaddps	%zmm19, %zmm15, %zmm26
	vsubps	%zmm19, %zmm15, %zmm15
	vaddps	166080(%r11), %zmm5, %zmm5
	vaddps	178368(%r11), %zmm6, %zmm6
	vaddps	286912(%r11), %zmm4, %zmm4
	vaddps	%zmm26, %zmm11, %zmm11
	vaddps	239808(%r11), %zmm5, %zmm5
	vaddps	252096(%r11), %zmm6, %zmm6
	vaddps	%zmm4, %zmm20, %zmm17
	vmovaps	43200(%r11), %zmm20
	vmovaps	6336(%r11), %zmm4
	vaddps	116928(%r11), %zmm20, %zmm20
	vaddps	80064(%r11), %zmm4, %zmm4
	vaddps	%zmm6, %zmm5, %zmm21
	vsubps	%zmm6, %zmm5, %zmm5
	vaddps	190656(%r11), %zmm20, %zmm20
	vaddps	153792(%r11), %zmm4, %zmm4
	vaddps	264384(%r11), %zmm20, %zmm22
	vmovaps	55488(%r11), %zmm20
	vaddps	227520(%r11), %zmm4, %zmm4
	vaddps	129216(%r11), %zmm20, %zmm20
	vaddps	202944(%r11), %zmm20, %zmm20
	vaddps	276672(%r11), %zmm20, %zmm23
	vaddps	%zmm21, %zmm4, %zmm4
	vaddps	%zmm23, %zmm22, %zmm20
	vsubps	%zmm23, %zmm22, %zmm24
	vmovaps	%zmm29, %zmm22
	vmovaps	20672(%r11), %zmm23
	vaddps	94400(%r11), %zmm23, %zmm6
	vmovaps	32960(%r11), %zmm23
	vaddps	106688(%r11), %zmm23, %zmm23
	vaddps	%zmm20, %zmm4, %zmm4
	vfmadd213ps	%zmm21, %zmm7, %zmm20
	vmovaps	67776(%r11), %zmm21
	vfmadd213ps	%zmm5, %zmm24, %zmm22
	vfmadd213ps	%zmm5, %zmm31, %zmm24
	vaddps	141504(%r11), %zmm21, %zmm5
	vaddps	168128(%r11), %zmm6, %zmm6
	vaddps	180416(%r11), %zmm23, %zmm23
	vaddps	215232(%r11), %zmm5, %zmm5
	vaddps	241856(%r11), %zmm6, %zmm6
	vaddps	254144(%r11), %zmm23, %zmm23
	vaddps	288960(%r11), %zmm5, %zmm5
	vaddps	%zmm5, %zmm24, %zmm21
	vmovaps	8384(%r11), %zmm5
	vaddps	%zmm23, %zmm6, %zmm24
	vsubps	%zmm23, %zmm6, %zmm6
	vaddps	82112(%r11), %zmm5, %zmm5
	vfmadd213ps	%zmm6, %zmm30, %zmm25
	vfmadd213ps	%zmm6, %zmm31, %zmm30
	vaddps	155840(%r11), %zmm5, %zmm5
	vaddps	229568(%r11), %zmm5, %zmm5
	vsubps	%zmm25, %zmm22, %zmm19
	vaddps	%zmm24, %zmm5, %zmm5
	vaddps	%zmm27, %zmm5, %zmm5
	vfmadd213ps	%zmm24, %zmm7, %zmm27
	vmovaps	69824(%r11), %zmm24
	vaddps	143552(%r11), %zmm24, %zmm6
	vaddps	%zmm5, %zmm4, %zmm24
	vsubps	%zmm5, %zmm4, %zmm4
	vaddps	217280(%r11), %zmm6, %zmm6
	vfmadd213ps	%zmm15, %zmm29, %zmm4
	vaddps	%zmm18, %zmm14, %zmm15
	vsubps	%zmm18, %zmm14, %zmm14
	vaddps	%zmm16, %zmm12, %zmm18
	vsubps	%zmm16, %zmm12, %zmm12
	vaddps	%zmm17, %zmm13, %zmm16
	vaddps	%zmm24, %zmm11, %zmm11
	vsubps	%zmm17, %zmm13, %zmm13
	vaddps	291008(%r11), %zmm6, %zmm6
	vaddps	%zmm15, %zmm10, %zmm5
	vaddps	%zmm25, %zmm22, %zmm15
	vaddps	%zmm18, %zmm8, %zmm8
	vsubps	%zmm27, %zmm20, %zmm18
	vfmadd213ps	%zmm14, %zmm29, %zmm19
	vaddps	%zmm16, %zmm9, %zmm9
	vmaxps	%zmm11, %zmm28, %zmm11
	vmaxps	%zmm4, %zmm28, %zmm4
	vmovups	%zmm11, 768(%r15,%r12)
	vaddps	%zmm15, %zmm5, %zmm5
	vaddps	%zmm27, %zmm20, %zmm15
	vfmadd213ps	%zmm12, %zmm29, %zmm18
	vmovups	%zmm4, 832(%r15,%r12)
	vaddps	%zmm15, %zmm8, %zmm8
	vmaxps	%zmm5, %zmm28, %zmm10
	vmaxps	%zmm19, %zmm28, %zmm5
	vaddps	%zmm6, %zmm30, %zmm6
	vmovups	%zmm10, 1664(%r15,%r12)
	vmovups	%zmm5, 1728(%r15,%r12)
	vmaxps	%zmm18, %zmm28, %zmm5
	vmaxps	%zmm8, %zmm28, %zmm8
	vaddps	%zmm6, %zmm21, %zmm15
	vsubps	%zmm6, %zmm21, %zmm6
	vmovups	%zmm8, 2560(%r15,%r12)
	vmovups	%zmm5, 2624(%r15,%r12)
	vfmadd213ps	%zmm13, %zmm29, %zmm6
	vaddps	%zmm15, %zmm9, %zmm9
	vmaxps	%zmm9, %zmm28, %zmm8
	vmaxps	%zmm6, %zmm28, %zmm5
	vmovups	%zmm8, 3456(%r15,%r12)
	vmovups	%zmm5, 3520(%r15,%r12)
	cmpq	$2, %r8
	leaq	1(%r8), %r8
	jb	.LBB3_23
	movq	$-1, %rsi
	xorl	%ecx, %ecx
	jmp	.LBB3_27
	.p2align	4
.LBB3_32:
	addq	$64, %rcx
	cmpq	$3, %rsi
	jae	.LBB3_33
.LBB3_27:
	vmovaps	-268288(%r13,%rcx), %zmm5
	vmovaps	-256000(%r13,%rcx), %zmm6
	vmovaps	-280576(%r13,%rcx), %zmm4
	vmovaps	-243712(%r13,%rcx), %zmm9
	vmovaps	-229376(%r13,%rcx), %zmm11
	vmovaps	-239616(%r13,%rcx), %zmm13
	vmovaps	-237568(%r13,%rcx), %zmm15
	vmovaps	-235520(%r13,%rcx), %zmm17
	incq	%rsi
	vaddps	-194560(%r13,%rcx), %zmm5, %zmm5
	vaddps	-182272(%r13,%rcx), %zmm6, %zmm6
	vaddps	-206848(%r13,%rcx), %zmm4, %zmm4
	vaddps	-155648(%r13,%rcx), %zmm11, %zmm11
	vaddps	-120832(%r13,%rcx), %zmm5, %zmm5
	vaddps	-108544(%r13,%rcx), %zmm6, %zmm6
	vaddps	-133120(%r13,%rcx), %zmm4, %zmm4
	vaddps	-81920(%r13,%rcx), %zmm11, %zmm11
	vaddps	-47104(%r13,%rcx), %zmm5, %zmm5
	vaddps	-34816(%r13,%rcx), %zmm6, %zmm6
	vaddps	-59392(%r13,%rcx), %zmm4, %zmm4
	vaddps	-8192(%r13,%rcx), %zmm11, %zmm12
	vaddps	%zmm6, %zmm5, %zmm8
	vsubps	%zmm6, %zmm5, %zmm5
	vaddps	%zmm8, %zmm4, %zmm4
	vaddps	-169984(%r13,%rcx), %zmm9, %zmm8
	vmovaps	-231424(%r13,%rcx), %zmm9
	vaddps	-157696(%r13,%rcx), %zmm9, %zmm9
	vaddps	-96256(%r13,%rcx), %zmm8, %zmm8
	vaddps	-83968(%r13,%rcx), %zmm9, %zmm9
	vaddps	-22528(%r13,%rcx), %zmm8, %zmm8
	vaddps	-10240(%r13,%rcx), %zmm9, %zmm10
	vaddps	%zmm10, %zmm8, %zmm9
	vsubps	%zmm10, %zmm8, %zmm8
	vmovaps	-253952(%r13,%rcx), %zmm10
	vaddps	-180224(%r13,%rcx), %zmm10, %zmm6
	vfmadd213ps	%zmm5, %zmm29, %zmm8
	vmovaps	-266240(%r13,%rcx), %zmm5
	vaddps	%zmm9, %zmm4, %zmm9
	vmovaps	-278528(%r13,%rcx), %zmm4
	vaddps	-192512(%r13,%rcx), %zmm5, %zmm5
	vaddps	-204800(%r13,%rcx), %zmm4, %zmm4
	vaddps	-106496(%r13,%rcx), %zmm6, %zmm6
	vaddps	-118784(%r13,%rcx), %zmm5, %zmm5
	vaddps	-131072(%r13,%rcx), %zmm4, %zmm4
	vaddps	-32768(%r13,%rcx), %zmm6, %zmm6
	vaddps	-45056(%r13,%rcx), %zmm5, %zmm5
	vaddps	-57344(%r13,%rcx), %zmm4, %zmm4
	vaddps	%zmm6, %zmm5, %zmm10
	vsubps	%zmm6, %zmm5, %zmm6
	vmovaps	-264192(%r13,%rcx), %zmm5
	vaddps	-190464(%r13,%rcx), %zmm5, %zmm5
	vaddps	%zmm10, %zmm4, %zmm4
	vmovaps	-241664(%r13,%rcx), %zmm10
	vaddps	-167936(%r13,%rcx), %zmm10, %zmm10
	vaddps	-116736(%r13,%rcx), %zmm5, %zmm5
	vaddps	-94208(%r13,%rcx), %zmm10, %zmm10
	vaddps	-43008(%r13,%rcx), %zmm5, %zmm5
	vaddps	-20480(%r13,%rcx), %zmm10, %zmm10
	vaddps	%zmm12, %zmm10, %zmm11
	vsubps	%zmm12, %zmm10, %zmm10
	vmovaps	-251904(%r13,%rcx), %zmm12
	vfmadd213ps	%zmm6, %zmm29, %zmm10
	vaddps	-178176(%r13,%rcx), %zmm12, %zmm6
	vaddps	%zmm11, %zmm4, %zmm11
	vmovaps	-276480(%r13,%rcx), %zmm4
	vaddps	-202752(%r13,%rcx), %zmm4, %zmm4
	vaddps	-104448(%r13,%rcx), %zmm6, %zmm6
	vaddps	-129024(%r13,%rcx), %zmm4, %zmm4
	vaddps	-30720(%r13,%rcx), %zmm6, %zmm6
	vaddps	-55296(%r13,%rcx), %zmm4, %zmm4
	vaddps	%zmm6, %zmm5, %zmm12
	vsubps	%zmm6, %zmm5, %zmm5
	vaddps	%zmm12, %zmm4, %zmm4
	vaddps	-165888(%r13,%rcx), %zmm13, %zmm12
	vmovaps	-227328(%r13,%rcx), %zmm13
	vaddps	-153600(%r13,%rcx), %zmm13, %zmm13
	vaddps	-92160(%r13,%rcx), %zmm12, %zmm12
	vaddps	-79872(%r13,%rcx), %zmm13, %zmm13
	vaddps	-18432(%r13,%rcx), %zmm12, %zmm12
	vaddps	-6144(%r13,%rcx), %zmm13, %zmm14
	vaddps	%zmm14, %zmm12, %zmm13
	vsubps	%zmm14, %zmm12, %zmm12
	vmovaps	-249856(%r13,%rcx), %zmm14
	vaddps	-176128(%r13,%rcx), %zmm14, %zmm6
	vfmadd213ps	%zmm5, %zmm29, %zmm12
	vmovaps	-262144(%r13,%rcx), %zmm5
	vaddps	%zmm13, %zmm4, %zmm13
	vmovaps	-274432(%r13,%rcx), %zmm4
	vaddps	-188416(%r13,%rcx), %zmm5, %zmm5
	vaddps	-200704(%r13,%rcx), %zmm4, %zmm4
	vaddps	-102400(%r13,%rcx), %zmm6, %zmm6
	vaddps	%zmm13, %zmm11, %zmm19
	vsubps	%zmm13, %zmm11, %zmm21
	vaddps	-114688(%r13,%rcx), %zmm5, %zmm5
	vaddps	-126976(%r13,%rcx), %zmm4, %zmm4
	vaddps	-28672(%r13,%rcx), %zmm6, %zmm6
	vaddps	%zmm12, %zmm10, %zmm11
	vaddps	%zmm19, %zmm9, %zmm9
	vaddps	-40960(%r13,%rcx), %zmm5, %zmm5
	vaddps	-53248(%r13,%rcx), %zmm4, %zmm4
	vaddps	%zmm6, %zmm5, %zmm14
	vsubps	%zmm6, %zmm5, %zmm5
	vaddps	%zmm14, %zmm4, %zmm4
	vaddps	-163840(%r13,%rcx), %zmm15, %zmm14
	vmovaps	-225280(%r13,%rcx), %zmm15
	vaddps	-151552(%r13,%rcx), %zmm15, %zmm15
	vaddps	-90112(%r13,%rcx), %zmm14, %zmm14
	vaddps	-77824(%r13,%rcx), %zmm15, %zmm15
	vaddps	-16384(%r13,%rcx), %zmm14, %zmm14
	vaddps	-4096(%r13,%rcx), %zmm15, %zmm15
	vaddps	%zmm15, %zmm14, %zmm16
	vsubps	%zmm15, %zmm14, %zmm6
	vmovaps	-260096(%r13,%rcx), %zmm14
	vaddps	-186368(%r13,%rcx), %zmm14, %zmm14
	vaddps	%zmm16, %zmm4, %zmm4
	vmovaps	-247808(%r13,%rcx), %zmm16
	vfmadd213ps	%zmm5, %zmm29, %zmm6
	vmovaps	-272384(%r13,%rcx), %zmm5
	vaddps	-174080(%r13,%rcx), %zmm16, %zmm15
	vaddps	-198656(%r13,%rcx), %zmm5, %zmm5
	vaddps	-112640(%r13,%rcx), %zmm14, %zmm14
	vaddps	-100352(%r13,%rcx), %zmm15, %zmm15
	vaddps	-124928(%r13,%rcx), %zmm5, %zmm5
	vaddps	-38912(%r13,%rcx), %zmm14, %zmm14
	vaddps	-26624(%r13,%rcx), %zmm15, %zmm15
	vaddps	-51200(%r13,%rcx), %zmm5, %zmm5
	vaddps	%zmm15, %zmm14, %zmm16
	vsubps	%zmm15, %zmm14, %zmm14
	vmovaps	-258048(%r13,%rcx), %zmm15
	vaddps	%zmm16, %zmm5, %zmm5
	vaddps	-161792(%r13,%rcx), %zmm17, %zmm16
	vmovaps	-223232(%r13,%rcx), %zmm17
	vaddps	-149504(%r13,%rcx), %zmm17, %zmm17
	vaddps	-88064(%r13,%rcx), %zmm16, %zmm16
	vaddps	-75776(%r13,%rcx), %zmm17, %zmm17
	vaddps	-14336(%r13,%rcx), %zmm16, %zmm16
	vaddps	-2048(%r13,%rcx), %zmm17, %zmm17
	vsubps	%zmm17, %zmm16, %zmm23
	vaddps	%zmm17, %zmm16, %zmm18
	vmovaps	-270336(%r13,%rcx), %zmm16
	vmovaps	-221184(%r13,%rcx), %zmm17
	vaddps	-147456(%r13,%rcx), %zmm17, %zmm17
	vfmadd213ps	%zmm14, %zmm29, %zmm23
	vaddps	-196608(%r13,%rcx), %zmm16, %zmm14
	vaddps	%zmm18, %zmm5, %zmm5
	vmovaps	-233472(%r13,%rcx), %zmm16
	vaddps	-159744(%r13,%rcx), %zmm16, %zmm16
	vaddps	-73728(%r13,%rcx), %zmm17, %zmm17
	vaddps	-122880(%r13,%rcx), %zmm14, %zmm14
	vaddps	%zmm5, %zmm4, %zmm20
	vsubps	%zmm5, %zmm4, %zmm22
	vaddps	%zmm11, %zmm8, %zmm5
	vsubps	%zmm12, %zmm10, %zmm8
	vmovaps	%zmm29, %zmm4
	vmovaps	%zmm29, %zmm10
	vaddps	-86016(%r13,%rcx), %zmm16, %zmm16
	vaddps	(%r13,%rcx), %zmm17, %zmm17
	vaddps	%zmm23, %zmm6, %zmm25
	vaddps	-49152(%r13,%rcx), %zmm14, %zmm18
	vaddps	-184320(%r13,%rcx), %zmm15, %zmm14
	vmovaps	-245760(%r13,%rcx), %zmm15
	vaddps	%zmm20, %zmm9, %zmm24
	vsubps	%zmm23, %zmm6, %zmm9
	vfmadd213ps	%zmm21, %zmm22, %zmm4
	vaddps	-172032(%r13,%rcx), %zmm15, %zmm15
	vaddps	-12288(%r13,%rcx), %zmm16, %zmm16
	vfmadd231ps	%zmm7, %zmm25, %zmm11
	vaddps	%zmm25, %zmm5, %zmm13
	vaddps	-110592(%r13,%rcx), %zmm14, %zmm14
	vfmadd213ps	%zmm8, %zmm9, %zmm10
	vmaxps	%zmm24, %zmm28, %zmm5
	vaddps	-98304(%r13,%rcx), %zmm15, %zmm15
	vmaxps	%zmm4, %zmm28, %zmm4
	vaddps	-36864(%r13,%rcx), %zmm14, %zmm14
	vaddps	-24576(%r13,%rcx), %zmm15, %zmm15
	vmovups	%zmm5, -1088(%rbp,%rcx,4)
	vmovups	%zmm4, -1024(%rbp,%rcx,4)
	cmpq	$2, %rsi
	ja	.LBB3_29
	vaddps	%zmm15, %zmm14, %zmm4
	vaddps	%zmm17, %zmm16, %zmm5
	vfmadd213ps	%zmm21, %zmm31, %zmm22
	vfmadd231ps	%zmm7, %zmm20, %zmm19
	vmaxps	%zmm10, %zmm28, %zmm6
	vaddps	%zmm4, %zmm18, %zmm4
	vaddps	%zmm5, %zmm4, %zmm4
	vmaxps	%zmm19, %zmm28, %zmm5
	vmovups	%zmm5, -960(%rbp,%rcx,4)
	vmaxps	%zmm13, %zmm28, %zmm5
	vaddps	%zmm4, %zmm22, %zmm4
	vmaxps	%zmm4, %zmm28, %zmm4
	vmovups	%zmm4, -896(%rbp,%rcx,4)
	vmovups	%zmm5, -192(%rbp,%rcx,4)
	vmaxps	%zmm11, %zmm28, %zmm5
	vmovups	%zmm6, -128(%rbp,%rcx,4)
	vmovups	%zmm5, -64(%rbp,%rcx,4)
	cmpq	$2, %rsi
	ja	.LBB3_32
	jmp	.LBB3_31
	.p2align	4
.LBB3_29:
	vmaxps	%zmm13, %zmm28, %zmm4
	vmaxps	%zmm10, %zmm28, %zmm5
	vmovups	%zmm4, -192(%rbp,%rcx,4)
	vmovups	%zmm5, -128(%rbp,%rcx,4)
	cmpq	$2, %rsi
	ja	.LBB3_32
.LBB3_31:
	vsubps	%zmm15, %zmm14, %zmm4
	vsubps	%zmm17, %zmm16, %zmm5
	vfmadd213ps	%zmm8, %zmm31, %zmm9
	vfmadd213ps	%zmm4, %zmm29, %zmm5
	vaddps	%zmm5, %zmm9, %zmm4
	vmaxps	%zmm4, %zmm28, %zmm4
	vmovups	%zmm4, (%rbp,%rcx,4)
	jmp	.LBB3_32
.LBB3_35:
	addq	$264, %rsp
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	vzeroupper
	retq
.Lfunc_end3:
	.size	rk_52a36e0747b77818780a.1.body, .Lfunc_end3-rk_52a36e0747b77818780a.1.body

	.globl	rk_52a36e0747b77818780a.1
	.p2align	4
	.type	rk_52a36e0747b77818780a.1,@function
rk_52a36e0747b77818780a.1:
	pushq	%rax
	movq	%rsi, %rax
	movq	%rdi, %rsi
	movq	(%rdx), %rdi
	movq	8(%rdx), %rcx
	movq	16(%rdx), %r8
	movq	24(%rdx), %r9
	movq	%rax, %rdx
	callq	rk_52a36e0747b77818780a.1.body
	popq	%rax
	retq
.Lfunc_end4:
	.size	rk_52a36e0747b77818780a.1, .Lfunc_end4-rk_52a36e0747b77818780a.1

	.section	".note.GNU-stack","",@progbits
