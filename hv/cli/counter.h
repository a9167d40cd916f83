// SPDX-License-Identifier: BSD-3-Clause
/* A VM's counter, as a row of its report. */
#ifndef CLI_COUNTER_H
#define CLI_COUNTER_H

#include <stdint.h>

#include "hv/cli/table.h"

struct json_object;

/* How bad a counter's state is: 0 is the worst; what is not known is as bad as starved. */
unsigned counter_rank(struct json_object *counter);

/* Each adds a cell: "gp 0", "fixed 1"; the state; how much of whole a part is, "-" of nothing. */
void counter_add_name(struct table *table, struct json_object *counter);
void counter_add_state(struct table *table, struct json_object *counter);
void counter_add_share(struct table *table, uint64_t part, uint64_t whole);

#endif
