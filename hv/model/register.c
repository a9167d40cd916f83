/* SPDX-License-Identifier: BSD-3-Clause */
/* How a register is found, read, written, saved and restored. */
#include "model_internal.h"

static const struct vpmu_vendor_ops *const vendors[] = {
    [VPMU_VENDOR_INTEL] = &vpmu_intel,
};

const struct vpmu_vendor_ops *vpmu_vendor_ops(const struct vpmu_config *config)
{
    return vendors[config->vendor];
}

const char *vpmu_config_error(const struct vpmu_config *config)
{
    if (config->vendor == VPMU_VENDOR_AMD) {
        return "AMD's PMU is not modelled yet";
    }
    if (config->vendor >= LENGTH(vendors)) {
        return "the PMU's vendor is unknown";
    }
    if (config->events & (VPMU_EVENT_BIT(VPMU_EVENT_NONE) | ~(uint32_t)MASK(VPMU_EVENTS))) {
        return "the source offers an event that does not exist";
    }
    return vpmu_vendor_ops(config)->config_error(config);
}

void vpmu_init(struct vpmu *pmu, const struct vpmu_config *config,
               const struct vpmu_source_ops *ops, void *source)
{
    *pmu = (struct vpmu){.config = *config, .ops = ops, .source = source};
    vpmu_reset(pmu);
}

void vpmu_reset(struct vpmu *pmu)
{
    pmu->state = (struct vpmu_state){0};
    vpmu_vendor_ops(&pmu->config)->reset(pmu);
    vpmu_resume(pmu);
}

static const struct vpmu_register *find(const struct vpmu *pmu, uint32_t index)
{
    const struct vpmu_vendor_ops *vendor = vpmu_vendor_ops(&pmu->config);

    for (unsigned i = 0; i < vendor->register_count; i++) {
        const struct vpmu_register *reg = &vendor->registers[i];

        if (index - reg->first < reg->bank) {
            return reg;
        }
    }
    return NULL;
}

/* How many registers of the bank a configuration has. */
static unsigned present(const struct vpmu_register *reg, const struct vpmu_config *config)
{
    return config->version >= reg->since ? reg->present(config) : 0;
}

enum vpmu_result vpmu_rdmsr(struct vpmu *pmu, uint32_t index, uint64_t *value)
{
    const struct vpmu_register *reg = find(pmu, index);

    if (!reg) {
        return VPMU_NOT_MINE;
    }
    if (index - reg->first >= present(reg, &pmu->config)) {
        return VPMU_FAULT;
    }
    vpmu_settle(pmu);
    *value = reg->read(pmu, reg, index - reg->first);
    return VPMU_OK;
}

enum vpmu_result vpmu_wrmsr(struct vpmu *pmu, uint32_t index, uint64_t value)
{
    const struct vpmu_register *reg = find(pmu, index);

    if (!reg) {
        return VPMU_NOT_MINE;
    }
    if (index - reg->first >= present(reg, &pmu->config) || !reg->write ||
        value & ~reg->accepts(&pmu->config)) {
        return VPMU_FAULT;
    }
    vpmu_settle(pmu);
    reg->write(pmu, reg, index - reg->first, value);
    vpmu_resume(pmu);
    return VPMU_OK;
}

enum vpmu_result vpmu_rdpmc(struct vpmu *pmu, uint32_t selector, uint64_t *value)
{
    const struct vpmu_vendor_ops *vendor = vpmu_vendor_ops(&pmu->config);

    for (unsigned i = 0; i < vpmu_counters(pmu); i++) {
        if (vendor->rdpmc_selector(&pmu->config, i) == selector) {
            vpmu_settle(pmu);
            *value = i < pmu->config.gp ? pmu->state.gp_value[i]
                                        : pmu->state.fixed_value[i - pmu->config.gp];
            return VPMU_OK;
        }
    }
    return VPMU_FAULT;
}

void vpmu_save(struct vpmu *pmu, struct vpmu_state *state)
{
    vpmu_settle(pmu);
    *state = pmu->state;
}

/* Whether the bank could hold what `state` says; a register that is absent holds 0. */
static bool could_hold(const struct vpmu_register *reg, const struct vpmu_config *config,
                       const struct vpmu_state *state)
{
    const uint64_t *values = (const uint64_t *)state + reg->state;

    for (unsigned i = 0; i < reg->bank; i++) {
        if (values[i] & ~(i < present(reg, config) ? reg->holds(config) : 0)) {
            return false;
        }
    }
    return true;
}

const char *vpmu_load(struct vpmu *pmu, const struct vpmu_state *state)
{
    const struct vpmu_vendor_ops *vendor = vpmu_vendor_ops(&pmu->config);

    for (unsigned i = 0; i < vendor->register_count; i++) {
        const struct vpmu_register *reg = &vendor->registers[i];

        if (reg->holds && !could_hold(reg, &pmu->config, state)) {
            return reg->load_error;
        }
    }
    pmu->state = *state;
    vpmu_resume(pmu);
    return NULL;
}
