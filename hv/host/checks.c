// SPDX-License-Identifier: BSD-3-Clause
/*
 * What is wrong with a host: a row for each way in which a guest's counters can be wrong while
 * nobody is told. Pure.
 */
#include "host_internal.h"

#include <stdarg.h>
#include <string.h>

/* ---- Saying it ---- */

__attribute__((format(printf, 3, 4))) static void
say(struct vpmu_finding *finding, enum vpmu_verdict verdict, const char *format, ...)
{
    va_list arguments;

    finding->verdict = verdict;
    va_start(arguments, format);
    vsnprintf(finding->is, sizeof(finding->is), format, arguments);
    va_end(arguments);
}

__attribute__((format(printf, 2, 3))) static void mend(struct vpmu_finding *finding,
                                                       const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(finding->mend, sizeof(finding->mend), format, arguments);
    va_end(arguments);
}

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

/* "pin (pid 812)", or without a pid the name. */
static void write_holder(const struct vpmu_host_holder *holder, char *text, size_t size)
{
    if (holder->pid && holder->kind != VPMU_HOST_MEASURED)
        snprintf(text, size, "%s (pid %u)", holder->name, holder->pid);
    else
        snprintf(text, size, "%s", holder->name);
}

static const struct vpmu_host_holder *find_holder(const struct vpmu_host *host,
                                                  enum vpmu_host_holder_kind kind)
{
    for (uint32_t i = 0; i < host->holder_count; i++)
        if (host->holders[i].kind == kind)
            return &host->holders[i];
    return NULL;
}

/* ---- Processors ---- */

/* The core type that the fewest counters have, of those that online processors are of. */
static const struct vpmu_host_core_type *poorest(const struct vpmu_host *host)
{
    const struct vpmu_host_core_type *least = NULL;

    for (uint32_t p = 0; p < host->processor_count; p++) {
        const struct vpmu_host_core_type *type = &host->core_types[host->details[p].core_type];

        if (host->processors[p].online && (!least || type->capacity.gp < least->capacity.gp))
            least = type;
    }
    return least;
}

static bool has_counters(const struct vpmu_host *host)
{
    const struct vpmu_host_core_type *type = poorest(host);

    return type && type->capacity.gp;
}

static void check_counters(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                           struct vpmu_finding *finding)
{
    const struct vpmu_host_core_type *type = poorest(host);
    const unsigned fixed = type ? (unsigned)__builtin_popcount(type->capacity.fixed) : 0;

    if (type && type->capacity.gp) {
        say(finding, VPMU_VERDICT_OK, "%s PMU version %u: at least %u counters and %u fixed each",
            vpmu_host_vendor_name(host->vendor), type->version, type->capacity.gp, fixed);
        return;
    }
    if (host->facts.perf == VPMU_FACT_NO && type && type->version) {
        say(finding, VPMU_VERDICT_FAILURE,
            "the processors have counters, and the kernel has no driver for them");
        mend(finding, "see what the kernel says of its PMU: dmesg | grep -i 'performance events'");
        return;
    }
    say(finding, VPMU_VERDICT_FAILURE, "processors without counters: no guest can have any");
    if (host->facts.virtualised == VPMU_FACT_YES)
        mend(finding, "this machine is itself a guest: give it a PMU");
    else
        mend(finding, "look for a PMU or performance monitoring switch in the firmware's set-up");
}

static void check_hybrid(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                         struct vpmu_finding *finding)
{
    if (host->facts.hybrid == VPMU_FACT_YES) {
        say(finding, VPMU_VERDICT_FAILURE,
            "the cores are of several kinds: KVM gives no guest a PMU on such a machine");
        mend(finding, "run guests that need a PMU on another host; here use the policy \"hide\"");
    } else if (host->facts.hybrid == VPMU_FACT_NO) {
        say(finding, VPMU_VERDICT_OK, "all cores are of one kind");
    } else {
        say(finding, VPMU_VERDICT_UNKNOWN, "whether the cores are of one kind is not known");
    }
}

/* ---- KVM ---- */

/* False, and says so, if KVM is not there to be asked. */
static bool has_kvm(const struct vpmu_host *host, struct vpmu_finding *finding)
{
    if (host->facts.kvm == VPMU_FACT_YES)
        return true;
    say(finding, VPMU_VERDICT_UNKNOWN, "%s",
        host->facts.kvm == VPMU_FACT_NO ? "KVM is not loaded" : "KVM's modules could not be seen");
    return false;
}

static void check_enable_pmu(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                             struct vpmu_finding *finding)
{
    uint32_t vms = 0;

    if (!has_kvm(host, finding)) {
        mend(finding, "modprobe kvm_%s, and look again",
             host->vendor == VPMU_HOST_AMD ? "amd" : "intel");
        return;
    }
    for (uint32_t i = 0; i < host->vm_count; i++)
        vms += host->vms[i].pmu == VPMU_FACT_YES;
    if (host->facts.enable_pmu == VPMU_FACT_YES) {
        say(finding, VPMU_VERDICT_OK, "kvm.enable_pmu=Y");
    } else if (host->facts.enable_pmu == VPMU_FACT_UNKNOWN) {
        say(finding, VPMU_VERDICT_UNKNOWN, "kvm.enable_pmu cannot be read");
    } else {
        say(finding, VPMU_VERDICT_FAILURE,
            "kvm.enable_pmu=N: guests get no PMU, and pmu=on is ignored without a word"
            " (%u running VM%s asked for one)",
            vms, plural(vms));
        mend(finding, "modprobe kvm enable_pmu=Y after unloading; in /etc/modprobe.d: options kvm "
                      "enable_pmu=Y. It stays N where KVM cannot give a PMU");
    }
}

static void check_legacy_msrs(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                              struct vpmu_finding *finding)
{
    if (!has_kvm(host, finding))
        return;
    if (host->facts.ignore_msrs == VPMU_FACT_YES) {
        say(finding, VPMU_VERDICT_WARNING,
            "kvm.ignore_msrs=Y: any counter that a guest lacks reads 0 instead of faulting");
        mend(finding, "echo N > /sys/module/kvm/parameters/ignore_msrs");
    } else if (host->facts.enable_pmu == VPMU_FACT_NO) {
        say(finding, VPMU_VERDICT_WARNING,
            "without a vPMU the old counters (P6, K7) read 0 and drop what is written");
        mend(finding, "as for KVM's vPMU; a guest with the status device is told \"absent\"");
    } else if (host->facts.ignore_msrs == VPMU_FACT_UNKNOWN) {
        say(finding, VPMU_VERDICT_UNKNOWN, "kvm.ignore_msrs cannot be read");
    } else {
        say(finding, VPMU_VERDICT_OK, "only guests without a PMU read 0 from P6 and K7 counters");
    }
}

static void check_apic(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                       struct vpmu_finding *finding)
{
    for (uint32_t i = 0; i < host->vm_count; i++) {
        const struct vpmu_host_vm *vm = &host->vms[i];

        if (vm->apic != VPMU_FACT_NO)
            continue;
        say(finding, VPMU_VERDICT_FAILURE,
            "%s (pid %u) has kernel-irqchip=off: its counters never interrupt", vm->name, vm->pid);
        mend(finding, "start it with kernel-irqchip=on or split");
        return;
    }
    if (host->facts.unseen)
        say(finding, VPMU_VERDICT_UNKNOWN, "%u process%s could not be looked into",
            host->facts.unseen, host->facts.unseen == 1 ? "" : "es");
    else
        say(finding, VPMU_VERDICT_OK, "%u running VM%s, none without KVM's own APIC",
            host->vm_count, plural(host->vm_count));
}

/* ---- Who takes counters ---- */

static void check_watchdog(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                           struct vpmu_finding *finding)
{
    const struct vpmu_host_holder *holder = find_holder(host, VPMU_HOST_WATCHDOG);
    const struct vpmu_host_core_type *type = poorest(host);

    if (host->facts.watchdog == VPMU_FACT_UNKNOWN) {
        say(finding, VPMU_VERDICT_UNKNOWN, "/proc/sys/kernel/nmi_watchdog cannot be read");
    } else if (host->facts.watchdog == VPMU_FACT_NO) {
        say(finding, VPMU_VERDICT_OK, "off");
    } else if (!holder || host_is_refuted(host, holder)) {
        say(finding, VPMU_VERDICT_OK, "on, and it takes no counter (\"buddy\" detector)");
    } else if (!has_counters(host)) {
        say(finding, VPMU_VERDICT_OK, "on, and there is no counter for it to take");
    } else {
        if (holder->amount.gp)
            say(finding, VPMU_VERDICT_WARNING,
                "on: the NMI watchdog %s %u of %u counters of each processor",
                holder->basis == VPMU_HOST_CERTAIN || !host->not_measured[0] ? "has"
                                                                             : "most likely has",
                holder->amount.gp, type->capacity.gp);
        else
            say(finding, VPMU_VERDICT_WARNING,
                "on: the NMI watchdog has fixed counter 1 (cycles) of each processor");
        mend(finding, "sysctl kernel.nmi_watchdog=0, or leave it and offer guests one fewer");
    }
}

/* Unmanaged processes that take counters, or may: the first, and how many others. */
static const struct vpmu_host_holder *
unmanaged(const struct vpmu_host *host, const struct vpmu_host_managed *managed, uint32_t *count)
{
    const struct vpmu_host_holder *most = NULL;

    *count = 0;
    for (uint32_t i = 0; i < host->holder_count; i++) {
        const struct vpmu_host_holder *holder = &host->holders[i];

        if (holder->kind != VPMU_HOST_PROCESS || host_is_managed(holder, managed) ||
            (holder->binding == VPMU_BOUND_VCPU && holder->basis == VPMU_HOST_NOT_KNOWN))
            continue;
        ++*count;
        if (!most || holder->events > most->events)
            most = holder;
    }
    return most;
}

static void check_holders(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                          struct vpmu_finding *finding)
{
    uint32_t count;
    const struct vpmu_host_holder *most = unmanaged(host, managed, &count);
    char name[96], others[32] = "";

    if (!most && host->facts.unseen) {
        say(finding, VPMU_VERDICT_UNKNOWN, "%u of %u processes could not be looked into",
            host->facts.unseen, host->facts.processes);
        mend(finding, "run it as root");
        return;
    }
    if (!most) {
        say(finding, VPMU_VERDICT_OK, "no process has perf events without a lease");
        return;
    }
    write_holder(most, name, sizeof(name));
    if (count > 1)
        snprintf(others, sizeof(others), ", and %u other%s", count - 1, plural(count - 1));
    if (most->basis == VPMU_HOST_NOT_KNOWN)
        say(finding, VPMU_VERDICT_WARNING,
            "%s has %u perf event%s open without a lease; how many counters they take is not "
            "known%s",
            name, most->events, plural(most->events), others);
    else
        say(finding, VPMU_VERDICT_WARNING,
            "%s has %u perf event%s open without a lease: %s%u on each of its processors%s", name,
            most->events, plural(most->events),
            most->basis == VPMU_HOST_ESTIMATED ? "it seems " : "", most->amount.gp, others);
    mend(finding, "run it under a lease: vpmuctl run --counters N -- COMMAND; or stop it");
}

/* The measured processor with the fewest counters left; false: none was measured. */
static bool least_left(const struct vpmu_host *host, uint32_t *processor)
{
    uint32_t least = VPMU_HOST_UNKNOWN;

    for (uint32_t p = 0; p < host->processor_count; p++)
        if (host->details[p].left < least) {
            least = host->details[p].left;
            *processor = p;
        }
    return least != VPMU_HOST_UNKNOWN;
}

static const struct vpmu_host_holder *measured_on(const struct vpmu_host *host, uint32_t processor)
{
    for (uint32_t i = 0; i < host->holder_count; i++)
        if (host->holders[i].kind == VPMU_HOST_MEASURED &&
            host_holder_on(host, &host->holders[i], processor))
            return &host->holders[i];
    return NULL;
}

static void check_left(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                       struct vpmu_finding *finding)
{
    uint32_t processor = 0;

    if (!least_left(host, &processor)) {
        say(finding, VPMU_VERDICT_UNKNOWN, "not measured: %s", host->not_measured);
        if (find_holder(host, VPMU_HOST_PROCESS))
            mend(finding, "vpmuctl doctor --measure measures all the same");
        else if (has_counters(host))
            mend(finding, "run it as root");
        return;
    }
    const uint32_t left = host->details[processor].left;
    const uint32_t capacity = host->processors[processor].capacity.gp;
    const struct vpmu_host_holder *holder = measured_on(host, processor);
    char list[48];

    if (!holder) {
        say(finding, left < capacity ? VPMU_VERDICT_WARNING : VPMU_VERDICT_OK,
            "%u of %u counters are left for guests", left, capacity);
        if (left < capacity)
            mend(finding, "offer guests %u, or free those that the other rows name", left);
        return;
    }
    vpmu_host_write_list(holder->processors, holder->words, list, sizeof(list));
    say(finding, VPMU_VERDICT_FAILURE,
        "%u of %u counters are left for guests on processor%s %s: %s has %u", left, capacity,
        strpbrk(list, ",-") ? "s" : "", list, holder->name, holder->amount.gp);
    mend(finding, "run it under a lease: vpmuctl run --counters N -- COMMAND; or stop it");
}

static void check_domain_perf(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                              struct vpmu_finding *finding)
{
    const struct vpmu_host_holder *holder = find_holder(host, VPMU_HOST_DOMAIN_PERF);

    if (holder) {
        say(finding, VPMU_VERDICT_WARNING,
            "domain %s: libvirt's <perf> counts %u event%s on its vCPUs, beside what it counts "
            "itself",
            holder->name, holder->events, plural(holder->events));
        mend(finding, "virsh perf %s --disable EVENTS --live --config", holder->name);
    } else if (host->facts.domains == VPMU_FACT_UNKNOWN) {
        say(finding, VPMU_VERDICT_UNKNOWN, "/run/libvirt/qemu may not be read");
        mend(finding, "run it as root");
    } else {
        say(finding, VPMU_VERDICT_OK, "no running domain has <perf> events that take a counter");
    }
}

/* ---- Mediated vPMU ---- */

static void check_mediated(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                           struct vpmu_finding *finding)
{
    const struct vpmu_host_facts *facts = &host->facts;

    if (!has_kvm(host, finding))
        return;
    if (facts->mediated == VPMU_FACT_YES) {
        say(finding, VPMU_VERDICT_OK, "on: guests have the whole PMU while they run");
    } else if (facts->mediated_asked == VPMU_FACT_YES) {
        say(finding, VPMU_VERDICT_WARNING,
            facts->mediated_known == VPMU_FACT_NO
                ? "asked for, and this kernel's KVM does not have it"
                : "asked for, and KVM has switched it off: it cannot be had on this processor");
        mend(finding, "take enable_mediated_pmu out of modprobe.d and the kernel's command line");
    } else {
        say(finding, VPMU_VERDICT_OK, "off: guests' counters are perf events of the host");
    }
}

static void check_guest_events(const struct vpmu_host *host,
                               const struct vpmu_host_managed *managed,
                               struct vpmu_finding *finding)
{
    const struct vpmu_host_holder *unknown = NULL;
    char name[96];

    if (host->facts.mediated != VPMU_FACT_YES) {
        say(finding, VPMU_VERDICT_OK, "no mediated vPMU is in use");
        return;
    }
    for (uint32_t i = 0; i < host->holder_count; i++) {
        const struct vpmu_host_holder *holder = &host->holders[i];

        if (holder->kind == VPMU_HOST_MEASURED ||
            (holder->kind == VPMU_HOST_WATCHDOG && host_is_refuted(host, holder)))
            continue;
        if (holder->includes_guests == VPMU_FACT_YES) {
            write_holder(holder, name, sizeof(name));
            say(finding, VPMU_VERDICT_FAILURE,
                "%s counts guests: with a mediated vPMU the next VM fails to start (EBUSY)", name);
            mend(finding, holder->kind == VPMU_HOST_WATCHDOG
                              ? "sysctl kernel.nmi_watchdog=0"
                              : "stop it, or have it exclude guests (perf's modifier :H)");
            return;
        }
        if (holder->includes_guests == VPMU_FACT_UNKNOWN && !unknown)
            unknown = holder;
    }
    if (!unknown) {
        say(finding, VPMU_VERDICT_OK, "nobody counts guests");
        return;
    }
    write_holder(unknown, name, sizeof(name));
    say(finding, VPMU_VERDICT_WARNING,
        "%s has perf events; if they count guests the next VM fails to start (EBUSY)", name);
    mend(finding, "have it exclude guests (perf's modifier :H), or run it under vpmuctl run");
}

/* ---- Rights ---- */

static void check_paranoid(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                           struct vpmu_finding *finding)
{
    if (!host->facts.paranoid_known) {
        say(finding, VPMU_VERDICT_UNKNOWN, "perf_event_paranoid cannot be read");
    } else if (host->facts.paranoid <= 0) {
        say(finding, VPMU_VERDICT_WARNING,
            "kernel.perf_event_paranoid=%d: every user may take counters of whole processors",
            host->facts.paranoid);
        mend(finding, "sysctl kernel.perf_event_paranoid=2");
    } else {
        say(finding, VPMU_VERDICT_OK, "kernel.perf_event_paranoid=%d: only who has CAP_PERFMON may",
            host->facts.paranoid);
    }
}

const struct vpmu_check vpmu_checks[] = {
    {.id = "counters", .title = "Counters", .look = check_counters},
    {.id = "hybrid", .title = "Kinds of cores", .look = check_hybrid},
    {.id = "kvm-pmu", .title = "KVM's vPMU", .look = check_enable_pmu},
    {.id = "watchdog", .title = "NMI watchdog", .look = check_watchdog},
    {.id = "holders", .title = "Host agents", .look = check_holders},
    {.id = "left", .title = "Left for guests", .look = check_left},
    {.id = "domain-perf", .title = "libvirt's <perf>", .look = check_domain_perf},
    {.id = "apic", .title = "Interrupts", .look = check_apic},
    {.id = "legacy-msrs", .title = "Legacy counters", .look = check_legacy_msrs},
    {.id = "mediated", .title = "Mediated vPMU", .look = check_mediated},
    {.id = "guest-events", .title = "Events over guests", .look = check_guest_events},
    {.id = "rights", .title = "CPU-wide events", .look = check_paranoid},
    {.id = "event-filter",
     .title = "Event filter",
     .elsewhere = "each VM's own: state \"filtered\" on its status page and in vpmuctl top"},
    {.id = "guest-state",
     .title = "What guests read",
     .elsewhere = "the VM's status page, vpmustat in a Windows guest, vpmuctl explain VM"},
    {.id = "reset",
     .title = "Counters at reset",
     .elsewhere = "QEMU's version: the patched one resets GLOBAL_CTRL as processors do"},
    {.id = "migration",
     .title = "Migration",
     .elsewhere = "the destination's vpmud: it reserves before the switch-over"},
    {0},
};

const char *vpmu_verdict_name(enum vpmu_verdict verdict)
{
    static const char *const names[] = {
        [VPMU_VERDICT_OK] = "ok",
        [VPMU_VERDICT_WARNING] = "warning",
        [VPMU_VERDICT_FAILURE] = "failure",
        [VPMU_VERDICT_UNKNOWN] = "unknown",
    };
    _Static_assert(HOST_ROWS(names) == VPMU_VERDICTS, "a name per verdict");

    return (unsigned)verdict < VPMU_VERDICTS ? names[verdict] : "?";
}
