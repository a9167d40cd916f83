/* SPDX-License-Identifier: BSD-3-Clause */
/* What the loader takes, and what it refuses, told by name. */
#include "check.h"
#include "image.h"
#include "io.h"
#include "libc.h"
#include "memory.h"
#include "multiboot.h"
#include "scenarios.h"

#define VICTIM "routines.sys"

static uint8_t *copy;
static size_t copy_size;

/* A fresh copy of the victim. */
static bool take_copy(void)
{
    const struct boot_module *module = driver_module(VICTIM);

    if (!module)
        return false;
    if (!copy)
        copy = pages_alloc(module->size / PAGE_SIZE + 1);
    memcpy(copy, module->data, module->size);
    copy_size = module->size;
    return true;
}

static uint8_t *coff(void)
{
    uint32_t offset;

    memcpy(&offset, copy + 60, sizeof(offset));
    return copy + offset + 4;
}

static uint8_t *find(const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i + length <= copy_size; i++)
        if (!memcmp(copy + i, text, length))
            return copy + i;
    return NULL;
}

static void cut(void)
{
    copy_size -= 512;
}

static void spoil_import(void)
{
    uint8_t *name = find("KeIpiGenericCall");

    if (name)
        name[2] = 'X';
}

static void other_machine(void)
{
    coff()[0] = 0x64;
    coff()[1] = 0xaa;
}

static void strip_relocations(void)
{
    coff()[18] |= 1;
}

/* The first section is code; 0x80000000 makes it writable. */
static void writable_code(void)
{
    coff()[20 + coff()[16] + 256 * coff()[17] + 39] |= 0x80;
}

static const struct {
    const char *name;
    void (*spoil)(void);
    enum pe_status status;
} hostile[] = {
    {"a file that is cut", cut, PE_TRUNCATED},
    {"an import that nobody exports", spoil_import, PE_UNRESOLVED_IMPORT},
    {"an image for another machine", other_machine, PE_BAD_MACHINE},
    {"an image without relocations", strip_relocations, PE_NO_RELOCATIONS},
    {"writable code", writable_code, PE_WRITABLE_CODE},
};

static void refuse_hostile(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(hostile); i++) {
        enum pe_status status;
        struct image *image;

        if (!take_copy()) {
            check(false, "loader: " VICTIM " is there");
            return;
        }
        hostile[i].spoil();
        image = image_load(hostile[i].name, copy, copy_size, &status);
        check_equal(status, hostile[i].status, "loader: %s: %s", hostile[i].name,
                    pe_status_text(hostile[i].status));
        if (image)
            image_unload(image);
    }
}

static void check_protections(const struct driver *driver)
{
    const struct image *image = driver->image;

    for (unsigned i = 0; i < image->pe.section_count; i++) {
        const struct pe_section *s = &image->pe.sections[i];
        uint64_t entry = *map_entry(image->base + s->rva);

        check(!!(entry & MAP_WRITE) == !!(s->protection & PE_WRITE) &&
                  !(entry & MAP_NO_EXEC) == !!(s->protection & PE_EXECUTE) && !(entry & MAP_USER),
              "loader: %s: pages are %s, %s, not for ring 3", s->name,
              entry & MAP_WRITE ? "writable" : "read-only",
              entry & MAP_NO_EXEC ? "not executable" : "executable");
    }
    check(image->base != image->pe.preferred_base, "loader: the image was relocated");
}

/* Imports by name and by ordinal; DriverEntry that fails; the same image again. */
void loader(void)
{
    struct driver *by_ordinal = scenario_load("ordinal.sys");
    struct driver *driver = scenario_load(VICTIM), *twin;
    NTSTATUS status;

    if (driver) {
        check_protections(driver);
        twin = driver_load(VICTIM, &status, NULL);
        check_equal((ULONG)status, (ULONG)STATUS_OBJECT_NAME_COLLISION,
                    "loader: the second of the same name");
        check(!twin, "loader: a driver whose DriverEntry failed is gone");
        driver_unload(driver);
    }
    if (by_ordinal)
        driver_unload(by_ordinal);
    driver = driver_load("nowhere.sys", &status, NULL);
    check_equal((ULONG)status, (ULONG)STATUS_OBJECT_NAME_NOT_FOUND, "loader: no such file");
    refuse_hostile();
}
