// SPDX-License-Identifier: BSD-3-Clause
/* What of UTF-8 may be in a text for people: names of holders, of processes, of VMs. Pure. */
#ifndef VPMU_UTF8_H
#define VPMU_UTF8_H

#include <stddef.h>

/*
 * Bytes (1..4) of the character at text, of which there are size bytes, at least 1. 0: there is
 * none, or it is a control character. Unicode 15, table 3-7: overlong forms and surrogates are
 * none. A NUL is a control character, and ends a sequence that it cuts.
 */
static inline size_t vpmu_utf8_length(const char *text, size_t size)
{
    const unsigned char *byte = (const unsigned char *)text;
    const size_t length = byte[0] < 0x80   ? 1
                          : byte[0] < 0xC2 ? 0
                          : byte[0] < 0xE0 ? 2
                          : byte[0] < 0xF0 ? 3
                          : byte[0] < 0xF5 ? 4
                                           : 0;

    if (length == 1)
        return byte[0] >= 0x20 && byte[0] != 0x7F;
    if (length > size)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((byte[i] & 0xC0) != 0x80)
            return 0;
    if ((byte[0] == 0xE0 && byte[1] < 0xA0) || (byte[0] == 0xED && byte[1] >= 0xA0) ||
        (byte[0] == 0xF0 && byte[1] < 0x90) || (byte[0] == 0xF4 && byte[1] >= 0x90) ||
        (byte[0] == 0xC2 && byte[1] < 0xA0)) /* overlong, surrogates, C1 controls */
        return 0;
    return length;
}

#endif
