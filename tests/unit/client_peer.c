// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/client_peer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void peer_open(struct peer *peer)
{
    int ends[2];

    cr_assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    *peer = (struct peer){.fd = ends[0], .far = ends[1]};
}

void peer_say_part(struct peer *peer, const struct vpmu_wire_message *message, size_t size)
{
    cr_assert_eq((size_t)write(peer->fd, message, size), size);
}

void peer_say(struct peer *peer, const struct vpmu_wire_message *message)
{
    peer_say_part(peer, message, vpmu_wire_size(message));
}

void peer_answer(struct peer *peer, uint32_t type, uint32_t serial, const void *body)
{
    struct vpmu_wire_header request = {.type = type, .serial = serial};
    struct vpmu_wire_message message;

    vpmu_wire_reply(&message, &request, body);
    peer_say(peer, &message);
}

void peer_refuse(struct peer *peer, uint32_t type, uint32_t serial, vpmu_status status,
                 enum vpmu_reason reason, const char *text)
{
    struct vpmu_wire_header request = {.type = type, .serial = serial};
    struct vpmu_wire_message message;

    vpmu_wire_refuse(&message, &request, status, reason, text);
    peer_say(peer, &message);
}

void peer_notify(struct peer *peer, vpmu_lease lease, enum vpmu_lease_state state)
{
    struct vpmu_wire_notice notice = {
        .lease = lease, .state = state, .processor = VPMU_NOT_SET, .text = "it is so"};
    struct vpmu_wire_message message;

    vpmu_wire_notify(&message, &notice);
    peer_say(peer, &message);
}

struct vpmu_wire_message peer_hear(struct peer *peer)
{
    struct vpmu_wire_message message;
    char text[VPMU_WIRE_TEXT];

    cr_assert_eq((size_t)recv(peer->fd, &message.header, sizeof(message.header), MSG_WAITALL),
                 sizeof(message.header));
    cr_assert_leq(message.header.size, VPMU_WIRE_BODY_MAX);
    if (message.header.size)
        cr_assert_eq((size_t)recv(peer->fd, message.body, message.header.size, MSG_WAITALL),
                     message.header.size);
    cr_assert_eq(vpmu_wire_check_request(&message, &peer->session, text), VPMU_STATUS_SUCCESS, "%s",
                 text);
    if (message.header.type == VPMU_WIRE_HELLO)
        peer->session = (struct vpmu_wire_session){.ready = true, .kind = message.hello.kind};
    return message;
}

bool peer_is_alone(struct peer *peer)
{
    char byte;
    ssize_t got = recv(peer->fd, &byte, 1, MSG_DONTWAIT);

    return !got || (got < 0 && errno == ECONNRESET);
}

void peer_welcome(struct peer *peer, uint32_t serial)
{
    struct vpmu_wire_welcome welcome = {
        .version = 1, .processors = 8, .grace_ms = 1000, .instance = INSTANCE, .notice_ms = 500};

    peer_answer(peer, VPMU_WIRE_HELLO, serial, &welcome);
}

/* ---- Handlers -------------------------------------------------------------------------------- */

static void note(struct heard *heard, char what)
{
    size_t length = strlen(heard->order);

    cr_assert_lt(length + 1, sizeof(heard->order));
    heard->order[length] = what;
}

static void on_notice(void *user, const struct vpmu_wire_notice *notice)
{
    struct heard *heard = user;

    note(heard, 'n');
    heard->notice = *notice;
    if (heard->in_notice)
        heard->in_notice(heard);
}

static void on_answered(void *user, uint32_t type, const struct vpmu_client_answer *answer,
                        const struct vpmu_client_error *error)
{
    struct heard *heard = user;

    cr_assert_neq(!answer, !error);
    note(heard, answer ? 'a' : 'e');
    heard->type = type;
    if (answer)
        heard->answer = *answer;
    else
        heard->error = *error;
}

struct vpmu_client *new_client(struct heard *heard, uint32_t timeout_ms)
{
    static const uint8_t uuid[VPMU_WIRE_UUID] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct vpmu_client_options options = {
        .kind = VPMU_KIND_VM,
        .name = "a VM",
        .uuid = uuid,
        .timeout_ms = timeout_ms,
        .notice = on_notice,
        .answered = on_answered,
        .user = heard,
    };
    struct vpmu_client_error error = {0};
    struct vpmu_client *client = vpmu_client_new(&options, &error);

    cr_assert(client, "%s", error.text);
    heard->client = client;
    return client;
}

struct vpmu_client *connected_client(struct peer *peer, struct heard *heard)
{
    struct vpmu_client *client = new_client(heard, 0);
    struct vpmu_client_error error = {0};

    peer_open(peer);
    peer_welcome(peer, 1);
    cr_assert_eq(vpmu_client_attach(client, &vpmu_transport_socket, peer->far, peer->far, &error),
                 0, "%s", error.text);
    peer_hear(peer);
    return client;
}
