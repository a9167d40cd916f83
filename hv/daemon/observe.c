// SPDX-License-Identifier: BSD-3-Clause
/*
 * What the host has that nobody has asked vpmud for stands in the books as OBSERVED. At each look
 * those that are still there stay, those that are gone or have changed are struck, new ones are
 * entered. Only if something has changed are the VMs looked at: some no longer fit, some fit again.
 */
#include "observe.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "needs.h"
#include "peer.h"
#include "requests.h"

/* hv/host: it reads sysfs and procfs, and measures with perf events on each processor. */
NEEDS("openat read close fstat newfstatat getdents64 readlink lseek uname "
      "sched_getaffinity sched_setaffinity perf_event_open ioctl prctl gettid");

/* ---- What is managed ------------------------------------------------------------------------- */

static void add_taken(struct daemon *daemon, const struct vpmu_admission_lease *lease)
{
    for (uint32_t p = 0; p < daemon->host.processor_count; p++) {
        if (!(lease->processors[p / 64] >> p % 64 & 1))
            continue;
        daemon->taken[p].gp = (uint16_t)(daemon->taken[p].gp + lease->granted.gp);
        daemon->taken[p].fixed |= lease->granted.fixed;
    }
}

/* Whoever has a CPU-wide lease is not reported a second time, nor are its children. */
static struct vpmu_host_managed managed_by(struct daemon *daemon, uint32_t *pids)
{
    uint32_t count = 0;

    memset(daemon->taken, 0, daemon->host.processor_count * sizeof(daemon->taken[0]));
    for (struct entry *entry = books_next(daemon->books, NULL); entry;
         entry = books_next(daemon->books, entry)) {
        struct vpmu_admission_lease lease;

        books_lease(daemon->books, entry, &lease);
        if (lease.binding != VPMU_BOUND_CPU || entry->owner.state == ENTRY_OBSERVED)
            continue;
        add_taken(daemon, &lease);
        pids[count++] = (uint32_t)entry->owner.pid;
    }
    return (struct vpmu_host_managed){.pids = pids, .pid_count = count, .taken = daemon->taken};
}

/* ---- What is observed ------------------------------------------------------------------------ */

static bool same_set(const struct vpmu_claim *claim, const struct entry *entry,
                     const struct vpmu_admission_lease *lease)
{
    if (!claim->processors || entry->every)
        return !claim->processors && entry->every;
    for (uint32_t w = 0; w < MAX(claim->words, lease->words); w++)
        if ((w < claim->words ? claim->processors[w] : 0) !=
            (w < lease->words ? lease->processors[w] : 0))
            return false;
    return true;
}

/* For people, who want to find the process. What was measured has its suspect's pid already. */
static void name_claim(const struct daemon *daemon, const struct vpmu_claim *claim,
                       char name[VPMU_ADMISSION_NAME])
{
    const struct vpmu_host_holder *holder = vpmu_host_claimant(&daemon->host, claim);

    if (holder && holder->kind == VPMU_HOST_PROCESS && holder->pid)
        snprintf(name, VPMU_ADMISSION_NAME, "%.40s (pid %u)", claim->name, holder->pid);
    else
        snprintf(name, VPMU_ADMISSION_NAME, "%s", claim->name);
}

static bool is_same(const struct daemon *daemon, const struct entry *entry,
                    const struct vpmu_claim *claim)
{
    struct vpmu_admission_lease lease;
    char name[VPMU_ADMISSION_NAME];

    books_lease(daemon->books, entry, &lease);
    name_claim(daemon, claim, name);
    return entry->owner.identity == claim->holder && !strcmp(entry->owner.name, name) &&
           lease.binding == claim->binding && lease.flags == claim->flags &&
           lease.asked.gp == claim->need.gp && lease.asked.fixed == claim->need.fixed &&
           same_set(claim, entry, &lease);
}

/* Marks the claim that an entry stands for; false: none. */
static bool is_still_there(const struct daemon *daemon, const struct entry *entry,
                           const struct vpmu_claim *claims, size_t count, bool *known)
{
    for (size_t i = 0; i < count; i++)
        if (!known[i] && is_same(daemon, entry, &claims[i]))
            return known[i] = true;
    return false;
}

static bool strike_gone(struct daemon *daemon, const struct vpmu_claim *claims, size_t count,
                        bool *known)
{
    struct entry *next;
    bool changed = false;

    for (struct entry *entry = books_next(daemon->books, NULL); entry; entry = next) {
        next = books_next(daemon->books, entry);
        if (entry->owner.state != ENTRY_OBSERVED ||
            is_still_there(daemon, entry, claims, count, known))
            continue;
        log_event(LOG_INFO, "gone", NUMBER("lease", entry->id), TEXT("name", entry->owner.name));
        books_strike(daemon->books, entry);
        changed = true;
    }
    return changed;
}

static bool enter(struct daemon *daemon, const struct vpmu_claim *claim)
{
    struct entry_owner owner = {
        .state = ENTRY_OBSERVED, .identity = claim->holder, .since_ms = wall_clock_ms()};
    const struct vpmu_host_holder *holder = vpmu_host_claimant(&daemon->host, claim);
    struct vpmu_claim named = *claim;
    struct vpmu_answer answer;
    const struct entry *entry;
    char text[VPMU_WIRE_TEXT];

    name_claim(daemon, claim, owner.name);
    named.name = owner.name;
    owner.pid = holder ? (pid_t)holder->pid : 0;
    entry = books_enter(daemon->books, 0, &owner, &named, NULL, &answer);
    if (!entry) {
        vpmu_answer_text(&answer, text, sizeof(text));
        log_event(LOG_ERR, "not-entered", TEXT("name", owner.name), TEXT("why", text));
        return false;
    }
    log_event(LOG_NOTICE, "observed", NUMBER("lease", entry->id), TEXT("name", owner.name),
              NUMBER("pid", owner.pid), NUMBER("gp", claim->need.gp),
              NUMBER("fixed", claim->need.fixed));
    return true;
}

static bool compare(struct daemon *daemon, const struct vpmu_claim *claims, size_t count)
{
    bool *known = g_new0(bool, count + 1);
    bool changed = strike_gone(daemon, claims, count, known);

    for (size_t i = 0; i < count; i++)
        if (!known[i])
            changed |= enter(daemon, &claims[i]);
    g_free(known);
    return changed;
}

/* Processors go and come (CPU hotplug). True: one has. */
static bool follow_online(struct daemon *daemon)
{
    uint64_t online[BOOKS_SET_WORDS] = {0};
    uint32_t count = 0;

    for (uint32_t p = 0; p < daemon->host.processor_count; p++) {
        online[p / 64] |= (uint64_t)daemon->host.processors[p].online << p % 64;
        count += daemon->host.processors[p].online;
    }
    if (!books_set_online(daemon->books, online, BOOKS_SET_WORDS))
        return false;
    log_event(LOG_NOTICE, "online", NUMBER("processors", count));
    return true;
}

static void enter_observed(struct daemon *daemon, const struct vpmu_host_managed *managed)
{
    bool changed = follow_online(daemon);
    size_t count = vpmu_host_claims(&daemon->host, managed, NULL, 0);
    struct vpmu_claim *claims = g_new0(struct vpmu_claim, count + 1);

    vpmu_host_claims(&daemon->host, managed, claims, count);
    changed |= compare(daemon, claims, count);
    if (changed) {
        requests_settle(daemon);
        requests_look_for_short(daemon);
    }
    g_free(claims);
}

/* ---- Looking --------------------------------------------------------------------------------- */

static void failed(struct daemon *daemon, const struct vpmu_host_error *error)
{
    daemon->statistics.observe_errors++;
    log_event(LOG_ERR, "not-observed", TEXT("why", error->text));
}

/* A described machine is what its file says now; a file that is not valid says nothing new. */
static int read_description(struct daemon *daemon, struct vpmu_host_error *error)
{
    struct vpmu_host_source *source;

    if (!daemon->description)
        return 0;
    source = vpmu_host_described(daemon->description, error);
    if (!source)
        return -1;
    vpmu_host_source_free(daemon->source);
    daemon->source = source;
    return 0;
}

/* Then an agent is seen, if at all, by its files: how many counters it has is an estimate. */
static void say_not_measured(struct daemon *daemon)
{
    if (!strcmp(daemon->not_measured, daemon->host.not_measured))
        return;
    memcpy(daemon->not_measured, daemon->host.not_measured, sizeof(daemon->not_measured));
    if (*daemon->not_measured)
        log_event(LOG_WARNING, "not-measured", TEXT("why", daemon->not_measured));
    else
        log_event(LOG_NOTICE, "measured");
}

static void observe_now(struct daemon *daemon)
{
    uint32_t *pids = g_new(uint32_t, vpmu_admission_leases(books_admission(daemon->books)) + 1);
    struct vpmu_host_managed managed = managed_by(daemon, pids);
    struct vpmu_host_error error;

    daemon->statistics.observations++;
    if (read_description(daemon, &error) ||
        vpmu_host_refresh(daemon->source, &daemon->host, &error))
        failed(daemon, &error);
    else if (vpmu_host_measure(daemon->source, &daemon->host, NULL, 0, false, &managed, &error))
        failed(daemon, &error);
    else
        enter_observed(daemon, &managed);
    say_not_measured(daemon);
    g_free(pids);
}

void observe_again(struct daemon *daemon)
{
    observe_now(daemon);
    loop_timer_stop(daemon->loop, &daemon->watch);
    if (daemon->config->interval_ms)
        loop_timer_set(daemon->loop, &daemon->watch, daemon->config->interval_ms);
}

static void watch_is_due(struct loop_timer *timer)
{
    observe_again(OWNER_OF(timer, struct daemon, watch));
}

int observe_begin(struct daemon *daemon, struct vpmu_host_error *error)
{
    if (vpmu_host_read(daemon->source, &daemon->host, error))
        return -1;
    daemon->taken = g_new0(struct vpmu_amount, daemon->host.processor_count);
    return 0;
}

void observe_start(struct daemon *daemon)
{
    daemon->watch.due = watch_is_due;
    observe_again(daemon);
}

/* ---- What bars VMs --------------------------------------------------------------------------- */

static const struct bar {
    size_t fact; /* in struct vpmu_host_facts */
    enum vpmu_fact when;
    const char *text;
} bars[] = {
    {offsetof(struct vpmu_host_facts, enable_pmu), VPMU_FACT_NO,
     "kvm.enable_pmu is N on this host: KVM gives no guest a PMU. Load kvm with enable_pmu=1"},
    {offsetof(struct vpmu_host_facts, hybrid), VPMU_FACT_YES,
     "the processors of this host are of several kinds (hybrid): KVM gives no guest a PMU"},
    {offsetof(struct vpmu_host_facts, perf), VPMU_FACT_NO,
     "the kernel of this host has no driver for its PMU: nothing could back a guest's counters"},
};

bool observe_bars_vms(const struct daemon *daemon, char *text, size_t size)
{
    for (size_t i = 0; i < G_N_ELEMENTS(bars); i++) {
        enum vpmu_fact fact;

        memcpy(&fact, (const char *)&daemon->host.facts + bars[i].fact, sizeof(fact));
        if (fact != bars[i].when)
            continue;
        snprintf(text, size, "%s", bars[i].text);
        return true;
    }
    return false;
}
