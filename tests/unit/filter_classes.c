// SPDX-License-Identifier: BSD-3-Clause
/*
 * The classes, event by event: what the vendors' lists have, under their names, and the lowest
 * class that may count it. Written from the lists, not from the rows.
 */
#include "filter_test.h"

enum { NEVER, ARCHITECTURAL, STANDARD, ENHANCED };

struct documented {
    const char *name;
    uint32_t code;
    int from;
};

static const struct documented intel[] = {
    /* SDM Vol. 3, table "Architectural Performance Events". */
    {"UnHalted Core Cycles", 0x003C, ARCHITECTURAL},
    {"Instruction Retired", 0x00C0, ARCHITECTURAL},
    {"UnHalted Reference Cycles", 0x013C, ARCHITECTURAL},
    {"LLC Reference", 0x4F2E, ENHANCED},
    {"LLC Misses", 0x412E, ENHANCED},
    {"Branch Instruction Retired", 0x00C4, ARCHITECTURAL},
    {"Branch Misses Retired", 0x00C5, ARCHITECTURAL},
    {"Topdown Slots", 0x01A4, ARCHITECTURAL},
    /* Skylake server. */
    {"LD_BLOCKS.STORE_FORWARD", 0x0203, STANDARD},
    {"DTLB_LOAD_MISSES.WALK_COMPLETED", 0x0E08, STANDARD},
    {"UOPS_ISSUED.ANY", 0x010E, STANDARD},
    {"L2_RQSTS.MISS", 0x3F24, STANDARD},
    {"L2_RQSTS.REFERENCES", 0xFF24, STANDARD},
    {"CORE_POWER.LVL2_TURBO_LICENSE", 0x2028, STANDARD},
    {"L1D_PEND_MISS.PENDING", 0x0148, STANDARD},
    {"OFFCORE_REQUESTS_OUTSTANDING.DEMAND_DATA_RD", 0x0160, ENHANCED},
    {"OFFCORE_REQUESTS_OUTSTANDING.L3_MISS_DEMAND_DATA_RD", 0x1060, ENHANCED},
    {"IDQ.DSB_UOPS", 0x0879, STANDARD},
    {"IDQ_UOPS_NOT_DELIVERED.CORE", 0x019C, STANDARD},
    {"CYCLE_ACTIVITY.STALLS_TOTAL", 0x04A3, STANDARD},
    {"CYCLE_ACTIVITY.STALLS_L2_MISS", 0x05A3, STANDARD},
    {"CYCLE_ACTIVITY.STALLS_L3_MISS", 0x06A3, ENHANCED},
    {"CYCLE_ACTIVITY.CYCLES_L3_MISS", 0x02A3, ENHANCED},
    {"CYCLE_ACTIVITY.STALLS_MEM_ANY", 0x14A3, STANDARD},
    {"OFFCORE_REQUESTS.L3_MISS_DEMAND_DATA_RD", 0x10B0, ENHANCED},
    {"UOPS_EXECUTED.THREAD", 0x01B1, STANDARD},
    {"OFFCORE_RESPONSE_0", 0x01B7, NEVER},
    {"OFFCORE_RESPONSE_1", 0x01BB, NEVER},
    {"INST_RETIRED.PREC_DIST", 0x01C0, STANDARD},
    {"BR_INST_RETIRED.CONDITIONAL", 0x01C4, STANDARD},
    {"BR_INST_RETIRED.NEAR_CALL", 0x02C4, STANDARD},
    {"FRONTEND_RETIRED", 0x01C6, NEVER},
    {"FP_ARITH_INST_RETIRED.512B_PACKED_SINGLE", 0x80C7, STANDARD},
    {"HW_INTERRUPTS.RECEIVED", 0x01CB, STANDARD},
    {"MEM_TRANS_RETIRED.LOAD_LATENCY_GT_4", 0x01CD, NEVER},
    {"MEM_INST_RETIRED.ALL_LOADS", 0x81D0, STANDARD},
    {"MEM_LOAD_RETIRED.L1_HIT", 0x01D1, STANDARD},
    {"MEM_LOAD_RETIRED.L2_HIT", 0x02D1, STANDARD},
    {"MEM_LOAD_RETIRED.L3_HIT", 0x04D1, ENHANCED},
    {"MEM_LOAD_RETIRED.L1_MISS", 0x08D1, STANDARD},
    {"MEM_LOAD_RETIRED.L2_MISS", 0x10D1, STANDARD},
    {"MEM_LOAD_RETIRED.L3_MISS", 0x20D1, ENHANCED},
    {"MEM_LOAD_RETIRED.FB_HIT", 0x40D1, STANDARD},
    {"MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM", 0x04D2, ENHANCED},
    {"MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM", 0x02D3, ENHANCED},
    {"CORE_SNOOP_RESPONSE.RSP_IHITI", 0x01EF, ENHANCED},
    {"L2_TRANS.L2_WB", 0x40F0, STANDARD},
    {"L2_LINES_IN.ALL", 0x1FF1, STANDARD},
    {"IDI_MISC.WB_UPGRADE", 0x02FE, ENHANCED},
    /* Ice Lake server. */
    {"BR_INST_RETIRED.COND", 0x11C4, STANDARD},
    {"MEM_LOAD_RETIRED.LOCAL_PMM", 0x80D1, ENHANCED},
    /* Sapphire Rapids server. */
    {"OFFCORE_REQUESTS.DEMAND_DATA_RD", 0x0121, ENHANCED},
    {"L2_LINES_OUT.NON_SILENT", 0x0226, STANDARD},
    {"OCR", 0x012A, NEVER},
    {"XQ.FULL_CYCLES", 0x012D, ENHANCED},
    {"MEM_STORE_RETIRED.L2_HIT", 0x0144, STANDARD},
    {"MEMORY_ACTIVITY.STALLS_L2_MISS", 0x0547, STANDARD},
    {"MEMORY_ACTIVITY.STALLS_L3_MISS", 0x0947, ENHANCED},
    {"AMX_OPS_RETIRED.INT8", 0x01CE, STANDARD},
    {"INT_VEC_RETIRED.256BIT", 0xACE7, STANDARD},
    /* Nobody's. */
    {"event select 0", 0x0100, NEVER},
    {"event select FF", 0x01FF, NEVER},
};

#define AMD_HIGH(select, mask) (((select) & 0xFF) | (mask) << 8 | (select) >> 8 << 16)

/* PPRs of families 17h and 19h. */
static const struct documented amd[] = {
    {"LsNotHaltedCyc", 0x0076, ARCHITECTURAL},
    {"ExRetInstr", 0x00C0, ARCHITECTURAL},
    {"ExRetBrn", 0x00C2, ARCHITECTURAL},
    {"ExRetBrnMisp", 0x00C3, ARCHITECTURAL},
    {"LsNotHaltedP0Cyc", AMD_HIGH(0x120, 1), ARCHITECTURAL},
    {"FpRetSseAvxOps.All", 0x0F03, STANDARD},
    {"FpDispFaults.YmmSpillFault", 0x080E, STANDARD},
    {"LsLocks.BusLock", 0x0125, STANDARD},
    {"LsSmiRx", 0x002B, STANDARD},
    {"LsIntTaken", 0x002C, STANDARD},
    {"LsMabAlloc", 0x7F41, STANDARD},
    {"LsDmndFillsFromSys.LclL2", 0x0143, STANDARD},
    {"LsDmndFillsFromSys.LocalCcx", 0x0243, ENHANCED},
    {"LsDmndFillsFromSys.DramIoFar", 0x4043, ENHANCED},
    {"LsAnyFillsFromSys.LclL2", 0x0144, STANDARD},
    {"LsAnyFillsFromSys.DramIoNear", 0x0844, ENHANCED},
    {"LsAnyFillsFromSys, all of it", 0xFF44, ENHANCED},
    {"LsL1DTlbMiss.All", 0xFF45, STANDARD},
    {"LsSwPfDcFills.LclL2", 0x0159, STANDARD},
    {"LsSwPfDcFills.DramIoFar", 0x4059, ENHANCED},
    {"LsHwPfDcFills.LclL2", 0x015A, STANDARD},
    {"LsHwPfDcFills.LocalCcx", 0x025A, ENHANCED},
    {"L2RequestG1.All", 0xFF60, STANDARD},
    {"L2CacheReqStat.IcFillMiss", 0x0164, STANDARD},
    {"L2PfHitL2", 0xFF70, STANDARD},
    {"L2PfMissL2HitL3", 0xFF71, ENHANCED},
    {"L2PfMissL2L3", 0xFF72, ENHANCED},
    {"LsTlbFlush", 0xFF78, STANDARD},
    {"IcCacheFillL2", 0x0082, STANDARD},
    {"IcCacheFillSys", 0x0083, ENHANCED},
    {"BpL1TlbMissL2TlbMiss", 0x0F85, STANDARD},
    {"DeOpQueueEmpty", 0x00A9, STANDARD},
    {"DeDisDispatchTokenStalls1", 0x01AE, STANDARD},
    {"ExRetOps", 0x00C1, STANDARD},
    {"ExRetBrnTkn", 0x00C4, STANDARD},
    {"ExRetBrnFar", 0x00C6, STANDARD},
    {"ExRetNearRet", 0x00C8, STANDARD},
    {"ExRetCond", 0x00D1, STANDARD},
    {"ExNoRetire.Empty", 0x01D6, STANDARD},
    {"IcTagHitMiss.IcMiss", AMD_HIGH(0x18E, 0x18), STANDARD},
    {"DeNoDispatchPerSlot.BackendStalls", AMD_HIGH(0x1A0, 0x1E), STANDARD},
    {"ExRetUcodeOps", AMD_HIGH(0x1C2, 0), STANDARD},
    {"ExRetMsprdBrnchInstrDirMsmtch", AMD_HIGH(0x1C7, 0), STANDARD},
    {"OpCacheHitMiss.Miss", AMD_HIGH(0x28F, 4), STANDARD},
    /* Another event select than that of the low eight bits. */
    {"PMCx176", AMD_HIGH(0x176, 0), NEVER},
    {"PMCx1C0", AMD_HIGH(0x1C0, 0), NEVER},
    {"PMCx020", 0x0020, NEVER},
    {"PMCxFFF", AMD_HIGH(0xFFF, 0), NEVER},
};

static void check(enum vpmu_vendor vendor, const struct documented *events, unsigned count)
{
    for (int class = ARCHITECTURAL; class <= ENHANCED; class ++) {
        struct vpmu_policy policy = policy_of(vendor, (enum vpmu_event_class) class);

        for (unsigned i = 0; i < count; i++) {
            bool expected = events[i].from && class >= events[i].from;

            cr_assert_eq(vpmu_policy_allows(&policy, events[i].code), expected,
                         "class %d, %s (%#x): %s", class, events[i].name, events[i].code,
                         expected ? "denied" : "allowed");
        }
    }
}

Test(filter_classes, intel)
{
    check(VPMU_VENDOR_INTEL, intel, sizeof(intel) / sizeof(intel[0]));
}

Test(filter_classes, amd)
{
    check(VPMU_VENDOR_AMD, amd, sizeof(amd) / sizeof(amd[0]));
}

/* A class has all that the one below it has. */
Test(filter_classes, are_nested)
{
    for (unsigned vendor = 0; vendor < 2; vendor++) {
        unsigned allowed[VPMU_EVENT_CLASSES] = {0};

        for (uint32_t code = 0; code < CODES; code++) {
            bool before = false;

            for (unsigned class = VPMU_EVENTS_ARCHITECTURAL; class < VPMU_EVENT_CLASSES; class ++) {
                struct vpmu_policy *policy = shared_policy(vendor, class);
                bool now = vpmu_policy_allows(policy, code);

                cr_assert(now || !before, "vendor %u, code %#x, class %u", vendor, code, class);
                allowed[class] += now;
                before = now;
            }
        }
        cr_assert_eq(allowed[VPMU_EVENTS_ARCHITECTURAL], vendor == VPMU_VENDOR_INTEL ? 6 : 5);
        cr_assert_lt(allowed[VPMU_EVENTS_ARCHITECTURAL], allowed[VPMU_EVENTS_STANDARD]);
        cr_assert_lt(allowed[VPMU_EVENTS_STANDARD], allowed[VPMU_EVENTS_ENHANCED]);
    }
}

Test(filter_classes, no_class_allows_everything)
{
    struct vpmu_policy policy = policy_of(VPMU_VENDOR_INTEL, VPMU_EVENTS_ANY);

    cr_assert(vpmu_policy_is_open(&policy));
    cr_assert(vpmu_policy_allows(&policy, 0x01B7));
    policy.event_class = VPMU_EVENTS_ENHANCED;
    cr_assert_not(vpmu_policy_is_open(&policy));
}

/* CPUID leaf 0AH speaks of events, which some processors' lists code in more than one way. */
Test(filter_classes, events)
{
    static const struct {
        enum vpmu_event event;
        enum vpmu_event_class from;
    } rows[] = {
        {VPMU_EVENT_CYCLES, VPMU_EVENTS_ARCHITECTURAL},
        {VPMU_EVENT_SLOTS, VPMU_EVENTS_ARCHITECTURAL},
        {VPMU_EVENT_BRANCH_MISSES, VPMU_EVENTS_ARCHITECTURAL},
        {VPMU_EVENT_COND_BRANCHES, VPMU_EVENTS_STANDARD},
        {VPMU_EVENT_LLC_MISSES, VPMU_EVENTS_ENHANCED},
        {VPMU_EVENT_LLC_REFERENCES, VPMU_EVENTS_ENHANCED},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned class = VPMU_EVENTS_ARCHITECTURAL; class < VPMU_EVENT_CLASSES; class ++) {
            cr_assert_eq(
                vpmu_policy_allows_event(shared_policy(VPMU_VENDOR_INTEL, class), rows[i].event),
                class >= rows[i].from, "event %d, class %u", (int)rows[i].event, class);
        }
    }
}
