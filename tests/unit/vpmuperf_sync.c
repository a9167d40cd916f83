/* SPDX-License-Identifier: BSD-3-Clause */
/* What perflib is asked for, and what follows from each of its errors. */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest-drivers/vpmuperf/sync.h"
#include "vpmuperf_source.h"

/* A perflib that keeps what it is given, and fails as it is told. */
struct fake_instance {
    bool used;
    enum counter_set_id set;
    uint32_t id;
    char name[12];
    uint64_t *values[COUNTER_MAX_SLOTS + 1]; /* by counter id */
};

static struct {
    struct fake_instance instances[16];
    uint32_t sets[COUNTER_SETS]; /* how often each was added */
    uint32_t add_error, create_error, remove_error, refer_error;
    uint32_t failures; /* how often the errors are still given */
    uint32_t refer_id; /* the counter that refer_error is for; 0: all */
    bool refuses_null; /* as Wine does */
    uint32_t created, removed, reports;
    char last_report[200];
} fake;

static bool fails(uint32_t error)
{
    return error && fake.failures && fake.failures--;
}

static uint32_t add_set(void *context, enum counter_set_id set)
{
    (void)context;
    if (fails(fake.add_error))
        return fake.add_error;
    fake.sets[set]++;
    return 0;
}

static bool exists(enum counter_set_id set, const char *name, uint32_t id)
{
    for (uint32_t i = 0; i < 16; i++) {
        const struct fake_instance *at = &fake.instances[i];
        if (at->used && at->set == set && (at->id == id || strcmp(at->name, name) == 0))
            return true;
    }
    return false;
}

static uint32_t create(void *context, enum counter_set_id set, const char *name, uint32_t id,
                       void **instance)
{
    struct fake_instance *at = fake.instances;

    (void)context;
    if (fails(fake.create_error)) {
        *instance = (void *)1; /* must not be used */
        return fake.create_error;
    }
    cr_assert_not(exists(set, name, id), "names and ids are unique");
    while (at->used)
        at++;
    *at = (struct fake_instance){.used = true, .set = set, .id = id};
    snprintf(at->name, sizeof(at->name), "%s", name);
    *instance = at;
    fake.created++;
    return 0;
}

static uint32_t remove_instance(void *context, void *instance)
{
    (void)context;
    cr_assert(((struct fake_instance *)instance)->used, "deleted twice");
    if (fails(fake.remove_error))
        return fake.remove_error;
    ((struct fake_instance *)instance)->used = false;
    fake.removed++;
    return 0;
}

static uint32_t refer(void *context, void *instance, uint32_t counter, uint64_t *value)
{
    (void)context;
    if ((!fake.refer_id || fake.refer_id == counter) && fails(fake.refer_error))
        return fake.refer_error;
    if (!value && fake.refuses_null)
        return SYNC_INVALID_PARAMETER;
    ((struct fake_instance *)instance)->values[counter] = value;
    return 0;
}

static void report(void *context, const char *text)
{
    (void)context;
    fake.reports++;
    snprintf(fake.last_report, sizeof(fake.last_report), "%s", text);
}

static const struct perflib perflib = {
    .add_set = add_set,
    .create = create,
    .remove = remove_instance,
    .refer = refer,
    .report = report,
};

static struct test_source test;
static struct publish publish;

static void begin(void)
{
    memset(&fake, 0, sizeof(fake));
    test_source_init(&test, 2);
    cr_assert_eq(publish_init(&publish), 0);
    cr_assert_eq(publish_look(&publish, &test.source), 0);
}

static void end(void)
{
    publish_free(&publish);
}

TestSuite(vpmuperf_sync, .init = begin, .fini = end);

static int step(void)
{
    cr_assert_eq(publish_look(&publish, &test.source), 0);
    return sync_step(&perflib, &publish, false);
}

static uint32_t live(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < 16; i++)
        count += fake.instances[i].used;
    return count;
}

/* What a consumer reads of a processor's counter; NULL: ERROR_NO_DATA, or no such instance. */
static const uint64_t *consume(const char *name, uint32_t counter)
{
    for (uint32_t i = 0; i < 16; i++) {
        const struct fake_instance *at = &fake.instances[i];
        if (at->used && at->set == SET_PROCESSOR && strcmp(at->name, name) == 0)
            return at->values[counter];
    }
    return NULL;
}

Test(vpmuperf_sync, instances_and_values_follow)
{
    cr_assert_eq(sync_start(&perflib), 0);
    cr_assert_eq(fake.sets[SET_PROCESSOR], 1);
    cr_assert_eq(fake.sets[SET_VM], 1);
    cr_assert_eq(step(), 0);
    cr_assert_eq(live(), 4, "the VM, _Total, 0 and 1");
    test_count(&test, VPMU_EVENT_CYCLES, 77);
    cr_assert_eq(step(), 0);
    cr_assert_eq(*consume("1", 2), 77);
    cr_assert_eq(*consume("_Total", 2), 154);
    cr_assert_null(consume("1", 7), "LLC misses are not counted");
    cr_assert_eq(fake.created, 4, "made once");
    test.facts.processors = 1;
    cr_assert_eq(step(), 0);
    cr_assert_eq(live(), 3);
    cr_assert_null(consume("1", 2));
    test.facts.processors = 3;
    cr_assert_eq(step(), 0);
    cr_assert_eq(live(), 5);
    sync_stop(&perflib, &publish);
    cr_assert_eq(live(), 0);
    sync_stop(&perflib, &publish);
    cr_assert_eq(fake.removed, fake.created, "each once");
    cr_assert_eq(fake.reports, 0);
}

static void lose_and_gain(void)
{
    struct source_record *record = test_record(&test, 0, VPMU_EVENT_CYCLES);

    cr_assert_eq(step(), 0);
    cr_assert_not_null(consume("0", 2));
    record->state = VPMU_COUNTER_STARVED;
    cr_assert_eq(step(), 0);
    cr_assert_null(consume("0", 2), "no data, not 0");
    cr_assert_not_null(consume("0", 1), "the others stand");
    cr_assert_null(consume("_Total", 2));
    cr_assert_eq(live(), 4);
    record->state = VPMU_COUNTER_BACKED;
    cr_assert_eq(step(), 0);
    cr_assert_not_null(consume("0", 2));
    cr_assert_eq(fake.reports, 0);
}

Test(vpmuperf_sync, a_lost_value_is_a_reference_of_null)
{
    lose_and_gain();
    cr_assert_eq(fake.created, 4);
}

Test(vpmuperf_sync, where_null_is_refused_the_instance_is_made_anew)
{
    fake.refuses_null = true;
    lose_and_gain();
    cr_assert_eq(fake.created, 6, "0 and _Total");
}

Test(vpmuperf_sync, within_a_call_of_perflib_no_instance_is_touched)
{
    fake.refuses_null = true;
    cr_assert_eq(step(), 0);
    test.facts.processors = 3;
    test_record(&test, 0, VPMU_EVENT_CYCLES)->state = VPMU_COUNTER_STARVED;
    cr_assert_eq(publish_look(&publish, &test.source), 0);
    cr_assert_eq(sync_step(&perflib, &publish, true), 0);
    cr_assert_eq(fake.created, 4);
    cr_assert_eq(fake.removed, 0);
    cr_assert_eq(step(), 0);
    cr_assert_eq(live(), 5);
    cr_assert_null(consume("0", 2));
}

Test(vpmuperf_sync, create_already_exists_is_left_out_and_not_tried_again)
{
    fake.create_error = SYNC_ALREADY_EXISTS;
    fake.failures = 1;
    cr_assert_eq(step(), 0);
    cr_assert_eq(live(), 3, "the others are made");
    cr_assert_eq(step(), 0);
    cr_assert_eq(live(), 3);
    cr_assert_eq(fake.reports, 1);
    cr_assert_not_null(strstr(fake.last_report, "error 183"));
}

Test(vpmuperf_sync, an_instance_that_was_left_out_is_tried_when_it_comes_back)
{
    fake.create_error = SYNC_ALREADY_EXISTS;
    cr_assert_eq(step(), 0);
    test.facts.processors = 3;
    fake.failures = 1;
    cr_assert_eq(step(), 0);
    cr_assert_eq(live(), 4);
    test.facts.processors = 2;
    cr_assert_eq(step(), 0);
    test.facts.processors = 3;
    cr_assert_eq(step(), 0);
    cr_assert_eq(live(), 5);
}

Test(vpmuperf_sync, create_without_memory_is_tried_again_and_said_once)
{
    static const uint32_t errors[] = {SYNC_NOT_ENOUGH_MEMORY, SYNC_OUT_OF_MEMORY,
                                      SYNC_NO_SYSTEM_RESOURCES, 31 /* any other */};

    for (uint32_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        end();
        begin();
        fake.create_error = errors[i];
        fake.failures = 8;
        cr_assert_eq(step(), 0);
        cr_assert_eq(step(), 0);
        cr_assert_eq(live(), 0);
        cr_assert_eq(fake.reports, 4, "once for each instance");
        cr_assert_eq(step(), 0);
        cr_assert_eq(live(), 4);
        cr_assert_not_null(consume("0", 2), "with its values");
    }
}

Test(vpmuperf_sync, create_not_found_registers_the_set_again)
{
    cr_assert_eq(sync_start(&perflib), 0);
    fake.create_error = SYNC_NOT_FOUND;
    fake.failures = 1;
    cr_assert_eq(step(), 0);
    cr_assert_eq(live(), 4);
    cr_assert_eq(fake.sets[SET_VM], 2);
}

Test(vpmuperf_sync, create_not_found_after_registering_gives_up)
{
    fake.create_error = SYNC_NOT_FOUND;
    fake.failures = 2;
    cr_assert_eq(step(), -1);
    cr_assert_eq(fake.reports, 2, "that it tries, and that it failed");
}

Test(vpmuperf_sync, create_invalid_parameter_gives_up)
{
    fake.create_error = SYNC_INVALID_PARAMETER;
    fake.failures = 1;
    cr_assert_eq(step(), -1);
    cr_assert_eq(fake.reports, 1);
    sync_stop(&perflib, &publish);
    cr_assert_eq(fake.removed, 0);
}

Test(vpmuperf_sync, set_that_exists_is_as_wanted_and_any_other_error_is_not)
{
    fake.add_error = SYNC_ALREADY_EXISTS;
    fake.failures = 2;
    cr_assert_eq(sync_start(&perflib), 0);
    fake.add_error = SYNC_INVALID_PARAMETER;
    fake.failures = 1;
    cr_assert_eq(sync_start(&perflib), -1);
    cr_assert_not_null(strstr(fake.last_report, "error 87"));
}

Test(vpmuperf_sync, a_counter_that_perflib_does_not_know_is_asked_for_once)
{
    fake.refer_error = SYNC_NOT_FOUND;
    fake.refer_id = 2;
    fake.failures = 100;
    cr_assert_eq(step(), 0);
    cr_assert_null(consume("0", 2));
    cr_assert_not_null(consume("0", 1));
    cr_assert_eq(fake.failures, 96, "the VM, _Total, 0 and 1");
    cr_assert_eq(step(), 0);
    cr_assert_eq(fake.failures, 96);
    cr_assert_eq(fake.reports, 4);
}

Test(vpmuperf_sync, a_value_that_fails_otherwise_is_tried_again)
{
    fake.refer_error = SYNC_INVALID_PARAMETER;
    fake.refer_id = 2;
    fake.failures = 3;
    cr_assert_eq(step(), 0);
    cr_assert_null(consume("0", 2));
    cr_assert_eq(step(), 0);
    cr_assert_not_null(consume("0", 2));
    cr_assert_eq(fake.created, 4, "only a refused NULL makes it anew");
}

Test(vpmuperf_sync, an_instance_that_is_not_deleted_is_not_touched_again)
{
    cr_assert_eq(step(), 0);
    fake.remove_error = SYNC_INVALID_PARAMETER;
    fake.failures = 1;
    test.facts.processors = 1;
    cr_assert_eq(step(), 0);
    cr_assert_eq(fake.reports, 1);
    cr_assert_eq(step(), 0);
    cr_assert_eq(fake.removed, 0);
    sync_stop(&perflib, &publish);
    cr_assert_eq(fake.removed, 3);
}
