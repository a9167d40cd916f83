// SPDX-License-Identifier: BSD-3-Clause
/* Making clients, and connecting them to a path. */
#include "tests/unit/client_peer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char folder[64];
static int listener;
static struct heard heard;
static struct vpmu_client_error error;

static void listen_there(void)
{
    snprintf(folder, sizeof(folder), "%s/vpmu-client-XXXXXX", P_tmpdir);
    cr_assert(mkdtemp(folder));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert(!bind(listener, (struct sockaddr *)&address, sizeof(address)));
    cr_assert(!listen(listener, 4));
}

static void leave(void)
{
    close(listener);
    unlink(address.sun_path);
    rmdir(folder);
}

TestSuite(client_connect, .init = listen_there, .fini = leave, .timeout = 60);

static void on_answered(void *user, uint32_t type, const struct vpmu_client_answer *answer,
                        const struct vpmu_client_error *why)
{
    (void)user;
    heard.type = type;
    heard.result = answer ? 1 : -1;
    if (why)
        heard.error = *why;
}

static struct vpmu_client_options options(void)
{
    return (struct vpmu_client_options){.path = address.sun_path,
                                        .kind = VPMU_KIND_PROFILER,
                                        .name = "perf",
                                        .answered = on_answered};
}

Test(client_connect, a_client_copies_what_it_is_made_of)
{
    struct vpmu_client_options from = options();
    char path[sizeof(address.sun_path)], name[] = "perf";
    struct peer peer = {0};
    struct vpmu_client *client;

    memcpy(path, address.sun_path, sizeof(path));
    from.path = path;
    from.name = name;
    client = vpmu_client_new(&from, &error);
    cr_assert(client);
    memset(path, 'x', sizeof(path) - 1);
    memset(name, 'x', sizeof(name) - 1);

    cr_assert_eq(vpmu_client_connect_start(client, &error), 0, "%s", error.text);
    peer.fd = accept(listener, NULL, NULL);
    cr_expect_str_eq(peer_hear(&peer).hello.name, "perf");
    cr_expect(!vpmu_client_welcome(client));
    cr_expect_eq(vpmu_client_ping(client, NULL, &error), -1);
    cr_expect_eq(error.status, VPMU_WIRE_NOT_NOW);

    peer_welcome(&peer, 1);
    cr_assert_eq(vpmu_client_dispatch(client, &error), 0);
    cr_expect_eq(heard.type, VPMU_WIRE_HELLO);
    cr_expect_eq(heard.result, 1);
    cr_expect(vpmu_client_welcome(client));
    vpmu_client_free(client);
    cr_expect(peer_is_alone(&peer));
}

Test(client_connect, a_refusal_that_nobody_waited_for)
{
    struct vpmu_client_options from = options();
    struct vpmu_client *client = vpmu_client_new(&from, &error);
    struct peer peer = {0};

    cr_assert_eq(vpmu_client_connect_start(client, &error), 0);
    peer.fd = accept(listener, NULL, NULL);
    peer_hear(&peer);
    peer_refuse(&peer, VPMU_WIRE_HELLO, 1, VPMU_WIRE_TOO_MANY, VPMU_REASON_NONE, "full");
    cr_expect_eq(vpmu_client_dispatch(client, &error), -1);
    cr_expect_eq(error.status, VPMU_WIRE_TOO_MANY);
    cr_expect_eq(heard.result, -1);
    cr_expect_str_eq(heard.error.text, "full");
    cr_expect_eq(vpmu_client_fd(client), -1);
    cr_expect(peer_is_alone(&peer));
    vpmu_client_free(client);
}

Test(client_connect, where_nobody_listens_is_unreachable)
{
    struct vpmu_client_options from = options();
    struct vpmu_client *client = vpmu_client_new(&from, &error);

    close(listener);
    cr_expect_eq(vpmu_client_connect(client, &error), -1);
    cr_expect_eq(error.status, VPMU_CLIENT_UNREACHABLE);
    cr_expect_eq(error.system_error, ECONNREFUSED);
    cr_expect(strstr(error.text, address.sun_path));
    unlink(address.sun_path);
    cr_expect_eq(vpmu_client_connect(client, &error), -1);
    cr_expect_eq(error.system_error, ENOENT);
    cr_expect_eq(vpmu_client_dispatch(client, &error), -1);
    cr_expect_eq(error.status, VPMU_CLIENT_LOST);
    vpmu_client_free(client);
}

Test(client_connect, what_is_no_client)
{
    struct vpmu_client_options bad[] = {options(), options(), options(), options()};
    char path[sizeof(address.sun_path) + 1] = {0};

    memset(path, 'x', sizeof(path) - 1);
    bad[0].name = NULL;
    bad[1].name = "";
    bad[2].kind = VPMU_KINDS;
    bad[3].path = path;
    for (unsigned i = 0; i < 4; i++) {
        cr_expect(!vpmu_client_new(&bad[i], &error));
        cr_expect_eq(error.status, VPMU_CLIENT_ARGUMENT);
    }
    vpmu_client_free(NULL);
}

Test(client_connect, descriptors_of_no_use)
{
    struct vpmu_client_options from = options();
    struct vpmu_client *client = vpmu_client_new(&from, &error);

    cr_expect_eq(vpmu_client_attach(client, &vpmu_transport_socket, -1, -1, &error), -1);
    cr_expect_eq(error.status, VPMU_CLIENT_UNREACHABLE);
    cr_expect_eq(error.system_error, EBADF);
    vpmu_client_free(client);
}
