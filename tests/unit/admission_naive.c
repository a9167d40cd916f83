/* SPDX-License-Identifier: BSD-3-Clause */
#include "admission_naive.h"

#include <stdio.h>
#include <string.h>

static const struct vpmu_amount nothing = {0};

static unsigned bits(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

static struct vpmu_amount has(const struct naive_lease *lease)
{
    if (lease->revoked)
        return nothing;
    return (struct vpmu_amount){(uint16_t)(lease->granted.gp + lease->beside.gp),
                                lease->granted.fixed | lease->beside.fixed};
}

static bool has_any(const struct naive_lease *lease)
{
    return has(lease).gp || has(lease).fixed;
}

static bool lease_on(const struct naive *naive, const struct naive_lease *lease, uint32_t p)
{
    return lease->on[p] && naive->processors[p].online;
}

/* ---- What is there ---- */

enum kinds {
    CPU_WIDE = 1,
    FIRM_VMS = 2,
    YIELDING_VMS = 4,
};

static unsigned kind_of(const struct naive_lease *lease)
{
    return !lease->is_vm ? CPU_WIDE : lease->yields ? YIELDING_VMS : FIRM_VMS;
}

static struct vpmu_amount used(const struct naive *naive, uint32_t p, unsigned kinds,
                               const struct naive_lease *but)
{
    unsigned sum = 0, largest = 0, fixed = 0;

    for (uint32_t i = 0; i < naive->lease_count; i++) {
        const struct naive_lease *lease = &naive->leases[i];

        if (lease == but || !(kind_of(lease) & kinds) || !lease_on(naive, lease, p))
            continue;
        fixed |= has(lease).fixed;
        if (!lease->is_vm)
            sum += has(lease).gp;
        else if (has(lease).gp > largest)
            largest = has(lease).gp;
    }
    return (struct vpmu_amount){(uint16_t)(sum + largest), (uint16_t)fixed};
}

void naive_use(const struct naive *naive, uint32_t p, struct vpmu_admission_use *use)
{
    *use = (struct vpmu_admission_use){
        .online = naive->processors[p].online,
        .capacity = naive->processors[p].capacity,
        .cpu_wide = used(naive, p, CPU_WIDE, NULL),
        .vcpu = used(naive, p, FIRM_VMS | YIELDING_VMS, NULL),
    };
    for (uint32_t i = 0; i < naive->lease_count; i++)
        use->vms += naive->leases[i].is_vm && has_any(&naive->leases[i]) &&
                    lease_on(naive, &naive->leases[i], p);
}

const char *naive_broken(const struct naive *naive)
{
    for (uint32_t p = 0; p < naive->processor_count; p++) {
        unsigned gp = 0, fixed = 0, vm_gp = 0;
        bool observed = naive->came_online;

        for (uint32_t i = 0; i < naive->lease_count; i++) {
            const struct naive_lease *lease = &naive->leases[i];

            if (!lease_on(naive, lease, p))
                continue;
            observed |= lease->observed;
            if (!lease->is_vm && has(lease).fixed & fixed && !observed)
                return "a fixed counter is had twice";
            if (!lease->is_vm) {
                gp += has(lease).gp;
                fixed |= has(lease).fixed;
            }
            if (lease->is_vm && has(lease).gp > vm_gp)
                vm_gp = has(lease).gp;
        }
        for (uint32_t i = 0; i < naive->lease_count && !observed && !naive->mediated; i++)
            if (naive->leases[i].is_vm && lease_on(naive, &naive->leases[i], p) &&
                has(&naive->leases[i]).fixed & fixed)
                return "a VM's fixed counter is had twice";
        if (!observed && (naive->mediated ? gp > vm_gp ? gp : vm_gp : gp + vm_gp) >
                             naive->processors[p].capacity.gp)
            return "more GP counters are had than there are";
    }
    return NULL;
}

/* ---- Answers ---- */

static void say(struct vpmu_answer *answer, vpmu_status status, enum vpmu_reason reason)
{
    *answer = (struct vpmu_answer){.status = status, .reason = reason, .processor = VPMU_NOT_SET};
}

static void say_lease(struct vpmu_answer *answer, const struct naive_lease *lease)
{
    answer->lease = lease->handle;
    answer->holder = lease->holder;
    memcpy(answer->name, lease->name, sizeof(answer->name));
}

/* ---- Does it fit? ---- */

static bool too_little(struct vpmu_amount wanted, struct vpmu_amount taken,
                       struct vpmu_amount capacity)
{
    return (wanted.gp && wanted.gp + taken.gp > capacity.gp) ||
           wanted.fixed & (taken.fixed | ~capacity.fixed);
}

static void say_largest(const struct naive *naive, const struct naive_lease *want, uint32_t p,
                        unsigned kind, bool gp, unsigned fixed, struct vpmu_answer *answer)
{
    unsigned most = 0;

    for (uint32_t i = 0; i < naive->lease_count; i++) {
        const struct naive_lease *lease = &naive->leases[i];
        unsigned size = gp ? has(lease).gp : bits(has(lease).fixed & fixed);

        if (lease == want || kind_of(lease) != kind || !lease_on(naive, lease, p) || size <= most)
            continue;
        most = size;
        say_lease(answer, lease);
    }
}

static void say_largest_anywhere(const struct naive *naive, const struct naive_lease *want,
                                 unsigned kind, struct vpmu_answer *answer)
{
    unsigned most = 0;

    for (uint32_t i = 0; i < naive->lease_count; i++) {
        const struct naive_lease *lease = &naive->leases[i];
        unsigned size = has(lease).gp + bits(has(lease).fixed);

        if (lease == want || kind_of(lease) != kind || lease->excludes_guests || size <= most)
            continue;
        most = size;
        say_lease(answer, lease);
    }
}

/* Does want, as a lease that has all it wants, leave too little of p with these kinds? */
static bool fails_with(const struct naive *naive, const struct naive_lease *want, uint32_t p,
                       unsigned kinds, vpmu_status status, enum vpmu_reason reason, unsigned kind,
                       struct vpmu_answer *answer)
{
    struct vpmu_amount taken = used(naive, p, kinds, want);
    struct vpmu_amount capacity = naive->processors[p].capacity;
    struct vpmu_amount wanted = has(want);

    if (!lease_on(naive, want, p) || !too_little(wanted, taken, capacity))
        return false;
    say(answer, status, reason);
    answer->processor = p;
    answer->capacity = capacity;
    answer->used = taken;
    answer->need = wanted;
    if (kind)
        say_largest(naive, want, p, kind, wanted.gp && wanted.gp + taken.gp > capacity.gp,
                    wanted.fixed, answer);
    return true;
}

static bool excluded(const struct naive *naive, const struct naive_lease *want, unsigned kind,
                     vpmu_status status, enum vpmu_reason reason, struct vpmu_answer *answer)
{
    struct vpmu_answer found;

    say(&found, status, reason);
    found.need = has(want);
    say_largest_anywhere(naive, want, kind, &found);
    if (found.lease == VPMU_LEASE_NONE)
        return false;
    *answer = found;
    return true;
}

static bool fits(const struct naive *naive, const struct naive_lease *want,
                 struct vpmu_answer *answer)
{
    const vpmu_status no = VPMU_STATUS_INSUFFICIENT_RESOURCES, busy = VPMU_STATUS_DEVICE_BUSY;
    bool cpu = !want->is_vm, mediated = naive->mediated;
    uint32_t p;

    say(answer, VPMU_STATUS_SUCCESS, VPMU_REASON_NONE);
    for (p = 0; p < naive->processor_count; p++)
        if (fails_with(naive, want, p, 0, no, VPMU_REASON_ABSENT, 0, answer) ||
            ((cpu || !mediated) &&
             fails_with(naive, want, p, CPU_WIDE, no, VPMU_REASON_TAKEN, CPU_WIDE, answer)) ||
            (cpu && !mediated &&
             fails_with(naive, want, p, CPU_WIDE | FIRM_VMS, no, VPMU_REASON_STARVES, FIRM_VMS,
                        answer)))
            return false;
    for (p = 0; cpu && !mediated && p < naive->processor_count; p++)
        if (fails_with(naive, want, p, CPU_WIDE | FIRM_VMS | YIELDING_VMS, busy,
                       VPMU_REASON_YIELDING, YIELDING_VMS, answer))
            return false;
    if (!mediated || !has_any(want) || want->excludes_guests)
        return true;
    if (want->is_vm)
        return !excluded(naive, want, CPU_WIDE, no, VPMU_REASON_GUEST_EVENTS, answer);
    return !excluded(naive, want, FIRM_VMS, no, VPMU_REASON_GUESTS, answer) &&
           !excluded(naive, want, YIELDING_VMS, busy, VPMU_REASON_YIELDING, answer);
}

/* ---- Claims ---- */

static bool well_formed(const struct vpmu_claim *claim)
{
    bool vm = claim->binding == VPMU_BOUND_VCPU;

    if (claim->binding > VPMU_BOUND_VCPU || claim->flags > VPMU_CLAIM_FLAGS)
        return false;
    if (claim->flags & (vm ? VPMU_CLAIM_EXCLUDES_GUESTS : VPMU_CLAIM_YIELDS))
        return false;
    if (!vm && (claim->beside.gp || claim->beside.fixed))
        return false;
    if ((claim->processors == NULL) != (claim->words == 0) || claim->words > 128)
        return false;
    return claim->need.gp <= 32 && claim->beside.gp <= 32 && claim->least.gp <= claim->need.gp &&
           (claim->least.fixed & claim->need.fixed) == claim->least.fixed &&
           (claim->beside.fixed & claim->need.fixed) == 0;
}

/* The claim as a lease that has its need; false, and the answer, if it cannot be one. */
static bool read_claim(const struct naive *naive, const struct vpmu_claim *claim,
                       struct naive_lease *lease, struct vpmu_answer *answer)
{
    bool somewhere = false;

    *lease = (struct naive_lease){0};
    if (!well_formed(claim)) {
        say(answer, VPMU_STATUS_INVALID_PARAMETER, VPMU_REASON_BAD_CLAIM);
        return false;
    }
    say(answer, VPMU_STATUS_INVALID_PARAMETER, VPMU_REASON_NO_PROCESSOR);
    for (uint32_t p = 0; p < 64 * claim->words; p++)
        if (claim->processors[p / 64] >> p % 64 & 1) {
            if (p >= naive->processor_count) {
                answer->processor = p;
                return false;
            }
            lease->on[p] = true;
        }
    for (uint32_t p = 0; p < naive->processor_count; p++) {
        if (!claim->processors)
            lease->on[p] = naive->processors[p].online;
        somewhere |= lease_on(naive, lease, p);
    }
    lease->everywhere = !claim->processors;
    lease->is_vm = claim->binding == VPMU_BOUND_VCPU;
    lease->yields = claim->flags & VPMU_CLAIM_YIELDS;
    lease->excludes_guests = claim->flags & VPMU_CLAIM_EXCLUDES_GUESTS;
    lease->observed = claim->flags & VPMU_CLAIM_OBSERVED;
    lease->asked = lease->granted = claim->need;
    lease->beside = claim->beside;
    lease->holder = claim->holder;
    snprintf(lease->name, sizeof(lease->name), "%s", claim->name ? claim->name : "");
    return somewhere;
}

/* The most that fits, by trial: a counter less at a time. */
static void reduce(const struct naive *naive, struct naive_lease *lease, struct vpmu_amount need)
{
    struct vpmu_amount most = nothing;
    struct vpmu_answer ignored;

    for (uint16_t gp = 1; gp <= need.gp; gp++) {
        lease->granted = (struct vpmu_amount){gp, 0};
        if (fits(naive, lease, &ignored))
            most.gp = gp;
    }
    for (unsigned i = 0; i < 16; i++) {
        lease->granted = (struct vpmu_amount){0, (uint16_t)(need.fixed & 1u << i)};
        if (fits(naive, lease, &ignored))
            most.fixed |= lease->granted.fixed;
    }
    lease->granted = most;
}

/* Sets what the lease is granted; false if nothing is. */
static bool decide(const struct naive *naive, const struct vpmu_claim *claim,
                   struct naive_lease *lease, struct vpmu_answer *answer)
{
    struct vpmu_answer refusal;

    say(answer, VPMU_STATUS_SUCCESS, VPMU_REASON_NONE);
    if (lease->observed || fits(naive, lease, answer))
        return true;
    lease->granted = claim->least;
    if (!fits(naive, lease, &refusal)) {
        *answer = refusal;
        return false;
    }
    reduce(naive, lease, claim->need);
    answer->status = VPMU_STATUS_SUCCESS;
    answer->reason = VPMU_REASON_REDUCED;
    return true;
}

struct naive_lease *naive_acquire(struct naive *naive, const struct vpmu_claim *claim,
                                  struct vpmu_answer *answer)
{
    struct naive_lease lease;

    if (!read_claim(naive, claim, &lease, answer) || !decide(naive, claim, &lease, answer))
        return NULL;
    if (naive->lease_count == naive->limit) {
        say(answer, VPMU_STATUS_INSUFFICIENT_RESOURCES, VPMU_REASON_NO_ROOM);
        return NULL;
    }
    naive->leases[naive->lease_count] = lease;
    return &naive->leases[naive->lease_count++];
}

/* ---- The rest ---- */

struct naive_lease *naive_find(struct naive *naive, vpmu_lease handle)
{
    for (uint32_t i = 0; i < naive->lease_count; i++)
        if (naive->leases[i].handle == handle)
            return &naive->leases[i];
    return NULL;
}

static struct naive_lease *find_or_say(struct naive *naive, vpmu_lease handle,
                                       struct vpmu_answer *answer)
{
    struct naive_lease *lease = naive_find(naive, handle);

    say(answer, VPMU_STATUS_SUCCESS, VPMU_REASON_NONE);
    if (!lease) {
        say(answer, VPMU_STATUS_INVALID_PARAMETER, VPMU_REASON_BAD_HANDLE);
        answer->lease = handle;
    }
    return lease;
}

void naive_release(struct naive *naive, vpmu_lease handle, struct vpmu_answer *answer)
{
    struct naive_lease *lease = find_or_say(naive, handle, answer);

    if (!lease)
        return;
    naive->lease_count--;
    memmove(lease, lease + 1,
            (size_t)(&naive->leases[naive->lease_count] - lease) * sizeof(*lease));
    naive->came_online = naive->came_online && naive->lease_count;
}

bool naive_set_online(struct naive *naive, const uint64_t *online, uint32_t words)
{
    bool changed = false;

    for (uint32_t p = 0; p < naive->processor_count; p++) {
        bool is_online = p / 64 < words && online[p / 64] >> p % 64 & 1;

        if (is_online == naive->processors[p].online)
            continue;
        changed = true;
        naive->came_online |= is_online && naive->lease_count;
        naive->processors[p].online = is_online;
        for (uint32_t i = 0; i < naive->lease_count; i++)
            if (naive->leases[i].everywhere)
                naive->leases[i].on[p] = is_online;
    }
    return changed;
}

void naive_resize(struct naive *naive, vpmu_lease handle, struct vpmu_amount need,
                  struct vpmu_answer *answer)
{
    struct naive_lease *lease = find_or_say(naive, handle, answer);

    if (!lease)
        return;
    struct naive_lease before = *lease;
    if (lease->revoked) {
        say(answer, VPMU_STATUS_INVALID_PARAMETER, VPMU_REASON_BAD_HANDLE);
        answer->lease = handle;
        return;
    }
    if (need.gp > 32 || need.fixed & lease->beside.fixed) {
        say(answer, VPMU_STATUS_INVALID_PARAMETER, VPMU_REASON_BAD_CLAIM);
        return;
    }
    lease->asked = lease->granted = need;
    if (lease->observed ||
        (need.gp <= before.granted.gp && (need.fixed & before.granted.fixed) == need.fixed))
        return;
    if (!fits(naive, lease, answer))
        *lease = before;
}

void naive_revoke(struct naive *naive, vpmu_lease handle, struct vpmu_answer *answer)
{
    struct naive_lease *lease = find_or_say(naive, handle, answer);

    if (!lease)
        return;
    lease->revoked = true;
    lease->granted = nothing;
}

bool naive_short(struct naive *naive, vpmu_lease handle, struct vpmu_answer *answer)
{
    const struct naive_lease *lease = naive_find(naive, handle);

    say(answer, VPMU_STATUS_SUCCESS, VPMU_REASON_NONE);
    return lease && lease->is_vm && !fits(naive, lease, answer);
}

/* One is in the way if the claim would not fit with it as the only VM of those that yield. */
uint32_t naive_yielding(struct naive *naive, const struct vpmu_claim *claim,
                        vpmu_lease handles[NAIVE_LEASES])
{
    struct vpmu_answer answer;
    struct naive_lease want;
    uint32_t count = 0;

    if (!read_claim(naive, claim, &want, &answer) || decide(naive, claim, &want, &answer) ||
        answer.reason != VPMU_REASON_YIELDING)
        return 0;
    for (uint32_t i = 0; i < naive->lease_count; i++) {
        struct naive alone = *naive;

        if (!naive->leases[i].yields)
            continue;
        for (uint32_t j = 0; j < naive->lease_count; j++)
            alone.leases[j].revoked |= j != i && alone.leases[j].yields;
        if (!fits(&alone, &want, &answer))
            handles[count++] = naive->leases[i].handle;
    }
    return count;
}
