/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a processor's counters: the status device's word, or VERIFY's. */

#include "vpmu.h"

#include "os.h"

enum { LEAF_TOPOLOGY = 0xb };

/* The x2APIC id where there is one (SDM Vol. 2, CPUID leaf 0BH), else the eight bits of leaf 1. */
static void read_apic_id(void *context)
{
    uint32_t *apic_id = context;
    uint32_t regs[4];

    os_cpuid(0, 0, regs);
    if (regs[0] >= LEAF_TOPOLOGY) {
        os_cpuid(LEAF_TOPOLOGY, 0, regs);
        *apic_id = regs[3];
        if (regs[1])
            return;
    }
    os_cpuid(1, 0, regs);
    *apic_id = regs[1] >> 24;
}

/* What nobody holds has not been looked at. */
static NTSTATUS states_by_verify(const struct vpmu *vpmu, uint32_t processor,
                                 struct vpmu_states *out)
{
    uint64_t counters = vpmu->pmu.enumerated | vpmu->held;

    for (uint64_t left = counters; left && out->count < VPMU_MAX_STATES; left &= left - 1) {
        uint32_t index = pmu_first(left);
        bool looked = vpmu->held >> index & 1 && processor < vpmu->driven;

        out->states[out->count++] = (struct vpmu_state){
            .counter = index,
            .state = looked ? vpmu->processor[processor].state[index] : VPMU_COUNTER_GRANTED,
            .selector = VPMU_NOT_KNOWN,
            .enabled_ns = VPMU_NOT_KNOWN,
            .backed_ns = VPMU_NOT_KNOWN,
        };
    }
    out->updated_ns = VPMU_NOT_KNOWN;
    return STATUS_SUCCESS;
}

NTSTATUS states_read(const struct vpmu *vpmu, uint32_t processor, struct vpmu_states *out)
{
    uint32_t apic_id = 0;
    NTSTATUS status;

    if (processor >= os_processors())
        return STATUS_INVALID_PARAMETER;
    out->processor = processor;
    if (!vpmu->status.registers)
        return states_by_verify(vpmu, processor, out);
    status = os_on_processor(processor, read_apic_id, &apic_id);
    return NT_SUCCESS(status) ? status_states(&vpmu->status, apic_id, out) : status;
}
