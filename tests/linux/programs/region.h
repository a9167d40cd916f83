/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program is a row of regions. A region is code without a way out but its end, together with
 * the number of times that it runs. The test counts a region's instructions in the disassembly
 * and takes `times` from the symbol table, so no expected number is written down anywhere.
 *
 * Each program is built twice: with LOOPS as long as it says itself (LONG), and SHORT enough to
 * be single-stepped.
 */
#ifdef SHORT
#define LOOPS 8
#else
#define LOOPS LONG
#endif

.macro region name, times:vararg
    .globl region.\name, times.\name
    .set times.\name, \times
region.\name:
.endm

.macro exit_region
    region exit, 1
    mov $60, %eax
    xor %edi, %edi
    syscall
.endm

    .text
    .globl _start
_start:
