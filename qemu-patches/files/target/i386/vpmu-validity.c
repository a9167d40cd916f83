/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the vCPUs' counters count.
 *
 * Theory of operation. A timer of the guest's time has each vCPU's thread look
 * at its own registers and at its own running time, and hv/validity judges.
 * No event is opened, so a look takes no counter from anybody; a vCPU that is
 * halted is woken for it. Under KVM a counter can be starved, since the kernel
 * does not tell if its event has lost its place, nor does it try again by
 * itself: it is made to, after each look. The emulator counts always.
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "qapi/qapi-events-misc-target.h"
#include "exec/cpu-common.h"
#include "hw/core/cpu.h"
#include "system/kvm.h"
#include "system/tcg.h"
#include "kvm/vpmu.h"
#include "tcg/system/vpmu.h"
#include "vpmu/filter.h"
#include "vpmu-lease.h"
#include "vpmu-validity.h"

#define LOOK_MS 500
#define REPORT_MS 5000 /* without a change */

/* Lines about counters, which a guest could otherwise fill the log with. */
#define LINES 20
#define LINES_MS 60000

/* Event selects: counter mask, edge (SDM Vol. 3; APM Vol. 2 the same). */
#define EVENTSEL_COMPARES 0xff040000u

#define RING_USER (VPMU_CLASS_BIT(VPMU_CLASS_USER) | \
                   VPMU_CLASS_BIT(VPMU_CLASS_GUEST_USER))
#define RING_KERNEL (VPMU_CLASS_BIT(VPMU_CLASS_KERNEL) | \
                     VPMU_CLASS_BIT(VPMU_CLASS_GUEST_KERNEL))

QEMU_BUILD_BUG_ON((int)VPMU_COUNTER_REVOKED != (int)VPMU_COUNTER_STATE_REVOKED);
QEMU_BUILD_BUG_ON(VPMU_COUNTER_STATES != VPMU_COUNTER_STATE__MAX);

static NotifierList look_notifiers =
    NOTIFIER_LIST_INITIALIZER(look_notifiers);
static QEMUTimer *look_timer;
static bool report_due;
static int64_t report_time;

/* What the states are to people */

static const struct {
    uint8_t badness;  /* the worst of several vCPUs is what is reported */
    bool trouble;     /* worth an event; the others are the guest's own doing */
    const char *text; /* of a line in the log */
} states[VPMU_COUNTER_STATES] = {
    [VPMU_COUNTER_ABSENT] = { 0, false, NULL },
    [VPMU_COUNTER_GRANTED] = { 1, false, NULL },
    [VPMU_COUNTER_BACKED] = { 2, false, "counts again" },
    [VPMU_COUNTER_UNSUPPORTED] = { 3, true, NULL },
    [VPMU_COUNTER_FILTERED] = { 4, true, NULL },
    [VPMU_COUNTER_REVOKED] = { 5, true, NULL },
    [VPMU_COUNTER_STARVED] = { 6, true, "is starved: the host has taken what"
                                        " counts for it" },
};

static bool may_say(void)
{
    static int64_t since;
    static unsigned lines;
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);

    if (!lines || now - since > LINES_MS) {
        since = now;
        lines = 0;
    }
    return lines++ < LINES;
}

static void say(X86CPU *cpu, const struct vpmu_counter_info *info,
                uint8_t before, uint8_t state)
{
    bool starves = state == VPMU_COUNTER_STARVED;

    if (!starves && (before != VPMU_COUNTER_STARVED ||
                     state != VPMU_COUNTER_BACKED)) {
        return;
    }
    if (may_say()) {
        warn_report("vpmu: vCPU %d: %s counter %u (%s) %s",
                    CPU(cpu)->cpu_index,
                    info->fixed ? "fixed" : "general-purpose", info->index,
                    vpmu_event_name(info->event), states[state].text);
    }
}

static void tell(X86CPU *cpu, const struct vpmu_counter_info *info,
                 uint8_t before, uint8_t state)
{
    say(cpu, info, before, state);
    if (states[before].trouble || states[state].trouble) {
        qapi_event_send_vpmu_counter_state(
            CPU(cpu)->cpu_index, info->fixed, info->index,
            (VpmuCounterState)state, (VpmuCounterState)before,
            vpmu_event_name(info->event));
        report_due = true;
    }
}

/* What vpmud is told */

static void add_vcpu(const X86VPMUWatch *watch, struct vpmu_wire_report *report,
                     struct vpmu_status_counter *sums)
{
    report->vcpus++;
    report->counters = watch->count;
    for (unsigned i = 0; i < watch->count; i++) {
        const struct vpmu_validity *counter = &watch->counters[i];

        report->states[counter->state]++;
        sums[i].enabled_ns += counter->enabled_ns;
        sums[i].backed_ns += counter->backed_ns;
        if (report->vcpus == 1 ||
            states[counter->state].badness > states[sums[i].state].badness) {
            sums[i].index = watch->infos[i].index +
                (watch->infos[i].fixed ? 32 : 0);
            sums[i].state = counter->state;
            sums[i].selector = counter->last.selector;
        }
    }
}

static void report(void)
{
    struct vpmu_status_counter sums[VPMU_COUNTERS_MAX] = {};
    struct vpmu_wire_report report = {};
    CPUState *cs;

    CPU_FOREACH(cs) {
        if (X86_CPU(cs)->vpmu_watch) {
            add_vcpu(X86_CPU(cs)->vpmu_watch, &report, sums);
        }
    }
    if (vpmu_lease_report(&report, sums)) {
        report_due = false;
        report_time = qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL);
    }
}

/* A look */

/*
 * The time for which the vCPU has run. Threads that several vCPUs share do not
 * tell.
 */
static uint64_t running_clock(void)
{
    struct timespec time;

    if (tcg_enabled() && !qemu_tcg_mttcg_enabled()) {
        return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * NANOSECONDS_PER_SECOND + time.tv_nsec;
}

static uint64_t selector_of(const struct vpmu_state *state,
                            const struct vpmu_counter_info *info)
{
    return info->fixed ? extract64(state->fixed_control, 4 * info->index, 4)
                       : state->gp_select[info->index];
}

static bool contains(struct vpmu_amount amount,
                     const struct vpmu_counter_info *info)
{
    return info->fixed ? amount.fixed & 1u << info->index
                       : info->index < amount.gp;
}

/* Cannot stand still while the vCPU executes. The emulator needs no proof. */
static bool moves(const struct vpmu_counter_info *info, uint64_t selector)
{
    return kvm_enabled() &&
        (info->event == VPMU_EVENT_INSTRUCTIONS ||
         info->event == VPMU_EVENT_CYCLES) &&
        (info->fixed || !(selector & EVENTSEL_COMPARES));
}

static struct vpmu_look look_of(const struct vpmu_counter_info *info,
                                const struct vpmu_state *state)
{
    uint64_t selector = selector_of(state, info);
    bool granted = contains(vpmu_lease_granted(), info);
    bool wanted = contains(vpmu_lease_wanted(), info);

    return (struct vpmu_look) {
        .selector = selector,
        .value = info->value,
        .exists = granted,
        .revoked = wanted && !granted,
        .enabled = info->enabled,
        /* KVM counts whatever the host's processor can. */
        .unsupported = tcg_enabled() &&
                       info->state == VPMU_COUNTER_UNSUPPORTED,
        .filtered = info->state == VPMU_COUNTER_FILTERED,
        .moves = moves(info, selector),
        .user = info->classes & RING_USER,
        .kernel = info->classes & RING_KERNEL,
    };
}

static struct vpmu *registers_of(X86CPU *cpu, bool *user, bool *halted)
{
    if (kvm_enabled()) {
        return kvm_vpmu_read(cpu, user, halted);
    }
    *user = (cpu->env.hflags & HF_CPL_MASK) == 3;
    *halted = CPU(cpu)->halted;
    return x86_vpmu_model(cpu);
}

static bool judge(X86CPU *cpu, struct vpmu *registers,
                  const struct vpmu_moment *moment, bool regranted)
{
    X86VPMUWatch *watch = cpu->vpmu_watch;
    struct vpmu_state state;
    bool changed = false;

    vpmu_save(registers, &state);
    watch->count = vpmu_counters(registers);
    for (unsigned i = 0; i < watch->count; i++) {
        struct vpmu_validity *counter = &watch->counters[i];
        struct vpmu_counter_info *info = &watch->infos[i];
        uint8_t before = counter->state;
        struct vpmu_look look;

        vpmu_counter_info(registers, i, info);
        look = look_of(info, &state);
        if (vpmu_validity_look(counter, &look, moment)) {
            changed = true;
            tell(cpu, info, before, counter->state);
        }
        if (counter->state == VPMU_COUNTER_STARVED ||
            (kvm_enabled() && regranted && info->enabled)) {
            kvm_vpmu_revive(cpu, &state, info);
        }
    }
    return changed;
}

static void notify(X86CPU *cpu, bool changed)
{
    X86VPMULook look = { cpu, changed };

    notifier_list_notify(&look_notifiers, &look);
}

static void look_on_cpu(CPUState *cs, run_on_cpu_data regranted)
{
    X86CPU *cpu = X86_CPU(cs);
    X86VPMUWatch *watch = cpu->vpmu_watch;
    struct vpmu_moment moment = { .user_before = watch->user };
    uint64_t now = running_clock();
    struct vpmu *registers = registers_of(cpu, &moment.user, &moment.halted);
    bool halted = moment.halted, changed;

    watch->asked = false;
    if (!registers) {
        return;
    }
    moment.ran_ns = watch->started ? now - watch->clock : 0;
    moment.halted |= watch->halted;
    watch->started = true;
    watch->clock = now;
    watch->user = moment.user;
    watch->halted = halted;
    watch->ran_ns += moment.ran_ns;
    changed = judge(cpu, registers, &moment, regranted.host_int);
    notify(cpu, changed || regranted.host_int);
    if (report_due) {
        report();
    }
    watch->look_ns += running_clock() - now;
}

void x86_vpmu_look(X86CPU *cpu)
{
    run_on_cpu(CPU(cpu), look_on_cpu, RUN_ON_CPU_HOST_INT(false));
}

/* Of one that has not come yet, there is no other. */
static void ask_all(bool regranted)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        X86VPMUWatch *watch = X86_CPU(cs)->vpmu_watch;

        if (watch && (regranted || !watch->asked)) {
            watch->asked = true;
            async_run_on_cpu(cs, look_on_cpu, RUN_ON_CPU_HOST_INT(regranted));
        }
    }
}

void x86_vpmu_regranted(void)
{
    report_due = true;
    ask_all(true);
}

static void look_time(void *opaque)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL);

    ask_all(false);
    if (report_due || now - report_time >= REPORT_MS) {
        report();
    }
    timer_mod(look_timer, now + LOOK_MS);
}

/* Life */

void x86_vpmu_watch(X86CPU *cpu)
{
    const struct vpmu_config *config = &cpu->vpmu_config;

    cpu->vpmu_watch = g_new0(X86VPMUWatch, 1);
    cpu->vpmu_watch->count = config->gp + config->fixed;
    if (!look_timer) {
        vpmu_lease_begin((VpmuAmount) { config->gp, config->fixed });
        look_timer = timer_new_ms(QEMU_CLOCK_VIRTUAL, look_time, NULL);
        timer_mod(look_timer,
                  qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL) + LOOK_MS);
    }
}

void x86_vpmu_unwatch(X86CPU *cpu)
{
    if (cpu->vpmu_watch) {
        g_free(cpu->vpmu_watch);
        cpu->vpmu_watch = NULL;
        notify(cpu, true);
    }
}

/* For the status device */

unsigned x86_vpmu_counters(X86CPU *cpu, struct vpmu_status_counter *records,
                           unsigned room)
{
    const X86VPMUWatch *watch = cpu->vpmu_watch;
    unsigned count = watch ? MIN(watch->count, room) : 0;

    for (unsigned i = 0; i < count; i++) {
        const struct vpmu_validity *counter = &watch->counters[i];
        bool fixed = i >= cpu->vpmu_config.gp;

        records[i] = (struct vpmu_status_counter) {
            .index = fixed ? 32 + i - cpu->vpmu_config.gp : i,
            .state = watch->started ? counter->state : VPMU_COUNTER_GRANTED,
            .selector = counter->last.selector,
            .enabled_ns = counter->enabled_ns,
            .backed_ns = counter->backed_ns,
        };
    }
    return count;
}

uint64_t x86_vpmu_ran_ns(X86CPU *cpu)
{
    return cpu->vpmu_watch ? cpu->vpmu_watch->ran_ns : 0;
}

void x86_vpmu_add_look_notifier(Notifier *notifier)
{
    notifier_list_add(&look_notifiers, notifier);
}

void x86_vpmu_granted(unsigned *gp, uint32_t *fixed)
{
    struct vpmu_amount granted = vpmu_lease_granted();

    *gp = granted.gp;
    *fixed = granted.fixed;
}

uint32_t x86_vpmu_revocations(void)
{
    return vpmu_lease_revocations();
}

void x86_vpmu_resize(unsigned gp, uint32_t fixed,
                     void (*done)(void *opaque, uint32_t ntstatus),
                     void *opaque)
{
    vpmu_lease_resize(gp, fixed, done, opaque);
}
