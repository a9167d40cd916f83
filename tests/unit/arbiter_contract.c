/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract, row by row: a machine, what stands before, the request, and the answer in the
 * documented and in the observed behaviour.
 */
#include "vpmu/arbiter.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* Short names for the answers. */
enum {
    SUCCESS = 0,
    BUSY = (int)VPMU_STATUS_DEVICE_BUSY,
    UNSUCCESSFUL = (int)VPMU_STATUS_UNSUCCESSFUL,
    UNIMPLEMENTED = (int)VPMU_STATUS_NOT_IMPLEMENTED,
    INVALID = (int)VPMU_STATUS_INVALID_PARAMETER,
    NO_MEMORY = (int)VPMU_STATUS_NO_MEMORY,
    TOO_SMALL = (int)VPMU_STATUS_BUFFER_TOO_SMALL,
    INSUFFICIENT = (int)VPMU_STATUS_INSUFFICIENT_RESOURCES,
    UNSUPPORTED = (int)VPMU_STATUS_NOT_SUPPORTED,
    ENABLED = (int)VPMU_STATUS_WMI_ALREADY_ENABLED,
};

/* ---- Machines: two groups, the second with two processors ---- */

#define PROCESSORS 66

enum machine {
    USUAL,     /* version 4, 4 GP and 3 fixed counters, PEBS */
    NO_PMU,    /* as under a hypervisor that virtualises none */
    VERSION_1, /* no global status */
    NO_PEBS,
    HYBRID, /* processor 1:1 has two counters and nothing else */
    HOLED,  /* processors 0:5 and 1:0 are not online */
};

static struct vpmu_processor processor_of(enum machine machine, uint32_t p)
{
    struct vpmu_processor processor = {
        .counters = vpmu_counter_set(4, 3), .version = 4, .event_buffer = true, .online = true};

    if (machine == NO_PMU)
        processor = (struct vpmu_processor){.online = true};
    if (machine == VERSION_1)
        processor.version = 1;
    if (machine == NO_PEBS)
        processor.event_buffer = false;
    if (machine == HYBRID && p == 65)
        processor = (struct vpmu_processor){.counters = 3, .version = 1, .online = true};
    if (machine == HOLED && (p == 5 || p == 64))
        processor.online = false;
    return processor;
}

static struct vpmu_arbiter *make(enum machine machine, uint32_t mode, uint32_t leases)
{
    struct vpmu_processor processors[PROCESSORS];
    struct vpmu_arbiter_config config = {
        .processors = processors, .processor_count = PROCESSORS, .leases = leases, .mode = mode};

    for (uint32_t p = 0; p < PROCESSORS; p++)
        processors[p] = processor_of(machine, p);
    size_t size = vpmu_arbiter_size(&config);
    struct vpmu_arbiter *arbiter = vpmu_arbiter_init(malloc(size), size, &config);
    cr_assert_not_null(arbiter);
    return arbiter;
}

static uint64_t left_in_all(const struct vpmu_arbiter *arbiter)
{
    uint64_t sum = 0;

    for (uint32_t p = 0; p < PROCESSORS; p++)
        sum = sum * 31 + vpmu_arbiter_left(arbiter, p);
    return sum;
}

/* ---- Requests ---- */

#define LIST(...)                                                                                  \
    .resources = (const struct vpmu_resource[]){__VA_ARGS__},                                      \
    .resource_count =                                                                              \
        sizeof((const struct vpmu_resource[]){__VA_ARGS__}) / sizeof(struct vpmu_resource)
#define ON(...)                                                                                    \
    .affinity = (const struct vpmu_affinity[]){__VA_ARGS__},                                       \
    .affinity_count =                                                                              \
        sizeof((const struct vpmu_affinity[]){__VA_ARGS__}) / sizeof(struct vpmu_affinity)
#define REQUEST(...) (&(const struct vpmu_request){__VA_ARGS__})
#define WHOLE REQUEST(0)

/* clang-format off */
#define SINGLE(i) {.type = VPMU_RESOURCE_SINGLE, .u.counter = (i)}
#define RANGE(b, e) {.type = VPMU_RESOURCE_RANGE, .u.range = {(b), (e)}}
#define EXTENDED {.type = VPMU_RESOURCE_EXTENDED}
#define OVERFLOW(h) {.type = VPMU_RESOURCE_OVERFLOW, .u.overflow_handler = (h)}
#define BUFFER(h, t) {.type = VPMU_RESOURCE_EVENT_BUFFER, .u.event_buffer = {(h), 32, (t)}}
#define TAG(n) {.type = VPMU_RESOURCE_TAG, .u.tag = (n)}
#define CPU(g, m) {.group = (g), .mask = (m)}
/* clang-format on */

#define FIXED(i) SINGLE(VPMU_FIXED_COUNTER + (i))

static const struct vpmu_holder kernel = {VPMU_HOLDER_KERNEL, "kernel profiling"};
static const struct vpmu_holder alice = {1, "alice.sys"};
static const struct vpmu_holder bob = {2, "bob.sys"};

/* ---- HalAllocateHardwareCounters ---- */

struct allocation {
    const char *name;
    enum machine machine;
    uint32_t mode; /* besides the behaviour */
    const struct vpmu_holder *holder;
    const struct vpmu_request *standing; /* the holder's; NULL: nothing stands */
    const struct vpmu_request *request;  /* bob's */
    int documented, observed;
    enum vpmu_cause cause;
    uint32_t processor, index; /* in the explanation; 0 also stands for "not set" */
};

/* In both behaviours. */
#define REFUSED(status, why) .documented = (status), .observed = (status), .cause = VPMU_CAUSE_##why

static const struct allocation allocations[] = {
    /* What can be had */
    {"whole PMU", USUAL, .request = WHOLE},
    {"one counter everywhere", USUAL, .request = REQUEST(LIST(SINGLE(0)))},
    {"fixed counters by range", USUAL, .request = REQUEST(LIST(RANGE(32, 34)))},
    {"all kinds", USUAL,
     .request = REQUEST(LIST(SINGLE(3), RANGE(0, 1), FIXED(0), OVERFLOW(9), BUFFER(8, 1), TAG(0)))},
    {"a counter named twice", USUAL, .request = REQUEST(LIST(SINGLE(1), RANGE(0, 2)))},
    {"overflow alone", USUAL, .request = REQUEST(LIST(OVERFLOW(9)))},
    {"two groups", USUAL, .request = REQUEST(ON(CPU(0, 1), CPU(1, 2)), LIST(SINGLE(0)))},
    {"all counters of a processor", USUAL, .request = REQUEST(ON(CPU(1, 2)))},
    {"all counters where they differ", HYBRID, .request = REQUEST(ON(CPU(0, 1), CPU(1, 2)))},
    {"where the strange one is not named", HYBRID,
     .request = REQUEST(ON(CPU(0, 1)), LIST(SINGLE(3), BUFFER(8, 1)))},
    {"around the holes", HOLED, .request = REQUEST(ON(CPU(0, 0xDF), CPU(1, 2)))},
    {"whole PMU where there is none", NO_PMU, .request = WHOLE, .cause = VPMU_CAUSE_NOTHING_BEHIND},
    {"all counters where there are none", NO_PMU, .request = REQUEST(ON(CPU(1, 2))),
     .cause = VPMU_CAUSE_NOTHING_BEHIND, .processor = 65},
    {"whole PMU where there is none, strict", NO_PMU, VPMU_MODE_STRICT, .request = WHOLE,
     REFUSED(UNSUPPORTED, NOTHING_BEHIND)},
    {"all counters where there are none, strict", NO_PMU, VPMU_MODE_STRICT,
     .request = REQUEST(ON(CPU(1, 2))), REFUSED(UNSUPPORTED, NOTHING_BEHIND), .processor = 65},
    {"whole PMU, strict, all is there", USUAL, VPMU_MODE_STRICT, .request = WHOLE},

    /* Bad affinities */
    {"entries without a count", USUAL,
     .request = REQUEST(.affinity = (const struct vpmu_affinity[]){CPU(0, 1)}),
     REFUSED(INVALID, AFFINITY_COUNT)},
    {"a count without entries", USUAL, .request = REQUEST(.affinity_count = 1),
     REFUSED(INVALID, AFFINITY_COUNT)},
    {"no such group", USUAL, .request = REQUEST(ON(CPU(2, 1))), REFUSED(INVALID, NO_SUCH_GROUP)},
    {"highest group number", USUAL, .request = REQUEST(ON(CPU(0xFFFF, 1))),
     REFUSED(INVALID, NO_SUCH_GROUP)},
    {"a group twice", USUAL, .request = REQUEST(ON(CPU(1, 1), CPU(1, 2))),
     REFUSED(INVALID, REPEATED_GROUP)},
    {"no processor", USUAL, .request = REQUEST(ON(CPU(0, 0))), REFUSED(INVALID, EMPTY_MASK)},
    {"an absent processor", USUAL, .request = REQUEST(ON(CPU(1, 5))),
     REFUSED(INVALID, NO_SUCH_PROCESSOR), .processor = 66},
    {"a processor that is not online", HOLED, .request = REQUEST(ON(CPU(0, 0x30))),
     REFUSED(INVALID, NO_SUCH_PROCESSOR), .processor = 5},
    {"reserved field of the affinity", USUAL,
     .request = REQUEST(ON({.mask = 1, .reserved = {0, 0, 1}})), REFUSED(INVALID, RESERVED)},

    /* Bad lists */
    {"empty list", USUAL,
     .request = REQUEST(.resources = (const struct vpmu_resource[]){SINGLE(0)}),
     REFUSED(INVALID, EMPTY_LIST)},
    {"a count without a list", USUAL, .request = REQUEST(.resource_count = 1),
     REFUSED(INVALID, EMPTY_LIST)},
    {"ExtendedCounterConfiguration", USUAL, .request = REQUEST(LIST(SINGLE(0), EXTENDED)),
     REFUSED(UNSUPPORTED, UNSUPPORTED)},
    {"MaximumType", USUAL, .request = REQUEST(LIST({.type = VPMU_RESOURCE_TYPES})),
     REFUSED(INVALID, UNKNOWN_TYPE)},
    {"highest type", USUAL, .request = REQUEST(LIST({.type = UINT32_MAX})),
     REFUSED(INVALID, UNKNOWN_TYPE)},
    {"flags of a resource", USUAL, .request = REQUEST(LIST({.flags = 1})),
     REFUSED(INVALID, RESERVED)},
    {"index 0x40", USUAL, .request = REQUEST(LIST(SINGLE(0x40))), REFUSED(INVALID, BAD_INDEX),
     .index = 0x40},
    {"range up to 0x40", USUAL, .request = REQUEST(LIST(RANGE(0, 0x40))),
     REFUSED(INVALID, BAD_INDEX), .index = 0x40},
    {"range from beyond", USUAL, .request = REQUEST(LIST(RANGE(UINT32_MAX, 0))),
     REFUSED(INVALID, BAD_INDEX), .index = UINT32_MAX},
    {"range backwards", USUAL, .request = REQUEST(LIST(RANGE(2, 1))), REFUSED(INVALID, BAD_RANGE),
     .index = 2},
    {"index of no counter", USUAL, .request = REQUEST(LIST(SINGLE(VPMU_EVENT_BUFFER))),
     REFUSED(INVALID, NO_SUCH_COUNTER), .index = VPMU_EVENT_BUFFER},
    {"index 0x3F", USUAL, .request = REQUEST(LIST(SINGLE(0x3F))), REFUSED(INVALID, NO_SUCH_COUNTER),
     .index = 0x3F},
    {"a fifth counter", USUAL, .request = REQUEST(LIST(RANGE(0, 4))),
     REFUSED(INVALID, NO_SUCH_COUNTER), .index = 4},
    {"a fourth fixed counter", USUAL, .request = REQUEST(ON(CPU(1, 1)), LIST(FIXED(3))),
     REFUSED(INVALID, NO_SUCH_COUNTER), .processor = 64, .index = 35},
    {"a counter that one processor lacks", HYBRID, .request = REQUEST(LIST(SINGLE(2))),
     REFUSED(INVALID, NO_SUCH_COUNTER), .processor = 65, .index = 2},
    {"a counter without a PMU", NO_PMU, .request = REQUEST(LIST(SINGLE(0))),
     REFUSED(INVALID, NO_SUCH_COUNTER)},
    {"a second Overflow", USUAL, .request = REQUEST(LIST(OVERFLOW(1), OVERFLOW(2))),
     REFUSED(INVALID, REPEATED_RESOURCE)},
    {"a second EventBuffer", USUAL, .request = REQUEST(LIST(BUFFER(1, 1), BUFFER(1, 1))),
     REFUSED(INVALID, REPEATED_RESOURCE)},
    {"a second tag", USUAL, .request = REQUEST(LIST(TAG(0), TAG(0))),
     REFUSED(INVALID, REPEATED_RESOURCE)},
    {"Overflow without a handler", USUAL, .request = REQUEST(LIST(OVERFLOW(0))),
     REFUSED(INVALID, NO_HANDLER)},
    {"EventBuffer without a handler", USUAL, .request = REQUEST(LIST(BUFFER(0, 1))),
     REFUSED(INVALID, NO_HANDLER)},
    {"EventThreshold 0", USUAL, .request = REQUEST(LIST(BUFFER(1, 0))),
     REFUSED(INVALID, ZERO_THRESHOLD)},
    {"Overflow on version 1", VERSION_1, .request = REQUEST(LIST(SINGLE(0), OVERFLOW(1))),
     REFUSED(UNSUPPORTED, UNSUPPORTED)},
    {"EventBuffer without PEBS", NO_PEBS, .request = REQUEST(LIST(BUFFER(1, 1))),
     REFUSED(UNSUPPORTED, UNSUPPORTED)},
    {"EventBuffer, one without PEBS", HYBRID, .request = REQUEST(LIST(BUFFER(1, 1))),
     REFUSED(UNSUPPORTED, UNSUPPORTED), .processor = 65},
    {"the first bad entry decides", USUAL, .request = REQUEST(LIST(EXTENDED, SINGLE(0x40))),
     REFUSED(UNSUPPORTED, UNSUPPORTED)},
    {"a bad list before what is held", USUAL, .holder = &alice, .standing = WHOLE,
     .request = REQUEST(LIST(SINGLE(9))), REFUSED(INVALID, NO_SUCH_COUNTER), .index = 9},

    /* Before 1903 */
    {"NULL, 0, NULL before 1903", USUAL, VPMU_MODE_BEFORE_1903, .request = WHOLE},
    {"a list before 1903", USUAL, VPMU_MODE_BEFORE_1903, .request = REQUEST(LIST(SINGLE(0))),
     REFUSED(INVALID, BEFORE_1903)},
    {"an affinity before 1903", USUAL, VPMU_MODE_BEFORE_1903, .request = REQUEST(ON(CPU(0, 1))),
     REFUSED(INVALID, BEFORE_1903)},
    {"a count before 1903", USUAL, VPMU_MODE_BEFORE_1903, .request = REQUEST(.affinity_count = 1),
     REFUSED(INVALID, BEFORE_1903)},
    {"full against full before 1903", USUAL, VPMU_MODE_BEFORE_1903, &alice, WHOLE, WHOLE,
     INSUFFICIENT, INSUFFICIENT, VPMU_CAUSE_WHOLE_HELD},

    /* Conflicts */
    {"full against full", USUAL, 0, &alice, WHOLE, WHOLE, INSUFFICIENT, INSUFFICIENT,
     VPMU_CAUSE_WHOLE_HELD},
    {"full against full of the same holder", USUAL, 0, &bob, WHOLE, WHOLE, INSUFFICIENT,
     INSUFFICIENT, VPMU_CAUSE_WHOLE_HELD},
    {"full against full without a PMU", NO_PMU, 0, &alice, WHOLE, WHOLE, INSUFFICIENT, INSUFFICIENT,
     VPMU_CAUSE_WHOLE_HELD},
    {"partial against full", USUAL, 0, &alice, WHOLE, REQUEST(LIST(SINGLE(0))), INSUFFICIENT,
     UNSUCCESSFUL, VPMU_CAUSE_WHOLE_HELD},
    {"tag against full", USUAL, 0, &alice, WHOLE, REQUEST(LIST(TAG(1))), INSUFFICIENT, UNSUCCESSFUL,
     VPMU_CAUSE_WHOLE_HELD},
    {"a processor's counters against full", USUAL, 0, &alice, WHOLE, REQUEST(ON(CPU(0, 1))),
     INSUFFICIENT, UNSUCCESSFUL, VPMU_CAUSE_WHOLE_HELD},
    {"full against partial", USUAL, 0, &alice, REQUEST(ON(CPU(1, 2)), LIST(SINGLE(0))), WHOLE,
     INSUFFICIENT, INSUFFICIENT, VPMU_CAUSE_PARTS_HELD},
    {"full against a tag", USUAL, 0, &alice, REQUEST(LIST(TAG(1))), WHOLE, INSUFFICIENT,
     INSUFFICIENT, VPMU_CAUSE_PARTS_HELD},
    {"overlapping lists", USUAL, 0, &alice, REQUEST(LIST(RANGE(1, 2))), REQUEST(LIST(RANGE(2, 3))),
     INSUFFICIENT, INSUFFICIENT, VPMU_CAUSE_HELD, 0, 2},
    {"overlap on the last processor", USUAL, 0, &alice, REQUEST(ON(CPU(1, 2)), LIST(FIXED(2))),
     REQUEST(LIST(RANGE(32, 34))), INSUFFICIENT, INSUFFICIENT, VPMU_CAUSE_HELD, 65, 34},
    {"all counters of a processor against one", USUAL, 0, &alice, REQUEST(LIST(FIXED(0))),
     REQUEST(ON(CPU(1, 1))), INSUFFICIENT, INSUFFICIENT, VPMU_CAUSE_HELD, 64, 32},
    {"one counter against all of a processor", USUAL, 0, &alice, REQUEST(ON(CPU(1, 1))),
     REQUEST(LIST(FIXED(0))), INSUFFICIENT, INSUFFICIENT, VPMU_CAUSE_HELD, 64, 32},
    {"PEBS is owned", USUAL, 0, &alice, REQUEST(ON(CPU(0, 4)), LIST(BUFFER(1, 1))),
     REQUEST(LIST(BUFFER(2, 1))), INSUFFICIENT, INSUFFICIENT, VPMU_CAUSE_HELD, 2,
     VPMU_EVENT_BUFFER},
    {"held by the kernel's profiling", USUAL, 0, &kernel, REQUEST(LIST(FIXED(1))),
     REQUEST(LIST(FIXED(1))), INSUFFICIENT, BUSY, VPMU_CAUSE_HELD, 0, 33},
    {"full against the kernel's profiling", USUAL, 0, &kernel, REQUEST(LIST(FIXED(1))), WHOLE,
     INSUFFICIENT, BUSY, VPMU_CAUSE_PARTS_HELD},
    {"full against full of the kernel", USUAL, 0, &kernel, WHOLE, WHOLE, INSUFFICIENT, BUSY,
     VPMU_CAUSE_WHOLE_HELD},
    {"partial against full of the kernel", USUAL, 0, &kernel, WHOLE, REQUEST(LIST(SINGLE(0))),
     INSUFFICIENT, UNSUCCESSFUL, VPMU_CAUSE_WHOLE_HELD},

    /* Side by side */
    {"disjoint counters", USUAL, 0, &alice, REQUEST(LIST(RANGE(0, 1))),
     REQUEST(LIST(RANGE(2, 3), RANGE(32, 34)))},
    {"disjoint processors", USUAL, 0, &alice, REQUEST(ON(CPU(0, 1))), REQUEST(ON(CPU(0, 2)))},
    {"two Overflows", USUAL, 0, &alice, REQUEST(LIST(SINGLE(0), OVERFLOW(1))),
     REQUEST(LIST(SINGLE(1), OVERFLOW(2)))},
    {"two tags", USUAL, 0, &alice, REQUEST(LIST(TAG(1))), REQUEST(LIST(TAG(1)))},
    {"PEBS beside all counters", USUAL, 0, &alice, REQUEST(ON(CPU(0, 1))),
     REQUEST(LIST(BUFFER(1, 1)))},
};

static void check_holder(const struct allocation *row, vpmu_lease standing,
                         const struct vpmu_explanation *why)
{
    bool in_the_way = row->cause == VPMU_CAUSE_HELD || row->cause == VPMU_CAUSE_WHOLE_HELD ||
                      row->cause == VPMU_CAUSE_PARTS_HELD;

    cr_expect_eq(why->lease, in_the_way ? standing : VPMU_LEASE_NONE, "%s: lease", row->name);
    cr_expect_str_eq(why->holder.name, in_the_way ? row->holder->name : "", "%s", row->name);
}

static void check_allocation(const struct allocation *row, uint32_t behaviour, int wanted)
{
    struct vpmu_arbiter *arbiter = make(row->machine, row->mode | behaviour, 4);
    uint64_t untouched = left_in_all(arbiter), before;
    struct vpmu_explanation why;
    vpmu_lease standing = VPMU_LEASE_NONE, lease = 77;

    if (row->standing)
        cr_expect_eq(vpmu_arbiter_allocate(arbiter, row->holder, row->standing, &standing, NULL),
                     VPMU_STATUS_SUCCESS, "%s: what stands before", row->name);
    before = left_in_all(arbiter);

    int got = (int)vpmu_arbiter_allocate(arbiter, &bob, row->request, &lease, &why);
    cr_expect_eq(got, wanted, "%s, mode %x: %s, not %s", row->name, behaviour,
                 vpmu_status_name((vpmu_status)got), vpmu_status_name((vpmu_status)wanted));
    cr_expect_eq((int)why.status, wanted, "%s: status in the explanation", row->name);
    cr_expect_eq(why.cause, row->cause, "%s: cause %d, not %d", row->name, why.cause, row->cause);
    cr_expect_eq(why.processor == VPMU_NOT_SET ? 0 : why.processor, row->processor,
                 "%s: processor %u", row->name, why.processor);
    cr_expect_eq(why.index == VPMU_NOT_SET && !row->index ? 0 : why.index, row->index,
                 "%s: index %u", row->name, why.index);
    check_holder(row, standing, &why);

    if (wanted == SUCCESS) {
        cr_expect_eq(vpmu_arbiter_free(arbiter, lease, NULL), VPMU_STATUS_SUCCESS, "%s", row->name);
    } else {
        bool ones = behaviour && row->request->resources;
        cr_expect_eq(lease, ones ? VPMU_LEASE_ONES : VPMU_LEASE_NONE, "%s: handle", row->name);
        cr_expect_eq(vpmu_arbiter_leases(arbiter), standing != VPMU_LEASE_NONE, "%s", row->name);
    }
    cr_expect_eq(left_in_all(arbiter), before, "%s: all or nothing, and all back", row->name);
    vpmu_arbiter_free_holder(arbiter, row->holder ? row->holder->id : 0);
    cr_expect_eq(left_in_all(arbiter), untouched, "%s: something leaked", row->name);
    free(arbiter);
}

Test(arbiter, allocate_documented)
{
    for (size_t i = 0; i < ROWS(allocations); i++)
        check_allocation(&allocations[i], VPMU_MODE_DOCUMENTED, allocations[i].documented);
}

Test(arbiter, allocate_observed)
{
    for (size_t i = 0; i < ROWS(allocations); i++)
        check_allocation(&allocations[i], VPMU_MODE_OBSERVED, allocations[i].observed);
}

Test(arbiter, null_pointers)
{
    struct vpmu_arbiter *arbiter = make(USUAL, VPMU_MODE_DOCUMENTED, 4);
    struct vpmu_explanation why;
    vpmu_lease lease;

    cr_expect_eq((int)vpmu_arbiter_allocate(arbiter, &bob, WHOLE, NULL, &why), INVALID);
    cr_expect_eq(why.cause, VPMU_CAUSE_NULL_POINTER);
    lease = 77;
    cr_expect_eq((int)vpmu_arbiter_allocate(arbiter, NULL, WHOLE, &lease, NULL), INVALID);
    cr_expect_eq(lease, VPMU_LEASE_NONE);
    lease = 77;
    cr_expect_eq((int)vpmu_arbiter_allocate(arbiter, &bob, NULL, &lease, NULL), INVALID);
    cr_expect_eq(lease, VPMU_LEASE_NONE);
    cr_expect_eq(vpmu_arbiter_leases(arbiter), 0);
    free(arbiter);
}

Test(arbiter, no_room_for_a_lease)
{
    for (int observed = 0; observed < 2; observed++) {
        struct vpmu_arbiter *arbiter =
            make(USUAL, observed ? VPMU_MODE_OBSERVED : VPMU_MODE_DOCUMENTED, 1);
        struct vpmu_explanation why;
        vpmu_lease lease, second;

        vpmu_arbiter_allocate(arbiter, &alice, REQUEST(LIST(SINGLE(0))), &lease, NULL);
        cr_expect_eq(
            (int)vpmu_arbiter_allocate(arbiter, &bob, REQUEST(LIST(SINGLE(1))), &second, &why),
            observed ? NO_MEMORY : INSUFFICIENT);
        cr_expect_eq(why.cause, VPMU_CAUSE_NO_ROOM);
        vpmu_arbiter_free(arbiter, lease, NULL);
        cr_expect_eq(vpmu_arbiter_allocate(arbiter, &bob, REQUEST(LIST(SINGLE(1))), &second, NULL),
                     VPMU_STATUS_SUCCESS);
        free(arbiter);
    }
}

/* ---- HalFreeHardwareCounters ---- */

Test(arbiter, handles)
{
    struct vpmu_arbiter *arbiter = make(USUAL, VPMU_MODE_DOCUMENTED, 4);
    vpmu_lease stale, live;

    vpmu_arbiter_allocate(arbiter, &alice, REQUEST(LIST(SINGLE(0))), &stale, NULL);
    cr_expect_eq(vpmu_arbiter_free(arbiter, stale, NULL), VPMU_STATUS_SUCCESS);
    cr_expect_eq((int)vpmu_arbiter_free(arbiter, stale, NULL), INVALID, "double");
    vpmu_arbiter_allocate(arbiter, &alice, REQUEST(LIST(SINGLE(0))), &live, NULL);

    const struct {
        const char *name;
        vpmu_lease handle;
    } rows[] = {
        {"stale", stale},
        {"0", VPMU_LEASE_NONE},
        {"-1", VPMU_LEASE_ONES},
        {"32 bits of a live one", live & UINT32_MAX},
        {"next slot", live + 1},
        {"no slot", live | UINT32_MAX},
        {"next generation", live + (UINT64_C(1) << 32)},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct vpmu_explanation why;
        struct vpmu_lease_info info;

        cr_expect_eq((int)vpmu_arbiter_free(arbiter, rows[i].handle, &why), INVALID, "%s",
                     rows[i].name);
        cr_expect_eq(why.cause, VPMU_CAUSE_BAD_HANDLE, "%s", rows[i].name);
        cr_expect_eq(why.lease, rows[i].handle, "%s", rows[i].name);
        cr_expect_eq((int)vpmu_arbiter_lease(arbiter, rows[i].handle, &info), INVALID, "%s",
                     rows[i].name);
        cr_expect_eq(vpmu_arbiter_lease_mask(arbiter, rows[i].handle, 0), 0, "%s", rows[i].name);
        cr_expect_eq(vpmu_arbiter_owner(arbiter, 0, 0), live, "%s", rows[i].name);
    }
    cr_expect_eq(vpmu_arbiter_free(arbiter, live, NULL), VPMU_STATUS_SUCCESS);
    free(arbiter);
}

Test(arbiter, a_dead_holder_leaves_nothing)
{
    struct vpmu_arbiter *arbiter = make(USUAL, VPMU_MODE_DOCUMENTED, 4);
    const struct vpmu_hardware_counter counter = {.index = 0};
    uint64_t untouched = left_in_all(arbiter);
    uint32_t count;
    vpmu_lease first, second, other;

    vpmu_arbiter_allocate(arbiter, &alice, REQUEST(LIST(SINGLE(0), OVERFLOW(1))), &first, NULL);
    vpmu_arbiter_allocate(arbiter, &bob, REQUEST(ON(CPU(0, 1)), LIST(SINGLE(1))), &other, NULL);
    vpmu_arbiter_allocate(arbiter, &alice, REQUEST(ON(CPU(1, 1)), LIST(BUFFER(1, 1))), &second,
                          NULL);
    vpmu_arbiter_set_profiling(arbiter, &alice, &counter, 1, NULL);

    cr_expect_eq(vpmu_arbiter_free_holder(arbiter, alice.id), 2);
    cr_expect_eq(vpmu_arbiter_free_holder(arbiter, alice.id), 0);
    cr_expect_eq((int)vpmu_arbiter_free(arbiter, first, NULL), INVALID);
    cr_expect_eq((int)vpmu_arbiter_free(arbiter, second, NULL), INVALID);
    vpmu_arbiter_query_profiling(arbiter, NULL, 0, &count, NULL);
    cr_expect_eq(count, 0, "its profiling set is gone");
    cr_expect_eq(vpmu_arbiter_next(arbiter, VPMU_LEASE_NONE), other);
    cr_expect_eq(vpmu_arbiter_holders(arbiter), 1);
    vpmu_arbiter_free(arbiter, other, NULL);
    cr_expect_eq(left_in_all(arbiter), untouched);
    cr_expect_eq(vpmu_arbiter_allocate(arbiter, &bob, WHOLE, &other, NULL), VPMU_STATUS_SUCCESS);
    free(arbiter);
}

/* ---- KeSetHardwareCounterConfiguration ---- */

#define PMC(i) {.index = (i)}
#define SET(...)                                                                                   \
    (const struct vpmu_hardware_counter[]){__VA_ARGS__},                                           \
        sizeof((const struct vpmu_hardware_counter[]){__VA_ARGS__}) /                              \
            sizeof(struct vpmu_hardware_counter)

struct profiling {
    const char *name;
    enum machine machine;
    uint32_t mode;
    const struct vpmu_hardware_counter *standing; /* alice's */
    uint32_t standing_count;
    bool thread;                     /* one profiles with it */
    const struct vpmu_holder *owner; /* of a lease on request, if not NULL */
    const struct vpmu_request *leased;
    const struct vpmu_hardware_counter *counters; /* bob's */
    uint32_t count;
    int documented, observed;
    enum vpmu_cause cause[2]; /* documented, observed */
};

static const struct vpmu_hardware_counter sixteen[17];

/* clang-format off */
#define NOTHING NULL, 0
#define BOTH(cause) {(cause), (cause)}
#define FREE NULL, NULL
/* clang-format on */

static const struct profiling profilings[] = {
    {"one", USUAL, 0, NOTHING, false, FREE, SET(PMC(0))},
    {"GP and fixed", USUAL, 0, NOTHING, false, FREE, SET(PMC(3), PMC(0x40000002))},
    {"MAX_HW_COUNTERS", USUAL, 0, NOTHING, false, FREE, sixteen, 16},
    {"one more", USUAL, 0, NOTHING, false, FREE, sixteen, 17, INVALID, INVALID,
     BOTH(VPMU_CAUSE_TOO_MANY_COUNTERS)},
    {"highest count", USUAL, 0, NOTHING, false, FREE, sixteen, UINT32_MAX, INVALID, INVALID,
     BOTH(VPMU_CAUSE_TOO_MANY_COUNTERS)},
    {"no array", USUAL, 0, NOTHING, false, FREE, NULL, 1, INVALID, INVALID,
     BOTH(VPMU_CAUSE_NULL_POINTER)},
    {"a fifth counter", USUAL, 0, NOTHING, false, FREE, SET(PMC(0), PMC(4)), INVALID, INVALID,
     BOTH(VPMU_CAUSE_NO_SUCH_COUNTER)},
    {"a fourth fixed counter", USUAL, 0, NOTHING, false, FREE, SET(PMC(0x40000003)), INVALID,
     INVALID, BOTH(VPMU_CAUSE_NO_SUCH_COUNTER)},
    {"the HAL's index of a fixed counter", USUAL, 0, NOTHING, false, FREE, SET(PMC(32)), INVALID,
     INVALID, BOTH(VPMU_CAUSE_NO_SUCH_COUNTER)},
    {"no selector of RDPMC", USUAL, 0, NOTHING, false, FREE, SET(PMC(0x80000000)), INVALID, INVALID,
     BOTH(VPMU_CAUSE_NO_SUCH_COUNTER)},
    {"a counter that one processor lacks", HYBRID, 0, NOTHING, false, FREE, SET(PMC(2)), INVALID,
     INVALID, BOTH(VPMU_CAUSE_NO_SUCH_COUNTER)},
    {"a counter that all have", HYBRID, 0, NOTHING, false, FREE, SET(PMC(1))},
    {"without a PMU", NO_PMU, 0, NOTHING, false, FREE, SET(PMC(0)), INVALID, INVALID,
     BOTH(VPMU_CAUSE_NO_SUCH_COUNTER)},
    {"Type",
     USUAL,
     0,
     NOTHING,
     false,
     FREE,
     SET({.type = 1}),
     INVALID,
     SUCCESS,
     {VPMU_CAUSE_COUNTER_TYPE, VPMU_CAUSE_NONE}},
    {"Reserved",
     USUAL,
     0,
     NOTHING,
     false,
     FREE,
     SET({.reserved = 1}),
     INVALID,
     SUCCESS,
     {VPMU_CAUSE_RESERVED, VPMU_CAUSE_NONE}},
    {"33 bits of index",
     USUAL,
     0,
     NOTHING,
     false,
     FREE,
     SET(PMC(UINT64_C(1) << 32)),
     INVALID,
     SUCCESS,
     {VPMU_CAUSE_NO_SUCH_COUNTER, VPMU_CAUSE_NONE}},
    {"not implemented", USUAL, VPMU_MODE_NO_PROFILING, NOTHING, false, FREE, SET(PMC(0)),
     UNIMPLEMENTED, UNIMPLEMENTED, BOTH(VPMU_CAUSE_NOT_IMPLEMENTED)},
    {"emptying, not implemented", USUAL, VPMU_MODE_NO_PROFILING, NOTHING, false, FREE, NULL, 0,
     UNIMPLEMENTED, UNIMPLEMENTED, BOTH(VPMU_CAUSE_NOT_IMPLEMENTED)},
    {"emptying an empty set", USUAL, 0, NOTHING, false, FREE, NULL, 0},
    {"emptying", USUAL, 0, SET(PMC(0)), false, FREE, NULL, 0},
    {"emptying under a thread", USUAL, 0, SET(PMC(0)), true, FREE, NULL, 0},
    {"the same over a set",
     USUAL,
     0,
     SET(PMC(0)),
     false,
     FREE,
     SET(PMC(0)),
     SUCCESS,
     ENABLED,
     {VPMU_CAUSE_NONE, VPMU_CAUSE_SET_STANDS}},
    {"another over a set",
     USUAL,
     0,
     SET(PMC(0)),
     false,
     FREE,
     SET(PMC(1)),
     SUCCESS,
     ENABLED,
     {VPMU_CAUSE_NONE, VPMU_CAUSE_SET_STANDS}},
    {"the same under a thread",
     USUAL,
     0,
     SET(PMC(1), PMC(0)),
     true,
     FREE,
     SET(PMC(2), PMC(0)),
     ENABLED,
     ENABLED,
     {VPMU_CAUSE_SET_USED, VPMU_CAUSE_SET_STANDS}},
    {"another under a thread",
     USUAL,
     0,
     SET(PMC(0)),
     true,
     FREE,
     SET(PMC(1)),
     SUCCESS,
     ENABLED,
     {VPMU_CAUSE_NONE, VPMU_CAUSE_SET_STANDS}},
    {"leased to itself", USUAL, 0, NOTHING, false, &bob, REQUEST(LIST(SINGLE(0))), SET(PMC(0))},
    {"leased to another",
     USUAL,
     0,
     NOTHING,
     false,
     &alice,
     REQUEST(ON(CPU(1, 2)), LIST(FIXED(0))),
     SET(PMC(0), PMC(0x40000000)),
     ENABLED,
     SUCCESS,
     {VPMU_CAUSE_HELD, VPMU_CAUSE_NONE}},
    {"another one leased to another", USUAL, 0, NOTHING, false, &alice,
     REQUEST(LIST(SINGLE(1), BUFFER(1, 1))), SET(PMC(0))},
    {"whole PMU of itself", USUAL, 0, NOTHING, false, &bob, WHOLE, SET(PMC(0))},
    {"whole PMU of another",
     USUAL,
     0,
     NOTHING,
     false,
     &alice,
     WHOLE,
     SET(PMC(0)),
     ENABLED,
     SUCCESS,
     {VPMU_CAUSE_WHOLE_HELD, VPMU_CAUSE_NONE}},
};

static void expect_set(const struct vpmu_arbiter *arbiter, const char *name,
                       const struct vpmu_hardware_counter *wanted, uint32_t count)
{
    struct vpmu_hardware_counter got[VPMU_PROFILING_MAX];
    uint32_t got_count;

    cr_assert_eq(vpmu_arbiter_query_profiling(arbiter, got, VPMU_PROFILING_MAX, &got_count, NULL),
                 VPMU_STATUS_SUCCESS, "%s: query", name);
    cr_assert_eq(got_count, count, "%s: count %u", name, got_count);
    for (uint32_t i = 0; i < count; i++) {
        cr_expect_eq(got[i].index, wanted[i].index & UINT32_MAX, "%s: index", name);
        cr_expect_eq(got[i].type, 0, "%s: type", name);
        cr_expect_eq(got[i].reserved, 0, "%s: reserved", name);
    }
}

static void check_profiling(const struct profiling *row, uint32_t behaviour, int wanted,
                            enum vpmu_cause cause)
{
    struct vpmu_arbiter *arbiter = make(row->machine, row->mode | behaviour, 4);
    struct vpmu_explanation why;
    vpmu_lease lease;

    if (row->owner)
        vpmu_arbiter_allocate(arbiter, row->owner, row->leased, &lease, NULL);
    if (row->standing_count)
        vpmu_arbiter_set_profiling(arbiter, &alice, row->standing, row->standing_count, NULL);
    vpmu_arbiter_thread_profiling(arbiter, row->thread);

    int got = (int)vpmu_arbiter_set_profiling(arbiter, &bob, row->counters, row->count, &why);
    cr_expect_eq(got, wanted, "%s, mode %x: %s, not %s", row->name, behaviour,
                 vpmu_status_name((vpmu_status)got), vpmu_status_name((vpmu_status)wanted));
    cr_expect_eq(why.cause, cause, "%s: cause %d, not %d", row->name, why.cause, cause);
    if (cause == VPMU_CAUSE_HELD || cause == VPMU_CAUSE_WHOLE_HELD ||
        cause == VPMU_CAUSE_SET_STANDS || cause == VPMU_CAUSE_SET_USED)
        cr_expect_str_eq(why.holder.name, alice.name, "%s: holder", row->name);
    if (wanted == SUCCESS)
        expect_set(arbiter, row->name, row->counters, row->count);
    else if (wanted != UNIMPLEMENTED)
        expect_set(arbiter, row->name, row->standing, row->standing_count);
    free(arbiter);
}

Test(arbiter, set_documented)
{
    for (size_t i = 0; i < ROWS(profilings); i++)
        check_profiling(&profilings[i], VPMU_MODE_DOCUMENTED, profilings[i].documented,
                        profilings[i].cause[0]);
}

Test(arbiter, set_observed)
{
    for (size_t i = 0; i < ROWS(profilings); i++)
        check_profiling(&profilings[i], VPMU_MODE_OBSERVED, profilings[i].observed,
                        profilings[i].cause[1]);
}

Test(arbiter, set_copies_the_array)
{
    struct vpmu_arbiter *arbiter = make(USUAL, VPMU_MODE_DOCUMENTED, 4);
    struct vpmu_hardware_counter counter = PMC(2);

    vpmu_arbiter_set_profiling(arbiter, &bob, &counter, 1, NULL);
    counter.index = 3;
    expect_set(arbiter, "copy", (const struct vpmu_hardware_counter[]){PMC(2)}, 1);
    cr_expect_eq((int)vpmu_arbiter_set_profiling(arbiter, NULL, &counter, 1, NULL), INVALID);
    free(arbiter);
}

/* A thread that ended no longer uses the set; one end too many is no debt. */
Test(arbiter, set_after_the_last_thread)
{
    struct vpmu_arbiter *arbiter = make(USUAL, VPMU_MODE_DOCUMENTED, 4);
    const struct vpmu_hardware_counter counter = PMC(0);
    const bool threads[] = {false, true, true, false, false};
    const int answers[] = {SUCCESS, ENABLED, ENABLED, ENABLED, SUCCESS};

    vpmu_arbiter_set_profiling(arbiter, &bob, &counter, 1, NULL);
    for (size_t i = 0; i < ROWS(threads); i++) {
        vpmu_arbiter_thread_profiling(arbiter, threads[i]);
        cr_expect_eq((int)vpmu_arbiter_set_profiling(arbiter, &bob, &counter, 1, NULL), answers[i],
                     "step %zu", i);
    }
    free(arbiter);
}

/* ---- KeQueryHardwareCounterConfiguration ---- */

Test(arbiter, query)
{
    const struct {
        const char *name;
        uint32_t mode, set, maximum;
        bool array;
        int status;
        uint32_t count;
    } rows[] = {
        {"it fits", 0, 2, 2, true, SUCCESS, 2},
        {"more room", VPMU_MODE_OBSERVED, 2, 16, true, SUCCESS, 2},
        {"too small", 0, 2, 1, true, TOO_SMALL, 2},
        {"how many", VPMU_MODE_OBSERVED, 2, 0, false, TOO_SMALL, 2},
        {"no array", 0, 2, 2, false, INVALID, 2},
        {"an empty set, no room", 0, 0, 0, false, SUCCESS, 0},
        {"an empty set, no room, observed", VPMU_MODE_OBSERVED, 0, 0, false, SUCCESS, 0},
        {"not implemented", VPMU_MODE_NO_PROFILING, 0, 2, true, UNIMPLEMENTED, 77},
        {"not implemented, observed", VPMU_MODE_NO_PROFILING | VPMU_MODE_OBSERVED, 0, 2, true,
         UNIMPLEMENTED, 0},
    };
    const struct vpmu_hardware_counter set[2] = {PMC(1), PMC(0x40000001)};

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct vpmu_arbiter *arbiter = make(USUAL, rows[i].mode, 4);
        struct vpmu_hardware_counter got[16] = {{.index = 99}};
        uint32_t count = 77;

        vpmu_arbiter_set_profiling(arbiter, &bob, set, rows[i].set, NULL);
        cr_expect_eq((int)vpmu_arbiter_query_profiling(arbiter, rows[i].array ? got : NULL,
                                                       rows[i].maximum, &count, NULL),
                     rows[i].status, "%s", rows[i].name);
        cr_expect_eq(count, rows[i].count, "%s: count %u", rows[i].name, count);
        cr_expect_eq(got[0].index, rows[i].status == SUCCESS && rows[i].set ? 1 : 99, "%s: array",
                     rows[i].name);
        if (rows[i].status != UNIMPLEMENTED)
            cr_expect_eq((int)vpmu_arbiter_query_profiling(arbiter, got, 16, NULL, NULL), INVALID);
        free(arbiter);
    }
}

/* ---- Delivery ---- */

Test(arbiter, overflow_goes_to_its_owners)
{
    struct vpmu_arbiter *arbiter = make(USUAL, VPMU_MODE_DOCUMENTED, 8);
    vpmu_lease a, b, quiet, buffer;
    struct vpmu_delivery delivery;
    uint64_t bits = UINT64_C(0x400000050000001F); /* 0-4, fixed 0 and 2, event buffer */

    vpmu_arbiter_allocate(arbiter, &alice,
                          REQUEST(LIST(SINGLE(0), SINGLE(3), FIXED(0), OVERFLOW(0xA))), &a, NULL);
    vpmu_arbiter_allocate(arbiter, &bob, REQUEST(ON(CPU(1, 2)), LIST(SINGLE(1), OVERFLOW(0xB))), &b,
                          NULL);
    vpmu_arbiter_allocate(arbiter, &bob, REQUEST(LIST(SINGLE(2))), &quiet, NULL);
    vpmu_arbiter_allocate(arbiter, &bob, REQUEST(LIST(BUFFER(0xC, 7), OVERFLOW(0xD))), &buffer,
                          NULL);

    const struct {
        vpmu_lease lease;
        uint64_t bits, handler;
        bool event_buffer;
    } rows[] = {
        {a, UINT64_C(0x100000009), 0xA, false},
        {b, 2, 0xB, false},
        {quiet, 4, 0, false},
        {buffer, UINT64_C(1) << VPMU_EVENT_BUFFER, 0xC, true},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cr_assert(vpmu_arbiter_overflow(arbiter, 65, &bits, &delivery), "delivery %zu", i);
        cr_expect_eq(delivery.lease, rows[i].lease, "delivery %zu: lease", i);
        cr_expect_eq(delivery.bits, rows[i].bits, "delivery %zu: bits", i);
        cr_expect_eq(delivery.handler, rows[i].handler, "delivery %zu: handler", i);
        cr_expect_eq(delivery.event_buffer, rows[i].event_buffer, "delivery %zu: kind", i);
    }
    cr_expect_eq(delivery.buffer.threshold, 7);
    cr_expect_eq(delivery.buffer.entry_size, 32);
    cr_expect_not(vpmu_arbiter_overflow(arbiter, 65, &bits, &delivery));
    cr_expect_eq(bits, UINT64_C(0x400000010), "counter 4 and fixed counter 2 are nobody's");

    bits = 2; /* where b does not have counter 1 */
    cr_expect_not(vpmu_arbiter_overflow(arbiter, 64, &bits, &delivery));
    cr_expect_eq(bits, 2);
    bits = 1;
    cr_expect_not(vpmu_arbiter_overflow(arbiter, PROCESSORS, &bits, &delivery), "no processor");
    free(arbiter);
}

/* ---- Questions ---- */

Test(arbiter, questions)
{
    struct vpmu_arbiter *arbiter = make(HOLED, VPMU_MODE_DOCUMENTED, 4);
    vpmu_lease a, b, c;
    struct vpmu_lease_info info;

    vpmu_arbiter_allocate(arbiter, &alice, REQUEST(LIST(SINGLE(0), TAG(5))), &a, NULL);
    vpmu_arbiter_allocate(arbiter, &bob, REQUEST(ON(CPU(1, 2))), &c, NULL);
    cr_expect_eq(c, VPMU_LEASE_NONE);
    vpmu_arbiter_allocate(arbiter, &bob, REQUEST(ON(CPU(1, 2)), LIST(SINGLE(1))), &b, NULL);
    vpmu_arbiter_allocate(arbiter, &alice, REQUEST(LIST(SINGLE(2))), &c, NULL);

    cr_expect_eq(vpmu_arbiter_next(arbiter, VPMU_LEASE_NONE), a);
    cr_expect_eq(vpmu_arbiter_next(arbiter, a), b);
    cr_expect_eq(vpmu_arbiter_next(arbiter, b), c);
    cr_expect_eq(vpmu_arbiter_next(arbiter, c), VPMU_LEASE_NONE);
    cr_expect_eq(vpmu_arbiter_next(arbiter, VPMU_LEASE_ONES), VPMU_LEASE_NONE);
    cr_expect_eq(vpmu_arbiter_next_of(arbiter, alice.id, VPMU_LEASE_NONE), a);
    cr_expect_eq(vpmu_arbiter_next_of(arbiter, alice.id, a), c);
    cr_expect_eq(vpmu_arbiter_next_of(arbiter, bob.id, a), VPMU_LEASE_NONE, "not bob's");
    cr_expect_eq(vpmu_arbiter_next_of(arbiter, 99, VPMU_LEASE_NONE), VPMU_LEASE_NONE);

    cr_expect_eq(vpmu_arbiter_lease(arbiter, a, &info), VPMU_STATUS_SUCCESS);
    cr_expect(info.has_tag && info.tag == 5 && info.all_processors && !info.whole);
    cr_expect_str_eq(info.holder.name, alice.name);
    cr_expect_eq((int)vpmu_arbiter_lease(arbiter, a, NULL), INVALID);
    cr_expect_eq(vpmu_arbiter_lease_mask(arbiter, a, 0), ~(UINT64_C(1) << 5));
    cr_expect_eq(vpmu_arbiter_lease_mask(arbiter, a, 1), 2);
    cr_expect_eq(vpmu_arbiter_lease_mask(arbiter, a, 2), 0);
    cr_expect_eq(vpmu_arbiter_lease_mask(arbiter, b, 0), 0);

    cr_expect_eq(vpmu_arbiter_owner(arbiter, 65, 1), b);
    cr_expect_eq(vpmu_arbiter_owner(arbiter, 64, 0), VPMU_LEASE_NONE, "not online");
    cr_expect_eq(vpmu_arbiter_owner(arbiter, 65, VPMU_INDEX_MAX + 1), VPMU_LEASE_NONE);
    cr_expect_eq(vpmu_arbiter_capacity(arbiter, 65), UINT64_C(0x400000070000000F));
    cr_expect_eq(vpmu_arbiter_left(arbiter, 65), UINT64_C(0x4000000700000008));
    cr_expect_eq(vpmu_arbiter_capacity(arbiter, 64), 0, "not online");
    cr_expect_eq(vpmu_arbiter_left(arbiter, PROCESSORS), 0);
    free(arbiter);
}

/* ---- Explanations ---- */

Test(arbiter, explanation_in_words)
{
    struct vpmu_arbiter *arbiter = make(USUAL, VPMU_MODE_DOCUMENTED, 4);
    struct vpmu_explanation why;
    char text[160], small[8];
    vpmu_lease lease;

    vpmu_arbiter_allocate(arbiter, &alice, REQUEST(ON(CPU(1, 2)), LIST(FIXED(1))), &lease, NULL);
    vpmu_arbiter_allocate(arbiter, &bob, REQUEST(LIST(FIXED(1))), &lease, &why);
    size_t length = vpmu_explanation_text(&why, text, sizeof(text));
    cr_expect_str_eq(text,
                     "STATUS_INSUFFICIENT_RESOURCES: fixed counter 1 of processor 1:1 is held "
                     "by lease 0x100000000 of alice.sys (id 1)");
    cr_expect_eq(length, strlen(text));
    cr_expect_eq(vpmu_explanation_text(&why, small, sizeof(small)), length);
    cr_expect_str_eq(small, "STATUS_");
    cr_expect_eq(vpmu_explanation_text(&why, NULL, 0), length);

    vpmu_arbiter_allocate(arbiter, &bob, REQUEST(LIST(TAG(1), EXTENDED)), &lease, &why);
    vpmu_explanation_text(&why, text, sizeof(text));
    cr_expect_str_eq(text, "STATUS_NOT_SUPPORTED: ExtendedCounterConfiguration is not supported on "
                           "processor any");
    cr_expect_str_eq(vpmu_status_name(1), "STATUS_?");
    free(arbiter);
}

/* Every cause has a sentence of its own, whatever the fields hold. */
Test(arbiter, every_cause_has_words)
{
    char texts[VPMU_CAUSES][200];

    for (int cause = 0; cause < VPMU_CAUSES; cause++) {
        struct vpmu_explanation why = {.cause = (enum vpmu_cause)cause,
                                       .position = VPMU_NOT_SET,
                                       .type = VPMU_NOT_SET,
                                       .processor = VPMU_NOT_SET,
                                       .index = VPMU_NOT_SET};
        size_t length = vpmu_explanation_text(&why, texts[cause], sizeof(texts[cause]));

        cr_expect_lt(length, sizeof(texts[cause]));
        cr_expect_null(strchr(texts[cause], '%'));
        for (int other = 0; other < cause; other++)
            cr_expect_str_neq(texts[cause], texts[other], "causes %d and %d", cause, other);
    }
}

/* ---- Set-up ---- */

Test(arbiter, configuration_limits)
{
    const struct vpmu_processor good = {.counters = 1, .online = true};
    const struct vpmu_processor wild = {.counters = UINT64_C(1) << 48, .online = true};
    const struct vpmu_processor offline = {.counters = 1};
    const struct {
        const char *name;
        struct vpmu_arbiter_config config;
        bool valid;
    } rows[] = {
        {"least", {&good, 1, 1, 0, 0, 0}, true},
        {"no processors", {NULL, 1, 1, 0, 0, 0}, false},
        {"none of them", {&good, 0, 1, 0, 0, 0}, false},
        {"too many", {&good, VPMU_PROCESSORS_MAX + 1, 1, 0, 0, 0}, false},
        {"no leases", {&good, 1, 0, 0, 0, 0}, false},
        {"too many leases", {&good, 1, VPMU_LEASES_MAX + 1, 0, 0, 0}, false},
        {"too many holders", {&good, 1, 1, VPMU_LEASES_MAX + 1, 0, 0}, false},
        {"too many spans", {&good, 1, 1, 0, VPMU_LEASES_MAX + 1, 0}, false},
        {"a counter that cannot be", {&wild, 1, 1, 0, 0, 0}, false},
        {"none online", {&offline, 1, 1, 0, 0, 0}, false},
    };

    cr_expect_eq(vpmu_arbiter_size(NULL), 0);
    for (size_t i = 0; i < ROWS(rows); i++) {
        size_t size = vpmu_arbiter_size(&rows[i].config);
        void *memory = malloc(size + 1);

        cr_expect_eq(size != 0, rows[i].valid, "%s: %zu bytes", rows[i].name, size);
        cr_expect_eq(vpmu_arbiter_init(memory, size, &rows[i].config) != NULL, rows[i].valid, "%s",
                     rows[i].name);
        if (rows[i].valid)
            cr_expect_null(vpmu_arbiter_init(memory, size - 1, &rows[i].config));
        free(memory);
    }
}

/* 4,096 processors in 64 groups: a lease over all of them, and over one of each group. */
Test(arbiter, many_groups)
{
    static struct vpmu_processor processors[4096];
    static struct vpmu_affinity affinity[64];
    struct vpmu_arbiter_config config = {
        .processors = processors, .processor_count = 4096, .leases = 4, .spans = 64};
    const struct vpmu_resource counter = SINGLE(0), other = SINGLE(1);
    struct vpmu_request everywhere = {.resources = &counter, .resource_count = 1};
    struct vpmu_request one_each = {affinity, 64, 1, &other};
    vpmu_lease a, b;

    for (uint32_t p = 0; p < 4096; p++)
        processors[p] = processor_of(USUAL, p);
    for (uint16_t g = 0; g < 64; g++)
        affinity[g] = (struct vpmu_affinity){.group = g, .mask = UINT64_C(1) << g};
    size_t size = vpmu_arbiter_size(&config);
    struct vpmu_arbiter *arbiter = vpmu_arbiter_init(malloc(size), size, &config);

    vpmu_arbiter_allocate(arbiter, &alice, &everywhere, &a, NULL);
    vpmu_arbiter_allocate(arbiter, &bob, &one_each, &b, NULL);
    for (uint32_t p = 0; p < 4096; p++) {
        cr_expect_eq(vpmu_arbiter_owner(arbiter, p, 0), a);
        cr_expect_eq(vpmu_arbiter_owner(arbiter, p, 1), p / 64 == p % 64 ? b : VPMU_LEASE_NONE);
    }
    cr_expect_eq(vpmu_arbiter_lease_mask(arbiter, b, 63), UINT64_C(1) << 63);
    cr_expect_eq((int)vpmu_arbiter_allocate(arbiter, &bob, REQUEST(ON(CPU(0, 2)), LIST(SINGLE(2))),
                                            &a, NULL),
                 INSUFFICIENT, "64 spans are in use");
    vpmu_arbiter_free(arbiter, b, NULL);
    cr_expect_eq(
        vpmu_arbiter_allocate(arbiter, &bob, REQUEST(ON(CPU(0, 2)), LIST(SINGLE(2))), &b, NULL),
        VPMU_STATUS_SUCCESS);
    free(arbiter);
}
