/* SPDX-License-Identifier: BSD-3-Clause */
#include "vpmuperf_source.h"

static struct test_source *test_of(struct source *source)
{
    return (struct test_source *)source;
}

static int look(struct source *source, struct source_facts *facts)
{
    *facts = test_of(source)->facts;
    return test_of(source)->look_result;
}

static int read_processor(struct source *source, uint32_t processor, struct source_processor *out)
{
    if (processor >= test_of(source)->facts.processors)
        return -1;
    *out = test_of(source)->processors[processor];
    return test_of(source)->read_result;
}

static const struct source_ops ops = {.name = "test", .look = look, .read = read_processor};

static struct source_record backed(uint32_t counter, uint32_t event)
{
    return (struct source_record){
        .counter = counter,
        .event = event,
        .state = VPMU_COUNTER_BACKED,
        .enabled_ns = SOURCE_NOT_KNOWN,
        .backed_ns = SOURCE_NOT_KNOWN,
    };
}

void test_source_init(struct test_source *test, uint32_t processors)
{
    *test = (struct test_source){
        .source = {.ops = &ops},
        .facts = {.processors = processors,
                  .shape = 7,
                  .granted = 5,
                  .starved = 0,
                  .filtered = 0,
                  .revocations = SOURCE_NOT_KNOWN,
                  .host = 2,
                  .event_class = SOURCE_NOT_KNOWN,
                  .gp_width = 40,
                  .fixed_width = 48},
    };
    for (uint32_t i = 0; i < TEST_PROCESSORS; i++) {
        test->processors[i].count = 3;
        test->processors[i].records[0] = backed(0, VPMU_EVENT_BRANCHES);
        test->processors[i].records[1] = backed(32, VPMU_EVENT_INSTRUCTIONS);
        test->processors[i].records[2] = backed(33, VPMU_EVENT_CYCLES);
    }
}

struct source_record *test_record(struct test_source *test, uint32_t processor, uint32_t event)
{
    struct source_processor *of = &test->processors[processor];

    for (uint32_t i = 0; i < of->count; i++) {
        if (of->records[i].event == event)
            return &of->records[i];
    }
    return NULL;
}

void test_count(struct test_source *test, uint32_t event, uint64_t by)
{
    for (uint32_t i = 0; i < TEST_PROCESSORS; i++) {
        struct source_record *record = test_record(test, i, event);
        if (record->state == VPMU_COUNTER_BACKED)
            record->value += by;
    }
}
