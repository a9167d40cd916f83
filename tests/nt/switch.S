/* SPDX-License-Identifier: BSD-3-Clause */
#include "ntlayout.h"

    .text

/* switch_stacks(%rdi where to keep the stack pointer, %rsi the next thread's) */
    .globl switch_stacks
switch_stacks:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret

/* The first return of a new thread's switch_stacks() comes here. */
    .globl thread_enter
thread_enter:
    call thread_first
    ud2

/*
 * Every import of a driver comes here with %rax the export row: checks the
 * IRQL, then goes on to the routine with the caller's registers and stack.
 */
    .globl export_enter
export_enter:
    mov %cr8, %r10
    cmp EXPORT_LOWEST(%rax), %r10b
    jb 1f
    cmp EXPORT_HIGHEST(%rax), %r10b
    ja 1f
    jmp *EXPORT_ROUTINE(%rax)
1:  push %rbp
    mov %rsp, %rbp
    push %rax
    push %rcx
    push %rdx
    push %r8
    push %r9
    push %rsi
    push %rdi
    mov %rax, %rdi
    mov %r10, %rsi
    mov 8(%rbp), %rdx
    and $-16, %rsp
    call export_wrong_irql
    lea -56(%rbp), %rsp
    pop %rdi
    pop %rsi
    pop %r9
    pop %r8
    pop %rdx
    pop %rcx
    pop %rax
    pop %rbp
    jmp *EXPORT_ROUTINE(%rax)

/* restore_context(%rdi CONTEXT): goes on there, for good. */
    .globl restore_context
restore_context:
    cli
    mov CONTEXT_RSP(%rdi), %rax
    pushq $0x10
    push %rax
    mov CONTEXT_EFLAGS(%rdi), %eax
    push %rax
    pushq $0x08
    pushq CONTEXT_RIP(%rdi)
    mov CONTEXT_RAX(%rdi), %rax
    mov CONTEXT_RCX(%rdi), %rcx
    mov CONTEXT_RDX(%rdi), %rdx
    mov CONTEXT_RBX(%rdi), %rbx
    mov CONTEXT_RBP(%rdi), %rbp
    mov CONTEXT_RSI(%rdi), %rsi
    mov CONTEXT_R8(%rdi), %r8
    mov CONTEXT_R8+8(%rdi), %r9
    mov CONTEXT_R8+16(%rdi), %r10
    mov CONTEXT_R8+24(%rdi), %r11
    mov CONTEXT_R8+32(%rdi), %r12
    mov CONTEXT_R8+40(%rdi), %r13
    mov CONTEXT_R8+48(%rdi), %r14
    mov CONTEXT_R8+56(%rdi), %r15
    mov CONTEXT_RDI(%rdi), %rdi
    iretq

    .section .note.GNU-stack, "", @progbits
