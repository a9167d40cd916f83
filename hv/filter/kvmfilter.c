// SPDX-License-Identifier: BSD-3-Clause
/*
 * A policy as KVM's event filter (Documentation/virt/kvm/api.rst, KVM_SET_PMU_EVENT_FILTER).
 *
 * The action is for the codes that some entry matches and no excluding entry does; for all others
 * it is the opposite. A plain filter has no excluding entries and one entry for each code.
 */
#include "filter_internal.h"

static const char too_many[] = "the policy has more than 300 rules, which is all that KVM takes";
static const char too_many_plain[] =
    "the policy has more than 300 codes, which is all that this kernel's KVM takes: a class of"
    " events needs masked filter entries, which it lacks (Linux 6.3 and later have them)";

static uint64_t plain_entry(unsigned select, unsigned mask)
{
    return (select & 0xFF) | mask << 8 | (uint64_t)(select >> 8) << 32;
}

/* KVM_PMU_ENCODE_MASKED_ENTRY. */
static uint64_t masked_entry(const struct vpmu_rule *rule, bool exclude)
{
    return plain_entry(rule->select, rule->match) | (uint64_t)rule->mask << 56 |
           (uint64_t)exclude << 55;
}

static bool add(struct vpmu_kvm_filter *filter, uint64_t entry)
{
    for (uint32_t i = 0; i < filter->count; i++) {
        if (filter->events[i] == entry) {
            return true;
        }
    }
    if (filter->count == VPMU_RULES_MAX) {
        return false;
    }
    filter->events[filter->count++] = entry;
    return true;
}

/* Each code of a rule that the policy treats as the filter's action does. */
static bool add_codes(struct vpmu_kvm_filter *filter, const struct vpmu_policy *policy,
                      const struct vpmu_rule *rule)
{
    for (unsigned mask = 0; mask <= 0xFF; mask++) {
        if ((mask & rule->mask) == rule->match &&
            vpmu_policy_allows(policy, vpmu_code(rule->select, mask)) != filter->deny &&
            !add(filter, plain_entry(rule->select, mask))) {
            return false;
        }
    }
    return true;
}

static bool add_rule(struct vpmu_kvm_filter *filter, const struct vpmu_policy *policy,
                     const struct vpmu_rule *rule)
{
    return filter->masked ? add(filter, masked_entry(rule, false))
                          : add_codes(filter, policy, rule);
}

static bool add_rules(struct vpmu_kvm_filter *filter, const struct vpmu_policy *policy,
                      const struct vpmu_rules *rules)
{
    for (unsigned i = 0; i < rules->count; i++) {
        if (!add_rule(filter, policy, &rules->rule[i])) {
            return false;
        }
    }
    return true;
}

/* Whether all codes of `rule` are among those of `by`. */
static bool is_covered(const struct vpmu_rule *rule, const struct vpmu_rule *by)
{
    return by->select == rule->select && (rule->mask & by->mask) == by->mask &&
           (rule->match & by->mask) == by->match;
}

static bool is_covered_later(const struct vpmu_policy *policy, const struct vpmu_class_row *rows,
                             unsigned row, unsigned count)
{
    for (unsigned i = row + 1; i < count; i++) {
        if (rows[i].event_class <= policy->event_class &&
            is_covered(&rows[row].rule, &rows[i].rule)) {
            return true;
        }
    }
    return false;
}

static bool add_class(struct vpmu_kvm_filter *filter, const struct vpmu_policy *policy)
{
    unsigned count;
    const struct vpmu_class_row *rows = vpmu_class_rows(policy->vendor, &count);

    for (unsigned i = 0; i < count; i++) {
        if (rows[i].event_class <= policy->event_class &&
            !is_covered_later(policy, rows, i, count) && !add_rule(filter, policy, &rows[i].rule)) {
            return false;
        }
    }
    return true;
}

static bool add_exclusions(struct vpmu_kvm_filter *filter, const struct vpmu_rules *rules)
{
    for (unsigned i = 0; filter->masked && i < rules->count; i++) {
        if (!add(filter, masked_entry(&rules->rule[i], true))) {
            return false;
        }
    }
    return true;
}

/* SDM Vol. 3, table "Association of Fixed-Function Performance Counters with Architectural
 * Performance Events". */
static const uint8_t fixed_events[VPMU_FIXED_MAX] = {
    VPMU_EVENT_INSTRUCTIONS,
    VPMU_EVENT_CYCLES,
    VPMU_EVENT_REF_CYCLES,
    VPMU_EVENT_SLOTS,
};

static uint32_t fixed_counters(const struct vpmu_policy *policy, bool deny)
{
    uint32_t set = 0;

    for (unsigned i = 0; i < VPMU_FIXED_MAX; i++) {
        if (vpmu_policy_allows_event(policy, fixed_events[i]) != deny) {
            set |= 1u << i;
        }
    }
    return set;
}

const char *vpmu_kvm_filter(const struct vpmu_policy *policy, bool masked,
                            struct vpmu_kvm_filter *filter)
{
    bool fits;

    *filter = (struct vpmu_kvm_filter){
        .deny = !vpmu_policy_lists_allowed(policy),
        .masked = masked,
    };
    if (filter->deny) {
        fits = add_rules(filter, policy, &policy->deny);
    } else {
        fits = add_class(filter, policy) && add_rules(filter, policy, &policy->allow) &&
               add_exclusions(filter, &policy->deny);
    }
    filter->fixed_counters = fixed_counters(policy, filter->deny);
    return fits ? NULL : masked ? too_many : too_many_plain;
}
