// SPDX-License-Identifier: BSD-3-Clause
/*
 * A client whose daemon says anything: the input. Whatever it is, the client asks
 * only what a daemon takes, what it hands out is sound, and after a failure of the stream it is not
 * connected.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "vpmu/client.h"

static const uint8_t *said;
static size_t left;
static struct vpmu_wire_reader asked;
static struct vpmu_wire_session session;

static void must(bool good)
{
    if (!good)
        abort();
}

/* In pieces whose size the input chooses; its end is the connection's. */
static ssize_t receive(int fd, void *data, size_t size)
{
    size_t part = left && said[0] & 1 && size > 3 ? 3 : size;

    (void)fd;
    if (part > left)
        part = left;
    if (part)
        memcpy(data, said, part);
    said += part;
    left -= part;
    return (ssize_t)part;
}

static ssize_t check_sent(int fd, const void *data, size_t size)
{
    const uint8_t *at = data;
    enum vpmu_wire_progress progress;
    size_t rest = size;

    (void)fd;
    while ((progress = vpmu_wire_read(&asked, &at, &rest)) == VPMU_WIRE_MESSAGE) {
        char text[VPMU_WIRE_TEXT];

        must(vpmu_wire_check_request(&asked.message, &session, text) == VPMU_STATUS_SUCCESS);
        if (asked.message.header.type == VPMU_WIRE_HELLO)
            session = (struct vpmu_wire_session){.ready = true, .kind = asked.message.hello.kind};
    }
    must(progress == VPMU_WIRE_MORE);
    return (ssize_t)size;
}

static void check_error(const struct vpmu_client *client, const struct vpmu_client_error *error)
{
    must(error->text[0] && vpmu_wire_text_valid(error->text, sizeof(error->text)));
    must(error->status != VPMU_STATUS_SUCCESS && error->reason < VPMU_REASONS);
    if (error->status == VPMU_CLIENT_LOST || error->status == VPMU_CLIENT_PROTOCOL)
        must(vpmu_client_fd(client) < 0);
}

static void on_notice(void *user, const struct vpmu_wire_notice *notice)
{
    struct vpmu_client **client = user;
    struct vpmu_client_error error;

    must(notice->state < VPMU_LEASE_STATES);
    must(vpmu_wire_text_valid(notice->text, sizeof(notice->text)));
    if (vpmu_client_resize(*client, notice->lease, notice->granted, NULL, &error))
        check_error(*client, &error);
}

static void on_answered(void *user, uint32_t type, const struct vpmu_client_answer *answer,
                        const struct vpmu_client_error *error)
{
    must(!answer != !error && vpmu_wire_row(type) != NULL);
    if (error)
        must(vpmu_wire_text_valid(error->text, sizeof(error->text)));
    (void)user;
}

/* Everything once, some of it without waiting. */
static void talk(struct vpmu_client *client)
{
    const struct vpmu_claim claim = {.binding = VPMU_BOUND_VCPU, .need = {.gp = 4}};
    struct vpmu_client_answer answer;
    struct vpmu_client_error error;

    if (vpmu_client_renew(client, &claim, VPMU_POLICY_REDUCE, NULL, &error) ||
        vpmu_client_subscribe(client, 15, NULL, &error))
        check_error(client, &error);
    if (vpmu_client_acquire(client, &claim, VPMU_POLICY_REDUCE, &answer, &error))
        check_error(client, &error);
    else
        must(answer.grant.lease == vpmu_client_lease(client));
    if (vpmu_client_status(client, VPMU_LEASE_NONE, &answer, &error))
        check_error(client, &error);
    else
        must(answer.words <= VPMU_WIRE_WORDS_MAX && answer.info.words == answer.words);
    if (vpmu_client_release(client, vpmu_client_lease(client), &answer, &error))
        check_error(client, &error);
    must(vpmu_client_dispatch(client, &error) < 0);
    check_error(client, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct vpmu_transport transport = {"input", receive, check_sent};
    static struct vpmu_client *client;
    const struct vpmu_client_options options = {.kind = VPMU_KIND_VM,
                                                .name = "fuzz",
                                                .notice = on_notice,
                                                .answered = on_answered,
                                                .user = &client};
    struct vpmu_client_error error;
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    said = data;
    left = size;
    memset(&asked, 0, sizeof(asked));
    session = (struct vpmu_wire_session){.ready = false};
    client = vpmu_client_new(&options, &error);
    must(client != NULL);
    if (vpmu_client_attach(client, &transport, fd, fd, &error))
        check_error(client, &error);
    else
        talk(client);
    vpmu_client_free(client);
    return 0;
}
