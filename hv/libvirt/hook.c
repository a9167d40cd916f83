// SPDX-License-Identifier: BSD-3-Clause
/*
 * vpmu-libvirt-hook: libvirt's hook for QEMU domains (https://libvirt.org/hooks.html).
 *
 *   vpmu-libvirt-hook NAME OPERATION SUB-OPERATION EXTRA < DOMAIN.xml
 *
 * Theory of operation. Before a domain starts its counters are reserved under its UUID; its QEMU
 * says that UUID to vpmud and gets what was reserved. What fails here keeps the domain from
 * starting, and the user sees all of stderr. When the domain has ended, what is still reserved is
 * freed; a lease that QEMU had has ended with its connection. A domain without our metadata is
 * nobody's business here, whatever else its XML is.
 *
 * It calls no libvirt: libvirtd waits for it with the domain locked. It writes nothing to stdout,
 * which libvirt would take for changed XML on a restore or a migration.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hv/libvirt/ask.h"
#include "vpmu/status.h"

#define START_S 120u    /* vpmud has a limit of its own, reserve_ms */
#define RECONNECT_S 30u /* a running QEMU asks again each second */
#define VETO 1

struct request {
    const struct pmu *pmu;
    const struct domain *domain;
};

/*
 * Hidden: QEMU starts without a PMU. As an ordinary user, in libvirt's session mode, there may be
 * no right to reserve: QEMU asks as the same user, and says what comes of it.
 */
static bool is_for_qemu(const struct pmu *pmu, const struct vpmu_client_error *error)
{
    return pmu->policy == VPMU_POLICY_HIDE || (geteuid() != 0 && !ask_was_judged(error));
}

static int reserve(const struct request *request)
{
    struct vpmu_client_answer answer;
    struct vpmu_client_error error;

    if (!ask_reserve(request->pmu, request->domain, START_S, &answer, &error))
        return 0;
    fputc('\n', stderr); /* behind what libvirt says of us */
    ask_explain(stderr, request->pmu, request->domain, &error);
    return is_for_qemu(request->pmu, &error) ? 0 : VETO;
}

/* libvirt does not listen any more, but its log does. */
static int unreserve(const struct request *request)
{
    struct vpmu_client_error error;

    if (ask_unreserve(request->pmu, request->domain, &error))
        fprintf(stderr, "vpmu: the domain %s: its counters stay reserved for a while: %s\n",
                request->domain->name, error.text);
    return 0;
}

/*
 * libvirtd has started anew, perhaps vpmud too: its room is kept until QEMU has renewed its lease.
 * libvirt kills a running domain whose hook fails now, so this one never does.
 */
static int assert_again(const struct request *request)
{
    struct vpmu_client_answer answer;
    struct vpmu_client_error error;

    if (ask_reserve(request->pmu, request->domain, RECONNECT_S, &answer, &error))
        ask_explain(stderr, request->pmu, request->domain, &error);
    return 0;
}

/* Of an operation that is not here nothing is wanted. */
static const struct operation {
    const char *name;
    int (*run)(const struct request *request);
    int bad; /* exit status where the metadata cannot be understood */
} operations[] = {
    {"migrate", reserve, VETO}, {"restore", reserve, VETO},     {"prepare", reserve, VETO},
    {"release", unreserve, 0},  {"reconnect", assert_again, 0},
};

static const struct operation *find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        if (!strcmp(operations[i].name, name))
            return &operations[i];
    return NULL;
}

/* All of it, also if nothing is wanted of it: libvirt writes it, and should not meet a closed pipe.
 */
static char *read_input(size_t *size)
{
    char *text = malloc(XML_SIZE_MAX + 1);
    char rest[4096];

    if (!text)
        return NULL;
    *size = fread(text, 1, XML_SIZE_MAX + 1, stdin);
    while (fread(rest, 1, sizeof(rest), stdin))
        continue;
    return text;
}

static int complain(const struct operation *operation, const char *name, const char *why)
{
    fprintf(stderr, "vpmu: the domain %s: %s\n", name, why);
    return operation->bad;
}

/* A domain that does not name our namespace is not even parsed. */
static int run(const struct operation *operation, const char *name, const char *text, size_t size)
{
    struct xml_error error;
    struct domain domain;
    struct pmu pmu;
    int status;

    if (!memmem(text, size, PMU_NAMESPACE, strlen(PMU_NAMESPACE)) && size <= XML_SIZE_MAX)
        return 0;
    xmlDoc *doc = xml_load(text, size, "domain", &error);

    if (!doc)
        return complain(operation, name, error.text);
    const xmlNode *root = xmlDocGetRootElement(doc);
    const int found = pmu_of_domain(root, &pmu, &error);

    if (!found)
        status = 0;
    else if (found < 0 || domain_identify(root, &domain, &error))
        status = complain(operation, name, error.text);
    else
        status = operation->run(&(struct request){&pmu, &domain});
    xmlFreeDoc(doc);
    return status;
}

int main(int argc, char **argv)
{
    const struct operation *operation = argc > 2 ? find_operation(argv[2]) : NULL;
    size_t size = 0;
    char *text;
    int status = 0;

    if (argc < 3) {
        fputs("usage: vpmu-libvirt-hook DOMAIN OPERATION [SUB-OPERATION [EXTRA]] < XML\n"
              "libvirt calls it, from /etc/libvirt/hooks/qemu.d/; see vpmu-libvirt-hook(8).\n",
              stderr);
        return 64;
    }
    text = read_input(&size);
    if (operation)
        status = text ? run(operation, argv[1], text, size)
                      : complain(operation, argv[1], "no memory for its XML");
    free(text);
    return status;
}
