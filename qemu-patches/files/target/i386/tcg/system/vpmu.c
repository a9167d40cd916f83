/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PMU of a vCPU under TCG.
 *
 * Theory of operation. The model decides what the registers mean and tells its
 * demand: which counters count what, and how far each is from its overflow.
 * This file is the model's source. Generated code charges every block to the
 * word of its class (exec/retire.h); fold() moves what has been charged into
 * totals, which the model reads. The distance to the next overflow becomes the
 * budget in the words, so that the block after the overflowing instruction
 * does not start: x86_vpmu_retire_expired() is called instead, exactly there.
 *
 * A counter that counts in several classes has one distance and several words.
 * Far from its overflow they share it; near, the running class has all of it
 * and every other class has no budget at all, so that the first block after a
 * change of class comes here and is handed what is left.
 *
 * Within an instruction that reads or writes the PMU, the words do not hold the
 * instruction itself: enter() takes it out and leave() puts it back, under the
 * configuration that it left.
 *
 * Core cycles and issue slots are one per instruction. Reference cycles are the
 * TSC's while not halted. docs/device.md defines the events for guests.
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/host-utils.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "system/runstate.h"
#include "cpu.h"
#include "exec/exec-all.h"
#include "exec/helper-proto.h"
#include "exec/retire.h"
#include "exec/translation-block.h"
#include "hw/i386/apic.h"
#include "tcg/helper-tcg.h"
#include "tcg/system/vpmu.h"
#include "vpmu-object.h"
#include "vpmu-validity.h"
#include "vpmu/model.h"

/* How close to an overflow each change of class is looked at, in instructions. */
#define NEAR 2048

struct X86VPMU {
    struct vpmu model;
    X86CPU *cpu;

    struct vpmu_demand demand[VPMU_COUNTERS_MAX];
    unsigned rows;

    /* What fold() has seen, and the budget of each word as of then. */
    uint64_t totals[VPMU_EVENTS][VPMU_CLASSES];
    int64_t budget[VPMU_CLASSES];

    /* Reference cycles: counted up to mark, in the class that ran since. */
    uint64_t mark;
    int mark_class;
    QEMUTimer *deadline;
    VMChangeStateEntry *stop;
};

/* What each event is counted as. Events that are not here are not kept. */
static const uint8_t counted_as[VPMU_EVENTS] = {
    [VPMU_EVENT_INSTRUCTIONS] = VPMU_EVENT_INSTRUCTIONS,
    [VPMU_EVENT_CYCLES] = VPMU_EVENT_INSTRUCTIONS,
    [VPMU_EVENT_SLOTS] = VPMU_EVENT_INSTRUCTIONS,
    [VPMU_EVENT_BRANCHES] = VPMU_EVENT_BRANCHES,
    [VPMU_EVENT_COND_BRANCHES] = VPMU_EVENT_COND_BRANCHES,
    [VPMU_EVENT_NEAR_CALLS] = VPMU_EVENT_NEAR_CALLS,
    [VPMU_EVENT_NEAR_RETURNS] = VPMU_EVENT_NEAR_RETURNS,
    [VPMU_EVENT_FAR_BRANCHES] = VPMU_EVENT_FAR_BRANCHES,
    [VPMU_EVENT_REF_CYCLES] = VPMU_EVENT_REF_CYCLES,
    [VPMU_EVENT_INTERRUPTS] = VPMU_EVENT_INTERRUPTS,
};

static const uint8_t kind_event[] = {
    [RETIRE_COND] = VPMU_EVENT_COND_BRANCHES,
    [RETIRE_CALL] = VPMU_EVENT_NEAR_CALLS,
    [RETIRE_RETURN] = VPMU_EVENT_NEAR_RETURNS,
    [RETIRE_FAR] = VPMU_EVENT_FAR_BRANCHES,
};

static bool event_is_kind(enum vpmu_event event)
{
    for (int kind = RETIRE_COND; kind < ARRAY_SIZE(kind_event); kind++) {
        if (kind_event[kind] == event) {
            return true;
        }
    }
    return false;
}

/* Events that can only happen when an instruction retires. */
static bool event_is_retirement(enum vpmu_event event)
{
    return event != VPMU_EVENT_REF_CYCLES && event != VPMU_EVENT_INTERRUPTS;
}

static uint32_t events_kept(void)
{
    uint32_t events = 0;

    for (int event = 0; event < VPMU_EVENTS; event++) {
        if (counted_as[event]) {
            events |= VPMU_EVENT_BIT(event);
        }
    }
    return events;
}

static X86VPMU *env_vpmu(CPUX86State *env)
{
    return env_archcpu(env)->vpmu;
}

static int running_class(const X86VPMU *v)
{
    return x86_retire_class(v->cpu->env.hflags);
}

/* Classes that this processor can be in. */
static unsigned possible_classes(const X86VPMU *v)
{
    unsigned classes = VPMU_CLASS_BIT(VPMU_CLASS_KERNEL) |
        VPMU_CLASS_BIT(VPMU_CLASS_USER);

    if (v->cpu->env.features[FEAT_8000_0001_ECX] & CPUID_EXT3_SVM) {
        classes |= VPMU_CLASS_BIT(VPMU_CLASS_GUEST_KERNEL) |
            VPMU_CLASS_BIT(VPMU_CLASS_GUEST_USER);
    }
    return classes;
}

/* Counting */

/* Move what was charged since the last time into the totals; budgets stay. */
static void fold(X86VPMU *v)
{
    CPUX86State *env = &v->cpu->env;

    for (int class = 0; class < VPMU_CLASSES; class++) {
        int64_t left = env->retire_word[class] >> RETIRE_BRANCH_BITS;
        uint64_t branches = extract64(env->retire_word[class], 0,
                                      RETIRE_BRANCH_BITS);
        uint64_t kinds = env->retire_kinds[class];

        v->totals[VPMU_EVENT_INSTRUCTIONS][class] += v->budget[class] - left;
        v->totals[VPMU_EVENT_BRANCHES][class] += branches;
        for (int kind = RETIRE_COND; kind < ARRAY_SIZE(kind_event); kind++) {
            v->totals[kind_event[kind]][class] +=
                extract64(kinds, retire_kind_shift(kind), RETIRE_KIND_BITS);
        }
        v->budget[class] = left;
        env->retire_word[class] = left << RETIRE_BRANCH_BITS;
        env->retire_kinds[class] = 0;
    }
}

/* Bring reference cycles up to now. */
static void advance_reference(X86VPMU *v)
{
    uint64_t now = cpu_get_tsc(&v->cpu->env);

    if (!CPU(v->cpu)->halted) {
        v->totals[VPMU_EVENT_REF_CYCLES][v->mark_class] += now - v->mark;
    }
    v->mark = now;
    v->mark_class = running_class(v);
}

static uint64_t source_total(void *source, enum vpmu_event event,
                             unsigned classes)
{
    X86VPMU *v = source;
    uint64_t total = 0;

    if (event == VPMU_EVENT_REF_CYCLES) {
        advance_reference(v);
    } else {
        fold(v);
    }
    for (int class = 0; class < VPMU_CLASSES; class++) {
        if (classes & VPMU_CLASS_BIT(class)) {
            total += v->totals[counted_as[event]][class];
        }
    }
    return total;
}

/* Budgets and deadlines */

/* Have every change of class come here, through the others' empty budgets. */
static void limit_to_running_class(X86VPMU *v)
{
    for (int class = 0; class < VPMU_CLASSES; class++) {
        if (class != running_class(v)) {
            v->budget[class] = 0;
        }
    }
}

static void limit(X86VPMU *v, int class, uint64_t distance)
{
    v->budget[class] = MIN(v->budget[class], distance);
}

/*
 * Far from the overflow the row's classes share what is not NEAR, the one that
 * runs most of it. Near, it can happen at the last instruction before a change
 * of class, and that must show at the first instruction behind it.
 */
static void limit_retirements(X86VPMU *v, const struct vpmu_demand *row)
{
    unsigned classes = row->classes & possible_classes(v);
    unsigned sharers = MAX(ctpop32(classes), 1);
    uint64_t spare, share;

    if (row->distance <= NEAR * sharers) {
        limit_to_running_class(v);
        if (classes & VPMU_CLASS_BIT(running_class(v))) {
            limit(v, running_class(v), row->distance);
        }
        return;
    }
    spare = row->distance - NEAR;
    share = sharers == 1 ? spare : spare / 8;
    for (int class = 0; class < VPMU_CLASSES; class++) {
        if (classes & VPMU_CLASS_BIT(class)) {
            limit(v, class, class == running_class(v)
                  ? spare - share * (sharers - 1) : share);
        }
    }
}

/*
 * When @cycles more at the TSC's rate will have passed, on the virtual clock.
 * Not exact: a deadline that comes early finds no overflow and is set again.
 */
static int64_t reference_deadline(X86VPMU *v, uint64_t cycles)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    double ticks = cpu_get_tsc(&v->cpu->env);
    double ns_per_tick = ticks && now ? now / ticks : 1;

    return now + 1 + (int64_t)MIN(cycles * ns_per_tick, INT64_MAX / 4);
}

static void set_deadline(X86VPMU *v, bool halted)
{
    uint64_t nearest = UINT64_MAX;

    for (unsigned i = 0; i < v->rows; i++) {
        if (v->demand[i].event == VPMU_EVENT_REF_CYCLES) {
            nearest = MIN(nearest, v->demand[i].distance);
        }
    }
    if (nearest == UINT64_MAX || halted) {
        timer_del(v->deadline);
    } else {
        timer_mod(v->deadline, reference_deadline(v, nearest));
    }
}

static void set_budgets(X86VPMU *v, bool kinds)
{
    CPUX86State *env = &v->cpu->env;
    int64_t max = kinds ? RETIRE_BUDGET_MAX_KINDS : RETIRE_BUDGET_MAX;

    for (int class = 0; class < VPMU_CLASSES; class++) {
        v->budget[class] = max;
    }
    for (unsigned i = 0; i < v->rows; i++) {
        const struct vpmu_demand *row = &v->demand[i];

        if (event_is_retirement(row->event)) {
            limit_retirements(v, row);
        } else if (possible_classes(v) & ~row->classes) {
            /* Time is not counted by blocks: split it at each change. */
            limit_to_running_class(v);
        }
    }
    for (int class = 0; class < VPMU_CLASSES; class++) {
        env->retire_word[class] = v->budget[class] << RETIRE_BRANCH_BITS;
    }
}

/* Set what the demand asks of the translator, the words and the timer. */
static void plan(X86VPMU *v)
{
    CPUState *cs = CPU(v->cpu);
    bool kinds = false;

    for (unsigned i = 0; i < v->rows; i++) {
        kinds |= event_is_kind(v->demand[i].event);
    }
    fold(v);
    advance_reference(v);
    set_budgets(v, kinds);
    set_deadline(v, cs->halted);
    cs->tcg_cflags &= ~(CF_RETIRE | CF_RETIRE_KINDS);
    if (v->rows) {
        cs->tcg_cflags |= CF_RETIRE | (kinds ? CF_RETIRE_KINDS : 0);
    }
}

static void source_demand(void *source, const struct vpmu_demand *rows,
                          unsigned count)
{
    X86VPMU *v = source;

    assert(count <= ARRAY_SIZE(v->demand));
    for (unsigned i = 0; i < count; i++) {
        v->demand[i] = rows[i];
    }
    v->rows = count;
    plan(v);
}

static void source_pmi(void *source)
{
    X86VPMU *v = source;

    if (v->cpu->apic_state) {
        BQL_LOCK_GUARD();
        apic_deliver_pmi(v->cpu->apic_state,
                         v->model.config.vendor == VPMU_VENDOR_INTEL);
    }
}

static const struct vpmu_source_ops source_ops = {
    .total = source_total,
    .demand = source_demand,
    .pmi = source_pmi,
};

/* With a policy that denies something. */
static const struct vpmu_source_ops filtered_source_ops = {
    .total = source_total,
    .demand = source_demand,
    .pmi = source_pmi,
    .denied = x86_vpmu_denied,
};

static void deadline_on_cpu(CPUState *cs, run_on_cpu_data data)
{
    vpmu_sync(&X86_CPU(cs)->vpmu->model);
}

static void deadline_passed(void *opaque)
{
    X86VPMU *v = opaque;

    async_run_on_cpu(CPU(v->cpu), deadline_on_cpu, RUN_ON_CPU_NULL);
}

/*
 * A vCPU may stop between an overflow and its interrupt. Not so the machine: the
 * interrupt is raised before anything is saved, for when cpu/vpmu is, the field
 * that tells the vCPU to look for interrupts has been.
 */
static void vm_state_changed(void *opaque, bool running, RunState state)
{
    X86VPMU *v = opaque;

    if (!running) {
        vpmu_sync(&v->model);
    }
}

/* What the translator's side tells */

void x86_vpmu_retire_undo(CPUState *cs, const TranslationBlock *tb, int insns)
{
    CPUX86State *env = cpu_env(cs);
    int class = x86_retire_class(tb->flags);

    env->retire_word[class] -= retire_charge(insns, tb->retire_kind);
    if (tb_cflags(tb) & CF_RETIRE_KINDS) {
        env->retire_kinds[class] -= retire_kind_charge(tb->retire_kind);
    }
}

static int64_t budget_left(CPUX86State *env, int class)
{
    return env->retire_word[class] >> RETIRE_BRANCH_BITS;
}

int x86_vpmu_retire_expired(CPUState *cs, const TranslationBlock *tb)
{
    CPUX86State *env = cpu_env(cs);
    int class = x86_retire_class(tb->flags);

    if (budget_left(env, class) >= tb->icount) {
        return 0;
    }
    if (budget_left(env, class) <= 0) {
        vpmu_sync(&env_vpmu(env)->model);
    }
    if (!(cs->tcg_cflags & CF_RETIRE)) {
        return INT_MAX;
    }
    assert(budget_left(env, class) > 0);
    return budget_left(env, class);
}

bool x86_vpmu_settle(CPUX86State *env)
{
    X86VPMU *v = env_vpmu(env);

    if (!v || !v->rows || budget_left(env, running_class(v)) > 0) {
        return false;
    }
    vpmu_sync(&v->model);
    return true;
}

void x86_vpmu_interrupt(CPUX86State *env)
{
    X86VPMU *v = env_vpmu(env);

    if (v) {
        v->totals[VPMU_EVENT_INTERRUPTS][running_class(v)]++;
        for (unsigned i = 0; i < v->rows; i++) {
            if (v->demand[i].event == VPMU_EVENT_INTERRUPTS) {
                vpmu_sync(&v->model);
                break;
            }
        }
    }
}

void x86_vpmu_retire_int(CPUX86State *env, int class)
{
    X86VPMU *v = env_vpmu(env);

    if (v && v->rows) {
        env->retire_word[class] += retire_charge(1, RETIRE_FAR);
        env->retire_kinds[class] += retire_kind_charge(RETIRE_FAR);
    }
}

void x86_vpmu_halt(CPUX86State *env)
{
    X86VPMU *v = env_vpmu(env);

    if (v && v->rows) {
        vpmu_sync(&v->model);
        set_deadline(v, true);
    }
}

void x86_vpmu_wake(CPUX86State *env)
{
    X86VPMU *v = env_vpmu(env);

    if (v) {
        advance_reference(v);
        set_deadline(v, false);
    }
}

/* The guest's accesses */

/* Take the instruction in progress, which its block charged, out of the words. */
static void enter(X86VPMU *v)
{
    if (CPU(v->cpu)->tcg_cflags & CF_RETIRE) {
        v->cpu->env.retire_word[running_class(v)] -=
            retire_charge(1, RETIRE_OTHER);
    }
}

/* It retires under the configuration that it left. */
static void leave(X86VPMU *v)
{
    if (CPU(v->cpu)->tcg_cflags & CF_RETIRE) {
        v->cpu->env.retire_word[running_class(v)] +=
            retire_charge(1, RETIRE_OTHER);
    }
}

static void refuse(CPUX86State *env, const char *what, uint32_t index,
                   uint64_t value, uintptr_t ra)
{
    qemu_log_mask(LOG_GUEST_ERROR, "vpmu: vCPU %d: %s 0x%x"
                  " (value 0x%" PRIx64 "): #GP\n", env_cpu(env)->cpu_index,
                  what, index, value);
    raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
}

bool x86_vpmu_rdmsr(CPUX86State *env, uint32_t index, uint64_t *value,
                    uintptr_t ra)
{
    X86VPMU *v = env_vpmu(env);
    enum vpmu_result result;

    if (!v) {
        return false;
    }
    if (index == MSR_IA32_MISC_ENABLE) {
        *value = vpmu_misc_enable(&v->model, env->msr_ia32_misc_enable);
        return true;
    }
    enter(v);
    result = vpmu_rdmsr(&v->model, index, value);
    leave(v);
    if (result == VPMU_FAULT) {
        refuse(env, "RDMSR of", index, 0, ra);
    }
    return result == VPMU_OK;
}

bool x86_vpmu_wrmsr(CPUX86State *env, uint32_t index, uint64_t value,
                    uintptr_t ra)
{
    X86VPMU *v = env_vpmu(env);
    enum vpmu_result result;

    if (!v) {
        return false;
    }
    enter(v);
    result = vpmu_wrmsr(&v->model, index, value);
    leave(v);
    if (result == VPMU_FAULT) {
        refuse(env, "WRMSR to", index, value, ra);
    }
    return result == VPMU_OK;
}

void x86_vpmu_efer_written(CPUX86State *env)
{
    X86VPMU *v = env_vpmu(env);

    if (v) {
        enter(v);
        vpmu_set_svme(&v->model, env->efer & MSR_EFER_SVME);
        leave(v);
    }
}

void helper_vpmu_rdpmc(CPUX86State *env)
{
    X86VPMU *v = env_vpmu(env);
    uint32_t selector = env->regs[R_ECX];
    enum vpmu_result result;
    uint64_t value = 0;

    if (!(env->cr[4] & CR4_PCE_MASK) && (env->hflags & HF_CPL_MASK)) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, GETPC());
    }
    cpu_svm_check_intercept_param(env, SVM_EXIT_RDPMC, 0, GETPC());

    enter(v);
    result = vpmu_rdpmc(&v->model, selector, &value);
    leave(v);
    if (result != VPMU_OK) {
        refuse(env, "RDPMC of", selector, 0, GETPC());
    }
    env->regs[R_EAX] = (uint32_t)value;
    env->regs[R_EDX] = (uint32_t)(value >> 32);
}

/* Life */

/* What a property asks for. Out of range: a number that no PMU has. */
static uint8_t asked(int32_t property, uint8_t usual)
{
    return property == -1 ? usual :
        property < 0 || property > UINT8_MAX ? UINT8_MAX : property;
}

static bool shape_intel(X86CPU *cpu, Error **errp)
{
    struct vpmu_config *config = &cpu->vpmu_config;
    CPUX86State *env = &cpu->env;

    if (env->cpuid_level < 0xa) {
        error_setg(errp, "pmu=on: the PMU is described in CPUID leaf 0xA, and"
                   " this CPU model ends at leaf 0x%x (try level=0xd)",
                   env->cpuid_level);
        return false;
    }
    config->vendor = VPMU_VENDOR_INTEL;
    config->version = asked(cpu->vpmu_asked.version, 2);
    config->gp = asked(cpu->vpmu_asked.gp, 4);
    config->fixed = asked(cpu->vpmu_asked.fixed, config->version == 1 ? 0 : 3);
    return true;
}

/* Zen's event encodings are not those of the families before. */
static uint8_t amd_version(const CPUX86State *env)
{
    unsigned family = extract32(env->cpuid_version, 8, 4) +
        extract32(env->cpuid_version, 20, 8);

    return family < 0x17 ? VPMU_AMD_LEGACY :
        env->cpuid_xlevel < 0x80000022 ? VPMU_AMD_EXT_CORE :
        VPMU_AMD_PERFMON_V2;
}

static bool shape_amd(X86CPU *cpu, Error **errp)
{
    struct vpmu_config *config = &cpu->vpmu_config;
    CPUX86State *env = &cpu->env;

    if (env->cpuid_xlevel < 0x80000008) {
        error_setg(errp, "pmu=on: the PMU is described in CPUID leaf 0x80000008"
                   " and others, and this CPU model ends at leaf 0x%x"
                   " (try xlevel=0x80000022)", env->cpuid_xlevel);
        return false;
    }
    config->vendor = VPMU_VENDOR_AMD;
    config->version = asked(cpu->vpmu_asked.version, amd_version(env));
    config->gp = asked(cpu->vpmu_asked.gp,
                       config->version == VPMU_AMD_LEGACY ? 4 : 6);
    config->fixed = asked(cpu->vpmu_asked.fixed, 0);
    config->full_width = false; /* Intel's */
    return true;
}

/* Complete what the properties leave open, by the vendor. */
static bool shape(X86CPU *cpu, Error **errp)
{
    if (HOST_LONG_BITS < 64) {
        error_setg(errp, "pmu=on: the PMU under TCG needs a 64-bit host");
        return false;
    }
    if (IS_INTEL_CPU(&cpu->env)) {
        return shape_intel(cpu, errp);
    }
    if (IS_AMD_CPU(&cpu->env)) {
        return shape_amd(cpu, errp);
    }
    error_setg(errp, "pmu=on: the PMU under TCG is Intel's or AMD's, and this"
               " CPU model's vendor is another"
               " (try -cpu Skylake-Server,pmu=on, or vendor=GenuineIntel)");
    return false;
}

/* What a PMU of this shape's vendor and version could have at most. */
static struct vpmu_config largest(const struct vpmu_config *shape)
{
    struct vpmu_config most = *shape;

    if (shape->vendor == VPMU_VENDOR_AMD) {
        most.gp = shape->version == VPMU_AMD_PERFMON_V2 ? VPMU_GP_MAX :
            shape->version == VPMU_AMD_EXT_CORE ? 6 : 4;
        most.fixed = 1;
    } else {
        most.gp = VPMU_GP_MAX;
        most.fixed = shape->version == 1 ? 0 : VPMU_FIXED_MAX;
    }
    return most;
}

/* The object's word comes after that of the CPU's properties. */
static bool admit(X86CPU *cpu, Error **errp)
{
    struct vpmu_config *config = &cpu->vpmu_config;
    VpmuObject *object = x86_vpmu_object();
    VpmuOffer offer = {
        .source = VPMU_GRANT_SOURCE_TCG,
        .most = largest(config),
        .gp = config->gp,
        .fixed = config->fixed,
    };

    if (!object) {
        return true;
    }
    if (!x86_vpmu_admit(object, &offer, errp)) {
        return false;
    }
    cpu->enable_pmu = !object->hidden;
    config->version = object->config.version;
    config->gp = object->config.gp;
    config->fixed = object->config.fixed;
    return true;
}

/* A feature that was asked for, and found missing, is there after all. */
static void add_feature(X86CPU *cpu, FeatureWord word, uint64_t mask)
{
    cpu->env.features[word] |= mask;
    cpu->filtered_features[word] &= ~mask;
}

/* Features that say what the PMU is like. */
static void advertise(X86CPU *cpu)
{
    const struct vpmu_config *config = &cpu->vpmu_config;
    CPUX86State *env = &cpu->env;

    if (config->vendor == VPMU_VENDOR_INTEL) {
        add_feature(cpu, FEAT_1_ECX, CPUID_EXT_PDCM);
        return;
    }
    if (config->version == VPMU_AMD_PERFMON_V2) {
        env->cpuid_xlevel = MAX(env->cpuid_xlevel, 0x80000022);
    }
    env->features[FEAT_8000_0001_ECX] &= ~(CPUID_EXT3_PERFCORE |
                                           CPUID_EXT3_PERFNB);
    add_feature(cpu, FEAT_8000_0001_ECX, vpmu_cpuid_80000001_ecx(config));
    add_feature(cpu, FEAT_8000_0008_EBX, vpmu_cpuid_80000008_ebx(config));
}

static const struct vpmu_source_ops *ops_of(const VpmuObject *object)
{
    return object && !vpmu_policy_is_open(&object->policy)
        ? &filtered_source_ops : &source_ops;
}

bool x86_vpmu_realize(X86CPU *cpu, Error **errp)
{
    struct vpmu_config *config = &cpu->vpmu_config;
    const char *reason;
    X86VPMU *v;

    if (!cpu->enable_pmu && !x86_vpmu_object()) {
        return true;
    }
    config->events = events_kept();
    if (!shape(cpu, errp)) {
        return false;
    }
    config->fixed_width = config->gp_width;
    if (!admit(cpu, errp)) {
        return false;
    }
    if (!cpu->enable_pmu) {
        return true;
    }
    reason = vpmu_config_error(config);
    if (reason) {
        error_setg(errp, "pmu=on: %s", reason);
        return false;
    }
    advertise(cpu);

    v = g_new0(X86VPMU, 1);
    v->cpu = cpu;
    v->deadline = timer_new_ns(QEMU_CLOCK_VIRTUAL, deadline_passed, v);
    v->stop = qemu_add_vm_change_state_handler(vm_state_changed, v);
    cpu->vpmu = v;
    vpmu_init(&v->model, config, ops_of(x86_vpmu_object()), v);
    x86_vpmu_watch(cpu);
    return true;
}

void x86_vpmu_unrealize(X86CPU *cpu)
{
    if (cpu->vpmu) {
        timer_free(cpu->vpmu->deadline);
        qemu_del_vm_change_state_handler(cpu->vpmu->stop);
        g_free(cpu->vpmu);
        cpu->vpmu = NULL;
    }
}

void x86_vpmu_reset(X86CPU *cpu)
{
    if (cpu->vpmu) {
        vpmu_reset(&cpu->vpmu->model);
    }
}

void x86_vpmu_save(X86CPU *cpu, struct vpmu_state *state)
{
    if (cpu->vpmu) {
        vpmu_save(&cpu->vpmu->model, state);
    }
}

const char *x86_vpmu_load(X86CPU *cpu, const struct vpmu_state *state)
{
    const char *reason;

    if (!cpu->vpmu) {
        return NULL;
    }
    reason = vpmu_load(&cpu->vpmu->model, state);
    vpmu_set_svme(&cpu->vpmu->model, cpu->env.efer & MSR_EFER_SVME);
    return reason;
}

struct vpmu *x86_vpmu_model(X86CPU *cpu)
{
    return cpu->vpmu ? &cpu->vpmu->model : NULL;
}
