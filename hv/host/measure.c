// SPDX-License-Identifier: BSD-3-Clause
/*
 * What is left for VMs on each processor.
 *
 * A probe competes for what it measures. This one does so as a VM's vCPU does, which is the answer
 * that is wanted: its events are pinned and bound to the thread that opens them. The kernel places
 * events in the order CPU-wide pinned, task's pinned, CPU-wide, task's (kernel/events/core.c,
 * perf_event_sched_in), and only those of the thread that runs. So nothing that is pinned gives way
 * to the probe, of whomever it is; what is not pinned does, while the probe is on the processor.
 */
#include "host_internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MOST_GP 32u

__attribute__((format(printf, 2, 3))) static void not_measured(struct vpmu_host *host,
                                                               const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(host->not_measured, sizeof(host->not_measured), format, arguments);
    va_end(arguments);
}

/* Whether someone may have events that the probe would push aside; then says so. */
static bool would_disturb(struct vpmu_host *host)
{
    for (uint32_t i = 0; i < host->holder_count; i++) {
        const struct vpmu_host_holder *holder = &host->holders[i];

        if (holder->kind == VPMU_HOST_PROCESS && holder->pinned != VPMU_FACT_YES) {
            not_measured(host, "%s (pid %u) may count with unpinned events, which would miss some",
                         holder->name, holder->pid);
            return true;
        }
    }
    if (host->facts.unseen)
        not_measured(host, "processes that may count could not be looked into; run it as root");
    return host->facts.unseen;
}

/* ---- What was found, as holders ---- */

static uint32_t known_on(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                         uint32_t processor)
{
    uint32_t known = managed && managed->taken ? managed->taken[processor].gp : 0;

    for (uint32_t i = 0; i < host->holder_count; i++)
        if (host->holders[i].kind == VPMU_HOST_WATCHDOG &&
            host_holder_on(host, &host->holders[i], processor))
            known += host->holders[i].amount.gp;
    return known;
}

/* How many counters of a processor someone has who is not known; 0 where it was not measured. */
static uint32_t taken_by_others(const struct vpmu_host *host,
                                const struct vpmu_host_managed *managed, uint32_t processor)
{
    const uint32_t capacity = host->processors[processor].capacity.gp;
    const uint32_t left = host->details[processor].left;
    const uint32_t known = known_on(host, managed, processor);

    if (left == VPMU_HOST_UNKNOWN || left + known >= capacity)
        return 0;
    return capacity - left - known;
}

/* Who may have them: the process with the most events that is not managed, and how many others. */
static void name_suspects(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                          struct vpmu_host_holder *measured)
{
    const struct vpmu_host_holder *most = NULL;
    uint32_t others = 0;

    for (uint32_t i = 0; i < host->holder_count; i++) {
        const struct vpmu_host_holder *holder = &host->holders[i];

        if (holder->kind != VPMU_HOST_PROCESS || host_is_managed(holder, managed))
            continue;
        others += most != NULL;
        if (!most || holder->events > most->events)
            most = holder;
    }
    if (!most) {
        snprintf(measured->name, sizeof(measured->name), "a holder that cannot be seen");
        return;
    }
    measured->pid = others ? 0 : most->pid;
    measured->events = most->events;
    char command[25]; /* a command has at most 15 bytes */

    host_copy_printable(command, sizeof(command), most->name);
    const int length =
        snprintf(measured->name, sizeof(measured->name), "%s (pid %u)", command, most->pid);

    if (others)
        snprintf(measured->name + length, sizeof(measured->name) - (size_t)length, " or %u other%s",
                 others, others > 1 ? "s" : "");
}

static int add_measured(struct vpmu_host *host, const struct vpmu_host_managed *managed,
                        uint32_t taken, const struct host_set *where)
{
    struct vpmu_host_holder measured = {
        .kind = VPMU_HOST_MEASURED,
        .basis = VPMU_HOST_CERTAIN,
        .binding = VPMU_BOUND_CPU,
        .pinned = VPMU_FACT_YES,
        .amount = {.gp = (uint16_t)taken},
        .processors = (uint64_t *)where->words,
        .words = host_words(host),
    };

    name_suspects(host, managed, &measured);
    return host_copy_holder(host, &measured);
}

/* One holder for each number of counters that is taken somewhere. */
static int add_all_measured(struct vpmu_host *host, const struct vpmu_host_managed *managed)
{
    struct host_set *where = calloc(MOST_GP + 1, sizeof(*where));
    int status = where ? 0 : -1;

    for (uint32_t p = 0; !status && p < host->processor_count; p++)
        host_set_add(&where[taken_by_others(host, managed, p)], p);
    for (uint32_t taken = 1; !status && taken <= MOST_GP; taken++)
        if (host_set_count(&where[taken]))
            status = add_measured(host, managed, taken, &where[taken]);
    free(where);
    return status;
}

/* ---- Measuring ---- */

static void measure_all(struct vpmu_host_source *source, struct vpmu_host *host,
                        const uint64_t *processors, uint32_t words)
{
    const char *why = NULL;
    bool any = false;

    for (uint32_t p = 0; p < host->processor_count; p++) {
        if (!host->processors[p].online || !host->processors[p].capacity.gp ||
            (processors && !host_set_has(processors, words, p)))
            continue;
        const int left = source->ops->place(source->context, host, p, &why);

        host->details[p].left = left < 0 ? VPMU_HOST_UNKNOWN : (uint32_t)left;
        any = any || left >= 0;
    }
    source->ops->placed(source->context);
    if (any)
        host->not_measured[0] = '\0';
    else if (why)
        not_measured(host,
                     "the kernel lets this user open no event: %s (perf_event_paranoid is %d; "
                     "Debian's kernels want CAP_SYS_ADMIN above 2)",
                     why, host->facts.paranoid);
    else
        not_measured(host, "there is no processor with counters to measure");
}

int vpmu_host_measure(struct vpmu_host_source *source, struct vpmu_host *host,
                      const uint64_t *processors, uint32_t words, bool spare,
                      const struct vpmu_host_managed *managed, struct vpmu_host_error *error)
{
    if (!processors != !words)
        return host_fail(error, "a set of processors without words, or words without a set");
    for (uint32_t p = host->processor_count; p < words * 64; p++)
        if (host_set_has(processors, words, p))
            return host_fail(error, "there is no processor %u", p);
    host_drop_holders(host, VPMU_HOST_MEASURED);
    for (uint32_t p = 0; p < host->processor_count; p++)
        host->details[p].left = VPMU_HOST_UNKNOWN;
    if (spare && would_disturb(host))
        return 0;
    measure_all(source, host, processors, words);
    return add_all_measured(host, managed) ? host_fail(error, "no memory for what was measured")
                                           : 0;
}
