/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The proof that a counter counts. HalAllocateHardwareCounters may succeed with nothing behind the
 * grant (its documentation says so of Hyper-V), and a counter behind it may stand still for reasons
 * that no register shows. So each held counter is given a piece of work whose count is known, with
 * interrupts off, in kernel mode, and what it counted is compared with that.
 */

#include "vpmu.h"

#include "os.h"

/* On a real processor a few events more are no fault of the counter: a fault that is taken again, a
 * system management interrupt. Fewer are. */
#define SLACK(expected) ((expected) / 16 + 64)

#define NO_COUNTER (VPMU_CHECK_NOT_ENUMERATED | VPMU_CHECK_FAULT | VPMU_CHECK_NOT_KEPT)

enum vpmu_counter_state verify_state(uint32_t flags, uint64_t expected, uint64_t counted)
{
    if (flags & NO_COUNTER)
        return VPMU_COUNTER_ABSENT;
    if (flags & VPMU_CHECK_NO_EVENT)
        return VPMU_COUNTER_UNSUPPORTED;
    if (counted < expected)
        return VPMU_COUNTER_STARVED;
    if (flags & VPMU_CHECK_EXACT && counted - expected > SLACK(expected))
        return VPMU_COUNTER_UNSUPPORTED; /* it counts something else */
    return VPMU_COUNTER_BACKED;
}

struct verifier {
    struct vpmu *vpmu;
    uint32_t iterations;
    bool interrupt; /* try overflows, too */
    struct vpmu_verification *verification;
};

/* The work's count of one event; other events have none that is known, but must not stand still. */
static uint64_t expected_of(uint32_t event, uint32_t iterations, uint32_t *flags)
{
    switch (event) {
    case VPMU_EVENT_INSTRUCTIONS:
        *flags |= VPMU_CHECK_EXACT;
        return OS_WORK_INSTRUCTIONS(iterations);
    case VPMU_EVENT_BRANCHES:
        *flags |= VPMU_CHECK_EXACT;
        return OS_WORK_BRANCHES(iterations);
    default:
        return 1;
    }
}

/* Does the control register hold what is written to it? Tried with the interrupt bit and without
 * the enable bit, so that nothing happens. */
static bool keeps_control(const struct pmu *pmu, uint32_t index, const struct pmu_program *program)
{
    struct pmu_program trial = *program;
    const struct pmu_counter *counter = &pmu->counter[index];
    uint64_t on, off, kept;

    trial.period = 1;
    return pmu_control(pmu, index, &trial, &on, &off) && os_wrmsr(counter->control_msr, off) &&
           os_rdmsr(counter->control_msr, &kept) && kept == off;
}

static void compare_rdpmc(const struct pmu_counter *counter, struct vpmu_check *check)
{
    if (!os_rdpmc(counter->selector, &check->rdpmc))
        check->flags |= VPMU_CHECK_RDPMC_FAULT;
    else if (check->rdpmc != check->counted)
        check->flags |= VPMU_CHECK_RDPMC_WRONG;
}

static bool count_work(const struct pmu *pmu, uint32_t index, const struct pmu_program *program,
                       uint32_t iterations, struct vpmu_check *check)
{
    const struct pmu_counter *counter = &pmu->counter[index];
    uint64_t on, off;
    bool open;

    if (!pmu_open_gate(pmu, index, &open) || !pmu_control(pmu, index, program, &on, &off))
        return false;
    if (!open && !pmu_is_fixed(index))
        check->flags |= VPMU_CHECK_GLOBAL_CLEAR;
    if (!os_measure(counter->control_msr, on, off, iterations) ||
        !os_rdmsr(counter->value_msr, &check->counted))
        return false;
    compare_rdpmc(counter, check);
    return true;
}

static void run_check(const struct pmu *pmu, const struct pmu_program *program, uint32_t iterations,
                      struct vpmu_check *check)
{
    uint64_t flags;

    if (!pmu_program(pmu, check->counter, program)) {
        check->flags |= VPMU_CHECK_FAULT;
        return;
    }
    if (!keeps_control(pmu, check->counter, program))
        check->flags |= VPMU_CHECK_NOT_KEPT;
    flags = os_interrupts_off();
    if (!count_work(pmu, check->counter, program, iterations, check))
        check->flags |= VPMU_CHECK_FAULT;
    os_interrupts_restore(flags);
    pmu_clear(pmu, check->counter);
}

/* The interrupt was held back while the work ran. A hypervisor may take a while to deliver it. */
static bool overflow_arrives(const struct vpmu_overflows *overflows, uint32_t index)
{
    for (uint32_t patience = 0; patience < 1000000; patience++) {
        if (__atomic_load_n(&overflows->periods[index], __ATOMIC_ACQUIRE))
            return true;
    }
    return false;
}

/* The same work once more, with an overflow halfway. The handler looks at the counter's program, so
 * this one takes its place for the time. */
static void try_interrupt(struct vpmu *vpmu, const struct pmu_program *program, uint32_t iterations,
                          struct vpmu_check *check)
{
    uint32_t index = check->counter;
    struct pmu_program saved = vpmu->programs[index];
    uint64_t programmed = vpmu->programmed;
    struct vpmu_overflows *overflows = &vpmu->processor[os_this_processor()].overflows;
    struct vpmu_check ignored = {.counter = index};
    uint64_t flags;

    vpmu->programs[index] = *program;
    vpmu->programs[index].period = check->expected / 2 + 1;
    vpmu->programmed |= 1ull << index;
    overflow_forget(overflows, index);
    if (pmu_program(&vpmu->pmu, index, &vpmu->programs[index])) {
        flags = os_interrupts_off();
        count_work(&vpmu->pmu, index, &vpmu->programs[index], iterations, &ignored);
        os_interrupts_restore(flags);
    }
    check->flags |=
        overflow_arrives(overflows, index) ? VPMU_CHECK_INTERRUPT : VPMU_CHECK_NO_INTERRUPT;
    pmu_clear(&vpmu->pmu, index);
    vpmu->programs[index] = saved;
    vpmu->programmed = programmed;
}

static struct vpmu_check check_event(const struct verifier *verifier, uint32_t index,
                                     uint32_t event)
{
    const struct pmu *pmu = &verifier->vpmu->pmu;
    struct pmu_program program = {
        .config = pmu->event[event].config,
        .event = event,
        .flags = VPMU_COUNT_KERNEL,
    };
    struct vpmu_check check = {.counter = index, .event = event};
    bool enumerated = pmu->enumerated >> index & 1;

    check.expected = expected_of(event, verifier->iterations, &check.flags);
    if (!enumerated)
        check.flags |= VPMU_CHECK_NOT_ENUMERATED;
    if (enumerated && !pmu_is_fixed(index) && !pmu->event[event].available) {
        check.flags |= VPMU_CHECK_NO_EVENT;
    } else {
        run_check(pmu, &program, verifier->iterations, &check);
    }
    check.state = verify_state(check.flags, check.expected, check.counted);
    if (verifier->interrupt && check.state == VPMU_COUNTER_BACKED && check.flags & VPMU_CHECK_EXACT)
        try_interrupt(verifier->vpmu, &program, verifier->iterations, &check);
    return check;
}

/* Where one event counts and the other never moves, the counter is there and the event is denied.
 */
static void tell_filtered(struct vpmu_check *check, uint32_t count)
{
    bool backed = false;

    for (uint32_t i = 0; i < count; i++)
        backed |= check[i].state == VPMU_COUNTER_BACKED;
    for (uint32_t i = 0; i < count; i++) {
        if (backed && check[i].state == VPMU_COUNTER_STARVED && !check[i].counted)
            check[i].state = VPMU_COUNTER_FILTERED;
    }
}

static uint32_t check_counter(const struct verifier *verifier, uint32_t index,
                              struct vpmu_check *check)
{
    uint32_t only = verifier->vpmu->pmu.counter[index].fixed_event;

    if (only != VPMU_NONE) {
        check[0] = check_event(verifier, index, only);
        return 1;
    }
    check[0] = check_event(verifier, index, VPMU_EVENT_INSTRUCTIONS);
    check[1] = check_event(verifier, index, VPMU_EVENT_BRANCHES);
    tell_filtered(check, 2);
    return 2;
}

/* A counter is as good as the best of its events. */
static uint32_t state_of(const struct vpmu_check *check, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (check[i].state == VPMU_COUNTER_BACKED)
            return VPMU_COUNTER_BACKED;
    }
    return check[0].state;
}

static void verify_here(void *context)
{
    struct verifier *verifier = context;
    struct vpmu *vpmu = verifier->vpmu;
    struct vpmu_verification *verification = verifier->verification;
    struct vpmu_processor *processor = &vpmu->processor[verification->processor];

    if (vpmu->pmu.global_ctrl)
        os_rdmsr(vpmu->pmu.global_ctrl, &verification->global_ctrl);
    for (uint64_t left = vpmu->held; left; left &= left - 1) {
        uint32_t index = pmu_first(left);
        struct vpmu_check *check = &verification->checks[verification->count];
        uint32_t count = check_counter(verifier, index, check);

        verification->count += count;
        processor->state[index] = (uint8_t)state_of(check, count);
        if (processor->state[index] != VPMU_COUNTER_BACKED)
            verification->not_backed |= 1ull << index;
        if (vpmu->programmed >> index & 1)
            pmu_program(&vpmu->pmu, index, &vpmu->programs[index]);
        overflow_forget(&processor->overflows, index);
    }
}

NTSTATUS verify(struct vpmu *vpmu, const struct vpmu_verify_request *request,
                struct vpmu_verification *verification)
{
    struct verifier verifier = {
        .vpmu = vpmu,
        .iterations = request->iterations,
        .interrupt = request->flags & VPMU_VERIFY_INTERRUPT,
        .verification = verification,
    };

    if (request->processor >= vpmu->driven || !request->iterations ||
        request->iterations > VPMU_MAX_ITERATIONS || request->reserved ||
        request->flags & ~(uint32_t)VPMU_VERIFY_INTERRUPT)
        return STATUS_INVALID_PARAMETER;
    if (verifier.interrupt && !(vpmu->grant.flags & VPMU_GRANT_OVERFLOW))
        return STATUS_NOT_SUPPORTED;
    if (vpmu->running)
        return STATUS_INVALID_DEVICE_STATE;
    verification->processor = request->processor;
    return os_on_processor(request->processor, verify_here, &verifier);
}
