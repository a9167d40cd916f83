/* SPDX-License-Identifier: BSD-3-Clause */
/* What is answered in each situation, as a table: what stands, what is asked, the whole answer. */
#include "vpmu/admission.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define BUSY VPMU_STATUS_DEVICE_BUSY
#define INSUFFICIENT VPMU_STATUS_INSUFFICIENT_RESOURCES
#define INVALID VPMU_STATUS_INVALID_PARAMETER

#define CPU VPMU_BOUND_CPU
#define VCPU VPMU_BOUND_VCPU
#define YIELDS VPMU_CLAIM_YIELDS
#define EXCLUDES VPMU_CLAIM_EXCLUDES_GUESTS
#define OBSERVED VPMU_CLAIM_OBSERVED

/* A hybrid host: 0 and 1 are large cores, 2 is a small one, 3 is offline. */
static const struct vpmu_host_processor hybrid[] = {
    {{8, 0xF}, true},
    {{8, 0xF}, true},
    {{6, 0x7}, true},
    {{8, 0xF}, false},
};

#define LARGE 0x3
#define ALL 0 /* no set */
#define NONE VPMU_NOT_SET

struct asked {
    const char *name; /* NULL: there is none */
    uint8_t binding, flags;
    uint64_t set; /* ALL: NULL is given */
    struct vpmu_amount need, least, beside;
};

static const struct row {
    const char *label;
    bool mediated;
    struct asked standing[3];
    struct asked claim;
    vpmu_status status;
    enum vpmu_reason reason;
    struct vpmu_amount granted;
    uint32_t processor;
    struct vpmu_amount need, capacity, used;
    const char *name; /* of what is in the way */
    const char *text;
} rows[] = {
    {.label = "an empty host gives a VM what the smallest core has",
     .claim = {"vm", VCPU, 0, ALL, {6, 7}, {6, 7}},
     .granted = {6, 7},
     .processor = NONE,
     .text = "granted"},
    {.label = "VMs do not add up",
     .standing = {{"a", VCPU, 0, ALL, {6, 7}, {6, 7}}, {"b", VCPU, 0, ALL, {6, 7}, {6, 7}}},
     .claim = {"vm", VCPU, 0, ALL, {6, 7}, {6, 7}},
     .granted = {6, 7},
     .processor = NONE,
     .text = "granted"},
    {.label = "a small core does not have so many",
     .claim = {"vm", VCPU, 0, ALL, {8, 0}, {8, 0}},
     .status = INSUFFICIENT,
     .reason = VPMU_REASON_ABSENT,
     .processor = 2,
     .need = {8, 0},
     .capacity = {6, 7},
     .text = "processor 2: 8 GP wanted, it has 6"},
    {.label = "nor such a fixed counter",
     .claim = {"vm", VCPU, 0, ALL, {2, 0xF}, {2, 0xF}},
     .status = INSUFFICIENT,
     .reason = VPMU_REASON_ABSENT,
     .processor = 2,
     .need = {2, 0xF},
     .capacity = {6, 7},
     .text = "processor 2: fixed 3 wanted, it has fixed 0-2"},
    {.label = "on the large cores alone it has",
     .claim = {"vm", VCPU, 0, LARGE, {8, 0xF}, {8, 0xF}},
     .granted = {8, 0xF},
     .processor = NONE,
     .text = "granted"},
    {.label = "an offline processor in a set does not matter",
     .claim = {"vm", VCPU, 0, 0xB, {8, 0xF}, {8, 0xF}},
     .granted = {8, 0xF},
     .processor = NONE,
     .text = "granted"},
    {.label = "what is beside takes room",
     .claim = {"vm", VCPU, 0, ALL, {4, 0}, {4, 0}, {3, 0}},
     .status = INSUFFICIENT,
     .reason = VPMU_REASON_ABSENT,
     .processor = 2,
     .need = {7, 0},
     .capacity = {6, 7},
     .text = "processor 2: 7 GP wanted, it has 6"},
    {.label = "reduced to what the smallest core has",
     .claim = {"vm", VCPU, 0, ALL, {8, 0xF}, {2, 1}},
     .reason = VPMU_REASON_REDUCED,
     .granted = {6, 7},
     .processor = 2,
     .need = {8, 0xF},
     .capacity = {6, 7},
     .text = "granted less: processor 2: 8 GP wanted, it has 6"},
    {.label = "reduced beside a watchdog, what is beside not counted as granted",
     .standing = {{"nmi watchdog", CPU, OBSERVED, ALL, {0, 2}, {0, 2}},
                  {"agent", CPU, 0, 1, {2, 0}, {2, 0}}},
     .claim = {"vm", VCPU, 0, LARGE, {8, 7}, {2, 1}, {1, 0}},
     .reason = VPMU_REASON_REDUCED,
     .granted = {5, 5},
     .processor = 0,
     .need = {9, 7},
     .capacity = {8, 0xF},
     .text = "granted less: processor 0: 9 GP wanted, it has 8"},
    {.label = "reduced beside an agent",
     .standing = {{"agent", CPU, 0, 2, {3, 0}, {3, 0}}},
     .claim = {"vm", VCPU, 0, LARGE, {8, 0}, {0, 0}},
     .reason = VPMU_REASON_REDUCED,
     .granted = {5, 0},
     .processor = 1,
     .need = {8, 0},
     .capacity = {8, 0xF},
     .used = {3, 0},
     .name = "agent",
     .text = "granted less: processor 1: 8 GP wanted, 3 of 8 taken; most by agent"},
    {.label = "CPU-wide leases add up; the largest is named",
     .standing = {{"one", CPU, 0, 2, {2, 0}, {2, 0}},
                  {"three", CPU, 0, 2, {3, 0}, {3, 0}},
                  {"elsewhere", CPU, 0, 1, {5, 0}, {5, 0}}},
     .claim = {"vm", VCPU, 0, 2, {4, 0}, {4, 0}},
     .status = INSUFFICIENT,
     .reason = VPMU_REASON_TAKEN,
     .processor = 1,
     .need = {4, 0},
     .capacity = {8, 0xF},
     .used = {5, 0},
     .name = "three",
     .text = "processor 1: 4 GP wanted, 5 of 8 taken; most by three"},
    {.label = "of equal ones the oldest is named",
     .standing = {{"old", CPU, 0, 2, {3, 0}, {3, 0}}, {"new", CPU, 0, 2, {3, 0}, {3, 0}}},
     .claim = {"vm", VCPU, 0, LARGE, {4, 0}, {3, 0}},
     .status = INSUFFICIENT,
     .reason = VPMU_REASON_TAKEN,
     .processor = 1,
     .need = {3, 0},
     .capacity = {8, 0xF},
     .used = {6, 0},
     .name = "old",
     .text = "processor 1: 3 GP wanted, 6 of 8 taken; most by old"},
    {.label = "a fixed counter is had once",
     .standing = {{"nmi watchdog", CPU, OBSERVED, ALL, {0, 2}, {0, 2}}},
     .claim = {"vm", VCPU, 0, ALL, {4, 7}, {4, 7}},
     .status = INSUFFICIENT,
     .reason = VPMU_REASON_TAKEN,
     .processor = 0,
     .need = {4, 7},
     .capacity = {8, 0xF},
     .used = {0, 2},
     .name = "nmi watchdog",
     .text = "processor 0: fixed 1 wanted, taken; most by nmi watchdog"},
    {.label = "so it is between CPU-wide leases, that exclude guests too",
     .standing = {{"agent", CPU, EXCLUDES, 4, {0, 5}, {0, 5}}},
     .claim = {"perf", CPU, EXCLUDES, ALL, {0, 7}, {0, 7}},
     .status = INSUFFICIENT,
     .reason = VPMU_REASON_TAKEN,
     .processor = 2,
     .need = {0, 7},
     .capacity = {6, 7},
     .used = {0, 5},
     .name = "agent",
     .text = "processor 2: fixed 0,2 wanted, taken; most by agent"},
    {.label = "a CPU-wide lease has what a VM leaves",
     .standing = {{"vm", VCPU, 0, ALL, {4, 1}, {4, 1}}},
     .claim = {"perf", CPU, 0, ALL, {2, 6}, {2, 6}},
     .granted = {2, 6},
     .processor = NONE,
     .text = "granted"},
    {.label = "it is told what is left",
     .standing = {{"vm", VCPU, 0, LARGE, {5, 1}, {5, 1}}},
     .claim = {"perf", CPU, 0, ALL, {4, 0}, {1, 0}},
     .reason = VPMU_REASON_REDUCED,
     .granted = {3, 0},
     .processor = 0,
     .need = {4, 0},
     .capacity = {8, 0xF},
     .used = {5, 1},
     .name = "vm",
     .text = "granted less: processor 0: 4 GP wanted, 5 of 8 taken; most by vm"},
    {.label = "it may not starve a VM, the largest is named",
     .standing = {{"small", VCPU, 0, ALL, {4, 0}, {4, 0}},
                  {"large", VCPU, 0, 1, {6, 0}, {6, 0}},
                  {"agent", CPU, 0, 1, {1, 0}, {1, 0}}},
     .claim = {"perf", CPU, 0, ALL, {2, 0}, {2, 0}},
     .status = INSUFFICIENT,
     .reason = VPMU_REASON_STARVES,
     .processor = 0,
     .need = {2, 0},
     .capacity = {8, 0xF},
     .used = {7, 0},
     .name = "large",
     .text = "processor 0: 2 GP wanted, 7 of 8 taken; it would starve large"},
    {.label = "what is beside a VM is not starved either",
     .standing = {{"vm", VCPU, 0, 4, {3, 0}, {3, 0}, {2, 0}}},
     .claim = {"perf", CPU, 0, 4, {2, 0}, {2, 0}},
     .status = INSUFFICIENT,
     .reason = VPMU_REASON_STARVES,
     .processor = 2,
     .need = {2, 0},
     .capacity = {6, 7},
     .used = {5, 0},
     .name = "vm",
     .text = "processor 2: 2 GP wanted, 5 of 6 taken; it would starve vm"},
    {.label = "a VM that yields gives way",
     .standing = {{"firm", VCPU, 0, ALL, {2, 0}, {2, 0}},
                  {"batch", VCPU, YIELDS, 2, {6, 1}, {6, 1}}},
     .claim = {"perf", CPU, 0, ALL, {4, 0}, {4, 0}},
     .status = BUSY,
     .reason = VPMU_REASON_YIELDING,
     .processor = 1,
     .need = {4, 0},
     .capacity = {8, 0xF},
     .used = {6, 1},
     .name = "batch",
     .text = "processor 1: 4 GP wanted, 6 of 8 taken; batch gives way"},
    {.label = "that does not help where a firm one is in the way as well",
     .standing = {{"batch", VCPU, YIELDS, 1, {6, 0}, {6, 0}}, {"firm", VCPU, 0, 2, {6, 0}, {6, 0}}},
     .claim = {"perf", CPU, 0, LARGE, {4, 0}, {4, 0}},
     .status = INSUFFICIENT,
     .reason = VPMU_REASON_STARVES,
     .processor = 1,
     .need = {4, 0},
     .capacity = {8, 0xF},
     .used = {6, 0},
     .name = "firm",
     .text = "processor 1: 4 GP wanted, 6 of 8 taken; it would starve firm"},
    {.label = "a fixed counter of a VM that yields",
     .standing = {{"batch", VCPU, YIELDS, ALL, {0, 1}, {0, 1}}},
     .claim = {"perf", CPU, 0, ALL, {2, 1}, {2, 1}},
     .status = BUSY,
     .reason = VPMU_REASON_YIELDING,
     .processor = 0,
     .need = {2, 1},
     .capacity = {8, 0xF},
     .used = {0, 1},
     .name = "batch",
     .text = "processor 0: fixed 0 wanted, taken; batch gives way"},
    {.label = "observed leases are never refused",
     .standing = {{"vm", VCPU, 0, ALL, {6, 7}, {6, 7}}},
     .claim = {"agent", CPU, OBSERVED, ALL, {32, 0xFF}, {32, 0xFF}},
     .granted = {32, 0xFF},
     .processor = NONE,
     .text = "granted"},
    {.label = "where they have all, what wants no GP counter fits",
     .standing = {{"agent", CPU, OBSERVED, ALL, {32, 0}, {32, 0}}},
     .claim = {"vm", VCPU, 0, ALL, {0, 7}, {0, 7}},
     .granted = {0, 7},
     .processor = NONE,
     .text = "granted"},
    {.label = "mediated: a VM has all, also beside a CPU-wide lease that excludes guests",
     .mediated = true,
     .standing = {{"perf", CPU, EXCLUDES, ALL, {6, 7}, {6, 7}}},
     .claim = {"vm", VCPU, 0, ALL, {6, 7}, {6, 7}},
     .granted = {6, 7},
     .processor = NONE,
     .text = "granted"},
    {.label = "mediated: what counts guests anywhere keeps VMs out everywhere",
     .mediated = true,
     .standing = {{"agent", CPU, 0, 1, {1, 0}, {1, 0}}},
     .claim = {"vm", VCPU, 0, 4, {2, 0}, {2, 0}},
     .status = INSUFFICIENT,
     .reason = VPMU_REASON_GUEST_EVENTS,
     .processor = NONE,
     .need = {2, 0},
     .name = "agent",
     .text = "agent counts while guests run, so no VM can have the PMU"},
    {.label = "mediated: and the other way round",
     .mediated = true,
     .standing = {{"batch", VCPU, YIELDS, 1, {8, 0}, {8, 0}}, {"vm", VCPU, 0, 1, {2, 0}, {2, 0}}},
     .claim = {"perf", CPU, 0, 4, {1, 0}, {1, 0}},
     .status = INSUFFICIENT,
     .reason = VPMU_REASON_GUESTS,
     .processor = NONE,
     .need = {1, 0},
     .name = "vm",
     .text = "vm has the PMU while it runs; exclude guests from the count"},
    {.label = "mediated: VMs that yield give way",
     .mediated = true,
     .standing = {{"batch", VCPU, YIELDS, 1, {2, 0}, {2, 0}}},
     .claim = {"perf", CPU, 0, 4, {1, 0}, {1, 0}},
     .status = BUSY,
     .reason = VPMU_REASON_YIELDING,
     .processor = NONE,
     .need = {1, 0},
     .name = "batch",
     .text = "batch has the PMU while it runs; it gives way"},
    {.label = "mediated: CPU-wide leases that exclude guests are free",
     .mediated = true,
     .standing = {{"vm", VCPU, 0, ALL, {6, 7}, {6, 7}}},
     .claim = {"perf", CPU, EXCLUDES, ALL, {6, 7}, {6, 7}},
     .granted = {6, 7},
     .processor = NONE,
     .text = "granted"},
    {.label = "mediated: a VM that accepts nothing has nothing",
     .mediated = true,
     .standing = {{"agent", CPU, 0, 1, {1, 0}, {1, 0}}},
     .claim = {"vm", VCPU, 0, ALL, {2, 0}, {0, 0}},
     .reason = VPMU_REASON_REDUCED,
     .processor = NONE,
     .need = {2, 0},
     .name = "agent",
     .text = "granted nothing: agent keeps it from the PMU"},
    {.label = "only an offline processor is named",
     .claim = {"vm", VCPU, 0, 8, {1, 0}, {1, 0}},
     .status = INVALID,
     .reason = VPMU_REASON_NO_PROCESSOR,
     .processor = NONE,
     .text = "no processor is named that is online"},
    {.label = "one that is not there",
     .claim = {"vm", VCPU, 0, 0x21, {1, 0}, {1, 0}},
     .status = INVALID,
     .reason = VPMU_REASON_NO_PROCESSOR,
     .processor = 5,
     .text = "there is no processor 5"},
    {.label = "more than there can be, observed or not",
     .claim = {"vm", VCPU, OBSERVED, ALL, {33, 0}, {0, 0}},
     .status = INVALID,
     .reason = VPMU_REASON_BAD_CLAIM,
     .processor = NONE,
     .text = "the claim has a field out of range"},
    {.label = "least above need",
     .claim = {"vm", VCPU, 0, ALL, {3, 1}, {3, 2}},
     .status = INVALID,
     .reason = VPMU_REASON_BAD_CLAIM,
     .processor = NONE,
     .text = "the claim has a field out of range"},
    {.label = "a CPU-wide lease that yields",
     .claim = {"perf", CPU, YIELDS, ALL, {1, 0}, {1, 0}},
     .status = INVALID,
     .reason = VPMU_REASON_BAD_CLAIM,
     .processor = NONE,
     .text = "the claim has a field out of range"},
    {.label = "a VM that excludes guests",
     .claim = {"vm", VCPU, EXCLUDES, ALL, {1, 0}, {1, 0}},
     .status = INVALID,
     .reason = VPMU_REASON_BAD_CLAIM,
     .processor = NONE,
     .text = "the claim has a field out of range"},
    {.label = "beside a CPU-wide lease",
     .claim = {"perf", CPU, 0, ALL, {1, 0}, {1, 0}, {1, 0}},
     .status = INVALID,
     .reason = VPMU_REASON_BAD_CLAIM,
     .processor = NONE,
     .text = "the claim has a field out of range"},
    {.label = "a fixed counter both needed and beside",
     .claim = {"vm", VCPU, 0, ALL, {1, 3}, {1, 3}, {0, 2}},
     .status = INVALID,
     .reason = VPMU_REASON_BAD_CLAIM,
     .processor = NONE,
     .text = "the claim has a field out of range"},
    {.label = "neither kind",
     .claim = {"vm", 2, 0, ALL, {1, 0}, {1, 0}},
     .status = INVALID,
     .reason = VPMU_REASON_BAD_CLAIM,
     .processor = NONE,
     .text = "the claim has a field out of range"},
};

static struct vpmu_admission *host_for(uint32_t leases, bool mediated)
{
    struct vpmu_admission_config config = {hybrid, 4, leases, mediated};
    size_t size = vpmu_admission_size(&config);
    struct vpmu_admission *admission = vpmu_admission_init(malloc(size), size, &config);

    cr_assert_not_null(admission);
    return admission;
}

static vpmu_lease lease_for(struct vpmu_admission *admission, const struct asked *asked,
                            struct vpmu_amount *granted, struct vpmu_answer *answer)
{
    struct vpmu_claim claim = {
        .binding = asked->binding,
        .flags = asked->flags,
        .need = asked->need,
        .least = asked->least,
        .beside = asked->beside,
        .processors = asked->set == ALL ? NULL : &asked->set,
        .words = asked->set == ALL ? 0 : 1,
        .holder = (uint64_t)asked->name[0],
        .name = asked->name,
    };
    vpmu_lease lease;
    vpmu_status status = vpmu_admission_acquire(admission, &claim, &lease, granted, answer);

    cr_expect_eq(status, answer->status);
    cr_expect_eq(lease == VPMU_LEASE_NONE, status != VPMU_STATUS_SUCCESS);
    return lease;
}

static void same_amount(const struct row *row, const char *what, struct vpmu_amount got,
                        struct vpmu_amount wanted)
{
    cr_expect(got.gp == wanted.gp && got.fixed == wanted.fixed,
              "%s: %s is %u GP, fixed %#x, not %u, %#x", row->label, what, got.gp, got.fixed,
              wanted.gp, wanted.fixed);
}

static void same_lease(const struct row *row, const struct vpmu_answer *answer,
                       const vpmu_lease *standing)
{
    const char *name = row->name ? row->name : "";

    cr_expect_str_eq(answer->name, name, "%s: %s", row->label, answer->name);
    cr_expect_eq(answer->holder, (uint64_t)name[0], "%s: holder", row->label);
    cr_expect(row->name || answer->lease == VPMU_LEASE_NONE, "%s: a lease is named", row->label);
    for (size_t i = 0; i < 3 && row->standing[i].name; i++)
        cr_expect_eq(answer->lease == standing[i], strcmp(row->standing[i].name, name) == 0,
                     "%s: lease", row->label);
}

static void check(const struct row *row)
{
    struct vpmu_admission *admission = host_for(8, row->mediated);
    struct vpmu_answer answer;
    struct vpmu_amount granted;
    vpmu_lease standing[3];
    char text[128];

    for (size_t i = 0; i < 3 && row->standing[i].name; i++) {
        standing[i] = lease_for(admission, &row->standing[i], &granted, &answer);
        cr_assert_neq(standing[i], VPMU_LEASE_NONE, "%s: %zu", row->label, i);
    }
    lease_for(admission, &row->claim, &granted, &answer);
    cr_expect_eq(answer.status, row->status, "%s: status %#x", row->label, answer.status);
    cr_expect_eq(answer.reason, row->reason, "%s: reason %d", row->label, answer.reason);
    cr_expect_eq(answer.processor, row->processor, "%s: processor %u", row->label,
                 answer.processor);
    same_amount(row, "granted", granted, row->granted);
    same_amount(row, "need", answer.need, row->need);
    same_amount(row, "capacity", answer.capacity, row->capacity);
    same_amount(row, "used", answer.used, row->used);
    same_lease(row, &answer, standing);
    vpmu_answer_text(&answer, text, sizeof(text));
    cr_expect_str_eq(text, row->text, "%s: %s", row->label, text);
    cr_expect_leq(strlen(text), 80, "%s: %s", row->label, text);
    free(admission);
}

Test(admission, answers)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check(&rows[i]);
}

/* ---- What takes more than one step ---- */

static const struct asked perf_2 = {"perf", CPU, 0, ALL, {2, 0}, {2, 0}, {0, 0}};
static const struct asked vm_2 = {"vm", VCPU, 0, ALL, {2, 1}, {2, 1}, {0, 0}};
static const struct asked batch_6 = {"batch", VCPU, YIELDS, LARGE, {6, 0}, {6, 0}, {0, 0}};

Test(admission, no_room_and_bad_handles)
{
    struct vpmu_admission *admission = host_for(1, false);
    struct vpmu_admission_lease info;
    struct vpmu_answer answer;
    struct vpmu_amount granted;
    vpmu_lease lease = lease_for(admission, &vm_2, &granted, &answer);
    char text[80];

    cr_expect_eq(lease_for(admission, &vm_2, &granted, &answer), VPMU_LEASE_NONE);
    cr_expect_eq(answer.status, INSUFFICIENT);
    cr_expect_eq(answer.reason, VPMU_REASON_NO_ROOM);
    cr_expect_eq(vpmu_admission_release(admission, lease, NULL), VPMU_STATUS_SUCCESS);
    cr_expect_eq(vpmu_admission_release(admission, lease, &answer), INVALID);
    cr_expect_eq(answer.reason, VPMU_REASON_BAD_HANDLE);
    cr_expect_eq(answer.lease, lease);
    vpmu_answer_text(&answer, text, sizeof(text));
    cr_expect_str_eq(text, "0x100000000 is not a live lease");
    cr_expect_neq(lease_for(admission, &vm_2, &granted, &answer), lease, "a handle came twice");
    cr_expect_eq(vpmu_admission_resize(admission, lease, granted, &answer), INVALID);
    cr_expect_eq(vpmu_admission_revoke(admission, lease, &answer), INVALID);
    cr_expect_eq(vpmu_admission_lease(admission, lease, &info), INVALID);
    free(admission);
}

Test(admission, resize)
{
    struct vpmu_admission *admission = host_for(4, false);
    struct vpmu_admission_lease info;
    struct vpmu_answer answer;
    struct vpmu_amount granted;
    vpmu_lease vm = lease_for(admission, &vm_2, &granted, &answer);
    vpmu_lease perf = lease_for(admission, &perf_2, &granted, &answer);

    cr_expect_eq(vpmu_admission_resize(admission, vm, (struct vpmu_amount){5, 1}, &answer),
                 INSUFFICIENT);
    cr_expect_eq(answer.reason, VPMU_REASON_TAKEN);
    cr_expect_eq(answer.lease, perf);
    cr_expect_eq(answer.processor, 2);
    vpmu_admission_lease(admission, vm, &info);
    cr_expect_eq(info.granted.gp, 2, "a refused resize changed what it had");
    cr_expect_eq(vpmu_admission_resize(admission, vm, (struct vpmu_amount){4, 1}, &answer),
                 VPMU_STATUS_SUCCESS);
    cr_expect_eq(vpmu_admission_resize(admission, perf, (struct vpmu_amount){3, 0}, &answer),
                 INSUFFICIENT);
    cr_expect_eq(answer.reason, VPMU_REASON_STARVES);
    cr_expect_eq(answer.used.gp, 4, "its own part was in its way");
    cr_expect_eq(vpmu_admission_resize(admission, vm, (struct vpmu_amount){3, 0}, &answer),
                 VPMU_STATUS_SUCCESS);
    cr_expect_eq(vpmu_admission_resize(admission, perf, (struct vpmu_amount){3, 1}, &answer),
                 VPMU_STATUS_SUCCESS);
    cr_expect_eq(vpmu_admission_resize(admission, perf, (struct vpmu_amount){33, 1}, &answer),
                 INVALID);
    cr_expect_eq(answer.reason, VPMU_REASON_BAD_CLAIM);
    vpmu_admission_revoke(admission, vm, &answer);
    cr_expect_eq(vpmu_admission_resize(admission, vm, (struct vpmu_amount){0, 0}, &answer),
                 INVALID);
    cr_expect_eq(answer.reason, VPMU_REASON_BAD_HANDLE);
    free(admission);
}

Test(admission, those_that_yield_are_revoked_and_nothing_else)
{
    struct vpmu_admission *admission = host_for(8, false);
    const struct asked small = {"small", VCPU, YIELDS, ALL, {1, 0}, {1, 0}, {0, 0}};
    const struct vpmu_claim claim = {.need = {4, 0}, .least = {4, 0}, .name = "perf"};
    struct vpmu_admission_lease info;
    struct vpmu_admission_use use;
    struct vpmu_answer answer;
    struct vpmu_amount granted;
    vpmu_lease first = lease_for(admission, &batch_6, &granted, &answer);
    vpmu_lease kept = lease_for(admission, &small, &granted, &answer);
    vpmu_lease second = lease_for(admission, &batch_6, &granted, &answer);
    vpmu_lease lease;

    cr_expect_eq(vpmu_admission_acquire(admission, &claim, &lease, NULL, &answer), BUSY);
    cr_expect_eq(answer.lease, first);
    cr_expect_eq(vpmu_admission_yielding(admission, &claim, VPMU_LEASE_NONE), first);
    cr_expect_eq(vpmu_admission_yielding(admission, &claim, first), second);
    cr_expect_eq(vpmu_admission_yielding(admission, &claim, second), VPMU_LEASE_NONE);
    vpmu_admission_revoke(admission, first, &answer);
    vpmu_admission_revoke(admission, second, &answer);
    cr_expect_eq(vpmu_admission_acquire(admission, &claim, &lease, NULL, &answer),
                 VPMU_STATUS_SUCCESS);
    cr_expect_eq(vpmu_admission_leases(admission), 4, "a revoked lease stays known");
    vpmu_admission_lease(admission, first, &info);
    cr_expect(info.revoked && info.granted.gp == 0 && info.asked.gp == 6);
    vpmu_admission_use(admission, 0, &use);
    cr_expect(use.cpu_wide.gp == 4 && use.vcpu.gp == 1 && use.vms == 1);
    vpmu_admission_lease(admission, kept, &info);
    cr_expect_not(info.revoked);
    free(admission);
}

Test(admission, observed_leases_make_vms_short)
{
    struct vpmu_admission *admission = host_for(8, false);
    const struct asked agent = {"agent", CPU, OBSERVED, 2, {5, 0}, {5, 0}, {0, 0}};
    struct vpmu_admission_use use;
    struct vpmu_answer answer;
    struct vpmu_amount granted;
    vpmu_lease vm = lease_for(admission, &vm_2, &granted, &answer);
    vpmu_lease batch = lease_for(admission, &batch_6, &granted, &answer);

    cr_expect_not(vpmu_admission_short(admission, batch, &answer));
    vpmu_lease there = lease_for(admission, &agent, &granted, &answer);
    cr_expect(vpmu_admission_short(admission, batch, &answer));
    cr_expect_eq(answer.status, INSUFFICIENT);
    cr_expect_eq(answer.reason, VPMU_REASON_TAKEN);
    cr_expect_eq(answer.lease, there);
    cr_expect_eq(answer.processor, 1);
    cr_expect_eq(answer.used.gp, 5);
    cr_expect_not(vpmu_admission_short(admission, vm, &answer), "it still fits");
    cr_expect_not(vpmu_admission_short(admission, there, &answer), "it is no VM");
    vpmu_admission_use(admission, 1, &use);
    cr_expect(use.cpu_wide.gp == 5 && use.vcpu.gp == 6 && use.vcpu.fixed == 1 && use.vms == 2);
    vpmu_admission_release(admission, there, &answer);
    cr_expect_not(vpmu_admission_short(admission, batch, &answer));
    free(admission);
}

Test(admission, sums_of_observed_leases_do_not_wrap)
{
    enum { LEASES = 3000 };
    struct vpmu_admission *admission = host_for(LEASES, false);
    const struct asked agent = {"agent", CPU, OBSERVED, ALL, {32, 0}, {32, 0}, {0, 0}};
    struct vpmu_admission_use use;
    struct vpmu_answer answer;
    struct vpmu_amount granted;

    for (int i = 0; i < LEASES - 1; i++)
        lease_for(admission, &agent, &granted, &answer);
    vpmu_admission_use(admission, 0, &use);
    cr_expect_eq(use.cpu_wide.gp, UINT16_MAX);
    cr_expect_eq(lease_for(admission, &vm_2, &granted, &answer), VPMU_LEASE_NONE);
    for (vpmu_lease lease; (lease = vpmu_admission_next(admission, VPMU_LEASE_NONE));)
        vpmu_admission_release(admission, lease, NULL);
    vpmu_admission_use(admission, 0, &use);
    cr_expect_eq(use.cpu_wide.gp, 0);
    cr_expect_neq(lease_for(admission, &vm_2, &granted, &answer), VPMU_LEASE_NONE);
    free(admission);
}

/* "ü" is two bytes (UTF-8); its first one is the last that fits. */
Test(admission, long_names_are_cut_between_characters)
{
    struct vpmu_admission *admission = host_for(1, false);
    char name[80] = "";
    struct asked vm = {name, VCPU, 0, ALL, {1, 0}, {1, 0}, {0, 0}};
    struct vpmu_admission_lease info;
    struct vpmu_answer answer;
    struct vpmu_amount granted;

    memset(name, 'n', VPMU_ADMISSION_NAME - 2);
    memcpy(name + VPMU_ADMISSION_NAME - 2, "\xC3\xBC-vm", 6);
    vpmu_lease lease = lease_for(admission, &vm, &granted, &answer);
    vpmu_admission_lease(admission, lease, &info);
    cr_expect_eq(strlen(info.name), VPMU_ADMISSION_NAME - 2);
    free(admission);
}

Test(admission, texts_are_cut_and_counted)
{
    const struct vpmu_answer answer = {.reason = VPMU_REASON_NO_ROOM};
    char text[8] = "xxxxxxx";

    cr_expect_eq(vpmu_answer_text(&answer, text, 6), 40);
    cr_expect_str_eq(text, "there");
    cr_expect_eq(vpmu_answer_text(&answer, NULL, 0), 40);
}

Test(admission, configurations_out_of_range)
{
    static const struct vpmu_host_processor large = {{33, 0}, true};
    static const struct vpmu_admission_config bad[] = {
        {NULL, 1, 1, false},
        {hybrid, 0, 1, false},
        {hybrid, VPMU_ADMISSION_PROCESSORS_MAX + 1, 1, false},
        {hybrid, 4, 0, false},
        {hybrid, 4, VPMU_LEASES_MAX + 1, false},
        {&large, 1, 1, false},
    };
    static uint64_t memory[4096];
    const struct vpmu_admission_config good = {hybrid, 4, 1, false};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_eq(vpmu_admission_size(&bad[i]), 0, "%zu", i);
        cr_expect_null(vpmu_admission_init(memory, sizeof(memory), &bad[i]), "%zu", i);
    }
    cr_expect_null(vpmu_admission_init(memory, vpmu_admission_size(&good) - 1, &good));
    cr_expect_null(vpmu_admission_init(NULL, sizeof(memory), &good));
    cr_expect_not_null(vpmu_admission_init(memory, vpmu_admission_size(&good), &good));
}
