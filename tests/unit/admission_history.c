/* SPDX-License-Identifier: BSD-3-Clause */
#include "admission_history.h"

#include "admission_naive.h"
#include "difference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANDLES 24

struct history {
    struct source *source;
    struct vpmu_admission *admission;
    struct naive naive;
    vpmu_lease handles[HANDLES]; /* the last ones that were given out, live or not */
    uint32_t handed_out;
    struct difference difference;
};

/* ---- Comparison ---- */

static unsigned long long number(struct vpmu_amount amount)
{
    return (unsigned long long)amount.fixed << 16 | amount.gp;
}

static bool same_answer(struct history *history, const struct vpmu_answer *got,
                        const struct vpmu_answer *wanted)
{
    char text[256];

    SAME(got->reason, wanted->reason, "reason");
    SAME(got->status, wanted->status, "status");
    SAME(got->processor, wanted->processor, "processor");
    SAME(got->lease, wanted->lease, "lease in the way");
    SAME(number(got->need), number(wanted->need), "answer's need");
    SAME(number(got->capacity), number(wanted->capacity), "answer's capacity");
    SAME(number(got->used), number(wanted->used), "answer's used");
    SAME(got->holder, wanted->holder, "holder");
    if (strcmp(got->name, wanted->name) != 0)
        return differ(&history->difference, "name is %s, not %s", got->name, wanted->name);
    if (vpmu_answer_text(got, text, sizeof(text)) != strlen(text) || strchr(text, '?'))
        return differ(&history->difference, "text: %s", text);
    return true;
}

static bool same_use(struct history *history, uint32_t p)
{
    struct vpmu_admission_use got, wanted;

    SAME(vpmu_admission_use(history->admission, p, &got), VPMU_STATUS_SUCCESS, "status of use");
    naive_use(&history->naive, p, &wanted);
    SAME(got.online, wanted.online, "online");
    SAME(number(got.capacity), number(wanted.capacity), "capacity");
    SAME(number(got.cpu_wide), number(wanted.cpu_wide), "CPU-wide use");
    SAME(number(got.vcpu), number(wanted.vcpu), "vCPUs' use");
    SAME(got.vms, wanted.vms, "VMs");
    return true;
}

static bool same_lease(struct history *history, const struct naive_lease *wanted)
{
    struct vpmu_admission_lease got;
    struct vpmu_answer why, naive_why;

    SAME(vpmu_admission_lease(history->admission, wanted->handle, &got), VPMU_STATUS_SUCCESS,
         "status of lease");
    SAME(got.lease, wanted->handle, "lease");
    SAME(got.binding == VPMU_BOUND_VCPU, wanted->is_vm, "binding");
    SAME(got.flags & VPMU_CLAIM_YIELDS, wanted->yields ? VPMU_CLAIM_YIELDS : 0u, "flags");
    SAME(got.revoked, wanted->revoked, "revoked");
    SAME(number(got.asked), number(wanted->asked), "asked");
    SAME(number(got.granted), number(wanted->granted), "granted");
    SAME(number(got.beside), number(wanted->beside), "beside");
    SAME(got.words, (history->naive.processor_count + 63) / 64, "words");
    for (uint32_t p = 0; p < history->naive.processor_count; p++)
        SAME(got.processors[p / 64] >> p % 64 & 1, wanted->on[p], "processor of a lease");
    if (strcmp(got.name, wanted->name) != 0)
        return differ(&history->difference, "lease's name is %s, not %s", got.name, wanted->name);
    SAME(vpmu_admission_short(history->admission, wanted->handle, &why),
         naive_short(&history->naive, wanted->handle, &naive_why), "short");
    return same_answer(history, &why, &naive_why);
}

static bool same_state(struct history *history)
{
    struct naive *naive = &history->naive;
    vpmu_lease lease = VPMU_LEASE_NONE;
    const char *broken = naive_broken(naive);

    if (broken)
        return differ(&history->difference, "%s", broken);
    for (uint32_t p = 0; p < naive->processor_count; p++)
        if (!same_use(history, p))
            return false;
    for (uint32_t i = 0; i < naive->lease_count; i++) {
        lease = vpmu_admission_next(history->admission, lease);
        SAME(lease, naive->leases[i].handle, "next lease");
        if (!same_lease(history, &naive->leases[i]))
            return false;
    }
    SAME(vpmu_admission_next(history->admission, lease), VPMU_LEASE_NONE, "lease after the last");
    SAME(vpmu_admission_leases(history->admission), naive->lease_count, "leases");
    return true;
}

/* ---- Set-up ---- */

static struct vpmu_amount some_amount(struct source *source, uint32_t gp)
{
    struct vpmu_amount amount = {.gp = (uint16_t)pick(source, gp + 1), .fixed = byte(source) & 7};

    amount.fixed &= byte(source);
    return amount;
}

static bool start(struct history *history)
{
    struct naive *naive = &history->naive;
    struct source *source = history->source;

    naive->processor_count = seldom(source) ? 64 + pick(source, 7) : 1 + pick(source, 4);
    naive->mediated = pick(source, 4) == 0;
    naive->limit = seldom(source) ? 2 : NAIVE_LEASES;
    for (uint32_t p = 0; p < naive->processor_count; p++)
        naive->processors[p] = (struct vpmu_host_processor){
            .capacity = {(uint16_t)(4 + pick(source, 5)), pick(source, 4) ? 7 : 3},
            .online = !seldom(source),
        };
    struct vpmu_admission_config config = {
        .processors = naive->processors,
        .processor_count = naive->processor_count,
        .leases = naive->limit,
        .mediated = naive->mediated,
    };
    size_t size = vpmu_admission_size(&config);
    void *memory = malloc(size);
    if (!memory)
        return differ(&history->difference, "no memory");
    memset(memory, 0xA5, size);
    history->admission = vpmu_admission_init(memory, size, &config);
    if (history->admission)
        return true;
    free(memory);
    return differ(&history->difference, "no admission");
}

/* ---- Operations ---- */

static void spoil(struct source *source, struct vpmu_claim *claim)
{
    switch (pick(source, 7)) {
    case 0:
        claim->binding = byte(source);
        break;
    case 1:
        claim->flags = byte(source);
        break;
    case 2:
        claim->need.gp = (uint16_t)(byte(source) * 257);
        break;
    case 3:
        claim->least.fixed = byte(source);
        break;
    case 4:
        claim->beside = (struct vpmu_amount){byte(source), byte(source)};
        break;
    case 5:
        claim->words = 0;
        break;
    default:
        claim->processors = NULL;
    }
}

/* set has room for two words. */
static struct vpmu_claim some_claim(struct history *history, uint64_t set[2])
{
    static const char *const names[] = {"nmi watchdog", "perf", "vm-a", "vm-b", ""};
    struct source *source = history->source;
    bool vm = pick(source, 3) != 0;
    struct vpmu_claim claim = {
        .binding = vm ? VPMU_BOUND_VCPU : VPMU_BOUND_CPU,
        .flags = (uint8_t)(pick(source, 3) ? 0
                           : vm            ? VPMU_CLAIM_YIELDS
                                           : VPMU_CLAIM_EXCLUDES_GUESTS),
        .need = some_amount(source, 5),
        .holder = byte(source),
        .name = names[pick(source, 5)],
    };

    claim.least = claim.need;
    if (pick(source, 2)) {
        claim.least.gp = (uint16_t)pick(source, claim.need.gp + 1u);
        claim.least.fixed &= byte(source);
    }
    if (vm && pick(source, 4) == 0) {
        claim.beside = some_amount(source, 2);
        claim.beside.fixed &= (uint16_t)~claim.need.fixed;
    }
    if (pick(source, 8) == 0)
        claim.flags |= VPMU_CLAIM_OBSERVED;
    set[0] = byte(source) | (uint64_t)byte(source) << 56;
    set[1] = byte(source) & 63;
    if (history->naive.processor_count < 64 && !seldom(source)) {
        set[0] &= (UINT64_C(1) << history->naive.processor_count) - 1;
        set[1] = 0;
    }
    if (pick(source, 4)) {
        claim.processors = set;
        claim.words = 1 + pick(source, 2);
    }
    if (seldom(source))
        spoil(source, &claim);
    return claim;
}

static bool acquire(struct history *history, const struct vpmu_claim *claim)
{
    struct vpmu_answer got, wanted;
    struct vpmu_amount granted;
    vpmu_lease lease = 77;

    vpmu_admission_acquire(history->admission, claim, &lease, &granted, &got);
    struct naive_lease *place = naive_acquire(&history->naive, claim, &wanted);
    if (!same_answer(history, &got, &wanted))
        return false;
    if (!place) {
        SAME(lease, VPMU_LEASE_NONE, "handle of a refusal");
        return true;
    }
    SAME(number(granted), number(place->granted), "granted");
    if (naive_find(&history->naive, lease))
        return differ(&history->difference, "handle 0x%llx came twice", (unsigned long long)lease);
    place->handle = lease;
    history->handles[history->handed_out++ % HANDLES] = lease;
    return true;
}

static bool same_yielding(struct history *history, const struct vpmu_claim *claim,
                          const vpmu_lease *wanted, uint32_t count)
{
    vpmu_lease lease = VPMU_LEASE_NONE;

    for (uint32_t i = 0; i < count; i++) {
        lease = vpmu_admission_yielding(history->admission, claim, lease);
        SAME(lease, wanted[i], "lease that yields");
    }
    SAME(vpmu_admission_yielding(history->admission, claim, lease), VPMU_LEASE_NONE,
         "lease after those that yield");
    return true;
}

static bool revoke(struct history *history, vpmu_lease handle)
{
    struct vpmu_answer got, wanted;

    vpmu_admission_revoke(history->admission, handle, &got);
    naive_revoke(&history->naive, handle, &wanted);
    return same_answer(history, &got, &wanted);
}

/* Asks; where VMs that yield are in the way, it may revoke them: then nothing is. */
static bool ask(struct history *history)
{
    uint64_t set[2];
    struct vpmu_claim claim = some_claim(history, set);
    vpmu_lease yielding[NAIVE_LEASES];
    uint32_t count = naive_yielding(&history->naive, &claim, yielding);
    uint32_t leases = history->naive.lease_count;

    if (!same_yielding(history, &claim, yielding, count) || !acquire(history, &claim))
        return false;
    if (!count || leases == history->naive.limit || pick(history->source, 2))
        return true;
    for (uint32_t i = 0; i < count; i++)
        if (!revoke(history, yielding[i]))
            return false;
    if (!acquire(history, &claim))
        return false;
    SAME(history->naive.lease_count, leases + 1, "leases after all in the way were revoked");
    return true;
}

/* A handle that was given out, live or stale, or a forged one. */
static vpmu_lease some_handle(struct history *history)
{
    vpmu_lease handle = history->handles[pick(history->source, HANDLES)];

    if (!seldom(history->source))
        return handle;
    return pick(history->source, 2) ? handle + byte(history->source)
                                    : handle ^ (UINT64_C(1) << byte(history->source) % 64);
}

static bool release(struct history *history)
{
    struct vpmu_answer got, wanted;
    vpmu_lease handle = some_handle(history);

    vpmu_admission_release(history->admission, handle, &got);
    naive_release(&history->naive, handle, &wanted);
    return same_answer(history, &got, &wanted);
}

static bool resize(struct history *history)
{
    struct vpmu_answer got, wanted;
    vpmu_lease handle = some_handle(history);
    struct vpmu_amount need = some_amount(history->source, 6);

    if (seldom(history->source))
        need.gp = (uint16_t)(byte(history->source) * 257);
    vpmu_admission_resize(history->admission, handle, need, &got);
    naive_resize(&history->naive, handle, need, &wanted);
    return same_answer(history, &got, &wanted);
}

/* Processors go and come; most of them are there. */
static bool set_online(struct history *history)
{
    struct source *source = history->source;
    uint64_t set[2] = {UINT64_MAX << 8 | byte(source) | byte(source), byte(source) | byte(source)};
    uint32_t words = 1 + pick(source, 2);

    SAME(vpmu_admission_set_online(history->admission, set, words),
         naive_set_online(&history->naive, set, words), "whether what is online has changed");
    return true;
}

static bool operate(struct history *history)
{
    if (seldom(history->source))
        return set_online(history);
    uint32_t kind = pick(history->source, 16);

    if (kind < 7)
        return ask(history);
    if (kind < 11)
        return release(history);
    if (kind < 13)
        return resize(history);
    if (kind < 14)
        return revoke(history, some_handle(history));
    return same_state(history);
}

static bool finish(struct history *history)
{
    struct vpmu_answer answer, wanted;

    if (!same_state(history))
        return false;
    while (history->naive.lease_count) {
        vpmu_lease lease = history->naive.leases[0].handle;

        vpmu_admission_release(history->admission, lease, &answer);
        naive_release(&history->naive, lease, &wanted);
        if (!same_answer(history, &answer, &wanted))
            return false;
    }
    for (uint32_t p = 0; p < history->naive.processor_count; p++) {
        struct vpmu_admission_use use;

        vpmu_admission_use(history->admission, p, &use);
        SAME(number(use.cpu_wide) | number(use.vcpu) | use.vms, 0, "use at the end");
    }
    return same_state(history);
}

bool admission_history_run(struct source *source, uint32_t operations, char *difference,
                           size_t size)
{
    struct history history = {.source = source, .difference = {.text = difference, .size = size}};
    bool same = start(&history);

    if (!same)
        return false;
    while (same && history.difference.operation < operations && !ended(source)) {
        same = operate(&history);
        history.difference.operation++;
    }
    same = same && finish(&history);
    free(history.admission);
    return same;
}
