/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that C and assembly share. */
#ifndef GUEST_LAYOUT_H
#define GUEST_LAYOUT_H

/* The order of the last three is what SYSRET wants (SDM Vol. 2, SYSRET). */
#define SEL_KERNEL_CODE 0x08
#define SEL_KERNEL_DATA 0x10
#define SEL_USER_CODE32 0x18
#define SEL_USER_DATA 0x20
#define SEL_USER_CODE 0x28
#define SEL_TSS 0x30

#define AP_BOOT_ADDRESS 0x8000

/* Vectors that the library takes; everything else is free. */
#define VECTOR_USER_RETURN 0x80
#define VECTOR_WAKE 0xf0
#define VECTOR_SPURIOUS 0xff

/* Offsets into struct cpu, asserted in cpu.c. */
#define CPU_USER_RETURN_SP 0x400
#define CPU_TSS_RSP0 0x40c

#endif
