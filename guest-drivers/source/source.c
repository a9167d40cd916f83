/* SPDX-License-Identifier: BSD-3-Clause */
/* What all sources share. */

#include "internal.h"

int source_fail(struct source *source, const char *what, uint32_t status)
{
    source->error = (struct source_error){.what = what, .status = status};
    return -1;
}

int source_look(struct source *source, struct source_facts *facts)
{
    return source->ops->look(source, facts);
}

int source_read(struct source *source, uint32_t processor, struct source_processor *out)
{
    *out = (struct source_processor){.processor = processor};
    return source->ops->read(source, processor, out);
}

int source_take(struct source *source, uint32_t events, uint32_t flags, uint32_t *placed)
{
    *placed = 0;
    return source->ops->take ? source->ops->take(source, events, flags, placed) : 1;
}

void source_close(struct source *source)
{
    if (source)
        source->ops->close(source);
}

bool source_has_value(const struct source_record *record)
{
    return record->event != VPMU_NONE && record->state == VPMU_COUNTER_BACKED;
}

uint64_t source_backed_per_mille(const struct source_record *record)
{
    uint64_t enabled = record->enabled_ns, backed = record->backed_ns;

    if (enabled == SOURCE_NOT_KNOWN || backed == SOURCE_NOT_KNOWN || !enabled)
        return SOURCE_NOT_KNOWN;
    if (backed >= enabled)
        return 1000;
    /* No product overflows: what is cut off is less than a millionth. */
    for (; enabled > UINT64_MAX / 1000; enabled >>= 1)
        backed >>= 1;
    return backed * 1000 / enabled;
}

const struct source_record *source_find(const struct source_processor *processor, uint32_t event)
{
    const struct source_record *found = NULL;

    for (uint32_t i = 0; i < processor->count; i++) {
        const struct source_record *record = &processor->records[i];
        if (record->event == event && (!found || !source_has_value(found)))
            found = record;
    }
    return found;
}

struct source_facts source_no_facts(void)
{
    return (struct source_facts){
        .shape = SOURCE_NOT_KNOWN,
        .granted = SOURCE_NOT_KNOWN,
        .starved = SOURCE_NOT_KNOWN,
        .filtered = SOURCE_NOT_KNOWN,
        .revocations = SOURCE_NOT_KNOWN,
        .host = SOURCE_NOT_KNOWN,
        .event_class = SOURCE_NOT_KNOWN,
        .gp_width = SOURCE_NOT_KNOWN,
        .fixed_width = SOURCE_NOT_KNOWN,
    };
}

void source_tally(struct source_tally *tally, const struct source_processor *processor)
{
    for (uint32_t i = 0; i < processor->count; i++) {
        const struct source_record *record = &processor->records[i];
        uint64_t bit = 1ull << (record->counter & 63);

        if (record->state == VPMU_COUNTER_STARVED)
            tally->starved |= bit;
        if (record->state == VPMU_COUNTER_FILTERED)
            tally->filtered |= bit;
    }
}

uint64_t source_members(uint64_t set)
{
    uint64_t count = 0;

    for (; set; set &= set - 1)
        count++;
    return count;
}

void source_tally_end(const struct source_tally *tally, struct source_facts *facts)
{
    facts->starved = source_members(tally->starved);
    facts->filtered = source_members(tally->filtered);
}
