// SPDX-License-Identifier: BSD-3-Clause
/* Lists as an operator may write them: what is accepted becomes a filter that says the same. */
#include <string.h>

#include "check.h"
#include "vpmu/filter.h"

/* The first byte: vendor, class, masked. Then words, each for the list that its line starts with.
 */
static void fill(struct vpmu_policy *policy, char *text)
{
    for (char *next, *word = text; word; word = next) {
        struct vpmu_rules *rules = *word == '-' ? &policy->deny : &policy->allow;
        uint16_t before = rules->count;
        const char *error;

        next = strchr(word, '\n');
        if (next) {
            *next++ = 0;
        }
        error = vpmu_rules_add(rules, policy->vendor, *word ? word + 1 : word);
        CHECK(error ? strlen(error) > 10 : rules->count >= before);
        CHECK(rules->count <= VPMU_RULES_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vpmu_policy policy = {0};
    struct vpmu_kvm_filter filter;
    char text[4096];

    if (size < 1 || size > sizeof(text)) {
        return -1;
    }
    policy.vendor = data[0] & 1;
    policy.event_class = data[0] >> 1 & 3;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    fill(&policy, text);
    if (!vpmu_policy_is_open(&policy) && !vpmu_kvm_filter(&policy, data[0] & 8, &filter)) {
        CHECK(filter.count <= VPMU_RULES_MAX);
        CHECK(filter.deny == (!policy.event_class && !policy.allow.count));
    }
    return 0;
}
