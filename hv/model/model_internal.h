/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the model share.
 *
 *   event.c     what an event selector counts
 *   counter.c   how a counter counts: totals, overflow, demand
 *   register.c  how a register is found, read, written, saved and restored
 *   columns.h   what rows of registers.def are made of, as far as vendors share it
 *   intel.c     what is Intel's: its registers, controls and status
 *   amd.c       what is AMD's
 *   cpuid.c     what CPUID says
 *
 * Counters are numbered as vpmu_counter_info() does: general-purpose ones first, then fixed ones.
 */
#ifndef VPMU_MODEL_INTERNAL_H
#define VPMU_MODEL_INTERNAL_H

#include "vpmu/model.h"

#define BIT(n) (UINT64_C(1) << (n))
#define MASK(n) (BIT(n) - 1) /* the low n bits, n < 64 */
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* A row of registers.def. */
struct vpmu_register {
    const char *load_error; /* the sentence for vpmu_load() */
    uint32_t first;
    uint8_t stride;
    uint8_t bank;
    uint8_t since;
    uint8_t (*present)(const struct vpmu_config *config);
    uint16_t state; /* index into struct vpmu_state as an array of uint64_t */
    uint64_t (*accepts)(const struct vpmu_config *config);
    uint64_t (*holds)(const struct vpmu_config *config);
    uint64_t (*read)(const struct vpmu *pmu, const struct vpmu_register *reg, unsigned n);
    void (*write)(struct vpmu *pmu, const struct vpmu_register *reg, unsigned n, uint64_t value);
};

/* A row of vpmu/events.def. */
struct vpmu_encoding {
    uint32_t code; /* as in struct vpmu_counter_info */
    uint8_t event; /* enum vpmu_event */
    uint8_t since; /* the version that brought it */
};

/* What an event selector selects. */
struct vpmu_selection {
    uint8_t event;  /* NONE: nothing, and if it is supported rightly so */
    bool supported; /* its count is the true one */
};

/* What a counter's controls say. */
struct vpmu_program {
    struct vpmu_selection selection;
    uint8_t classes;
    bool on;        /* its own controls let it count in some class */
    bool enabled;   /* and so do the global ones */
    bool denied;    /* the policy does not: set by counter.c alone */
    bool interrupt; /* its overflow raises a PMI */
    uint32_t code;  /* as in struct vpmu_counter_info */
};

/* What differs between vendors. */
struct vpmu_vendor_ops {
    const struct vpmu_register *registers;
    unsigned register_count;
    const struct vpmu_encoding *encodings;
    unsigned encoding_count;

    /* NULL, or why a processor of this vendor cannot be like that. */
    const char *(*config_error)(const struct vpmu_config *config);

    /* Set what is not 0 after power-on. */
    void (*reset)(struct vpmu *pmu);

    struct vpmu_program (*program)(const struct vpmu *pmu, unsigned counter);

    bool (*overflowed)(const struct vpmu *pmu, unsigned counter);

    /* Record that counters (a bit each) have overflowed, and freeze if `interrupt` and the guest
     * wants it. */
    void (*overflow)(struct vpmu *pmu, unsigned counters, bool interrupt);

    uint32_t (*rdpmc_selector)(const struct vpmu_config *config, unsigned counter);
};

extern const struct vpmu_vendor_ops vpmu_intel;
extern const struct vpmu_vendor_ops vpmu_amd;

/* The ops of a vendor that passed vpmu_config_error(). */
const struct vpmu_vendor_ops *vpmu_vendor_ops(const struct vpmu_config *config);

/* What `code` counts when compared with a counter mask. */
struct vpmu_selection vpmu_select(const struct vpmu_config *config, uint32_t code, unsigned cmask,
                                  bool invert, bool edge);

/* What a counter counts whose event is fixed. */
struct vpmu_selection vpmu_select_event(const struct vpmu_config *config, enum vpmu_event event);

/* The classes of privilege level 0 and of those above it, in and out of nested guests. */
uint8_t vpmu_classes(bool os, bool usr);

/* Bring the values up to date and handle overflows. To be called before anything is read or
 * changed. Tells the source nothing but the PMI and, if something overflowed, the demand. */
void vpmu_settle(struct vpmu *pmu);

/* Count from now on as the registers say, and tell the source the demand. To be called after a
 * change. */
void vpmu_resume(struct vpmu *pmu);

#endif
