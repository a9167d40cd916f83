/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An option ROM that starts counters before any boot loader, so that all of a kernel's boot is
 * counted: a kernel that is told that there is no PMU leaves them alone. tests/bench/run sets
 * `armed`, and the checksum in the last byte.
 */
#define PERFEVTSEL0 0x186
#define GLOBAL_CTRL 0x38f
#define COUNTED 0x430000 /* USR, OS, EN */
#define INT 0x100000
#define INSTRUCTIONS 0xc0
#define BRANCHES 0xc4

        .code16
        .text
        .byte 0x55, 0xaa, 1 /* of 512 bytes */
        jmp start
        .org 8
armed:  .byte 0

start:  pushal
        xor %edx, %edx
        mov $PERFEVTSEL0, %ecx
        mov $COUNTED + INSTRUCTIONS, %eax
        cmpb $0, %cs:armed
        je 1f
        mov $COUNTED + INT + BRANCHES, %eax
        inc %ecx
        wrmsr
        dec %ecx
        mov $COUNTED + INT + INSTRUCTIONS, %eax
1:      wrmsr
        mov $GLOBAL_CTRL, %ecx
        mov $3, %eax
        wrmsr
        popal
        lret
        .org 512
        .section .note.GNU-stack, "", @progbits
