/* SPDX-License-Identifier: BSD-3-Clause */
#include "pe.h"

#include <string.h>

enum {
    DOS_HEADER_SIZE = 64,
    DOS_LFANEW = 60,
    COFF_HEADER_SIZE = 20,
    SECTION_HEADER_SIZE = 40,
    OPTIONAL_HEADER_FIXED = 112, /* PE32+, without the data directories */
    MACHINE_AMD64 = 0x8664,
    MAGIC_PE32PLUS = 0x20b,
    FILE_RELOCS_STRIPPED = 0x0001,
    IMPORT_DESCRIPTOR_SIZE = 20,
    REL_ABSOLUTE = 0,
    REL_DIR64 = 10,
};

enum {
    DIRECTORY_IMPORT = 1,
    DIRECTORY_EXCEPTION = 3,
    DIRECTORY_BASERELOC = 5,
};

#define SECTION_DISCARDABLE 0x02000000u
#define SECTION_EXECUTE 0x20000000u
#define SECTION_WRITE 0x80000000u
#define ORDINAL_FLAG (UINT64_C(1) << 63)

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t get64(const uint8_t *p)
{
    return (uint64_t)get32(p) | (uint64_t)get32(p + 4) << 32;
}

static void put64(uint8_t *p, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

/* Whether [offset, offset + size) lies in [0, limit). */
static bool inside(uint64_t offset, uint64_t size, uint64_t limit)
{
    return offset <= limit && size <= limit - offset;
}

static uint64_t round_up(uint64_t value)
{
    return (value + PE_PAGE - 1) & ~(uint64_t)(PE_PAGE - 1);
}

/* The string at rva if it ends inside of the image, else NULL. */
static const char *image_string(const struct pe_image *image, const uint8_t *memory, uint64_t rva)
{
    for (uint64_t at = rva; at < image->image_size; at++)
        if (memory[at] == 0)
            return (const char *)memory + rva;
    return NULL;
}

static void copy_text(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);

    if (length >= size)
        length = size - 1;
    memcpy(to, from, length);
    to[length] = 0;
}

static struct pe_directory directory(const uint8_t *optional, uint32_t count, uint32_t index)
{
    struct pe_directory d = {0, 0};

    if (index < count) {
        d.rva = get32(optional + OPTIONAL_HEADER_FIXED + 8 * index);
        d.size = get32(optional + OPTIONAL_HEADER_FIXED + 8 * index + 4);
    }
    return d;
}

static enum pe_status parse_optional(struct pe_image *image, const uint8_t *optional, uint32_t size)
{
    uint32_t count;

    if (size < OPTIONAL_HEADER_FIXED)
        return PE_TRUNCATED;
    if (get16(optional) != MAGIC_PE32PLUS)
        return PE_BAD_MAGIC;
    count = get32(optional + 108);
    if (count > 16 || size < OPTIONAL_HEADER_FIXED + 8 * count)
        return PE_BAD_HEADER;
    image->entry_rva = get32(optional + 16);
    image->preferred_base = get64(optional + 24);
    image->headers_size = get32(optional + 60);
    if (get32(optional + 56) > PE_MAX_IMAGE_SIZE || get32(optional + 32) != PE_PAGE)
        return PE_BAD_HEADER;
    image->image_size = (uint32_t)round_up(get32(optional + 56));
    image->imports = directory(optional, count, DIRECTORY_IMPORT);
    image->exceptions = directory(optional, count, DIRECTORY_EXCEPTION);
    image->relocations = directory(optional, count, DIRECTORY_BASERELOC);
    return PE_OK;
}

static enum pe_status parse_section(const struct pe_image *image, const uint8_t *header,
                                    struct pe_section *section)
{
    uint32_t flags = get32(header + 36);
    uint32_t virtual_size = get32(header + 8);

    memcpy(section->name, header, 8);
    section->name[8] = 0;
    section->rva = get32(header + 12);
    section->file_size = get32(header + 16);
    section->file_offset = get32(header + 20);
    section->size = virtual_size ? virtual_size : section->file_size;
    section->discardable = flags & SECTION_DISCARDABLE;
    section->protection = (flags & SECTION_WRITE ? (unsigned)PE_WRITE : 0) |
                          (flags & SECTION_EXECUTE ? (unsigned)PE_EXECUTE : 0);
    if (section->protection == (PE_WRITE | PE_EXECUTE))
        return PE_WRITABLE_CODE;
    if (section->file_size > section->size) /* file alignment pads the data */
        section->file_size = section->size;
    if (!inside(section->file_offset, section->file_size, image->file_size))
        return PE_TRUNCATED;
    if (section->size == 0 || section->rva % PE_PAGE ||
        !inside(section->rva, section->size, image->image_size))
        return PE_BAD_SECTION;
    return PE_OK;
}

/* Sections ascend and leave the headers alone, so that none lies over another. */
static enum pe_status parse_sections(struct pe_image *image, const uint8_t *table)
{
    uint64_t free_rva = round_up(image->headers_size);

    for (unsigned i = 0; i < image->section_count; i++) {
        struct pe_section *section = &image->sections[i];
        enum pe_status status = parse_section(image, table + SECTION_HEADER_SIZE * i, section);

        if (status != PE_OK)
            return status;
        if (section->rva < free_rva)
            return PE_BAD_SECTION;
        free_rva = round_up((uint64_t)section->rva + section->size);
    }
    return PE_OK;
}

static bool directory_fits(const struct pe_image *image, struct pe_directory d)
{
    return d.size == 0 || inside(d.rva, d.size, image->image_size);
}

enum pe_status pe_parse(const void *file, size_t size, struct pe_image *image)
{
    const uint8_t *bytes = file;
    const uint8_t *coff;
    uint64_t coff_offset, table_offset;
    uint32_t optional_size;
    enum pe_status status;

    memset(image, 0, sizeof(*image));
    image->file = bytes;
    image->file_size = size;
    if (size < DOS_HEADER_SIZE)
        return PE_TRUNCATED;
    if (bytes[0] != 'M' || bytes[1] != 'Z')
        return PE_BAD_MAGIC;
    coff_offset = (uint64_t)get32(bytes + DOS_LFANEW) + 4;
    if (!inside(coff_offset - 4, 4 + COFF_HEADER_SIZE, size))
        return PE_TRUNCATED;
    coff = bytes + coff_offset;
    if (memcmp(coff - 4, "PE\0\0", 4) != 0)
        return PE_BAD_MAGIC;
    if (get16(coff) != MACHINE_AMD64)
        return PE_BAD_MACHINE;
    image->section_count = get16(coff + 2);
    image->relocations_stripped = get16(coff + 18) & FILE_RELOCS_STRIPPED;
    optional_size = get16(coff + 16);
    table_offset = coff_offset + COFF_HEADER_SIZE + optional_size;
    if (image->section_count > PE_MAX_SECTIONS)
        return PE_BAD_HEADER;
    if (!inside(table_offset, SECTION_HEADER_SIZE * (uint64_t)image->section_count, size))
        return PE_TRUNCATED;
    status = parse_optional(image, coff + COFF_HEADER_SIZE, optional_size);
    if (status != PE_OK)
        return status;
    if (!inside(0, image->headers_size, image->file_size))
        return PE_TRUNCATED;
    if (image->headers_size > image->image_size || image->entry_rva >= image->image_size)
        return PE_BAD_HEADER;
    if (!directory_fits(image, image->imports) || !directory_fits(image, image->exceptions) ||
        !directory_fits(image, image->relocations))
        return PE_BAD_HEADER;
    if (image->exceptions.size % sizeof(struct pe_function))
        return PE_BAD_EXCEPTION_TABLE;
    return parse_sections(image, bytes + table_offset);
}

void pe_map(const struct pe_image *image, uint8_t *memory)
{
    memset(memory, 0, image->image_size);
    memcpy(memory, image->file, image->headers_size);
    for (unsigned i = 0; i < image->section_count; i++) {
        const struct pe_section *s = &image->sections[i];

        if (s->file_size)
            memcpy(memory + s->rva, image->file + s->file_offset, s->file_size);
    }
}

/* One block of base relocations: a page and 16-bit entries, type << 12 | offset. */
static enum pe_status relocate_block(const struct pe_image *image, uint8_t *memory, uint32_t block,
                                     uint32_t size, uint64_t delta)
{
    uint32_t page = get32(memory + block);

    for (uint32_t at = block + 8; at < block + size; at += 2) {
        uint16_t entry = get16(memory + at);
        uint64_t target = (uint64_t)page + (entry & 0xfff);

        if (entry >> 12 == REL_ABSOLUTE)
            continue;
        if (entry >> 12 != REL_DIR64 || !inside(target, 8, image->image_size))
            return PE_BAD_RELOCATION;
        put64(memory + target, get64(memory + target) + delta);
    }
    return PE_OK;
}

enum pe_status pe_relocate(const struct pe_image *image, uint8_t *memory, uint64_t base)
{
    uint64_t delta = base - image->preferred_base;
    uint32_t at = image->relocations.rva;
    uint32_t end = at + image->relocations.size;

    if (delta == 0)
        return PE_OK;
    if (image->relocations_stripped)
        return PE_NO_RELOCATIONS;
    while (at < end) {
        uint32_t size;
        enum pe_status status;

        if (end - at < 8)
            return PE_BAD_RELOCATION;
        size = get32(memory + at + 4);
        if (size < 8 || size % 2 || size > end - at)
            return PE_BAD_RELOCATION;
        status = relocate_block(image, memory, at, size, delta);
        if (status != PE_OK)
            return status;
        at += size;
    }
    return PE_OK;
}

static void ordinal_text(char *to, uint16_t ordinal)
{
    char digits[5];
    unsigned n = 0;

    do {
        digits[n++] = (char)('0' + ordinal % 10);
        ordinal /= 10;
    } while (ordinal);
    *to++ = '#';
    while (n)
        *to++ = digits[--n];
    *to = 0;
}

static enum pe_status bind_one(const struct pe_image *image, uint8_t *memory, uint64_t lookup,
                               uint8_t *slot, pe_resolver *resolve, void *context,
                               struct pe_import_error *error)
{
    const char *name = NULL;
    uint16_t ordinal = 0;
    uint64_t address;

    if (lookup & ORDINAL_FLAG) {
        if (lookup & ~(ORDINAL_FLAG | 0xffff))
            return PE_BAD_IMPORT;
        ordinal = (uint16_t)lookup;
        ordinal_text(error->name, ordinal);
    } else {
        name = image_string(image, memory, lookup + 2); /* after the hint */
        if (!name || !*name)
            return PE_BAD_IMPORT;
        copy_text(error->name, sizeof(error->name), name);
    }
    address = resolve(context, error->dll, name, ordinal);
    if (!address)
        return PE_UNRESOLVED_IMPORT;
    put64(slot, address);
    return PE_OK;
}

static enum pe_status bind_dll(const struct pe_image *image, uint8_t *memory, uint32_t lookup_rva,
                               uint32_t address_rva, pe_resolver *resolve, void *context,
                               struct pe_import_error *error)
{
    for (uint64_t i = 0;; i += 8) {
        uint64_t lookup;
        enum pe_status status;

        if (!inside(lookup_rva + i, 8, image->image_size) ||
            !inside(address_rva + i, 8, image->image_size))
            return PE_BAD_IMPORT;
        lookup = get64(memory + lookup_rva + i);
        if (lookup == 0)
            return PE_OK;
        status = bind_one(image, memory, lookup, memory + address_rva + i, resolve, context, error);
        if (status != PE_OK)
            return status;
    }
}

enum pe_status pe_bind(const struct pe_image *image, uint8_t *memory, pe_resolver *resolve,
                       void *context, struct pe_import_error *error)
{
    uint64_t at = image->imports.rva;

    memset(error, 0, sizeof(*error));
    if (image->imports.size == 0)
        return PE_OK;
    for (;; at += IMPORT_DESCRIPTOR_SIZE) {
        uint32_t lookup_rva, name_rva, address_rva;
        const char *dll;
        enum pe_status status;

        if (!inside(at, IMPORT_DESCRIPTOR_SIZE, image->image_size))
            return PE_BAD_IMPORT;
        lookup_rva = get32(memory + at);
        name_rva = get32(memory + at + 12);
        address_rva = get32(memory + at + 16);
        if (name_rva == 0 && address_rva == 0)
            return PE_OK;
        dll = image_string(image, memory, name_rva);
        if (!dll)
            return PE_BAD_IMPORT;
        copy_text(error->dll, sizeof(error->dll), dll);
        error->name[0] = 0;
        status = bind_dll(image, memory, lookup_rva ? lookup_rva : address_rva, address_rva,
                          resolve, context, error);
        if (status != PE_OK)
            return status;
    }
}

bool pe_find_function(const struct pe_image *image, const uint8_t *memory, uint32_t rva,
                      struct pe_function *function)
{
    uint32_t low = 0;
    uint32_t high = image->exceptions.size / (uint32_t)sizeof(*function);

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const uint8_t *row = memory + image->exceptions.rva + sizeof(*function) * middle;

        if (rva < get32(row)) {
            high = middle;
        } else if (rva >= get32(row + 4)) {
            low = middle + 1;
        } else {
            function->begin_rva = get32(row);
            function->end_rva = get32(row + 4);
            function->unwind_rva = get32(row + 8);
            return inside(function->unwind_rva, 4, image->image_size);
        }
    }
    return false;
}

unsigned pe_page_protection(const struct pe_image *image, uint32_t rva)
{
    for (unsigned i = 0; i < image->section_count; i++) {
        const struct pe_section *s = &image->sections[i];

        if (rva >= s->rva && rva - s->rva < s->size)
            return s->protection;
    }
    return PE_READ;
}

const char *pe_status_text(enum pe_status status)
{
    static const char *const text[] = {
        [PE_OK] = "loaded",
        [PE_TRUNCATED] = "the file is truncated",
        [PE_BAD_MAGIC] = "not a PE32+ image",
        [PE_BAD_MACHINE] = "not an x86-64 image",
        [PE_BAD_HEADER] = "malformed header",
        [PE_BAD_SECTION] = "malformed section table",
        [PE_WRITABLE_CODE] = "a section is writable and executable",
        [PE_NO_RELOCATIONS] = "relocations are stripped",
        [PE_BAD_RELOCATION] = "malformed relocation",
        [PE_BAD_IMPORT] = "malformed import",
        [PE_UNRESOLVED_IMPORT] = "unresolved import",
        [PE_BAD_EXCEPTION_TABLE] = "malformed exception table",
    };

    _Static_assert(sizeof(text) / sizeof(text[0]) == PE_STATUS_COUNT, "a text per status");
    return status < PE_STATUS_COUNT ? text[status] : "unknown status";
}
