/* SPDX-License-Identifier: BSD-3-Clause */
#include "image.h"

#include "check.h"
#include "exports.h"
#include "libc.h"
#include "memory.h"

#define IMAGES 8
#define FIRST_BASE 0xfffff80000000000ul
#define BREAKPOINT 0xcc

static struct image images[IMAGES];

/* No address is used twice, so that no processor keeps a stale translation. */
static uint64_t next_base = FIRST_BASE;

static struct image *free_image(void)
{
    for (unsigned i = 0; i < IMAGES; i++)
        if (!images[i].loaded)
            return &images[i];
    panic("too many images");
}

/* Pages of the header and between sections are readable only. */
static void protect(const struct image *image)
{
    for (uint32_t rva = 0; rva < image->pe.image_size; rva += PE_PAGE) {
        unsigned protection = pe_page_protection(&image->pe, rva);
        uint64_t flags = MAP_PRESENT | (protection & PE_WRITE ? MAP_WRITE : 0) |
                         (protection & PE_EXECUTE ? 0 : MAP_NO_EXEC);

        map_page(image->base + rva, (uint64_t)image->memory + rva, flags);
    }
}

static enum pe_status lay_out(struct image *image, const void *file, size_t size,
                              struct pe_import_error *error)
{
    enum pe_status status = pe_parse(file, size, &image->pe);

    if (status != PE_OK)
        return status;
    image->memory = pages_alloc(image->pe.image_size / PE_PAGE);
    image->base = next_base;
    next_base += image->pe.image_size + 16 * PE_PAGE;
    pe_map(&image->pe, image->memory);
    status = pe_relocate(&image->pe, image->memory, image->base);
    if (status != PE_OK)
        return status;
    return pe_bind(&image->pe, image->memory, export_resolve, NULL, error);
}

static void release_pages(const struct image *image)
{
    for (uint32_t rva = 0; image->memory && rva < image->pe.image_size; rva += PE_PAGE)
        page_free(image->memory + rva);
}

struct image *image_load(const char *name, const void *file, size_t size, enum pe_status *status)
{
    struct image *image = free_image();
    struct pe_import_error error = {{0}, {0}};
    enum pe_status result;

    memset(image, 0, sizeof(*image));
    snprintf(image->name, sizeof(image->name), "%s", name);
    result = lay_out(image, file, size, &error);
    if (status)
        *status = result;
    if (result != PE_OK) {
        note("%s: %s%s%s%s%s", name, pe_status_text(result), error.name[0] ? ": " : "", error.name,
             error.name[0] ? " of " : "", error.name[0] ? error.dll : "");
        release_pages(image);
        return NULL;
    }
    protect(image);
    image->loaded = true;
    return image;
}

void image_unload(struct image *image)
{
    image->loaded = false;
    for (uint32_t rva = 0; rva < image->pe.image_size; rva += PE_PAGE)
        map_page(image->base + rva, 0, 0);
    memset(image->memory, BREAKPOINT, image->pe.image_size);
    release_pages(image);
}

struct image *image_at(uint64_t address)
{
    for (unsigned i = 0; i < IMAGES; i++)
        if (images[i].loaded && address - images[i].base < images[i].pe.image_size)
            return &images[i];
    return NULL;
}
