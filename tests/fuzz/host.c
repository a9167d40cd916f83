// SPDX-License-Identifier: BSD-3-Clause
/*
 * The parsers of hv/host. The first byte chooses one: a described machine, which is then measured
 * and checked, or one of the kernel's and libvirt's formats.
 */
#include "hv/host/host_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_finding(const struct vpmu_finding *finding)
{
    must((unsigned)finding->verdict < VPMU_VERDICTS && finding->is[0]);
    must(memchr(finding->is, '\0', sizeof(finding->is)) != NULL);
    must(!strchr(finding->is, '\033') && !strchr(finding->mend, '\033'));
}

static void use_host(struct vpmu_host_source *source, struct vpmu_host *host)
{
    struct vpmu_host_error error;
    struct vpmu_claim claims[8];

    must(!vpmu_host_measure(source, host, NULL, 0, false, NULL, &error));
    must(!vpmu_host_refresh(source, host, &error));
    vpmu_host_claims(host, NULL, claims, 8);
    for (const struct vpmu_check *check = vpmu_checks; check->id; check++) {
        struct vpmu_finding finding = {.verdict = VPMU_VERDICT_OK};

        if (!check->look)
            continue;
        check->look(host, NULL, &finding);
        check_finding(&finding);
    }
}

static void described(const char *text, size_t size)
{
    struct vpmu_host_error error = {""};
    struct vpmu_host_source *source = vpmu_host_described_text(text, size, &error);
    struct vpmu_host host;

    must(source || error.text[0]);
    if (!source)
        return;
    must(!vpmu_host_read(source, &host, &error));
    use_host(source, &host);
    vpmu_host_free(&host);
    vpmu_host_source_free(source);
}

static void list(const char *text, size_t size)
{
    uint64_t words[3], again[3];
    char written[4096];

    if (vpmu_host_parse_list(text, 150, words))
        return;
    vpmu_host_write_list(words, 3, written, sizeof(written));
    must(!vpmu_host_parse_list(written, 150, again) && !memcmp(words, again, sizeof(words)));
    vpmu_host_write_list(words, 3, written, 16);
    must(strlen(written) < 16);
}

static void process_stat(const char *text, size_t size)
{
    char name[VPMU_HOST_NAME];
    uint32_t parent;

    if (!host_parse_stat(text, name, sizeof(name), &parent))
        must(!strchr(name, '\033') && !strchr(name, '\n'));
}

static void fdinfo(const char *text, size_t size)
{
    const struct vpmu_host host = {.core_types = {{.pmu = "cpu", .perf_type = 4}},
                                   .core_type_count = 2};

    must(host_parse_fdinfo(text, &host) <= VPMU_FACT_YES);
    host_parse_fact(text);
    host_asks_for_mediated(text);
}

static void cmdline(const char *text, size_t size)
{
    struct vpmu_host_vm vm = {0};

    host_parse_cmdline(text, size, &vm);
    must(vm.pmu <= VPMU_FACT_YES && vm.apic <= VPMU_FACT_YES);
}

static void domain(const char *text, size_t size)
{
    struct vpmu_host_holder holder = {0};

    if (host_parse_domain(text, size, &holder))
        must(holder.name[0] != '\0');
}

static void (*const parsers[])(const char *text, size_t size) = {
    described, list, process_stat, fdinfo, cmdline, domain,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    /* A NUL behind it, as the reader of files adds one; memory of its own, for the sanitizer. */
    char *text = malloc(size);

    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    parsers[data[0] % HOST_ROWS(parsers)](text, size - 1);
    free(text);
    return 0;
}
