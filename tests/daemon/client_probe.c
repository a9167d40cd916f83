// SPDX-License-Identifier: BSD-3-Clause
/*
 * client-probe SOCKET: a VM that has counters through hv/client, and goes through all that may
 * become of them. Says each step in a line; ends in good order with its standard input.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vpmu/client.h"

static struct vpmu_client *client;
static struct vpmu_client_error error;
static const struct vpmu_claim claim = {
    .binding = VPMU_BOUND_VCPU, .flags = VPMU_CLAIM_YIELDS, .need = {.gp = 6}, .least = {.gp = 6}};

static void must(const char *what, int result)
{
    if (!result)
        return;
    printf("%s failed: %s (%s)\n", what, error.text, vpmu_wire_status_name(error.status));
    exit(1);
}

/* It yields: gives back all but two. */
static void on_notice(void *user, const struct vpmu_wire_notice *notice)
{
    (void)user;
    printf("notice %s\n", vpmu_lease_state_name(notice->state));
    if (notice->state == VPMU_LEASE_YIELDING)
        must("resize", vpmu_client_resize(client, notice->lease, (struct vpmu_amount){.gp = 2},
                                          NULL, &error));
}

static void on_answered(void *user, uint32_t type, const struct vpmu_client_answer *answer,
                        const struct vpmu_client_error *why)
{
    (void)user;
    if (answer)
        printf("answered %s gp %u\n", vpmu_wire_row(type)->name, answer->grant.granted.gp);
    else
        printf("refused %s: %s\n", vpmu_wire_row(type)->name, why->text);
}

static void subscribe(void)
{
    struct vpmu_client_answer answer;

    must("subscribe",
         vpmu_client_subscribe(client, (1u << VPMU_LEASE_STATES) - 1, &answer, &error));
}

/* Until the daemon is there again. */
static void come_back(void)
{
    struct vpmu_client_answer answer;

    printf("%s\n", error.status == VPMU_CLIENT_LOST ? "lost" : error.text);
    while (vpmu_client_connect(client, &error))
        poll(NULL, 0, 20);
    must("renew", vpmu_client_renew(client, &claim, VPMU_POLICY_REFUSE, &answer, &error));
    printf("renewed gp %u\n", answer.grant.granted.gp);
    subscribe();
}

int main(int count, char **arguments)
{
    static const uint8_t uuid[VPMU_WIRE_UUID] = {1, 2, 3};
    const struct vpmu_client_options options = {.path = count > 1 ? arguments[1] : NULL,
                                                .kind = VPMU_KIND_VM,
                                                .name = "probe",
                                                .uuid = uuid,
                                                .notice = on_notice,
                                                .answered = on_answered};
    struct vpmu_client_answer answer;

    setvbuf(stdout, NULL, _IOLBF, 0);
    client = vpmu_client_new(&options, &error);
    must("new", !client);
    must("connect", vpmu_client_connect(client, &error));
    must("ping", vpmu_client_ping(client, &answer, &error));
    must("acquire", vpmu_client_acquire(client, &claim, VPMU_POLICY_REFUSE, &answer, &error));
    printf("acquired gp %u of %u processors\n", answer.grant.granted.gp,
           vpmu_client_welcome(client)->processors);
    subscribe();
    must("status", vpmu_client_status(client, VPMU_LEASE_NONE, &answer, &error));
    printf("status %s of %s\n", vpmu_lease_state_name(answer.info.state), answer.info.name);
    for (;;) {
        struct pollfd ends[] = {{.fd = vpmu_client_fd(client), .events = POLLIN},
                                {.fd = STDIN_FILENO, .events = POLLIN}};

        poll(ends, 2, -1);
        if (ends[1].revents)
            break;
        if (ends[0].revents && vpmu_client_dispatch(client, &error))
            come_back();
    }
    must("release", vpmu_client_release(client, vpmu_client_lease(client), &answer, &error));
    printf("released\n");
    vpmu_client_free(client);
    return 0;
}
