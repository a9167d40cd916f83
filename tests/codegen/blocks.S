/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of many kinds for the translator. Each is a function (%rdi: 64 KiB of scratch memory) that
 * keeps what the ABI keeps; a table lists them with where they run.
 */
#define RING0 1
#define RING3 2
#define IF_ASKED 4 /* only with -append rdpmc */

        .section .rodata
        .balign 8
        .globl block_table
block_table:
        .text
        .globl blocks_start, blocks_end
blocks_start:

        .macro block name, rings=RING0 + RING3
        .pushsection .rodata
        .quad \name, \rings
        .popsection
\name:
        .endm

        /* Integer arithmetic, each operand size */
        block add_sizes
        xor %eax, %eax
        add $1, %al
        add $2, %ax
        add $3, %eax
        add $4, %rax
        adc %rax, %rax
        sbb %ecx, %eax
        ret
        block logic
        mov $0x55aa, %eax
        and $0xff0, %eax
        or $3, %al
        xor %rax, %rdx
        not %rdx
        neg %rdx
        test %edx, %edx
        ret
        block multiply
        mov $7, %eax
        mov $9, %ecx
        mul %ecx
        imul %rcx, %rax
        imul $11, %rax, %rdx
        mov $3, %ecx
        xor %edx, %edx
        div %rcx
        cqo
        idiv %rcx
        ret
        block shifts
        mov $0x1234, %rax
        mov $5, %ecx
        shl $3, %rax
        shr %cl, %rax
        sar $1, %eax
        rol $7, %rax
        ror %cl, %ax
        rcl $1, %eax
        rcr $3, %rax
        shld $4, %rax, %rdx
        shrd %cl, %rax, %rdx
        ret
        block bits
        mov $0x10, %eax
        bt $4, %eax
        bts $5, %rax
        btr $4, %rax
        btc $9, %rax
        bsf %eax, %ecx
        bsr %rax, %rdx
        bswap %rax
        popcnt %rax, %rcx
        ret
        block conditions
        cmp %rdi, %rsi
        setb %al
        setle %cl
        cmovne %rdi, %rdx
        cmovs %edi, %edx
        lahf
        sahf
        stc
        cmc
        clc
        ret
        block extends
        movzbl %dil, %eax
        movsbl %dil, %ecx
        movzwl %di, %eax
        movswq %di, %rcx
        movslq %edi, %rdx
        cbw
        cwde
        cdqe
        xchg %rax, %rdx
        ret

        /* Memory */
        block loads
        mov (%rdi), %al
        mov 2(%rdi), %cx
        mov 4(%rdi), %edx
        mov 8(%rdi), %rax
        movzbl 1(%rdi), %ecx
        movslq 12(%rdi), %rdx
        lea 5(%rdi,%rax,4), %rax
        ret
        block stores
        mov %al, (%rdi)
        mov %ax, 2(%rdi)
        mov %eax, 4(%rdi)
        mov %rax, 8(%rdi)
        movq $-5, 16(%rdi)
        movb $1, 24(%rdi)
        ret
        block read_modify_write
        addl $5, (%rdi)
        orq $1, 8(%rdi)
        incb 16(%rdi)
        negw 18(%rdi)
        shll $2, 20(%rdi)
        xchg %eax, 24(%rdi)
        ret
        block locked
        lock addl $5, (%rdi)
        lock xaddq %rax, 8(%rdi)
        lock cmpxchgl %ecx, 16(%rdi)
        lock decb 20(%rdi)
        lock btsl $3, 24(%rdi)
        mfence
        lfence
        sfence
        ret
        block wide_compare
        push %rbx
        lock cmpxchg16b (%rdi)
        cmpxchg8b 32(%rdi)
        pop %rbx
        ret
        block unaligned
        mov 4091(%rdi), %rax
        mov %rax, 8187(%rdi)
        addl $1, 63(%rdi)
        ret
        block stack
        push %rax
        push $5
        pushw $3
        pushfq
        pop %rcx
        add $2, %rsp
        pop %rdx
        pop %rax
        push %rbp
        mov %rsp, %rbp
        sub $32, %rsp
        leave
        enter $16, $0
        leave
        ret
        block segment
        mov %gs:0, %rax
        mov %gs:8, %ecx
        mov %ds, %eax
        ret

        /* Strings */
        block string_once
        mov %rdi, %rsi
        movsb
        movsq
        stosl
        lodsw
        scasb
        cmpsb
        ret
        block string_repeated
        mov %rdi, %rdx
        lea 512(%rdi), %rsi
        mov $33, %ecx
        rep movsb
        mov $20, %ecx
        rep stosq
        mov %rdx, %rdi
        mov $16, %ecx
        repne scasb
        mov %rdx, %rdi
        mov %rdx, %rsi
        mov $16, %ecx
        repe cmpsl
        mov $3, %ecx
        rep lodsb
        ret
        block string_backwards
        lea 64(%rdi), %rdi
        std
        mov $5, %ecx
        rep stosb
        cld
        ret

        /* Jumps */
        block jumps
        mov $10, %ecx
1:      dec %ecx
        jnz 1b
        jmp 2f
        nop
2:      mov $4, %ecx
3:      loop 3b
        jrcxz 4f
        nop
4:      ret
        block conditional_jumps
        xor %eax, %eax
        jz 1f
        ud2
1:      js 2f
        inc %eax
2:      cmp $1, %eax
        jg 3f
        jb 3f
        jno 3f
        nop
3:      jp 4f
        jle 4f
        nop
4:      ret
        block indirect_jump
        lea 1f(%rip), %rax
        jmp *%rax
        ud2
1:      push $0
        lea 2f(%rip), %rax
        mov %rax, (%rsp)
        jmp *(%rsp)
        ud2
2:      pop %rax
        ret
        block calls
        call 1f
        lea 1f(%rip), %rax
        call *%rax
        mov %rax, (%rdi)
        call *(%rdi)
        ret
1:      lea 1(%rsi), %rsi
        ret
        block return_with_pop
        push $1
        call 1f
        ret
1:      ret $8
        block far_return
        lea 1f(%rip), %rax
        mov %cs, %ecx
        push %rcx
        push %rax
        lretq
1:      ret
        block interrupt_return
        mov %rsp, %rdx
        mov %ss, %eax
        push %rax
        push %rdx
        pushfq
        mov %cs, %eax
        push %rax
        lea 1f(%rip), %rax
        push %rax
        iretq
1:      ret
        block long_run
        .rept 600
        lea 1(%rax,%rcx), %rax
        .endr
        ret

        /* x87, SSE */
        block x87
        fld1
        fldpi
        faddp
        fld %st(0)
        fmul %st(1), %st
        fstpl (%rdi)
        fildl 8(%rdi)
        fistpll 16(%rdi)
        fnstcw 24(%rdi)
        fstp %st(0)
        ret
        block sse_integer
        movdqu (%rdi), %xmm0
        pxor %xmm1, %xmm1
        paddq %xmm0, %xmm1
        psubb %xmm0, %xmm2
        pcmpeqd %xmm1, %xmm2
        pshufd $0x1b, %xmm2, %xmm3
        pmovmskb %xmm3, %eax
        punpcklbw %xmm1, %xmm0
        psllq $3, %xmm0
        movdqu %xmm0, 32(%rdi)
        movq %xmm0, %rax
        ret
        block sse_float
        movups (%rdi), %xmm0
        xorps %xmm0, %xmm0
        addps %xmm0, %xmm0
        mulsd %xmm0, %xmm1
        cvtsi2sd %rax, %xmm1
        cvttsd2si %xmm1, %rcx
        ucomisd %xmm0, %xmm1
        sqrtsd %xmm1, %xmm2
        shufps $0, %xmm1, %xmm2
        stmxcsr 64(%rdi)
        ldmxcsr 64(%rdi)
        ret
        block sse_later
        pshufb %xmm0, %xmm1
        pmulld %xmm0, %xmm1
        crc32b %al, %ecx
        crc32q %rax, %rcx
        ptest %xmm0, %xmm1
        pcmpistri $0, %xmm0, %xmm1
        ret

        /* The system */
        block unprivileged
        push %rbx
        xor %eax, %eax
        cpuid
        pop %rbx
        rdtsc
        pause
        clflush (%rdi)
        prefetcht0 (%rdi)
        nopl (%rax)
        ret
        block flags
        pushfq
        popfq
        ret
        block self_modifying
        incb 1f+1(%rip)
1:      mov $0, %eax
        ret
        block control_registers, RING0
        mov %cr0, %rax
        mov %rax, %cr0
        mov %cr3, %rax
        mov %rax, %cr3
        mov %cr4, %rax
        mov %rax, %cr4
        mov %cr8, %rax
        mov %rax, %cr8
        clts
        ret
        block model_specific_registers, RING0
        mov $0xc0000084, %ecx
        rdmsr
        wrmsr
        mov $0x1b, %ecx
        rdmsr
        ret
        block interrupt_flag, RING0
        sti
        nop
        cli
        ret
        block ports, RING0
        in $0x61, %al
        out %al, $0x80
        mov $0x80, %edx
        mov %rdi, %rsi
        outsb
        mov $5, %ecx
        rep outsb
        ret
        block mapped_io, RING0
        mov $0xfee00000, %eax
        mov 0x20(%rax), %ecx
        movl $0, 0x80(%rax)
        nop
        mov 0x30(%rax), %edx
        ret
        block descriptors, RING0
        sub $16, %rsp
        sgdt (%rsp)
        lgdt (%rsp)
        sidt (%rsp)
        lidt (%rsp)
        add $16, %rsp
        str %ax
        sldt %ax
        invlpg (%rdi)
        mov %ss, %eax
        mov %eax, %ss
        nop
        ret
        block debug_registers, RING0
        mov %dr7, %rax
        mov %rax, %dr7
        mov %dr6, %rax
        ret
        /* Faults where there is no PMU, and returns where there is one. */
        block read_counter, RING0 + IF_ASKED
        xor %ecx, %ecx
        xor %edi, %edi
1:      rdpmc
2:      ret
        .pushsection .ex_table, "a"
        .quad 1b, 2b
        .popsection
        nop
blocks_end:
        .section .rodata
        .quad 0, 0
        .section .note.GNU-stack, "", @progbits
