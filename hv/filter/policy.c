// SPDX-License-Identifier: BSD-3-Clause
/* What a policy allows. */
#include "filter_internal.h"

static const struct vpmu_class_row intel_rows[] = {
#define INTEL(class, select, masks) {VPMU_EVENTS_##class, {select, masks}},
#include "classes.def"
};

static const struct vpmu_class_row amd_rows[] = {
#define AMD(class, select, masks) {VPMU_EVENTS_##class, {select, masks}},
#include "classes.def"
};

/* A class and no more is always a filter. */
_Static_assert(LENGTH(intel_rows) <= VPMU_RULES_MAX, "too many rows for the kernel");
_Static_assert(LENGTH(amd_rows) <= VPMU_RULES_MAX, "too many rows for the kernel");

const struct vpmu_class_row *vpmu_class_rows(enum vpmu_vendor vendor, unsigned *count)
{
    *count = vendor == VPMU_VENDOR_INTEL ? LENGTH(intel_rows) : LENGTH(amd_rows);
    return vendor == VPMU_VENDOR_INTEL ? intel_rows : amd_rows;
}

bool vpmu_rule_matches(const struct vpmu_rule *rule, uint32_t code)
{
    return rule->select == vpmu_code_select(code) &&
           (vpmu_code_mask(code) & rule->mask) == rule->match;
}

bool vpmu_rules_match(const struct vpmu_rules *rules, uint32_t code)
{
    for (unsigned i = 0; i < rules->count; i++) {
        if (vpmu_rule_matches(&rules->rule[i], code)) {
            return true;
        }
    }
    return false;
}

static bool class_matches(const struct vpmu_policy *policy, uint32_t code)
{
    unsigned count;
    const struct vpmu_class_row *rows = vpmu_class_rows(policy->vendor, &count);

    for (unsigned i = 0; i < count; i++) {
        if (rows[i].event_class <= policy->event_class && vpmu_rule_matches(&rows[i].rule, code)) {
            return true;
        }
    }
    return false;
}

bool vpmu_policy_lists_allowed(const struct vpmu_policy *policy)
{
    return policy->event_class != VPMU_EVENTS_ANY || policy->allow.count;
}

bool vpmu_policy_is_open(const struct vpmu_policy *policy)
{
    return !vpmu_policy_lists_allowed(policy) && !policy->deny.count;
}

bool vpmu_policy_allows(const struct vpmu_policy *policy, uint32_t code)
{
    if (vpmu_rules_match(&policy->deny, code)) {
        return false;
    }
    return !vpmu_policy_lists_allowed(policy) || vpmu_rules_match(&policy->allow, code) ||
           class_matches(policy, code);
}

/* The events that can be named, with their codes. */
struct named {
    uint8_t vendor;
    uint8_t event;
    uint32_t code;
};

static const struct named encodings[] = {
#define INTEL(select, mask, event, bit)                                                            \
    {VPMU_VENDOR_INTEL, VPMU_EVENT_##event, (select) | (mask) << 8},
#define AMD(select, mask, event, since)                                                            \
    {VPMU_VENDOR_AMD, VPMU_EVENT_##event, ((select) & 0xFF) | (mask) << 8 | (select) >> 8 << 16},
#include "vpmu/events.def"
};

bool vpmu_policy_allows_event(const struct vpmu_policy *policy, enum vpmu_event event)
{
    for (unsigned i = 0; i < LENGTH(encodings); i++) {
        if (encodings[i].vendor == policy->vendor && encodings[i].event == event &&
            !vpmu_policy_allows(policy, encodings[i].code)) {
            return false;
        }
    }
    return true;
}

static const char *const names[] = {
    [VPMU_EVENT_NONE] = "none",
    [VPMU_EVENT_INSTRUCTIONS] = "instructions",
    [VPMU_EVENT_BRANCHES] = "branches",
    [VPMU_EVENT_COND_BRANCHES] = "conditional-branches",
    [VPMU_EVENT_NEAR_CALLS] = "near-calls",
    [VPMU_EVENT_NEAR_RETURNS] = "near-returns",
    [VPMU_EVENT_FAR_BRANCHES] = "far-branches",
    [VPMU_EVENT_CYCLES] = "cycles",
    [VPMU_EVENT_REF_CYCLES] = "ref-cycles",
    [VPMU_EVENT_SLOTS] = "slots",
    [VPMU_EVENT_INTERRUPTS] = "interrupts",
    [VPMU_EVENT_LLC_REFERENCES] = "llc-references",
    [VPMU_EVENT_LLC_MISSES] = "llc-misses",
    [VPMU_EVENT_BRANCH_MISSES] = "branch-misses",
};

_Static_assert(LENGTH(names) == VPMU_EVENTS, "every event has a name");

const char *vpmu_event_name(enum vpmu_event event)
{
    return names[event];
}

static bool same_text(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static const char *add_code(struct vpmu_rules *rules, uint32_t code)
{
    if (vpmu_rules_match(rules, code)) {
        return NULL;
    }
    if (rules->count == VPMU_RULES_MAX) {
        return "is one too many: a list has at most 300 codes, as KVM's filter has";
    }
    rules->rule[rules->count++] =
        (struct vpmu_rule){vpmu_code_select(code), 0xFF, vpmu_code_mask(code)};
    return NULL;
}

/* The value of a hexadecimal digit, 16 if it is none. */
static unsigned digit(char c)
{
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
           : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                  : 16;
}

/* What follows the "r" of a raw code, of 1 to 16 digits. */
static bool parse_raw(const char *text, uint64_t *raw)
{
    unsigned digits = 0;

    for (*raw = 0; digit(*text) < 16 && digits < 17; text++, digits++) {
        *raw = *raw << 4 | digit(*text);
    }
    return !*text && digits >= 1 && digits <= 16;
}

static const char *add_raw(struct vpmu_rules *rules, enum vpmu_vendor vendor, uint64_t raw)
{
    unsigned select = (unsigned)((raw & 0xFF) | (raw >> 32 & 0xF) << 8);

    if (raw & ~UINT64_C(0xF0000FFFF)) {
        return "has more than an event select and a unit mask, which is all that can be filtered";
    }
    if (vendor == VPMU_VENDOR_INTEL && select > 0xFF) {
        return "has an event select of more than 8 bits, which only AMD's processors have";
    }
    return add_code(rules, vpmu_code(select, (unsigned)(raw >> 8 & 0xFF)));
}

static const char *add_event(struct vpmu_rules *rules, enum vpmu_vendor vendor,
                             enum vpmu_event event)
{
    const char *error = "is no event of this vendor's processors";

    for (unsigned i = 0; i < LENGTH(encodings); i++) {
        if (encodings[i].vendor == vendor && encodings[i].event == event) {
            error = add_code(rules, encodings[i].code);
            if (error) {
                return error;
            }
        }
    }
    return error;
}

const char *vpmu_rules_add(struct vpmu_rules *rules, enum vpmu_vendor vendor, const char *text)
{
    uint64_t raw;

    for (unsigned event = VPMU_EVENT_NONE + 1; event < VPMU_EVENTS; event++) {
        if (same_text(text, names[event])) {
            return add_event(rules, vendor, event);
        }
    }
    if (text[0] != 'r' || !parse_raw(text + 1, &raw)) {
        return "is neither a raw code, such as r00c0, nor the name of an event, such as cycles";
    }
    return add_raw(rules, vendor, raw);
}
