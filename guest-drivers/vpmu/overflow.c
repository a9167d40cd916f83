/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The overflow handler. It runs at PROFILE_LEVEL on the processor whose counters have overflowed,
 * possibly in the middle of a request: no paged memory, no lock, only atomics and registers. The
 * HAL has cleared the overflow state.
 */

#include "vpmu.h"

#include "os.h"

static struct vpmu *attached;

void overflow_attach(struct vpmu *vpmu)
{
    __atomic_store_n(&attached, vpmu, __ATOMIC_RELEASE);
}

void overflow_reset(struct vpmu_overflows *overflows)
{
    __atomic_store_n(&overflows->calls, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&overflows->foreign, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&overflows->bits, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&overflows->irql, 0, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < PMU_INDICES; i++)
        overflow_forget(overflows, i);
}

void overflow_forget(struct vpmu_overflows *overflows, uint32_t index)
{
    __atomic_store_n(&overflows->periods[index], 0, __ATOMIC_RELAXED);
}

static void next_period(const struct vpmu *vpmu, struct vpmu_overflows *overflows, uint32_t index)
{
    uint64_t period = vpmu->programs[index].period;
    uint64_t ended;

    if (period && pmu_reload(&vpmu->pmu, index, period, &ended))
        __atomic_fetch_add(&overflows->periods[index], ended, __ATOMIC_RELAXED);
}

VOID NTAPI overflow_handler(ULONGLONG OverflowBits, HANDLE OwningHandle)
{
    struct vpmu *vpmu = __atomic_load_n(&attached, __ATOMIC_ACQUIRE);
    uint32_t here = os_this_processor();
    struct vpmu_overflows *overflows;

    if (!vpmu || here >= vpmu->driven)
        return;
    overflows = &vpmu->processor[here].overflows;
    __atomic_fetch_add(&overflows->calls, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&overflows->bits, OverflowBits, __ATOMIC_RELAXED);
    __atomic_store_n(&overflows->irql, os_irql(), __ATOMIC_RELAXED);
    if (OwningHandle != vpmu->set) {
        __atomic_fetch_add(&overflows->foreign, 1, __ATOMIC_RELAXED);
        return;
    }
    for (uint64_t left = OverflowBits & vpmu->programmed; left; left &= left - 1)
        next_period(vpmu, overflows, pmu_first(left));
}
