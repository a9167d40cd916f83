/* SPDX-License-Identifier: BSD-3-Clause */
/* One loop whose branches all lead to the next instruction: the place of every sample is known. */
#ifndef LONG
#define LONG 20000000
#endif
#include "region.inc"

    region setup, 1
    mov $LOOPS, %rcx
    xor %eax, %eax
    mov $3, %edx

    region body, LOOPS
1:  add %rdx, %rax
    test %rcx, %rcx
    jz 2f
2:  imul $7, %rdx, %rdx
    nopl 0x0(%rax, %rax, 1)
    jmp 3f
3:  lea 1(%rdx, %rax, 2), %rsi
    xor %esi, %esi
    jz 4f
4:  sub $1, %rcx
    jnz 1b

    exit_region
