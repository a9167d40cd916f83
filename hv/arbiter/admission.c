/* SPDX-License-Identifier: BSD-3-Clause */
/* Admission's memory, its leases and its routines. */
#include <string.h>

#include "admission_internal.h"

/* ---- Set-up ---- */

/* Where the arrays that follow struct vpmu_admission begin; leases are 8-byte aligned like all. */
struct layout {
    size_t processors, online, sets, leases, size;
};

static bool config_valid(const struct vpmu_admission_config *config)
{
    if (!config || !config->processors || !config->processor_count ||
        config->processor_count > VPMU_ADMISSION_PROCESSORS_MAX || !config->leases ||
        config->leases > VPMU_LEASES_MAX)
        return false;
    for (uint32_t p = 0; p < config->processor_count; p++)
        if (config->processors[p].capacity.gp > GP_MAX)
            return false;
    return true;
}

static uint32_t set_words(const struct vpmu_admission_config *config)
{
    return (config->processor_count + GROUP_SIZE - 1) / GROUP_SIZE;
}

static struct layout lay_out(const struct vpmu_admission_config *config)
{
    size_t set = set_words(config) * sizeof(uint64_t);
    struct layout layout = {.processors = sizeof(struct vpmu_admission)};

    layout.online = layout.processors + config->processor_count * sizeof(struct adm_processor);
    layout.sets = layout.online + set;
    layout.leases = layout.sets + config->leases * set;
    layout.size = layout.leases + config->leases * sizeof(struct adm_lease);
    return layout;
}
_Static_assert(sizeof(struct vpmu_admission) % 8 == 0 && sizeof(struct adm_processor) % 8 == 0 &&
                   sizeof(struct adm_lease) % 8 == 0,
               "what follows is aligned");

size_t vpmu_admission_size(const struct vpmu_admission_config *config)
{
    return config_valid(config) ? lay_out(config).size : 0;
}

struct vpmu_admission *vpmu_admission_init(void *memory, size_t size,
                                           const struct vpmu_admission_config *config)
{
    struct vpmu_admission *admission = memory;
    unsigned char *bytes = memory;

    if (!memory || !config_valid(config))
        return NULL;
    struct layout layout = lay_out(config);
    if (size < layout.size)
        return NULL;

    *admission = (struct vpmu_admission){
        .processor_count = config->processor_count,
        .words = set_words(config),
        .mediated = config->mediated,
        .ages = {NIL, NIL},
        .processors = (void *)(bytes + layout.processors),
        .online = (void *)(bytes + layout.online),
        .sets = (void *)(bytes + layout.sets),
        .leases = (void *)(bytes + layout.leases),
    };
    arb_pool_init(&admission->pool, &admission->leases->ages.next, sizeof(struct adm_lease),
                  config->leases);
    memset(admission->online, 0, layout.sets - layout.online);
    for (uint32_t p = 0; p < config->processor_count; p++) {
        admission->processors[p] =
            (struct adm_processor){.capacity = config->processors[p].capacity};
        if (config->processors[p].online)
            admission->online[p / GROUP_SIZE] |= BIT(p % GROUP_SIZE);
    }
    return admission;
}

/* ---- Sets ---- */

struct adm_walk adm_walk(const struct vpmu_admission *admission, const uint64_t *set,
                         uint32_t words)
{
    return (struct adm_walk){
        .admission = admission,
        .set = set,
        .words = words < admission->words ? words : admission->words,
    };
}

bool adm_walk_next(struct adm_walk *walk)
{
    while (!walk->left) {
        if (walk->word == walk->words)
            return false;
        walk->left = walk->set[walk->word] & walk->admission->online[walk->word];
        walk->word++;
    }
    walk->processor = (walk->word - 1) * GROUP_SIZE + lowest(walk->left);
    walk->left &= walk->left - 1;
    return true;
}

const uint64_t *adm_set(const struct vpmu_admission *admission, uint32_t slot)
{
    if (admission->leases[slot].everywhere)
        return admission->online;
    return admission->sets + (size_t)slot * admission->words;
}

/* ---- Leases; handles as in lease.c ---- */

vpmu_lease adm_handle(const struct vpmu_admission *admission, uint32_t slot)
{
    return (uint64_t)admission->leases[slot].generation << 32 | slot;
}

static uint32_t find(const struct vpmu_admission *admission, vpmu_lease lease)
{
    uint32_t slot = (uint32_t)lease;

    if (slot >= admission->pool.fresh || !admission->leases[slot].live)
        return NIL;
    return adm_handle(admission, slot) == lease ? slot : NIL;
}

struct adm_want adm_lease_want(const struct vpmu_admission *admission, uint32_t slot)
{
    const struct adm_lease *lease = &admission->leases[slot];
    struct vpmu_amount nothing = {0};

    return (struct adm_want){
        .class = adm_class(lease->binding, lease->flags),
        .with_guests = !(lease->flags & VPMU_CLAIM_EXCLUDES_GUESTS),
        .total = lease->revoked ? nothing : adm_with(lease->granted, lease->beside),
        .set = adm_set(admission, slot),
        .words = admission->words,
    };
}

/* Every live lease is in the list of ages, the newest last. */
static void append(struct vpmu_admission *admission, uint32_t slot)
{
    struct list *ages = &admission->ages;

    admission->leases[slot].ages = (struct link){.previous = ages->last, .next = NIL};
    if (ages->last == NIL)
        ages->first = slot;
    else
        admission->leases[ages->last].ages.next = slot;
    ages->last = slot;
}

static void take_out(struct vpmu_admission *admission, uint32_t slot)
{
    struct link link = admission->leases[slot].ages;

    if (link.previous == NIL)
        admission->ages.first = link.next;
    else
        admission->leases[link.previous].ages.next = link.next;
    if (link.next == NIL)
        admission->ages.last = link.previous;
    else
        admission->leases[link.next].ages.previous = link.previous;
}

/* Cut between characters: what follows the cut does not continue one (UTF-8: 10xxxxxx). */
static void copy_name(char to[VPMU_ADMISSION_NAME], const char *name)
{
    size_t length = 0;

    while (name && length < VPMU_ADMISSION_NAME - 1 && name[length])
        length++;
    if (name && name[length])
        while (length && ((unsigned char)name[length] & 0xC0) == 0x80)
            length--;
    memset(to, 0, VPMU_ADMISSION_NAME);
    if (length)
        memcpy(to, name, length);
}

static void copy_set(struct vpmu_admission *admission, uint32_t slot,
                     const struct vpmu_claim *claim)
{
    uint64_t *set = admission->sets + (size_t)slot * admission->words;

    if (!claim->processors)
        return;
    for (uint32_t w = 0; w < admission->words; w++)
        set[w] = w < claim->words ? claim->processors[w] : 0;
}

static uint32_t commit(struct vpmu_admission *admission, const struct vpmu_claim *claim,
                       struct vpmu_amount granted)
{
    bool fresh = admission->pool.free == NIL;
    uint32_t slot = arb_pool_take(&admission->pool);
    struct adm_lease *lease = &admission->leases[slot];

    *lease = (struct adm_lease){
        .asked = claim->need,
        .granted = granted,
        .beside = claim->beside,
        .holder = claim->holder,
        .generation = fresh ? 1 : lease->generation,
        .binding = claim->binding,
        .flags = claim->flags,
        .live = true,
        .everywhere = !claim->processors,
    };
    copy_name(lease->name, claim->name);
    copy_set(admission, slot, claim);
    append(admission, slot);
    adm_tally_change(admission, slot, true);
    return slot;
}

static vpmu_status answer_bad_handle(struct vpmu_answer *answer, vpmu_lease lease)
{
    answer->lease = lease;
    return adm_answer(answer, VPMU_REASON_BAD_HANDLE);
}

/* ---- The routines ---- */

/* Decides what is granted; answer says why not all, or why nothing. */
static vpmu_status judge(const struct vpmu_admission *admission, const struct vpmu_claim *claim,
                         struct vpmu_amount *granted, bool name, struct vpmu_answer *answer)
{
    struct adm_want need = adm_claim_want(admission, claim, claim->need);
    struct adm_want least = adm_claim_want(admission, claim, claim->least);
    struct vpmu_answer refusal = *answer;

    *granted = claim->need;
    if (claim->flags & VPMU_CLAIM_OBSERVED || adm_fits(admission, &need, name, answer))
        return VPMU_STATUS_SUCCESS;
    if (!adm_fits(admission, &least, name, &refusal)) {
        *answer = refusal;
        return answer->status;
    }
    *granted = adm_most(admission, &need, claim->need, claim->beside);
    return adm_answer(answer, VPMU_REASON_REDUCED);
}

vpmu_status vpmu_admission_acquire(struct vpmu_admission *admission, const struct vpmu_claim *claim,
                                   vpmu_lease *lease, struct vpmu_amount *granted,
                                   struct vpmu_answer *answer)
{
    struct vpmu_answer scratch;
    struct vpmu_answer *why = adm_answer_begin(answer, &scratch);
    struct vpmu_amount most = {0};

    if (granted)
        *granted = most;
    if (!lease)
        return adm_answer(why, VPMU_REASON_BAD_CLAIM);
    *lease = VPMU_LEASE_NONE;
    if (!adm_claim_valid(admission, claim, why) ||
        judge(admission, claim, &most, answer != NULL, why) != VPMU_STATUS_SUCCESS)
        return why->status;
    if (!arb_pool_left(&admission->pool)) {
        why = adm_answer_begin(why, &scratch);
        return adm_answer(why, VPMU_REASON_NO_ROOM);
    }
    *lease = adm_handle(admission, commit(admission, claim, most));
    if (granted)
        *granted = most;
    return VPMU_STATUS_SUCCESS;
}

vpmu_status vpmu_admission_release(struct vpmu_admission *admission, vpmu_lease lease,
                                   struct vpmu_answer *answer)
{
    struct vpmu_answer scratch;
    struct vpmu_answer *why = adm_answer_begin(answer, &scratch);
    uint32_t slot = find(admission, lease);

    if (slot == NIL)
        return answer_bad_handle(why, lease);
    struct adm_lease *gone = &admission->leases[slot];
    adm_tally_change(admission, slot, false);
    take_out(admission, slot);
    gone->live = false;
    gone->generation += gone->generation == UINT32_MAX ? 2 : 1; /* 0 is no generation */
    arb_pool_put(&admission->pool, slot);
    return VPMU_STATUS_SUCCESS;
}

/* The lease's own part is not in its way: it is put aside while the new one is judged. */
static bool resize_fits(struct vpmu_admission *admission, uint32_t slot, struct vpmu_amount need,
                        bool name, struct vpmu_answer *answer)
{
    struct adm_lease *lease = &admission->leases[slot];
    struct adm_want want = adm_lease_want(admission, slot);
    struct vpmu_amount had = lease->granted, beside = lease->beside;

    if (lease->flags & VPMU_CLAIM_OBSERVED || adm_covers(had, need))
        return true;
    want.total = adm_with(need, beside);
    adm_tally_change(admission, slot, false);
    lease->granted = lease->beside = (struct vpmu_amount){0};
    bool fits = adm_fits(admission, &want, name, answer);
    lease->granted = had;
    lease->beside = beside;
    adm_tally_change(admission, slot, true);
    return fits;
}

vpmu_status vpmu_admission_resize(struct vpmu_admission *admission, vpmu_lease lease,
                                  struct vpmu_amount need, struct vpmu_answer *answer)
{
    struct vpmu_answer scratch;
    struct vpmu_answer *why = adm_answer_begin(answer, &scratch);
    uint32_t slot = find(admission, lease);

    if (slot == NIL || admission->leases[slot].revoked)
        return answer_bad_handle(why, lease);
    struct adm_lease *changed = &admission->leases[slot];
    if (need.gp > GP_MAX || need.fixed & changed->beside.fixed)
        return adm_answer(why, VPMU_REASON_BAD_CLAIM);
    if (!resize_fits(admission, slot, need, answer != NULL, why))
        return why->status;
    adm_tally_change(admission, slot, false);
    changed->asked = changed->granted = need;
    adm_tally_change(admission, slot, true);
    return VPMU_STATUS_SUCCESS;
}

vpmu_status vpmu_admission_revoke(struct vpmu_admission *admission, vpmu_lease lease,
                                  struct vpmu_answer *answer)
{
    struct vpmu_answer scratch;
    struct vpmu_answer *why = adm_answer_begin(answer, &scratch);
    uint32_t slot = find(admission, lease);

    if (slot == NIL)
        return answer_bad_handle(why, lease);
    adm_tally_change(admission, slot, false);
    admission->leases[slot].granted = (struct vpmu_amount){0};
    admission->leases[slot].revoked = true;
    return VPMU_STATUS_SUCCESS;
}

static void tally_all(struct vpmu_admission *admission, bool more)
{
    for (uint32_t slot = admission->ages.first; slot != NIL;
         slot = admission->leases[slot].ages.next)
        adm_tally_change(admission, slot, more);
}

/* A word of a set, without processors that there are not. */
static uint64_t online_word(const struct vpmu_admission *admission, const uint64_t *set,
                            uint32_t words, uint32_t word)
{
    uint32_t rest = admission->processor_count % GROUP_SIZE;
    uint64_t value = word < words ? set[word] : 0;

    return rest && word == admission->words - 1 ? value & (BIT(rest) - 1) : value;
}

bool vpmu_admission_set_online(struct vpmu_admission *admission, const uint64_t *online,
                               uint32_t words)
{
    bool same = true;

    for (uint32_t w = 0; w < admission->words; w++)
        same = same && admission->online[w] == online_word(admission, online, words, w);
    if (same)
        return false;
    tally_all(admission, false);
    for (uint32_t w = 0; w < admission->words; w++)
        admission->online[w] = online_word(admission, online, words, w);
    tally_all(admission, true);
    return true;
}

/* ---- Questions ---- */

/* The slot after that of lease; NIL at the end, or if lease is not live. */
static uint32_t next_slot(const struct vpmu_admission *admission, vpmu_lease lease)
{
    if (lease == VPMU_LEASE_NONE)
        return admission->ages.first;
    uint32_t slot = find(admission, lease);
    return slot == NIL ? NIL : admission->leases[slot].ages.next;
}

vpmu_lease vpmu_admission_next(const struct vpmu_admission *admission, vpmu_lease lease)
{
    uint32_t slot = next_slot(admission, lease);

    return slot == NIL ? VPMU_LEASE_NONE : adm_handle(admission, slot);
}

vpmu_lease vpmu_admission_yielding(const struct vpmu_admission *admission,
                                   const struct vpmu_claim *claim, vpmu_lease lease)
{
    struct vpmu_answer answer;
    struct vpmu_amount granted;

    adm_answer_begin(&answer, NULL);
    if (!adm_claim_valid(admission, claim, &answer) ||
        judge(admission, claim, &granted, false, &answer) != VPMU_STATUS_DEVICE_BUSY)
        return VPMU_LEASE_NONE;

    struct adm_want want = adm_claim_want(admission, claim, claim->least);
    for (uint32_t slot = next_slot(admission, lease); slot != NIL;
         slot = admission->leases[slot].ages.next)
        if (admission->leases[slot].flags & VPMU_CLAIM_YIELDS &&
            adm_in_the_way(admission, &want, slot))
            return adm_handle(admission, slot);
    return VPMU_LEASE_NONE;
}

vpmu_status vpmu_admission_lease(const struct vpmu_admission *admission, vpmu_lease lease,
                                 struct vpmu_admission_lease *info)
{
    uint32_t slot = find(admission, lease);

    if (slot == NIL)
        return VPMU_STATUS_INVALID_PARAMETER;
    const struct adm_lease *found = &admission->leases[slot];
    *info = (struct vpmu_admission_lease){
        .lease = lease,
        .binding = found->binding,
        .flags = found->flags,
        .revoked = found->revoked,
        .asked = found->asked,
        .granted = found->granted,
        .beside = found->beside,
        .processors = adm_set(admission, slot),
        .words = admission->words,
        .holder = found->holder,
        .name = found->name,
    };
    return VPMU_STATUS_SUCCESS;
}

bool vpmu_admission_short(const struct vpmu_admission *admission, vpmu_lease lease,
                          struct vpmu_answer *answer)
{
    struct vpmu_answer scratch;
    struct vpmu_answer *why = adm_answer_begin(answer, &scratch);
    uint32_t slot = find(admission, lease);

    if (slot == NIL || admission->leases[slot].binding != VPMU_BOUND_VCPU)
        return false;
    struct adm_want want = adm_lease_want(admission, slot);
    return !adm_fits(admission, &want, answer != NULL, why);
}

vpmu_status vpmu_admission_use(const struct vpmu_admission *admission, uint32_t p,
                               struct vpmu_admission_use *use)
{
    if (p >= admission->processor_count)
        return VPMU_STATUS_INVALID_PARAMETER;
    const struct adm_processor *processor = &admission->processors[p];
    const struct tally *firm = &processor->tallies[CLASS_FIRM];
    const struct tally *yielding = &processor->tallies[CLASS_YIELDING];
    struct vpmu_amount a = adm_largest(firm), b = adm_largest(yielding);

    *use = (struct vpmu_admission_use){
        .online = admission->online[p / GROUP_SIZE] & BIT(p % GROUP_SIZE),
        .capacity = processor->capacity,
        .cpu_wide = adm_sum(&processor->tallies[CLASS_CPU]),
        .vcpu = {.gp = a.gp > b.gp ? a.gp : b.gp, .fixed = a.fixed | b.fixed},
        .vms = firm->leases + yielding->leases,
    };
    return VPMU_STATUS_SUCCESS;
}

uint32_t vpmu_admission_leases(const struct vpmu_admission *admission)
{
    return admission->pool.used;
}
