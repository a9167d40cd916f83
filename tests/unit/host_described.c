// SPDX-License-Identifier: BSD-3-Clause
/* Described machines: what is read, and each way in which a description can be wrong. */
#include "hv/host/host_internal.h"

#include <criterion/criterion.h>
#include <string.h>

#define TYPES "\"core_types\":[{\"name\":\"cpu\",\"version\":2,\"gp\":6}]"
#define TWO "\"processors\":[{\"range\":\"0-1\"}]"

static struct vpmu_host host;
static struct vpmu_host_source *source;
static struct vpmu_host_error error;

static bool look(const char *text)
{
    source = vpmu_host_described_text(text, strlen(text), &error);
    if (!source)
        return false;
    cr_assert_eq(vpmu_host_read(source, &host, &error), 0, "%s", error.text);
    return true;
}

static void done(void)
{
    vpmu_host_free(&host);
    vpmu_host_source_free(source);
}

Test(host_described, least)
{
    cr_assert(look("{" TYPES "," TWO "}"), "%s", error.text);
    cr_expect(host.described);
    cr_expect_eq(host.processor_count, 2);
    cr_expect_eq(host.processors[1].capacity.gp, 6);
    cr_expect(host.processors[1].online);
    cr_expect_eq(host.facts.kvm, VPMU_FACT_UNKNOWN);
    cr_expect_eq(host.facts.watchdog, VPMU_FACT_UNKNOWN);
    done();
}

Test(host_described, large)
{
    static struct vpmu_claim claims[4];

    cr_assert(
        look("{\"vendor\":\"AMD\"," TYPES ",\"processors\":["
             "{\"range\":\"0-4093\",\"threads\":2},{\"range\":\"4094-4095\",\"online\":false}],"
             "\"facts\":{\"watchdog\":true,\"watchdog_perf\":true},"
             "\"holders\":[{\"name\":\"agent\",\"pid\":7,\"gp\":3,\"pinned\":true,"
             "\"processors\":\"2048-4095\"}]}"),
        "%s", error.text);
    cr_assert_eq(host.processor_count, 4096);
    cr_expect_eq(host.details[4093].sibling, 4092);
    cr_expect_not(host.processors[4094].online);
    cr_assert_eq(vpmu_host_measure(source, &host, NULL, 0, true, NULL, &error), 0);
    cr_expect_eq(host.details[0].left, 5);
    cr_expect_eq(host.details[4093].left, 2);
    cr_expect_eq(host.details[4094].left, VPMU_HOST_UNKNOWN);
    cr_assert_eq(vpmu_host_claims(&host, NULL, claims, 4), 2);
    cr_expect_eq(claims[0].need.gp, 1);
    cr_expect_null(claims[0].processors);
    cr_expect_eq(claims[1].need.gp, 3);
    cr_expect_eq(claims[1].processors[31], 0);
    cr_expect_eq(claims[1].processors[32], UINT64_MAX);
    done();
}

Test(host_described, holders_and_vms)
{
    static struct vpmu_claim claims[4];
    const uint32_t pids[] = {5};
    const struct vpmu_host_managed managed = {.pids = pids, .pid_count = 1};

    cr_assert(
        look("{\"vendor\":\"Intel\",\"core_types\":[{\"name\":\"cpu\",\"version\":5,\"gp\":8,"
             "\"fixed\":4}]," TWO
             ",\"facts\":{\"watchdog\":true,\"mediated\":null,\"paranoid\":-1},"
             "\"holders\":[{\"name\":\"a\",\"pid\":6,\"ancestors\":[5,1],\"gp\":2,\"fixed\":1,"
             "\"includes_guests\":true},{\"kind\":\"domain_perf\",\"name\":\"d\",\"gp\":2,"
             "\"uuid\":\"000000000000000000000000000000ff\"}],"
             "\"vms\":[{\"name\":\"v\",\"pid\":9,\"pmu\":true}]}"),
        "%s", error.text);
    cr_expect_eq(host.vm_count, 1);
    cr_expect(host.facts.paranoid_known);
    cr_expect_eq(host.facts.paranoid, -1);
    cr_assert_eq(vpmu_host_claims(&host, NULL, claims, 4), 2);
    cr_expect_eq(claims[0].need.gp, 0, "Intel's watchdog has fixed counter 1");
    cr_expect_eq(claims[0].need.fixed, 2);
    cr_expect_eq(claims[1].need.fixed, 1);
    cr_expect_eq(claims[1].flags, VPMU_CLAIM_OBSERVED);
    cr_expect_neq(claims[0].holder, claims[1].holder);
    cr_expect_eq(vpmu_host_claims(&host, &managed, claims, 0), 1, "a's parent has a lease");
    done();
}

Test(host_described, wrong)
{
    static const struct {
        const char *text;
        const char *says;
    } rows[] = {
        {"", "not JSON"},
        {"{", "ends too early"},
        {"{} x", "not JSON"},
        {"null\n", "not an object"},
        {"[]", "not an object"},
        {"{\"a\":[[[[[[[[[[]]]]]]]]]]}", "not JSON"},
        {"{}", "\"core_types\" is missing"},
        {"{" TYPES "}", "\"processors\" is missing"},
        {"{" TYPES ",\"processors\":[]}", "\"processors\" is missing"},
        {"{" TYPES ",\"processors\":7}", "not an array"},
        {"{" TYPES ",\"processors\":[7]}", "not an object"},
        {"{" TYPES ",\"processors\":[{}]}", "no \"range\""},
        {"{" TYPES ",\"processors\":[{\"range\":\"\"}]}", "0 processors"},
        {"{" TYPES ",\"processors\":[{\"range\":\"0-8192\"}]}", "\"range\""},
        {"{" TYPES ",\"processors\":[{\"range\":3}]}", "\"range\""},
        {"{" TYPES ",\"processors\":[{\"range\":\"0-3\"},{\"range\":\"3\"}]}", "described before"},
        {"{" TYPES ",\"processors\":[{\"range\":\"0\",\"core_type\":\"x\"}]}", "\"core_type\""},
        {"{" TYPES ",\"processors\":[{\"range\":\"0\",\"threads\":0}]}", "\"threads\""},
        {"{" TYPES ",\"processors\":[{\"range\":\"0\",\"online\":1}]}", "true, false or null"},
        {"{" TYPES ",\"processors\":[{\"range\":\"0\",\"Online\":true}]}", "no key \"Online\""},
        {"{\"core_types\":[{\"gp\":33}]," TWO "}", "from 0 to 32"},
        {"{\"core_types\":[{\"gp\":\"6\"}]," TWO "}", "\"gp\""},
        {"{\"core_types\":[{\"gp\":6.5}]," TWO "}", "\"gp\""},
        {"{\"core_types\":[{\"fixed\":17}]," TWO "}", "\"fixed\""},
        {"{\"core_types\":[{},{},{},{},{},{},{},{},{}]," TWO "}", "more than 8"},
        {"{\"vendor\":\"VIA\"," TYPES "," TWO "}", "one of unknown Intel AMD"},
        {"{\"model\":7," TYPES "," TWO "}", "\"model\" is not a text"},
        {"{\"modell\":\"x\"," TYPES "," TWO "}", "no key \"modell\""},
        {"{" TYPES "," TWO ",\"facts\":[]}", "not an object"},
        {"{" TYPES "," TWO ",\"facts\":{\"kvm\":\"yes\"}}", "true, false or null"},
        {"{" TYPES "," TWO ",\"facts\":{\"\033[2J\":true}}", "no key \"?[2J\""},
        {"{" TYPES "," TWO ",\"facts\":{\"paranoid\":99999999999}}", "\"paranoid\""},
        {"{" TYPES "," TWO ",\"holders\":{}}", "not an array"},
        {"{" TYPES "," TWO ",\"holders\":[{\"kind\":\"cat\"}]}", "one of process domain_perf"},
        {"{" TYPES "," TWO ",\"holders\":[{\"processors\":\"2\"}]}", "below 2"},
        {"{" TYPES "," TWO ",\"holders\":[{\"ancestors\":[0]}]}", "process ids"},
        {"{" TYPES "," TWO ",\"holders\":[{\"ancestors\":[1,1,1,1,1,1,1,1,1]}]}", "more than 8"},
        {"{" TYPES "," TWO ",\"holders\":[{\"uuid\":\"12\"}]}", "a UUID"},
        {"{" TYPES "," TWO ",\"holders\":[{\"gp\":-1}]}", "\"gp\""},
        {"{" TYPES "," TWO ",\"vms\":[{\"pid\":-1}]}", "\"pid\""},
        {"{" TYPES "," TWO ",\"vms\":[null]}", "not an object"},
        {"{\"model\":\"\xFF\"," TYPES "," TWO "}", "not JSON"},
    };

    for (size_t i = 0; i < HOST_ROWS(rows); i++) {
        error.text[0] = '\0';
        const bool good = look(rows[i].text);

        cr_expect_not(good, "%s", rows[i].text);
        cr_expect_not_null(strstr(error.text, rows[i].says), "%s: %s", rows[i].text, error.text);
        if (good)
            done();
    }
}

Test(host_described, no_such_file)
{
    cr_expect_null(vpmu_host_described("/nonexistent/machine.json", &error));
    cr_expect_not_null(strstr(error.text, "No such file"), "%s", error.text);
    cr_expect_null(vpmu_host_described("/", &error));
}
