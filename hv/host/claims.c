// SPDX-License-Identifier: BSD-3-Clause
/* What holders mean to admission. Pure. */
#include "host_internal.h"

#include <string.h>

bool host_holder_on(const struct vpmu_host *host, const struct vpmu_host_holder *holder,
                    uint32_t processor)
{
    if (!holder->processors)
        return host->processors[processor].online;
    return host_set_has(holder->processors, holder->words, processor);
}

bool host_is_managed(const struct vpmu_host_holder *holder, const struct vpmu_host_managed *managed)
{
    for (uint32_t i = 0; managed && i < managed->pid_count; i++) {
        if (managed->pids[i] == holder->pid)
            return true;
        for (size_t a = 0; a < VPMU_HOST_ANCESTORS && holder->ancestors[a]; a++)
            if (managed->pids[i] == holder->ancestors[a])
                return true;
    }
    return false;
}

static bool is_measured(const struct vpmu_host *host)
{
    return !host->not_measured[0];
}

bool host_is_refuted(const struct vpmu_host *host, const struct vpmu_host_holder *holder)
{
    bool measured = false;

    if (holder->basis != VPMU_HOST_ESTIMATED || !holder->amount.gp)
        return false;
    for (uint32_t p = 0; p < host->processor_count; p++) {
        if (host->details[p].left == VPMU_HOST_UNKNOWN || !host_holder_on(host, holder, p))
            continue;
        if (host->details[p].left < host->processors[p].capacity.gp)
            return false;
        measured = true;
    }
    return measured;
}

/* Whether it takes counters of processors, as far as that is known, and nobody else tells of them.
 */
static bool is_claim(const struct vpmu_host *host, const struct vpmu_host_holder *holder,
                     const struct vpmu_host_managed *managed)
{
    if (holder->basis == VPMU_HOST_NOT_KNOWN || holder->binding != VPMU_BOUND_CPU ||
        (!holder->amount.gp && !holder->amount.fixed))
        return false;
    if (holder->kind == VPMU_HOST_PROCESS)
        return !is_measured(host) && !host_is_managed(holder, managed);
    return !host_is_refuted(host, holder);
}

/* Kind, and pid or, of what was measured, how much it is. */
static uint64_t identity(const struct vpmu_host_holder *holder)
{
    const uint32_t which = holder->kind == VPMU_HOST_MEASURED ? holder->amount.gp : holder->pid;

    return (uint64_t)(holder->kind + 1) << 32 | which;
}

static struct vpmu_claim claim_of(const struct vpmu_host_holder *holder)
{
    /* Where that is not known they are taken to exclude guests, as perf's do unless it is told
     * otherwise. It matters beside a mediated vPMU only, where the kernel itself refuses loudly. */
    const bool excludes = holder->includes_guests != VPMU_FACT_YES;

    return (struct vpmu_claim){
        .binding = holder->binding,
        .flags = (uint8_t)(VPMU_CLAIM_OBSERVED | (excludes ? VPMU_CLAIM_EXCLUDES_GUESTS : 0)),
        .need = holder->amount,
        .least = holder->amount,
        .processors = holder->processors,
        .words = holder->words,
        .holder = identity(holder),
        .name = holder->name,
    };
}

size_t vpmu_host_claims(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                        struct vpmu_claim *claims, size_t room)
{
    size_t count = 0;

    for (uint32_t i = 0; i < host->holder_count; i++) {
        if (!is_claim(host, &host->holders[i], managed))
            continue;
        if (count < room)
            claims[count] = claim_of(&host->holders[i]);
        count++;
    }
    return count;
}

const struct vpmu_host_holder *vpmu_host_claimant(const struct vpmu_host *host,
                                                  const struct vpmu_claim *claim)
{
    for (uint32_t i = 0; i < host->holder_count; i++)
        if (host->holders[i].name == claim->name)
            return &host->holders[i];
    return NULL;
}

struct vpmu_amount vpmu_host_beside(const struct vpmu_host *host, const uint8_t uuid[16])
{
    struct vpmu_amount sum = {0};

    for (uint32_t i = 0; i < host->holder_count; i++) {
        const struct vpmu_host_holder *holder = &host->holders[i];

        if (holder->kind != VPMU_HOST_DOMAIN_PERF || memcmp(holder->uuid, uuid, 16) != 0)
            continue;
        sum.gp = (uint16_t)(sum.gp + holder->amount.gp);
        sum.fixed |= holder->amount.fixed;
    }
    return sum;
}
