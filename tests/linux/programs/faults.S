/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Instructions that fault. One that completes when the fault is mended (a first touch of a page)
 * counts once; one that never completes (UD2, a division by zero) does not count.
 */
#define LONG 2000
#include "region.inc"

#define SIGILL 4
#define SIGFPE 8
#define SA_SIGINFO 0x00000004
#define SA_RESTORER 0x04000000
#define UCONTEXT_RIP 168
#define PAGE 4096

    .lcomm pages, LOOPS * PAGE

    region setup, 1
    mov $LOOPS, %r12
    lea pages(%rip), %rbx
    mov $SIGILL, %edi
    call handle
    mov $SIGFPE, %edi
    call handle
    xor %ecx, %ecx

    region touch, LOOPS
1:  incq (%rbx)
    add $PAGE, %rbx

    region undefined, 0
    ud2

    region between, LOOPS
    mov $1, %eax
    cqto

    region divide, 0
    idiv %ecx

    region tail, LOOPS
    dec %r12
    jnz 1b

    exit_region

    region handle, 2
handle:
    mov $13, %eax /* rt_sigaction */
    lea action(%rip), %rsi
    xor %edx, %edx
    mov $8, %r10d
    syscall
    ret

    region handler, LOOPS * 2
handler:
    addq $2, UCONTEXT_RIP(%rdx)
    ret

    region restorer, LOOPS * 2
restorer:
    mov $15, %eax /* rt_sigreturn */
    syscall

    .data
    .balign 8
action:
    .quad handler, SA_SIGINFO | SA_RESTORER, restorer, 0
