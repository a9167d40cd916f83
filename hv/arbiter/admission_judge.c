/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a claim fits, and what is in its way if not. Nothing here changes anything. */
#include <string.h>

#include "admission_internal.h"

/* ---- Answers ---- */

struct vpmu_answer *adm_answer_begin(struct vpmu_answer *given, struct vpmu_answer *scratch)
{
    struct vpmu_answer *answer = given ? given : scratch;

    *answer = (struct vpmu_answer){.status = VPMU_STATUS_SUCCESS, .processor = VPMU_NOT_SET};
    return answer;
}

vpmu_status adm_answer(struct vpmu_answer *answer, enum vpmu_reason reason)
{
    static const vpmu_status statuses[] = {
        [VPMU_REASON_NONE] = VPMU_STATUS_SUCCESS,
        [VPMU_REASON_REDUCED] = VPMU_STATUS_SUCCESS,
        [VPMU_REASON_ABSENT] = VPMU_STATUS_INSUFFICIENT_RESOURCES,
        [VPMU_REASON_TAKEN] = VPMU_STATUS_INSUFFICIENT_RESOURCES,
        [VPMU_REASON_STARVES] = VPMU_STATUS_INSUFFICIENT_RESOURCES,
        [VPMU_REASON_YIELDING] = VPMU_STATUS_DEVICE_BUSY,
        [VPMU_REASON_GUEST_EVENTS] = VPMU_STATUS_INSUFFICIENT_RESOURCES,
        [VPMU_REASON_GUESTS] = VPMU_STATUS_INSUFFICIENT_RESOURCES,
        [VPMU_REASON_NO_PROCESSOR] = VPMU_STATUS_INVALID_PARAMETER,
        [VPMU_REASON_BAD_CLAIM] = VPMU_STATUS_INVALID_PARAMETER,
        [VPMU_REASON_NO_ROOM] = VPMU_STATUS_INSUFFICIENT_RESOURCES,
        [VPMU_REASON_BAD_HANDLE] = VPMU_STATUS_INVALID_PARAMETER,
    };
    _Static_assert(sizeof(statuses) / sizeof(statuses[0]) == VPMU_REASONS, "a status per reason");

    answer->reason = reason;
    answer->status = statuses[reason];
    return answer->status;
}

/* ---- Is it well-formed? ---- */

static bool amounts_valid(const struct vpmu_claim *claim)
{
    return claim->need.gp <= GP_MAX && adm_covers(claim->need, claim->least) &&
           claim->beside.gp <= GP_MAX && !(claim->beside.fixed & claim->need.fixed);
}

static bool fields_valid(const struct vpmu_claim *claim)
{
    static const uint8_t allowed[] = {
        [VPMU_BOUND_CPU] = VPMU_CLAIM_EXCLUDES_GUESTS | VPMU_CLAIM_OBSERVED,
        [VPMU_BOUND_VCPU] = VPMU_CLAIM_YIELDS | VPMU_CLAIM_OBSERVED,
    };

    return claim->binding <= VPMU_BOUND_VCPU && !(claim->flags & ~allowed[claim->binding]) &&
           (claim->binding == VPMU_BOUND_VCPU || !adm_has(claim->beside)) &&
           !claim->processors == !claim->words &&
           claim->words <= VPMU_ADMISSION_PROCESSORS_MAX / GROUP_SIZE && amounts_valid(claim);
}

/* The first processor of the set that the host does not have, online or not. */
static uint32_t first_beyond(const struct vpmu_admission *admission, const struct vpmu_claim *claim)
{
    for (uint32_t w = admission->processor_count / GROUP_SIZE; w < claim->words; w++) {
        uint64_t set = claim->processors[w];

        if (w == admission->processor_count / GROUP_SIZE)
            set &= ~(BIT(admission->processor_count % GROUP_SIZE) - 1);
        if (set)
            return w * GROUP_SIZE + lowest(set);
    }
    return VPMU_NOT_SET;
}

bool adm_claim_valid(const struct vpmu_admission *admission, const struct vpmu_claim *claim,
                     struct vpmu_answer *answer)
{
    if (!claim || !fields_valid(claim)) {
        adm_answer(answer, VPMU_REASON_BAD_CLAIM);
        return false;
    }
    struct adm_want want = adm_claim_want(admission, claim, claim->need);
    struct adm_walk walk = adm_walk(admission, want.set, want.words);

    answer->processor = first_beyond(admission, claim);
    if (answer->processor == VPMU_NOT_SET && adm_walk_next(&walk))
        return true;
    adm_answer(answer, VPMU_REASON_NO_PROCESSOR);
    return false;
}

struct adm_want adm_claim_want(const struct vpmu_admission *admission,
                               const struct vpmu_claim *claim, struct vpmu_amount amount)
{
    return (struct adm_want){
        .class = adm_class(claim->binding, claim->flags),
        .with_guests = !(claim->flags & VPMU_CLAIM_EXCLUDES_GUESTS),
        .total = adm_with(amount, claim->beside),
        .set = claim->processors ? claim->processors : admission->online,
        .words = claim->processors ? claim->words : admission->words,
    };
}

/* ---- Layers ---- */

enum layer {
    LAYER_NOTHING,
    LAYER_CPU,
    LAYER_FIRM,
    LAYER_YIELDING,
    LAYERS,
};

/* What a layer adds: the leases of a class, and the reasons why they are in the way. */
static const struct {
    enum class class;
    enum vpmu_reason reason;
    enum vpmu_reason mediated; /* of the machine as a whole */
} layers[] = {
    [LAYER_NOTHING] = {CLASSES, VPMU_REASON_ABSENT, VPMU_REASON_NONE},
    [LAYER_CPU] = {CLASS_CPU, VPMU_REASON_TAKEN, VPMU_REASON_GUEST_EVENTS},
    [LAYER_FIRM] = {CLASS_FIRM, VPMU_REASON_STARVES, VPMU_REASON_GUESTS},
    [LAYER_YIELDING] = {CLASS_YIELDING, VPMU_REASON_YIELDING, VPMU_REASON_YIELDING},
};
_Static_assert(sizeof(layers) / sizeof(layers[0]) == LAYERS, "a row for each layer");

/* The last layer that is looked at: with a mediated vPMU, VMs and the host share no counter. */
static enum layer last_layer(const struct vpmu_admission *admission, const struct adm_want *want)
{
    if (want->class == CLASS_CPU)
        return admission->mediated ? LAYER_CPU : LAYER_YIELDING;
    return admission->mediated ? LAYER_NOTHING : LAYER_CPU;
}

static struct vpmu_amount used_at(const struct adm_processor *processor, enum layer layer)
{
    struct vpmu_amount vms = {0};

    if (layer == LAYER_NOTHING)
        return vms;
    for (enum layer l = LAYER_FIRM; l <= layer; l++) {
        struct vpmu_amount largest = adm_largest(&processor->tallies[layers[l].class]);
        vms.gp = largest.gp > vms.gp ? largest.gp : vms.gp;
        vms.fixed |= largest.fixed;
    }
    struct vpmu_amount used = adm_sum(&processor->tallies[CLASS_CPU]);
    used.gp = used.gp < UINT16_MAX - vms.gp ? (uint16_t)(used.gp + vms.gp) : UINT16_MAX;
    used.fixed |= vms.fixed;
    return used;
}

/* What wants no GP counter fits even where observed leases have more than there are. */
static bool gp_fits(uint32_t wanted, struct vpmu_amount used, struct vpmu_amount capacity)
{
    return !wanted || wanted + used.gp <= capacity.gp;
}

static bool fits_at(const struct adm_processor *processor, struct vpmu_amount total,
                    enum layer layer)
{
    struct vpmu_amount used = used_at(processor, layer);

    return gp_fits(total.gp, used, processor->capacity) &&
           !(total.fixed & (used.fixed | ~processor->capacity.fixed));
}

/* The first layer up to last that leaves too little; LAYERS if none does. */
static enum layer failing_layer(const struct adm_processor *processor, struct vpmu_amount total,
                                enum layer last)
{
    if (fits_at(processor, total, last))
        return LAYERS;
    for (enum layer layer = LAYER_NOTHING; layer < last; layer++)
        if (!fits_at(processor, total, layer))
            return layer;
    return last;
}

/* Where a want fails: what only yielding VMs prevent counts only if nothing else does. */
struct failure {
    uint32_t processor; /* VPMU_NOT_SET: on the machine as a whole */
    enum layer layer;   /* LAYERS: nowhere */
};

static struct failure fail_at(const struct vpmu_admission *admission, const struct adm_want *want)
{
    enum layer last = last_layer(admission, want);
    struct failure failure = {VPMU_NOT_SET, LAYERS};

    for (struct adm_walk walk = adm_walk(admission, want->set, want->words);
         adm_walk_next(&walk);) {
        enum layer layer = failing_layer(&admission->processors[walk.processor], want->total, last);

        if (layer < LAYER_YIELDING)
            return (struct failure){walk.processor, layer};
        if (layer == LAYER_YIELDING && failure.layer == LAYERS)
            failure = (struct failure){walk.processor, layer};
    }
    return failure;
}

/* Mediated: which class keeps it out, on any processor. */
static enum layer excluding_layer(const struct vpmu_admission *admission,
                                  const struct adm_want *want)
{
    if (!admission->mediated || !want->with_guests)
        return LAYERS;
    if (want->class != CLASS_CPU)
        return admission->guest_events ? LAYER_CPU : LAYERS;
    if (admission->having[CLASS_FIRM])
        return LAYER_FIRM;
    return admission->having[CLASS_YIELDING] ? LAYER_YIELDING : LAYERS;
}

/* ---- Who is in the way ---- */

static bool names(const uint64_t *set, uint32_t words, uint32_t p)
{
    return p / GROUP_SIZE < words && set[p / GROUP_SIZE] & BIT(p % GROUP_SIZE);
}

/* Not the compiler's own: where the processor has no such instruction, that calls a library. */
static uint32_t count_of(uint32_t set)
{
    uint32_t count = 0;

    for (; set; set &= set - 1)
        count++;
    return count;
}

static uint32_t all_of(struct vpmu_amount amount)
{
    return amount.gp + count_of(amount.fixed);
}

/* How much the lease in slot is in the way at a failure; 0: not at all. */
static uint32_t weight(const struct vpmu_admission *admission, const struct adm_want *want,
                       struct failure failure, uint32_t slot)
{
    struct adm_want has = adm_lease_want(admission, slot);

    if (has.class != layers[failure.layer].class)
        return 0;
    if (failure.processor == VPMU_NOT_SET)
        return has.with_guests ? all_of(has.total) : 0;
    if (!names(has.set, has.words, failure.processor))
        return 0;
    const struct adm_processor *processor = &admission->processors[failure.processor];
    if (!gp_fits(want->total.gp, used_at(processor, failure.layer), processor->capacity))
        return has.total.gp;
    return count_of(has.total.fixed & want->total.fixed);
}

/* The most that a lease can weigh: the first one that does is the answer. */
static uint32_t most_weight(const struct vpmu_admission *admission, const struct adm_want *want,
                            struct failure failure)
{
    if (failure.processor == VPMU_NOT_SET)
        return UINT32_MAX;
    const struct adm_processor *processor = &admission->processors[failure.processor];
    struct vpmu_amount largest = adm_largest(&processor->tallies[layers[failure.layer].class]);

    if (!gp_fits(want->total.gp, used_at(processor, failure.layer), processor->capacity))
        return largest.gp;
    return count_of(largest.fixed & want->total.fixed);
}

static uint32_t heaviest(const struct vpmu_admission *admission, const struct adm_want *want,
                         struct failure failure)
{
    uint32_t best = 0, most, found = NIL;

    if (layers[failure.layer].class == CLASSES)
        return NIL;
    most = most_weight(admission, want, failure);
    for (uint32_t slot = admission->ages.first; slot != NIL && best < most;
         slot = admission->leases[slot].ages.next) {
        uint32_t here = weight(admission, want, failure, slot);

        if (here > best) {
            best = here;
            found = slot;
        }
    }
    return found;
}

static void answer_failure(const struct vpmu_admission *admission, const struct adm_want *want,
                           struct failure failure, bool name, struct vpmu_answer *answer)
{
    uint32_t slot = name ? heaviest(admission, want, failure) : NIL;
    bool whole = failure.processor == VPMU_NOT_SET;

    adm_answer(answer, whole ? layers[failure.layer].mediated : layers[failure.layer].reason);
    answer->need = want->total;
    if (!whole) {
        const struct adm_processor *processor = &admission->processors[failure.processor];
        answer->processor = failure.processor;
        answer->capacity = processor->capacity;
        answer->used = used_at(processor, failure.layer);
    }
    if (slot == NIL)
        return;
    answer->lease = adm_handle(admission, slot);
    answer->holder = admission->leases[slot].holder;
    memcpy(answer->name, admission->leases[slot].name, sizeof(answer->name));
}

bool adm_fits(const struct vpmu_admission *admission, const struct adm_want *want, bool name,
              struct vpmu_answer *answer)
{
    if (!adm_has(want->total))
        return true;
    struct failure failure = fail_at(admission, want);
    enum layer excluding = excluding_layer(admission, want);

    if (failure.layer == LAYERS)
        failure = (struct failure){VPMU_NOT_SET, excluding};
    if (failure.layer == LAYERS)
        return true;
    answer_failure(admission, want, failure, name, answer);
    return false;
}

struct vpmu_amount adm_most(const struct vpmu_admission *admission, const struct adm_want *want,
                            struct vpmu_amount need, struct vpmu_amount beside)
{
    enum layer last = last_layer(admission, want);

    if (excluding_layer(admission, want) != LAYERS)
        return (struct vpmu_amount){0};
    for (struct adm_walk walk = adm_walk(admission, want->set, want->words);
         adm_walk_next(&walk);) {
        const struct adm_processor *processor = &admission->processors[walk.processor];
        struct vpmu_amount used = used_at(processor, last);

        while (need.gp && !gp_fits((uint32_t)need.gp + beside.gp, used, processor->capacity))
            need.gp--;
        need.fixed &= (uint16_t)(processor->capacity.fixed & ~used.fixed);
    }
    return need;
}

bool adm_in_the_way(const struct vpmu_admission *admission, const struct adm_want *want,
                    uint32_t slot)
{
    struct adm_want has = adm_lease_want(admission, slot);

    if (!adm_has(has.total))
        return false;
    if (excluding_layer(admission, want) != LAYERS)
        return true;
    for (struct adm_walk walk = adm_walk(admission, want->set, want->words);
         adm_walk_next(&walk);) {
        const struct adm_processor *processor = &admission->processors[walk.processor];
        struct vpmu_amount wide = adm_sum(&processor->tallies[CLASS_CPU]);

        if (!names(has.set, has.words, walk.processor))
            continue;
        if (want->total.fixed & has.total.fixed)
            return true;
        if (want->total.gp && has.total.gp &&
            (uint32_t)want->total.gp + wide.gp + has.total.gp > processor->capacity.gp)
            return true;
    }
    return false;
}
