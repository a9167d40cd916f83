// SPDX-License-Identifier: BSD-3-Clause
/* What a processor advertises of what it was granted. */
#include "filter_internal.h"

/* APM Vol. 3, appendix "Obtaining Processor Information Via the CPUID Instruction". */
#define PERF_CTR_EXT_CORE (1u << 23) /* leaf 80000001H:ECX */
#define PERFMON_V2 1u                /* leaf 80000022H:EAX */
#define LEGACY_COUNTERS 4
#define EXT_CORE_COUNTERS 6
#define AMD_WIDTH 48

/* Leaf 0AH (SDM Vol. 2, CPUID, "Architectural Performance Monitoring Leaf"). */
#define EDX_FIXED 0x1Fu

#define ALL_EVENTS ((1u << VPMU_EVENTS) - 2)

static unsigned field(uint32_t value, unsigned shift, unsigned bits)
{
    return value >> shift & ((1u << bits) - 1);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

struct vpmu_config vpmu_offer_intel(const uint32_t leaf_0a[4])
{
    unsigned version = field(leaf_0a[0], 0, 8);

    return (struct vpmu_config){
        .vendor = VPMU_VENDOR_INTEL,
        .version = (uint8_t)least(version, 5),
        .gp = (uint8_t)(version ? least(field(leaf_0a[0], 8, 8), VPMU_GP_MAX) : 0),
        .fixed = (uint8_t)(version > 1 ? least(leaf_0a[3] & EDX_FIXED, VPMU_FIXED_MAX) : 0),
        .gp_width = (uint8_t)field(leaf_0a[0], 16, 8),
        .fixed_width = (uint8_t)field(leaf_0a[3], 5, 8),
        .full_width = true,
        .events = ALL_EVENTS,
    };
}

struct vpmu_config vpmu_offer_amd(uint32_t leaf_80000001_ecx, const uint32_t leaf_80000022[4])
{
    struct vpmu_config offer = {
        .vendor = VPMU_VENDOR_AMD,
        .version = VPMU_AMD_LEGACY,
        .gp = LEGACY_COUNTERS,
        .gp_width = AMD_WIDTH,
        .fixed_width = AMD_WIDTH,
        .events = ALL_EVENTS,
    };

    if (leaf_80000001_ecx & PERF_CTR_EXT_CORE) {
        offer.version = VPMU_AMD_EXT_CORE;
        offer.gp = EXT_CORE_COUNTERS;
        if (leaf_80000022[0] & PERFMON_V2 && field(leaf_80000022[1], 0, 4) >= EXT_CORE_COUNTERS) {
            offer.version = VPMU_AMD_PERFMON_V2;
            offer.gp = (uint8_t)least(field(leaf_80000022[1], 0, 4), VPMU_GP_MAX);
        }
    }
    return offer;
}

static bool cut_amd(unsigned gp, struct vpmu_config *granted)
{
    if (gp >= EXT_CORE_COUNTERS && granted->gp >= EXT_CORE_COUNTERS) {
        granted->gp = (uint8_t)least(granted->gp, gp);
    } else {
        granted->version = VPMU_AMD_LEGACY;
        granted->gp = LEGACY_COUNTERS;
    }
    return gp >= LEGACY_COUNTERS;
}

bool vpmu_cut(const struct vpmu_config *offer, unsigned gp, unsigned fixed,
              struct vpmu_config *granted)
{
    *granted = *offer;
    granted->fixed = (uint8_t)least(offer->fixed, fixed);
    if (!offer->gp) {
        return false;
    }
    if (offer->vendor == VPMU_VENDOR_AMD) {
        return cut_amd(gp, granted);
    }
    granted->gp = (uint8_t)least(offer->gp, gp);
    return granted->gp;
}

static uint32_t denied_events(const struct vpmu_policy *policy)
{
    static const struct {
        uint8_t event, bit;
    } rows[] = {
#define NOT_ARCHITECTURAL 32
#define INTEL(select, mask, event, bit) {VPMU_EVENT_##event, bit},
#include "vpmu/events.def"
    };
    uint32_t bits = 0;

    for (unsigned i = 0; i < LENGTH(rows); i++) {
        if (rows[i].bit != NOT_ARCHITECTURAL && !vpmu_policy_allows_event(policy, rows[i].event)) {
            bits |= 1u << rows[i].bit;
        }
    }
    return bits;
}

void vpmu_cut_0a(const struct vpmu_config *granted, const struct vpmu_policy *policy,
                 uint32_t leaf_0a[4])
{
    unsigned length = field(leaf_0a[0], 24, 8);

    if (granted->vendor != VPMU_VENDOR_INTEL) {
        return;
    }
    leaf_0a[0] = (leaf_0a[0] & ~0xFF00u) | (uint32_t)granted->gp << 8;
    if (policy) {
        leaf_0a[1] |= denied_events(policy) & (length < 32 ? (1u << length) - 1 : UINT32_MAX);
    }
    leaf_0a[2] &= (1u << granted->fixed) - 1;
    leaf_0a[3] =
        granted->fixed ? (leaf_0a[3] & ~EDX_FIXED) | granted->fixed : leaf_0a[3] & ~0x1FFFu;
}
