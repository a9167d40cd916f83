/* SPDX-License-Identifier: BSD-3-Clause */
/* What CPUID says (SDM Vol. 2, CPUID, "Architectural Performance Monitoring Leaf"). */
#include "model_internal.h"

#define NOT_ARCHITECTURAL 32

#define EDX_ANY_THREAD_DEPRECATED BIT(15)

/* Architectural events that the source keeps, as the bits of EBX. */
static uint32_t available(const struct vpmu_config *config)
{
    static const struct {
        uint8_t event, bit;
    } rows[] = {
#define INTEL(select, mask, event, bit) {VPMU_EVENT_##event, bit},
#include "events.def"
#undef INTEL
    };
    uint64_t bits = 0;

    for (unsigned i = 0; i < LENGTH(rows); i++) {
        bits |= config->events & VPMU_EVENT_BIT(rows[i].event) ? BIT(rows[i].bit) : 0;
    }
    return (uint32_t)bits;
}

void vpmu_cpuid_0a(const struct vpmu_config *config, uint32_t regs[4])
{
    /* Events past the length of the bit vector are not available, so 8 is said for slots only. */
    uint32_t length = config->events & VPMU_EVENT_BIT(VPMU_EVENT_SLOTS) ? 8 : 7;

    regs[0] = regs[1] = regs[2] = regs[3] = 0;
    if (config->vendor != VPMU_VENDOR_INTEL) {
        return;
    }
    regs[0] = config->version | (uint32_t)config->gp << 8 | (uint32_t)config->gp_width << 16 |
              length << 24;
    regs[1] = ~available(config) & (uint32_t)MASK(length);
    if (config->fixed) {
        regs[3] = config->fixed | (uint32_t)config->fixed_width << 5;
    }
    if (config->version >= 5) {
        regs[2] = (uint32_t)MASK(config->fixed);
        regs[3] |= EDX_ANY_THREAD_DEPRECATED;
    }
}
