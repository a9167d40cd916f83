// SPDX-License-Identifier: BSD-3-Clause
/* CPUID values -> what a processor has, row by row. */
#include "hv/host/host_internal.h"
#include "tests/unit/host_cpuid.h"

#include <criterion/criterion.h>

/* Leaf 0xA of a version with gp and fixed counters. */
#define PERFMON(version, gp, fixed, mask)                                                          \
    {0xA, 0, {.eax = (version) | (gp) << 8 | 48u << 16, .ecx = (mask), .edx = (fixed) | 48u << 5}}

static const struct {
    const char *name;
    const char *vendor;
    struct cpuid_row rows[6];
    uint8_t version;
    uint16_t gp, fixed;
} machines[] = {
    {"no leaf 0xA", "GenuineIntel", {{0}}, 0, 0, 0},
    {"version 0: no PMU", "GenuineIntel", {PERFMON(0u, 0u, 0u, 0u)}, 0, 0, 0},
    {"version 1 has no fixed counters, whatever EDX says",
     "GenuineIntel",
     {PERFMON(1u, 2u, 3u, 0u)},
     1,
     2,
     0},
    {"version 2", "GenuineIntel", {PERFMON(2u, 2u, 3u, 0u)}, 2, 2, 7},
    {"version 4, SMT off", "GenuineIntel", {PERFMON(4u, 8u, 3u, 0u)}, 4, 8, 7},
    {"version 4 has no mask in ECX", "GenuineIntel", {PERFMON(4u, 4u, 3u, 0xFFu)}, 4, 4, 7},
    {"version 5: the mask adds to the number",
     "GenuineIntel",
     {PERFMON(5u, 8u, 3u, 0x17u)},
     5,
     8,
     0x17},
    {"version 6: leaf 0x23 has the processor's own",
     "GenuineIntel",
     {PERFMON(6u, 8u, 4u, 0u),
      {7, 1, {.eax = 1u << 8}},
      {0x23, 0, {.eax = 3}},
      {0x23, 1, {.eax = 0x3FF, .ebx = 0x77}}},
     6,
     10,
     0x77},
    {"leaf 0x23 without its sub-leaf 1",
     "GenuineIntel",
     {PERFMON(6u, 8u, 4u, 0u),
      {7, 1, {.eax = 1u << 8}},
      {0x23, 0, {.eax = 1}},
      {0x23, 1, {.eax = 0x3FF}}},
     6,
     8,
     0xF},
    {"more than any has", "GenuineIntel", {PERFMON(5u, 255u, 31u, 0xFFFFFFFFu)}, 5, 32, 0xFFFF},
    {"K8: four", "AuthenticAMD", {{0x80000001, 0, {.ecx = 0}}}, 0, 4, 0},
    {"Zen 2: PerfCtrExtCore", "AuthenticAMD", {{0x80000001, 0, {.ecx = 1u << 23}}}, 1, 6, 0},
    {"Zen 4: PerfMonV2",
     "AuthenticAMD",
     {{0x80000001, 0, {.ecx = 1u << 23}}, {0x80000022, 0, {.eax = 1, .ebx = 6 | 16 << 10}}},
     2,
     6,
     0},
    {"PerfMonV2 with 4",
     "AuthenticAMD",
     {{0x80000001, 0, {.ecx = 1u << 23}}, {0x80000022, 0, {.eax = 1, .ebx = 4}}},
     2,
     4,
     0},
    {"leaf 0x80000022 without PerfMonV2",
     "HygonGenuine",
     {{0x80000001, 0, {.ecx = 1u << 23}}, {0x80000022, 0, {.eax = 0, .ebx = 15}}},
     1,
     6,
     0},
    {"another vendor", "CentaurHauls", {PERFMON(2u, 2u, 3u, 0u)}, 0, 0, 0},
};

Test(host_capacity, table)
{
    for (size_t i = 0; i < HOST_ROWS(machines); i++) {
        struct cpuid_table table = {machines[i].vendor, machines[i].rows,
                                    HOST_ROWS(machines[i].rows)};
        struct vpmu_host_core_type type = {.version = 99, .capacity = {.gp = 99, .fixed = 99}};

        host_capacity(cpuid_of_table, &table, &type);
        cr_expect_eq(type.version, machines[i].version, "%s: version %u", machines[i].name,
                     type.version);
        cr_expect_eq(type.capacity.gp, machines[i].gp, "%s: %u GP", machines[i].name,
                     type.capacity.gp);
        cr_expect_eq(type.capacity.fixed, machines[i].fixed, "%s: fixed 0x%x", machines[i].name,
                     type.capacity.fixed);
    }
}

Test(host_capacity, features)
{
    const struct cpuid_row rows[] = {{1, 0, {.ecx = 1u << 31}}, {7, 0, {.edx = 1u << 15}}};
    struct cpuid_table guest = {"GenuineIntel", rows, 2}, bare = {"GenuineIntel", rows, 0};

    cr_expect(host_is_virtualised(cpuid_of_table, &guest));
    cr_expect(host_is_hybrid(cpuid_of_table, &guest));
    cr_expect_not(host_is_virtualised(cpuid_of_table, &bare));
    cr_expect_not(host_is_hybrid(cpuid_of_table, &bare));
}

Test(host_capacity, model)
{
    const struct cpuid_row rows[] = {
        {0x80000002, 0, {0x20202020, 0x43504320, 0x1B205550, 0x5B5B5B5B}},
        {0x80000003, 0, {0x20202020, 0x20202020, 0x20202020, 0x20202020}},
        {0x80000004, 0, {0x20202020, 0x20202020, 0x20202020, 0}},
    };
    struct cpuid_table table = {"GenuineIntel", rows, 3}, none = {"GenuineIntel", rows, 0};
    char model[64];

    host_model(cpuid_of_table, &table, model, sizeof(model));
    cr_expect_str_eq(model, "CPCPU ?[[[[");
    host_model(cpuid_of_table, &none, model, sizeof(model));
    cr_expect_str_empty(model);
}
