// SPDX-License-Identifier: BSD-3-Clause
#include "hv/libvirt/ask.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static struct vpmu_client *connect_to(const struct pmu *pmu, const struct domain *domain,
                                      struct vpmu_client_error *error)
{
    const struct vpmu_client_options options = {
        .path = pmu->socket, .kind = VPMU_KIND_HOOK, .name = domain->name};
    struct vpmu_client *client = vpmu_client_new(&options, error);

    if (client && vpmu_client_connect(client, error)) {
        vpmu_client_free(client);
        client = NULL;
    }
    return client;
}

int ask_reserve(const struct pmu *pmu, const struct domain *domain, unsigned timeout_s,
                struct vpmu_client_answer *answer, struct vpmu_client_error *error)
{
    const struct vpmu_claim claim = pmu_to_claim(pmu, domain->name);
    struct vpmu_client *client = connect_to(pmu, domain, error);

    if (!client)
        return -1;
    const int status =
        vpmu_client_reserve(client, domain->uuid, &claim, (enum vpmu_shortage_policy)pmu->policy,
                            timeout_s, answer, error);

    vpmu_client_free(client);
    return status;
}

int ask_unreserve(const struct pmu *pmu, const struct domain *domain,
                  struct vpmu_client_error *error)
{
    struct vpmu_client *client = connect_to(pmu, domain, error);
    struct vpmu_client_answer answer;

    if (!client)
        return -1;
    const int status = vpmu_client_unreserve(client, domain->uuid, &answer, error);

    vpmu_client_free(client);
    return status;
}

/* ---- What a person is told ---- */

/* What the daemon cannot be asked, by status. */
static const struct {
    vpmu_status status;
    const char *advice;
} unasked[] = {
    {VPMU_CLIENT_UNREACHABLE, "systemctl start vpmud, then start the domain again"},
    {VPMU_CLIENT_LOST, "see vpmud's log (journalctl -u vpmud), then start the domain again"},
    {VPMU_CLIENT_TIMEOUT, "see vpmud's log (journalctl -u vpmud), then start the domain again"},
    {VPMU_CLIENT_PROTOCOL, "something else than vpmud listens there: see the domain's socket"},
    {VPMU_WIRE_VERSION_RANGE, "install vpmud and vpmu-libvirt-hook of one version"},
    {VPMU_WIRE_DENIED, "let libvirt's user reserve: a policy with \"may = hook\" in vpmud.conf"},
    {VPMU_WIRE_TOO_MANY, "raise connections in vpmud.conf, or wait"},
};

/* Where vpmud has judged, by reason. */
static const char *const advice[VPMU_REASONS] = {
    [VPMU_REASON_ABSENT] = "ask for what a processor has: vpmuctl domain enable --counters",
    [VPMU_REASON_TAKEN] = "end who holds them (vpmuctl leases), or ask for fewer (--counters)",
    [VPMU_REASON_GUEST_EVENTS] = "end what counts guests on this host (vpmuctl leases)",
    [VPMU_REASON_NO_PROCESSOR] = "see vpmuctl doctor: no processor of the domain's is online",
    [VPMU_REASON_NO_ROOM] = "raise leases in vpmud.conf",
};

static const char *advice_of(const struct vpmu_client_error *error)
{
    for (size_t i = 0; i < ROWS(unasked); i++)
        if (error->status == unasked[i].status)
            return unasked[i].advice;
    if (error->reason < VPMU_REASONS && advice[error->reason])
        return advice[error->reason];
    return "see what bars it: vpmuctl doctor";
}

bool ask_was_judged(const struct vpmu_client_error *error)
{
    for (size_t i = 0; i < ROWS(unasked); i++)
        if (error->status == unasked[i].status)
            return false;
    return true;
}

void ask_explain(FILE *to, const struct pmu *pmu, const struct domain *domain,
                 const struct vpmu_client_error *error)
{
    char asked[80];

    pmu_describe(pmu, asked, sizeof(asked));
    fprintf(to,
            "vpmu: the domain %s does not get its counters\n"
            "  asked:   %s, policy %s\n"
            "  answer:  %s\n"
            "  to do:   %s\n",
            domain->name, asked, pmu_policy_name(pmu->policy), error->text, advice_of(error));
}
