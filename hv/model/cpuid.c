/* SPDX-License-Identifier: BSD-3-Clause */
/* What CPUID says (SDM Vol. 2, CPUID, "Architectural Performance Monitoring Leaf"; APM Vol. 3,
 * appendix "Obtaining Processor Information Via the CPUID Instruction"). */
#include "model_internal.h"

#define NOT_ARCHITECTURAL 32

#define EDX_ANY_THREAD_DEPRECATED BIT(15)

/* Of leaf 80000022H. Its other fields are of what does not exist here: branch records, freezing,
 * the counters of the northbridge and of the memory controllers. */
#define EAX_PERFMON_V2 1u

#define ECX_PERF_CTR_EXT_CORE (1u << 23)
#define EBX_INST_RET_CNT_MSR (1u << 1)

/* Architectural events that the source keeps, as the bits of EBX. */
static uint32_t available(const struct vpmu_config *config)
{
    static const struct {
        uint8_t event, bit;
    } rows[] = {
#define INTEL(select, mask, event, bit) {VPMU_EVENT_##event, bit},
#include "vpmu/events.def"
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

static bool is_amd_since(const struct vpmu_config *config, enum vpmu_amd_version version)
{
    return config->vendor == VPMU_VENDOR_AMD && config->version >= version;
}

void vpmu_cpuid_80000022(const struct vpmu_config *config, uint32_t regs[4])
{
    bool v2 = is_amd_since(config, VPMU_AMD_PERFMON_V2);

    regs[0] = v2 ? EAX_PERFMON_V2 : 0;
    regs[1] = v2 ? config->gp : 0;
    regs[2] = regs[3] = 0;
}

uint32_t vpmu_cpuid_80000001_ecx(const struct vpmu_config *config)
{
    return is_amd_since(config, VPMU_AMD_EXT_CORE) ? ECX_PERF_CTR_EXT_CORE : 0;
}

uint32_t vpmu_cpuid_80000008_ebx(const struct vpmu_config *config)
{
    return is_amd_since(config, VPMU_AMD_LEGACY) && config->fixed ? EBX_INST_RET_CNT_MSR : 0;
}
