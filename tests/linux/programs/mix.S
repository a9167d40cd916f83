/* SPDX-License-Identifier: BSD-3-Clause */
/* Every kind of near branch: taken, not taken, both in turn, LOOP, JRCXZ, direct and indirect. */
#define LONG 1000000
#include "region.inc"

#define INNER 5

    region setup, 1
    mov $LOOPS, %r12
    lea leaf(%rip), %rbx

    region head, LOOPS
1:  call leaf
    push %r12
    pop %rax
    cmovz %rax, %rdx
    test $1, %r12b
    jz 2f

    region odd, LOOPS / 2
    bswap %rax
    jmp 3f

    region even, LOOPS / 2
2:  pxor %xmm0, %xmm0
    cvtsi2sd %rax, %xmm0
    mulsd %xmm0, %xmm0
    movq %xmm0, %rax

    region join, LOOPS
3:  call *%rbx
    lea 4f(%rip), %rax
    jmp *%rax
4:  mov $INNER, %ecx

    region inner, LOOPS * INNER
5:  xchg %rax, %rdx
    loop 5b

    region tail, LOOPS
    jrcxz 6f
6:  stc
    jnc 1b
    dec %r12
    jnz 1b

    exit_region

    region leaf, LOOPS * 2
leaf:
    enter $16, $0
    mov %rax, -8(%rbp)
    leave
    ret
