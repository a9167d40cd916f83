/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NT_EXPORTS_H
#define NT_EXPORTS_H

#include <stdint.h>

/** The address that stands for an import, 0 if there is none; a pe_resolver. */
uint64_t export_resolve(void *context, const char *dll, const char *name, uint16_t ordinal);

#endif
