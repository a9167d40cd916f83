/* SPDX-License-Identifier: BSD-3-Clause */
/* What is Intel's: the architectural PMU, versions 1 to 5 (SDM Vol. 3, chapter "Performance
 * Monitoring"). Section names in this file are of that chapter. */
#include "columns.h"

/* IA32_PERFEVTSELx: figure "Layout of IA32_PERFEVTSELx MSRs". PC, pin control, is accepted and has
 * no pin to control. */
#define SELECT_CODE UINT64_C(0xFFFF)
#define SELECT_USR BIT(16)
#define SELECT_OS BIT(17)
#define SELECT_EDGE BIT(18)
#define SELECT_INT BIT(20)
#define SELECT_ANY BIT(21)
#define SELECT_EN BIT(22)
#define SELECT_INV BIT(23)
#define SELECT_CMASK_SHIFT 24

/* IA32_FIXED_CTR_CTRL: four bits for each counter. */
#define FIXED_OS 0x1u
#define FIXED_USR 0x2u
#define FIXED_ANY 0x4u
#define FIXED_PMI 0x8u

/* IA32_PERF_GLOBAL_CTRL, _STATUS and their kin: fixed counters start at this bit. */
#define FIXED_SHIFT 32

/* IA32_PERF_GLOBAL_STATUS. Of these, the model itself sets CTR_FRZ only: nothing here records
 * branches, has an uncore or a debug store, or sets COND_CHGD. */
#define STATUS_LBR_FRZ BIT(58)
#define STATUS_CTR_FRZ BIT(59)
#define STATUS_OVF_UNCORE BIT(61)
#define STATUS_OVF_BUF BIT(62)
#define STATUS_COND_CHGD BIT(63)

/* IA32_PERF_GLOBAL_INUSE. */
#define IN_USE_PMI BIT(63)

/* IA32_DEBUGCTL. */
#define DEBUG_LBR BIT(0)
#define DEBUG_BTF BIT(1)
#define DEBUG_FREEZE_LBRS BIT(11)
#define DEBUG_FREEZE_PERFMON BIT(12)

/* IA32_PERF_CAPABILITIES. */
#define CAPABILITY_FULL_WIDTH BIT(13)

/* IA32_MISC_ENABLE. */
#define MISC_PERFMON_AVAILABLE BIT(7)
#define MISC_BTS_UNAVAILABLE BIT(11)
#define MISC_PEBS_UNAVAILABLE BIT(12)

/* ECX[31:16] of RDPMC: the type of counter. The "fast read" bit 31 is of processors without an
 * architectural PMU (SDM Vol. 2, RDPMC). */
#define RDPMC_FIXED 0x40000000u

/* Table "Association of Fixed-Function Performance Counters with Architectural Performance
 * Events". */
static const uint8_t fixed_events[VPMU_FIXED_MAX] = {
    VPMU_EVENT_INSTRUCTIONS,
    VPMU_EVENT_CYCLES,
    VPMU_EVENT_REF_CYCLES,
    VPMU_EVENT_SLOTS,
};

/* Column `present`. */

static uint8_t gp_full(const struct vpmu_config *config)
{
    return config->full_width ? config->gp : 0;
}

/* Columns `accepts` and `holds`. */

/* AnyThread came with version 3 and is deprecated by version 5 (section "AnyThread Counting and
 * Software Evolution"). A core has one thread here, so it changes nothing where it exists. */
static bool has_any_thread(const struct vpmu_config *config)
{
    return config->version == 3 || config->version == 4;
}

static uint64_t select_bits(const struct vpmu_config *config)
{
    return MASK(32) & ~(has_any_thread(config) ? 0 : SELECT_ANY);
}

static uint64_t fixed_controls(const struct vpmu_config *config)
{
    uint64_t each = FIXED_OS | FIXED_USR | FIXED_PMI | (has_any_thread(config) ? FIXED_ANY : 0);
    uint64_t all = 0;

    for (unsigned i = 0; i < config->fixed; i++) {
        all |= each << (4 * i);
    }
    return all;
}

static uint64_t counter_bits(const struct vpmu_config *config)
{
    return MASK(config->gp) | MASK(config->fixed) << FIXED_SHIFT;
}

/* What software can set of the status from version 4 on (figure "IA32_PERF_GLOBAL_STATUS_SET MSR
 * and Architectural Perfmon Version 4"); bits 55 and 60 need Processor Trace and SGX. Before, only
 * overflows show. */
static uint64_t status_bits(const struct vpmu_config *config)
{
    uint64_t more = STATUS_LBR_FRZ | STATUS_CTR_FRZ | STATUS_OVF_UNCORE | STATUS_OVF_BUF;

    return counter_bits(config) | (config->version >= 4 ? more : 0);
}

/* SDM Vol. 4, table "IA-32 Architectural MSRs", rows 390H: each bit and the version it came with.
 */
static uint64_t status_resets(const struct vpmu_config *config)
{
    return counter_bits(config) | STATUS_OVF_BUF | STATUS_COND_CHGD |
           (config->version >= 3 ? STATUS_OVF_UNCORE : 0) |
           (config->version >= 4 ? STATUS_LBR_FRZ | STATUS_CTR_FRZ : 0);
}

static uint64_t debug_holds(const struct vpmu_config *config)
{
    return config->version >= 2 ? DEBUG_FREEZE_PERFMON : 0;
}

/* Nothing here records branches: what controls that is accepted where the manual has it, and reads
 * as 0. The freeze bits came with version 2 (SDM Vol. 4, table "IA-32 Architectural MSRs", 1D9H).
 */
static uint64_t debug_accepts(const struct vpmu_config *config)
{
    return DEBUG_LBR | DEBUG_BTF | (config->version >= 2 ? DEBUG_FREEZE_LBRS : 0) |
           debug_holds(config);
}

/* Columns `read` and `write`. */

/* Section "Full-Width Writes to Performance Counter Registers": a write to IA32_PMCx takes the low
 * 32 bits and extends their sign. */
static void hold_sign_extended(struct vpmu *pmu, const struct vpmu_register *reg, unsigned n,
                               uint64_t value)
{
    hold(pmu, reg, n, (value & MASK(32)) | (value & BIT(31) ? ~MASK(32) : 0));
}

static uint64_t capabilities(const struct vpmu *pmu, const struct vpmu_register *reg, unsigned n)
{
    (void)reg, (void)n;
    return pmu->config.full_width ? CAPABILITY_FULL_WIDTH : 0;
}

static unsigned fixed_control(const struct vpmu *pmu, unsigned n)
{
    return pmu->state.fixed_control >> (4 * n) & 0xF;
}

/* Section "IA32_PERF_GLOBAL_INUSE MSR". */
static uint64_t in_use(const struct vpmu *pmu, const struct vpmu_register *reg, unsigned n)
{
    uint64_t value = 0;

    (void)reg, (void)n;
    for (unsigned i = 0; i < pmu->config.gp; i++) {
        value |= pmu->state.gp_select[i] & 0xFF ? BIT(i) : 0;
        value |= pmu->state.gp_select[i] & SELECT_INT ? IN_USE_PMI : 0;
    }
    for (unsigned i = 0; i < pmu->config.fixed; i++) {
        value |= fixed_control(pmu, i) & (FIXED_OS | FIXED_USR) ? BIT(FIXED_SHIFT + i) : 0;
        value |= fixed_control(pmu, i) & FIXED_PMI ? IN_USE_PMI : 0;
    }
    return value;
}

static const struct vpmu_register registers[] = {
#define INTEL(name, first, bank, since, present, state, accepts, holds, read, write)               \
    {#name ": no guest could have set what it holds",                                              \
     first,                                                                                        \
     1,                                                                                            \
     bank,                                                                                         \
     since,                                                                                        \
     present,                                                                                      \
     state,                                                                                        \
     accepts,                                                                                      \
     holds,                                                                                        \
     read,                                                                                         \
     write},
#include "registers.def"
};

static const struct vpmu_encoding encodings[] = {
#define INTEL(select, mask, event, bit) {(select) | (mask) << 8, VPMU_EVENT_##event, 1},
#include "vpmu/events.def"
};

static const char *config_error(const struct vpmu_config *config)
{
    if (config->version < 1 || config->version > 5) {
        return "the version of the architectural PMU must be 1 to 5";
    }
    if (config->gp < 1 || config->gp > VPMU_GP_MAX) {
        return "there must be 1 to 8 general-purpose counters";
    }
    if (config->gp_width < 32 || config->gp_width > 48) {
        return "general-purpose counters must be 32 to 48 bits wide";
    }
    if (config->fixed > VPMU_FIXED_MAX) {
        return "there can be at most 4 fixed counters";
    }
    if (config->version == 1 && config->fixed) {
        return "version 1 has no fixed counters";
    }
    if (config->fixed && (config->fixed_width < 32 || config->fixed_width > 48)) {
        return "fixed counters must be 32 to 48 bits wide";
    }
    for (unsigned i = 0; i < config->fixed; i++) {
        if (!(config->events & VPMU_EVENT_BIT(fixed_events[i]))) {
            return "a fixed counter's event is one that the source does not count";
        }
    }
    return NULL;
}

static void reset(struct vpmu *pmu)
{
    pmu->state.global_control = pmu->config.version >= 2 ? MASK(pmu->config.gp) : 0;
}

/* The bit of a counter in the global registers. */
static uint64_t global_bit(const struct vpmu *pmu, unsigned counter)
{
    return counter < pmu->config.gp ? BIT(counter) : BIT(FIXED_SHIFT + counter - pmu->config.gp);
}

/* Section "Enhancement in IA32_PERF_GLOBAL_STATUS" gives the expression. */
static bool globally_enabled(const struct vpmu *pmu, unsigned counter)
{
    return pmu->config.version == 1 || (pmu->state.global_control & global_bit(pmu, counter) &&
                                        !(pmu->state.global_status & STATUS_CTR_FRZ));
}

static struct vpmu_program gp_program(const struct vpmu *pmu, unsigned n)
{
    uint64_t select = pmu->state.gp_select[n];
    uint32_t code = select & SELECT_CODE;

    return (struct vpmu_program){
        .selection = vpmu_select(&pmu->config, code, (unsigned)(select >> SELECT_CMASK_SHIFT),
                                 select & SELECT_INV, select & SELECT_EDGE),
        .classes = vpmu_classes(select & SELECT_OS, select & SELECT_USR),
        .on = select & SELECT_EN && select & (SELECT_OS | SELECT_USR),
        .interrupt = select & SELECT_INT,
        .code = code,
    };
}

static struct vpmu_program fixed_program(const struct vpmu *pmu, unsigned n)
{
    unsigned control = fixed_control(pmu, n);

    return (struct vpmu_program){
        .selection = vpmu_select_event(&pmu->config, fixed_events[n]),
        .classes = vpmu_classes(control & FIXED_OS, control & FIXED_USR),
        .on = control & (FIXED_OS | FIXED_USR),
        .interrupt = control & FIXED_PMI,
    };
}

static struct vpmu_program program(const struct vpmu *pmu, unsigned counter)
{
    struct vpmu_program p = counter < pmu->config.gp ? gp_program(pmu, counter)
                                                     : fixed_program(pmu, counter - pmu->config.gp);

    p.enabled = p.on && globally_enabled(pmu, counter);
    return p;
}

static bool overflowed(const struct vpmu *pmu, unsigned counter)
{
    return pmu->state.global_status & global_bit(pmu, counter);
}

/* SDM Vol. 3, section "Freezing LBR and Performance Counters on PMI". */
static void freeze(struct vpmu *pmu)
{
    if (pmu->config.version >= 4) {
        pmu->state.global_status |= STATUS_CTR_FRZ;
    } else {
        pmu->state.global_control = 0;
    }
}

static void overflow(struct vpmu *pmu, unsigned counters, bool interrupt)
{
    if (pmu->config.version == 1) {
        return; /* no status, no freeze */
    }
    for (unsigned i = 0; i < vpmu_counters(pmu); i++) {
        pmu->state.global_status |= counters & 1u << i ? global_bit(pmu, i) : 0;
    }
    if (interrupt && pmu->state.debug_control & DEBUG_FREEZE_PERFMON) {
        freeze(pmu);
    }
}

static uint32_t rdpmc_selector(const struct vpmu_config *config, unsigned counter)
{
    return counter < config->gp ? counter : RDPMC_FIXED | (counter - config->gp);
}

uint64_t vpmu_misc_enable(const struct vpmu *pmu, uint64_t value)
{
    if (pmu->config.vendor != VPMU_VENDOR_INTEL) {
        return value;
    }
    return value | MISC_PERFMON_AVAILABLE | MISC_BTS_UNAVAILABLE | MISC_PEBS_UNAVAILABLE;
}

const struct vpmu_vendor_ops vpmu_intel = {
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
