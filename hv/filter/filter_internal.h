// SPDX-License-Identifier: BSD-3-Clause
/* What the files of the filter share. */
#ifndef VPMU_FILTER_INTERNAL_H
#define VPMU_FILTER_INTERNAL_H

#include "vpmu/filter.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* A row of classes.def. */
struct vpmu_class_row {
    uint8_t event_class;
    struct vpmu_rule rule;
};

/* The rows of a vendor; *count of them. */
const struct vpmu_class_row *vpmu_class_rows(enum vpmu_vendor vendor, unsigned *count);

/* Whether the class has a list of what it allows. */
bool vpmu_policy_lists_allowed(const struct vpmu_policy *policy);

bool vpmu_rule_matches(const struct vpmu_rule *rule, uint32_t code);
bool vpmu_rules_match(const struct vpmu_rules *rules, uint32_t code);

/* Codes of struct vpmu_counter_info: event select [7:0], unit mask, event select [11:8]. */
static inline uint32_t vpmu_code(unsigned select, unsigned mask)
{
    return (uint32_t)((select & 0xFF) | mask << 8 | select >> 8 << 16);
}

static inline uint16_t vpmu_code_select(uint32_t code)
{
    return (uint16_t)((code & 0xFF) | (code >> 16 & 0xF) << 8);
}

static inline uint8_t vpmu_code_mask(uint32_t code)
{
    return (uint8_t)(code >> 8);
}

#endif
