/* SPDX-License-Identifier: BSD-3-Clause */
/* What is published, and what has no data. */

#include <criterion/criterion.h>

#include "vpmuperf_source.h"

static struct test_source test;
static struct publish publish;

static void begin(void)
{
    test_source_init(&test, 2);
    cr_assert_eq(publish_init(&publish), 0);
}

static void end(void)
{
    publish_free(&publish);
}

TestSuite(vpmuperf_publish, .init = begin, .fini = end);

static struct publish_item *look(uint32_t item)
{
    cr_assert_eq(publish_look(&publish, &test.source), 0);
    return publish.items[item];
}

static bool has(const struct publish_item *item, uint32_t slot)
{
    return item->has >> slot & 1;
}

Test(vpmuperf_publish, a_rate_grows_by_what_was_counted)
{
    struct publish_item *item = look(PUBLISH_PROCESSORS);

    cr_assert(has(item, PROCESSOR_INSTRUCTIONS));
    cr_assert_eq(item->values[PROCESSOR_INSTRUCTIONS], 0, "what came before is not known");
    test_count(&test, VPMU_EVENT_INSTRUCTIONS, 1000);
    look(0);
    cr_assert_eq(item->values[PROCESSOR_INSTRUCTIONS], 1000);
    test_count(&test, VPMU_EVENT_INSTRUCTIONS, 234);
    look(0);
    cr_assert_eq(item->values[PROCESSOR_INSTRUCTIONS], 1234);
    cr_assert_eq(publish.items[PUBLISH_TOTAL]->values[PROCESSOR_INSTRUCTIONS], 2468);
    cr_assert_not(has(item, PROCESSOR_LLC_MISSES), "nobody counts it");
}

Test(vpmuperf_publish, counters_wrap_at_their_own_width)
{
    struct publish_item *item;

    test_record(&test, 0, VPMU_EVENT_BRANCHES)->value = (1ull << 40) - 3;
    test_record(&test, 0, VPMU_EVENT_CYCLES)->value = (1ull << 48) - 3;
    item = look(PUBLISH_PROCESSORS);
    test_record(&test, 0, VPMU_EVENT_BRANCHES)->value = 7;
    test_record(&test, 0, VPMU_EVENT_CYCLES)->value = 17;
    look(0);
    cr_assert_eq(item->values[PROCESSOR_BRANCHES], 10);
    cr_assert_eq(item->values[PROCESSOR_CYCLES], 20);
}

Test(vpmuperf_publish, a_counter_that_began_again_adds_nothing)
{
    struct source_record *record = test_record(&test, 0, VPMU_EVENT_CYCLES);
    struct publish_item *item;

    record->value = 1000000;
    item = look(PUBLISH_PROCESSORS);
    record->value = 1000100;
    look(0);
    record->value = 50; /* programmed anew: backwards, and far from a wrap */
    look(0);
    cr_assert_eq(item->values[PROCESSOR_CYCLES], 100);
    cr_assert(has(item, PROCESSOR_CYCLES));
    record->value = 75;
    look(0);
    cr_assert_eq(item->values[PROCESSOR_CYCLES], 125);
}

Test(vpmuperf_publish, another_counter_is_another_beginning)
{
    struct source_record *record = test_record(&test, 0, VPMU_EVENT_BRANCHES);
    struct publish_item *item = look(PUBLISH_PROCESSORS);

    record->value = 500;
    look(0);
    record->counter = 3; /* the event has moved */
    record->value = 90000;
    look(0);
    cr_assert_eq(item->values[PROCESSOR_BRANCHES], 500);
    record->value += 5;
    record->config ^= 0x100; /* another umask */
    look(0);
    cr_assert_eq(item->values[PROCESSOR_BRANCHES], 500);
}

Test(vpmuperf_publish, without_a_known_width_nothing_wraps)
{
    struct source_record *record = test_record(&test, 0, VPMU_EVENT_BRANCHES);
    struct publish_item *item;

    test.facts.gp_width = SOURCE_NOT_KNOWN;
    record->value = 100;
    item = look(PUBLISH_PROCESSORS);
    record->value = 50;
    look(0);
    cr_assert_eq(item->values[PROCESSOR_BRANCHES], 0);
    record->value = 60;
    look(0);
    cr_assert_eq(item->values[PROCESSOR_BRANCHES], 10);
}

Test(vpmuperf_publish, what_is_not_backed_has_no_data_in_any_state)
{
    for (uint32_t state = 0; state < VPMU_COUNTER_STATES; state++) {
        struct publish_item *item;
        test_record(&test, 0, VPMU_EVENT_INSTRUCTIONS)->state = state;
        item = look(PUBLISH_PROCESSORS);
        cr_assert_eq(has(item, PROCESSOR_INSTRUCTIONS), state == VPMU_COUNTER_BACKED, "%u", state);
        cr_assert_eq(has(publish.items[PUBLISH_TOTAL], PROCESSOR_INSTRUCTIONS),
                     state == VPMU_COUNTER_BACKED, "a total of some is none: %u", state);
        cr_assert(has(item, PROCESSOR_CYCLES), "the others stand");
        cr_assert(has(publish.items[PUBLISH_PROCESSORS + 1], PROCESSOR_INSTRUCTIONS));
        cr_assert(has(item, PROCESSOR_STATE));
        cr_assert_eq(item->values[PROCESSOR_STATE], state);
    }
}

Test(vpmuperf_publish, what_comes_back_goes_on_without_a_jump)
{
    struct source_record *record = test_record(&test, 0, VPMU_EVENT_CYCLES);
    struct publish_item *item = look(PUBLISH_PROCESSORS);

    record->value = 1000;
    look(0);
    record->state = VPMU_COUNTER_STARVED;
    look(0);
    cr_assert_not(has(item, PROCESSOR_CYCLES));
    cr_assert_eq(item->values[PROCESSOR_CYCLES], 1000, "who still reads it sees no zero");
    record->state = VPMU_COUNTER_BACKED;
    record->value = 5000;
    look(0);
    cr_assert_eq(item->values[PROCESSOR_CYCLES], 1000);
    record->value = 5001;
    look(0);
    cr_assert_eq(item->values[PROCESSOR_CYCLES], 1001);
}

Test(vpmuperf_publish, ipc_is_over_the_time_between_two_looks)
{
    struct publish_item *item = look(PUBLISH_PROCESSORS);
    struct publish_item *total = publish.items[PUBLISH_TOTAL];

    cr_assert_not(has(item, PROCESSOR_IPC), "one look has no time");
    test_count(&test, VPMU_EVENT_INSTRUCTIONS, 300);
    test_count(&test, VPMU_EVENT_CYCLES, 200);
    look(0);
    cr_assert(has(item, PROCESSOR_IPC));
    cr_assert_eq(item->values[PROCESSOR_IPC], 300);
    cr_assert_eq(item->values[PROCESSOR_IPC_BASE], 200);
    cr_assert_eq(total->values[PROCESSOR_IPC], 600);
    cr_assert_eq(total->values[PROCESSOR_IPC_BASE], 400);
    look(0);
    cr_assert_not(has(item, PROCESSOR_IPC), "no cycle: no ratio, and no division by zero");
    cr_assert_not(has(item, PROCESSOR_IPC_BASE));
    test_record(&test, 0, VPMU_EVENT_CYCLES)->state = VPMU_COUNTER_FILTERED;
    test_count(&test, VPMU_EVENT_INSTRUCTIONS, 10);
    test_count(&test, VPMU_EVENT_CYCLES, 10);
    look(0);
    cr_assert_not(has(item, PROCESSOR_IPC));
    cr_assert_not(has(total, PROCESSOR_IPC));
    cr_assert(has(publish.items[PUBLISH_PROCESSORS + 1], PROCESSOR_IPC));
}

Test(vpmuperf_publish, backed_time_is_that_of_the_worst_counter)
{
    struct source_record *record = test_record(&test, 0, VPMU_EVENT_CYCLES);
    struct publish_item *item = look(PUBLISH_PROCESSORS);

    cr_assert_not(has(item, PROCESSOR_BACKED), "not known");
    record->enabled_ns = 1000;
    record->backed_ns = 1000;
    record = test_record(&test, 0, VPMU_EVENT_INSTRUCTIONS);
    record->enabled_ns = 4000;
    record->backed_ns = 1001;
    look(0);
    cr_assert(has(item, PROCESSOR_BACKED));
    cr_assert_eq(item->values[PROCESSOR_BACKED], 250, "rounded down: never better than it was");
    cr_assert_eq(item->values[PROCESSOR_BACKED_BASE], 1000);
    cr_assert_eq(publish.items[PUBLISH_TOTAL]->values[PROCESSOR_BACKED], 250);
    cr_assert_not(has(publish.items[PUBLISH_PROCESSORS + 1], PROCESSOR_BACKED));
}

Test(vpmuperf_publish, the_worst_state_is_told)
{
    /* From good to bad. */
    static const uint32_t order[] = {
        VPMU_COUNTER_BACKED,   VPMU_COUNTER_GRANTED, VPMU_COUNTER_ABSENT,  VPMU_COUNTER_UNSUPPORTED,
        VPMU_COUNTER_FILTERED, VPMU_COUNTER_STARVED, VPMU_COUNTER_REVOKED,
    };

    for (uint32_t i = 1; i < sizeof(order) / sizeof(order[0]); i++) {
        test_record(&test, 0, VPMU_EVENT_BRANCHES)->state = order[i];
        test_record(&test, 0, VPMU_EVENT_CYCLES)->state = order[i - 1];
        cr_assert_eq(look(PUBLISH_PROCESSORS)->values[PROCESSOR_STATE], order[i]);
        cr_assert_eq(publish.items[PUBLISH_TOTAL]->values[PROCESSOR_STATE], order[i]);
        cr_assert_eq(publish.items[PUBLISH_PROCESSORS + 1]->values[PROCESSOR_STATE],
                     VPMU_COUNTER_BACKED);
    }
}

Test(vpmuperf_publish, a_counter_that_is_not_programmed_says_nothing)
{
    struct source_record *record = test_record(&test, 0, VPMU_EVENT_BRANCHES);

    record->event = VPMU_NONE;
    record->state = VPMU_COUNTER_REVOKED;
    cr_assert_eq(look(PUBLISH_PROCESSORS)->values[PROCESSOR_STATE], VPMU_COUNTER_BACKED);
    test.processors[0].count = 0;
    cr_assert_eq(look(PUBLISH_PROCESSORS)->has, 0, "not even a state");
    cr_assert(publish.items[PUBLISH_PROCESSORS]->wanted);
}

Test(vpmuperf_publish, facts_that_are_not_known_have_no_data)
{
    struct publish_item *vm = look(PUBLISH_VM);

    cr_assert(vm->wanted);
    cr_assert_eq(vm->values[VM_SHAPE], 7);
    cr_assert_eq(vm->values[VM_GRANTED], 5);
    cr_assert_eq(vm->values[VM_HOST], 2);
    cr_assert(has(vm, VM_STARVED), "a known 0 is a value");
    cr_assert_eq(vm->values[VM_STARVED], 0);
    cr_assert_not(has(vm, VM_REVOCATIONS));
    cr_assert_not(has(vm, VM_EVENT_CLASS));
    test.facts.revocations = 3;
    test.facts.granted = SOURCE_NOT_KNOWN;
    look(0);
    cr_assert_eq(vm->values[VM_REVOCATIONS], 3);
    cr_assert_not(has(vm, VM_GRANTED));
}

Test(vpmuperf_publish, processors_come_and_go)
{
    struct publish_item *first = look(PUBLISH_PROCESSORS);

    cr_assert_eq(publish.count, PUBLISH_PROCESSORS + 2);
    cr_assert_str_eq(publish.items[PUBLISH_PROCESSORS + 1]->name, "1");
    test.facts.processors = 5;
    look(0);
    cr_assert_eq(publish.count, PUBLISH_PROCESSORS + 5);
    cr_assert_eq(publish.items[PUBLISH_PROCESSORS], first, "perflib has its address");
    for (uint32_t i = 0; i < publish.count; i++) {
        cr_assert(publish.items[i]->wanted);
        for (uint32_t j = 0; j < i; j++) {
            bool same_set = publish.items[i]->set == publish.items[j]->set;
            cr_assert(!same_set || publish.items[i]->id != publish.items[j]->id);
            cr_assert(!same_set || strcmp(publish.items[i]->name, publish.items[j]->name) != 0);
        }
    }
    test.facts.processors = 1;
    look(0);
    cr_assert(publish.items[PUBLISH_PROCESSORS]->wanted);
    cr_assert_not(publish.items[PUBLISH_PROCESSORS + 1]->wanted);
    cr_assert_eq(publish.items[PUBLISH_PROCESSORS + 1]->has, 0);
    cr_assert(has(publish.items[PUBLISH_TOTAL], PROCESSOR_CYCLES), "the total is of those there");
    test.facts.processors = 0;
    look(0);
    cr_assert_not(publish.items[PUBLISH_TOTAL]->wanted);
    cr_assert_eq(publish.items[PUBLISH_TOTAL]->has, 0);
}

Test(vpmuperf_publish, the_total_never_goes_back_when_a_processor_goes)
{
    struct publish_item *total = look(PUBLISH_TOTAL);

    test_count(&test, VPMU_EVENT_CYCLES, 1000);
    look(0);
    cr_assert_eq(total->values[PROCESSOR_CYCLES], 2000);
    test.facts.processors = 1;
    test_count(&test, VPMU_EVENT_CYCLES, 1000);
    look(0);
    cr_assert_eq(total->values[PROCESSOR_CYCLES], 3000);
    test.facts.processors = 2;
    test_count(&test, VPMU_EVENT_CYCLES, 1000);
    look(0);
    cr_assert_eq(total->values[PROCESSOR_CYCLES], 4000, "one came back: its past is not known");
}

Test(vpmuperf_publish, a_source_that_fails_takes_all_data_away)
{
    struct publish_item *item = look(PUBLISH_PROCESSORS);

    test.look_result = -1;
    cr_assert_eq(publish_look(&publish, &test.source), -1);
    for (uint32_t i = 0; i < publish.count; i++) {
        cr_assert_eq(publish.items[i]->has, 0);
        cr_assert(publish.items[i]->wanted, "instances stay: it may answer again");
    }
    test.look_result = 0;
    test_count(&test, VPMU_EVENT_CYCLES, 1000);
    look(0);
    cr_assert(has(item, PROCESSOR_CYCLES));
    cr_assert_eq(item->values[PROCESSOR_CYCLES], 0, "what was counted meanwhile has no time");
    test.read_result = -1;
    look(0);
    cr_assert_eq(item->has, 0, "a processor that cannot be read");
    cr_assert(has(publish.items[PUBLISH_VM], VM_SHAPE));
}
