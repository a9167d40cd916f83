/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of counters.def as tables. */
#ifndef VPMUPERF_COUNTERS_H
#define VPMUPERF_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

/* As a GUID of Windows. */
struct counter_guid {
    uint32_t data1;
    uint16_t data2, data3;
    uint8_t data4[8];
};

/* Counter types of winperf.h; each value has 8 bytes. */
enum counter_type {
    COUNTER_NUMBER = 0x00010100,   /* PERF_COUNTER_LARGE_RAWCOUNT: as it is */
    COUNTER_RATE = 0x10410500,     /* PERF_COUNTER_BULK_COUNT: difference per second */
    COUNTER_FRACTION = 0x20020500, /* PERF_LARGE_RAW_FRACTION: per cent of its base */
    COUNTER_BASE = 0x40030500,     /* PERF_LARGE_RAW_BASE */
};

enum counter_instances {
    COUNTER_SINGLE = 0,   /* PERF_COUNTERSET_SINGLE_INSTANCE */
    COUNTER_MULTIPLE = 2, /* PERF_COUNTERSET_MULTI_INSTANCES */
};

enum counter_set_id {
#define VPMU_SET(id, name, instances, guid, help) SET_##id,
#include "counters.def"
    COUNTER_SETS,
};

/* Slots: places in a set, from 0. */
enum processor_slot {
#define PROCESSOR_COUNTER(id, number, type, base, scale, event, name, help) PROCESSOR_##id,
#include "counters.def"
    PROCESSOR_SLOTS,
};

enum vm_slot {
#define VM_COUNTER(id, number, type, base, scale, field, name, help) VM_##id,
#include "counters.def"
    VM_SLOTS,
};

#define COUNTER_MAX_SLOTS PROCESSOR_SLOTS
_Static_assert((int)VM_SLOTS <= (int)COUNTER_MAX_SLOTS, "COUNTER_MAX_SLOTS");

struct counter_row {
    uint32_t id;
    uint32_t type;  /* enum counter_type */
    uint32_t base;  /* id of the counter that it is a fraction of; 0: none */
    int32_t scale;  /* a graph shows value * 10^scale */
    uint32_t event; /* of a rate: enum vpmu_event_id; else VPMU_NONE */
    size_t field;   /* of a fact: where it stands in source_facts */
    const char *symbol, *name, *help;
};

struct counter_set {
    struct counter_guid guid;
    uint32_t instances; /* enum counter_instances */
    uint32_t count;
    const struct counter_row *rows;
    const char *symbol, *name, *help;
};

extern const struct counter_guid counter_provider;
extern const struct counter_set counter_sets[COUNTER_SETS];

/** Writes {8-4-4-4-12} and a zero, 39 bytes. Returns to. */
char *counter_guid_text(const struct counter_guid *guid, char to[39]);

#endif
