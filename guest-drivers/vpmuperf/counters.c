/* SPDX-License-Identifier: BSD-3-Clause */
#include "counters.h"

#include <stdio.h>

#include "guest-drivers/source/source.h"

#define GUID_OF(a, b, c, ...)                                                                      \
    {                                                                                              \
        a, b, c,                                                                                   \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

enum { VPMU_EVENT_NONE = -1 }; /* NONE in the column of events: VPMU_NONE */

const struct counter_guid counter_provider =
    GUID_OF(0xcb5a3ddb, 0xae3e, 0x47e0, 0xbd, 0xd4, 0xa2, 0xb5, 0x9c, 0x7d, 0x40, 0x85);

static const struct counter_row processor_rows[] = {
#define PROCESSOR_COUNTER(ID, number, kind, of, by, counts, text, explained)                       \
    [PROCESSOR_##ID] = {.id = (number),                                                            \
                        .type = COUNTER_##kind,                                                    \
                        .base = (of),                                                              \
                        .scale = (by),                                                             \
                        .event = (uint32_t)VPMU_EVENT_##counts,                                    \
                        .symbol = #ID,                                                             \
                        .name = (text),                                                            \
                        .help = (explained)},
#include "counters.def"
};

static const struct counter_row vm_rows[] = {
#define VM_COUNTER(ID, number, kind, of, by, fact, text, explained)                                \
    [VM_##ID] = {.id = (number),                                                                   \
                 .type = COUNTER_##kind,                                                           \
                 .base = (of),                                                                     \
                 .scale = (by),                                                                    \
                 .event = VPMU_NONE,                                                               \
                 .field = offsetof(struct source_facts, fact),                                     \
                 .symbol = #ID,                                                                    \
                 .name = (text),                                                                   \
                 .help = (explained)},
#include "counters.def"
};

#define ROWS_PROCESSOR PROCESSOR_SLOTS, processor_rows
#define ROWS_VM VM_SLOTS, vm_rows

const struct counter_set counter_sets[COUNTER_SETS] = {
#define VPMU_SET(id, name, instances, guid, help)                                                  \
    [SET_##id] = {guid, COUNTER_##instances, ROWS_##id, #id, name, help},
#include "counters.def"
};

char *counter_guid_text(const struct counter_guid *guid, char to[39])
{
    const uint8_t *d = guid->data4;

    snprintf(to, 39, "{%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x}", guid->data1, guid->data2,
             guid->data3, d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]);
    return to;
}
