/* SPDX-License-Identifier: BSD-3-Clause */
/* The hook of vector 0xFE: volatile registers are saved, no vector register is used. */

        .text
        .globl nohal_interrupt
nohal_interrupt:
        pushq %rax
        pushq %rcx
        pushq %rdx
        pushq %r8
        pushq %r9
        pushq %r10
        pushq %r11
        cld
        subq $32, %rsp
        call nohal_pmi
        addq $32, %rsp
        popq %r11
        popq %r10
        popq %r9
        popq %r8
        popq %rdx
        popq %rcx
        popq %rax
        iretq
