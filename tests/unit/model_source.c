/* SPDX-License-Identifier: BSD-3-Clause */
#include "model_source.h"

#include <string.h>

static uint64_t total(void *source, enum vpmu_event event, unsigned classes)
{
    struct machine *m = source;
    uint64_t sum = 0;

    cr_assert(m->pmu.config.events & VPMU_EVENT_BIT(event), "event %d is not kept", event);
    cr_assert(classes > 0 && classes < 1u << VPMU_CLASSES);
    for (unsigned c = 0; c < VPMU_CLASSES; c++) {
        sum += classes & VPMU_CLASS_BIT(c) ? m->totals[event][c] : 0;
    }
    return sum;
}

static void demand(void *source, const struct vpmu_demand *rows, unsigned count)
{
    struct machine *m = source;

    cr_assert_leq(count, VPMU_COUNTERS_MAX);
    for (unsigned i = 0; i < count; i++) {
        cr_assert_neq(rows[i].event, VPMU_EVENT_NONE);
        cr_assert_neq(rows[i].classes, 0);
        cr_assert(rows[i].distance >= 1 && rows[i].distance <= UINT64_C(1) << 48);
        m->demand[i] = rows[i];
    }
    m->demands = count;
    m->tellings++;
}

static void pmi(void *source)
{
    ((struct machine *)source)->pmis++;
}

static bool denied(void *source, uint32_t code)
{
    const struct machine *m = source;

    return m->denies && m->denies == code;
}

static const struct vpmu_source_ops ops = {
    .total = total,
    .demand = demand,
    .pmi = pmi,
    .denied = denied,
};

struct vpmu_config config_of(unsigned version)
{
    return (struct vpmu_config){
        .vendor = VPMU_VENDOR_INTEL,
        .version = (uint8_t)version,
        .gp = 4,
        .fixed = version == 1 ? 0 : 3,
        .gp_width = 48,
        .fixed_width = 48,
        .full_width = true,
        .events = ALL_EVENTS,
    };
}

struct vpmu_config amd_config_of(unsigned version)
{
    return (struct vpmu_config){
        .vendor = VPMU_VENDOR_AMD,
        .version = (uint8_t)version,
        .gp = version == VPMU_AMD_LEGACY ? 4 : 6,
        .fixed = 1,
        .gp_width = 48,
        .fixed_width = 48,
        .events = ALL_EVENTS,
    };
}

void power_on(struct machine *m, const struct vpmu_config *config)
{
    const char *error = vpmu_config_error(config);

    cr_assert_null(error, "%s", error);
    memset(m, 0, sizeof(*m));
    vpmu_init(&m->pmu, config, &ops, m);
}

void happen(struct machine *m, enum vpmu_event event, enum vpmu_class class, uint64_t n)
{
    m->totals[event][class] += n;
}

/* Of `n` events of the class, how many until the first row of the demand is used up. */
static uint64_t until_deadline(const struct machine *m, enum vpmu_event event,
                               enum vpmu_class class, uint64_t n)
{
    for (unsigned i = 0; i < m->demands; i++) {
        const struct vpmu_demand *row = &m->demand[i];

        if (row->event == event && row->classes & VPMU_CLASS_BIT(class) && row->distance < n) {
            n = row->distance;
        }
    }
    return n;
}

void run(struct machine *m, enum vpmu_event event, enum vpmu_class class, uint64_t n)
{
    while (n) {
        uint64_t step = until_deadline(m, event, class, n);

        happen(m, event, class, step);
        vpmu_sync(&m->pmu);
        n -= step;
    }
}

void wrmsr(struct machine *m, uint32_t index, uint64_t value)
{
    cr_assert_eq(vpmu_wrmsr(&m->pmu, index, value), VPMU_OK, "wrmsr %#x, %#lx", index, value);
}

uint64_t rdmsr(struct machine *m, uint32_t index)
{
    uint64_t value = 0;

    cr_assert_eq(vpmu_rdmsr(&m->pmu, index, &value), VPMU_OK, "rdmsr %#x", index);
    return value;
}

void wrmsr_faults(struct machine *m, uint32_t index, uint64_t value)
{
    struct vpmu before = m->pmu;
    unsigned tellings = m->tellings;

    cr_assert_eq(vpmu_wrmsr(&m->pmu, index, value), VPMU_FAULT, "wrmsr %#x, %#lx", index, value);
    cr_assert_eq(memcmp(&before, &m->pmu, sizeof(before)), 0, "wrmsr %#x changed state", index);
    cr_assert_eq(m->tellings, tellings);
}

static uint64_t something(unsigned event, unsigned class)
{
    return UINT64_C(1) << (4 * class) << 16 | event;
}

void something_of_everything(struct machine *m)
{
    for (unsigned event = 1; event < VPMU_EVENTS; event++) {
        for (unsigned c = 0; c < VPMU_CLASSES; c++) {
            happen(m, (enum vpmu_event)event, (enum vpmu_class)c, something(event, c));
        }
    }
}

uint64_t something_of(enum vpmu_event event, unsigned classes)
{
    uint64_t sum = 0;

    for (unsigned c = 0; c < VPMU_CLASSES; c++) {
        sum += classes & VPMU_CLASS_BIT(c) ? something(event, c) : 0;
    }
    return sum;
}

void check_event_not_kept(struct vpmu_config config, enum vpmu_event event, uint32_t index,
                          uint64_t selector)
{
    struct vpmu_counter_info info;
    struct machine m;

    config.fixed = 0;
    config.events = ALL_EVENTS & ~VPMU_EVENT_BIT(event);
    power_on(&m, &config);
    wrmsr(&m, index, EN | OS | USR | selector);
    something_of_everything(&m);
    vpmu_counter_info(&m.pmu, 0, &info);
    cr_assert_eq(info.value, 0);
    cr_assert_eq(info.state, VPMU_COUNTER_UNSUPPORTED);
    cr_assert_eq(m.demands, 0);
}

void check_load_bits(struct machine *m, unsigned version,
                     uint64_t (*holds)(unsigned version, size_t word))
{
    const struct vpmu before = m->pmu;

    for (size_t word = 0; word < sizeof(struct vpmu_state) / 8; word++) {
        for (unsigned bit = 0; bit < 64; bit++) {
            struct vpmu_state state = {0};
            uint64_t value = UINT64_C(1) << bit;
            const char *error;

            memcpy((char *)&state + 8 * word, &value, 8);
            error = vpmu_load(&m->pmu, &state);
            cr_assert_eq(error == NULL, (holds(version, word) & value) != 0, "word %zu bit %u",
                         word, bit);
            if (error) {
                cr_assert_eq(memcmp(&m->pmu, &before, sizeof(before)), 0);
            } else {
                m->pmu = before;
            }
        }
    }
}
