// SPDX-License-Identifier: BSD-3-Clause
/* Bytes to messages. Pure, and safe against any bytes. */
#include <string.h>

#include "vpmu/wire.h"

#define HEADER ((uint32_t)sizeof(struct vpmu_wire_header))

static bool is_sane(const struct vpmu_wire_header *header)
{
    return (header->flags & VPMU_WIRE_FLAG_VERSION) == VPMU_WIRE_VERSION &&
           !(header->flags & ~(uint32_t)VPMU_WIRE_FLAGS) &&
           (!(header->flags & VPMU_WIRE_FLAG_ERROR) || header->flags & VPMU_WIRE_FLAG_REPLY) &&
           header->size <= VPMU_WIRE_BODY_MAX && header->size % 8 == 0;
}

/* Takes what is missing up to have == want; whether that is reached. */
static bool take(struct vpmu_wire_reader *reader, uint32_t want, const uint8_t **data, size_t *size)
{
    size_t part = want - reader->have;

    if (part > *size)
        part = *size;
    memcpy((uint8_t *)&reader->message + reader->have, *data, part);
    *data += part;
    *size -= part;
    reader->have += (uint32_t)part;
    return reader->have == want;
}

enum vpmu_wire_progress vpmu_wire_read(struct vpmu_wire_reader *reader, const uint8_t **data,
                                       size_t *size)
{
    const struct vpmu_wire_header *header = &reader->message.header;

    if (reader->broken)
        return VPMU_WIRE_BROKEN;
    if (reader->whole)
        reader->have = 0;
    reader->whole = false;
    if (reader->have < HEADER) {
        if (!take(reader, HEADER, data, size))
            return VPMU_WIRE_MORE;
        reader->broken = !is_sane(header);
        if (reader->broken)
            return VPMU_WIRE_BROKEN;
    }
    reader->whole = take(reader, HEADER + header->size, data, size);
    return reader->whole ? VPMU_WIRE_MESSAGE : VPMU_WIRE_MORE;
}
