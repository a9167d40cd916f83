/* SPDX-License-Identifier: BSD-3-Clause */
/* Loaded driver images. */
#ifndef NT_IMAGE_H
#define NT_IMAGE_H

#include <stdbool.h>

#include "ntmore.h"
#include "pe.h"

#define IMAGE_NAME 32

struct image {
    bool loaded;
    char name[IMAGE_NAME]; /* "vpmu.sys" */
    struct pe_image pe;
    uint8_t *memory; /* where it was laid out, identity-mapped */
    uint64_t base;   /* where it runs; its pages carry their sections' protections there */
};

/** Loads a file. NULL after a note that says what is wrong; *status says it too, if not NULL. */
struct image *image_load(const char *name, const void *file, size_t size, enum pe_status *status);

/** Takes the image out of the address space. */
void image_unload(struct image *image);

/** The image that an address lies in, NULL for none. */
struct image *image_at(uint64_t address);

/** Mappings of device memory that an image still has; they are gone from now on. */
unsigned memory_mappings(const struct image *owner);

#endif
