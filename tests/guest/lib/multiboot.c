/* SPDX-License-Identifier: BSD-3-Clause */
#include "multiboot.h"
#include "libc.h"

#define MULTIBOOT_BOOTLOADER_MAGIC 0x2badb002

/* Multiboot Specification 0.6.96, section 3.3 */
struct multiboot_info {
    uint32_t flags, mem_lower, mem_upper, boot_device, cmdline, mods_count, mods_addr;
};

struct multiboot_module {
    uint32_t start, end, string, reserved;
};

extern uint32_t boot_magic, boot_info;
extern const uint8_t image_end[];

static char command_line[1024];
static char module_lines[BOOT_MAX_MODULES][128];
static struct boot_module modules[BOOT_MAX_MODULES];
static size_t module_count;

static void copy_text(char *to, size_t size, uint32_t from)
{
    snprintf(to, size, "%s", (const char *)(uintptr_t)from);
}

/* The loader puts the kernel's file name in front. */
static void read_command_line(const struct multiboot_info *info)
{
    const char *line = (const char *)(uintptr_t)info->cmdline;
    const char *space = strchr(line, ' ');

    snprintf(command_line, sizeof(command_line), "%s", space ? space + 1 : "");
}

static void read_module(const struct multiboot_module *m, uint64_t *free_from)
{
    char *line = module_lines[module_count];

    copy_text(line, sizeof(module_lines[0]), m->string);
    modules[module_count++] = (struct boot_module){
        .data = (const uint8_t *)(uintptr_t)m->start,
        .size = m->end - m->start,
        .command_line = line,
    };
    if (m->end > *free_from)
        *free_from = m->end;
}

void multiboot_init(uint64_t *free_from, uint64_t *free_to)
{
    const struct multiboot_info *info = (const void *)(uintptr_t)boot_info;
    const struct multiboot_module *m = (const void *)(uintptr_t)info->mods_addr;

    if (boot_magic != MULTIBOOT_BOOTLOADER_MAGIC)
        panic("not loaded by multiboot");
    *free_from = (uintptr_t)image_end;
    *free_to = 0x100000 + (uint64_t)info->mem_upper * 1024;
    read_command_line(info);
    for (uint32_t i = 0; i < info->mods_count && i < BOOT_MAX_MODULES; i++)
        read_module(&m[i], free_from);
}

const char *boot_command_line(void)
{
    return command_line;
}

/* Finds the word, or the text after "word=". */
static const char *find_option(const char *word)
{
    size_t n = strlen(word);

    for (const char *s = command_line; (s = strstr(s, word)); s += n) {
        bool starts = s == command_line || s[-1] == ' ';

        if (starts && (s[n] == 0 || s[n] == ' ' || s[n] == '='))
            return s + n;
    }
    return NULL;
}

bool boot_option(const char *word)
{
    return find_option(word) != NULL;
}

unsigned long boot_option_number(const char *name, unsigned long otherwise)
{
    const char *s = find_option(name);

    return s && *s == '=' ? strtoul(s + 1, NULL, 0) : otherwise;
}

size_t boot_module_count(void)
{
    return module_count;
}

const struct boot_module *boot_module(size_t i)
{
    return &modules[i];
}
