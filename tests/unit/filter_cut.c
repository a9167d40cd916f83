// SPDX-License-Identifier: BSD-3-Clause
/* What is advertised of what was granted. */
#include "filter_test.h"

#define EXT_CORE (1u << 23)

static const uint32_t no_leaf[4];
static const uint32_t skylake[4] = {0x07300402, 0, 0, 0x603};
static const uint32_t version_5[4] = {0x08300805, 0, 0xF, 0x8604};
static const uint32_t version_1[4] = {0x07280201, 0, 0, 0};
static const uint32_t perfmon_v2[4] = {1, 6, 0, 0};

Test(filter_cut, offers)
{
    struct vpmu_config offer = vpmu_offer_intel(skylake);

    cr_assert_eq(offer.vendor, VPMU_VENDOR_INTEL);
    cr_assert_eq(offer.version, 2);
    cr_assert_eq(offer.gp, 4);
    cr_assert_eq(offer.fixed, 3);
    cr_assert_eq(offer.gp_width, 48);
    cr_assert_eq(offer.fixed_width, 48);
    cr_assert_eq(vpmu_offer_intel(version_1).fixed, 0);
    cr_assert_eq(vpmu_offer_intel(no_leaf).gp, 0);

    offer = vpmu_offer_amd(EXT_CORE, perfmon_v2);
    cr_assert_eq(offer.vendor, VPMU_VENDOR_AMD);
    cr_assert_eq(offer.version, VPMU_AMD_PERFMON_V2);
    cr_assert_eq(offer.gp, 6);
    cr_assert_eq(offer.fixed, 0);
    cr_assert_eq(vpmu_offer_amd(EXT_CORE, no_leaf).version, VPMU_AMD_EXT_CORE);
    cr_assert_eq(vpmu_offer_amd(EXT_CORE, no_leaf).gp, 6);
    cr_assert_eq(vpmu_offer_amd(0, perfmon_v2).version, VPMU_AMD_LEGACY);
    cr_assert_eq(vpmu_offer_amd(0, no_leaf).gp, 4);
}

/* More than any processor has is as much as the model can show. */
Test(filter_cut, offers_are_bounded)
{
    static const uint32_t ones[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    struct vpmu_config offer = vpmu_offer_intel(ones);

    cr_assert_eq(offer.version, 5);
    cr_assert_eq(offer.gp, VPMU_GP_MAX);
    cr_assert_eq(offer.fixed, VPMU_FIXED_MAX);
    cr_assert_eq(vpmu_offer_amd(UINT32_MAX, ones).gp, VPMU_GP_MAX);
}

Test(filter_cut, intel)
{
    struct vpmu_config offer = vpmu_offer_intel(skylake), granted;

    for (unsigned gp = 1; gp <= 9; gp++) {
        for (unsigned fixed = 0; fixed <= 5; fixed++) {
            cr_assert(vpmu_cut(&offer, gp, fixed, &granted));
            cr_assert_eq(granted.gp, gp < 4 ? gp : 4);
            cr_assert_eq(granted.fixed, fixed < 3 ? fixed : 3);
            cr_assert_eq(granted.version, 2);
            cr_assert_null(vpmu_config_error(&granted));
        }
    }
    cr_assert_not(vpmu_cut(&offer, 0, 3, &granted));
    offer = vpmu_offer_intel(no_leaf);
    cr_assert_not(vpmu_cut(&offer, 4, 3, &granted));
}

Test(filter_cut, amd)
{
    static const struct {
        uint32_t ecx;
        unsigned most;
        unsigned asked;
        int gp, version; /* gp 0: none can be */
    } rows[] = {
        {EXT_CORE, 6, 6, 6, VPMU_AMD_PERFMON_V2},
        {EXT_CORE, 6, 9, 6, VPMU_AMD_PERFMON_V2},
        {EXT_CORE, 8, 7, 7, VPMU_AMD_PERFMON_V2},
        {EXT_CORE, 6, 5, 4, VPMU_AMD_LEGACY},
        {EXT_CORE, 6, 4, 4, VPMU_AMD_LEGACY},
        {EXT_CORE, 6, 3, 0, 0},
        {EXT_CORE, 0, 6, 6, VPMU_AMD_EXT_CORE},
        {EXT_CORE, 0, 8, 6, VPMU_AMD_EXT_CORE},
        {EXT_CORE, 0, 4, 4, VPMU_AMD_LEGACY},
        {0, 0, 6, 4, VPMU_AMD_LEGACY},
        {0, 0, 4, 4, VPMU_AMD_LEGACY},
        {0, 0, 0, 0, 0},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t leaf[4] = {rows[i].most != 0, rows[i].most, 0, 0};
        struct vpmu_config offer = vpmu_offer_amd(rows[i].ecx, leaf), granted;

        cr_assert_eq(vpmu_cut(&offer, rows[i].asked, 0, &granted), rows[i].gp != 0, "row %u", i);
        if (rows[i].gp) {
            cr_assert_eq(granted.gp, rows[i].gp, "row %u: %u", i, granted.gp);
            cr_assert_eq(granted.version, rows[i].version, "row %u: %u", i, granted.version);
            cr_assert_null(vpmu_config_error(&granted));
        }
    }
}

static void check_0a(const uint32_t before[4], unsigned gp, unsigned fixed,
                     const struct vpmu_policy *policy, const uint32_t after[4])
{
    struct vpmu_config offer = vpmu_offer_intel(before), granted;
    uint32_t leaf[4] = {before[0], before[1], before[2], before[3]};

    cr_assert(vpmu_cut(&offer, gp, fixed, &granted));
    vpmu_cut_0a(&granted, policy, leaf);
    for (unsigned r = 0; r < 4; r++) {
        cr_assert_eq(leaf[r], after[r], "%u + %u, register %u: %#x", gp, fixed, r, leaf[r]);
    }
}

Test(filter_cut, leaf_0a)
{
    const struct vpmu_policy *architectural =
        shared_policy(VPMU_VENDOR_INTEL, VPMU_EVENTS_ARCHITECTURAL);
    struct vpmu_policy no_branches = policy_of(VPMU_VENDOR_INTEL, VPMU_EVENTS_ANY);

    deny(&no_branches, "branches");
    deny(&no_branches, "slots");
    check_0a(skylake, 4, 3, NULL, skylake);
    check_0a(skylake, 2, 1, NULL, (uint32_t[]){0x07300202, 0, 0, 0x601});
    check_0a(skylake, 2, 0, NULL, (uint32_t[]){0x07300202, 0, 0, 0});
    check_0a(skylake, 4, 3, architectural, (uint32_t[]){0x07300402, 0x18, 0, 0x603});
    check_0a(skylake, 4, 3, &no_branches, (uint32_t[]){0x07300402, 0x20, 0, 0x603});
    check_0a(version_5, 3, 2, &no_branches, (uint32_t[]){0x08300305, 0xA0, 3, 0x8602});
    check_0a(version_5, 8, 0, NULL, (uint32_t[]){0x08300805, 0, 0, 0x8000});
}

/* The leaf is Intel's: AMD's processors have zeros there. */
Test(filter_cut, leaf_0a_of_amd)
{
    struct vpmu_config granted = vpmu_offer_amd(EXT_CORE, perfmon_v2);
    struct vpmu_policy policy = policy_of(VPMU_VENDOR_AMD, VPMU_EVENTS_ARCHITECTURAL);
    uint32_t leaf[4] = {0};

    vpmu_cut_0a(&granted, &policy, leaf);
    cr_assert_eq(leaf[0] | leaf[1] | leaf[2] | leaf[3], 0);
}
