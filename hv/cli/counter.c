// SPDX-License-Identifier: BSD-3-Clause
#include "hv/cli/counter.h"

#include <inttypes.h>
#include <string.h>

#include "hv/cli/answer.h"

#define FIXED_FIRST 32u /* the index of fixed counter 0: struct vpmu_status_counter */

/* The worst first. */
static const struct {
    const char *name;
    enum table_mark mark;
} states[] = {
    {"starved", TABLE_BAD},      {"revoked", TABLE_BAD}, {"unsupported", TABLE_WARNING},
    {"filtered", TABLE_WARNING}, {"backed", TABLE_GOOD}, {"granted", TABLE_PLAIN},
    {"absent", TABLE_UNKNOWN},
};

unsigned counter_rank(struct json_object *counter)
{
    const char *state = answer_text(counter, "state");

    for (unsigned i = 0; i < G_N_ELEMENTS(states); i++)
        if (!strcmp(state, states[i].name))
            return i;
    return 0;
}

void counter_add_name(struct table *table, struct json_object *counter)
{
    const uint64_t index = answer_number(counter, "index");

    if (index < FIXED_FIRST)
        table_add(table, TABLE_PLAIN, "gp %" PRIu64, index);
    else
        table_add(table, TABLE_PLAIN, "fixed %" PRIu64, index - FIXED_FIRST);
}

void counter_add_state(struct table *table, struct json_object *counter)
{
    const char *state = answer_text(counter, "state");

    table_add(table, states[counter_rank(counter)].mark, "%.12s", *state ? state : "?");
}

/* Rounded down: 100% is all of it. */
void counter_add_share(struct table *table, uint64_t part, uint64_t whole)
{
    const double share = whole ? (double)part / (double)whole : 0;

    if (!whole)
        table_add(table, TABLE_PLAIN, "-");
    else
        table_add(table, TABLE_PLAIN, "%u%%", share < 1 ? (unsigned)(share * 100) : 100u);
}
