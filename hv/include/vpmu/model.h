/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMU model: the guest-visible registers of Intel's architectural PMU and of AMD's, exact.
 *
 * Theory of operation
 *
 * The model holds registers and decides: new state, value read, fault, PMI. It never counts. What
 * counts is the *source* (QEMU's translator, or a test): it keeps, for every event and every class
 * of execution, a running total that only grows. A counter is a base plus what its event's total
 * grew by since the base was set:
 *
 *     value = (base + total(event, classes) - total at base) mod 2^width
 *
 * So nothing is done per event. The model asks for totals only when it must know: a read, a write,
 * a change of configuration, or a deadline. After each change it tells the source its *demand*: one
 * row for each counter that counts, with its event, its classes and the distance to its overflow.
 * The source must call vpmu_sync() when a row's distance is used up, at that very event for the
 * exact events; the model then records the overflow, freezes if the guest asked for it, and calls
 * for the PMI.
 *
 * Order of one instruction that touches the PMU (WRMSR, RDMSR, RDPMC): the source's totals do not
 * include the instruction itself while it executes, so it reads as of before itself, and it retires
 * under the configuration that it left behind. Of two WRMSRs that start and stop a counter, the
 * first one is counted and the second is not.
 *
 * The model is pure: no clock, no allocation, no I/O. A `struct vpmu` is plain memory; each vCPU
 * has its own and calls are never concurrent on one.
 */
#ifndef VPMU_MODEL_H
#define VPMU_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vpmu/abi.h"

#define VPMU_GP_MAX 8
#define VPMU_FIXED_MAX 4
#define VPMU_COUNTERS_MAX (VPMU_GP_MAX + VPMU_FIXED_MAX)

enum vpmu_vendor {
    VPMU_VENDOR_INTEL = 0,
    VPMU_VENDOR_AMD = 1,
};

/*
 * Classes of execution. An instruction is executed in exactly one: its privilege level (0 is
 * kernel, 1 to 3 are user; SDM Vol. 3, IA32_PERFEVTSELx USR and OS), inside a nested SVM guest or
 * not (APM Vol. 2, PERF_CTL GuestOnly and HostOnly).
 */
enum vpmu_class {
    VPMU_CLASS_KERNEL = 0,
    VPMU_CLASS_USER = 1,
    VPMU_CLASS_GUEST_KERNEL = 2,
    VPMU_CLASS_GUEST_USER = 3,
};

#define VPMU_CLASSES 4
#define VPMU_CLASS_BIT(c) (1u << (c))

/* What a source can keep totals of. The names are those of the architectural events where one
 * exists; docs/device.md defines each of them for guests under TCG. */
enum vpmu_event {
    VPMU_EVENT_NONE = 0,            /* an event that nobody counts */
    VPMU_EVENT_INSTRUCTIONS = 1,    /* instructions retired */
    VPMU_EVENT_BRANCHES = 2,        /* branch instructions retired, taken or not */
    VPMU_EVENT_COND_BRANCHES = 3,   /* conditional branch instructions retired, taken or not */
    VPMU_EVENT_NEAR_CALLS = 4,      /* near calls retired */
    VPMU_EVENT_NEAR_RETURNS = 5,    /* near returns retired */
    VPMU_EVENT_FAR_BRANCHES = 6,    /* far branches retired */
    VPMU_EVENT_CYCLES = 7,          /* core cycles, not halted */
    VPMU_EVENT_REF_CYCLES = 8,      /* cycles at the TSC's rate, not halted */
    VPMU_EVENT_SLOTS = 9,           /* issue slots: core cycles times the machine's width */
    VPMU_EVENT_INTERRUPTS = 10,     /* hardware interrupts received */
    VPMU_EVENT_LLC_REFERENCES = 11, /* last-level cache references */
    VPMU_EVENT_LLC_MISSES = 12,     /* last-level cache misses */
    VPMU_EVENT_BRANCH_MISSES = 13,  /* mispredicted branches retired */
};

#define VPMU_EVENTS 14
#define VPMU_EVENT_BIT(e) (1u << (e))

/* What a virtual processor advertises. Set once, before vpmu_init(). */
struct vpmu_config {
    uint8_t vendor;   /* enum vpmu_vendor */
    uint8_t version;  /* Intel: architectural version, 1 to 5; AMD: see below */
    uint8_t gp;       /* general-purpose counters; Intel: 1 to 8 */
    uint8_t fixed;    /* fixed-function counters, their events kept; Intel: 0 to 4, 0 with version
                       * 1; AMD: 0, or 1 for the Instructions Retired counter, IRPERF */
    uint8_t gp_width; /* bits; Intel: 32 to 48; AMD: 48 */
    uint8_t fixed_width; /* likewise; no matter if there are no fixed counters */
    bool full_width;     /* Intel: IA32_PERF_CAPABILITIES[13]: the IA32_A_PMCx aliases exist */
    uint32_t events;     /* VPMU_EVENT_BIT() of each event that the source keeps */
};

/*
 * Versions of AMD's PMU (APM Vol. 2, section "Performance Monitoring Counters"), each with what the
 * one before it has. Event encodings differ between families: those of version 1 are of family 17h,
 * so processors of family 15h, which have PerfCtrExtCore too, are best shown as version 0.
 */
enum vpmu_amd_version {
    VPMU_AMD_LEGACY = 0,     /* 4 counters at C001_0000H, the bank of the K7 */
    VPMU_AMD_EXT_CORE = 1,   /* PerfCtrExtCore: 6 counters at C001_0200H */
    VPMU_AMD_PERFMON_V2 = 2, /* PerfMonV2: 6 to 8 counters, global control and status */
};

/* One counter that counts now. */
struct vpmu_demand {
    uint8_t event;     /* enum vpmu_event, never VPMU_EVENT_NONE */
    uint8_t classes;   /* VPMU_CLASS_BIT() of each class that it counts in, never 0 */
    uint64_t distance; /* events until it overflows: 1 to 2^width */
};

/* What the model needs of a source. All are called with the `source` given to vpmu_init(), and none
 * may call the model. When an overflow is due, the state is complete before pmi() is called, and
 * demand() follows. A write finds the overflows before it takes effect, so pmi() may come before
 * the write and demand() comes after it. Reads call demand() only if they found an overflow. */
struct vpmu_source_ops {
    /* The total of `event` over `classes` so far, modulo 2^64, without the instruction in progress.
     * Called only for events in vpmu_config.events. */
    uint64_t (*total)(void *source, enum vpmu_event event, unsigned classes);

    /* The demand changed. `rows` is the whole of it: what is not in it need not be counted. */
    void (*demand)(void *source, const struct vpmu_demand *rows, unsigned count);

    /* Deliver a performance monitoring interrupt through the local APIC's LVT entry. */
    void (*pmi)(void *source);

    /* Whether the operator's policy denies what a counter is programmed for: the counter then
     * counts nothing and is `filtered`. `code` is as in struct vpmu_counter_info; of a fixed
     * counter, that of its event. The answer never changes. NULL: nothing is denied. */
    bool (*denied)(void *source, uint32_t code);
};

/* What became of a register access. */
enum vpmu_result {
    VPMU_OK = 0,
    VPMU_FAULT = 1,    /* #GP(0); nothing was changed */
    VPMU_NOT_MINE = 2, /* not a register of the PMU */
};

/* The registers, as they are saved, migrated and restored. Counter values are whole. */
struct vpmu_state {
    uint64_t gp_value[VPMU_GP_MAX];
    uint64_t gp_select[VPMU_GP_MAX]; /* IA32_PERFEVTSELx, PERF_CTLx */
    uint64_t fixed_value[VPMU_FIXED_MAX];
    uint64_t fixed_control; /* IA32_FIXED_CTR_CTRL; HWCR, its bit IRPerfEn */
    uint64_t global_control;
    uint64_t global_status;
    uint64_t debug_control; /* IA32_DEBUGCTL, the bits that concern the PMU */
};

/* The model of one virtual processor. Its owner allocates it; its fields are the model's own. */
struct vpmu {
    struct vpmu_config config;
    struct vpmu_state state; /* values in it are the bases */
    uint64_t snapshot[VPMU_COUNTERS_MAX];
    bool svme; /* EFER.SVME */
    const struct vpmu_source_ops *ops;
    void *source;
};

/* No ECX for RDPMC reads this counter. */
#define VPMU_NO_SELECTOR UINT32_MAX

/* What a person or a tool is told of one counter. */
struct vpmu_counter_info {
    bool fixed;
    uint8_t index;           /* within its kind */
    uint8_t state;           /* enum vpmu_counter_state */
    uint8_t event;           /* enum vpmu_event that it counts, NONE if none: not programmed,
                              * unsupported, filtered, or (backed) a comparison that is never true */
    uint8_t classes;         /* classes that it counts in */
    bool enabled;            /* counts now: its own and the global enable are set, not frozen */
    bool interrupt;          /* overflow raises a PMI */
    bool overflowed;         /* its status bit */
    uint32_t code;           /* event select [7:0] | unit mask << 8 | event select [11:8] << 16, as
                              * programmed; 0 for fixed ones */
    uint32_t rdpmc_selector; /* ECX for RDPMC, or VPMU_NO_SELECTOR */
    uint64_t value;
};

/* Whether a model can be made of `config`: NULL, or a static sentence that says why not. */
const char *vpmu_config_error(const struct vpmu_config *config);

/* Make a model in its state after power-on. `config` must have passed vpmu_config_error(); `ops`
 * must outlive the model. Calls ops->demand (with no rows). */
void vpmu_init(struct vpmu *pmu, const struct vpmu_config *config,
               const struct vpmu_source_ops *ops, void *source);

/* RESET: all registers to their power-on values, IA32_PERF_GLOBAL_CTRL with every general-purpose
 * bit set (SDM Vol. 3, table "IA-32 and Intel 64 Processor States Following Power-up, Reset, or
 * INIT"), PerfCntrGlobalCtl likewise, EFER.SVME clear. INIT leaves the PMU as it is (APM Vol. 2,
 * section "Processor Initialization State"): do not call this for INIT. */
void vpmu_reset(struct vpmu *pmu);

/* RDMSR and WRMSR by the guest at CPL 0. On VPMU_OK, vpmu_rdmsr() has written *value. */
enum vpmu_result vpmu_rdmsr(struct vpmu *pmu, uint32_t index, uint64_t *value);
enum vpmu_result vpmu_wrmsr(struct vpmu *pmu, uint32_t index, uint64_t value);

/* RDPMC with ECX = `selector`, its privilege checks (CR4.PCE) done by the caller.
 * VPMU_OK or VPMU_FAULT. */
enum vpmu_result vpmu_rdpmc(struct vpmu *pmu, uint32_t selector, uint64_t *value);

/* IA32_MISC_ENABLE as the guest reads it, from the value of whoever owns the rest of that register:
 * bit 7 (performance monitoring available) set, bits 11 and 12 (no BTS, no PEBS) set. The value as
 * it is for other vendors. */
uint64_t vpmu_misc_enable(const struct vpmu *pmu, uint64_t value);

/* EFER.SVME is now `svme`: it decides what AMD's GuestOnly and HostOnly mean. To be called before
 * the instruction that changed it retires, and after vpmu_load(), since EFER is not the PMU's. */
void vpmu_set_svme(struct vpmu *pmu, bool svme);

/* Catch up with the source: handle every overflow since the last call, then tell the new demand. */
void vpmu_sync(struct vpmu *pmu);

/* CPUID leaf 0xA as {EAX, EBX, ECX, EDX}; all zero for other vendors. */
void vpmu_cpuid_0a(const struct vpmu_config *config, uint32_t regs[4]);

/* CPUID leaf 80000022H as {EAX, EBX, ECX, EDX}; all zero without PerfMonV2. */
void vpmu_cpuid_80000022(const struct vpmu_config *config, uint32_t regs[4]);

/* Bits that the PMU sets in registers of CPUID whose rest is not its own: PerfCtrExtCore (23) in
 * leaf 80000001H:ECX and InstRetCntMsr (1) in leaf 80000008H:EBX. The northbridge's and the cache's
 * counters, bits 24 and 28 of the former, do not exist: their owner clears them. */
uint32_t vpmu_cpuid_80000001_ecx(const struct vpmu_config *config);
uint32_t vpmu_cpuid_80000008_ebx(const struct vpmu_config *config);

/* The number of counters, and what is to be said of the i-th: general-purpose ones first. */
unsigned vpmu_counters(const struct vpmu *pmu);
void vpmu_counter_info(struct vpmu *pmu, unsigned i, struct vpmu_counter_info *info);

/* The whole state, values synchronised, for a snapshot or migration. */
void vpmu_save(struct vpmu *pmu, struct vpmu_state *state);

/* Take a saved state. NULL, or a static sentence that says which register no guest could have set
 * to what it holds; then nothing was changed. */
const char *vpmu_load(struct vpmu *pmu, const struct vpmu_state *state);

#endif
