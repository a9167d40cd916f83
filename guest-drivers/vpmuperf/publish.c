/* SPDX-License-Identifier: BSD-3-Clause */
#include "publish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From good to bad: of several states, the worst is told. */
static const uint8_t badness[VPMU_COUNTER_STATES] = {
    [VPMU_COUNTER_BACKED] = 0,      [VPMU_COUNTER_GRANTED] = 1,  [VPMU_COUNTER_ABSENT] = 2,
    [VPMU_COUNTER_UNSUPPORTED] = 3, [VPMU_COUNTER_FILTERED] = 4, [VPMU_COUNTER_STARVED] = 5,
    [VPMU_COUNTER_REVOKED] = 6,
};

static int add_item(struct publish *publish, enum counter_set_id set, uint32_t id, const char *name)
{
    struct publish_item **items = (struct publish_item **)realloc(
        (void *)publish->items, (publish->count + 1) * sizeof(struct publish_item *));
    struct publish_item *item = calloc(1, sizeof(*item));

    if (items)
        publish->items = items;
    if (!items || !item) {
        free(item);
        return -1;
    }
    item->set = set;
    item->id = id;
    snprintf(item->name, sizeof(item->name), "%s", name);
    items[publish->count++] = item;
    return 0;
}

static int add_processors(struct publish *publish, uint32_t processors)
{
    char name[12];

    for (uint32_t i = publish->count - PUBLISH_PROCESSORS; i < processors; i++) {
        snprintf(name, sizeof(name), "%u", i);
        if (add_item(publish, SET_PROCESSOR, i, name) < 0)
            return -1;
    }
    return 0;
}

int publish_init(struct publish *publish)
{
    *publish = (struct publish){0};
    if (add_item(publish, SET_VM, 0, "Default") == 0 &&
        add_item(publish, SET_PROCESSOR, PUBLISH_TOTAL_ID, "_Total") == 0)
        return 0;
    publish_free(publish);
    return -1;
}

void publish_free(struct publish *publish)
{
    for (uint32_t i = 0; i < publish->count; i++)
        free(publish->items[i]);
    free((void *)publish->items);
    *publish = (struct publish){0};
}

static void put(struct publish_item *item, uint32_t slot, bool has, uint64_t value)
{
    /* The value before its bit, and what has no data keeps its last value: a consumer that reads at
     * this moment sees no zero. */
    if (has)
        item->values[slot] = value;
    item->has = (item->has & ~(1u << slot)) | (uint32_t)has << slot;
}

static uint64_t width_of(const struct source_facts *facts, const struct source_record *record)
{
    return record->counter < VPMU_FIRST_FIXED ? facts->gp_width : facts->fixed_width;
}

/*
 * Difference modulo 2^width. No counter goes through half of its range between two looks, so such a
 * difference is a counter that began again: at least its value has been counted since, but what
 * came before is not known. Returns false then.
 */
static bool difference(uint64_t from, uint64_t to, uint64_t width, uint64_t *delta)
{
    uint64_t mask = width && width < 64 ? (1ull << width) - 1 : UINT64_MAX;

    *delta = (to - from) & mask;
    return *delta <= mask / 2;
}

static void lose(struct publish_track *track)
{
    track->valid = track->has_delta = false;
    track->delta = 0;
}

static void follow(struct publish_track *track, const struct source_record *record, uint64_t width)
{
    bool same = record && track->valid && track->counter == record->counter &&
                track->config == record->config;

    if (!record || !source_has_value(record)) {
        lose(track);
        return;
    }
    track->has_delta = same && difference(track->last, record->value, width, &track->delta);
    if (!track->has_delta)
        track->delta = 0;
    track->sum += track->delta;
    track->valid = true;
    track->counter = record->counter;
    track->config = record->config;
    track->last = record->value;
}

static void note_worst(struct publish_item *item, uint64_t state, uint64_t per_mille)
{
    if (state < VPMU_COUNTER_STATES &&
        (item->state >= VPMU_COUNTER_STATES || badness[state] > badness[item->state]))
        item->state = state;
    if (per_mille < item->per_mille) /* SOURCE_NOT_KNOWN is the largest */
        item->per_mille = per_mille;
}

static void follow_processor(struct publish_item *item, const struct source_facts *facts,
                             const struct source_processor *processor)
{
    item->state = item->per_mille = SOURCE_NOT_KNOWN;
    for (uint32_t i = 0; i < processor->count; i++) {
        const struct source_record *record = &processor->records[i];
        if (record->event != VPMU_NONE)
            note_worst(item, record->state, source_backed_per_mille(record));
    }
    for (uint32_t event = 0; event < VPMU_EVENTS; event++) {
        const struct source_record *record = source_find(processor, event);
        follow(&item->tracks[event], record, record ? width_of(facts, record) : 0);
    }
}

/* What of the total does not hold until every processor has confirmed it. */
static void begin_total(struct publish_item *total, uint32_t processors)
{
    total->state = total->per_mille = SOURCE_NOT_KNOWN;
    for (uint32_t event = 0; event < VPMU_EVENTS; event++) {
        total->tracks[event].valid = total->tracks[event].has_delta = processors > 0;
        total->tracks[event].delta = 0;
    }
}

/* A total of some of the processors would look like a total of all: it is none. */
static void add_to_total(struct publish_item *total, const struct publish_item *item)
{
    note_worst(total, item->state, item->per_mille);
    for (uint32_t event = 0; event < VPMU_EVENTS; event++) {
        struct publish_track *to = &total->tracks[event];
        const struct publish_track *from = &item->tracks[event];
        to->valid &= from->valid;
        to->has_delta &= from->has_delta;
        to->delta += from->delta;
        to->sum += from->delta;
    }
}

static void fill_processor(struct publish_item *item)
{
    const struct publish_track *instructions = &item->tracks[VPMU_EVENT_INSTRUCTIONS];
    const struct publish_track *cycles = &item->tracks[VPMU_EVENT_CYCLES];
    bool ipc = instructions->has_delta && cycles->has_delta && cycles->delta;

    for (uint32_t slot = 0; slot < PROCESSOR_SLOTS; slot++) {
        uint32_t event = counter_sets[SET_PROCESSOR].rows[slot].event;
        if (event != VPMU_NONE)
            put(item, slot, item->tracks[event].valid, item->tracks[event].sum);
    }
    put(item, PROCESSOR_IPC, ipc, instructions->delta);
    put(item, PROCESSOR_IPC_BASE, ipc, cycles->delta);
    put(item, PROCESSOR_BACKED, item->per_mille != SOURCE_NOT_KNOWN, item->per_mille);
    put(item, PROCESSOR_BACKED_BASE, item->per_mille != SOURCE_NOT_KNOWN, 1000);
    put(item, PROCESSOR_STATE, item->state != SOURCE_NOT_KNOWN, item->state);
}

static void fill_vm(struct publish_item *item, const struct source_facts *facts)
{
    for (uint32_t slot = 0; slot < VM_SLOTS; slot++) {
        uint64_t fact;
        memcpy(&fact, (const char *)facts + counter_sets[SET_VM].rows[slot].field, sizeof(fact));
        put(item, slot, fact != SOURCE_NOT_KNOWN, fact);
    }
}

static void lose_all(struct publish *publish)
{
    for (uint32_t i = 0; i < publish->count; i++) {
        publish->items[i]->has = 0;
        for (uint32_t event = 0; event < VPMU_EVENTS; event++)
            lose(&publish->items[i]->tracks[event]);
    }
}

/* A processor that has gone between the look and the read is read as one without counters. */
static void look_at_processor(struct publish_item *item, struct source *source, uint32_t number,
                              const struct source_facts *facts)
{
    struct source_processor processor;

    item->wanted = number < facts->processors;
    if (!item->wanted || source_read(source, number, &processor) < 0)
        processor.count = 0;
    follow_processor(item, facts, &processor);
    fill_processor(item);
}

static int no_memory(struct source *source)
{
    source->error = (struct source_error){.what = "no memory for this many processors"};
    return -1;
}

int publish_look(struct publish *publish, struct source *source)
{
    struct publish_item *total = publish->items[PUBLISH_TOTAL];
    struct source_facts facts;

    if (source_look(source, &facts) < 0) {
        lose_all(publish);
        return -1;
    }
    if (add_processors(publish, facts.processors) < 0) {
        lose_all(publish);
        return no_memory(source);
    }
    publish->items[PUBLISH_VM]->wanted = true;
    fill_vm(publish->items[PUBLISH_VM], &facts);
    total->wanted = facts.processors > 0;
    begin_total(total, facts.processors);
    for (uint32_t i = PUBLISH_PROCESSORS; i < publish->count; i++) {
        struct publish_item *item = publish->items[i];
        look_at_processor(item, source, i - PUBLISH_PROCESSORS, &facts);
        if (item->wanted)
            add_to_total(total, item);
    }
    fill_processor(total);
    return 0;
}
