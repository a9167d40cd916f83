/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The profiling configuration: the counters that the kernel reads through RDPMC at each context
 * switch of a thread that has asked for it. There is one configuration in the system, and a
 * non-empty one is only replaced by way of an empty one.
 */

#include "vpmu.h"

#include "os.h"

static void set_user_rdpmc(void *context)
{
    struct vpmu *vpmu = context;
    struct vpmu_processor *processor = &vpmu->processor[os_this_processor()];

    if (!processor->user_rdpmc)
        processor->user_rdpmc = !os_user_rdpmc(true);
}

static void restore_user_rdpmc(void *context)
{
    struct vpmu *vpmu = context;
    struct vpmu_processor *processor = &vpmu->processor[os_this_processor()];

    if (processor->user_rdpmc)
        os_user_rdpmc(false);
    processor->user_rdpmc = false;
}

static NTSTATUS on_each_processor(struct vpmu *vpmu, os_work *work)
{
    NTSTATUS status = STATUS_SUCCESS;

    for (uint32_t i = 0; i < vpmu->driven && NT_SUCCESS(status); i++)
        status = os_on_processor(i, work, vpmu);
    return status;
}

static uint32_t array_of(const struct pmu *pmu, uint64_t counters, HARDWARE_COUNTER *array)
{
    uint32_t count = 0;

    for (uint64_t left = counters; left; left &= left - 1)
        array[count++] = (HARDWARE_COUNTER){
            .Type = PMCCounter,
            .Index = pmu->counter[pmu_first(left)].selector,
        };
    return count;
}

/* Success does not say that the set stands: ask. */
static NTSTATUS query(const HARDWARE_COUNTER *wanted, uint32_t count, struct vpmu_profile *profile)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS] = {0};
    ULONG standing = 0;
    NTSTATUS status = KeQueryHardwareCounterConfiguration(array, MAX_HW_COUNTERS, &standing);

    if (!NT_SUCCESS(status))
        return status;
    if (standing != count)
        return STATUS_UNSUCCESSFUL;
    for (uint32_t i = 0; i < count; i++) {
        if (array[i].Index != wanted[i].Index)
            return STATUS_UNSUCCESSFUL;
        profile->selectors[i] = array[i].Index;
    }
    profile->count = count;
    return STATUS_SUCCESS;
}

NTSTATUS profiling_set(struct vpmu *vpmu, const struct vpmu_profile_request *request,
                       struct vpmu_profile *profile)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS];
    uint32_t count;
    NTSTATUS status;

    if (request->counters & ~vpmu->held || request->reserved ||
        request->flags & ~(uint32_t)VPMU_PROFILE_USER_RDPMC ||
        __builtin_popcountll(request->counters) > MAX_HW_COUNTERS)
        return STATUS_INVALID_PARAMETER;

    on_each_processor(vpmu, restore_user_rdpmc);
    vpmu->profiled = 0;
    status = KeSetHardwareCounterConfiguration(NULL, 0);
    if (!NT_SUCCESS(status))
        return status;
    count = array_of(&vpmu->pmu, request->counters, array);
    if (count) {
        status = KeSetHardwareCounterConfiguration(array, count);
        if (!NT_SUCCESS(status))
            return status;
        vpmu->profiled = request->counters;
    }
    status = query(array, count, profile);
    if (NT_SUCCESS(status) && request->flags & VPMU_PROFILE_USER_RDPMC)
        status = on_each_processor(vpmu, set_user_rdpmc);
    return status;
}

void profiling_clear(struct vpmu *vpmu)
{
    on_each_processor(vpmu, restore_user_rdpmc);
    if (vpmu->profiled)
        KeSetHardwareCounterConfiguration(NULL, 0);
    vpmu->profiled = 0;
}
