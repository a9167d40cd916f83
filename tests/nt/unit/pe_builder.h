/* SPDX-License-Identifier: BSD-3-Clause */
/* A small valid image, byte by byte, for tests to spoil. */
#ifndef NT_PE_BUILDER_H
#define NT_PE_BUILDER_H

#include <stdint.h>

enum {
    BUILT_SIZE = 0xe00,
    BUILT_IMAGE_SIZE = 0x6000,
    BUILT_COFF = 0x84,
    BUILT_OPTIONAL = BUILT_COFF + 20,
    BUILT_DIRECTORIES = BUILT_OPTIONAL + 112,
    BUILT_SECTIONS = BUILT_DIRECTORIES + 16 * 8,
    /* offsets in the file; the RVAs are 0x1000, 0x2000 and so on */
    BUILT_TEXT = 0x400,
    BUILT_DATA = 0x600,
    BUILT_IDATA = 0x800,
    BUILT_RELOC = 0xa00,
    BUILT_PDATA = 0xc00,
};
#define BUILT_BASE UINT64_C(0x140000000)

/** Fills file with an image of five sections, two imports, one relocation, two functions. */
void build_image(uint8_t file[BUILT_SIZE]);

void put16(uint8_t *p, uint16_t value);
void put32(uint8_t *p, uint32_t value);
void put64(uint8_t *p, uint64_t value);
uint64_t get64(const uint8_t *p);

#endif
