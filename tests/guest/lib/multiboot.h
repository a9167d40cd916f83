/* SPDX-License-Identifier: BSD-3-Clause */
/* What the loader handed over: QEMU's -append and -initrd "a args,b args". */
#ifndef GUEST_MULTIBOOT_H
#define GUEST_MULTIBOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct boot_module {
    const uint8_t *data;
    size_t size;
    const char *command_line; /* the file's name as QEMU was told it, and what came after it */
};

/* The text of -append. */
const char *boot_command_line(void);

/* Is this word on the command line? */
bool boot_option(const char *word);

/* The value of "name=number" on the command line, or the default. */
unsigned long boot_option_number(const char *name, unsigned long otherwise);

/* The modules, in order; at most BOOT_MAX_MODULES. */
#define BOOT_MAX_MODULES 16
size_t boot_module_count(void);
const struct boot_module *boot_module(size_t i);

/* For start.c: copies what it needs; sets the bounds of free memory. */
void multiboot_init(uint64_t *free_from, uint64_t *free_to);

#endif
