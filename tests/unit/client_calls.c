// SPDX-License-Identifier: BSD-3-Clause
/* What a client says, and what it makes of what it hears. */
#include "tests/unit/client_peer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct peer peer;
static struct heard heard;
static struct vpmu_client *client;
static struct vpmu_client_answer answer;
static struct vpmu_client_error error;

static const uint64_t set[] = {0xF0, 1};
static const struct vpmu_claim claim = {
    .binding = VPMU_BOUND_VCPU,
    .flags = VPMU_CLAIM_YIELDS,
    .need = {.gp = 4, .fixed = 7},
    .least = {.gp = 2, .fixed = 1},
    .processors = set,
    .words = 2,
    .name = "a VM",
};
static const struct vpmu_wire_grant grant = {
    .lease = 77, .granted = {.gp = 3, .fixed = 7}, .reason = VPMU_REASON_REDUCED, .text = "perf"};

static void connect_client(void)
{
    client = connected_client(&peer, &heard);
}

static void end_client(void)
{
    vpmu_client_free(client);
    close(peer.fd);
}

TestSuite(client, .init = connect_client, .fini = end_client, .timeout = 60);

/* It has failed so, and the connection is closed. */
static void assert_gone(vpmu_status status)
{
    cr_assert_eq(error.status, status, "%s", error.text);
    cr_assert(error.text[0] && !strchr(error.text, '\n'));
    cr_assert_eq(vpmu_client_fd(client), -1);
    cr_assert(!vpmu_client_welcome(client));
    cr_assert(peer_is_alone(&peer));
    cr_assert_eq(vpmu_client_ping(client, &answer, &error), -1);
    cr_assert_eq(error.status, VPMU_CLIENT_LOST);
}

/* ---- Requests and answers -------------------------------------------------------------------- */

Test(client, hello_says_who_it_is_and_hears_the_welcome)
{
    const struct vpmu_wire_welcome *welcome = vpmu_client_welcome(client);

    cr_assert(welcome);
    cr_expect_eq(welcome->processors, 8);
    cr_expect_eq(welcome->instance, INSTANCE);
    cr_expect_eq(peer.session.kind, VPMU_KIND_VM);
    cr_expect(fcntl(vpmu_client_fd(client), F_GETFD) & FD_CLOEXEC);
    cr_expect(fcntl(vpmu_client_fd(client), F_GETFL) & O_NONBLOCK);
}

Test(client, acquire_carries_the_claim_and_its_set)
{
    struct vpmu_wire_message request;
    enum vpmu_shortage_policy policy;
    struct vpmu_claim said;

    peer_answer(&peer, VPMU_WIRE_ACQUIRE, 2, &grant);
    cr_assert_eq(vpmu_client_acquire(client, &claim, VPMU_POLICY_REDUCE, &answer, &error), 0);
    cr_expect_eq(answer.type, VPMU_WIRE_ACQUIRE);
    cr_expect_eq(answer.grant.lease, 77);
    cr_expect_eq(answer.grant.granted.gp, 3);
    cr_expect_str_eq(answer.grant.text, "perf");
    cr_expect_eq(vpmu_client_lease(client), 77);

    request = peer_hear(&peer);
    vpmu_wire_claim_read(&request, &said, &policy);
    cr_expect_eq(said.binding, VPMU_BOUND_VCPU);
    cr_expect_eq(said.flags, VPMU_CLAIM_YIELDS);
    cr_expect_eq(said.need.gp, 4);
    cr_expect_eq(said.least.gp, 2);
    cr_expect_eq((int)policy, VPMU_POLICY_REDUCE);
    cr_assert_eq(said.words, 2);
    cr_expect(!memcmp(said.processors, set, sizeof(set)));
}

Test(client, each_request_is_one_that_a_daemon_takes)
{
    const struct vpmu_status_counter counters[2] = {{0}};
    const struct vpmu_wire_report report = {.lease = 77, .vcpus = 1, .counters = 2};
    const struct vpmu_amount need = {.gp = 1};
    struct vpmu_wire_message request;

    cr_assert_eq(vpmu_client_release(client, 77, NULL, &error), 0);
    cr_assert_eq(vpmu_client_resize(client, 77, need, NULL, &error), 0);
    cr_assert_eq(vpmu_client_renew(client, &claim, VPMU_POLICY_HIDE, NULL, &error), 0);
    cr_assert_eq(vpmu_client_subscribe(client, 15, NULL, &error), 0);
    cr_assert_eq(vpmu_client_report(client, &report, counters, NULL, &error), 0);
    cr_assert_eq(vpmu_client_status(client, 77, NULL, &error), 0);
    cr_assert_eq(vpmu_client_ping(client, NULL, &error), 0);

    cr_expect_eq(peer_hear(&peer).lease.lease, 77);
    request = peer_hear(&peer);
    cr_expect_eq(request.resize.lease, 77);
    cr_expect_eq(request.resize.need.gp, 1);
    cr_expect_eq(peer_hear(&peer).renew.lease, VPMU_LEASE_NONE);
    cr_expect_eq(peer_hear(&peer).subscribe.states, 15);
    cr_expect_eq(peer_hear(&peer).report.counters, 2);
    cr_expect_eq(peer_hear(&peer).lease.lease, 77);
    cr_expect_eq(peer_hear(&peer).header.serial, 8);
}

Test(client, a_hook_reserves_and_frees)
{
    const uint8_t uuid[VPMU_WIRE_UUID] = {9};
    struct vpmu_wire_message request;

    peer.session.kind = VPMU_KIND_HOOK;
    peer_answer(&peer, VPMU_WIRE_RESERVE, 2, &grant);
    cr_assert_eq(vpmu_client_reserve(client, uuid, &claim, VPMU_POLICY_REFUSE, 60, &answer, &error),
                 0);
    cr_expect_eq(answer.grant.lease, 77);
    cr_expect_eq(vpmu_client_lease(client), VPMU_LEASE_NONE, "it is the VM's");
    request = peer_hear(&peer);
    cr_expect_eq(request.reserve.timeout_s, 60);
    cr_expect_str_eq(request.reserve.name, "a VM");
    cr_expect(!memcmp(request.reserve.uuid, uuid, sizeof(uuid)));

    peer_answer(&peer, VPMU_WIRE_UNRESERVE, 3, NULL);
    cr_assert_eq(vpmu_client_unreserve(client, uuid, &answer, &error), 0);
    cr_expect(!memcmp(peer_hear(&peer).unreserve.uuid, uuid, sizeof(uuid)));
}

Test(client, status_has_a_set_of_processors)
{
    const struct vpmu_wire_info info = {.lease = 77, .words = 2, .name = "a VM"};
    const struct vpmu_wire_header request = {.type = VPMU_WIRE_STATUS, .serial = 2};
    struct vpmu_wire_message reply;

    vpmu_wire_reply_info(&reply, &request, &info, set);
    peer_say(&peer, &reply);
    cr_assert_eq(vpmu_client_status(client, VPMU_LEASE_NONE, &answer, &error), 0);
    cr_expect_str_eq(answer.info.name, "a VM");
    cr_assert_eq(answer.words, 2);
    cr_expect(!memcmp(answer.processors, set, sizeof(set)));
}

Test(client, a_refusal_keeps_the_connection_and_says_why)
{
    peer_refuse(&peer, VPMU_WIRE_ACQUIRE, 2, VPMU_STATUS_INSUFFICIENT_RESOURCES, VPMU_REASON_TAKEN,
                "perf has 6 of 8");
    peer_answer(&peer, VPMU_WIRE_PING, 3, NULL);
    cr_assert_eq(vpmu_client_acquire(client, &claim, VPMU_POLICY_REFUSE, &answer, &error), -1);
    cr_expect_eq(error.status, VPMU_STATUS_INSUFFICIENT_RESOURCES);
    cr_expect_eq((int)error.reason, VPMU_REASON_TAKEN);
    cr_expect_str_eq(error.text, "perf has 6 of 8");
    cr_expect_eq(vpmu_client_lease(client), VPMU_LEASE_NONE);
    cr_expect_eq(vpmu_client_ping(client, &answer, &error), 0);
}

Test(client, an_error_need_not_be_wanted)
{
    peer_refuse(&peer, VPMU_WIRE_PING, 2, VPMU_WIRE_DENIED, VPMU_REASON_NONE, "no");
    cr_expect_eq(vpmu_client_ping(client, &answer, NULL), -1);
}

Test(client, a_released_lease_is_none_and_another_ones_release_changes_nothing)
{
    peer_answer(&peer, VPMU_WIRE_ACQUIRE, 2, &grant);
    peer_answer(&peer, VPMU_WIRE_RELEASE, 3, NULL);
    cr_assert_eq(vpmu_client_acquire(client, &claim, VPMU_POLICY_REFUSE, &answer, &error), 0);
    cr_assert_eq(vpmu_client_release(client, 76, &answer, &error), 0);
    cr_expect_eq(vpmu_client_lease(client), 77);

    peer_refuse(&peer, VPMU_WIRE_RELEASE, 4, VPMU_STATUS_INVALID_PARAMETER, VPMU_REASON_BAD_HANDLE,
                "no");
    peer_answer(&peer, VPMU_WIRE_RELEASE, 5, NULL);
    cr_assert_eq(vpmu_client_release(client, 77, &answer, &error), -1);
    cr_expect_eq(vpmu_client_lease(client), 77);
    cr_assert_eq(vpmu_client_release(client, 77, &answer, &error), 0);
    cr_expect_eq(vpmu_client_lease(client), VPMU_LEASE_NONE);
}

Test(client, renew_asks_the_next_daemon_for_what_the_last_one_granted)
{
    struct vpmu_wire_grant again = grant;
    struct vpmu_wire_message request;

    peer_answer(&peer, VPMU_WIRE_ACQUIRE, 2, &grant);
    cr_assert_eq(vpmu_client_acquire(client, &claim, VPMU_POLICY_REFUSE, &answer, &error), 0);
    close(peer.fd);
    cr_assert_eq(vpmu_client_dispatch(client, &error), -1);
    cr_assert_eq(error.status, VPMU_CLIENT_LOST);

    peer_open(&peer);
    peer_welcome(&peer, 3);
    cr_assert_eq(vpmu_client_attach(client, &vpmu_transport_socket, peer.far, peer.far, &error), 0);
    peer_hear(&peer);
    again.lease = 99;
    peer_answer(&peer, VPMU_WIRE_RENEW, 4, &again);
    cr_assert_eq(vpmu_client_renew(client, &claim, VPMU_POLICY_REFUSE, &answer, &error), 0);
    request = peer_hear(&peer);
    cr_expect_eq(request.renew.instance, INSTANCE);
    cr_expect_eq(request.renew.lease, 77);
    cr_expect_eq(vpmu_client_lease(client), 99);
}

/* ---- Handlers -------------------------------------------------------------------------------- */

Test(client, notices_before_the_answer_go_to_the_handler_in_order)
{
    peer_notify(&peer, 5, VPMU_LEASE_SHORT);
    peer_notify(&peer, 6, VPMU_LEASE_REVOKED);
    peer_answer(&peer, VPMU_WIRE_PING, 2, NULL);
    cr_assert_eq(vpmu_client_ping(client, &answer, &error), 0);
    cr_expect_str_eq(heard.order, "nn");
    cr_expect_eq(heard.notice.lease, 6);
}

Test(client, what_comes_after_the_answer_is_there_for_a_poll)
{
    char byte;

    peer_answer(&peer, VPMU_WIRE_PING, 2, NULL);
    peer_notify(&peer, 5, VPMU_LEASE_SHORT);
    cr_assert_eq(vpmu_client_ping(client, &answer, &error), 0);
    cr_expect_str_eq(heard.order, "");
    cr_expect_eq((int)recv(vpmu_client_fd(client), &byte, 1, MSG_PEEK), 1);
    cr_assert_eq(vpmu_client_dispatch(client, &error), 0);
    cr_expect_str_eq(heard.order, "n");
}

Test(client, answers_that_nobody_waits_for_go_to_the_handler)
{
    cr_assert_eq(vpmu_client_acquire(client, &claim, VPMU_POLICY_REFUSE, NULL, &error), 0);
    cr_assert_eq(vpmu_client_dispatch(client, &error), 0);
    cr_expect_str_eq(heard.order, "", "nothing has come");
    peer_answer(&peer, VPMU_WIRE_ACQUIRE, 2, &grant);
    cr_assert_eq(vpmu_client_dispatch(client, &error), 0);
    cr_expect_str_eq(heard.order, "a");
    cr_expect_eq(heard.type, VPMU_WIRE_ACQUIRE);
    cr_expect_eq(heard.answer.grant.lease, 77);
    cr_expect_eq(vpmu_client_lease(client), 77);
}

Test(client, answers_may_come_in_another_order)
{
    cr_assert_eq(vpmu_client_acquire(client, &claim, VPMU_POLICY_REFUSE, NULL, &error), 0);
    peer_answer(&peer, VPMU_WIRE_PING, 3, NULL);
    cr_assert_eq(vpmu_client_ping(client, &answer, &error), 0);
    peer_refuse(&peer, VPMU_WIRE_ACQUIRE, 2, VPMU_STATUS_DEVICE_BUSY, VPMU_REASON_YIELDING, "VMs");
    peer_answer(&peer, VPMU_WIRE_PING, 4, NULL);
    cr_assert_eq(vpmu_client_ping(client, &answer, &error), 0);
    cr_expect_str_eq(heard.order, "e");
    cr_expect_eq(heard.error.status, VPMU_STATUS_DEVICE_BUSY);
    cr_expect_str_eq(heard.error.text, "VMs");
}

Test(client, of_each_type_one_request_is_pending)
{
    cr_assert_eq(vpmu_client_ping(client, NULL, &error), 0);
    cr_assert_eq(vpmu_client_ping(client, NULL, &error), -1);
    cr_expect_eq(error.status, VPMU_CLIENT_BUSY);
    cr_assert_eq(vpmu_client_ping(client, &answer, &error), -1);
    cr_expect_eq(error.status, VPMU_CLIENT_BUSY);
    peer_answer(&peer, VPMU_WIRE_PING, 2, NULL);
    cr_assert_eq(vpmu_client_dispatch(client, &error), 0);
    cr_expect_eq(vpmu_client_ping(client, NULL, &error), 0);
}

static void resize(struct heard *to)
{
    to->result =
        vpmu_client_resize(to->client, to->notice.lease, (struct vpmu_amount){0}, NULL, &to->error);
}

Test(client, a_handler_may_ask)
{
    heard.in_notice = resize;
    peer_notify(&peer, 77, VPMU_LEASE_YIELDING);
    peer_answer(&peer, VPMU_WIRE_RESIZE, 3, &grant);
    peer_answer(&peer, VPMU_WIRE_PING, 2, NULL);
    cr_assert_eq(vpmu_client_ping(client, &answer, &error), 0);
    cr_expect_eq(heard.result, 0);
    cr_expect_str_eq(heard.order, "na");
    peer_hear(&peer);
    cr_expect_eq(peer_hear(&peer).resize.lease, 77);
}

static void wait_for_answer(struct heard *to)
{
    to->result = vpmu_client_ping(to->client, &to->answer, &to->error);
}

static void connect_again(struct heard *to)
{
    to->result = vpmu_client_connect(to->client, &to->error);
}

static void dispatch(struct heard *to)
{
    to->result = vpmu_client_dispatch(to->client, &to->error);
}

Test(client, a_handler_must_not_wait)
{
    void (*const forbidden[])(struct heard *) = {wait_for_answer, connect_again, dispatch};

    for (unsigned i = 0; i < 3; i++) {
        heard.in_notice = forbidden[i];
        peer_notify(&peer, 77, VPMU_LEASE_YIELDING);
        cr_assert_eq(vpmu_client_dispatch(client, &error), 0);
        cr_expect_eq(heard.result, -1);
        cr_expect_eq(heard.error.status, VPMU_CLIENT_ARGUMENT);
    }
}

static void close_peer(struct heard *to)
{
    shutdown(peer.fd, SHUT_RDWR);
    wait_for_answer(to);
    resize(to);
}

Test(client, a_handler_may_find_the_connection_lost)
{
    heard.in_notice = close_peer;
    peer_notify(&peer, 77, VPMU_LEASE_YIELDING);
    peer_answer(&peer, VPMU_WIRE_PING, 2, NULL);
    cr_assert_eq(vpmu_client_ping(client, &answer, &error), -1);
    cr_expect_eq(heard.result, -1);
    peer_hear(&peer);
    assert_gone(VPMU_CLIENT_LOST);
}

/* ---- Peers that fail ------------------------------------------------------------------------- */

Test(client, no_answer_in_time_closes)
{
    vpmu_client_free(client);
    client = new_client(&heard, 1);
    close(peer.fd);
    peer_open(&peer);
    cr_assert_eq(vpmu_client_attach(client, &vpmu_transport_socket, peer.far, peer.far, &error),
                 -1);
    peer_hear(&peer);
    assert_gone(VPMU_CLIENT_TIMEOUT);
}

Test(client, a_peer_that_closes_is_lost)
{
    shutdown(peer.fd, SHUT_WR);
    cr_assert_eq(vpmu_client_ping(client, &answer, &error), -1);
    peer_hear(&peer);
    assert_gone(VPMU_CLIENT_LOST);
}

Test(client, half_an_answer_is_none)
{
    struct vpmu_wire_header request = {.type = VPMU_WIRE_ACQUIRE, .serial = 2};
    struct vpmu_wire_message reply;

    vpmu_wire_reply(&reply, &request, &grant);
    peer_say_part(&peer, &reply, vpmu_wire_size(&reply) - 1);
    shutdown(peer.fd, SHUT_WR);
    cr_assert_eq(vpmu_client_acquire(client, &claim, VPMU_POLICY_REFUSE, &answer, &error), -1);
    peer_hear(&peer);
    cr_expect_eq(vpmu_client_lease(client), VPMU_LEASE_NONE);
    assert_gone(VPMU_CLIENT_LOST);
}

Test(client, who_writes_to_a_dead_peer_gets_no_signal)
{
    close(peer.fd);
    cr_assert_eq(vpmu_client_ping(client, NULL, &error), -1);
    cr_expect_eq(error.status, VPMU_CLIENT_LOST);
    cr_expect_eq(error.system_error, EPIPE);
    peer_open(&peer);
}

Test(client, an_end_of_the_connection_does_not_forget_the_next_one)
{
    cr_assert_eq(vpmu_client_ping(client, NULL, &error), 0);
    shutdown(peer.fd, SHUT_WR);
    cr_assert_eq(vpmu_client_dispatch(client, &error), -1);
    close(peer.fd);
    peer_open(&peer);
    peer_welcome(&peer, 3);
    cr_assert_eq(vpmu_client_attach(client, &vpmu_transport_socket, peer.far, peer.far, &error), 0);
    cr_expect_eq(vpmu_client_ping(client, NULL, &error), 0, "none is pending there");
    cr_expect_str_eq(heard.order, "", "and the old one gets no answer");
}

Test(client, who_is_not_welcome_is_not_connected)
{
    close(peer.fd);
    peer_open(&peer);
    peer_refuse(&peer, VPMU_WIRE_HELLO, 2, VPMU_WIRE_DENIED, VPMU_REASON_NONE, "uid 7 may not");
    cr_assert_eq(vpmu_client_attach(client, &vpmu_transport_socket, peer.far, peer.far, &error),
                 -1);
    cr_expect_str_eq(error.text, "uid 7 may not");
    peer_hear(&peer);
    assert_gone(VPMU_WIRE_DENIED);
}

/* What nobody asked, or what makes no sense: each is said in place of the answer to PING. */
static struct vpmu_wire_message nonsense(unsigned which)
{
    struct vpmu_wire_header ping = {.type = VPMU_WIRE_PING, .serial = 2};
    struct vpmu_wire_header status = {.type = VPMU_WIRE_STATUS, .serial = 2};
    struct vpmu_wire_notice notice = {.state = VPMU_LEASE_STATES};
    struct vpmu_wire_info info = {.lease = 1};
    struct vpmu_wire_message message;

    vpmu_wire_reply(&message, &ping, NULL);
    switch (which) {
    case 0: /* another serial */
        message.header.serial = 3;
        break;
    case 1: /* an answer to what is not pending */
        vpmu_wire_reply_info(&message, &status, &info, NULL);
        break;
    case 2: /* no such type */
        message.header.type = VPMU_WIRE_TYPES;
        break;
    case 3: /* a type far beyond any table */
        message.header.type = UINT32_MAX;
        break;
    case 4: /* a body that this answer does not have */
        message.header.size = 8;
        memset(message.body, 0, 8);
        break;
    case 5: /* a request */
        message.header.flags = VPMU_WIRE_VERSION;
        break;
    case 6: /* another version */
        message.header.flags ^= VPMU_WIRE_FLAG_VERSION;
        break;
    case 7: /* longer than anything */
        message.header.size = VPMU_WIRE_BODY_MAX + 8;
        break;
    case 8: /* a notice of a state that does not exist */
        vpmu_wire_notify(&message, &notice);
        break;
    case 9: /* an error that is none */
        vpmu_wire_refuse(&message, &ping, VPMU_STATUS_SUCCESS, VPMU_REASON_NONE, "x");
        break;
    case 10: /* an error whose text would reach a terminal */
        vpmu_wire_refuse(&message, &ping, VPMU_WIRE_DENIED, VPMU_REASON_NONE, "x");
        message.error.text[0] = '\x1b';
        break;
    default: /* the answer to a request without a serial */
        message.header.serial = 0;
        message.header.type = VPMU_WIRE_RELEASE;
        break;
    }
    return message;
}

Test(client, a_peer_that_talks_nonsense_is_left)
{
    for (unsigned which = 0; which < 12; which++) {
        struct vpmu_wire_message message = nonsense(which);

        if (which)
            connect_client();
        peer_say_part(&peer, &message,
                      message.header.size > VPMU_WIRE_BODY_MAX ? sizeof(message.header)
                                                               : vpmu_wire_size(&message));
        cr_assert_eq(vpmu_client_ping(client, &answer, &error), -1, "nonsense %u", which);
        peer_hear(&peer);
        assert_gone(VPMU_CLIENT_PROTOCOL);
        if (which < 11)
            end_client();
    }
}

Test(client, descriptors_are_not_taken)
{
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    *header = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &peer.fd, sizeof(int));
    cr_assert_eq((int)sendmsg(peer.fd, &message, 0), 1);
    cr_assert_eq(vpmu_client_dispatch(client, &error), -1);
    assert_gone(VPMU_CLIENT_PROTOCOL);
}

/* ---- Slow ends ------------------------------------------------------------------------------- */

static unsigned turns;

/* Every third time a byte, else a signal or nothing. */
static bool is_interrupted(void)
{
    turns++;
    errno = turns % 3 == 1 ? EINTR : EAGAIN;
    return turns % 3 != 0;
}

static ssize_t receive_slowly(int fd, void *data, size_t size)
{
    return is_interrupted() ? -1 : vpmu_transport_socket.receive(fd, data, size ? 1 : 0);
}

static ssize_t send_slowly(int fd, const void *data, size_t size)
{
    return is_interrupted() ? -1 : vpmu_transport_socket.send(fd, data, size ? 1 : 0);
}

Test(client, bytes_one_by_one_make_the_same_messages)
{
    static const struct vpmu_transport slow = {"slow", receive_slowly, send_slowly};

    close(peer.fd);
    peer_open(&peer);
    peer_welcome(&peer, 2);
    peer_notify(&peer, 5, VPMU_LEASE_SHORT);
    peer_answer(&peer, VPMU_WIRE_ACQUIRE, 3, &grant);
    cr_assert_eq(vpmu_client_attach(client, &slow, peer.far, peer.far, &error), 0, "%s",
                 error.text);
    cr_assert_eq(vpmu_client_acquire(client, &claim, VPMU_POLICY_REFUSE, &answer, &error), 0);
    cr_expect_str_eq(heard.order, "n");
    cr_expect_str_eq(answer.grant.text, "perf");
}

static struct vpmu_wire_message same_notice;
static size_t same_at;

/* After the welcome, one notice after the other, without an end. */
static ssize_t receive_endlessly(int fd, void *data, size_t size)
{
    ssize_t got = vpmu_transport_socket.receive(fd, data, size);
    size_t whole = vpmu_wire_size(&same_notice), part = whole - same_at;

    if (got > 0)
        return got;
    part = part < size ? part : size;
    memcpy(data, (const uint8_t *)&same_notice + same_at, part);
    same_at = (same_at + part) % whole;
    return (ssize_t)part;
}

Test(client, who_only_talks_does_not_answer_in_time)
{
    const struct vpmu_transport endless = {"endless", receive_endlessly,
                                           vpmu_transport_socket.send};
    const struct vpmu_client_options options = {
        .kind = VPMU_KIND_VM, .name = "a VM", .timeout_ms = 500};

    end_client();
    vpmu_wire_notify(&same_notice, &(struct vpmu_wire_notice){.lease = 5});
    client = vpmu_client_new(&options, &error);
    peer_open(&peer);
    peer_welcome(&peer, 1);
    cr_assert_eq(vpmu_client_attach(client, &endless, peer.far, peer.far, &error), 0, "%s",
                 error.text);
    cr_assert_eq(vpmu_client_ping(client, &answer, &error), -1);
    cr_expect_eq(error.status, VPMU_CLIENT_TIMEOUT, "%s", error.text);
    cr_expect_eq(vpmu_client_fd(client), -1);
}

Test(client, what_does_not_fit_is_sent_later)
{
    const struct vpmu_wire_report report = {.lease = 77, .counters = VPMU_STATUS_COUNTERS};
    const struct vpmu_status_counter counters[VPMU_STATUS_COUNTERS] = {{0}};
    char filling[4096] = {0};
    int fd = vpmu_client_fd(client), flags = fcntl(fd, F_GETFL);
    size_t filled = 0;
    ssize_t sent;

    cr_assert(flags & O_NONBLOCK);
    while ((sent = send(fd, filling, sizeof(filling), 0)) > 0)
        filled += (size_t)sent;
    cr_assert_eq(vpmu_client_report(client, &report, counters, NULL, &error), 0);
    cr_assert_eq(vpmu_client_ping(client, NULL, &error), 0);
    while (filled) {
        ssize_t got =
            recv(peer.fd, filling, filled < sizeof(filling) ? filled : sizeof(filling), 0);

        cr_assert_gt((int)got, 0);
        filled -= (size_t)got;
    }
    cr_assert_eq(vpmu_client_dispatch(client, &error), 0);
    cr_expect_eq(peer_hear(&peer).report.counters, VPMU_STATUS_COUNTERS);
    cr_expect_eq(peer_hear(&peer).header.type, VPMU_WIRE_PING);
}

/* ---- What cannot be said --------------------------------------------------------------------- */

Test(client, what_cannot_be_said_is_not_sent)
{
    const struct vpmu_wire_report report = {.counters = VPMU_STATUS_COUNTERS + 1};
    struct vpmu_claim bad[] = {claim, claim, claim};

    bad[0].words = VPMU_WIRE_WORDS_MAX + 1;
    bad[1].words = 0;
    bad[2].processors = NULL;
    for (unsigned i = 0; i < 3; i++) {
        cr_expect_eq(vpmu_client_acquire(client, &bad[i], VPMU_POLICY_REFUSE, NULL, &error), -1);
        cr_expect_eq(error.status, VPMU_CLIENT_ARGUMENT);
    }
    cr_expect_eq(vpmu_client_report(client, &report, NULL, NULL, &error), -1);
    cr_expect_eq(error.status, VPMU_CLIENT_ARGUMENT);
    cr_assert_eq(vpmu_client_ping(client, NULL, &error), 0);
    cr_expect_eq(peer_hear(&peer).header.type, VPMU_WIRE_PING, "the connection is sound");
}
