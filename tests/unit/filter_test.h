// SPDX-License-Identifier: BSD-3-Clause
/* What tests of the filter share. */
#ifndef TESTS_UNIT_FILTER_TEST_H
#define TESTS_UNIT_FILTER_TEST_H

#include <criterion/criterion.h>

#include "vpmu/filter.h"

#define CODES 0x100000u /* every code of struct vpmu_counter_info */

/* A policy without lists. */
struct vpmu_policy policy_of(enum vpmu_vendor vendor, enum vpmu_event_class event_class);

/* The same in static memory, good until the next call with these arguments. */
struct vpmu_policy *shared_policy(enum vpmu_vendor vendor, enum vpmu_event_class event_class);

/* Adds what must be accepted. */
void allow(struct vpmu_policy *policy, const char *text);
void deny(struct vpmu_policy *policy, const char *text);

#endif
