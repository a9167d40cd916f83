/* SPDX-License-Identifier: BSD-3-Clause */
/* AMD's registers: where each exists, what it keeps, what a processor says of it. */
#include "model_source.h"

#include <string.h>

#define VERSIONS 3
#define WIDTH UINT64_C(0xFFFFFFFFFFFF)
#define SELECT UINT64_C(0x30FFFD7FFFF)
#define BIT(event) VPMU_EVENT_BIT(VPMU_EVENT_##event)

/* What is read after a write of all ones; no write faults. `status` is the status after it. */
struct row {
    uint32_t index;
    unsigned since;
    uint64_t returns;
    uint64_t status;
};

static struct row rows[] = {
    {LEGACY_CTL0, 0, SELECT, 0},    {LEGACY_CTL0 + 3, 0, SELECT, 0}, {LEGACY_CTR0, 0, WIDTH, 0},
    {LEGACY_CTR0 + 3, 0, WIDTH, 0}, {PERF_CTL0, 1, SELECT, 0},       {PERF_CTL0 + 10, 1, SELECT, 0},
    {PERF_CTR0, 1, WIDTH, 0},       {PERF_CTR0 + 10, 1, WIDTH, 0},   {PERF_STATUS, 2, 0, 0},
    {PERF_GLOBAL_CTL, 2, 0x3F, 0},  {PERF_STATUS_CLR, 2, 0, 0},      {PERF_STATUS_SET, 2, 0, 0x3F},
    {HWCR, 0, IRPERF_EN, 0},        {IRPERF, 0, WIDTH, 0},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

ParameterizedTestParameters(model_amd_registers, every_bit)
{
    return cr_make_param_array(struct row, rows, ROWS);
}

static void check_bits(const struct row *row, unsigned version)
{
    struct vpmu_config config = amd_config_of(version);
    struct machine m;
    uint64_t value;

    power_on(&m, &config);
    if (version < row->since) {
        cr_assert_eq(vpmu_rdmsr(&m.pmu, row->index, &value), VPMU_FAULT);
        wrmsr_faults(&m, row->index, 0);
        return;
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        value = UINT64_C(1) << bit;
        wrmsr(&m, row->index, value);
        cr_assert_eq(rdmsr(&m, row->index), value & row->returns, "%#x bit %u", row->index, bit);
    }
    wrmsr(&m, row->index, UINT64_MAX);
    cr_assert_eq(rdmsr(&m, row->index), row->returns, "%#x: %#lx", row->index,
                 rdmsr(&m, row->index));
    if (version >= 2) {
        cr_assert_eq(rdmsr(&m, PERF_STATUS), row->status);
    }
    wrmsr(&m, row->index, 0);
    cr_assert_eq(rdmsr(&m, row->index), 0);
}

ParameterizedTest(struct row *row, model_amd_registers, every_bit)
{
    for (unsigned version = 0; version < VERSIONS; version++) {
        check_bits(row, version);
    }
}

/* The APM's table of addresses. */
static enum vpmu_result expected_result(const struct vpmu_config *c, uint32_t index)
{
    if (index >= 0xC0010200 && index <= 0xC001020F) {
        return c->version >= 1 && (index - 0xC0010200) / 2 < c->gp ? VPMU_OK : VPMU_FAULT;
    }
    if (index >= 0xC0000300 && index <= 0xC0000303) {
        return c->version >= 2 ? VPMU_OK : VPMU_FAULT;
    }
    if (index == 0xC00000E9) {
        return c->fixed ? VPMU_OK : VPMU_FAULT;
    }
    return index == 0xC0010015 || (index >= 0xC0010000 && index <= 0xC0010007) ? VPMU_OK
                                                                               : VPMU_NOT_MINE;
}

static void check_indices(const struct vpmu_config *config, uint32_t first, uint32_t last)
{
    struct machine m;
    uint64_t value;

    power_on(&m, config);
    for (uint32_t index = first; index <= last; index++) {
        enum vpmu_result expected = expected_result(config, index);

        cr_assert_eq(vpmu_rdmsr(&m.pmu, index, &value), expected, "rdmsr %#x", index);
        cr_assert_eq(vpmu_wrmsr(&m.pmu, index, 0), expected, "wrmsr %#x", index);
    }
}

Test(model_amd_registers, indices)
{
    for (unsigned version = 0; version < VERSIONS; version++) {
        struct vpmu_config config = amd_config_of(version);

        for (unsigned n = 0; n < (version == 2 ? 6 : 2); n++) {
            config.gp = (uint8_t)(amd_config_of(version).gp + n / 2);
            config.fixed = n % 2;
            check_indices(&config, 0, 0x2000);
            check_indices(&config, 0xC0000000, 0xC0000400);
            check_indices(&config, 0xC0010000, 0xC0010400);
        }
    }
}

/* An unmodified Windows writes 0 to each select of the bank that CPUID names. */
Test(model_amd_registers, selects_take_0)
{
    for (unsigned version = 0; version < VERSIONS; version++) {
        struct vpmu_config config = amd_config_of(version);
        bool ext = vpmu_cpuid_80000001_ecx(&config) >> 23 & 1;
        struct machine m;

        power_on(&m, &config);
        for (uint32_t i = 0; i < (ext ? 6 : 4); i++) {
            wrmsr(&m, ext ? PERF_CTL0 + 2 * i : LEGACY_CTL0 + i, 0);
        }
    }
}

/* The legacy addresses are further names of the first four, for selects and counters. */
Test(model_amd_registers, legacy_names_alias)
{
    for (unsigned version = 1; version < VERSIONS; version++) {
        struct vpmu_config config = amd_config_of(version);
        struct machine m;

        power_on(&m, &config);
        for (uint32_t i = 0; i < 6; i++) {
            wrmsr(&m, PERF_CTL0 + 2 * i, 0x100 + i);
            wrmsr(&m, PERF_CTR0 + 2 * i, 0xABC000000000 + i);
        }
        for (uint32_t i = 0; i < 4; i++) {
            cr_assert_eq(rdmsr(&m, LEGACY_CTL0 + i), 0x100 + i);
            cr_assert_eq(rdmsr(&m, LEGACY_CTR0 + i), 0xABC000000000 + i);
            wrmsr(&m, LEGACY_CTL0 + i, HOST_ONLY | (0x200 + i));
            wrmsr(&m, LEGACY_CTR0 + i, 0xDEF000000000 + i);
        }
        for (uint32_t i = 0; i < 6; i++) {
            cr_assert_eq(rdmsr(&m, PERF_CTL0 + 2 * i), i < 4 ? HOST_ONLY | (0x200 + i) : 0x100 + i);
            cr_assert_eq(rdmsr(&m, PERF_CTR0 + 2 * i),
                         (i < 4 ? 0xDEF000000000 : 0xABC000000000) + i);
        }
    }
}

/* A counter that runs is the same one under both names. */
Test(model_amd_registers, legacy_names_count)
{
    struct vpmu_config config = amd_config_of(1);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, LEGACY_CTL0 + 2, EN | OS | 0xC0);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 5);
    cr_assert_eq(rdmsr(&m, PERF_CTR0 + 4), 5);
    wrmsr(&m, PERF_CTR0 + 4, 100);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 5);
    cr_assert_eq(rdmsr(&m, LEGACY_CTR0 + 2), 105);
    wrmsr(&m, PERF_CTL0 + 4, 0);
    cr_assert_eq(m.demands, 0);
}

/* Every bit of the selector, and every counter. IRPERF has no selector, not even a strange one. */
Test(model_amd_registers, rdpmc_selectors)
{
    for (unsigned n = 0; n < 5; n++) {
        struct vpmu_config config = amd_config_of(n < 2 ? n : 2);
        struct machine m;
        uint64_t value;

        config.gp = (uint8_t)(config.gp + (n > 2 ? n - 2 : 0));
        power_on(&m, &config);
        for (uint32_t i = 0; i < config.gp; i++) {
            wrmsr(&m, n == 0 ? LEGACY_CTR0 + i : PERF_CTR0 + 2 * i, 0xABC000000000 + i);
        }
        for (uint32_t i = 0; i < 32 * 16; i++) {
            uint32_t selectors[] = {i % 16 | 1u << i / 16, i % 16, UINT32_MAX - i};

            for (unsigned s = 0; s < 3; s++) {
                enum vpmu_result result = vpmu_rdpmc(&m.pmu, selectors[s], &value);

                cr_assert_eq(result, selectors[s] < config.gp ? VPMU_OK : VPMU_FAULT,
                             "selector %#x", selectors[s]);
                if (result == VPMU_OK) {
                    cr_assert_eq(value, 0xABC000000000 + selectors[s]);
                }
            }
        }
    }
}

Test(model_amd_registers, reset)
{
    for (unsigned version = 0; version < VERSIONS; version++) {
        struct vpmu_config config = amd_config_of(version);
        struct vpmu_state state, zero = {.global_control = version == 2 ? 0x3F : 0};
        struct machine m;

        power_on(&m, &config);
        vpmu_save(&m.pmu, &state);
        cr_assert_eq(memcmp(&state, &zero, sizeof(state)), 0, "after power-on");
        vpmu_set_svme(&m.pmu, true);
        for (unsigned i = 0; i < ROWS; i++) {
            (void)vpmu_wrmsr(&m.pmu, rows[i].index, UINT64_MAX);
        }
        wrmsr(&m, LEGACY_CTL0, EN | OS | HOST_ONLY | 0xC0);
        cr_assert_eq(m.demands, 2, "IRPERF and the first counter");
        vpmu_reset(&m.pmu);
        cr_assert_eq(m.demands, 0);
        vpmu_save(&m.pmu, &state);
        cr_assert_eq(memcmp(&state, &zero, sizeof(state)), 0);
        wrmsr(&m, LEGACY_CTL0, EN | OS | HOST_ONLY | 0xC0);
        cr_assert_eq(m.demands, 0, "EFER.SVME is clear");
    }
}

Test(model_amd_registers, misc_enable_is_not_amd)
{
    struct vpmu_config config = amd_config_of(2);
    struct machine m;

    power_on(&m, &config);
    cr_assert_eq(vpmu_misc_enable(&m.pmu, 0x400000001), 0x400000001);
}

Test(model_amd_registers, cpuid)
{
    static const struct {
        struct vpmu_config config;
        uint32_t fn80000001_ecx, fn80000008_ebx, fn80000022_eax, fn80000022_ebx;
    } leaves[] = {
        {{VPMU_VENDOR_AMD, 0, 4, 0, 48, 0, false, 0}, 0, 0, 0, 0},
        {{VPMU_VENDOR_AMD, 0, 4, 1, 48, 48, false, ALL_EVENTS}, 0, 2, 0, 0},
        {{VPMU_VENDOR_AMD, 1, 6, 0, 48, 0, false, ALL_EVENTS}, 1u << 23, 0, 0, 0},
        {{VPMU_VENDOR_AMD, 1, 6, 1, 48, 48, false, ALL_EVENTS}, 1u << 23, 2, 0, 0},
        {{VPMU_VENDOR_AMD, 2, 6, 1, 48, 48, false, ALL_EVENTS}, 1u << 23, 2, 1, 6},
        {{VPMU_VENDOR_AMD, 2, 8, 0, 48, 0, false, ALL_EVENTS}, 1u << 23, 0, 1, 8},
        {{VPMU_VENDOR_INTEL, 2, 8, 1, 48, 48, false, ALL_EVENTS}, 0, 0, 0, 0},
    };

    for (unsigned i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
        const struct vpmu_config *config = &leaves[i].config;
        uint32_t regs[4] = {1, 1, 1, 1};

        cr_assert_null(vpmu_config_error(config));
        cr_assert_eq(vpmu_cpuid_80000001_ecx(config), leaves[i].fn80000001_ecx, "row %u", i);
        cr_assert_eq(vpmu_cpuid_80000008_ebx(config), leaves[i].fn80000008_ebx, "row %u", i);
        vpmu_cpuid_80000022(config, regs);
        cr_assert_eq(regs[0], leaves[i].fn80000022_eax, "row %u", i);
        cr_assert_eq(regs[1], leaves[i].fn80000022_ebx, "row %u", i);
        cr_assert_eq(regs[2] | regs[3], 0, "row %u", i);
    }
}

/* All that are not refused are in the table above: versions 0 to 2, with 4, 6, and 6 to 8. */
Test(model_amd_registers, configurations)
{
    for (unsigned version = 0; version < 256; version++) {
        for (unsigned gp = 0; gp < 16; gp++) {
            struct vpmu_config config = amd_config_of(0);

            config.version = (uint8_t)version;
            config.gp = (uint8_t)gp;
            cr_assert_eq(vpmu_config_error(&config) == NULL,
                         (version == 0 && gp == 4) || (version == 1 && gp == 6) ||
                             (version == 2 && gp >= 6 && gp <= 8),
                         "version %u, %u counters", version, gp);
        }
    }
}

static void refused(struct vpmu_config config, const char *word)
{
    const char *error = vpmu_config_error(&config);

    cr_assert_not_null(error, "not refused: %s", word);
    cr_assert(strstr(error, word), "\"%s\" says nothing of %s", error, word);
}

#define REFUSED(changed_version, field, value, word)                                               \
    do {                                                                                           \
        struct vpmu_config config = amd_config_of(changed_version);                                \
        config.field = (value);                                                                    \
        refused(config, word);                                                                     \
    } while (0)

Test(model_amd_registers, refused_configurations)
{
    REFUSED(2, version, 3, "version");
    REFUSED(0, gp, 6, "legacy");
    REFUSED(1, gp, 4, "PerfCtrExtCore");
    REFUSED(2, gp, 9, "PerfMonV2");
    for (unsigned width = 32; width <= 64; width++) {
        if (width != 48) {
            REFUSED(2, gp_width, (uint8_t)width, "48 bits");
            REFUSED(2, fixed_width, (uint8_t)width, "48 bits");
        }
    }
    REFUSED(2, fixed, 2, "fixed");
    REFUSED(2, events, ALL_EVENTS & ~BIT(INSTRUCTIONS), "fixed");
    REFUSED(2, events, ALL_EVENTS | 1, "event");
}

/* State */

static unsigned versions[] = {0, 1, 2};

ParameterizedTestParameters(model_amd_registers, goes_on_elsewhere)
{
    return cr_make_param_array(unsigned, versions, VERSIONS);
}

ParameterizedTest(unsigned *version, model_amd_registers, goes_on_elsewhere)
{
    struct vpmu_config config = amd_config_of(*version);
    struct machine here, there;
    struct vpmu_state state;

    power_on(&here, &config);
    vpmu_set_svme(&here.pmu, true);
    wrmsr(&here, LEGACY_CTL0 + 1, EN | INT | USR | HOST_ONLY | 0xC2);
    wrmsr(&here, LEGACY_CTR0 + 1, (uint64_t)-100);
    wrmsr(&here, HWCR, IRPERF_EN);
    happen(&here, VPMU_EVENT_BRANCHES, VPMU_CLASS_USER, 40);
    happen(&here, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_GUEST_USER, 400);
    vpmu_save(&here.pmu, &state);

    power_on(&there, &config);
    happen(&there, VPMU_EVENT_BRANCHES, VPMU_CLASS_USER, 123456789);
    cr_assert_null(vpmu_load(&there.pmu, &state));
    cr_assert_eq(there.demands, 1, "EFER is not part of the state");
    vpmu_set_svme(&there.pmu, true);
    cr_assert_eq(there.demands, 2);
    cr_assert_eq(there.demand[0].distance, 60);
    run(&there, VPMU_EVENT_BRANCHES, VPMU_CLASS_USER, 59);
    cr_assert_eq(there.pmis, 0);
    run(&there, VPMU_EVENT_BRANCHES, VPMU_CLASS_USER, 3);
    cr_assert_eq(there.pmis, 1);
    cr_assert_eq(rdmsr(&there, LEGACY_CTR0 + 1), 2);
    cr_assert_eq(rdmsr(&there, IRPERF), 400);
    if (*version == 2) {
        cr_assert_eq(rdmsr(&there, PERF_STATUS), 2);
    }
}

/* What each word of a saved state may hold. */
static uint64_t holds(unsigned version, size_t word)
{
    const size_t gp = version == 0 ? 4 : 6, fixed_value = 2 * VPMU_GP_MAX,
                 fixed_control = fixed_value + VPMU_FIXED_MAX;
    const uint64_t global = version == 2 ? 0x3F : 0;

    if (word < fixed_value) {
        return word % VPMU_GP_MAX >= gp ? 0 : word < VPMU_GP_MAX ? WIDTH : SELECT;
    }
    if (word < fixed_control) {
        return word == fixed_value ? WIDTH : 0;
    }
    return (const uint64_t[]){IRPERF_EN, global, global, 0}[word - fixed_control];
}

ParameterizedTestParameters(model_amd_registers, load_checks_every_bit)
{
    return cr_make_param_array(unsigned, versions, VERSIONS);
}

ParameterizedTest(unsigned *version, model_amd_registers, load_checks_every_bit)
{
    struct vpmu_config config = amd_config_of(*version);
    struct machine m;

    power_on(&m, &config);
    check_load_bits(&m, *version, holds);
}

Test(model_amd_registers, load_names_the_register)
{
    static const struct {
        struct vpmu_state state;
        const char *name;
    } wrong[] = {
        {{.gp_select = {1u << 19}}, "PERF_CTLx"},
        {{.gp_value = {[7] = 1}}, "PERF_CTRx"},
        {{.fixed_value = {WIDTH + 1}}, "IRPERF"},
        {{.fixed_control = 1}, "HWCR"},
        {{.global_control = 0x40}, "PerfCntrGlobalCtl"},
        {{.global_status = UINT64_C(1) << 59}, "PerfCntrGlobalStatus"},
        {{.fixed_value = {[1] = 1}}, "lacks"},
        {{.debug_control = 0x1000}, "lacks"},
    };
    struct vpmu_config config = amd_config_of(2);
    struct machine m;

    power_on(&m, &config);
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *error = vpmu_load(&m.pmu, &wrong[i].state);

        cr_assert_not_null(error, "%s", wrong[i].name);
        cr_assert(strstr(error, wrong[i].name), "\"%s\" says nothing of %s", error, wrong[i].name);
    }
}
