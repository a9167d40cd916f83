// SPDX-License-Identifier: BSD-3-Clause
/*
 * The whole hook program, its standard input the domain's XML from anybody, vpmud's answer from the
 * first bytes. libvirt must get a status that it knows and nothing on stdout; a person, whenever
 * the domain does not start, plain lines that say why; and what has ended or runs is never failed.
 */
#define main hook_main
#include "hv/libvirt/hook.c"
#undef main

#include <ctype.h>

#include "tests/fuzz/check.h"

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* Those that the hook has, and two of which it wants nothing. */
static const char *operation_of(uint8_t byte)
{
    const size_t n = byte % (OPERATIONS + 2);

    return n < OPERATIONS ? operations[n].name : n == OPERATIONS ? "started" : "";
}

/* ---- vpmud, as far as the hook sees it ---- */

static const vpmu_status answers[] = {
    VPMU_STATUS_SUCCESS,     VPMU_STATUS_INSUFFICIENT_RESOURCES,
    VPMU_STATUS_DEVICE_BUSY, VPMU_CLIENT_UNREACHABLE,
    VPMU_CLIENT_PROTOCOL,    VPMU_WIRE_DENIED,
};

static vpmu_status connected, answered;
static unsigned clients, requests;

static int answer(vpmu_status status, struct vpmu_client_error *error)
{
    *error = (struct vpmu_client_error){.status = status, .text = "no"};
    return status ? -1 : 0;
}

struct vpmu_client *vpmu_client_new(const struct vpmu_client_options *options,
                                    struct vpmu_client_error *error)
{
    CHECK(options->kind == VPMU_KIND_HOOK && *options->name);
    (void)error;
    clients++;
    return (struct vpmu_client *)&clients;
}

void vpmu_client_free(struct vpmu_client *client)
{
    CHECK(client == (struct vpmu_client *)&clients);
    clients--;
}

int vpmu_client_connect(struct vpmu_client *client, struct vpmu_client_error *error)
{
    (void)client;
    return answer(connected, error);
}

int vpmu_client_reserve(struct vpmu_client *client, const uint8_t uuid[VPMU_WIRE_UUID],
                        const struct vpmu_claim *claim, enum vpmu_shortage_policy policy,
                        uint32_t lifetime_s, struct vpmu_client_answer *out,
                        struct vpmu_client_error *error)
{
    (void)client, (void)uuid, (void)out;
    CHECK(claim->least.gp <= claim->need.gp && claim->least.fixed <= claim->need.fixed);
    CHECK(policy <= VPMU_POLICY_HIDE && lifetime_s);
    requests++;
    return answer(answered, error);
}

int vpmu_client_unreserve(struct vpmu_client *client, const uint8_t uuid[VPMU_WIRE_UUID],
                          struct vpmu_client_answer *out, struct vpmu_client_error *error)
{
    (void)client, (void)uuid, (void)out;
    requests++;
    return answer(answered, error);
}

/* ---- The program ---- */

static bool may_fail(const char *operation)
{
    const struct operation *found = find_operation(operation);

    return found && found->bad;
}

/* Lines for a person; what the XML says cannot forge one or paint on a terminal. */
static void check_lines(const char *text, size_t size)
{
    CHECK(strlen(text) == size);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        CHECK(strchr(line, '\n'));
        CHECK(!strncmp(line, "vpmu: ", 6) || !strncmp(line, "  ", 2) || *line == '\n');
    }
    for (size_t i = 0; i < size; i++)
        CHECK(!iscntrl((unsigned char)text[i]) || text[i] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *const streams[] = {stdin, stdout, stderr};
    char *out = NULL, *err = NULL, *operation;
    size_t out_size = 0, err_size = 0;
    int status;

    if (size < 4)
        return 0;
    operation = (char *)operation_of(data[0]);
    connected = answers[data[1] % (sizeof(answers) / sizeof(*answers))];
    answered = answers[data[2] % (sizeof(answers) / sizeof(*answers))];
    requests = 0;
    stdin = fmemopen((void *)(data + 3), size - 3, "r");
    stdout = open_memstream(&out, &out_size);
    stderr = open_memstream(&err, &err_size);
    status = hook_main(5, (char *[]){"hook", "domain", operation, "begin", "-", NULL});
    fclose(stdin);
    fclose(stdout);
    fclose(stderr);
    stdin = streams[0], stdout = streams[1], stderr = streams[2];

    CHECK(status == 0 || (status == VETO && err_size && may_fail(operation)));
    CHECK(!out_size && !clients && requests <= 1);
    check_lines(err, err_size);
    free(out);
    free(err);
    return 0;
}
