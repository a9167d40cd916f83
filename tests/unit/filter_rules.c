// SPDX-License-Identifier: BSD-3-Clause
/* What can be named in a list, and what a list does to a class. */
#include <stdio.h>
#include <string.h>

#include "filter_test.h"

static const struct {
    enum vpmu_vendor vendor;
    const char *text;
    unsigned count;
    struct vpmu_rule first;
} accepted[] = {
    {VPMU_VENDOR_INTEL, "r412e", 1, {0x2E, 0xFF, 0x41}},
    {VPMU_VENDOR_INTEL, "r412E", 1, {0x2E, 0xFF, 0x41}},
    {VPMU_VENDOR_INTEL, "rc0", 1, {0xC0, 0xFF, 0x00}},
    {VPMU_VENDOR_INTEL, "r0", 1, {0x00, 0xFF, 0x00}},
    {VPMU_VENDOR_INTEL, "r000000000000ffff", 1, {0xFF, 0xFF, 0xFF}},
    {VPMU_VENDOR_INTEL, "cycles", 1, {0x3C, 0xFF, 0x00}},
    {VPMU_VENDOR_INTEL, "llc-misses", 1, {0x2E, 0xFF, 0x41}},
    {VPMU_VENDOR_INTEL, "conditional-branches", 2, {0xC4, 0xFF, 0x01}},
    {VPMU_VENDOR_AMD, "cycles", 1, {0x76, 0xFF, 0x00}},
    {VPMU_VENDOR_AMD, "ref-cycles", 1, {0x120, 0xFF, 0x01}},
    {VPMU_VENDOR_AMD, "r100000120", 1, {0x120, 0xFF, 0x01}},
    {VPMU_VENDOR_AMD, "rF0000FFFF", 1, {0xFFF, 0xFF, 0xFF}},
};

Test(filter_rules, accepted)
{
    for (unsigned i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        struct vpmu_rules rules = {0};
        const char *error = vpmu_rules_add(&rules, accepted[i].vendor, accepted[i].text);

        cr_assert_null(error, "%s %s", accepted[i].text, error);
        cr_assert_eq(rules.count, accepted[i].count, "%s", accepted[i].text);
        cr_assert_eq(rules.rule[0].select, accepted[i].first.select, "%s", accepted[i].text);
        cr_assert_eq(rules.rule[0].mask, accepted[i].first.mask, "%s", accepted[i].text);
        cr_assert_eq(rules.rule[0].match, accepted[i].first.match, "%s", accepted[i].text);
    }
}

static const struct {
    enum vpmu_vendor vendor;
    const char *text, *word;
} refused[] = {
    {VPMU_VENDOR_INTEL, "", "neither"},
    {VPMU_VENDOR_INTEL, "r", "neither"},
    {VPMU_VENDOR_INTEL, "412e", "neither"},
    {VPMU_VENDOR_INTEL, "R412e", "neither"},
    {VPMU_VENDOR_INTEL, "r0x412e", "neither"},
    {VPMU_VENDOR_INTEL, "r412e ", "neither"},
    {VPMU_VENDOR_INTEL, "r41g", "neither"},
    {VPMU_VENDOR_INTEL, "r-1", "neither"},
    {VPMU_VENDOR_INTEL, "none", "neither"},
    {VPMU_VENDOR_INTEL, "Cycles", "neither"},
    {VPMU_VENDOR_INTEL, "cycle", "neither"},
    {VPMU_VENDOR_INTEL, "cyclesx", "neither"},
    {VPMU_VENDOR_INTEL, "r00000000000000c00", "neither"},
    {VPMU_VENDOR_INTEL, "r5300c0", "more than"},
    {VPMU_VENDOR_INTEL, "r8000000000000000", "more than"},
    {VPMU_VENDOR_INTEL, "r1000000c0", "8 bits"},
    {VPMU_VENDOR_AMD, "r1000000000", "more than"},
    {VPMU_VENDOR_AMD, "near-calls", "vendor"},
    {VPMU_VENDOR_AMD, "slots", "vendor"},
};

Test(filter_rules, refused)
{
    for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct vpmu_rules rules = {0};
        const char *error = vpmu_rules_add(&rules, refused[i].vendor, refused[i].text);

        cr_assert_not_null(error, "\"%s\" is accepted", refused[i].text);
        cr_assert(strstr(error, refused[i].word), "%s: %s", refused[i].text, error);
        cr_assert_eq(rules.count, 0);
    }
}

Test(filter_rules, every_event_has_a_name_of_its_own)
{
    for (unsigned a = 0; a < VPMU_EVENTS; a++) {
        for (unsigned b = 0; b < a; b++) {
            cr_assert_str_neq(vpmu_event_name(a), vpmu_event_name(b));
        }
    }
}

Test(filter_rules, the_same_code_counts_once_and_300_are_the_most)
{
    struct vpmu_rules rules = {0};
    char text[8];

    for (unsigned i = 0; i < 300; i++) {
        snprintf(text, sizeof(text), "r%x", i);
        cr_assert_null(vpmu_rules_add(&rules, VPMU_VENDOR_INTEL, text));
        cr_assert_null(vpmu_rules_add(&rules, VPMU_VENDOR_INTEL, text));
    }
    cr_assert_eq(rules.count, 300);
    cr_assert(strstr(vpmu_rules_add(&rules, VPMU_VENDOR_INTEL, "r12c"), "300"));
    cr_assert(strstr(vpmu_rules_add(&rules, VPMU_VENDOR_INTEL, "llc-misses"), "300"));
    cr_assert_eq(rules.count, 300);
}

Test(filter_rules, allow_adds_to_a_class_and_deny_takes_from_both)
{
    struct vpmu_policy policy = policy_of(VPMU_VENDOR_INTEL, VPMU_EVENTS_ARCHITECTURAL);

    allow(&policy, "llc-misses");
    allow(&policy, "r01d1");
    deny(&policy, "branches");
    deny(&policy, "r01d1");
    cr_assert(vpmu_policy_allows(&policy, 0x412E));
    cr_assert(vpmu_policy_allows(&policy, 0x00C0));
    cr_assert_not(vpmu_policy_allows(&policy, 0x4F2E));
    cr_assert_not(vpmu_policy_allows(&policy, 0x00C4));
    cr_assert_not(vpmu_policy_allows(&policy, 0x01D1));
}

/* Without a class: a list of what is allowed is all of it, one of what is denied denies that only.
 */
Test(filter_rules, lists_without_a_class)
{
    struct vpmu_policy policy = policy_of(VPMU_VENDOR_AMD, VPMU_EVENTS_ANY);

    deny(&policy, "cycles");
    cr_assert(vpmu_policy_allows(&policy, 0x00C0));
    cr_assert_not(vpmu_policy_allows(&policy, 0x0076));
    allow(&policy, "instructions");
    allow(&policy, "cycles");
    cr_assert(vpmu_policy_allows(&policy, 0x00C0));
    cr_assert_not(vpmu_policy_allows(&policy, 0x0076));
    cr_assert_not(vpmu_policy_allows(&policy, 0x00C2));
}
