/* SPDX-License-Identifier: BSD-3-Clause */
/* How a register is found, read, written, saved and restored. */
#include "model_internal.h"

static const struct vpmu_vendor_ops *const vendors[] = {
    [VPMU_VENDOR_INTEL] = &vpmu_intel,
    [VPMU_VENDOR_AMD] = &vpmu_amd,
};

const struct vpmu_vendor_ops *vpmu_vendor_ops(const struct vpmu_config *config)
{
    return vendors[config->vendor];
}

const char *vpmu_config_error(const struct vpmu_config *config)
{
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
    pmu->svme = false;
    vpmu_vendor_ops(&pmu->config)->reset(pmu);
    vpmu_resume(pmu);
}

/* A register of a bank. */
struct place {
    const struct vpmu_register *reg; /* NULL: the PMU has no such register */
    unsigned n;
};

static struct place find(const struct vpmu *pmu, uint32_t index)
{
    const struct vpmu_vendor_ops *vendor = vpmu_vendor_ops(&pmu->config);

    for (unsigned i = 0; i < vendor->register_count; i++) {
        const struct vpmu_register *reg = &vendor->registers[i];
        uint32_t distance = index - reg->first;

        if (distance % reg->stride == 0 && distance / reg->stride < reg->bank) {
            return (struct place){reg, distance / reg->stride};
        }
    }
    return (struct place){0};
}

/* How many registers of the bank a configuration has. */
static unsigned present(const struct vpmu_register *reg, const struct vpmu_config *config)
{
    return config->version >= reg->since ? reg->present(config) : 0;
}

enum vpmu_result vpmu_rdmsr(struct vpmu *pmu, uint32_t index, uint64_t *value)
{
    struct place place = find(pmu, index);

    if (!place.reg) {
        return VPMU_NOT_MINE;
    }
    if (place.n >= present(place.reg, &pmu->config)) {
        return VPMU_FAULT;
    }
    vpmu_settle(pmu);
    *value = place.reg->read(pmu, place.reg, place.n);
    return VPMU_OK;
}

enum vpmu_result vpmu_wrmsr(struct vpmu *pmu, uint32_t index, uint64_t value)
{
    struct place place = find(pmu, index);

    if (!place.reg) {
        return VPMU_NOT_MINE;
    }
    if (place.n >= present(place.reg, &pmu->config) || !place.reg->write ||
        value & ~place.reg->accepts(&pmu->config)) {
        return VPMU_FAULT;
    }
    vpmu_settle(pmu);
    place.reg->write(pmu, place.reg, place.n, value);
    vpmu_resume(pmu);
    return VPMU_OK;
}

void vpmu_set_svme(struct vpmu *pmu, bool svme)
{
    vpmu_settle(pmu);
    pmu->svme = svme;
    vpmu_resume(pmu);
}

enum vpmu_result vpmu_rdpmc(struct vpmu *pmu, uint32_t selector, uint64_t *value)
{
    const struct vpmu_vendor_ops *vendor = vpmu_vendor_ops(&pmu->config);

    for (unsigned i = 0; selector != VPMU_NO_SELECTOR && i < vpmu_counters(pmu); i++) {
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

/* What a word of the state may hold: the bits of all registers that keep something in it. Several
 * can, and those that the configuration lacks keep nothing. */
static uint64_t holds(const struct vpmu_vendor_ops *vendor, const struct vpmu_config *config,
                      unsigned word, const char **error)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < vendor->register_count; i++) {
        const struct vpmu_register *reg = &vendor->registers[i];

        if (reg->holds && word - reg->state < reg->bank) {
            bits |= word - reg->state < present(reg, config) ? reg->holds(config) : 0;
            *error = reg->load_error;
        }
    }
    return bits;
}

const char *vpmu_load(struct vpmu *pmu, const struct vpmu_state *state)
{
    const struct vpmu_vendor_ops *vendor = vpmu_vendor_ops(&pmu->config);
    const uint64_t *words = (const uint64_t *)state;

    for (unsigned i = 0; i < sizeof(*state) / sizeof(*words); i++) {
        const char *error = "a register that this PMU lacks holds something";

        if (words[i] & ~holds(vendor, &pmu->config, i, &error)) {
            return error;
        }
    }
    pmu->state = *state;
    vpmu_resume(pmu);
    return NULL;
}
