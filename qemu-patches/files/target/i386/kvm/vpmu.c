/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KVM's vPMU under the rule of -object vpmu.
 *
 * The kernel's own vPMU does the counting. What is done here is done once,
 * before KVM_CREATE_VCPU: KVM is asked what it offers, told to have no PMU or
 * which events to count, and the vCPUs' CPUID gets the shape that was granted.
 */

#include "qemu/osdep.h"
#include <sys/ioctl.h>
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "system/kvm.h"
#include "system/kvm_int.h"
#include "cpu.h"
#include "kvm/kvm_i386.h"
#include "kvm/vpmu.h"
#include "vpmu-object.h"
#include "vpmu-validity.h"

#define LEAF_PMU 0xa
#define LEAF_PERFMON_V2 0x80000022
#define EVENTSEL_ENABLE (1u << 22) /* of both vendors */

/* What the kernel offers */

static void supported_leaf(uint32_t index, uint32_t leaf[4])
{
    static const int registers[] = { R_EAX, R_EBX, R_ECX, R_EDX };

    for (int i = 0; i < ARRAY_SIZE(registers); i++) {
        leaf[i] = kvm_arch_get_supported_cpuid(kvm_state, index, 0,
                                               registers[i]);
    }
}

static struct vpmu_config kernel_offer(const X86CPU *cpu)
{
    uint32_t leaf[4];

    if (IS_AMD_CPU(&cpu->env)) {
        supported_leaf(LEAF_PERFMON_V2, leaf);
        return vpmu_offer_amd(
            kvm_arch_get_supported_cpuid(kvm_state, 0x80000001, 0, R_ECX),
            leaf);
    }
    supported_leaf(LEAF_PMU, leaf);
    return vpmu_offer_intel(leaf);
}

/* Whether a parameter of a kernel module is this; it may not be there. */
static bool parameter_is(const char *module, const char *name, char wanted)
{
    g_autofree char *path = g_strdup_printf("/sys/module/%s/parameters/%s",
                                            module, name);
    g_autofree char *value = NULL;

    return g_file_get_contents(path, &value, NULL, NULL) && value[0] == wanted;
}

/*
 * A mediated vPMU is the host's or a guest's as a whole: while an event of
 * the host's counts guests, no vCPU can be made. One is tried, in a virtual
 * machine of its own.
 */
static const char *held_by_host(void)
{
    bool held = false;
    int vm, vcpu;

    if (!parameter_is("kvm_amd", "enable_mediated_pmu", 'Y') &&
        !parameter_is("kvm_intel", "enable_mediated_pmu", 'Y')) {
        return NULL;
    }
    vm = kvm_ioctl(kvm_state, KVM_CREATE_VM, 0);
    if (vm < 0) {
        return NULL;
    }
    if (ioctl(vm, KVM_CREATE_IRQCHIP, 0) == 0) {
        vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
        held = vcpu < 0 && errno == EBUSY;
        if (vcpu >= 0) {
            close(vcpu);
        }
    }
    close(vm);
    return held ? "an event of the host's counts guests (its NMI watchdog, or"
        " perf without exclude_guest), and KVM's vPMU is mediated" : NULL;
}

/* Why KVM counts for no guest, NULL if it does. */
static const char *missing_in_kernel(const X86CPU *cpu)
{
    if (!IS_INTEL_CPU(&cpu->env) && !IS_AMD_CPU(&cpu->env)) {
        return "the vendor of this CPU model is neither Intel nor AMD";
    }
    if (!kvm_irqchip_in_kernel()) {
        return "counters interrupt through KVM's own APIC, and"
            " kernel-irqchip is off";
    }
    if (parameter_is("kvm", "enable_pmu", 'N')) {
        return "kvm.enable_pmu is N on this host";
    }
    /* The capability is newer (Linux 5.18) than the PMU of Intel's guests. */
    if (kvm_check_extension(kvm_state, KVM_CAP_PMU_CAPABILITY) <= 0 &&
        (IS_AMD_CPU(&cpu->env) || !kernel_offer(cpu).gp)) {
        return "this host's KVM has none for its guests";
    }
    if (!kernel_offer(cpu).gp) {
        return "this host's KVM has none of the vendor of this CPU model";
    }
    return NULL;
}

static VpmuOffer offer_of(const X86CPU *cpu)
{
    VpmuOffer offer = {
        .source = VPMU_GRANT_SOURCE_KVM,
        .most = kernel_offer(cpu),
        .missing = missing_in_kernel(cpu),
        .held = held_by_host,
    };

    if (offer.missing) {
        offer.most.gp = offer.most.fixed = 0;
    }
    offer.gp = offer.most.gp;
    offer.fixed = offer.most.fixed;
    return offer;
}

/* What the kernel is told */

static bool set_filter(const struct vpmu_kvm_filter *filter, Error **errp)
{
    g_autofree struct kvm_pmu_event_filter *ioctl = NULL;
    int ret;

    if (kvm_check_extension(kvm_state, KVM_CAP_PMU_EVENT_FILTER) <= 0) {
        error_setg(errp, "vpmu: this host's KVM cannot filter events");
        return false;
    }
    ioctl = g_malloc0(sizeof(*ioctl) + filter->count * sizeof(uint64_t));
    ioctl->action = filter->deny ? KVM_PMU_EVENT_DENY : KVM_PMU_EVENT_ALLOW;
    ioctl->flags = filter->masked ? KVM_PMU_EVENT_FLAG_MASKED_EVENTS : 0;
    ioctl->fixed_counter_bitmap = filter->fixed_counters;
    ioctl->nevents = filter->count;
    memcpy(ioctl->events, filter->events, filter->count * sizeof(uint64_t));
    ret = kvm_vm_ioctl(kvm_state, KVM_SET_PMU_EVENT_FILTER, ioctl);
    if (ret < 0) {
        error_setg_errno(errp, -ret, "vpmu: KVM_SET_PMU_EVENT_FILTER");
        return false;
    }
    return true;
}

static bool install_filter(const struct vpmu_policy *policy, Error **errp)
{
    bool masked = kvm_check_extension(kvm_state,
                                      KVM_CAP_PMU_EVENT_MASKED_EVENTS) > 0;
    struct vpmu_kvm_filter filter;
    const char *reason = vpmu_kvm_filter(policy, masked, &filter);

    if (reason) {
        error_setg(errp, "vpmu: %s", reason);
        return false;
    }
    return set_filter(&filter, errp);
}

void kvm_vpmu_set_counting(bool counting)
{
    const struct vpmu_kvm_filter nothing = { .deny = false };
    Error *err = NULL;

    if (!(counting ? install_filter(&x86_vpmu_object()->policy, &err)
                   : set_filter(&nothing, &err))) {
        warn_report_err(err);
    }
}

/* A guest that is not told of a PMU could use it all the same. */
static bool take_away(Error **errp)
{
    int ret;

    if (!(kvm_check_extension(kvm_state, KVM_CAP_PMU_CAPABILITY) &
          KVM_PMU_CAP_DISABLE)) {
        return true;
    }
    ret = kvm_vm_enable_cap(kvm_state, KVM_CAP_PMU_CAPABILITY, 0,
                            KVM_PMU_CAP_DISABLE);
    if (ret < 0) {
        error_setg_errno(errp, -ret, "vpmu: KVM_PMU_CAP_DISABLE");
        return false;
    }
    return true;
}

static bool tell_kernel(const VpmuObject *object, Error **errp)
{
    if (object->hidden) {
        return take_away(errp);
    }
    return vpmu_policy_is_open(&object->policy) ||
        install_filter(&object->policy, errp);
}

/* What the vCPUs advertise */

static void set_feature(CPUX86State *env, FeatureWord word, uint32_t bits,
                        uint32_t value)
{
    env->features[word] = (env->features[word] & ~(uint64_t)bits) | value;
}

static bool advertise(X86CPU *cpu, const VpmuObject *object, Error **errp)
{
    const struct vpmu_config none = {}, *config;
    CPUX86State *env = &cpu->env;
    uint32_t leaf[4];

    cpu->enable_pmu = !object->hidden;
    cpu->hyperv_perfmon_auto = true;
    config = cpu->enable_pmu ? &object->config : &none;
    cpu->vpmu_config = *config;
    if (!cpu->enable_pmu) {
        env->features[FEAT_PERF_CAPABILITIES] = 0;
    } else if (config->vendor == VPMU_VENDOR_INTEL &&
               env->cpuid_level < LEAF_PMU) {
        error_setg(errp, "vpmu: the PMU is described in CPUID leaf 0xA, and"
                   " this CPU model ends at leaf 0x%x (try level=0xd)",
                   env->cpuid_level);
        return false;
    }
    if (IS_AMD_CPU(env)) {
        vpmu_cpuid_80000022(config, leaf);
        set_feature(env, FEAT_8000_0022_EAX, CPUID_8000_0022_EAX_PERFMON_V2,
                    leaf[0]);
        set_feature(env, FEAT_8000_0001_ECX,
                    CPUID_EXT3_PERFCORE | CPUID_EXT3_PERFNB,
                    cpu->enable_pmu ? vpmu_cpuid_80000001_ecx(config) : 0);
        if (leaf[0]) {
            env->cpuid_xlevel = MAX(env->cpuid_xlevel, LEAF_PERFMON_V2);
        }
    }
    return true;
}

bool kvm_vpmu_realize(X86CPU *cpu, Error **errp)
{
    VpmuObject *object = x86_vpmu_object();
    bool first = object && !object->admitted;
    VpmuOffer offer;

    if (!object) {
        return true;
    }
    offer = offer_of(cpu);
    if (!x86_vpmu_admit(object, &offer, errp) ||
        (first && !tell_kernel(object, errp)) ||
        !advertise(cpu, object, errp)) {
        return false;
    }
    if (cpu->enable_pmu) {
        x86_vpmu_watch(cpu);
    }
    return true;
}

/* What the guest has made of its counters */

/* Registers, and the words of a state that they belong to. */
typedef struct Readings {
    struct {
        struct kvm_msrs info;
        struct kvm_msr_entry entries[2 * VPMU_COUNTERS_MAX + 3];
    } msrs;
    uint64_t *words[2 * VPMU_COUNTERS_MAX + 3];
} Readings;

static void ask(Readings *readings, uint32_t index, uint64_t *word)
{
    uint32_t n = readings->msrs.info.nmsrs++;

    readings->msrs.entries[n].index = index;
    readings->words[n] = word;
}

/* Registers of AMD's counters, by enum vpmu_amd_version. */
static const struct {
    uint32_t control, counter;
    unsigned stride;
} amd_banks[] = {
    [VPMU_AMD_LEGACY] = { MSR_K7_EVNTSEL0, MSR_K7_PERFCTR0, 1 },
    [VPMU_AMD_EXT_CORE] = { MSR_F15H_PERF_CTL0, MSR_F15H_PERF_CTR0, 2 },
    [VPMU_AMD_PERFMON_V2] = { MSR_F15H_PERF_CTL0, MSR_F15H_PERF_CTR0, 2 },
};

static uint32_t control_of(const struct vpmu_config *config, unsigned i)
{
    return config->vendor == VPMU_VENDOR_AMD
        ? amd_banks[config->version].control +
          i * amd_banks[config->version].stride
        : MSR_P6_EVNTSEL0 + i;
}

static uint32_t counter_of(const struct vpmu_config *config, unsigned i)
{
    return config->vendor == VPMU_VENDOR_AMD
        ? amd_banks[config->version].counter +
          i * amd_banks[config->version].stride
        : MSR_P6_PERFCTR0 + i;
}

static void ask_all(Readings *readings, const struct vpmu_config *config,
                    struct vpmu_state *state)
{
    bool amd = config->vendor == VPMU_VENDOR_AMD;

    for (unsigned i = 0; i < config->gp; i++) {
        ask(readings, counter_of(config, i), &state->gp_value[i]);
        ask(readings, control_of(config, i), &state->gp_select[i]);
    }
    for (unsigned i = 0; i < config->fixed; i++) {
        ask(readings, MSR_CORE_PERF_FIXED_CTR0 + i, &state->fixed_value[i]);
    }
    if (amd && config->version == VPMU_AMD_PERFMON_V2) {
        ask(readings, MSR_AMD64_PERF_CNTR_GLOBAL_CTL, &state->global_control);
        ask(readings, MSR_AMD64_PERF_CNTR_GLOBAL_STATUS,
            &state->global_status);
    } else if (!amd && config->version > 1) {
        ask(readings, MSR_CORE_PERF_FIXED_CTR_CTRL, &state->fixed_control);
        ask(readings, MSR_CORE_PERF_GLOBAL_CTRL, &state->global_control);
        ask(readings, MSR_CORE_PERF_GLOBAL_STATUS, &state->global_status);
    }
}

static bool read_state(X86CPU *cpu, struct vpmu_state *state)
{
    Readings readings = {};

    ask_all(&readings, &cpu->vpmu_config, state);
    if (kvm_vcpu_ioctl(CPU(cpu), KVM_GET_MSRS, &readings.msrs) !=
        readings.msrs.info.nmsrs) {
        return false;
    }
    for (uint32_t i = 0; i < readings.msrs.info.nmsrs; i++) {
        *readings.words[i] = readings.msrs.entries[i].data;
    }
    return true;
}

/* The kernel counts, so the model's totals stand still. */
static uint64_t no_total(void *source, enum vpmu_event event, unsigned classes)
{
    return 0;
}

static void no_demand(void *source, const struct vpmu_demand *rows,
                      unsigned count)
{
}

static void no_pmi(void *source)
{
}

static const struct vpmu_source_ops no_source = {
    .total = no_total,
    .demand = no_demand,
    .pmi = no_pmi,
    .denied = x86_vpmu_denied,
};

struct vpmu *kvm_vpmu_read(X86CPU *cpu, bool *user, bool *halted)
{
    static struct vpmu model;
    struct vpmu_state state = {};
    struct kvm_mp_state mp_state;
    struct kvm_sregs sregs;
    const char *reason;

    if (!read_state(cpu, &state) ||
        kvm_vcpu_ioctl(CPU(cpu), KVM_GET_SREGS, &sregs) < 0 ||
        kvm_vcpu_ioctl(CPU(cpu), KVM_GET_MP_STATE, &mp_state) < 0) {
        return NULL;
    }
    vpmu_init(&model, &cpu->vpmu_config, &no_source, NULL);
    reason = vpmu_load(&model, &state);
    if (reason) {
        warn_report_once("vpmu: vCPU %d: its counters are not watched: %s",
                         CPU(cpu)->cpu_index, reason);
        return NULL;
    }
    vpmu_set_svme(&model, sregs.efer & MSR_EFER_SVME);
    *user = sregs.ss.dpl == 3;
    *halted = mp_state.mp_state != KVM_MP_STATE_RUNNABLE;
    return &model;
}

/* Disabled and enabled again, with nothing of the guest's in between. */
void kvm_vpmu_revive(X86CPU *cpu, const struct vpmu_state *state,
                     const struct vpmu_counter_info *info)
{
    struct {
        struct kvm_msrs info;
        struct kvm_msr_entry entries[2];
    } msrs = { .info.nmsrs = 2 };
    uint64_t enabled = state->gp_select[info->index];
    uint64_t bits = EVENTSEL_ENABLE;
    uint32_t index = control_of(&cpu->vpmu_config, info->index);

    if (info->fixed) {
        index = MSR_CORE_PERF_FIXED_CTR_CTRL;
        enabled = state->fixed_control;
        bits = MAKE_64BIT_MASK(4 * info->index, 4);
    }
    msrs.entries[0] = (struct kvm_msr_entry) { index, 0, enabled & ~bits };
    msrs.entries[1] = (struct kvm_msr_entry) { index, 0, enabled };
    if (kvm_vcpu_ioctl(CPU(cpu), KVM_SET_MSRS, &msrs) != msrs.info.nmsrs) {
        warn_report_once("vpmu: vCPU %d: a counter cannot be programmed anew",
                         CPU(cpu)->cpu_index);
    }
}
