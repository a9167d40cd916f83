// SPDX-License-Identifier: BSD-3-Clause
#include "filter_test.h"

struct vpmu_policy policy_of(enum vpmu_vendor vendor, enum vpmu_event_class event_class)
{
    return (struct vpmu_policy){.vendor = (uint8_t)vendor, .event_class = (uint8_t)event_class};
}

struct vpmu_policy *shared_policy(enum vpmu_vendor vendor, enum vpmu_event_class event_class)
{
    static struct vpmu_policy policies[2][VPMU_EVENT_CLASSES];
    struct vpmu_policy *policy = &policies[vendor][event_class];

    policy->vendor = (uint8_t)vendor;
    policy->event_class = (uint8_t)event_class;
    return policy;
}

static void add(struct vpmu_rules *rules, uint8_t vendor, const char *text)
{
    const char *error = vpmu_rules_add(rules, vendor, text);

    cr_assert_null(error, "%s %s", text, error);
}

void allow(struct vpmu_policy *policy, const char *text)
{
    add(&policy->allow, policy->vendor, text);
}

void deny(struct vpmu_policy *policy, const char *text)
{
    add(&policy->deny, policy->vendor, text);
}
