// SPDX-License-Identifier: BSD-3-Clause
#include "hv/cli/managed.h"

#include <stdlib.h>
#include <string.h>

#include "hv/cli/answer.h"

#define SET_WORDS (VPMU_ADMISSION_PROCESSORS_MAX / 64u)

static void add_taken(struct json_object *lease, const struct vpmu_host *host,
                      struct vpmu_amount *taken)
{
    const struct vpmu_amount granted = answer_amount(lease, "granted");
    uint64_t set[SET_WORDS];

    if (vpmu_host_parse_list(answer_text(lease, "processors"), host->processor_count, set))
        return;
    for (uint32_t p = 0; p < host->processor_count; p++) {
        if (!(set[p / 64] >> p % 64 & 1))
            continue;
        taken[p].gp = (uint16_t)(taken[p].gp + granted.gp);
        taken[p].fixed |= granted.fixed;
    }
}

/* What vpmud has seen by itself is no lease. */
static bool is_lease(struct json_object *entry)
{
    return !strcmp(answer_text(entry, "binding"), "cpu") &&
           strcmp(answer_text(entry, "state"), "observed") != 0 && answer_number(entry, "pid");
}

int managed_of_answer(struct json_object *answer, const struct vpmu_host *host,
                      struct vpmu_host_managed *managed)
{
    size_t count;
    struct json_object *leases = answer_rows(answer, "leases", &count);
    uint32_t *pids = calloc(count + 1, sizeof(*pids));
    struct vpmu_amount *taken = calloc(host->processor_count + 1, sizeof(*taken));

    *managed = (struct vpmu_host_managed){.pids = pids, .taken = taken};
    if (!pids || !taken) {
        managed_free(managed);
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        struct json_object *entry = answer_row(leases, i);

        if (!is_lease(entry))
            continue;
        pids[managed->pid_count++] = (uint32_t)answer_number(entry, "pid");
        add_taken(entry, host, taken);
    }
    return 0;
}

void managed_free(struct vpmu_host_managed *managed)
{
    free((void *)managed->pids);
    free((void *)managed->taken);
    *managed = (struct vpmu_host_managed){0};
}
