// SPDX-License-Identifier: BSD-3-Clause
/* A domain's metadata: what is understood, what is refused, and what comes of it in its XML. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "hv/libvirt/domain.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define NS " xmlns:vpmu='" PMU_NAMESPACE "'"
#define HEAD "<domain type='kvm'><name>web</name><uuid>4dea22b3-1d52-d8f3-2516-782e98ab3fa0</uuid>"

static xmlDoc *load(const char *text)
{
    struct xml_error error;
    xmlDoc *doc = xml_load(text, strlen(text), "domain", &error);

    cr_assert(doc, "%s", error.text);
    return doc;
}

static int read_pmu(const char *element, struct pmu *pmu, struct xml_error *error)
{
    char text[8192];

    snprintf(text, sizeof(text), HEAD "<metadata>%s</metadata></domain>", element);
    xmlDoc *doc = load(text);
    const int found = pmu_of_domain(xmlDocGetRootElement(doc), pmu, error);

    xmlFreeDoc(doc);
    return found;
}

Test(domain_pmu, every_attribute)
{
    struct xml_error error;
    struct pmu pmu;

    cr_assert_eq(read_pmu("<vpmu:pmu" NS " counters='6' fixed='4' least='2' class='standard'"
                          " policy='reduce' yields='yes' status='no' before='off' socket='/a/b'>"
                          "<vpmu:allow event='llc-misses'/><vpmu:deny event='r00c4'/>"
                          "<vpmu:allow event='r412e'/></vpmu:pmu>",
                          &pmu, &error),
                 1);
    cr_assert_eq(pmu.counters, 6);
    cr_assert_eq(pmu.fixed, 4);
    cr_assert_eq(pmu.least, 2);
    cr_assert_eq(pmu.before, PMU_BEFORE_OFF);
    cr_assert(pmu.yields && !pmu.status);
    cr_assert_eq(pmu.allow.count, 2);
    cr_assert_str_eq(pmu.allow.event[1], "r412e");
    cr_assert_str_eq(pmu.deny.event[0], "r00c4");

    char object[512];
    const struct vpmu_claim claim = pmu_to_claim(&pmu, "web");

    pmu_to_object(&pmu, object, sizeof(object));
    cr_assert_str_eq(object, "vpmu,id=vpmu0,gp=6,fixed=4,class=standard,policy=reduce,socket=/a/b,"
                             "yields=on,allow=llc-misses,allow=r412e,deny=r00c4");
    cr_assert_eq(claim.need.gp, 6);
    cr_assert_eq(claim.need.fixed, 0xF);
    cr_assert_eq(claim.least.gp, 2);
    cr_assert_eq(claim.least.fixed, 0);
    cr_assert_eq(claim.flags, VPMU_CLAIM_YIELDS);
}

Test(domain_pmu, nothing_said)
{
    struct xml_error error;
    struct pmu pmu;

    cr_assert_eq(read_pmu("<pmu xmlns='" PMU_NAMESPACE "'/>", &pmu, &error), 1);
    cr_assert_eq(pmu.counters, 4);
    cr_assert_eq(pmu_to_claim(&pmu, "").least.gp, 4, "policy refuse: all or nothing");
    cr_assert_eq(read_pmu("<pmu/><other xmlns='urn:x'/>", &pmu, &error), 0);
}

static const struct refused {
    const char *element;
    const char *word; /* of the reason */
} refused[] = {
    {"<vpmu:pmu" NS " counters='0'/>", "1 to 32"},
    {"<vpmu:pmu" NS " counters='33'/>", "1 to 32"},
    {"<vpmu:pmu" NS " counters='-1'/>", "1 to 32"},
    {"<vpmu:pmu" NS " counters=' 4'/>", "1 to 32"},
    {"<vpmu:pmu" NS " counters='4294967300'/>", "1 to 32"},
    {"<vpmu:pmu" NS " fixed='17'/>", "0 to 16"},
    {"<vpmu:pmu" NS " class='all'/>", "architectural"},
    {"<vpmu:pmu" NS " policy=''/>", "reduce"},
    {"<vpmu:pmu" NS " yields='on'/>", "yes"},
    {"<vpmu:pmu" NS " least='2'/>", "policy reduce"},
    {"<vpmu:pmu" NS " least='5' policy='reduce'/>", "more than"},
    {"<vpmu:pmu" NS " count='5'/>", "count"},
    {"<vpmu:pmu" NS " vpmu:counters='5'/>", "namespace"},
    {"<vpmu:pmu" NS " socket='a'/>", "absolute"},
    {"<vpmu:pmu" NS " socket='/a,id=b'/>", "absolute"},
    {"<vpmu:pmu" NS "><vpmu:allow event='misses'/></vpmu:pmu>", "neither"},
    {"<vpmu:pmu" NS "><vpmu:allow event='r00c0,gp=9'/></vpmu:pmu>", "neither"},
    {"<vpmu:pmu" NS "><vpmu:deny/></vpmu:pmu>", "no event"},
    {"<vpmu:pmu" NS "><allow event='cycles'/></vpmu:pmu>", "no element"},
    {"<vpmu:pmu" NS "/><vpmu:pmu" NS "/>", "two"},
    {"<vpmu:pmu" NS "/></metadata><metadata>", "two"},
};

Test(domain_pmu, refused_with_a_reason)
{
    struct xml_error error;
    struct pmu pmu;

    for (size_t i = 0; i < ROWS(refused); i++) {
        cr_assert_eq(read_pmu(refused[i].element, &pmu, &error), -1, "%s", refused[i].element);
        cr_assert(strstr(error.text, refused[i].word), "%s: %s", refused[i].element, error.text);
    }
}

Test(domain_pmu, too_many_events)
{
    struct xml_error error;
    struct pmu pmu;

    pmu_init(&pmu);
    for (unsigned i = 0; i < PMU_EVENTS_MAX; i++)
        cr_assert_eq(pmu_add_event(&pmu.deny, "cycles", &error), 0);
    cr_assert_eq(pmu_add_event(&pmu.deny, "cycles", &error), -1);
    cr_assert(strstr(error.text, "too many"));
}

/* ---- Hostile XML ---- */

static void must_refuse(const char *text, size_t size, const char *word)
{
    struct xml_error error;
    xmlDoc *doc = xml_load(text, size, "domain", &error);

    cr_assert_null(doc);
    cr_assert(strstr(error.text, word), "%s", error.text);
}

Test(domain_xml, entities_are_not_expanded)
{
    const char *text = "<!DOCTYPE domain [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;&a;'>]>"
                       "<domain><name>&b;</name></domain>";

    must_refuse(text, strlen(text), "document type");
    text = "<!DOCTYPE domain SYSTEM 'file:///etc/passwd'><domain/>";
    must_refuse(text, strlen(text), "document type");
}

Test(domain_xml, size_and_depth)
{
    const size_t size = XML_SIZE_MAX + 1;
    char *text = malloc(size);

    memset(text, ' ', size);
    must_refuse(text, size, "bytes");
    memcpy(text, "<domain>", 8);
    for (size_t i = 8; i + 3 <= 8 + 3 * 100000; i += 3)
        memcpy(text + i, "<a>", 3);
    must_refuse(text, 8 + 3 * 100000, "not well-formed");
    free(text);
}

Test(domain_xml, not_a_domain)
{
    must_refuse("<network/>", 10, "<domain>");
    must_refuse("", 0, "not well-formed");
    must_refuse("<domain>", 8, "not well-formed");
    must_refuse("<domain>\0</domain>", 18, "not well-formed");
}

/* ---- Who it is ---- */

Test(domain_identity, name_and_uuid)
{
    struct xml_error error;
    struct domain domain;
    xmlDoc *doc = load(HEAD "</domain>");

    cr_assert_eq(domain_identify(xmlDocGetRootElement(doc), &domain, &error), 0);
    cr_assert_str_eq(domain.name, "web");
    cr_assert_eq(domain.uuid[0], 0x4d);
    cr_assert_eq(domain.uuid[15], 0xa0);
    xmlFreeDoc(doc);
}

Test(domain_identity, a_long_name_is_cut_between_characters)
{
    struct xml_error error;
    struct domain domain;
    char text[512] = "<domain><uuid>4dea22b31d52d8f32516782e98ab3fa0</uuid><name>a";

    for (int i = 0; i < 60; i++)
        strcat(text, "é");
    strcat(text, "</name></domain>");
    xmlDoc *doc = load(text);

    cr_assert_eq(domain_identify(xmlDocGetRootElement(doc), &domain, &error), 0);
    cr_assert_eq(strlen(domain.name), 63);
    xmlFreeDoc(doc);
}

Test(domain_identity, bad_uuids)
{
    const char *const bad[] = {"", "4dea22b3-1d52-d8f3-2516-782e98ab3fa",
                               "4dea22b3-1d52-d8f3-2516-782e98ab3fa00",
                               "4dea22b3-1d52-d8f3-2516-782e98ab3fag"};
    uint8_t uuid[VPMU_WIRE_UUID];

    for (size_t i = 0; i < ROWS(bad); i++)
        cr_assert(!domain_parse_uuid(bad[i], uuid), "%s", bad[i]);
}

/* ---- With a PMU and without ---- */

static char *dump(xmlDoc *doc)
{
    xmlChar *text = NULL;
    int size;

    xmlDocDumpMemory(doc, &text, &size);
    return (char *)text;
}

static const char *const definitions[] = {
    HEAD "</domain>",
    HEAD "<features><acpi/></features></domain>",
    HEAD "<features>\n  <pmu state='off'/>\n  </features></domain>",
    HEAD "<features><pmu state='on'/></features></domain>",
    HEAD "<metadata>\n  <a:b xmlns:a='urn:a'> c </a:b>\n  "
         "</metadata><features><acpi/></features></domain>",
    "<domain xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'><name>a</name>"
    "<q:commandline><q:arg value='-object'/><q:arg value='rng-random,id=r'/><q:env name='A'/>"
    "</q:commandline></domain>",
};

Test(domain_edit, disable_undoes_enable)
{
    struct xml_error error;
    struct pmu pmu, again;

    pmu_init(&pmu);
    for (size_t i = 0; i < ROWS(definitions); i++) {
        xmlDoc *doc = load(definitions[i]);
        char *before = dump(doc);

        cr_assert_eq(domain_disable(doc, &error), 0);
        cr_assert_eq(domain_enable(doc, &pmu, &error), 0);
        char *enabled = dump(doc);

        cr_assert_eq(pmu_of_domain(xmlDocGetRootElement(doc), &again, &error), 1);
        cr_assert_eq(domain_enable(doc, &again, &error), 0);
        char *twice = dump(doc);

        cr_assert_str_eq(enabled, twice, "it is idempotent");
        cr_assert(strstr(enabled, "vpmu,id=vpmu0,gp=4"));
        cr_assert(strstr(enabled, "<pmu state=\"on\"/>"));
        cr_assert_eq(domain_disable(doc, &error), 1);
        char *after = dump(doc);

        cr_assert(!strcmp(before, after), "%s\n%s", before, after);
        xmlFree(before);
        xmlFree(enabled);
        xmlFree(twice);
        xmlFree(after);
        xmlFreeDoc(doc);
    }
}

Test(domain_edit, an_object_of_others_is_left_alone)
{
    struct xml_error error;
    struct pmu pmu;
    xmlDoc *doc =
        load("<domain xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'><q:commandline>"
             "<q:arg value='-object'/><q:arg value='vpmu,id=mine'/></q:commandline></domain>");

    pmu_init(&pmu);
    cr_assert_eq(domain_enable(doc, &pmu, &error), -1);
    cr_assert(strstr(error.text, "-object vpmu"));
    xmlFreeDoc(doc);
}
