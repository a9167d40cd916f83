/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A repeated string instruction is one instruction however often it repeats, also when it is
 * interrupted by the page faults of memory that it touches first.
 */
#define LONG 2000
#include "region.inc"

#define SIZE 0x2800

    .lcomm source, SIZE
    .lcomm target, SIZE

    region setup, 1
    mov $LOOPS, %r12
    cld

    region body, LOOPS
1:  lea source(%rip), %rdi
    mov $SIZE / 8, %ecx
    mov %r12, %rax
    rep stosq
    lea source(%rip), %rsi
    lea target(%rip), %rdi
    mov $SIZE / 8, %ecx
    rep movsq
    lea source(%rip), %rsi
    lea target(%rip), %rdi
    mov $100, %ecx
    repe cmpsb
    lea target(%rip), %rdi
    mov $100, %ecx
    not %rax
    repne scasb
    xor %ecx, %ecx
    rep lodsb
    dec %r12
    jnz 1b

    exit_region
