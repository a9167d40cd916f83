/* SPDX-License-Identifier: BSD-3-Clause */
#include "pe_builder.h"

#include <string.h>

static void put(uint8_t *p, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

void put16(uint8_t *p, uint16_t value)
{
    put(p, value, 2);
}

void put32(uint8_t *p, uint32_t value)
{
    put(p, value, 4);
}

void put64(uint8_t *p, uint64_t value)
{
    put(p, value, 8);
}

uint64_t get64(const uint8_t *p)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < 8; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static void put_directory(uint8_t *file, unsigned index, uint32_t rva, uint32_t size)
{
    put32(file + BUILT_DIRECTORIES + 8 * index, rva);
    put32(file + BUILT_DIRECTORIES + 8 * index + 4, size);
}

static void put_headers(uint8_t *file)
{
    memcpy(file, "MZ", 2);
    put32(file + 60, BUILT_COFF - 4);
    memcpy(file + BUILT_COFF - 4, "PE\0\0", 4);
    put16(file + BUILT_COFF, 0x8664);
    put16(file + BUILT_COFF + 2, 5);
    put16(file + BUILT_COFF + 16, 112 + 16 * 8);
    put16(file + BUILT_OPTIONAL, 0x20b);
    put32(file + BUILT_OPTIONAL + 16, 0x1000);
    put64(file + BUILT_OPTIONAL + 24, BUILT_BASE);
    put32(file + BUILT_OPTIONAL + 32, 0x1000);
    put32(file + BUILT_OPTIONAL + 36, 0x200);
    put32(file + BUILT_OPTIONAL + 56, BUILT_IMAGE_SIZE);
    put32(file + BUILT_OPTIONAL + 60, 0x400);
    put32(file + BUILT_OPTIONAL + 108, 16);
    put_directory(file, 1, 0x3000, 60);
    put_directory(file, 3, 0x5000, 24);
    put_directory(file, 5, 0x4000, 12);
}

static void put_sections(uint8_t *file)
{
    static const struct {
        const char *name;
        uint32_t flags;
    } sections[] = {
        {".text", 0x60000020},  {".data", 0xc0000040},  {".idata", 0xc0000040},
        {".reloc", 0x42000040}, {".pdata", 0x40000040},
    };

    for (unsigned i = 0; i < 5; i++) {
        uint8_t *header = file + BUILT_SECTIONS + 40 * i;

        memcpy(header, sections[i].name, strlen(sections[i].name));
        put32(header + 8, 0x180);
        put32(header + 12, 0x1000 * (i + 1));
        put32(header + 16, 0x200);
        put32(header + 20, BUILT_TEXT + 0x200 * i);
        put32(header + 36, sections[i].flags);
    }
}

/* Two descriptors and the end; DbgPrint by name, ordinal 2 of hal.dll. */
static void put_imports(uint8_t *idata)
{
    put32(idata, 0x3040);
    put32(idata + 12, 0x3080);
    put32(idata + 16, 0x3060);
    put32(idata + 20, 0x3050);
    put32(idata + 32, 0x3090);
    put32(idata + 36, 0x3070);
    put64(idata + 0x40, 0x30a0);
    put64(idata + 0x50, UINT64_C(1) << 63 | 2);
    put64(idata + 0x60, 0x30a0);
    put64(idata + 0x70, UINT64_C(1) << 63 | 2);
    memcpy(idata + 0x80, "ntoskrnl.exe", 13);
    memcpy(idata + 0x90, "hal.dll", 8);
    memcpy(idata + 0xa2, "DbgPrint", 9);
}

void build_image(uint8_t file[BUILT_SIZE])
{
    memset(file, 0, BUILT_SIZE);
    put_headers(file);
    put_sections(file);
    file[BUILT_TEXT] = 0xc3;
    put64(file + BUILT_DATA + 8, BUILT_BASE + 0x2000);
    put_imports(file + BUILT_IDATA);
    put32(file + BUILT_RELOC, 0x2000);
    put32(file + BUILT_RELOC + 4, 12);
    put16(file + BUILT_RELOC + 8, 10 << 12 | 8);
    put32(file + BUILT_PDATA, 0x1000);
    put32(file + BUILT_PDATA + 4, 0x1010);
    put32(file + BUILT_PDATA + 8, 0x5100);
    put32(file + BUILT_PDATA + 12, 0x1020);
    put32(file + BUILT_PDATA + 16, 0x1030);
    put32(file + BUILT_PDATA + 20, 0x5104);
}
