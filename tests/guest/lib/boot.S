/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entry from the multiboot loader (32-bit protected mode, paging off) and from a start-up IPI
 * (16-bit real mode), both up to long mode.
 *
 * The multiboot header carries the load addresses itself, so that the loader takes this 64-bit ELF
 * file as it is. Page tables: identity for the first 4 GiB in 2 MiB pages, open to ring 3.
 */
#include "layout.h"

#define MULTIBOOT_MAGIC 0x1badb002
#define MULTIBOOT_FLAGS 0x00010003 /* page-aligned modules, memory sizes, addresses below */

#define CR0_BOOT 0x80010033 /* PG, WP, NE, ET, MP, PE */
#define CR4_BOOT 0x00000620 /* OSXMMEXCPT, OSFXSR, PAE */
#define EFER     0xc0000080
#define EFER_BOOT 0x00000901 /* NXE, LME, SCE */

    .section .boot, "ax"
    .balign 4
multiboot_header:
    .long MULTIBOOT_MAGIC
    .long MULTIBOOT_FLAGS
    .long -(MULTIBOOT_MAGIC + MULTIBOOT_FLAGS)
    .long multiboot_header
    .long image_start
    .long image_data_end
    .long image_end
    .long start32

    .code32
    .globl start32
start32:
    cld
    mov %eax, boot_magic
    mov %ebx, boot_info

    /* 2048 entries of 2 MiB: present, writable, user, large */
    mov $boot_pd, %edi
    mov $0x87, %eax
1:  mov %eax, (%edi)
    movl $0, 4(%edi)
    add $0x200000, %eax
    add $8, %edi
    cmp $boot_pd + 4 * 4096, %edi
    jne 1b

    movl $boot_pd + 0x0007, boot_pdpt
    movl $boot_pd + 0x1007, boot_pdpt + 8
    movl $boot_pd + 0x2007, boot_pdpt + 16
    movl $boot_pd + 0x3007, boot_pdpt + 24
    movl $boot_pdpt + 7, boot_pml4

    mov $boot_stack_top, %esp
    mov $start, %ebx
    mov $0, %edi
    jmp enter_long_mode

/* In: %esp stack, %ebx function, %edi its argument. */
enter_long_mode:
    mov $CR4_BOOT, %eax
    mov %eax, %cr4
    mov $boot_pml4, %eax
    mov %eax, %cr3
    mov $EFER, %ecx
    mov $EFER_BOOT, %eax
    xor %edx, %edx
    wrmsr
    mov $CR0_BOOT, %eax
    mov %eax, %cr0
    lgdt boot_gdt_pointer
    ljmp $SEL_KERNEL_CODE, $1f

    .code64
1:  mov $SEL_KERNEL_DATA, %eax
    mov %eax, %ss
    xor %eax, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %fs
    mov %eax, %gs
    mov %esp, %esp
    mov %edi, %edi
    mov %ebx, %ebx
    call *%rbx
    ud2

    .balign 8
boot_gdt:
    .quad 0
    .quad 0x00af9b000000ffff /* SEL_KERNEL_CODE: 64-bit code, ring 0 */
    .quad 0x00cf93000000ffff /* SEL_KERNEL_DATA */
    .quad 0x00cf9b000000ffff /* 32-bit code, on the way of a start-up IPI */
boot_gdt_pointer:
    .word . - boot_gdt - 1
    .long boot_gdt

/* Copied to AP_BOOT_ADDRESS; addresses in it are relative to that. */
    .code16
    .globl ap_boot, ap_boot_end
ap_boot:
    cli
    xor %ax, %ax
    mov %ax, %ds
    lgdtl AP_BOOT_ADDRESS + ap_gdt_pointer - ap_boot
    mov %cr0, %eax
    and $0x1fffffff, %eax /* CD and NW: INIT sets them */
    or $1, %al
    mov %eax, %cr0
    ljmpl $0x18, $ap_start32
ap_gdt_pointer:
    .word 4 * 8 - 1
    .long boot_gdt
ap_boot_end:

    .code32
ap_start32:
    mov $SEL_KERNEL_DATA, %eax
    mov %eax, %ds
    mov %eax, %ss
    mov ap_stack, %esp
    mov $start_ap, %ebx
    mov ap_cpu, %edi
    jmp enter_long_mode

    .section .bss
    .balign 4096
    .globl boot_pml4
boot_pml4:
    .skip 4096
boot_pdpt:
    .skip 4096
boot_pd:
    .skip 4 * 4096
boot_stack:
    .skip 16384
boot_stack_top:

    .data
    .balign 4
    .globl boot_magic, boot_info
boot_magic:
    .long 0
boot_info:
    .long 0

    .section .note.GNU-stack, "", @progbits
