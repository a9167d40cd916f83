/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the monitor says of the vCPUs' PMUs. */

#include "qemu/osdep.h"
#include "qapi/qapi-commands-misc-target.h"
#include "cpu.h"
#include "monitor/hmp-target.h"
#include "monitor/monitor.h"
#include "system/tcg.h"
#include "tcg/system/vpmu.h"
#include "vpmu/filter.h"

QEMU_BUILD_BUG_ON((int)VPMU_COUNTER_REVOKED != (int)VPMU_COUNTER_STATE_REVOKED);
QEMU_BUILD_BUG_ON(VPMU_COUNTER_STATES != VPMU_COUNTER_STATE__MAX);

static bool counts_in(const struct vpmu_counter_info *info,
                      enum vpmu_class host, enum vpmu_class guest)
{
    return info->classes & (VPMU_CLASS_BIT(host) | VPMU_CLASS_BIT(guest));
}

static VpmuCounter *describe_counter(const struct vpmu_counter_info *info)
{
    VpmuCounter *counter = g_new0(VpmuCounter, 1);

    *counter = (VpmuCounter) {
        .fixed = info->fixed,
        .index = info->index,
        .state = info->state,
        .event = g_strdup(vpmu_event_name(info->event)),
        .code = info->code,
        .user = counts_in(info, VPMU_CLASS_USER, VPMU_CLASS_GUEST_USER),
        .kernel = counts_in(info, VPMU_CLASS_KERNEL, VPMU_CLASS_GUEST_KERNEL),
        .enabled = info->enabled,
        .interrupt = info->interrupt,
        .overflowed = info->overflowed,
        .rdpmc = info->rdpmc_selector,
        .value = info->value,
    };
    return counter;
}

static VpmuInfo *describe_vcpu(X86CPU *cpu)
{
    VpmuInfo *vcpu = g_new0(VpmuInfo, 1);
    VpmuCounterList **tail = &vcpu->counters;
    struct vpmu_counter_info infos[VPMU_COUNTERS_MAX];

    vcpu->cpu_index = CPU(cpu)->cpu_index;
    vcpu->version = cpu->vpmu_config.version;
    x86_vpmu_counter_infos(cpu, infos);
    for (unsigned i = 0; i < x86_vpmu_counters(cpu); i++) {
        QAPI_LIST_APPEND(tail, describe_counter(&infos[i]));
    }
    return vcpu;
}

VpmuInfoList *qmp_query_vpmu(Error **errp)
{
    VpmuInfoList *list = NULL, **tail = &list;
    CPUState *cs;

    if (tcg_enabled()) {
        CPU_FOREACH(cs) {
            if (X86_CPU(cs)->vpmu) {
                QAPI_LIST_APPEND(tail, describe_vcpu(X86_CPU(cs)));
            }
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
}

void hmp_info_vpmu(Monitor *mon, const QDict *qdict)
{
    g_autoptr(VpmuInfoList) list = qmp_query_vpmu(NULL);

    if (!list) {
        monitor_printf(mon, "No vCPU has a PMU that QEMU models."
                       " (Under TCG: -cpu MODEL,pmu=on)\n");
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
