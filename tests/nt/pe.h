/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NT_PE_H
#define NT_PE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * PE32+ images for x86-64, as the "Microsoft Portable Executable and Common
 * Object File Format Specification" defines them.
 *
 * An image passes through four steps, in this order: pe_parse() checks the
 * file, pe_map() lays it out, pe_relocate() moves it to its address, pe_bind()
 * fills its import table. Each step checks every offset that it follows, so a
 * hostile image gives a status and never an access outside of the file or of
 * the mapped image. The loader allocates nothing and touches no page table.
 */

#define PE_MAX_SECTIONS 96 /* the loader limit of the specification */
#define PE_MAX_IMAGE_SIZE (16u << 20)
#define PE_PAGE 4096u

enum pe_status {
    PE_OK,
    PE_TRUNCATED,         /* an offset leads outside of the file */
    PE_BAD_MAGIC,         /* no MZ, no PE, or not PE32+ */
    PE_BAD_MACHINE,       /* not x86-64 */
    PE_BAD_HEADER,        /* sizes or alignments that contradict each other */
    PE_BAD_SECTION,       /* a section outside of the image, or over another one */
    PE_WRITABLE_CODE,     /* a section that is both writable and executable */
    PE_NO_RELOCATIONS,    /* relocations were stripped */
    PE_BAD_RELOCATION,    /* a malformed block, a foreign type, a target outside */
    PE_BAD_IMPORT,        /* a malformed descriptor, thunk or name */
    PE_UNRESOLVED_IMPORT, /* nobody exports it; pe_import_error names it */
    PE_BAD_EXCEPTION_TABLE,
    PE_STATUS_COUNT
};

/* What a page of the image may be used for. */
enum pe_protection {
    PE_READ = 0,
    PE_WRITE = 1,
    PE_EXECUTE = 2,
};

struct pe_section {
    char name[9];
    uint32_t rva;         /* page aligned */
    uint32_t size;        /* in memory, in bytes, at least 1 */
    uint32_t file_offset; /* of file_size bytes; the rest is zero */
    uint32_t file_size;
    unsigned protection; /* PE_WRITE or PE_EXECUTE or neither */
    bool discardable;
};

struct pe_directory {
    uint32_t rva;
    uint32_t size;
};

struct pe_image {
    const uint8_t *file;
    size_t file_size;
    uint64_t preferred_base;
    uint32_t image_size; /* page aligned */
    uint32_t headers_size;
    uint32_t entry_rva; /* 0: none */
    bool relocations_stripped;
    struct pe_directory imports, exceptions, relocations;
    unsigned section_count;
    struct pe_section sections[PE_MAX_SECTIONS];
};

/* RUNTIME_FUNCTION, a row of .pdata: a function and its unwind information. */
struct pe_function {
    uint32_t begin_rva, end_rva, unwind_rva;
};

/* The import that pe_bind() stopped at. */
struct pe_import_error {
    char dll[32];
    char name[64]; /* "#n" for an import by ordinal */
};

/**
 * Finds the address that an import stands for.
 * @dll: name of the exporting image as written, for instance "ntoskrnl.exe".
 * @name: name of the export, or NULL for an import by ordinal.
 * @ordinal: the ordinal, where name is NULL.
 * Returns the address, or 0 if there is none.
 */
typedef uint64_t pe_resolver(void *context, const char *dll, const char *name, uint16_t ordinal);

/** Checks headers and section table of a file of size bytes, and fills *image. */
enum pe_status pe_parse(const void *file, size_t size, struct pe_image *image);

/** Copies headers and sections into memory of image->image_size bytes. */
void pe_map(const struct pe_image *image, uint8_t *memory);

/** Applies the base relocations to a mapped image that will run at base. */
enum pe_status pe_relocate(const struct pe_image *image, uint8_t *memory, uint64_t base);

/**
 * Fills the import address table of a mapped image.
 * On PE_UNRESOLVED_IMPORT and PE_BAD_IMPORT *error names the import, as far as
 * it is known.
 */
enum pe_status pe_bind(const struct pe_image *image, uint8_t *memory, pe_resolver *resolve,
                       void *context, struct pe_import_error *error);

/**
 * Finds the row of the exception directory that covers rva, as
 * RtlLookupFunctionEntry does. Returns false for a leaf function.
 */
bool pe_find_function(const struct pe_image *image, const uint8_t *memory, uint32_t rva,
                      struct pe_function *function);

/** What the page at rva (a multiple of PE_PAGE) may be used for. */
unsigned pe_page_protection(const struct pe_image *image, uint32_t rva);

/** The constant's meaning, in words. */
const char *pe_status_text(enum pe_status status);

#endif
