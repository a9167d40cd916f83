/* SPDX-License-Identifier: BSD-3-Clause */
/* What the columns of registers.def name, as far as vendors share it. */
#ifndef VPMU_MODEL_COLUMNS_H
#define VPMU_MODEL_COLUMNS_H

#include "model_internal.h"

/* Column `state`. */

#define AT(field) (offsetof(struct vpmu_state, field) / sizeof(uint64_t))
#define NOWHERE 0

_Static_assert(sizeof(struct vpmu_state) % sizeof(uint64_t) == 0 &&
                   AT(debug_control) == sizeof(struct vpmu_state) / sizeof(uint64_t) - 1,
               "struct vpmu_state is an array of uint64_t");

/* Column `present`. */

static inline uint8_t one(const struct vpmu_config *config)
{
    (void)config;
    return 1;
}

static inline uint8_t gp(const struct vpmu_config *config)
{
    return config->gp;
}

static inline uint8_t fixed(const struct vpmu_config *config)
{
    return config->fixed;
}

/* Columns `accepts` and `holds`. */

static inline uint64_t no_bits(const struct vpmu_config *config)
{
    (void)config;
    return 0;
}

static inline uint64_t any_bits(const struct vpmu_config *config)
{
    (void)config;
    return UINT64_MAX;
}

static inline uint64_t gp_bits(const struct vpmu_config *config)
{
    return MASK(config->gp_width);
}

/* The manuals reserve what is beyond the width, yet drivers write a negated period as it is, and
 * processors drop the excess. */
static inline uint64_t fixed_bits(const struct vpmu_config *config)
{
    return MASK(config->fixed_width);
}

/* Columns `read` and `write`. */

static inline uint64_t *slot(struct vpmu *pmu, const struct vpmu_register *reg, unsigned n)
{
    return (uint64_t *)&pmu->state + reg->state + n;
}

static inline uint64_t kept(const struct vpmu *pmu, const struct vpmu_register *reg, uint64_t value)
{
    return value & (reg->holds ? reg->holds(&pmu->config) : UINT64_MAX);
}

static inline uint64_t held(const struct vpmu *pmu, const struct vpmu_register *reg, unsigned n)
{
    return ((const uint64_t *)&pmu->state)[reg->state + n];
}

static inline uint64_t zero(const struct vpmu *pmu, const struct vpmu_register *reg, unsigned n)
{
    (void)pmu, (void)reg, (void)n;
    return 0;
}

static inline void hold(struct vpmu *pmu, const struct vpmu_register *reg, unsigned n,
                        uint64_t value)
{
    *slot(pmu, reg, n) = kept(pmu, reg, value);
}

static inline void reset_status(struct vpmu *pmu, const struct vpmu_register *reg, unsigned n,
                                uint64_t value)
{
    *slot(pmu, reg, n) &= ~value;
}

static inline void set_status(struct vpmu *pmu, const struct vpmu_register *reg, unsigned n,
                              uint64_t value)
{
    *slot(pmu, reg, n) |= kept(pmu, reg, value);
}

#endif
