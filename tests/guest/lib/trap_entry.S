/* SPDX-License-Identifier: BSD-3-Clause */
/* Entry of every vector, and the way to ring 3 and back. */
#include "layout.h"

    .text

/* #DF, #TS, #NP, #SS, #GP, #PF, #AC, #CP push an error code (SDM Vol. 3, 6.3.1). */
#define ERROR_CODE_VECTORS 0x227d00

    .balign 16
    .globl trap_stubs, trap_stubs_end
trap_stubs:
    vector = 0
    .rept 256
    .balign 16
    .if vector >= 32 || !((ERROR_CODE_VECTORS >> (vector & 31)) & 1)
    push $0
    .endif
    pushq $vector
    jmp trap_common
    .balign 16
    vector = vector + 1
    .endr
trap_stubs_end:

trap_common:
    push %rax
    push %rbx
    push %rcx
    push %rdx
    push %rbp
    push %rsi
    push %rdi
    push %r8
    push %r9
    push %r10
    push %r11
    push %r12
    push %r13
    push %r14
    push %r15
    cld
    mov %rsp, %rdi
    mov %rsp, %rbx
    and $-16, %rsp
    call trap_dispatch
    mov %rbx, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rdi
    pop %rsi
    pop %rbp
    pop %rdx
    pop %rcx
    pop %rbx
    pop %rax
    add $16, %rsp
    iretq

/* enter_user(%rdi fn, %rsi arg, %rdx flags, %rcx stack_top) */
    .globl enter_user
enter_user:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    pushfq
    cli
    mov %rsp, %gs:CPU_USER_RETURN_SP
    mov %rsp, %gs:CPU_TSS_RSP0
    movq $user_exit, -8(%rcx)
    sub $8, %rcx
    or $2, %rdx
    push $SEL_USER_DATA | 3
    push %rcx
    push %rdx
    push $SEL_USER_CODE | 3
    push %rdi
    mov %rsi, %rdi
    iretq

user_exit:
    int $VECTOR_USER_RETURN

    .globl user_return
user_return:
    mov %gs:CPU_USER_RETURN_SP, %rsp
    cld
    popfq
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret

    .section .note.GNU-stack, "", @progbits
