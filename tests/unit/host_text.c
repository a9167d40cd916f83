// SPDX-License-Identifier: BSD-3-Clause
/* The kernel's small formats, as they are and as they should not be. */
#include "hv/host/host_internal.h"

#include <criterion/criterion.h>
#include <string.h>

Test(host_text, lists)
{
    static const struct {
        const char *text;
        int status;
        const char *again; /* as it is written; NULL: as text */
    } rows[] = {
        {"", 0, NULL},
        {"\n", 0, ""},
        {"0\n", 0, "0"},
        {"0-3,8", 0, NULL},
        {"8,0-3\n", 0, "0-3,8"},
        {"0-63,64-127", 0, "0-127"},
        {"99", 0, NULL},
        {"127", 0, NULL},
        {"128", -1, NULL},
        {"0-128", -1, NULL},
        {"18446744073709551616", -1, NULL},
        {"3-1", -1, NULL},
        {"-1", -1, NULL},
        {"1-", -1, NULL},
        {"1,", -1, NULL},
        {",1", -1, NULL},
        {"0-7:2/4", -1, NULL},
        {"0 1", -1, NULL},
        {"0\n1", -1, NULL},
        {"x", -1, NULL},
    };

    for (size_t i = 0; i < HOST_ROWS(rows); i++) {
        uint64_t words[2];
        char again[64];
        const int status = vpmu_host_parse_list(rows[i].text, 128, words);

        cr_expect_eq(status, rows[i].status, "\"%s\": %d", rows[i].text, status);
        if (status)
            continue;
        vpmu_host_write_list(words, 2, again, sizeof(again));
        cr_expect_str_eq(again, rows[i].again ? rows[i].again : rows[i].text);
    }
}

Test(host_text, list_that_does_not_fit)
{
    uint64_t words[] = {UINT64_C(0x5555555555555555)};
    char text[16];

    vpmu_host_write_list(words, 1, text, sizeof(text));
    cr_expect_str_eq(text, "0,2,4,6,8,...");
    cr_expect_eq(vpmu_host_parse_list("0", 0, words), -1);
}

Test(host_text, numbers)
{
    static const struct {
        const char *text;
        int status;
        int64_t number;
    } rows[] = {
        {"0\n", 0, 0},
        {"-1", 0, -1},
        {"4", 0, 4},
        {"5", -1, 0},
        {"-2", -1, 0},
        {"", -1, 0},
        {"-", -1, 0},
        {"1 ", -1, 0},
        {"0x1", -1, 0},
        {"1\n\n", -1, 0},
        {"99999999999999999999", -1, 0},
        {"--1", -1, 0},
    };

    for (size_t i = 0; i < HOST_ROWS(rows); i++) {
        int64_t number = 77;

        cr_expect_eq(host_parse_number(rows[i].text, -1, 4, &number), rows[i].status, "\"%s\"",
                     rows[i].text);
        cr_expect_eq(number, rows[i].status ? 77 : rows[i].number, "\"%s\"", rows[i].text);
    }
}

Test(host_text, facts)
{
    cr_expect_eq(host_parse_fact("Y\n"), VPMU_FACT_YES);
    cr_expect_eq(host_parse_fact("1"), VPMU_FACT_YES);
    cr_expect_eq(host_parse_fact("N\n"), VPMU_FACT_NO);
    cr_expect_eq(host_parse_fact("0\n"), VPMU_FACT_NO);
    cr_expect_eq(host_parse_fact(""), VPMU_FACT_UNKNOWN);
    cr_expect_eq(host_parse_fact("10"), VPMU_FACT_UNKNOWN);
    cr_expect_eq(host_parse_fact("(null)\n"), VPMU_FACT_UNKNOWN);
}

Test(host_text, printable)
{
    static const char *const rows[][2] = {
        {"rezolus", "rezolus"},
        {"a\033[2Jb\n", "a?[2Jb?"},
        {"gr\xC3\xBC\xC3\x9F", "gr\xC3\xBC\xC3\x9F"},
        {"\xC2\x9B"
         "31m",
         "??31m"},
        {"\xFF\xC3", "??"},
        {"123456789012345", "123456789012345"},
        {"1234567890123456", "123456789012345"},
        {"12345678901234\xC3\xBC", "12345678901234"},
    };

    for (size_t i = 0; i < HOST_ROWS(rows); i++) {
        char text[16];

        host_copy_printable(text, sizeof(text), rows[i][0]);
        cr_expect_str_eq(text, rows[i][1]);
    }
}

Test(host_text, stat)
{
    static const struct {
        const char *text;
        int status;
        const char *name;
        uint32_t parent;
    } rows[] = {
        {"812 (rezolus) S 1 812 812 0 -1", 0, "rezolus", 1},
        {"812 (a) b (c) R 4294967295 1", 0, "a) b (c", 4294967295},
        {"812 (\033[31m) R 2 1", 0, "?[31m", 2},
        {"812 () S 7 ", 0, "", 7},
        {"812 rezolus S 1", -1, NULL, 0},
        {"812 )( S 1", -1, NULL, 0},
        {"812 (rezolus)", -1, NULL, 0},
        {"812 (rezolus) S", -1, NULL, 0},
        {"812 (rezolus) S x", -1, NULL, 0},
        {"", -1, NULL, 0},
    };

    for (size_t i = 0; i < HOST_ROWS(rows); i++) {
        char name[VPMU_HOST_NAME] = "";
        uint32_t parent = 0;
        const int status = host_parse_stat(rows[i].text, name, sizeof(name), &parent);

        cr_expect_eq(status, rows[i].status, "%s", rows[i].text);
        if (status)
            continue;
        cr_expect_str_eq(name, rows[i].name);
        cr_expect_eq(parent, rows[i].parent);
    }
}

Test(host_text, fdinfo)
{
    const struct vpmu_host host = {
        .core_types = {{.pmu = "cpu_core", .perf_type = 4}, {.pmu = "cpu_atom", .perf_type = 10}},
        .core_type_count = 3, /* the last without a PMU */
    };
    static const struct {
        const char *text;
        enum vpmu_fact counts;
    } rows[] = {
        {"pos:\t0\nflags:\t02000002\nmnt_id:\t15\nino:\t1046\n", VPMU_FACT_UNKNOWN},
        {"", VPMU_FACT_UNKNOWN},
        /* As Linux 7.3 writes it. */
        {"pos:\t0\nflags:\t02000002\nmnt_id:\t21\nino:\t1045\nperf_event_attr.type:\t0\n"
         "pmu_type:\t4\nperf_event_attr.config:\t0x0\nperf_event_attr.config1:\t0x0\n",
         VPMU_FACT_YES},
        {"pos:\t0\nperf_event_attr.type:\t0\nperf_event_attr.config:\t1\n", VPMU_FACT_YES},
        {"perf_event-attr.type:\t3\n", VPMU_FACT_YES},
        {"perf_event_attr.type:\t4\n", VPMU_FACT_YES},
        {"perf_event_attr.type:\t10\n", VPMU_FACT_YES},
        {"perf_event_attr.type:\t1\n", VPMU_FACT_NO},
        {"perf_event_attr.type:\t2\n", VPMU_FACT_NO},
        {"perf_event_attr.type:\t11\n", VPMU_FACT_NO},
        {"perf_event_attr.type:\t99999999999\n", VPMU_FACT_UNKNOWN},
        {"perf_event_attr.type:\n", VPMU_FACT_UNKNOWN},
        {"x perf_event_attr.type:\t0\n", VPMU_FACT_UNKNOWN},
    };

    for (size_t i = 0; i < HOST_ROWS(rows); i++)
        cr_expect_eq(host_parse_fdinfo(rows[i].text, &host), rows[i].counts, "%s", rows[i].text);
}

#define WORDS(text) text, sizeof(text) - 1

Test(host_text, cmdline)
{
    static const struct {
        const char *words;
        size_t size;
        enum vpmu_fact pmu, apic;
    } rows[] = {
        {WORDS("qemu\0-cpu\0host,pmu=on\0"), VPMU_FACT_YES, VPMU_FACT_UNKNOWN},
        {WORDS("qemu\0-cpu\0host,pmu=off\0-accel\0kvm,kernel-irqchip=off\0"), VPMU_FACT_NO,
         VPMU_FACT_NO},
        {WORDS("qemu\0-machine\0q35,accel=kvm,kernel_irqchip=off"), VPMU_FACT_UNKNOWN,
         VPMU_FACT_NO},
        {WORDS("qemu\0-machine\0q35,kernel-irqchip=split\0"), VPMU_FACT_UNKNOWN, VPMU_FACT_YES},
        {WORDS("qemu\0-cpu\0host,vpmu=on\0-name\0pmu=only\0"), VPMU_FACT_UNKNOWN,
         VPMU_FACT_UNKNOWN},
        {WORDS("qemu\0-cpu\0host,+pmu\0"), VPMU_FACT_YES, VPMU_FACT_UNKNOWN},
        {WORDS(""), VPMU_FACT_UNKNOWN, VPMU_FACT_UNKNOWN},
    };

    for (size_t i = 0; i < HOST_ROWS(rows); i++) {
        struct vpmu_host_vm vm = {0};

        host_parse_cmdline(rows[i].words, rows[i].size, &vm);
        cr_expect_eq(vm.pmu, rows[i].pmu, "row %zu: pmu %d", i, vm.pmu);
        cr_expect_eq(vm.apic, rows[i].apic, "row %zu: apic %d", i, vm.apic);
    }
}

Test(host_text, mediated)
{
    cr_expect(host_asks_for_mediated("options kvm_amd enable_mediated_pmu=1\n"));
    cr_expect(host_asks_for_mediated("quiet kvm_intel.enable_mediated_pmu=Y"));
    cr_expect_not(host_asks_for_mediated("options kvm_amd enable_mediated_pmu=0\n"));
    cr_expect_not(host_asks_for_mediated("# options kvm_amd enable_mediated_pmu=1\n"));
    cr_expect_not(
        host_asks_for_mediated("kvm_amd.enable_mediated_pmu=1 kvm_amd.enable_mediated_pmu=0"));
    cr_expect_not(host_asks_for_mediated("enable_mediated_pmu="));
    cr_expect_not(host_asks_for_mediated(""));
}

#define DOMAIN(inside)                                                                             \
    "<domstatus state='running' pid='4711'><vcpus/><domain type='kvm' id='1'><name>web1</name>"    \
    "<uuid>0102030a-1111-2222-3333-44445555fffe</uuid>" inside "</domain></domstatus>"

Test(host_text, domain)
{
    static const struct {
        const char *text;
        bool domain;
        uint32_t events;
    } rows[] = {
        {DOMAIN(""), true, 0},
        {DOMAIN("<perf><event name='instructions' enabled='yes'/>"
                "<event name='cpu_cycles' enabled='yes'/><event name='cmt' enabled='yes'/>"
                "<event name='branch_misses' enabled='no'/></perf>"),
         true, 2},
        {DOMAIN("<metadata><perf><event name='instructions' enabled='yes'/></perf>"
                "<name>other</name></metadata>"),
         true, 0},
        {DOMAIN("<name>") "<", false, 0},
        {"<domain><name>web1</name></domain>", false, 0},
        {"<domstatus pid='1'><domain><name>x</name><uuid>zz</uuid></domain></domstatus>", false, 0},
        {"", false, 0},
        {"\xFF\xFE", false, 0},
    };

    for (size_t i = 0; i < HOST_ROWS(rows); i++) {
        struct vpmu_host_holder holder = {0};
        const bool domain = host_parse_domain(rows[i].text, strlen(rows[i].text), &holder);

        cr_expect_eq(domain, rows[i].domain, "row %zu", i);
        if (!domain)
            continue;
        cr_expect_eq(holder.events, rows[i].events, "row %zu: %u", i, holder.events);
        cr_expect_eq(holder.pid, 4711);
        cr_expect_str_eq(holder.name, "web1");
        cr_expect_eq(holder.uuid[3], 10);
        cr_expect_eq(holder.uuid[15], 0xFE);
    }
}
