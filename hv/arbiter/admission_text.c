/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers in a sentence. */
#include "admission_internal.h"

/*
 * A letter after % stands for a field: p processor, n what is wanted of it, h the holder of what is
 * in the way, l lease, c what the processor has, u what is taken. Of GP and fixed counters only
 * those that do not fit are named, so that a sentence stays short.
 */
static const char *const sentences[] = {
    [VPMU_REASON_NONE] = "granted",
    [VPMU_REASON_REDUCED] = "granted less: processor %p: %n wanted, %u; most by %h",
    [VPMU_REASON_ABSENT] = "processor %p: %n wanted, it has %c",
    [VPMU_REASON_TAKEN] = "processor %p: %n wanted, %u; most by %h",
    [VPMU_REASON_STARVES] = "processor %p: %n wanted, %u; it would starve %h",
    [VPMU_REASON_YIELDING] = "processor %p: %n wanted, %u; %h gives way",
    [VPMU_REASON_GUEST_EVENTS] = "%h counts while guests run, so no VM can have the PMU",
    [VPMU_REASON_GUESTS] = "%h has the PMU while it runs; exclude guests from the count",
    [VPMU_REASON_NO_PROCESSOR] = "there is no processor %p",
    [VPMU_REASON_BAD_CLAIM] = "the claim has a field out of range",
    [VPMU_REASON_NO_ROOM] = "there are as many leases as there can be",
    [VPMU_REASON_BAD_HANDLE] = "%l is not a live lease",
};
_Static_assert(sizeof(sentences) / sizeof(sentences[0]) == VPMU_REASONS, "a sentence per reason");

/* What the fields that are not set change. */
static const char *sentence(const struct vpmu_answer *answer)
{
    bool whole = answer->processor == VPMU_NOT_SET;

    if ((uint32_t)answer->reason >= VPMU_REASONS)
        return "?";
    if (answer->reason == VPMU_REASON_NO_PROCESSOR && whole)
        return "no processor is named that is online";
    if (answer->reason == VPMU_REASON_REDUCED && whole)
        return "granted nothing: %h keeps it from the PMU";
    if (answer->reason == VPMU_REASON_REDUCED && answer->lease == VPMU_LEASE_NONE)
        return "granted less: processor %p: %n wanted, it has %c";
    if (answer->reason == VPMU_REASON_YIELDING && whole)
        return "%h has the PMU while it runs; it gives way";
    return sentences[answer->reason];
}

static bool gp_fails(const struct vpmu_answer *answer)
{
    return answer->need.gp && (uint32_t)answer->need.gp + answer->used.gp > answer->capacity.gp;
}

/* "fixed 0-2,5" */
static void put_fixed(struct text *text, uint32_t set)
{
    arb_put_string(text, set ? "fixed " : "no fixed");
    for (bool first = true; set; first = false) {
        uint32_t from = lowest(set), count = lowest(~(set >> from));

        if (!first)
            arb_put_char(text, ',');
        arb_put_number(text, from, 10);
        if (count > 1) {
            arb_put_char(text, '-');
            arb_put_number(text, from + count - 1, 10);
        }
        set &= ~(uint32_t)((BIT(count) - 1) << from);
    }
}

static void put_wanted(struct text *text, const struct vpmu_answer *answer)
{
    if (!gp_fails(answer)) {
        put_fixed(text,
                  answer->need.fixed & (answer->used.fixed | ~(uint32_t)answer->capacity.fixed));
        return;
    }
    arb_put_number(text, answer->need.gp, 10);
    arb_put_string(text, " GP");
}

static void put_capacity(struct text *text, const struct vpmu_answer *answer)
{
    if (gp_fails(answer))
        arb_put_number(text, answer->capacity.gp, 10);
    else
        put_fixed(text, answer->capacity.fixed);
}

static void put_used(struct text *text, const struct vpmu_answer *answer)
{
    if (!gp_fails(answer)) {
        arb_put_string(text, "taken");
        return;
    }
    arb_put_number(text, answer->used.gp, 10);
    arb_put_string(text, " of ");
    arb_put_number(text, answer->capacity.gp, 10);
    arb_put_string(text, " taken");
}

static void put_lease(struct text *text, const struct vpmu_answer *answer)
{
    arb_put_string(text, "0x");
    arb_put_number(text, answer->lease, 16);
}

static void put_holder(struct text *text, const struct vpmu_answer *answer)
{
    if (answer->name[0]) {
        arb_put_string(text, answer->name);
        return;
    }
    arb_put_string(text, "lease ");
    put_lease(text, answer);
}

static void put_field(struct text *text, char field, const struct vpmu_answer *answer)
{
    switch (field) {
    case 'p':
        arb_put_number(text, answer->processor, 10);
        break;
    case 'n':
        put_wanted(text, answer);
        break;
    case 'c':
        put_capacity(text, answer);
        break;
    case 'u':
        put_used(text, answer);
        break;
    case 'l':
        put_lease(text, answer);
        break;
    case 'h':
        put_holder(text, answer);
        break;
    }
}

size_t vpmu_answer_text(const struct vpmu_answer *answer, char *text, size_t size)
{
    struct text out = {.to = text, .size = size};

    for (const char *c = sentence(answer); *c; c++) {
        if (*c == '%')
            put_field(&out, *++c, answer);
        else
            arb_put_char(&out, *c);
    }
    return arb_text_end(&out);
}
