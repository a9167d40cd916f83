/* SPDX-License-Identifier: BSD-3-Clause */
/* The NT test guest's PE loader over any file. */
#include "tests/nt/pe.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t resolve(void *context, const char *dll, const char *name, uint16_t ordinal)
{
    (void)context;
    return name ? (uint64_t)(dll[0] != 0) + (uint64_t)(name[0] != 0) : ordinal;
}

/* The address is the first of the kernel half; images of more than 1 MiB only cost time. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pe_import_error error;
    struct pe_function function;
    struct pe_image image;
    uint8_t *memory;

    if (pe_parse(data, size, &image) != PE_OK || image.image_size > 1u << 20)
        return 0;
    memory = malloc(image.image_size ? image.image_size : 1);
    pe_map(&image, memory);
    if (pe_relocate(&image, memory, UINT64_C(0xfffff80000000000)) == PE_OK)
        pe_bind(&image, memory, resolve, NULL, &error);
    for (uint32_t rva = 0; rva < image.image_size; rva += PE_PAGE / 2) {
        pe_find_function(&image, memory, rva, &function);
        if (pe_page_protection(&image, rva) == (PE_WRITE | PE_EXECUTE))
            abort();
    }
    free(memory);
    return 0;
}
