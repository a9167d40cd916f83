/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is AMD's: the core performance counters and the Instructions Retired counter (APM Vol. 2,
 * section "Performance Monitoring Counters"). Figure and table names in this file are of that
 * section.
 *
 * Reserved bits are RAZ there, not MBZ: what is written to them is dropped, and no write to a
 * register that exists faults. So do Linux's KVM (arch/x86/kvm/pmu.c, kvm_pmu_set_msr) and, for
 * the read-only status, the PPRs.
 */
#include "columns.h"

/* PERF_CTLx: figure "Core Performance Event-Select Register". PREC_RET, bit 43, is of processors
 * that say so in CPUID leaf 80000021H:EAX. */
#define SELECT_CODE UINT64_C(0xFFFF)
#define SELECT_USR BIT(16)
#define SELECT_OS BIT(17)
#define SELECT_EDGE BIT(18)
#define SELECT_INT BIT(20)
#define SELECT_EN BIT(22)
#define SELECT_INV BIT(23)
#define SELECT_CMASK (UINT64_C(0xFF) << 24)
#define SELECT_CODE_HIGH (UINT64_C(0xF) << 32)
#define SELECT_GUEST_ONLY BIT(40)
#define SELECT_HOST_ONLY BIT(41)

#define HWCR_IRPERF_EN BIT(30)

#define WIDTH 48
#define LEGACY_COUNTERS 4
#define EXT_CORE_COUNTERS 6

#define CLASSES_HOST (VPMU_CLASS_BIT(VPMU_CLASS_KERNEL) | VPMU_CLASS_BIT(VPMU_CLASS_USER))
#define CLASSES_GUEST                                                                              \
    (VPMU_CLASS_BIT(VPMU_CLASS_GUEST_KERNEL) | VPMU_CLASS_BIT(VPMU_CLASS_GUEST_USER))
#define CLASSES_ALL (CLASSES_HOST | CLASSES_GUEST)

/* Column `present`. */

static uint8_t legacy(const struct vpmu_config *config)
{
    (void)config;
    return LEGACY_COUNTERS;
}

/* Column `holds`. */

static uint64_t select_bits(const struct vpmu_config *config)
{
    (void)config;
    return SELECT_CODE | SELECT_USR | SELECT_OS | SELECT_EDGE | SELECT_INT | SELECT_EN |
           SELECT_INV | SELECT_CMASK | SELECT_CODE_HIGH | SELECT_GUEST_ONLY | SELECT_HOST_ONLY;
}

static uint64_t hwcr_bits(const struct vpmu_config *config)
{
    return config->fixed ? HWCR_IRPERF_EN : 0;
}

/* The bits of LBRSF and PMCF are reserved: CPUID leaf 80000022H says LbrAndPmcFreeze for those. */
static uint64_t counter_bits(const struct vpmu_config *config)
{
    return MASK(config->gp);
}

/* Column `write`. */

static void ignore(struct vpmu *pmu, const struct vpmu_register *reg, unsigned n, uint64_t value)
{
    (void)pmu, (void)reg, (void)n, (void)value;
}

static const struct vpmu_register registers[] = {
#define AMD(name, first, stride, bank, since, present, state, holds, read, write)                  \
    {#name ": no guest could have set what it holds",                                              \
     first,                                                                                        \
     stride,                                                                                       \
     bank,                                                                                         \
     since,                                                                                        \
     present,                                                                                      \
     state,                                                                                        \
     any_bits,                                                                                     \
     holds,                                                                                        \
     read,                                                                                         \
     write},
#include "registers.def"
};

#define CODE(select, mask) (((select) & 0xFF) | (mask) << 8 | (select) >> 8 << 16)

static const struct vpmu_encoding encodings[] = {
#define AMD(select, mask, event, since) {CODE(select, mask), VPMU_EVENT_##event, since},
#include "vpmu/events.def"
};

static const char *config_error(const struct vpmu_config *config)
{
    if (config->version > VPMU_AMD_PERFMON_V2) {
        return "the version of AMD's PMU must be 0 (legacy), 1 (PerfCtrExtCore) or 2 (PerfMonV2)";
    }
    if (config->version == VPMU_AMD_LEGACY && config->gp != LEGACY_COUNTERS) {
        return "AMD's legacy PMU has 4 general-purpose counters";
    }
    if (config->version == VPMU_AMD_EXT_CORE && config->gp != EXT_CORE_COUNTERS) {
        return "PerfCtrExtCore is 6 general-purpose counters";
    }
    if (config->version == VPMU_AMD_PERFMON_V2 &&
        (config->gp < EXT_CORE_COUNTERS || config->gp > VPMU_GP_MAX)) {
        return "PerfMonV2 has 6 to 8 general-purpose counters";
    }
    if (config->gp_width != WIDTH) {
        return "AMD's general-purpose counters are 48 bits wide";
    }
    if (config->fixed > 1) {
        return "AMD's one fixed counter is that of retired instructions";
    }
    if (config->fixed && config->fixed_width != WIDTH) {
        return "AMD's fixed counter is 48 bits wide";
    }
    if (config->fixed && !(config->events & VPMU_EVENT_BIT(VPMU_EVENT_INSTRUCTIONS))) {
        return "a fixed counter's event is one that the source does not count";
    }
    return NULL;
}

/* PPR, PerfCntrGlobalCtl: its enables are set after reset, so software that knows PERF_CTLx only
 * need not know of it. */
static void reset(struct vpmu *pmu)
{
    pmu->state.global_control =
        pmu->config.version >= VPMU_AMD_PERFMON_V2 ? counter_bits(&pmu->config) : 0;
}

/* Table "Host/Guest Only Bits": either bit counts nothing while EFER.SVME is clear, which is why
 * Linux drops HostOnly then (arch/x86/events/amd/core.c, amd_pmu_disable_virt). */
static uint8_t modes(const struct vpmu *pmu, uint64_t select)
{
    if (!(select & (SELECT_HOST_ONLY | SELECT_GUEST_ONLY))) {
        return CLASSES_ALL;
    }
    if (!pmu->svme) {
        return 0;
    }
    return (uint8_t)((select & SELECT_HOST_ONLY ? CLASSES_HOST : 0) |
                     (select & SELECT_GUEST_ONLY ? CLASSES_GUEST : 0));
}

static uint32_t code_of(uint64_t select)
{
    return (uint32_t)((select & SELECT_CODE) | (select & SELECT_CODE_HIGH) >> 16);
}

static struct vpmu_program gp_program(const struct vpmu *pmu, unsigned n)
{
    uint64_t select = pmu->state.gp_select[n];
    uint8_t classes = vpmu_classes(select & SELECT_OS, select & SELECT_USR) & modes(pmu, select);
    bool on = select & SELECT_EN && classes;

    return (struct vpmu_program){
        .selection =
            vpmu_select(&pmu->config, code_of(select), (unsigned)((select & SELECT_CMASK) >> 24),
                        select & SELECT_INV, select & SELECT_EDGE),
        .classes = classes,
        .on = on,
        .enabled =
            on && (pmu->config.version < VPMU_AMD_PERFMON_V2 || pmu->state.global_control & BIT(n)),
        .interrupt = select & SELECT_INT,
        .code = code_of(select),
    };
}

/* Paragraph "Instructions Retired Performance counter": no gate but HWCR[30], no overflow. */
static struct vpmu_program irperf_program(const struct vpmu *pmu)
{
    bool on = pmu->state.fixed_control & HWCR_IRPERF_EN;

    return (struct vpmu_program){
        .selection = vpmu_select_event(&pmu->config, VPMU_EVENT_INSTRUCTIONS),
        .classes = CLASSES_ALL,
        .on = on,
        .enabled = on,
    };
}

static struct vpmu_program program(const struct vpmu *pmu, unsigned counter)
{
    return counter < pmu->config.gp ? gp_program(pmu, counter) : irperf_program(pmu);
}

/* The bits of counters in the global registers are those of their numbers. IRPERF has none. */
static bool overflowed(const struct vpmu *pmu, unsigned counter)
{
    return pmu->state.global_status & counter_bits(&pmu->config) & BIT(counter);
}

static void overflow(struct vpmu *pmu, unsigned counters, bool interrupt)
{
    (void)interrupt;
    if (pmu->config.version >= VPMU_AMD_PERFMON_V2) {
        pmu->state.global_status |= counters & counter_bits(&pmu->config);
    }
}

static uint32_t rdpmc_selector(const struct vpmu_config *config, unsigned counter)
{
    return counter < config->gp ? counter : VPMU_NO_SELECTOR;
}

const struct vpmu_vendor_ops vpmu_amd = {
    .registers = registers,
    .register_count = LENGTH(registers),
    .encodings = encodings,
    .encoding_count = LENGTH(encodings),
    .config_error = config_error,
    .reset = reset,
    .program = program,
    .overflowed = overflowed,
    .overflow = overflow,
    .rdpmc_selector = rdpmc_selector,
};
