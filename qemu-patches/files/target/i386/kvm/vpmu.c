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
#include "system/kvm.h"
#include "system/kvm_int.h"
#include "cpu.h"
#include "kvm/kvm_i386.h"
#include "kvm/vpmu.h"
#include "vpmu-object.h"

#define LEAF_PMU 0xa
#define LEAF_PERFMON_V2 0x80000022

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
        return vpmu_offer_amd(kvm_arch_get_supported_cpuid(kvm_state,
                                                           0x80000001, 0, R_ECX),
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
static bool is_held_by_host(void)
{
    bool held = false;
    int vm, vcpu;

    if (!parameter_is("kvm_amd", "enable_mediated_pmu", 'Y') &&
        !parameter_is("kvm_intel", "enable_mediated_pmu", 'Y')) {
        return false;
    }
    vm = kvm_ioctl(kvm_state, KVM_CREATE_VM, 0);
    if (vm < 0) {
        return false;
    }
    if (ioctl(vm, KVM_CREATE_IRQCHIP, 0) == 0) {
        vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
        held = vcpu < 0 && errno == EBUSY;
        if (vcpu >= 0) {
            close(vcpu);
        }
    }
    close(vm);
    return held;
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
    if (is_held_by_host()) {
        return "an event of the host's counts guests (its NMI watchdog, or perf"
            " without exclude_guest), and KVM's vPMU is mediated";
    }
    return NULL;
}

static VpmuOffer offer_of(const X86CPU *cpu)
{
    VpmuOffer offer = {
        .source = VPMU_GRANT_SOURCE_KVM,
        .most = kernel_offer(cpu),
        .missing = missing_in_kernel(cpu),
    };

    if (offer.missing) {
        offer.most.gp = offer.most.fixed = 0;
    }
    offer.gp = offer.most.gp;
    offer.fixed = offer.most.fixed;
    return offer;
}

/* What the kernel is told */

static bool install_filter(const struct vpmu_policy *policy, Error **errp)
{
    bool masked = kvm_check_extension(kvm_state,
                                      KVM_CAP_PMU_EVENT_MASKED_EVENTS) > 0;
    struct vpmu_kvm_filter filter;
    const char *reason = vpmu_kvm_filter(policy, masked, &filter);
    g_autofree struct kvm_pmu_event_filter *ioctl = NULL;
    int ret;

    if (reason) {
        error_setg(errp, "vpmu: %s", reason);
        return false;
    }
    if (kvm_check_extension(kvm_state, KVM_CAP_PMU_EVENT_FILTER) <= 0) {
        error_setg(errp, "vpmu: this host's KVM cannot filter events");
        return false;
    }
    ioctl = g_malloc0(sizeof(*ioctl) + filter.count * sizeof(uint64_t));
    ioctl->action = filter.deny ? KVM_PMU_EVENT_DENY : KVM_PMU_EVENT_ALLOW;
    ioctl->flags = filter.masked ? KVM_PMU_EVENT_FLAG_MASKED_EVENTS : 0;
    ioctl->fixed_counter_bitmap = filter.fixed_counters;
    ioctl->nevents = filter.count;
    memcpy(ioctl->events, filter.events, filter.count * sizeof(uint64_t));
    ret = kvm_vm_ioctl(kvm_state, KVM_SET_PMU_EVENT_FILTER, ioctl);
    if (ret < 0) {
        error_setg_errno(errp, -ret, "vpmu: KVM_SET_PMU_EVENT_FILTER");
        return false;
    }
    return true;
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
    return x86_vpmu_admit(object, &offer, errp) &&
        (!first || tell_kernel(object, errp)) &&
        advertise(cpu, object, errp);
}
