/* SPDX-License-Identifier: BSD-3-Clause */
/* Into the kernel and back, both ways: SYSCALL and INT n count once each, in ring 3. */
#define LONG 20000
#include "region.inc"

    region setup, 1
    mov $LOOPS, %r12

    region body, LOOPS
1:  mov $110, %eax /* getppid of the 64-bit table */
    syscall
    mov $64, %eax /* getppid of the 32-bit table */
    int $0x80
    dec %r12
    jnz 1b

    exit_region
