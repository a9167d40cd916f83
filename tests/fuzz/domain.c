// SPDX-License-Identifier: BSD-3-Clause
/*
 * A domain's XML, from anybody: it is refused in words, or understood, and then what is understood
 * is written and read back alike, and a PMU that is given to it is taken away without a trace.
 */
#include <stdint.h>
#include <string.h>

#include "hv/libvirt/domain.h"
#include "tests/fuzz/check.h"

static xmlDoc *load(const uint8_t *data, size_t size)
{
    struct xml_error error = {""};
    xmlDoc *doc = xml_load((const char *)data, size, "domain", &error);

    CHECK(doc || *error.text);
    CHECK(strlen(error.text) < sizeof(error.text) && !strchr(error.text, '\n'));
    return doc;
}

/* libvirt writes one of each, and none that is empty. */
static bool has_two(const xmlNode *root, const char *name)
{
    unsigned found = 0;

    for (const xmlNode *child = root->children; child; child = child->next)
        found += xml_is(child, name, NULL);
    return found > 1;
}

/* Enabled and disabled again, or refused. */
static void go_there_and_back(xmlDoc *doc)
{
    struct xml_error error = {""};
    struct pmu pmu, found;
    xmlChar *before = NULL, *after = NULL;
    int before_size = 0, after_size = 0;

    if (has_two(xmlDocGetRootElement(doc), "features"))
        return;
    pmu_init(&pmu);
    pmu.least = 2;
    pmu.policy = 1;
    pmu_add_event(&pmu.deny, "llc-misses", &error);
    if (domain_disable(doc, &error) < 0 || domain_enable(doc, &pmu, &error)) {
        CHECK(*error.text);
        return;
    }
    CHECK(pmu_of_domain(xmlDocGetRootElement(doc), &found, &error) == 1);
    CHECK(!memcmp(&pmu, &found, sizeof(pmu)));
    CHECK(domain_disable(doc, &error) == 1);
    /* What was empty before, or had no such element, is settled now: from here on it is exact. */
    xmlDocDumpMemory(doc, &before, &before_size);
    CHECK(!domain_enable(doc, &pmu, &error) && domain_disable(doc, &error) == 1);
    xmlDocDumpMemory(doc, &after, &after_size);
    CHECK(before_size == after_size && !memcmp(before, after, (size_t)after_size));
    xmlFree(before);
    xmlFree(after);
}

static void read_back(const struct pmu *pmu, xmlDoc *doc)
{
    char object[64 + 2 * PMU_EVENTS_MAX * (PMU_EVENT_SIZE + 8) + PMU_SOCKET_SIZE + 64];
    struct vpmu_claim claim = pmu_to_claim(pmu, "fuzz");
    struct xml_error error;
    struct domain domain;

    CHECK(pmu_to_object(pmu, object, sizeof(object)) < sizeof(object) && !strchr(object, ' '));
    CHECK(claim.need.gp == pmu->counters && claim.least.gp <= claim.need.gp);
    (void)domain_identify(xmlDocGetRootElement(doc), &domain, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xml_error error = {""};
    struct pmu pmu;
    xmlDoc *doc = load(data, size);

    if (!doc)
        return 0;
    if (pmu_of_domain(xmlDocGetRootElement(doc), &pmu, &error) == 1)
        read_back(&pmu, doc);
    go_there_and_back(doc);
    xmlFreeDoc(doc);
    return 0;
}
