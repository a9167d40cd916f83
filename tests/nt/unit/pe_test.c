/* SPDX-License-Identifier: BSD-3-Clause */
/* The PE loader on the host: a valid image, then one that is spoiled in one place. */
#include "../pe.h"
#include "pe_builder.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define NEW_BASE UINT64_C(0xfffff80000000000)
#define PRINT_ADDRESS UINT64_C(0x1111)
#define FREE_ADDRESS UINT64_C(0x2222)

static uint64_t resolve(void *context, const char *dll, const char *name, uint16_t ordinal)
{
    unsigned *calls = context;

    ++*calls;
    if (!strcmp(dll, "ntoskrnl.exe") && name && !strcmp(name, "DbgPrint"))
        return PRINT_ADDRESS;
    if (!strcmp(dll, "hal.dll") && !name && ordinal == 2)
        return FREE_ADDRESS;
    return 0;
}

/* All four steps over a copy of exactly size bytes, so that a sanitizer sees the ends. */
static enum pe_status load(const uint8_t *file, size_t size, uint8_t memory[BUILT_IMAGE_SIZE],
                           struct pe_import_error *error)
{
    uint8_t *copy = malloc(size ? size : 1);
    uint8_t *image_memory = NULL;
    struct pe_image image;
    unsigned calls = 0;
    enum pe_status status;

    memcpy(copy, file, size);
    status = pe_parse(copy, size, &image);
    if (status == PE_OK) {
        image_memory = malloc(image.image_size);
        pe_map(&image, image_memory);
        status = pe_relocate(&image, image_memory, NEW_BASE);
    }
    if (status == PE_OK)
        status = pe_bind(&image, image_memory, resolve, &calls, error);
    if (status == PE_OK && memory) {
        cr_assert_eq(image.image_size, BUILT_IMAGE_SIZE);
        cr_assert_eq(calls, 2);
        memcpy(memory, image_memory, BUILT_IMAGE_SIZE);
    }
    free(image_memory);
    free(copy);
    return status;
}

Test(pe, valid)
{
    static uint8_t file[BUILT_SIZE], memory[BUILT_IMAGE_SIZE];
    struct pe_import_error error;

    build_image(file);
    cr_assert_eq(load(file, sizeof(file), memory, &error), PE_OK);
    cr_assert_eq(memory[0x1000], 0xc3, "code is at its address");
    cr_assert_eq(memory[0x1180], 0, "a section ends in zeros");
    cr_assert_eq(get64(memory + 0x2008), NEW_BASE + 0x2000, "relocated");
    cr_assert_eq(get64(memory + 0x3060), PRINT_ADDRESS, "import by name");
    cr_assert_eq(get64(memory + 0x3070), FREE_ADDRESS, "import by ordinal");
}

Test(pe, protections)
{
    static const unsigned want[] = {PE_READ, PE_EXECUTE, PE_WRITE, PE_WRITE, PE_READ, PE_READ};
    static uint8_t file[BUILT_SIZE];
    struct pe_image image;

    build_image(file);
    cr_assert_eq(pe_parse(file, sizeof(file), &image), PE_OK);
    for (uint32_t i = 0; i < 6; i++)
        cr_expect_eq(pe_page_protection(&image, i * PE_PAGE), want[i], "page %u", i);
}

Test(pe, functions)
{
    static const struct {
        uint32_t rva, unwind; /* unwind 0: none */
    } rows[] = {{0xfff, 0},       {0x1000, 0x5100}, {0x100f, 0x5100}, {0x1010, 0},
                {0x1020, 0x5104}, {0x102f, 0x5104}, {0x1030, 0}};
    static uint8_t file[BUILT_SIZE], memory[BUILT_IMAGE_SIZE];
    struct pe_image image;

    build_image(file);
    cr_assert_eq(pe_parse(file, sizeof(file), &image), PE_OK);
    pe_map(&image, memory);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pe_function function = {0};
        bool found = pe_find_function(&image, memory, rows[i].rva, &function);

        cr_expect_eq(found, rows[i].unwind != 0, "%x", rows[i].rva);
        cr_expect_eq(function.unwind_rva, rows[i].unwind, "%x", rows[i].rva);
    }
}

/* Where a number in the file is replaced by a hostile one. */
static const struct {
    const char *name;
    uint32_t offset;
    uint32_t bytes;
    uint64_t value;
    enum pe_status status;
} rows[] = {
    {"no MZ", 0, 1, 'X', PE_BAD_MAGIC},
    {"PE header behind the file", 60, 4, BUILT_SIZE, PE_TRUNCATED},
    {"PE header far away", 60, 4, 0xfffffff0, PE_TRUNCATED},
    {"no PE", BUILT_COFF - 4, 1, 'X', PE_BAD_MAGIC},
    {"i386", BUILT_COFF, 2, 0x14c, PE_BAD_MACHINE},
    {"97 sections", BUILT_COFF + 2, 2, 97, PE_BAD_HEADER},
    {"96 sections in a short file", BUILT_COFF + 2, 2, 96, PE_TRUNCATED},
    {"a huge optional header", BUILT_COFF + 16, 2, 0xffff, PE_TRUNCATED},
    {"a tiny optional header", BUILT_COFF + 16, 2, 8, PE_TRUNCATED},
    {"relocations stripped", BUILT_COFF + 18, 2, 1, PE_NO_RELOCATIONS},
    {"PE32", BUILT_OPTIONAL, 2, 0x10b, PE_BAD_MAGIC},
    {"entry outside", BUILT_OPTIONAL + 16, 4, BUILT_IMAGE_SIZE, PE_BAD_HEADER},
    {"sections of 512 bytes", BUILT_OPTIONAL + 32, 4, 512, PE_BAD_HEADER},
    {"an image of 4 GiB", BUILT_OPTIONAL + 56, 4, 0xffffffff, PE_BAD_HEADER},
    {"an image of one page", BUILT_OPTIONAL + 56, 4, 0x1000, PE_BAD_HEADER},
    {"headers longer than the file", BUILT_OPTIONAL + 60, 4, 0x2000, PE_TRUNCATED},
    {"headers over the first section", BUILT_OPTIONAL + 60, 4, 0xe00, PE_OK},
    {"17 directories", BUILT_OPTIONAL + 108, 4, 17, PE_BAD_HEADER},
    {"imports outside", BUILT_DIRECTORIES + 8, 4, 0xfffff000, PE_BAD_HEADER},
    {"imports that end outside", BUILT_DIRECTORIES + 12, 4, 0x3001, PE_BAD_HEADER},
    {"an odd exception table", BUILT_DIRECTORIES + 28, 4, 23, PE_BAD_EXCEPTION_TABLE},
    {"writable code", BUILT_SECTIONS + 36, 4, 0xe0000020, PE_WRITABLE_CODE},
    {"a section at 0", BUILT_SECTIONS + 12, 4, 0, PE_BAD_SECTION},
    {"a section between pages", BUILT_SECTIONS + 12, 4, 0x1010, PE_BAD_SECTION},
    {"a section over the next", BUILT_SECTIONS + 8, 4, 0x1001, PE_BAD_SECTION},
    {"a section behind the image", BUILT_SECTIONS + 4 * 40 + 12, 4, 0x6000, PE_BAD_SECTION},
    {"a section that ends behind", BUILT_SECTIONS + 4 * 40 + 8, 4, 0x1001, PE_BAD_SECTION},
    {"data behind the file", BUILT_SECTIONS + 20, 4, BUILT_SIZE - 1, PE_TRUNCATED},
    {"data far away", BUILT_SECTIONS + 20, 4, 0xffffffff, PE_TRUNCATED},
    {"a relocation block of 4 bytes", BUILT_RELOC + 4, 4, 4, PE_BAD_RELOCATION},
    {"an odd relocation block", BUILT_RELOC + 4, 4, 11, PE_BAD_RELOCATION},
    {"a relocation block too long", BUILT_RELOC + 4, 4, 16, PE_BAD_RELOCATION},
    {"a relocation outside", BUILT_RELOC, 4, 0x5ff8, PE_BAD_RELOCATION},
    {"a relocation far away", BUILT_RELOC, 4, 0xfffff000, PE_BAD_RELOCATION},
    {"a 32-bit relocation", BUILT_RELOC + 8, 2, 3 << 12 | 8, PE_BAD_RELOCATION},
    {"a relocation of type 0", BUILT_RELOC + 8, 2, 0xfff, PE_OK},
    {"a DLL name outside", BUILT_IDATA + 12, 4, BUILT_IMAGE_SIZE, PE_BAD_IMPORT},
    {"an import name outside", BUILT_IDATA + 0x40, 8, BUILT_IMAGE_SIZE, PE_BAD_IMPORT},
    {"an empty import name", BUILT_IDATA + 0x40, 8, 0x3100, PE_BAD_IMPORT},
    {"an ordinal of 17 bits", BUILT_IDATA + 0x50, 8, UINT64_C(1) << 63 | 0x10002, PE_BAD_IMPORT},
    {"an unknown ordinal", BUILT_IDATA + 0x50, 8, UINT64_C(1) << 63 | 3, PE_UNRESOLVED_IMPORT},
    {"an unknown name", BUILT_IDATA + 0xa2, 1, 'X', PE_UNRESOLVED_IMPORT},
    {"thunks outside", BUILT_IDATA + 16, 4, BUILT_IMAGE_SIZE - 4, PE_BAD_IMPORT},
    {"no look-up table", BUILT_IDATA, 4, 0, PE_OK},
    {"no last descriptor", BUILT_IDATA + 40 + 12, 4, 0x3090, PE_BAD_IMPORT},
};

Test(pe, hostile)
{
    static uint8_t file[BUILT_SIZE];
    struct pe_import_error error;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum pe_status status;

        build_image(file);
        for (unsigned b = 0; b < rows[i].bytes; b++)
            file[rows[i].offset + b] = (uint8_t)(rows[i].value >> (8 * b));
        status = load(file, sizeof(file), NULL, &error);
        cr_expect_eq(status, rows[i].status, "%s: %s", rows[i].name, pe_status_text(status));
    }
}

Test(pe, truncated)
{
    static uint8_t file[BUILT_SIZE];
    struct pe_import_error error;

    build_image(file);
    for (size_t size = 0; size < BUILT_PDATA + 0x180; size++)
        cr_expect_eq(load(file, size, NULL, &error), PE_TRUNCATED, "%zu bytes", size);
    cr_expect_eq(load(file, BUILT_PDATA + 0x180, NULL, &error), PE_OK,
                 "what pads the last section is not needed");
}

Test(pe, unresolved_is_named)
{
    static uint8_t file[BUILT_SIZE];
    struct pe_import_error error;

    build_image(file);
    memcpy(file + BUILT_IDATA + 0xa2, "NoSuchOne", 10);
    cr_assert_eq(load(file, sizeof(file), NULL, &error), PE_UNRESOLVED_IMPORT);
    cr_expect_str_eq(error.name, "NoSuchOne");
    cr_expect_str_eq(error.dll, "ntoskrnl.exe");
    build_image(file);
    put64(file + BUILT_IDATA + 0x50, UINT64_C(1) << 63 | 65535);
    cr_assert_eq(load(file, sizeof(file), NULL, &error), PE_UNRESOLVED_IMPORT);
    cr_expect_str_eq(error.name, "#65535");
    cr_expect_str_eq(error.dll, "hal.dll");
}
