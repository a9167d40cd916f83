/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the monitor says of the vCPUs' PMUs. */

#include "qemu/osdep.h"
#include "qapi/qapi-commands-misc-target.h"
#include "cpu.h"
#include "monitor/hmp-target.h"
#include "monitor/monitor.h"
#include "vpmu/filter.h"
#include "vpmu-validity.h"

static bool counts_in(const struct vpmu_counter_info *info,
                      enum vpmu_class host, enum vpmu_class guest)
{
    return info->classes & (VPMU_CLASS_BIT(host) | VPMU_CLASS_BIT(guest));
}

static VpmuCounter *describe_counter(const struct vpmu_counter_info *info,
                                     const struct vpmu_validity *validity)
{
    VpmuCounter *counter = g_new0(VpmuCounter, 1);

    *counter = (VpmuCounter) {
        .fixed = info->fixed,
        .index = info->index,
        .state = (VpmuCounterState)validity->state,
        .event = g_strdup(vpmu_event_name(info->event)),
        .code = info->code,
        .user = counts_in(info, VPMU_CLASS_USER, VPMU_CLASS_GUEST_USER),
        .kernel = counts_in(info, VPMU_CLASS_KERNEL, VPMU_CLASS_GUEST_KERNEL),
        .enabled = info->enabled,
        .interrupt = info->interrupt,
        .overflowed = info->overflowed,
        .rdpmc = info->rdpmc_selector,
        .value = info->value,
        .enabled_ns = validity->enabled_ns,
        .backed_ns = validity->backed_ns,
    };
    return counter;
}

static VpmuInfo *describe_vcpu(X86CPU *cpu)
{
    const X86VPMUWatch *watch = cpu->vpmu_watch;
    VpmuInfo *vcpu = g_new0(VpmuInfo, 1);
    VpmuCounterList **tail = &vcpu->counters;

    x86_vpmu_look(cpu);
    vcpu->cpu_index = CPU(cpu)->cpu_index;
    vcpu->version = cpu->vpmu_config.version;
    vcpu->ran_ns = watch->ran_ns;
    vcpu->look_ns = watch->look_ns;
    for (unsigned i = 0; i < watch->count; i++) {
        QAPI_LIST_APPEND(tail, describe_counter(&watch->infos[i],
                                                &watch->counters[i]));
    }
    return vcpu;
}

VpmuInfoList *qmp_query_vpmu(Error **errp)
{
    VpmuInfoList *list = NULL, **tail = &list;
    CPUState *cs;

    CPU_FOREACH(cs) {
        if (X86_CPU(cs)->vpmu_watch) {
            QAPI_LIST_APPEND(tail, describe_vcpu(X86_CPU(cs)));
        }
    }
    return list;
}

static void print_counter(Monitor *mon, const VpmuCounter *counter)
{
    monitor_printf(mon, "  %s%u  %-11s %-20s ", counter->fixed ? "fixed" : "   gp",
                   counter->index, VpmuCounterState_str(counter->state),
                   counter->event);
    if (counter->fixed) {
        monitor_printf(mon, "    -");
    } else {
        monitor_printf(mon, "r%04x", counter->code);
    }
    monitor_printf(mon, "  %c%c%c %15" PRIu64 "%s\n",
                   counter->user ? 'u' : '-', counter->kernel ? 'k' : '-',
                   counter->interrupt ? 'i' : '-', counter->value,
                   counter->overflowed ? " overflowed" : "");
    if (counter->backed_ns < counter->enabled_ns) {
        monitor_printf(mon, "          has counted for %.3f of the %.3f s for"
                       " which it was enabled\n", counter->backed_ns / 1e9,
                       counter->enabled_ns / 1e9);
    }
}

void hmp_info_vpmu(Monitor *mon, const QDict *qdict)
{
    g_autoptr(VpmuInfoList) list = qmp_query_vpmu(NULL);

    if (!list) {
        monitor_printf(mon, "No vCPU has a PMU that QEMU watches."
                       " (TCG: -cpu MODEL,pmu=on; KVM: -object vpmu)\n");
    }
    for (VpmuInfoList *vcpu = list; vcpu; vcpu = vcpu->next) {
        monitor_printf(mon, "vCPU %" PRId64 ": PMU version %u\n"
                       "  counter state       event                code"
                       "   in            value\n",
                       vcpu->value->cpu_index, vcpu->value->version);
        for (VpmuCounterList *c = vcpu->value->counters; c; c = c->next) {
            print_counter(mon, c->value);
        }
    }
}
