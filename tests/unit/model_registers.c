/* SPDX-License-Identifier: BSD-3-Clause */
/* Every register: where it exists, which bits fault, what it reads, on every version. */
#include "model_source.h"

#define VERSIONS 5
#define COUNTERS UINT64_C(0x70000000F)
#define WIDTH UINT64_C(0xFFFFFFFFFFFF)
#define ANYTHING UINT64_MAX

/* With 4 + 3 counters, per version: the bits that a write accepts and those that a read returns
 * after a write of all of them. Read-only registers accept no write at all. */
struct row {
    uint32_t index;
    unsigned since;
    bool read_only;
    uint64_t accepts[VERSIONS];
    uint64_t returns[VERSIONS];
};

static struct row rows[] = {
    {IA32_PMC0,
     1,
     false,
     {ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING},
     {WIDTH, WIDTH, WIDTH, WIDTH, WIDTH}},
    {IA32_PERFEVTSEL0,
     1,
     false,
     {0xFFDFFFFF, 0xFFDFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFDFFFFF},
     {0xFFDFFFFF, 0xFFDFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFDFFFFF}},
    {IA32_DEBUGCTL,
     1,
     false,
     {0x3, 0x1803, 0x1803, 0x1803, 0x1803},
     {0, 0x1000, 0x1000, 0x1000, 0x1000}},
    {IA32_FIXED_CTR0,
     2,
     false,
     {0, ANYTHING, ANYTHING, ANYTHING, ANYTHING},
     {0, WIDTH, WIDTH, WIDTH, WIDTH}},
    {IA32_PERF_CAPABILITIES, 1, true, {0}, {0x2000, 0x2000, 0x2000, 0x2000, 0x2000}},
    {IA32_FIXED_CTR_CTRL,
     2,
     false,
     {0, 0xBBB, 0xFFF, 0xFFF, 0xBBB},
     {0, 0xBBB, 0xFFF, 0xFFF, 0xBBB}},
    {IA32_PERF_GLOBAL_STATUS, 2, true, {0}, {0}},
    {IA32_PERF_GLOBAL_CTRL,
     2,
     false,
     {0, COUNTERS, COUNTERS, COUNTERS, COUNTERS},
     {0, COUNTERS, COUNTERS, COUNTERS, COUNTERS}},
    {IA32_PERF_GLOBAL_STATUS_RESET,
     2,
     false,
     {0, COUNTERS | UINT64_C(3) << 62, COUNTERS | UINT64_C(7) << 61,
      COUNTERS | UINT64_C(0x3B) << 58, COUNTERS | UINT64_C(0x3B) << 58},
     {0}},
    {IA32_PERF_GLOBAL_STATUS_SET,
     4,
     false,
     {0, 0, 0, COUNTERS | UINT64_C(0x1B) << 58, COUNTERS | UINT64_C(0x1B) << 58},
     {0}},
    {IA32_PERF_GLOBAL_INUSE, 4, true, {0}, {0}},
    {IA32_A_PMC0,
     1,
     false,
     {WIDTH, WIDTH, WIDTH, WIDTH, WIDTH},
     {WIDTH, WIDTH, WIDTH, WIDTH, WIDTH}},
};

ParameterizedTestParameters(model_registers, reserved_bits)
{
    return cr_make_param_array(struct row, rows, sizeof(rows) / sizeof(rows[0]));
}

static void check_bits(const struct row *row, unsigned version)
{
    struct vpmu_config config = config_of(version);
    uint64_t accepts = row->accepts[version - 1], value;
    struct machine m;

    power_on(&m, &config);
    if (version < row->since) {
        wrmsr_faults(&m, row->index, 0);
        cr_assert_eq(vpmu_rdmsr(&m.pmu, row->index, &value), VPMU_FAULT);
        return;
    }
    if (row->read_only) {
        wrmsr_faults(&m, row->index, 0);
    } else {
        wrmsr(&m, row->index, 0);
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        if (accepts >> bit & 1) {
            wrmsr(&m, row->index, UINT64_C(1) << bit);
        } else {
            wrmsr_faults(&m, row->index, UINT64_C(1) << bit);
            wrmsr_faults(&m, row->index, UINT64_C(1) << bit | accepts);
        }
    }
    if (!row->read_only) {
        wrmsr(&m, row->index, accepts);
    }
    cr_assert_eq(rdmsr(&m, row->index), row->returns[version - 1], "%#x, version %u: %#lx",
                 row->index, version, rdmsr(&m, row->index));
}

ParameterizedTest(struct row *row, model_registers, reserved_bits)
{
    for (unsigned version = 1; version <= VERSIONS; version++) {
        check_bits(row, version);
    }
}

/* Each bit that a register returns can be set and cleared by itself. */
ParameterizedTestParameters(model_registers, single_bits)
{
    return cr_make_param_array(struct row, rows, sizeof(rows) / sizeof(rows[0]));
}

ParameterizedTest(struct row *row, model_registers, single_bits)
{
    for (unsigned version = row->since; version <= VERSIONS && !row->read_only; version++) {
        struct vpmu_config config = config_of(version);
        struct machine m;

        power_on(&m, &config);
        for (unsigned bit = 0; bit < 64; bit++) {
            uint64_t value = UINT64_C(1) << bit;
            uint64_t expected = value & row->returns[version - 1];

            if (row->index == IA32_PMC0) { /* a legacy write */
                expected = bit == 31 ? WIDTH & ~UINT64_C(0x7FFFFFFF) : bit > 31 ? 0 : value;
            }
            if (row->accepts[version - 1] & value) {
                wrmsr(&m, row->index, value);
                cr_assert_eq(rdmsr(&m, row->index), expected, "%#x bit %u: %#lx", row->index, bit,
                             rdmsr(&m, row->index));
            }
        }
    }
}

/* How many registers of a bank of `bank` from `first` on `index` finds: the manual's table. */
static enum vpmu_result expected_result(const struct vpmu_config *c, uint32_t index)
{
    const struct {
        uint32_t first, bank;
        unsigned count;
    } banks[] = {
        {0xC1, 8, c->gp},
        {0x186, 8, c->gp},
        {0x1D9, 1, 1},
        {0x309, 4, c->version >= 2 ? c->fixed : 0},
        {0x345, 1, 1},
        {0x38D, 4, c->version >= 2 ? 4 : 0},
        {0x391, 2, c->version >= 4 ? 2 : 0},
        {0x4C1, 8, c->full_width ? c->gp : 0},
    };

    for (unsigned i = 0; i < sizeof(banks) / sizeof(banks[0]); i++) {
        if (index >= banks[i].first && index < banks[i].first + banks[i].bank) {
            return index < banks[i].first + banks[i].count ? VPMU_OK : VPMU_FAULT;
        }
    }
    return VPMU_NOT_MINE;
}

static void check_indices(const struct vpmu_config *config)
{
    struct machine m;
    uint64_t value;

    power_on(&m, config);
    for (uint32_t index = 0; index < 0x2000; index++) {
        enum vpmu_result expected = expected_result(config, index);

        cr_assert_eq(vpmu_rdmsr(&m.pmu, index, &value), expected, "rdmsr %#x", index);
        if (index == IA32_PERF_GLOBAL_STATUS || index == IA32_PERF_CAPABILITIES ||
            index == IA32_PERF_GLOBAL_INUSE) {
            expected = VPMU_FAULT;
        }
        cr_assert_eq(vpmu_wrmsr(&m.pmu, index, 0), expected, "wrmsr %#x", index);
    }
    cr_assert_eq(vpmu_rdmsr(&m.pmu, UINT32_MAX, &value), VPMU_NOT_MINE);
    cr_assert_eq(vpmu_rdmsr(&m.pmu, 0xC0010200, &value), VPMU_NOT_MINE);
}

static unsigned versions[] = {1, 2, 3, 4, 5};

ParameterizedTestParameters(model_registers, indices)
{
    return cr_make_param_array(unsigned, versions, VERSIONS);
}

ParameterizedTest(unsigned *version, model_registers, indices)
{
    for (unsigned gp = 1; gp <= VPMU_GP_MAX; gp++) {
        for (unsigned fixed = 0; fixed <= (*version == 1 ? 0 : VPMU_FIXED_MAX); fixed++) {
            struct vpmu_config config = config_of(*version);

            config.gp = (uint8_t)gp;
            config.fixed = (uint8_t)fixed;
            config.full_width = gp % 2;
            check_indices(&config);
        }
    }
}

/* Bits of counters that are absent fault in the registers that have a bit or a field for each. */
ParameterizedTestParameters(model_registers, absent_counters)
{
    return cr_make_param_array(unsigned, versions + 1, VERSIONS - 1);
}

ParameterizedTest(unsigned *version, model_registers, absent_counters)
{
    for (unsigned n = 0; n <= VPMU_GP_MAX * VPMU_FIXED_MAX; n++) {
        struct vpmu_config config = config_of(*version);
        struct machine m;

        config.gp = (uint8_t)(n % VPMU_GP_MAX + 1);
        config.fixed = (uint8_t)(n / VPMU_GP_MAX);
        power_on(&m, &config);
        for (unsigned i = 0; i < 32; i++) {
            uint64_t gp = UINT64_C(1) << i, fixed = gp << 32, control = UINT64_C(1) << 4 * (i % 16);
            void (*write_gp)(struct machine *, uint32_t, uint64_t) =
                i < config.gp ? wrmsr : wrmsr_faults;
            void (*write_fixed)(struct machine *, uint32_t, uint64_t) =
                i < config.fixed ? wrmsr : wrmsr_faults;

            write_gp(&m, IA32_PERF_GLOBAL_CTRL, gp);
            write_gp(&m, IA32_PERF_GLOBAL_STATUS_RESET, gp);
            write_fixed(&m, IA32_PERF_GLOBAL_CTRL, fixed);
            if (i < 16) {
                write_fixed(&m, IA32_FIXED_CTR_CTRL, control);
            }
            if (i < 26) { /* above are the status bits that are no counter's */
                write_fixed(&m, IA32_PERF_GLOBAL_STATUS_RESET, fixed);
            }
        }
    }
}

/* Banks: what is written to one register is read from that one and from no other. */
Test(model_registers, banks_do_not_mix)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    config.gp = 8;
    config.fixed = 4;
    power_on(&m, &config);
    for (unsigned i = 0; i < 8; i++) {
        wrmsr(&m, IA32_PMC0 + i, 0x100 + i);
        wrmsr(&m, IA32_PERFEVTSEL0 + i, 0x200 + i);
    }
    for (unsigned i = 0; i < 4; i++) {
        wrmsr(&m, IA32_FIXED_CTR0 + i, 0x300 + i);
    }
    for (unsigned i = 0; i < 8; i++) {
        cr_assert_eq(rdmsr(&m, IA32_PMC0 + i), 0x100 + i);
        cr_assert_eq(rdmsr(&m, IA32_A_PMC0 + i), 0x100 + i);
        cr_assert_eq(rdmsr(&m, IA32_PERFEVTSEL0 + i), 0x200 + i);
    }
    for (unsigned i = 0; i < 4; i++) {
        cr_assert_eq(rdmsr(&m, IA32_FIXED_CTR0 + i), 0x300 + i);
    }
}

/* Counter writes at every width: legacy writes extend the sign, full-width ones fault beyond the
 * width, fixed ones drop the excess. */
Test(model_registers, counter_writes_at_each_width)
{
    for (unsigned width = 32; width <= 48; width++) {
        struct vpmu_config config = config_of(2);
        uint64_t mask = (UINT64_C(1) << width) - 1;
        struct machine m;

        config.gp_width = config.fixed_width = (uint8_t)width;
        power_on(&m, &config);
        wrmsr(&m, IA32_PMC0, 0x123456780000000F);
        cr_assert_eq(rdmsr(&m, IA32_PMC0), 0xF);
        cr_assert_eq(rdmsr(&m, IA32_A_PMC0), 0xF);
        wrmsr(&m, IA32_PMC0, 0x80000001);
        cr_assert_eq(rdmsr(&m, IA32_PMC0), mask & 0xFFFFFFFF80000001);
        wrmsr(&m, IA32_A_PMC0, mask);
        cr_assert_eq(rdmsr(&m, IA32_PMC0), mask);
        wrmsr_faults(&m, IA32_A_PMC0, mask + 1);
        wrmsr(&m, IA32_A_PMC0, 0x80000001);
        cr_assert_eq(rdmsr(&m, IA32_A_PMC0), 0x80000001);
        wrmsr(&m, IA32_FIXED_CTR0, (uint64_t)-5);
        cr_assert_eq(rdmsr(&m, IA32_FIXED_CTR0), mask - 4);
    }
}

/* Version 4's status: what is set shows, what is reset does not, COND_CHGD cannot be set. */
Test(model_registers, status_set_and_reset)
{
    struct vpmu_config config = config_of(4);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, IA32_PERF_GLOBAL_STATUS_SET, UINT64_C(1) << 62 | 0x100000003);
    cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_STATUS), UINT64_C(1) << 62 | 0x100000003);
    wrmsr(&m, IA32_PERF_GLOBAL_STATUS_SET, UINT64_C(1) << 58);
    wrmsr(&m, IA32_PERF_GLOBAL_STATUS_RESET, UINT64_C(3) << 62 | 0x2);
    cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_STATUS), UINT64_C(1) << 58 | 0x100000001);
    wrmsr_faults(&m, IA32_PERF_GLOBAL_STATUS_SET, UINT64_C(1) << 63);
    cr_assert_eq(m.pmis, 0);
}

Test(model_registers, in_use)
{
    static const struct {
        uint32_t index;
        uint64_t value, expected;
    } uses[] = {
        {IA32_PERFEVTSEL0, 0, 0},
        {IA32_PERFEVTSEL0 + 2, 0xC0, 1u << 2},
        {IA32_PERFEVTSEL0 + 2, 0x100, 0}, /* the event select alone counts */
        {IA32_PERFEVTSEL0 + 3, INT, UINT64_C(1) << 63},
        {IA32_PERFEVTSEL0 + 3, 0, 0},
        {IA32_FIXED_CTR_CTRL, 0x100, UINT64_C(1) << 34},
        {IA32_FIXED_CTR_CTRL, 0x020, UINT64_C(1) << 33},
        {IA32_FIXED_CTR_CTRL, 0x008, UINT64_C(1) << 63},
    };
    struct vpmu_config config = config_of(4);
    struct machine m;

    power_on(&m, &config);
    for (unsigned i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        wrmsr(&m, uses[i].index, uses[i].value);
        cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_INUSE), uses[i].expected, "row %u", i);
    }
}

static enum vpmu_result expected_rdpmc(const struct vpmu_config *c, uint32_t selector)
{
    uint32_t type = selector >> 16, index = selector & 0xFFFF;

    return (type == 0 && index < c->gp) || (type == 0x4000 && index < c->fixed) ? VPMU_OK
                                                                                : VPMU_FAULT;
}

/* Every bit of the selector, and every counter: present ones read, all others fault. */
Test(model_registers, rdpmc_selectors)
{
    for (unsigned n = 0; n < VPMU_GP_MAX * (VPMU_FIXED_MAX + 1); n++) {
        struct vpmu_config config = config_of(2);
        struct machine m;
        uint64_t value;

        config.gp = (uint8_t)(n % VPMU_GP_MAX + 1);
        config.fixed = (uint8_t)(n / VPMU_GP_MAX);
        power_on(&m, &config);
        for (uint32_t i = 0; i < 32 * 16; i++) {
            uint32_t selectors[] = {i % 16 | 1u << i / 16, i % 16, 0x40000000 | i};

            for (unsigned s = 0; s < 3; s++) {
                cr_assert_eq(vpmu_rdpmc(&m.pmu, selectors[s], &value),
                             expected_rdpmc(&config, selectors[s]), "selector %#x", selectors[s]);
            }
        }
    }
}

Test(model_registers, rdpmc_reads_what_rdmsr_reads)
{
    struct vpmu_config config = config_of(5);
    struct machine m;
    uint64_t value;

    power_on(&m, &config);
    for (unsigned i = 0; i < 4; i++) {
        wrmsr(&m, IA32_A_PMC0 + i, 0xABC000000000 + i);
        cr_assert_eq(vpmu_rdpmc(&m.pmu, i, &value), VPMU_OK);
        cr_assert_eq(value, 0xABC000000000 + i);
    }
    for (unsigned i = 0; i < 3; i++) {
        wrmsr(&m, IA32_FIXED_CTR0 + i, 0xDEF000000000 + i);
        cr_assert_eq(vpmu_rdpmc(&m.pmu, 0x40000000 + i, &value), VPMU_OK);
        cr_assert_eq(value, 0xDEF000000000 + i);
    }
}

/* SDM Vol. 3, states after power-up: all general-purpose bits of IA32_PERF_GLOBAL_CTRL are set. */
Test(model_registers, reset)
{
    for (unsigned gp = 1; gp <= VPMU_GP_MAX; gp++) {
        struct vpmu_config config = config_of(4);
        struct machine m;

        config.gp = (uint8_t)gp;
        power_on(&m, &config);
        wrmsr(&m, IA32_PERF_GLOBAL_CTRL, UINT64_C(1) << 32);
        wrmsr(&m, IA32_PERF_GLOBAL_STATUS_SET, 1);
        wrmsr(&m, IA32_DEBUGCTL, 0x1000);
        wrmsr(&m, IA32_PERFEVTSEL0, EN | OS | 0xC0);
        wrmsr(&m, IA32_FIXED_CTR_CTRL, 0x3);
        wrmsr(&m, IA32_FIXED_CTR0, 7);
        wrmsr(&m, IA32_PMC0, 7);
        cr_assert_eq(m.demands, 1);
        vpmu_reset(&m.pmu);
        cr_assert_eq(m.demands, 0);
        cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_CTRL), (1u << gp) - 1);
        for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            if (rows[i].index != IA32_PERF_GLOBAL_CTRL && rows[i].index != IA32_PERF_CAPABILITIES) {
                cr_assert_eq(rdmsr(&m, rows[i].index), 0, "%#x", rows[i].index);
            }
        }
    }
}
