// SPDX-License-Identifier: BSD-3-Clause
/*
 * A connection is read when there is something, and each message is answered at once or becomes
 * pending (requests.c). What the socket has no room for waits in the connection, up to queue_bytes:
 * a peer that does not read is not waited for, and not remembered for, without end.
 *
 * A connection is freed only where it is read. Whoever finds elsewhere that it has to end shuts it
 * down, and the loop comes to it: so nothing that goes through peers or leases loses its place.
 */
#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "needs.h"
#include "requests.h"
#include "vpmu/transport.h"

NEEDS("recvmsg shutdown close");

#define SURPLUS 16u /* connections that are only told why they may not stay */

static void doom(struct peer *peer)
{
    if (!peer->doomed)
        shutdown(peer->source.fd, SHUT_RDWR);
    peer->doomed = true;
}

const struct policy *peer_policy(const struct peer *peer)
{
    const struct config *config = peer->daemon->config;

    return policy_find(config->policies, config->policy_count, &peer->credentials);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void break_off(struct peer *peer, const char *why)
{
    if (peer->doomed)
        return;
    peer->daemon->statistics.broken++;
    log_event(LOG_WARNING, "closed", TEXT("name", peer->hello.name),
              NUMBER("uid", peer->credentials.uid), NUMBER("pid", peer->credentials.pid),
              TEXT("why", why));
    doom(peer);
}

/* Waits for room exactly as long as something is unsent. */
static void after_sending(struct peer *peer, int status)
{
    if (status)
        doom(peer);
    else if (peer->outbox.size > peer->daemon->config->queue_bytes)
        break_off(peer, "it does not read what it is sent");
    loop_change(peer->daemon->loop, &peer->source, EPOLLIN | (peer->outbox.size ? EPOLLOUT : 0));
}

static void send_message(struct peer *peer, const struct vpmu_wire_message *message)
{
    if (!peer->doomed)
        after_sending(
            peer, outbox_send(&peer->outbox, peer->source.fd, message, vpmu_wire_size(message)));
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void answer(struct peer *peer, const struct vpmu_wire_header *request, const void *body)
{
    struct vpmu_wire_message message;

    peer->daemon->statistics.answered[request->type]++;
    vpmu_wire_reply(&message, request, body);
    send_message(peer, &message);
}

void peer_done(struct peer *peer, const struct vpmu_wire_header *request)
{
    answer(peer, request, NULL);
}

void peer_grant(struct peer *peer, const struct vpmu_wire_header *request,
                const struct entry *entry, const struct vpmu_answer *why)
{
    struct vpmu_admission_lease lease;
    struct vpmu_wire_grant grant = {.lease = entry->id, .reason = why->reason};
    char text[VPMU_WIRE_TEXT] = "";

    books_lease(peer->daemon->books, entry, &lease);
    grant.granted = lease.granted;
    if (why->reason != VPMU_REASON_NONE)
        vpmu_answer_text(why, text, sizeof(text));
    vpmu_wire_text(grant.text, sizeof(grant.text), text);
    answer(peer, request, &grant);
}

void peer_refuse_text(struct peer *peer, const struct vpmu_wire_header *request, vpmu_status status,
                      enum vpmu_reason reason, const char *text)
{
    struct vpmu_wire_message message;

    if (request->type < VPMU_WIRE_TYPES)
        peer->daemon->statistics.refused[request->type]++;
    peer->daemon->statistics.reasons[reason]++;
    log_event(LOG_NOTICE, "refused", TEXT("name", peer->hello.name),
              NUMBER("uid", peer->credentials.uid), NUMBER("pid", peer->credentials.pid),
              TEXT("status", vpmu_wire_status_name(status)), TEXT("why", text));
    vpmu_wire_refuse(&message, request, status, reason, text);
    send_message(peer, &message);
}

void peer_refuse(struct peer *peer, const struct vpmu_wire_header *request,
                 const struct vpmu_answer *why)
{
    char text[VPMU_WIRE_TEXT];

    vpmu_answer_text(why, text, sizeof(text));
    peer_refuse_text(peer, request, why->status, why->reason, text);
}

static bool is_observer(const struct peer *peer)
{
    return peer->session.ready && peer->session.kind == VPMU_KIND_OBSERVER;
}

static void send_notice(struct peer *peer, uint32_t state, const struct vpmu_wire_message *message)
{
    if (!(peer->subscribed >> state & 1))
        return;
    peer->daemon->statistics.notices++;
    send_message(peer, message);
}

void peer_notify(struct daemon *daemon, const struct entry *entry,
                 const struct vpmu_wire_notice *notice)
{
    struct vpmu_wire_message message;

    vpmu_wire_notify(&message, notice);
    if (entry->peer)
        send_notice(entry->peer, notice->state, &message);
    for (struct peer *peer = daemon->observers ? daemon->peers : NULL; peer; peer = peer->next)
        if (is_observer(peer))
            send_notice(peer, notice->state, &message);
}

/* ---- Leases of a peer ------------------------------------------------------------------------ */

void peer_own(struct peer *peer, struct entry *entry)
{
    entry->peer = peer;
    entry->next_of_peer = peer->entries;
    peer->entries = entry;
}

void peer_disown(struct entry *entry)
{
    struct entry **place = &entry->peer->entries;

    while (*place != entry)
        place = &(*place)->next_of_peer;
    *place = entry->next_of_peer;
    entry->peer = NULL;
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* SUCCESS: it is welcome. */
static vpmu_status judge_hello(const struct peer *peer, char text[VPMU_WIRE_TEXT])
{
    const struct daemon *daemon = peer->daemon;
    const struct policy *policy = peer_policy(peer);
    const char *kind = vpmu_wire_kind_name(peer->hello.kind);

    if (!policy) {
        snprintf(text, VPMU_WIRE_TEXT,
                 "uid %u (pid %d) may not be a %s: no policy of vpmud's configuration names it",
                 peer->credentials.uid, (int)peer->credentials.pid, kind);
        return VPMU_WIRE_DENIED;
    }
    if (!policy_allows(policy, (enum right)peer->hello.kind)) {
        snprintf(text, VPMU_WIRE_TEXT,
                 "uid %u (pid %d) may not be a %s: [policy %s] of vpmud's configuration does not "
                 "allow it",
                 peer->credentials.uid, (int)peer->credentials.pid, kind, policy->name);
        return VPMU_WIRE_DENIED;
    }
    if (peer->surplus) {
        snprintf(text, VPMU_WIRE_TEXT, "vpmud has %u connections, as many as it may",
                 daemon->peer_count - daemon->surplus_count);
        return VPMU_WIRE_TOO_MANY;
    }
    return VPMU_STATUS_SUCCESS;
}

static void handle_hello(struct peer *peer, const struct vpmu_wire_message *message)
{
    struct daemon *daemon = peer->daemon;
    char text[VPMU_WIRE_TEXT];
    vpmu_status status;

    peer->hello = message->hello;
    status = judge_hello(peer, text);
    if (status != VPMU_STATUS_SUCCESS) {
        peer_refuse_text(peer, &message->header, status, VPMU_REASON_NONE, text);
        if (peer->surplus)
            doom(peer);
        return;
    }
    peer->session = (struct vpmu_wire_session){.ready = true, .kind = message->hello.kind};
    daemon->observers += is_observer(peer);
    answer(peer, &message->header,
           &(struct vpmu_wire_welcome){
               .version = VPMU_PROTOCOL_VERSION,
               .mediated = daemon->host.facts.mediated == VPMU_FACT_YES,
               .processors = daemon->host.processor_count,
               .grace_ms = daemon->config->grace_ms,
               .instance = daemon->instance,
               .notice_ms = daemon->config->notice_ms,
           });
}

static void handle_acquire(struct peer *peer, const struct vpmu_wire_message *message)
{
    enum vpmu_shortage_policy policy;
    struct vpmu_claim claim;

    vpmu_wire_claim_read(message, &claim, &policy);
    request_acquire(peer, &message->header, &claim);
}

static void handle_renew(struct peer *peer, const struct vpmu_wire_message *message)
{
    enum vpmu_shortage_policy policy;
    struct vpmu_claim claim;

    vpmu_wire_claim_read(message, &claim, &policy);
    request_renew(peer, &message->header, message->renew.instance, message->renew.lease, &claim);
}

static void handle_reserve(struct peer *peer, const struct vpmu_wire_message *message)
{
    enum vpmu_shortage_policy policy;
    struct vpmu_claim claim;

    vpmu_wire_claim_read(message, &claim, &policy);
    request_reserve(peer, &message->header, &message->reserve, &claim);
}

static void handle_unreserve(struct peer *peer, const struct vpmu_wire_message *message)
{
    request_unreserve(peer, &message->header, message->unreserve.uuid);
}

static void handle_release(struct peer *peer, const struct vpmu_wire_message *message)
{
    request_release(peer, &message->header, message->lease.lease);
}

static void handle_resize(struct peer *peer, const struct vpmu_wire_message *message)
{
    request_resize(peer, &message->header, message->resize.lease, message->resize.need);
}

/* What is so already is said at once: it may have become so before the peer could ask. */
static void handle_subscribe(struct peer *peer, const struct vpmu_wire_message *message)
{
    struct vpmu_wire_message notice;

    peer->subscribed = message->subscribe.states;
    peer_done(peer, &message->header);
    for (struct entry *entry = peer->entries; entry; entry = entry->next_of_peer) {
        struct vpmu_wire_notice now = requests_notice(peer->daemon, entry);

        if (now.state == VPMU_LEASE_GRANTED || !(peer->subscribed >> now.state & 1))
            continue;
        vpmu_wire_notify(&notice, &now);
        send_message(peer, &notice);
    }
}

/* NULL, and it is refused: there is none, or it is somebody else's. */
static struct entry *visible_entry(struct peer *peer, const struct vpmu_wire_header *request,
                                   uint64_t id)
{
    struct entry *entry = id ? books_find(peer->daemon->books, id) : peer->entries;
    bool all = peer->session.kind == VPMU_KIND_OBSERVER;

    if (entry && (all || entry->peer == peer))
        return entry;
    peer_refuse(peer, request,
                &(struct vpmu_answer){.status = VPMU_STATUS_INVALID_PARAMETER,
                                      .reason = VPMU_REASON_BAD_HANDLE,
                                      .lease = id,
                                      .processor = VPMU_NOT_SET});
    return NULL;
}

static void handle_report(struct peer *peer, const struct vpmu_wire_message *message)
{
    const struct vpmu_wire_report *wire = &message->report;
    struct entry *entry = visible_entry(peer, &message->header, wire->lease);

    if (!entry)
        return;
    request_report(peer, &message->header, entry, wire, vpmu_wire_tail(message));
}

static void handle_status(struct peer *peer, const struct vpmu_wire_message *message)
{
    const struct entry *entry = visible_entry(peer, &message->header, message->lease.lease);
    struct vpmu_admission_lease lease;
    struct vpmu_wire_message reply;
    struct vpmu_wire_info info;

    if (!entry)
        return;
    books_lease(peer->daemon->books, entry, &lease);
    info = (struct vpmu_wire_info){
        .lease = entry->id,
        .since = (uint64_t)entry->owner.since_ms / 1000,
        .binding = lease.binding,
        .flags = lease.flags,
        .state = (uint8_t)requests_state(peer->daemon, entry),
        .asked = lease.asked,
        .granted = lease.granted,
        .beside = lease.beside,
        .words = lease.words,
    };
    memcpy(info.uuid, entry->owner.uuid, sizeof(info.uuid));
    vpmu_wire_text(info.name, sizeof(info.name), entry->owner.name);
    requests_explain(peer->daemon, entry, info.text);
    peer->daemon->statistics.answered[VPMU_WIRE_STATUS]++;
    vpmu_wire_reply_info(&reply, &message->header, &info, lease.processors);
    send_message(peer, &reply);
}

static void handle_ping(struct peer *peer, const struct vpmu_wire_message *message)
{
    peer_done(peer, &message->header);
}

static void (*const handlers[VPMU_WIRE_TYPES])(struct peer *peer,
                                               const struct vpmu_wire_message *message) = {
    [VPMU_WIRE_HELLO] = handle_hello,         [VPMU_WIRE_ACQUIRE] = handle_acquire,
    [VPMU_WIRE_RELEASE] = handle_release,     [VPMU_WIRE_RESIZE] = handle_resize,
    [VPMU_WIRE_RENEW] = handle_renew,         [VPMU_WIRE_RESERVE] = handle_reserve,
    [VPMU_WIRE_UNRESERVE] = handle_unreserve, [VPMU_WIRE_SUBSCRIBE] = handle_subscribe,
    [VPMU_WIRE_REPORT] = handle_report,       [VPMU_WIRE_STATUS] = handle_status,
    [VPMU_WIRE_PING] = handle_ping,
};

/* A reload may have taken away what the peer could do when it came; it may always give back. */
static bool may_still(const struct peer *peer, uint32_t type)
{
    return !peer->session.ready || type == VPMU_WIRE_RELEASE || type == VPMU_WIRE_UNRESERVE ||
           policy_allows(peer_policy(peer), (enum right)peer->session.kind);
}

static void handle(struct peer *peer, const struct vpmu_wire_message *message)
{
    char text[VPMU_WIRE_TEXT];
    vpmu_status status = vpmu_wire_check_request(message, &peer->session, text);

    if (status == VPMU_STATUS_SUCCESS && !may_still(peer, message->header.type)) {
        status = VPMU_WIRE_DENIED;
        snprintf(text, sizeof(text), "vpmud's configuration allows uid %u no %s any more",
                 peer->credentials.uid, vpmu_wire_kind_name(peer->session.kind));
    }
    if (status == VPMU_STATUS_SUCCESS)
        handlers[message->header.type](peer, message);
    else
        peer_refuse_text(peer, &message->header, status, VPMU_REASON_NONE, text);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void feed(struct peer *peer, const uint8_t *data, size_t size)
{
    while (!peer->doomed) {
        enum vpmu_wire_progress progress = vpmu_wire_read(&peer->reader, &data, &size);

        if (progress == VPMU_WIRE_MORE)
            return;
        if (progress == VPMU_WIRE_MESSAGE)
            handle(peer, &peer->reader.message);
        else
            break_off(peer, "what it sends is not the protocol");
    }
}

static void close_peer(struct peer *peer)
{
    struct daemon *daemon = peer->daemon;

    requests_forget(peer);
    loop_remove(daemon->loop, &peer->source);
    close(peer->source.fd);
    *(peer->previous ? &peer->previous->next : &daemon->peers) = peer->next;
    if (peer->next)
        peer->next->previous = peer->previous;
    daemon->peer_count--;
    daemon->observers -= is_observer(peer);
    daemon->surplus_count -= peer->surplus;
    credentials_free(&peer->credentials);
    outbox_free(&peer->outbox);
    free(peer);
}

static void peer_ready(struct loop_source *source, uint32_t events)
{
    struct peer *peer = OWNER_OF(source, struct peer, source);
    static uint8_t data[16384]; /* one thread; what of it is no whole message the reader keeps */
    ssize_t got;

    if (events & EPOLLOUT)
        after_sending(peer, outbox_flush(&peer->outbox, source->fd));
    got = vpmu_transport_socket.receive(source->fd, data, sizeof(data));
    if (got < 0 && (errno == EAGAIN || errno == EINTR) && !peer->doomed)
        return;
    if (got < 0 && errno == EPROTO)
        break_off(peer, "it passes file descriptors");
    if (got > 0 && !peer->doomed)
        feed(peer, data, (size_t)got);
    else
        close_peer(peer);
}

void peer_accept(struct daemon *daemon, int fd)
{
    struct peer *peer = calloc(1, sizeof(*peer));

    if (!peer || credentials_read(fd, &peer->credentials)) {
        log_event(LOG_ERR, "not-accepted", TEXT("why", strerror(errno)));
        goto close;
    }
    peer->daemon = daemon;
    peer->source = (struct loop_source){.fd = fd, .events = EPOLLIN, .ready = peer_ready};
    peer->surplus = !peer_policy(peer) ||
                    daemon->peer_count - daemon->surplus_count >= daemon->config->connections;
    if (peer->surplus && daemon->surplus_count >= SURPLUS)
        goto close;
    if (loop_add(daemon->loop, &peer->source)) {
        log_event(LOG_ERR, "not-accepted", TEXT("why", strerror(errno)));
        goto close;
    }
    peer->next = daemon->peers;
    if (peer->next)
        peer->next->previous = peer;
    daemon->peers = peer;
    daemon->peer_count++;
    daemon->surplus_count += peer->surplus;
    daemon->statistics.connections++;
    return;

close:
    close(fd);
    if (peer)
        credentials_free(&peer->credentials);
    free(peer);
}

void peer_close_all(struct daemon *daemon)
{
    struct peer *next;

    for (struct peer *peer = daemon->peers; peer; peer = next) {
        next = peer->next;
        close_peer(peer);
    }
}
