// SPDX-License-Identifier: BSD-3-Clause
#include "hv/cli/managed.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define SET_WORDS (VPMU_ADMISSION_PROCESSORS_MAX / 64u)

static int64_t number_of(struct json_object *object, const char *key)
{
    return json_object_get_int64(json_object_object_get(object, key));
}

static bool is(struct json_object *object, const char *key, const char *text)
{
    struct json_object *value = json_object_object_get(object, key);

    return json_object_is_type(value, json_type_string) &&
           !strcmp(json_object_get_string(value), text);
}

static void add_taken(struct json_object *lease, const struct vpmu_host *host,
                      struct vpmu_amount *taken)
{
    struct json_object *list = json_object_object_get(lease, "processors");
    struct json_object *granted = json_object_object_get(lease, "granted");
    uint64_t set[SET_WORDS];

    if (!json_object_is_type(list, json_type_string) ||
        vpmu_host_parse_list(json_object_get_string(list), host->processor_count, set))
        return;
    for (uint32_t p = 0; p < host->processor_count; p++) {
        if (!(set[p / 64] >> p % 64 & 1))
            continue;
        taken[p].gp = (uint16_t)(taken[p].gp + number_of(granted, "gp"));
        taken[p].fixed |= (uint16_t)number_of(granted, "fixed");
    }
}

/* What vpmud has seen by itself is no lease. */
static bool is_lease(struct json_object *entry)
{
    return is(entry, "binding", "cpu") && !is(entry, "state", "observed") &&
           number_of(entry, "pid") > 0;
}

int managed_of_answer(struct json_object *answer, const struct vpmu_host *host,
                      struct vpmu_host_managed *managed)
{
    struct json_object *leases = json_object_object_get(answer, "leases");
    const size_t count =
        json_object_is_type(leases, json_type_array) ? json_object_array_length(leases) : 0;
    uint32_t *pids = calloc(count + 1, sizeof(*pids));
    struct vpmu_amount *taken = calloc(host->processor_count + 1, sizeof(*taken));

    *managed = (struct vpmu_host_managed){.pids = pids, .taken = taken};
    if (!pids || !taken) {
        managed_free(managed);
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        struct json_object *entry = json_object_array_get_idx(leases, i);

        if (!json_object_is_type(entry, json_type_object) || !is_lease(entry))
            continue;
        pids[managed->pid_count++] = (uint32_t)number_of(entry, "pid");
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
