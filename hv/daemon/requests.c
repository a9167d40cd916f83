// SPDX-License-Identifier: BSD-3-Clause
/*
 * Theory of operation
 *
 * Admission (vpmu/admission.h) says what fits, the books say whose it is. What is left to decide
 * here is time: a request that does not fit now may do so soon. Then it is pending, and its peer
 * has no answer yet. There are two reasons for it.
 *
 *   Yielding  A CPU-wide claim would starve only VMs that yield. They get the notice YIELDING and
 *             have notice_ms to give back (RESIZE, RELEASE). Each time that something is given
 *             back, what is pending is tried again. When the time is over the VMs that are still in
 *             the way are revoked, and the claim is granted. When the lease that they yielded to
 *             ends they get back what they had. If whoever has asked goes away meanwhile, the VMs
 *             are told that they are GRANTED as before.
 *
 *   Grace     After a start, leases of the daemon before are in the books as HELD: they take room,
 *             and end when the grace period does. A client renews its lease, which is HELD no
 *             longer. The state file may lack the last leases that were granted before a crash
 *             (keeper.c says why), so what is new is only decided when the grace period is over:
 *             then everybody who had a lease has renewed it, and nothing is granted twice. What the
 *             state file lacks is renewed at once, as a new claim: all that the daemon before had
 *             granted fitted together. If the daemon before ended in good order nothing is missing,
 *             and the grace period ends with the last renewal. A VM with a reservation need not
 *             wait: its room has been kept.
 *
 *   state      RESERVED        HELD             LIVE
 *   begins     RESERVE         state file       ACQUIRE, RENEW
 *   ends       its time,       the grace        RELEASE, the connection
 *              UNRESERVE,      period,
 *              ACQUIRE (LIVE)  RENEW (LIVE)
 */
#include "requests.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "describe.h"
#include "keeper.h"
#include "log.h"
#include "observe.h"
#include "state.h"

struct pending {
    struct pending *next;
    struct daemon *daemon;
    struct peer *peer;
    struct vpmu_wire_header header;
    bool for_grace;                   /* waits for the grace period's end, not for VMs */
    struct loop_timer timer;          /* the end of the notice */
    struct vpmu_wire_reserve reserve; /* of a RESERVE; else all zero */
    struct vpmu_claim claim;          /* with set as its processors */
    uint64_t set[];
};

int64_t wall_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- Saying ---------------------------------------------------------------------------------- */

static void log_lease(struct daemon *daemon, int priority, const char *event,
                      const struct entry *entry, const char *why)
{
    struct vpmu_admission_lease lease;

    books_lease(daemon->books, entry, &lease);
    log_event(priority, event, NUMBER("lease", entry->id),
              TEXT("kind", kind_name(entry->owner.kind)), TEXT("name", entry->owner.name),
              NUMBER("uid", entry->owner.uid), NUMBER("pid", entry->owner.pid),
              NUMBER("gp", lease.granted.gp), NUMBER("fixed", lease.granted.fixed),
              TEXT("why", why));
}

enum vpmu_lease_state requests_state(const struct daemon *daemon, const struct entry *entry)
{
    struct vpmu_admission_lease lease;

    books_lease(daemon->books, entry, &lease);
    if (lease.revoked)
        return VPMU_LEASE_REVOKED;
    if (entry->yielding)
        return VPMU_LEASE_YIELDING;
    return entry->is_short ? VPMU_LEASE_SHORT : VPMU_LEASE_GRANTED;
}

void requests_explain(const struct daemon *daemon, const struct entry *entry,
                      char text[VPMU_WIRE_TEXT])
{
    struct vpmu_answer answer;

    *text = '\0';
    if (entry->is_short && books_short(daemon->books, entry, &answer))
        vpmu_answer_text(&answer, text, VPMU_WIRE_TEXT);
    else if (entry->yielded)
        snprintf(text, VPMU_WIRE_TEXT, "it yielded to another; it gets back what it had");
    else if (requests_state(daemon, entry) == VPMU_LEASE_REVOKED)
        snprintf(text, VPMU_WIRE_TEXT, "an operator has revoked it");
}

struct vpmu_wire_notice requests_notice(const struct daemon *daemon, const struct entry *entry)
{
    struct vpmu_admission_lease lease;

    books_lease(daemon->books, entry, &lease);
    return (struct vpmu_wire_notice){
        .lease = entry->id,
        .state = requests_state(daemon, entry),
        .processor = VPMU_NOT_SET,
        .granted = lease.granted,
    };
}

static void notify(struct daemon *daemon, const struct entry *entry, const char *text)
{
    struct vpmu_wire_notice notice = requests_notice(daemon, entry);

    vpmu_wire_text(notice.text, sizeof(notice.text), text);
    peer_notify(daemon, entry, &notice);
}

static void notify_answer(struct daemon *daemon, const struct entry *entry,
                          const struct vpmu_answer *answer)
{
    struct vpmu_wire_notice notice = requests_notice(daemon, entry);
    char text[VPMU_WIRE_TEXT];

    notice.reason = answer->reason;
    notice.processor = answer->processor;
    vpmu_answer_text(answer, text, sizeof(text));
    vpmu_wire_text(notice.text, sizeof(notice.text), text);
    peer_notify(daemon, entry, &notice);
}

/* ---- Entries --------------------------------------------------------------------------------- */

static struct entry_owner owner_of(const struct peer *peer)
{
    struct entry_owner owner = {
        .state = ENTRY_LIVE,
        .kind = peer->session.kind,
        .uid = peer->credentials.uid,
        .pid = peer->credentials.pid,
        .since_ms = wall_clock_ms(),
    };

    memcpy(owner.uuid, peer->hello.uuid, sizeof(owner.uuid));
    memcpy(owner.name, peer->hello.name, sizeof(owner.name));
    return owner;
}

/* Forgets what this file counts of an entry, and ends it. */
static void strike(struct daemon *daemon, struct entry *entry)
{
    daemon->yielding -= entry->yielding;
    daemon->yielded -= entry->yielded;
    loop_timer_stop(daemon->loop, &entry->expiry);
    if (entry->peer)
        peer_disown(entry);
    books_strike(daemon->books, entry);
    keeper_touch(daemon);
}

/* The entry of a peer; NULL, and it is refused: it has none of this id. */
static struct entry *own_entry(struct peer *peer, const struct vpmu_wire_header *header,
                               uint64_t id)
{
    struct entry *entry = books_find(peer->daemon->books, id);
    struct vpmu_answer answer = {.status = VPMU_STATUS_INVALID_PARAMETER,
                                 .reason = VPMU_REASON_BAD_HANDLE,
                                 .lease = id,
                                 .processor = VPMU_NOT_SET};

    if (entry && entry->peer == peer)
        return entry;
    peer_refuse(peer, header, &answer);
    return NULL;
}

/* ---- Yielding -------------------------------------------------------------------------------- */

static void tell_to_yield(struct daemon *daemon, struct entry *entry, const struct pending *pending)
{
    struct vpmu_wire_notice notice;
    uint64_t now = loop_now(daemon->loop);
    char text[VPMU_WIRE_TEXT];

    entry->yielding = true;
    daemon->yielding++;
    notice = requests_notice(daemon, entry);
    notice.reason = VPMU_REASON_YIELDING;
    notice.until_ms = pending->timer.at > now ? (uint32_t)(pending->timer.at - now) : 0;
    notice.until_ms = MIN(notice.until_ms, daemon->config->notice_ms); /* now is a round's */
    snprintf(text, sizeof(text), "%s (pid %d) asks for counters that this VM has, and it yields",
             pending->peer->hello.name, (int)pending->peer->credentials.pid);
    vpmu_wire_text(notice.text, sizeof(notice.text), text);
    log_lease(daemon, LOG_NOTICE, "yielding", entry, notice.text);
    peer_notify(daemon, entry, &notice);
}

static void stop_yielding(struct daemon *daemon, struct entry *entry)
{
    entry->yielding = false;
    daemon->yielding--;
}

/* The VMs that have been told to yield are those that something pending waits for: all, and only
 * they. */
static void tell_who_yields(struct daemon *daemon)
{
    daemon->mark++;
    for (struct pending *pending = daemon->pending; pending; pending = pending->next) {
        struct entry *entry = NULL;

        while (!pending->for_grace &&
               (entry = books_yielding(daemon->books, &pending->claim, entry))) {
            entry->mark = daemon->mark;
            if (!entry->yielding)
                tell_to_yield(daemon, entry, pending);
        }
    }
    if (!daemon->yielding)
        return;
    for (struct entry *entry = books_next(daemon->books, NULL); entry;
         entry = books_next(daemon->books, entry)) {
        if (!entry->yielding || entry->mark == daemon->mark)
            continue;
        stop_yielding(daemon, entry);
        if (requests_state(daemon, entry) != VPMU_LEASE_REVOKED)
            notify(daemon, entry, "the counters are not wanted any more");
    }
}

static void revoke_for(struct pending *pending)
{
    struct daemon *daemon = pending->daemon;
    struct vpmu_answer answer;
    struct entry *entry;
    char why[VPMU_WIRE_TEXT];

    snprintf(why, sizeof(why), "in favour of %s (pid %d)", pending->peer->hello.name,
             (int)pending->peer->credentials.pid);
    while ((entry = books_yielding(daemon->books, &pending->claim, NULL))) {
        if (books_revoke(daemon->books, entry, &answer) != VPMU_STATUS_SUCCESS)
            return;
        entry->yielded = true;
        daemon->yielded++;
        daemon->statistics.revoked++;
        log_lease(daemon, LOG_NOTICE, "revoked", entry, why);
        notify(daemon, entry, why);
    }
    keeper_touch(daemon);
}

/* What VMs had to yield they get back as soon as it fits. */
static void restore_yielded(struct daemon *daemon)
{
    struct vpmu_amount granted;

    for (struct entry *entry = daemon->yielded ? books_next(daemon->books, NULL) : NULL; entry;
         entry = books_next(daemon->books, entry)) {
        if (!entry->yielded || !books_restore(daemon->books, entry, &granted))
            continue;
        daemon->yielded--;
        log_lease(daemon, LOG_NOTICE, "restored", entry, "the counters are free again");
        notify(daemon, entry, "the counters are free again");
        keeper_touch(daemon);
    }
}

/* ---- Pending --------------------------------------------------------------------------------- */

static void decide(struct pending *pending, bool time_is_over);

static void notice_is_over(struct loop_timer *timer)
{
    struct pending *pending = OWNER_OF(timer, struct pending, timer);
    struct daemon *daemon = pending->daemon;

    decide(pending, true);
    tell_who_yields(daemon);
}

/* A copy: the message that the claim stands in goes. NULL, and it is refused: there are too many.
 */
static struct pending *make_pending(struct peer *peer, const struct vpmu_wire_header *header,
                                    const struct vpmu_claim *claim)
{
    struct daemon *daemon = peer->daemon;
    struct pending *pending;

    if (daemon->pending_count >= daemon->config->pending ||
        peer->pending >= VPMU_WIRE_PENDING_MAX) {
        peer_refuse_text(peer, header, VPMU_WIRE_TOO_MANY, VPMU_REASON_NONE,
                         "too many requests wait for an answer");
        return NULL;
    }
    pending = g_malloc0(sizeof(*pending) + claim->words * sizeof(pending->set[0]));
    pending->daemon = daemon;
    pending->peer = peer;
    pending->header = *header;
    pending->timer.due = notice_is_over;
    pending->claim = *claim;
    pending->claim.name = peer->hello.name;
    if (claim->processors) {
        memcpy(pending->set, claim->processors, claim->words * sizeof(pending->set[0]));
        pending->claim.processors = pending->set;
    }
    *daemon->pending_end = pending;
    daemon->pending_end = &pending->next;
    daemon->pending_count++;
    peer->pending++;
    return pending;
}

static void drop_pending(struct pending *pending)
{
    struct daemon *daemon = pending->daemon;
    struct pending **place = &daemon->pending;

    while (*place != pending)
        place = &(*place)->next;
    *place = pending->next;
    if (!*place)
        daemon->pending_end = place;
    daemon->pending_count--;
    pending->peer->pending--;
    loop_timer_stop(daemon->loop, &pending->timer);
    g_free(pending);
}

/* ---- ACQUIRE --------------------------------------------------------------------------------- */

/* What does not fit includes what the host counts on the VM's own threads: that has a name, too. */
static void refuse_claim(struct peer *peer, const struct vpmu_wire_header *header,
                         const struct vpmu_claim *claim, const struct vpmu_answer *answer)
{
    char text[VPMU_WIRE_TEXT];
    size_t length = MIN(vpmu_answer_text(answer, text, sizeof(text)), sizeof(text) - 1);

    if (claim->beside.gp || claim->beside.fixed)
        snprintf(text + length, sizeof(text) - length,
                 "; of these %u GP and fixed 0x%x are counted by libvirt's <perf> on this domain",
                 claim->beside.gp, claim->beside.fixed);
    peer_refuse_text(peer, header, answer->status, answer->reason, text);
}

/* What has been reserved for a peer, if it is a VM; NULL: nothing. */
static struct entry *reserved_for(const struct peer *peer)
{
    return peer->session.kind == VPMU_KIND_VM
               ? books_reservation(peer->daemon->books, peer->hello.uuid)
               : NULL;
}

/* Under a reservation, if the VM has one. NULL: answer says why not. */
static struct entry *enter_or_take_over(struct peer *peer, const struct vpmu_claim *claim,
                                        struct vpmu_answer *answer)
{
    struct daemon *daemon = peer->daemon;
    struct entry_owner owner = owner_of(peer);
    struct entry *reserved = reserved_for(peer);

    if (!reserved)
        return books_enter(daemon->books, 0, &owner, claim, NULL, answer);
    if (books_take_over(daemon->books, reserved, &owner, claim, NULL, answer) !=
        VPMU_STATUS_SUCCESS)
        return NULL;
    loop_timer_stop(daemon->loop, &reserved->expiry);
    return reserved;
}

/* The answer first: its peer need not wait for the log. */
static void give(struct peer *peer, const struct vpmu_wire_header *header, struct entry *entry,
                 const char *event, const struct vpmu_answer *answer)
{
    char text[VPMU_WIRE_TEXT] = "as asked";

    peer_own(peer, entry);
    peer_grant(peer, header, entry, answer);
    if (answer->reason != VPMU_REASON_NONE)
        vpmu_answer_text(answer, text, sizeof(text));
    log_lease(peer->daemon, LOG_INFO, event, entry, text);
    keeper_touch(peer->daemon);
}

static void reserve(struct peer *peer, const struct vpmu_wire_header *header,
                    const struct vpmu_wire_reserve *wire, const struct vpmu_claim *claim);

/* Tries a pending request again, and answers it unless it goes on waiting. */
static void decide(struct pending *pending, bool time_is_over)
{
    struct peer *peer = pending->peer;
    struct vpmu_wire_header header = pending->header;
    struct vpmu_claim claim;
    struct vpmu_answer answer;
    struct entry *entry;

    if (time_is_over)
        revoke_for(pending);
    entry = enter_or_take_over(peer, &pending->claim, &answer);
    if (!entry && answer.reason == VPMU_REASON_YIELDING && !time_is_over)
        return;
    claim = pending->claim; /* without its set */
    drop_pending(pending);
    if (entry)
        give(peer, &header, entry, "granted", &answer);
    else
        refuse_claim(peer, &header, &claim, &answer);
}

static void wait_for_vms(struct peer *peer, const struct vpmu_wire_header *header,
                         const struct vpmu_claim *claim)
{
    struct daemon *daemon = peer->daemon;
    struct pending *pending = make_pending(peer, header, claim);

    if (!pending)
        return;
    loop_timer_set(daemon->loop, &pending->timer, daemon->config->notice_ms);
    tell_who_yields(daemon);
}

static void acquire_now(struct peer *peer, const struct vpmu_wire_header *header,
                        const struct vpmu_claim *claim)
{
    struct vpmu_answer answer;
    struct entry *entry = enter_or_take_over(peer, claim, &answer);

    if (entry)
        give(peer, header, entry, "granted", &answer);
    else if (answer.reason == VPMU_REASON_YIELDING)
        wait_for_vms(peer, header, claim);
    else
        refuse_claim(peer, header, claim, &answer);
}

static bool wait_for_grace(struct peer *peer, const struct vpmu_wire_header *header,
                           const struct vpmu_claim *claim, const struct vpmu_wire_reserve *wire)
{
    struct pending *pending;

    if (!peer->daemon->grace)
        return false;
    pending = make_pending(peer, header, claim);
    if (pending) {
        pending->for_grace = true;
        if (wire)
            pending->reserve = *wire;
    }
    return true;
}

/* What nobody can be given here, for a reason that lies in the host. True: it has been refused. */
static bool is_barred(struct peer *peer, const struct vpmu_wire_header *header,
                      const struct vpmu_claim *claim)
{
    const struct policy *policy = peer_policy(peer);
    char text[VPMU_WIRE_TEXT];

    if (claim->binding == VPMU_BOUND_VCPU && observe_bars_vms(peer->daemon, text, sizeof(text))) {
        peer_refuse_text(peer, header, VPMU_STATUS_NOT_SUPPORTED, VPMU_REASON_ABSENT, text);
        return true;
    }
    if (claim->need.gp <= policy->max_gp && !(claim->need.fixed & ~policy->max_fixed))
        return false;
    snprintf(text, sizeof(text),
             "%u GP counters and fixed counters 0x%x are asked for; [policy %s] of vpmud's "
             "configuration gives uid %u at most %u and 0x%x",
             claim->need.gp, claim->need.fixed, policy->name, peer->credentials.uid, policy->max_gp,
             policy->max_fixed);
    peer_refuse_text(peer, header, VPMU_WIRE_DENIED, VPMU_REASON_NONE, text);
    return true;
}

/* The claim with what only the host knows: libvirt's <perf> on the same VM. */
static struct vpmu_claim with_beside(const struct daemon *daemon, const uint8_t uuid[BOOKS_UUID],
                                     const struct vpmu_claim *claim)
{
    struct vpmu_claim full = *claim;
    struct vpmu_amount seen;

    if (claim->binding != VPMU_BOUND_VCPU || !uuid_is_set(uuid))
        return full;
    seen = vpmu_host_beside(&daemon->host, uuid);
    if (seen.gp > full.beside.gp)
        full.beside.gp = seen.gp;
    full.beside.fixed |= seen.fixed;
    return full;
}

void request_acquire(struct peer *peer, const struct vpmu_wire_header *header,
                     const struct vpmu_claim *claim)
{
    struct vpmu_claim full = with_beside(peer->daemon, peer->hello.uuid, claim);

    full.name = peer->hello.name;
    if (is_barred(peer, header, &full))
        return;
    if (!books_reservation(peer->daemon->books, peer->hello.uuid) &&
        wait_for_grace(peer, header, &full, NULL))
        return;
    acquire_now(peer, header, &full);
}

/* ---- RENEW and the grace period -------------------------------------------------------------- */

static void end_grace(struct daemon *daemon);

static void end_grace_if_complete(struct daemon *daemon)
{
    if (daemon->grace && daemon->complete && !books_count(daemon->books, ENTRY_HELD))
        end_grace(daemon);
}

/* Whoever has the number alone does not have the lease. */
static struct entry *held_entry(const struct peer *peer, uint64_t instance, uint64_t id)
{
    const struct daemon *daemon = peer->daemon;
    struct entry *entry = books_find(daemon->books, id);

    return entry && entry->owner.state == ENTRY_HELD && entry->owner.identity == instance &&
                   entry->owner.kind == peer->session.kind &&
                   entry->owner.uid == peer->credentials.uid &&
                   !memcmp(entry->owner.uuid, peer->hello.uuid, BOOKS_UUID)
               ? entry
               : NULL;
}

void request_renew(struct peer *peer, const struct vpmu_wire_header *header, uint64_t instance,
                   uint64_t id, const struct vpmu_claim *claim)
{
    struct daemon *daemon = peer->daemon;
    struct vpmu_claim full = with_beside(daemon, peer->hello.uuid, claim);
    struct entry *held = held_entry(peer, instance, id);
    struct entry_owner owner = owner_of(peer);
    struct vpmu_answer answer;
    struct entry *entry = held;

    full.name = peer->hello.name;
    if (is_barred(peer, header, &full))
        return;
    if (held) {
        owner.since_ms = held->owner.since_ms;
        books_take_over(daemon->books, held, &owner, &full, NULL, &answer);
    } else {
        /* The state file may be older than the VM's claim on its reservation. */
        entry = enter_or_take_over(peer, &full, &answer);
    }
    if (answer.status == VPMU_STATUS_SUCCESS) {
        daemon->statistics.renewed++;
        give(peer, header, entry, "renewed", &answer);
    } else if (!wait_for_grace(peer, header, &full, NULL)) {
        acquire_now(peer, header, &full);
    }
    end_grace_if_complete(daemon);
}

static void strike_held(struct daemon *daemon)
{
    struct entry *next;

    for (struct entry *entry = books_next(daemon->books, NULL); entry; entry = next) {
        next = books_next(daemon->books, entry);
        if (entry->owner.state != ENTRY_HELD)
            continue;
        log_lease(daemon, LOG_WARNING, "not-renewed", entry, "the grace period is over");
        strike(daemon, entry);
    }
}

/* Those whose turn comes now may become pending again, behind the others. */
static void decide_after_grace(struct daemon *daemon)
{
    for (uint32_t left = daemon->pending_count; left; left--) {
        struct pending *pending = daemon->pending;
        struct pending copy = *pending;
        uint64_t set[BOOKS_SET_WORDS];

        if (copy.claim.processors)
            copy.claim.processors = memcpy(set, pending->set, copy.claim.words * sizeof(set[0]));
        drop_pending(pending);
        if (copy.header.type == VPMU_WIRE_RESERVE)
            reserve(copy.peer, &copy.header, &copy.reserve, &copy.claim);
        else
            acquire_now(copy.peer, &copy.header, &copy.claim);
    }
}

static void end_grace(struct daemon *daemon)
{
    daemon->grace = false;
    loop_timer_stop(daemon->loop, &daemon->grace_end);
    strike_held(daemon);
    log_event(LOG_INFO, "grace-over", NUMBER("leases", books_count(daemon->books, ENTRY_LIVE)));
    decide_after_grace(daemon);
}

static void grace_is_over(struct loop_timer *timer)
{
    end_grace(OWNER_OF(timer, struct daemon, grace_end));
}

void requests_begin(struct daemon *daemon)
{
    daemon->pending_end = &daemon->pending;
    daemon->grace_end.due = grace_is_over;
    daemon->grace = daemon->predecessor && daemon->config->grace_ms;
    if (daemon->grace)
        loop_timer_set(daemon->loop, &daemon->grace_end, daemon->config->grace_ms);
    else
        strike_held(daemon);
    end_grace_if_complete(daemon);
}

/* ---- RELEASE, RESIZE ------------------------------------------------------------------------- */

void requests_settle(struct daemon *daemon)
{
    struct pending *next;

    for (struct pending *pending = daemon->pending; pending; pending = next) {
        next = pending->next;
        if (!pending->for_grace)
            decide(pending, false);
    }
    tell_who_yields(daemon);
    restore_yielded(daemon);
}

void request_release(struct peer *peer, const struct vpmu_wire_header *header, uint64_t id)
{
    struct entry *entry = own_entry(peer, header, id);

    if (!entry)
        return;
    peer_done(peer, header);
    log_lease(peer->daemon, LOG_INFO, "released", entry, "given back");
    strike(peer->daemon, entry);
    requests_settle(peer->daemon);
}

void request_resize(struct peer *peer, const struct vpmu_wire_header *header, uint64_t id,
                    struct vpmu_amount need)
{
    struct entry *entry = own_entry(peer, header, id);
    struct vpmu_claim claim;
    struct vpmu_answer answer;

    if (!entry)
        return;
    claim = books_claim(peer->daemon->books, entry);
    claim.need = need;
    if (is_barred(peer, header, &claim))
        return;
    if (books_resize(peer->daemon->books, entry, need, &answer) != VPMU_STATUS_SUCCESS) {
        peer_refuse(peer, header, &answer);
        return;
    }
    log_lease(peer->daemon, LOG_INFO, "resized", entry, "as asked");
    peer_grant(peer, header, entry, &answer);
    keeper_touch(peer->daemon);
    requests_settle(peer->daemon);
}

/* ---- REPORT ---------------------------------------------------------------------------------- */

static uint32_t starved(const struct entry *entry)
{
    return entry->report ? entry->report->states[VPMU_COUNTER_STARVED] : 0;
}

/* The guest's counters stand still, or count again: somebody who was not asked has them. */
static void log_starved(struct daemon *daemon, const struct entry *entry, uint32_t before)
{
    char text[VPMU_WIRE_TEXT];

    if (!starved(entry) == !before)
        return;
    requests_explain(daemon, entry, text);
    if (starved(entry))
        log_lease(daemon, LOG_WARNING, "starved", entry,
                  *text ? text : "its counters stand still; nobody is known to have them");
    else
        log_lease(daemon, LOG_NOTICE, "backed", entry, "its counters count again");
}

void request_report(struct peer *peer, const struct vpmu_wire_header *header, struct entry *entry,
                    const struct vpmu_wire_report *wire, const struct vpmu_status_counter *counters)
{
    uint32_t before = starved(entry);
    struct entry_report *report = entry->report;

    if (!report || report->count != wire->counters)
        report = g_realloc(report, sizeof(*report) + wire->counters * sizeof(counters[0]));
    report->reported_ms = wall_clock_ms();
    report->vcpus = wire->vcpus;
    report->count = wire->counters;
    memcpy(report->states, wire->states, sizeof(report->states));
    if (wire->counters)
        memcpy(report->counters, counters, wire->counters * sizeof(counters[0]));
    entry->report = report;
    log_starved(peer->daemon, entry, before);
    peer_done(peer, header);
}

/* ---- Reservations ---------------------------------------------------------------------------- */

static void reservation_expires(struct loop_timer *timer)
{
    struct entry *entry = OWNER_OF(timer, struct entry, expiry);
    struct daemon *daemon = entry->user;

    daemon->statistics.expired++;
    log_lease(daemon, LOG_WARNING, "expired", entry, "the VM did not come");
    strike(daemon, entry);
    requests_settle(daemon);
}

void requests_expire(struct daemon *daemon, struct entry *entry, uint64_t in_ms)
{
    entry->expiry.due = reservation_expires;
    entry->user = daemon;
    loop_timer_set(daemon->loop, &entry->expiry, in_ms);
}

/* Nobody asserts a reservation again after a restart: it stands when it is on the disk. */
static void record_reservation(struct peer *peer, const struct vpmu_wire_header *header,
                               struct entry *entry, const struct vpmu_answer *answer)
{
    struct state_error error;

    if (!keeper_save(peer->daemon, false, &error)) {
        log_lease(peer->daemon, LOG_INFO, "reserved", entry, "as asked");
        peer_grant(peer, header, entry, answer);
        return;
    }
    strike(peer->daemon, entry);
    peer_refuse_text(peer, header, VPMU_STATUS_UNSUCCESSFUL, VPMU_REASON_NONE, error.text);
}

static void reserve(struct peer *peer, const struct vpmu_wire_header *header,
                    const struct vpmu_wire_reserve *wire, const struct vpmu_claim *claim)
{
    struct daemon *daemon = peer->daemon;
    struct entry_owner owner = owner_of(peer);
    struct entry *entry = books_reservation(daemon->books, wire->uuid);
    uint64_t timeout_ms = MIN(wire->timeout_s * UINT64_C(1000), daemon->config->reserve_ms);
    struct vpmu_claim named = *claim;
    struct vpmu_answer answer;

    owner.state = ENTRY_RESERVED;
    owner.kind = VPMU_KIND_VM;
    owner.pid = 0;
    memcpy(owner.uuid, wire->uuid, sizeof(owner.uuid));
    memcpy(owner.name, wire->name, sizeof(owner.name));
    named.name = owner.name;
    if (entry)
        books_take_over(daemon->books, entry, &owner, &named, NULL, &answer);
    else
        entry = books_enter(daemon->books, 0, &owner, &named, NULL, &answer);
    if (answer.status != VPMU_STATUS_SUCCESS) {
        refuse_claim(peer, header, &named, &answer);
        return;
    }
    requests_expire(daemon, entry, timeout_ms);
    record_reservation(peer, header, entry, &answer);
}

void request_reserve(struct peer *peer, const struct vpmu_wire_header *header,
                     const struct vpmu_wire_reserve *wire, const struct vpmu_claim *claim)
{
    struct vpmu_claim full = with_beside(peer->daemon, wire->uuid, claim);

    if (!is_barred(peer, header, &full) && !wait_for_grace(peer, header, &full, wire))
        reserve(peer, header, wire, &full);
}

/* A VM that did not come back after a restart of the daemon has its uuid in the books, too. */
static void strike_held_of(struct daemon *daemon, const uint8_t uuid[BOOKS_UUID])
{
    struct entry *next;
    struct entry *entry =
        books_count(daemon->books, ENTRY_HELD) ? books_next(daemon->books, NULL) : NULL;

    for (; entry; entry = next) {
        next = books_next(daemon->books, entry);
        if (entry->owner.state == ENTRY_HELD && !memcmp(entry->owner.uuid, uuid, BOOKS_UUID))
            strike(daemon, entry);
    }
}

void request_unreserve(struct peer *peer, const struct vpmu_wire_header *header,
                       const uint8_t uuid[BOOKS_UUID])
{
    struct daemon *daemon = peer->daemon;
    struct entry *entry = books_reservation(daemon->books, uuid);

    if (entry) {
        log_lease(daemon, LOG_INFO, "unreserved", entry, "given back");
        strike(daemon, entry);
    }
    strike_held_of(daemon, uuid);
    peer_done(peer, header);
    requests_settle(daemon);
    end_grace_if_complete(daemon);
}

/* ---- What happens without a request ---------------------------------------------------------- */

void requests_forget(struct peer *peer)
{
    struct daemon *daemon = peer->daemon;
    struct pending *next;
    bool had_lease = peer->entries, had_pending = peer->pending;

    for (struct pending *pending = daemon->pending; pending; pending = next) {
        next = pending->next;
        if (pending->peer == peer)
            drop_pending(pending);
    }
    while (peer->entries) {
        log_lease(daemon, LOG_INFO, "released", peer->entries, "its connection was closed");
        strike(daemon, peer->entries);
    }
    if (had_lease || had_pending)
        requests_settle(daemon);
}

vpmu_status requests_revoke(struct daemon *daemon, struct entry *entry, const char *by,
                            struct vpmu_answer *answer)
{
    if (books_revoke(daemon->books, entry, answer) != VPMU_STATUS_SUCCESS)
        return answer->status;
    daemon->yielded -= entry->yielded; /* for good now */
    entry->yielded = false;
    daemon->statistics.revoked++;
    log_lease(daemon, LOG_NOTICE, "revoked", entry, by);
    notify(daemon, entry, by);
    keeper_touch(daemon);
    requests_settle(daemon);
    return answer->status;
}

void requests_look_for_short(struct daemon *daemon)
{
    struct vpmu_answer answer;

    for (struct entry *entry = books_next(daemon->books, NULL); entry;
         entry = books_next(daemon->books, entry)) {
        bool is_short = books_short(daemon->books, entry, &answer);
        char text[VPMU_WIRE_TEXT] = "what was in its way is gone";

        if (is_short == entry->is_short)
            continue;
        entry->is_short = is_short;
        if (is_short)
            vpmu_answer_text(&answer, text, sizeof(text));
        log_lease(daemon, is_short ? LOG_WARNING : LOG_NOTICE, is_short ? "short" : "enough", entry,
                  text);
        if (is_short)
            notify_answer(daemon, entry, &answer);
        else
            notify(daemon, entry, text);
    }
}

void requests_free(struct daemon *daemon)
{
    struct pending *next;

    for (struct pending *pending = daemon->pending; pending; pending = next) {
        next = pending->next;
        drop_pending(pending);
    }
}
