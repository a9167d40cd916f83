// SPDX-License-Identifier: BSD-3-Clause
/*
 * The filter that KVM is given, against a naive reading of what the kernel does with one
 * (Documentation/virt/kvm/api.rst, KVM_SET_PMU_EVENT_FILTER; arch/x86/kvm/pmu.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter_test.h"

static uint64_t select_of(uint64_t entry)
{
    return (entry & 0xFF) | (entry >> 24 & 0xF00);
}

static bool entry_matches(const struct vpmu_kvm_filter *filter, uint64_t entry, uint32_t code)
{
    uint64_t select = (code & 0xFF) | (code >> 8 & 0xF00), mask = code >> 8 & 0xFF;

    if (select != select_of(entry)) {
        return false;
    }
    return filter->masked ? (mask & entry >> 56) == (entry >> 8 & 0xFF)
                          : mask == (entry >> 8 & 0xFF);
}

static bool kernel_allows(const struct vpmu_kvm_filter *filter, uint32_t code)
{
    bool included = false, excluded = false;

    for (uint32_t i = 0; i < filter->count; i++) {
        bool exclude = filter->masked && filter->events[i] >> 55 & 1;

        if (entry_matches(filter, filter->events[i], code)) {
            *(exclude ? &excluded : &included) = true;
        }
    }
    return (included && !excluded) != filter->deny;
}

/* Entries with other bits are refused (masked) or skipped (plain), and so are what cannot match. */
static void check_entries(const struct vpmu_kvm_filter *filter, enum vpmu_vendor vendor)
{
    uint64_t select = vendor == VPMU_VENDOR_AMD ? UINT64_C(0xF000000FF) : 0xFF;
    uint64_t known = select | 0xFF00 | (filter->masked ? UINT64_C(0xFF8) << 52 : 0);

    cr_assert_leq(filter->count, 300);
    for (uint32_t i = 0; i < filter->count; i++) {
        uint64_t entry = filter->events[i];

        cr_assert_eq(entry & ~known, 0, "entry %#llx", (unsigned long long)entry);
        cr_assert(!filter->masked || !((entry >> 8 & 0xFF) & ~(entry >> 56)),
                  "entry %#llx cannot match", (unsigned long long)entry);
    }
}

static void check_filter(const struct vpmu_policy *policy, bool masked)
{
    struct vpmu_kvm_filter filter;
    const char *error = vpmu_kvm_filter(policy, masked, &filter);
    uint32_t codes = policy->vendor == VPMU_VENDOR_AMD ? CODES : 0x10000;

    cr_assert_null(error, "%s", error);
    cr_assert_eq(filter.masked, masked);
    check_entries(&filter, policy->vendor);
    for (uint32_t code = 0; code < codes; code += code < 0x10000 ? 1 : 7) {
        cr_assert_eq(kernel_allows(&filter, code), vpmu_policy_allows(policy, code),
                     "class %u, code %#x: the kernel %s it", policy->event_class, code,
                     kernel_allows(&filter, code) ? "allows" : "denies");
    }
}

/* Some codes of each vendor, with those of one event select that have different classes. */
static const char *const pool[] = {
    "r0076", "r003c", "r013c", "r00c0", "r01c0", "r00c4", "r00c2", "r01d1", "r04d1",
    "r24d1", "r412e", "r4f2e", "r0143", "r0243", "r01b7", "rffff", "r0000", "r80a3",
};

#define POOL (sizeof(pool) / sizeof(pool[0]))

static void check_random(enum vpmu_vendor vendor, enum vpmu_event_class class, bool masked)
{
    struct vpmu_policy policy = policy_of(vendor, class);

    for (unsigned i = 0; i < POOL; i++) {
        switch (rand() % 4) {
        case 0:
            allow(&policy, pool[i]);
            break;
        case 1:
            deny(&policy, pool[i]);
            break;
        case 2:
            allow(&policy, pool[i]);
            deny(&policy, pool[i]);
            break;
        default:
            break;
        }
    }
    if (!vpmu_policy_is_open(&policy)) {
        check_filter(&policy, masked);
    }
}

Test(filter_kvm, is_the_policy)
{
    const unsigned seed = 4711;

    srand(seed);
    cr_log_info("seed %u", seed);
    for (unsigned vendor = 0; vendor < 2; vendor++) {
        for (unsigned class = 0; class < VPMU_EVENT_CLASSES; class ++) {
            for (unsigned round = 0; round < 3; round++) {
                check_random(vendor, class, true);
                if (class <= VPMU_EVENTS_ARCHITECTURAL) {
                    check_random(vendor, class, false);
                }
            }
        }
    }
}

Test(filter_kvm, classes_alone)
{
    for (unsigned vendor = 0; vendor < 2; vendor++) {
        for (unsigned class = VPMU_EVENTS_ARCHITECTURAL; class < VPMU_EVENT_CLASSES; class ++) {
            check_filter(shared_policy(vendor, class), true);
        }
        check_filter(shared_policy(vendor, VPMU_EVENTS_ARCHITECTURAL), false);
    }
}

Test(filter_kvm, fixed_counters_follow_their_events)
{
    struct vpmu_policy policy = policy_of(VPMU_VENDOR_INTEL, VPMU_EVENTS_ANY);
    struct vpmu_kvm_filter filter;

    deny(&policy, "cycles");
    cr_assert_null(vpmu_kvm_filter(&policy, true, &filter));
    cr_assert(filter.deny);
    cr_assert_eq(filter.fixed_counters, 0x2);
    policy.event_class = VPMU_EVENTS_ARCHITECTURAL;
    cr_assert_null(vpmu_kvm_filter(&policy, true, &filter));
    cr_assert_not(filter.deny);
    cr_assert_eq(filter.fixed_counters, 0xD);
}

Test(filter_kvm, too_many_rules)
{
    struct vpmu_policy policy = policy_of(VPMU_VENDOR_INTEL, VPMU_EVENTS_STANDARD);
    struct vpmu_kvm_filter filter;
    char text[8];

    for (unsigned i = 0; i < 300; i++) {
        snprintf(text, sizeof(text), "r%x", 0x8000 + i);
        allow(&policy, text);
    }
    cr_assert(strstr(vpmu_kvm_filter(&policy, true, &filter), "more than 300 rules"));
    policy.event_class = VPMU_EVENTS_ANY;
    check_filter(&policy, true);
    check_filter(&policy, false);
}

Test(filter_kvm, a_class_by_code_is_too_many)
{
    struct vpmu_policy policy = policy_of(VPMU_VENDOR_AMD, VPMU_EVENTS_STANDARD);
    struct vpmu_kvm_filter filter;

    cr_assert(strstr(vpmu_kvm_filter(&policy, false, &filter), "masked"));
}
