/* SPDX-License-Identifier: BSD-3-Clause */
/* What the leases of a class have of a processor, together and at most. */
#include "admission_internal.h"

static void add(struct tally *tally, struct vpmu_amount amount)
{
    tally->leases++;
    tally->sum += amount.gp;
    if (amount.gp) {
        tally->at_level[amount.gp - 1]++;
        tally->levels |= BIT(amount.gp - 1);
    }
    for (uint32_t left = amount.fixed; left; left &= left - 1)
        tally->at_fixed[lowest(left)]++;
    tally->fixed |= amount.fixed;
}

static void subtract(struct tally *tally, struct vpmu_amount amount)
{
    tally->leases--;
    tally->sum -= amount.gp;
    if (amount.gp && --tally->at_level[amount.gp - 1] == 0)
        tally->levels &= ~BIT(amount.gp - 1);
    for (uint32_t left = amount.fixed; left; left &= left - 1)
        if (--tally->at_fixed[lowest(left)] == 0)
            tally->fixed &= (uint16_t)~BIT(lowest(left));
}

void adm_tally_change(struct vpmu_admission *admission, uint32_t slot, bool more)
{
    struct adm_want want = adm_lease_want(admission, slot);
    uint32_t one = more ? 1 : UINT32_MAX; /* modulo 2^32 */

    if (!adm_has(want.total))
        return;
    admission->having[want.class] += one;
    if (want.class == CLASS_CPU && want.with_guests)
        admission->guest_events += one;
    for (struct adm_walk walk = adm_walk(admission, want.set, want.words); adm_walk_next(&walk);)
        (more ? add : subtract)(&admission->processors[walk.processor].tallies[want.class],
                                want.total);
}

struct vpmu_amount adm_sum(const struct tally *tally)
{
    return (struct vpmu_amount){
        .gp = tally->sum < UINT16_MAX ? (uint16_t)tally->sum : UINT16_MAX,
        .fixed = tally->fixed,
    };
}

struct vpmu_amount adm_largest(const struct tally *tally)
{
    return (struct vpmu_amount){
        .gp = tally->levels ? (uint16_t)(64 - __builtin_clzll(tally->levels)) : 0,
        .fixed = tally->fixed,
    };
}
