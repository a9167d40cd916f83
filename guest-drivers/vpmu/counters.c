/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters, from the HAL and back. */

#include "vpmu.h"

#include "os.h"

enum { FIRST_BUILD_WITH_LISTS = 18362 }; /* Windows 10 1903 */

/* A resource list with room for every counter and the overflow interrupt. */
struct list {
    ULONG count;
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR descriptor[VPMU_MAX_COUNTERS + 1];
};
NT_OFFSET(struct list, descriptor, offsetof(PHYSICAL_COUNTER_RESOURCE_LIST, Descriptors));

static void list_counter(struct list *list, uint32_t index)
{
    list->descriptor[list->count++] = (PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR){
        .Type = ResourceTypeSingle,
        .u.CounterIndex = index,
    };
}

static void list_overflow(struct list *list)
{
    list->descriptor[list->count++] = (PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR){
        .Type = ResourceTypeOverflow,
        .u.OverflowHandler = overflow_handler,
    };
}

/* NULL asks for the whole PMU. The handle says nothing when the status is a failure. */
static NTSTATUS allocate(struct list *list, HANDLE *set)
{
    return HalAllocateHardwareCounters(NULL, 0, (PPHYSICAL_COUNTER_RESOURCE_LIST)(void *)list, set);
}

static NTSTATUS take_whole(struct vpmu *vpmu)
{
    struct vpmu_grant *grant = &vpmu->grant;

    grant->allocate_status = allocate(NULL, &vpmu->set);
    if (!NT_SUCCESS(grant->allocate_status))
        return grant->allocate_status;
    grant->flags = VPMU_GRANT_WHOLE;
    grant->granted = vpmu->pmu.counters;
    return STATUS_SUCCESS;
}

/* Ask for each counter alone, to learn which are free; returns the mask of those. */
static uint64_t probe(struct vpmu_grant *grant, uint64_t counters)
{
    uint64_t available = 0;

    for (uint64_t left = counters; left; left &= left - 1) {
        uint32_t index = pmu_first(left);
        struct list list = {0};
        HANDLE set;
        NTSTATUS status;

        list_counter(&list, index);
        status = allocate(&list, &set);
        if (NT_SUCCESS(status)) {
            HalFreeHardwareCounters(set);
            available |= 1ull << index;
        }
        grant->probe_status[index] = status;
    }
    grant->probed = counters;
    return available;
}

static NTSTATUS first_refusal(const struct vpmu_grant *grant, uint64_t refused)
{
    return refused ? grant->probe_status[__builtin_ctzll(refused)] : STATUS_INSUFFICIENT_RESOURCES;
}

static NTSTATUS take_list(struct vpmu *vpmu, uint64_t wanted)
{
    struct vpmu_grant *grant = &vpmu->grant;
    uint64_t asked = wanted ? wanted : vpmu->pmu.counters;
    uint64_t available = probe(grant, asked);
    struct list list = {0};

    /* Counters that are named are taken all or not at all. */
    if (!available || (wanted && available != wanted)) {
        grant->allocate_status = first_refusal(grant, asked & ~available);
        return grant->allocate_status;
    }

    for (uint64_t left = available; left; left &= left - 1)
        list_counter(&list, pmu_first(left));
    list_overflow(&list);
    grant->flags = VPMU_GRANT_OVERFLOW;
    grant->allocate_status = allocate(&list, &vpmu->set);
    if (grant->allocate_status == STATUS_NOT_SUPPORTED) { /* PMU version 1: no such interrupt */
        list.count--;
        grant->flags = 0;
        grant->allocate_status = allocate(&list, &vpmu->set);
    }
    if (!NT_SUCCESS(grant->allocate_status)) {
        grant->flags = 0;
        return grant->allocate_status;
    }
    grant->granted = available;
    return STATUS_SUCCESS;
}

/* Something to be done to a set of counters, on one processor and then the next. */
struct sweep {
    struct vpmu *vpmu;
    uint64_t counters;
    bool (*act)(const struct pmu *pmu, uint32_t index, const struct pmu_program *program);
    bool ok;
};

static void sweep_here(void *context)
{
    struct sweep *sweep = context;

    for (uint64_t left = sweep->counters; left; left &= left - 1) {
        uint32_t index = pmu_first(left);
        if (!sweep->act(&sweep->vpmu->pmu, index, &sweep->vpmu->programs[index]))
            sweep->ok = false;
    }
}

static NTSTATUS sweep_processors(struct vpmu *vpmu, uint64_t counters,
                                 bool (*act)(const struct pmu *, uint32_t,
                                             const struct pmu_program *))
{
    struct sweep sweep = {.vpmu = vpmu, .counters = counters, .act = act, .ok = true};

    for (uint32_t i = 0; i < vpmu->driven; i++) {
        NTSTATUS status = os_on_processor(i, sweep_here, &sweep);
        if (!NT_SUCCESS(status))
            return status;
    }
    return sweep.ok ? STATUS_SUCCESS : STATUS_IO_DEVICE_ERROR;
}

static bool act_stop(const struct pmu *pmu, uint32_t index, const struct pmu_program *program)
{
    (void)program;
    return pmu_stop(pmu, index);
}

static bool act_clear(const struct pmu *pmu, uint32_t index, const struct pmu_program *program)
{
    (void)program;
    return pmu_clear(pmu, index);
}

NTSTATUS counters_acquire(struct vpmu *vpmu, const void *client,
                          const struct vpmu_acquire_request *request)
{
    bool whole = request->flags & VPMU_ACQUIRE_WHOLE;
    uint32_t processors = os_processors();
    NTSTATUS status;

    if (request->flags & ~(uint32_t)VPMU_ACQUIRE_WHOLE || request->reserved ||
        request->counters & ~vpmu->pmu.counters || (whole && request->counters))
        return STATUS_INVALID_PARAMETER;
    if (vpmu->owner)
        return STATUS_INVALID_DEVICE_STATE;
    if (!vpmu->pmu.counters)
        return STATUS_NOT_SUPPORTED;

    vpmu->driven = processors < vpmu->processors ? processors : vpmu->processors;
    for (uint32_t i = 0; i < vpmu->driven; i++)
        overflow_reset(&vpmu->processor[i].overflows);
    vpmu->grant = (struct vpmu_grant){0};

    /* A processor without counters offers nothing to list; Windows grants the whole PMU all the
     * same, and a verification then says what that grant is worth. */
    if (whole || !vpmu->pmu.enumerated ||
        (os_build() < FIRST_BUILD_WITH_LISTS && !request->counters))
        status = take_whole(vpmu);
    else if (os_build() < FIRST_BUILD_WITH_LISTS)
        status = STATUS_NOT_SUPPORTED;
    else
        status = take_list(vpmu, request->counters);
    if (!NT_SUCCESS(status))
        return status;

    vpmu->owner = client;
    vpmu->held = vpmu->grant.granted;
    for (uint32_t i = 0; i < vpmu->driven; i++) {
        for (uint64_t left = vpmu->held; left; left &= left - 1)
            vpmu->processor[i].state[pmu_first(left)] = VPMU_COUNTER_GRANTED;
    }
    overflow_attach(vpmu);
    return STATUS_SUCCESS;
}

void counters_release(struct vpmu *vpmu)
{
    profiling_clear(vpmu);
    sweep_processors(vpmu, vpmu->programmed, act_clear);
    vpmu->running = vpmu->programmed = vpmu->held = 0;
    HalFreeHardwareCounters(vpmu->set);
    overflow_attach(NULL);
    vpmu->set = NULL;
    vpmu->grant.granted = 0;
    vpmu->owner = NULL;
}

static bool period_allowed(uint64_t period, uint32_t flags)
{
    uint64_t least = flags & VPMU_COUNT_KERNEL ? VPMU_MIN_KERNEL_PERIOD : 1;

    return !period || (period >= least && period <= VPMU_MAX_PERIOD);
}

static NTSTATUS program_of(const struct vpmu *vpmu, const struct vpmu_program_request *request,
                           struct pmu_program *program)
{
    const struct pmu *pmu = &vpmu->pmu;
    uint32_t only = pmu->counter[request->counter].fixed_event;
    bool raw = request->event == VPMU_EVENT_RAW;

    if ((!raw && request->event >= VPMU_EVENTS) || (only != VPMU_NONE && request->event != only) ||
        (request->config & ~(raw ? pmu->raw_config : 0)) || request->reserved || !request->flags ||
        request->flags & ~(uint32_t)(VPMU_COUNT_USER | VPMU_COUNT_KERNEL) ||
        !period_allowed(request->period, request->flags))
        return STATUS_INVALID_PARAMETER;
    if (!raw && only == VPMU_NONE && !pmu->event[request->event].available)
        return STATUS_NOT_SUPPORTED;
    if (request->period && !(vpmu->grant.flags & VPMU_GRANT_OVERFLOW))
        return STATUS_NOT_SUPPORTED;

    *program = (struct pmu_program){
        .config = raw ? request->config : pmu->event[request->event].config,
        .event = request->event,
        .flags = request->flags,
        .period = request->period,
    };
    return STATUS_SUCCESS;
}

NTSTATUS counters_program(struct vpmu *vpmu, const struct vpmu_program_request *request)
{
    uint64_t bit;
    NTSTATUS status;

    if (request->counter >= PMU_INDICES || !(vpmu->held >> request->counter & 1))
        return STATUS_INVALID_PARAMETER;
    bit = 1ull << request->counter;
    if (vpmu->running & bit)
        return STATUS_INVALID_DEVICE_STATE;
    status = program_of(vpmu, request, &vpmu->programs[request->counter]);
    if (!NT_SUCCESS(status))
        return status;
    for (uint32_t i = 0; i < vpmu->driven; i++)
        overflow_forget(&vpmu->processor[i].overflows, request->counter);
    vpmu->programmed |= bit;
    return sweep_processors(vpmu, bit, pmu_program);
}

NTSTATUS counters_start(struct vpmu *vpmu, uint64_t counters)
{
    NTSTATUS status;

    if (!counters || counters & ~vpmu->programmed)
        return STATUS_INVALID_PARAMETER;
    if (counters & vpmu->running)
        return STATUS_INVALID_DEVICE_STATE;
    vpmu->running |= counters; /* before the first overflow can come */
    status = sweep_processors(vpmu, counters, pmu_start);
    if (!NT_SUCCESS(status)) {
        sweep_processors(vpmu, counters, act_stop);
        vpmu->running &= ~counters;
    }
    return status;
}

NTSTATUS counters_stop(struct vpmu *vpmu, uint64_t counters)
{
    NTSTATUS status;

    if (!counters || counters & ~vpmu->running)
        return STATUS_INVALID_PARAMETER;
    status = sweep_processors(vpmu, counters, act_stop);
    vpmu->running &= ~counters;
    return status;
}

struct reader {
    struct vpmu *vpmu;
    struct vpmu_reading *reading;
    bool ok;
};

static struct vpmu_value value_of(const struct vpmu *vpmu, const struct vpmu_processor *processor,
                                  uint32_t index)
{
    const struct pmu_program *program = &vpmu->programs[index];
    bool programmed = vpmu->programmed >> index & 1;

    return (struct vpmu_value){
        .counter = index,
        .event = programmed ? program->event : VPMU_NONE,
        .state = processor->state[index],
        .config = programmed ? program->config : 0,
        .period = programmed ? program->period : 0,
    };
}

static void read_here(void *context)
{
    struct reader *reader = context;
    struct vpmu *vpmu = reader->vpmu;
    struct vpmu_reading *reading = reader->reading;
    struct vpmu_processor *processor = &vpmu->processor[reading->processor];
    uint64_t flags = os_interrupts_off(); /* so that values and overflows belong together */

    reading->tsc = os_tsc();
    for (uint64_t left = vpmu->held; left; left &= left - 1) {
        uint32_t index = pmu_first(left);
        struct vpmu_value value = value_of(vpmu, processor, index);

        value.overflows = __atomic_load_n(&processor->overflows.periods[index], __ATOMIC_RELAXED);
        if (vpmu->programmed >> index & 1 &&
            !pmu_read(&vpmu->pmu, index, &vpmu->programs[index], value.overflows, &value.value))
            reader->ok = false;
        reading->values[reading->count++] = value;
    }
    reading->pmis = __atomic_load_n(&processor->overflows.calls, __ATOMIC_RELAXED);
    reading->foreign_pmis = __atomic_load_n(&processor->overflows.foreign, __ATOMIC_RELAXED);
    reading->overflow_bits = __atomic_load_n(&processor->overflows.bits, __ATOMIC_RELAXED);
    reading->pmi_irql = (uint32_t)__atomic_load_n(&processor->overflows.irql, __ATOMIC_RELAXED);
    os_interrupts_restore(flags);
}

NTSTATUS counters_read(struct vpmu *vpmu, uint32_t processor, struct vpmu_reading *reading)
{
    struct reader reader = {.vpmu = vpmu, .reading = reading, .ok = true};
    NTSTATUS status;

    if (!vpmu->held)
        return STATUS_INVALID_DEVICE_STATE;
    if (processor >= vpmu->driven)
        return STATUS_INVALID_PARAMETER;
    reading->processor = processor;
    status = os_on_processor(processor, read_here, &reader);
    if (!NT_SUCCESS(status))
        return status;
    return reader.ok ? STATUS_SUCCESS : STATUS_IO_DEVICE_ERROR;
}
