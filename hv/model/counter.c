/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a counter counts.
 *
 * state.gp_value and state.fixed_value are the bases, `snapshot` the totals at the time of the
 * bases, valid for counters that count. vpmu_settle() moves the base to now; vpmu_resume() takes a
 * new snapshot. Between the two the registers may change.
 */
#include "model_internal.h"

static bool is_fixed(const struct vpmu *pmu, unsigned counter)
{
    return counter >= pmu->config.gp;
}

static unsigned width_of(const struct vpmu *pmu, unsigned counter)
{
    return is_fixed(pmu, counter) ? pmu->config.fixed_width : pmu->config.gp_width;
}

static uint64_t *value_of(struct vpmu *pmu, unsigned counter)
{
    return is_fixed(pmu, counter) ? &pmu->state.fixed_value[counter - pmu->config.gp]
                                  : &pmu->state.gp_value[counter];
}

/* Events until the overflow: 1 to 2^width. */
static uint64_t distance_of(struct vpmu *pmu, unsigned counter)
{
    return BIT(width_of(pmu, counter)) - *value_of(pmu, counter);
}

/* Whether the source counts for this program. */
static bool counts(const struct vpmu_program *program)
{
    return program->enabled && program->selection.event != VPMU_EVENT_NONE;
}

static uint64_t total_of(struct vpmu *pmu, const struct vpmu_program *program)
{
    return pmu->ops->total(pmu->source, program->selection.event, program->classes);
}

/* Move a counter's base to now. Returns whether it overflowed, once or many times. */
static bool advance(struct vpmu *pmu, unsigned counter, const struct vpmu_program *program)
{
    uint64_t total = total_of(pmu, program);
    uint64_t grown = total - pmu->snapshot[counter];
    bool overflowed = grown >= distance_of(pmu, counter);
    uint64_t *value = value_of(pmu, counter);

    *value = (*value + grown) & MASK(width_of(pmu, counter));
    pmu->snapshot[counter] = total;
    return overflowed;
}

/* The code that selects an event; for a fixed counter, whose own is 0. */
static uint32_t code_of(const struct vpmu *pmu, enum vpmu_event event)
{
    const struct vpmu_vendor_ops *vendor = vpmu_vendor_ops(&pmu->config);

    for (unsigned i = 0; i < vendor->encoding_count; i++) {
        if (vendor->encodings[i].event == event) {
            return vendor->encodings[i].code;
        }
    }
    return 0;
}

static bool denied(const struct vpmu *pmu, unsigned counter, const struct vpmu_program *program)
{
    return pmu->ops->denied &&
           pmu->ops->denied(pmu->source, is_fixed(pmu, counter)
                                             ? code_of(pmu, program->selection.event)
                                             : program->code);
}

/* What the controls say, as far as the policy lets them. */
static struct vpmu_program program_of(const struct vpmu *pmu, unsigned counter)
{
    struct vpmu_program program = vpmu_vendor_ops(&pmu->config)->program(pmu, counter);

    if (program.on && denied(pmu, counter, &program)) {
        program.denied = true;
        program.selection.event = VPMU_EVENT_NONE;
    }
    return program;
}

static void tell_demand(struct vpmu *pmu)
{
    struct vpmu_demand rows[VPMU_COUNTERS_MAX];
    unsigned count = 0;

    for (unsigned i = 0; i < vpmu_counters(pmu); i++) {
        struct vpmu_program program = program_of(pmu, i);

        if (counts(&program)) {
            rows[count++] = (struct vpmu_demand){
                .event = program.selection.event,
                .classes = program.classes,
                .distance = distance_of(pmu, i),
            };
        }
    }
    pmu->ops->demand(pmu->source, rows, count);
}

/* Advance every counter, before any overflow has an effect: a freeze stops none of them earlier. */
static unsigned advance_all(struct vpmu *pmu, bool *interrupt)
{
    unsigned overflowed = 0;

    *interrupt = false;
    for (unsigned i = 0; i < vpmu_counters(pmu); i++) {
        struct vpmu_program program = program_of(pmu, i);

        if (counts(&program) && advance(pmu, i, &program)) {
            overflowed |= 1u << i;
            *interrupt |= program.interrupt;
        }
    }
    return overflowed;
}

/* Returns whether anything overflowed, and so the demand is out of date. */
static bool settle(struct vpmu *pmu)
{
    bool interrupt;
    unsigned overflowed = advance_all(pmu, &interrupt);

    if (!overflowed) {
        return false;
    }
    vpmu_vendor_ops(&pmu->config)->overflow(pmu, overflowed, interrupt);
    if (interrupt) {
        pmu->ops->pmi(pmu->source);
    }
    return true;
}

void vpmu_settle(struct vpmu *pmu)
{
    if (settle(pmu)) {
        tell_demand(pmu);
    }
}

void vpmu_resume(struct vpmu *pmu)
{
    for (unsigned i = 0; i < vpmu_counters(pmu); i++) {
        struct vpmu_program program = program_of(pmu, i);

        if (counts(&program)) {
            pmu->snapshot[i] = total_of(pmu, &program);
        }
    }
    tell_demand(pmu);
}

void vpmu_sync(struct vpmu *pmu)
{
    settle(pmu);
    tell_demand(pmu);
}

unsigned vpmu_counters(const struct vpmu *pmu)
{
    return (unsigned)pmu->config.gp + pmu->config.fixed;
}

static enum vpmu_counter_state state_of(const struct vpmu_program *program)
{
    if (program->denied) {
        return VPMU_COUNTER_FILTERED;
    }
    if (program->on && !program->selection.supported) {
        return VPMU_COUNTER_UNSUPPORTED;
    }
    return program->enabled ? VPMU_COUNTER_BACKED : VPMU_COUNTER_GRANTED;
}

void vpmu_counter_info(struct vpmu *pmu, unsigned i, struct vpmu_counter_info *info)
{
    const struct vpmu_vendor_ops *vendor = vpmu_vendor_ops(&pmu->config);
    struct vpmu_program program;

    vpmu_settle(pmu);
    program = program_of(pmu, i);
    *info = (struct vpmu_counter_info){
        .fixed = is_fixed(pmu, i),
        .index = (uint8_t)(is_fixed(pmu, i) ? i - pmu->config.gp : i),
        .state = (uint8_t)state_of(&program),
        .event = program.selection.event,
        .classes = program.classes,
        .enabled = program.enabled,
        .interrupt = program.interrupt,
        .overflowed = vendor->overflowed(pmu, i),
        .code = program.code,
        .rdpmc_selector = vendor->rdpmc_selector(&pmu->config, i),
        .value = *value_of(pmu, i),
    };
}
