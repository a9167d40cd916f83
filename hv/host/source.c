// SPDX-License-Identifier: BSD-3-Clause
/* Snapshots: taking, refreshing and freeing them. */
#include "host_internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int host_fail(struct vpmu_host_error *error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    return -1;
}

struct vpmu_host_source *host_source(const struct host_source_ops *ops, void *context)
{
    struct vpmu_host_source *source = context ? malloc(sizeof(*source)) : NULL;

    if (!source) {
        if (context)
            ops->free(context);
        return NULL;
    }
    source->ops = ops;
    source->context = context;
    return source;
}

void vpmu_host_source_free(struct vpmu_host_source *source)
{
    if (!source)
        return;
    source->ops->free(source->context);
    free(source);
}

/* ---- Parts of a snapshot ---- */

int host_make_processors(struct vpmu_host *host, uint32_t count, struct vpmu_host_error *error)
{
    if (!count || count > VPMU_ADMISSION_PROCESSORS_MAX)
        return host_fail(error, "%u processors, where 1 to %u can be", count,
                         VPMU_ADMISSION_PROCESSORS_MAX);
    host->processors = calloc(count, sizeof(*host->processors));
    host->details = calloc(count, sizeof(*host->details));
    if (!host->processors || !host->details)
        return host_fail(error, "no memory for %u processors", count);
    host->processor_count = count;
    for (uint32_t p = 0; p < count; p++)
        host->details[p] = (struct vpmu_host_detail){.sibling = p, .left = VPMU_HOST_UNKNOWN};
    return 0;
}

/* Makes room for one more; false: no memory. */
static bool grow(void **array, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return true;
    const uint32_t more = *room ? 2 * *room : 8;
    void *grown = realloc(*array, more * size);

    if (!grown)
        return false;
    *array = grown;
    *room = more;
    return true;
}

struct vpmu_host_holder *host_add_holder(struct vpmu_host *host)
{
    void *holders = host->holders;

    if (!grow(&holders, host->holder_count, &host->holder_room, sizeof(*host->holders)))
        return NULL;
    host->holders = holders;
    struct vpmu_host_holder *holder = &host->holders[host->holder_count++];

    memset(holder, 0, sizeof(*holder));
    return holder;
}

struct vpmu_host_vm *host_add_vm(struct vpmu_host *host)
{
    void *vms = host->vms;

    if (!grow(&vms, host->vm_count, &host->vm_room, sizeof(*host->vms)))
        return NULL;
    host->vms = vms;
    struct vpmu_host_vm *vm = &host->vms[host->vm_count++];

    memset(vm, 0, sizeof(*vm));
    return vm;
}

int host_holder_processors(struct vpmu_host_holder *holder, const uint64_t *words, uint32_t count)
{
    holder->processors = NULL;
    holder->words = 0;
    if (!words)
        return 0;
    holder->processors = malloc(count * sizeof(*words));
    if (!holder->processors)
        return -1;
    memcpy(holder->processors, words, count * sizeof(*words));
    holder->words = count;
    return 0;
}

int host_copy_holder(struct vpmu_host *host, const struct vpmu_host_holder *holder)
{
    struct vpmu_host_holder *copy = host_add_holder(host);

    if (!copy)
        return -1;
    *copy = *holder;
    return host_holder_processors(copy, holder->processors, holder->words);
}

void host_drop_holders(struct vpmu_host *host, enum vpmu_host_holder_kind kind)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < host->holder_count; i++) {
        if (host->holders[i].kind == kind)
            free(host->holders[i].processors);
        else
            host->holders[kept++] = host->holders[i];
    }
    host->holder_count = kept;
}

/*
 * On Intel's processors the kernel counts the watchdog's cycles with fixed counter 1 where there is
 * one: it prefers fixed counters (arch/x86/events/core.c, __perf_sched_find_counter).
 */
static struct vpmu_amount watchdog_amount(const struct vpmu_host *host)
{
    uint16_t fixed = UINT16_MAX;

    for (uint32_t t = 0; t < host->core_type_count; t++)
        fixed &= host->core_types[t].capacity.fixed;
    if (host->vendor == VPMU_HOST_INTEL && fixed >> 1 & 1)
        return (struct vpmu_amount){.fixed = 1 << 1};
    return (struct vpmu_amount){.gp = 1};
}

int host_add_watchdog(struct vpmu_host *host, const struct host_set *set)
{
    const struct vpmu_host_facts *facts = &host->facts;

    if (facts->watchdog != VPMU_FACT_YES || facts->watchdog_perf == VPMU_FACT_NO)
        return 0;
    struct vpmu_host_holder *holder = host_add_holder(host);

    if (!holder || host_holder_processors(holder, set ? set->words : NULL, host_words(host)))
        return -1;
    holder->kind = VPMU_HOST_WATCHDOG;
    holder->basis = facts->watchdog_perf == VPMU_FACT_YES ? VPMU_HOST_CERTAIN : VPMU_HOST_ESTIMATED;
    holder->events = 1;
    holder->binding = VPMU_BOUND_CPU;
    holder->pinned = VPMU_FACT_YES;
    holder->includes_guests = VPMU_FACT_YES;
    holder->amount = watchdog_amount(host);
    snprintf(holder->name, sizeof(holder->name), "NMI watchdog");
    return 0;
}

/* ---- Taking one ---- */

/* Frees the part that a refresh replaces. */
static void free_observed(struct vpmu_host *host)
{
    for (uint32_t i = 0; i < host->holder_count; i++)
        free(host->holders[i].processors);
    free(host->holders);
    free(host->vms);
}

static void forget_observed(struct vpmu_host *host)
{
    memset(&host->facts, 0, sizeof(host->facts));
    host->holders = NULL;
    host->holder_count = host->holder_room = 0;
    host->vms = NULL;
    host->vm_count = host->vm_room = 0;
}

void vpmu_host_free(struct vpmu_host *host)
{
    free_observed(host);
    free(host->processors);
    free(host->details);
    memset(host, 0, sizeof(*host));
}

int vpmu_host_read(struct vpmu_host_source *source, struct vpmu_host *host,
                   struct vpmu_host_error *error)
{
    memset(host, 0, sizeof(*host));
    snprintf(host->not_measured, sizeof(host->not_measured), "nothing has been measured");
    if (source->ops->processors(source->context, host, error) ||
        source->ops->observe(source->context, host, error)) {
        vpmu_host_free(host);
        return -1;
    }
    return 0;
}

static int copy_measured(const struct vpmu_host *from, struct vpmu_host *to)
{
    for (uint32_t i = 0; i < from->holder_count; i++)
        if (from->holders[i].kind == VPMU_HOST_MEASURED && host_copy_holder(to, &from->holders[i]))
            return -1;
    return 0;
}

int vpmu_host_refresh(struct vpmu_host_source *source, struct vpmu_host *host,
                      struct vpmu_host_error *error)
{
    source->ops->online(source->context, host);
    struct vpmu_host fresh = *host;

    forget_observed(&fresh);
    if (source->ops->observe(source->context, &fresh, error)) {
        free_observed(&fresh);
        return -1;
    }
    if (copy_measured(host, &fresh)) {
        free_observed(&fresh);
        return host_fail(error, "no memory for what was measured");
    }
    free_observed(host);
    *host = fresh;
    return 0;
}
