// SPDX-License-Identifier: BSD-3-Clause
/* CPUID -> what a processor has. SDM Vol. 2A, CPUID; APM Vol. 3, appendix E. */
#include "host_internal.h"

#include <string.h>

#define LEAF_PERFMON 0xAu
#define LEAF_PERFMON_EXTENDED 0x23u
#define LEAF_AMD_FEATURES 0x80000001u
#define LEAF_AMD_PERFMON 0x80000022u

#define AMD_CORE_COUNTERS 6 /* PerfCtrExtCore: APM Vol. 2, 13.2.1 */
#define K7_COUNTERS 4

static bool bit(uint32_t value, unsigned number)
{
    return value >> number & 1;
}

static bool has_leaf(host_cpuid_fn *cpuid, void *context, uint32_t leaf)
{
    return cpuid(context, leaf & UINT32_C(0x80000000), 0).eax >= leaf;
}

static enum vpmu_host_vendor vendor_of(const struct host_cpuid *leaf0)
{
    static const struct {
        char name[13];
        enum vpmu_host_vendor vendor;
    } vendors[] = {
        {"GenuineIntel", VPMU_HOST_INTEL},
        {"AuthenticAMD", VPMU_HOST_AMD},
        {"HygonGenuine", VPMU_HOST_AMD},
    };
    const uint32_t name[] = {leaf0->ebx, leaf0->edx, leaf0->ecx};

    for (size_t i = 0; i < HOST_ROWS(vendors); i++)
        if (!memcmp(vendors[i].name, name, sizeof(name)))
            return vendors[i].vendor;
    return VPMU_HOST_VENDOR_UNKNOWN;
}

/* Fixed counter i is there if ECX[i] is set or i is below EDX[4:0]; both since version 2. */
static struct vpmu_amount intel_counters(const struct host_cpuid *leaf)
{
    const unsigned fixed = leaf->edx & 0x1F;
    struct vpmu_amount amount = {.gp = (uint16_t)(leaf->eax >> 8 & 0xFF)};

    if ((leaf->eax & 0xFF) >= 2)
        amount.fixed = (uint16_t)((UINT32_C(1) << fixed) - 1);
    if ((leaf->eax & 0xFF) >= 5)
        amount.fixed |= (uint16_t)leaf->ecx;
    return amount;
}

/* Leaf 0x23 has the counters of the processor that executes it, as bit maps. */
static bool intel_counters_extended(host_cpuid_fn *cpuid, void *context, struct vpmu_amount *amount)
{
    if (!has_leaf(cpuid, context, LEAF_PERFMON_EXTENDED) || !bit(cpuid(context, 7, 1).eax, 8) ||
        !bit(cpuid(context, LEAF_PERFMON_EXTENDED, 0).eax, 1))
        return false;
    const struct host_cpuid counters = cpuid(context, LEAF_PERFMON_EXTENDED, 1);

    amount->gp = (uint16_t)__builtin_popcount(counters.eax);
    amount->fixed = (uint16_t)counters.ebx;
    return true;
}

static void intel_capacity(host_cpuid_fn *cpuid, void *context, struct vpmu_host_core_type *type)
{
    if (!has_leaf(cpuid, context, LEAF_PERFMON))
        return;
    const struct host_cpuid leaf = cpuid(context, LEAF_PERFMON, 0);

    type->version = (uint8_t)leaf.eax;
    if (type->version && !intel_counters_extended(cpuid, context, &type->capacity))
        type->capacity = intel_counters(&leaf);
}

static void amd_capacity(host_cpuid_fn *cpuid, void *context, struct vpmu_host_core_type *type)
{
    const struct host_cpuid v2 = has_leaf(cpuid, context, LEAF_AMD_PERFMON)
                                     ? cpuid(context, LEAF_AMD_PERFMON, 0)
                                     : (struct host_cpuid){0};

    if (bit(v2.eax, 0)) {
        type->version = 2;
        type->capacity.gp = v2.ebx & 0xF;
    } else if (bit(cpuid(context, LEAF_AMD_FEATURES, 0).ecx, 23)) {
        type->version = 1;
        type->capacity.gp = AMD_CORE_COUNTERS;
    } else {
        type->capacity.gp = K7_COUNTERS;
    }
}

enum vpmu_host_vendor host_capacity(host_cpuid_fn *cpuid, void *context,
                                    struct vpmu_host_core_type *type)
{
    const struct host_cpuid leaf0 = cpuid(context, 0, 0);
    const enum vpmu_host_vendor vendor = vendor_of(&leaf0);

    type->version = 0;
    type->capacity = (struct vpmu_amount){0};
    if (vendor == VPMU_HOST_INTEL)
        intel_capacity(cpuid, context, type);
    if (vendor == VPMU_HOST_AMD)
        amd_capacity(cpuid, context, type);
    if (type->capacity.gp > 32) /* what admission takes, and no processor has */
        type->capacity.gp = 32;
    return vendor;
}

bool host_is_virtualised(host_cpuid_fn *cpuid, void *context)
{
    return bit(cpuid(context, 1, 0).ecx, 31);
}

bool host_is_hybrid(host_cpuid_fn *cpuid, void *context)
{
    return has_leaf(cpuid, context, 7) && bit(cpuid(context, 7, 0).edx, 15);
}

void host_model(host_cpuid_fn *cpuid, void *context, char *model, size_t size)
{
    struct host_cpuid brand[3];
    char text[sizeof(brand) + 1] = "";
    const char *start = text;

    if (has_leaf(cpuid, context, 0x80000004u)) {
        for (uint32_t i = 0; i < HOST_ROWS(brand); i++)
            brand[i] = cpuid(context, 0x80000002u + i, 0);
        memcpy(text, brand, sizeof(brand));
    }
    while (*start == ' ')
        start++;
    host_copy_printable(model, size, start);
    for (size_t length = strlen(model); length && model[length - 1] == ' ';)
        model[--length] = '\0';
}

const char *vpmu_host_vendor_name(enum vpmu_host_vendor vendor)
{
    static const char *const names[] = {
        [VPMU_HOST_VENDOR_UNKNOWN] = "unknown",
        [VPMU_HOST_INTEL] = "Intel",
        [VPMU_HOST_AMD] = "AMD",
    };

    return (size_t)vendor < HOST_ROWS(names) ? names[vendor] : "unknown";
}
