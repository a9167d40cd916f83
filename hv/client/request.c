// SPDX-License-Identifier: BSD-3-Clause
/* What can be asked: a body for each request. */
#include <string.h>

#include "client_internal.h"

/* Whether the set of a claim can be said. */
static int check_set(const struct vpmu_claim *claim, struct vpmu_client_error *error)
{
    if (claim->words > VPMU_WIRE_WORDS_MAX || !claim->words != !claim->processors)
        return client_error(error, VPMU_CLIENT_ARGUMENT, 0,
                            "a set of processors has 1 to %u words, or there is none",
                            VPMU_WIRE_WORDS_MAX);
    return 0;
}

/* A request that ends with a claim, which is in body; then comes its set. */
static int ask_with_claim(struct vpmu_client *client, uint32_t type, const void *body,
                          const struct vpmu_claim *claim, struct vpmu_client_answer *answer,
                          struct vpmu_client_error *error)
{
    return client_ask(client, type, body, claim->processors,
                      claim->words * (uint32_t)sizeof(claim->processors[0]), answer, error);
}

int vpmu_client_acquire(struct vpmu_client *client, const struct vpmu_claim *claim,
                        enum vpmu_shortage_policy policy, struct vpmu_client_answer *answer,
                        struct vpmu_client_error *error)
{
    struct vpmu_wire_acquire acquire;

    if (check_set(claim, error))
        return -1;
    vpmu_wire_claim_write(&acquire.claim, claim, policy);
    return ask_with_claim(client, VPMU_WIRE_ACQUIRE, &acquire, claim, answer, error);
}

int vpmu_client_renew(struct vpmu_client *client, const struct vpmu_claim *claim,
                      enum vpmu_shortage_policy policy, struct vpmu_client_answer *answer,
                      struct vpmu_client_error *error)
{
    struct vpmu_wire_renew renew = {.instance = client->instance, .lease = client->lease};

    if (check_set(claim, error))
        return -1;
    vpmu_wire_claim_write(&renew.claim, claim, policy);
    return ask_with_claim(client, VPMU_WIRE_RENEW, &renew, claim, answer, error);
}

int vpmu_client_reserve(struct vpmu_client *client, const uint8_t uuid[VPMU_WIRE_UUID],
                        const struct vpmu_claim *claim, enum vpmu_shortage_policy policy,
                        uint32_t timeout_s, struct vpmu_client_answer *answer,
                        struct vpmu_client_error *error)
{
    struct vpmu_wire_reserve reserve = {.timeout_s = timeout_s};

    if (check_set(claim, error))
        return -1;
    memcpy(reserve.uuid, uuid, sizeof(reserve.uuid));
    vpmu_wire_text(reserve.name, sizeof(reserve.name), claim->name ? claim->name : "");
    vpmu_wire_claim_write(&reserve.claim, claim, policy);
    return ask_with_claim(client, VPMU_WIRE_RESERVE, &reserve, claim, answer, error);
}

int vpmu_client_unreserve(struct vpmu_client *client, const uint8_t uuid[VPMU_WIRE_UUID],
                          struct vpmu_client_answer *answer, struct vpmu_client_error *error)
{
    return client_ask(client, VPMU_WIRE_UNRESERVE, uuid, NULL, 0, answer, error);
}

int vpmu_client_release(struct vpmu_client *client, vpmu_lease lease,
                        struct vpmu_client_answer *answer, struct vpmu_client_error *error)
{
    struct vpmu_wire_lease body = {.lease = lease};

    if (!client->pending[VPMU_WIRE_RELEASE])
        client->releasing = lease;
    return client_ask(client, VPMU_WIRE_RELEASE, &body, NULL, 0, answer, error);
}

int vpmu_client_resize(struct vpmu_client *client, vpmu_lease lease, struct vpmu_amount need,
                       struct vpmu_client_answer *answer, struct vpmu_client_error *error)
{
    struct vpmu_wire_resize body = {.lease = lease, .need = need};

    return client_ask(client, VPMU_WIRE_RESIZE, &body, NULL, 0, answer, error);
}

int vpmu_client_subscribe(struct vpmu_client *client, uint32_t states,
                          struct vpmu_client_answer *answer, struct vpmu_client_error *error)
{
    struct vpmu_wire_subscribe body = {.states = states};

    return client_ask(client, VPMU_WIRE_SUBSCRIBE, &body, NULL, 0, answer, error);
}

int vpmu_client_report(struct vpmu_client *client, const struct vpmu_wire_report *report,
                       const struct vpmu_status_counter *counters,
                       struct vpmu_client_answer *answer, struct vpmu_client_error *error)
{
    if (report->counters > VPMU_STATUS_COUNTERS)
        return client_error(error, VPMU_CLIENT_ARGUMENT, 0, "a report has at most %u counters",
                            VPMU_STATUS_COUNTERS);
    return client_ask(client, VPMU_WIRE_REPORT, report, counters,
                      report->counters * (uint32_t)sizeof(*counters), answer, error);
}

int vpmu_client_status(struct vpmu_client *client, vpmu_lease lease,
                       struct vpmu_client_answer *answer, struct vpmu_client_error *error)
{
    struct vpmu_wire_lease body = {.lease = lease};

    return client_ask(client, VPMU_WIRE_STATUS, &body, NULL, 0, answer, error);
}

int vpmu_client_ping(struct vpmu_client *client, struct vpmu_client_answer *answer,
                     struct vpmu_client_error *error)
{
    return client_ask(client, VPMU_WIRE_PING, NULL, NULL, 0, answer, error);
}
