// SPDX-License-Identifier: BSD-3-Clause
#include "hv/libvirt/pmu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vpmu/filter.h"
#include "vpmu/status.h"
#include "vpmu/wire.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const char *const class_words[] = {
    [VPMU_EVENTS_ANY] = "any",
    [VPMU_EVENTS_ARCHITECTURAL] = "architectural",
    [VPMU_EVENTS_STANDARD] = "standard",
    [VPMU_EVENTS_ENHANCED] = "enhanced",
};
static const char *const policy_words[] = {
    [VPMU_POLICY_REFUSE] = "refuse",
    [VPMU_POLICY_REDUCE] = "reduce",
    [VPMU_POLICY_HIDE] = "hide",
};
static const char *const bool_words[] = {"no", "yes"};
static const char *const before_words[] = {
    [PMU_BEFORE_ABSENT] = "absent",
    [PMU_BEFORE_ON] = "on",
    [PMU_BEFORE_OFF] = "off",
};

_Static_assert(ROWS(class_words) == VPMU_EVENT_CLASSES, "every class has a word");
_Static_assert(ROWS(policy_words) == VPMU_POLICIES, "every policy has a word");

/* The attributes but socket: a number from least to most, or one of most + 1 words. */
static const struct field {
    const char *name;
    size_t offset;
    unsigned least;
    unsigned most;
    const char *const *words;
} fields[] = {
    {"counters", offsetof(struct pmu, counters), 1, 32, NULL},
    {"fixed", offsetof(struct pmu, fixed), 0, 16, NULL},
    {"least", offsetof(struct pmu, least), 0, 32, NULL},
    {"class", offsetof(struct pmu, event_class), 0, ROWS(class_words) - 1, class_words},
    {"policy", offsetof(struct pmu, policy), 0, ROWS(policy_words) - 1, policy_words},
    {"yields", offsetof(struct pmu, yields), 0, ROWS(bool_words) - 1, bool_words},
    {"status", offsetof(struct pmu, status), 0, ROWS(bool_words) - 1, bool_words},
    {"before", offsetof(struct pmu, before), 0, ROWS(before_words) - 1, before_words},
};

static unsigned value_of(const struct pmu *pmu, const struct field *field)
{
    unsigned value;

    memcpy(&value, (const char *)pmu + field->offset, sizeof(value));
    return value;
}

void pmu_init(struct pmu *pmu)
{
    *pmu = (struct pmu){.counters = 4, .status = 1};
    snprintf(pmu->socket, sizeof(pmu->socket), "%s", VPMU_SOCKET);
}

/* ---- Values ---- */

static bool parse_number(const struct field *field, const char *text, unsigned *value)
{
    const size_t digits = strspn(text, "0123456789");

    *value = (unsigned)strtoul(text, NULL, 10);
    return digits && digits <= 4 && !text[digits] && *value >= field->least &&
           *value <= field->most;
}

static bool parse_word(const struct field *field, const char *text, unsigned *value)
{
    for (*value = 0; *value <= field->most; ++*value)
        if (!strcmp(text, field->words[*value]))
            return true;
    return false;
}

/* What stands in a list of QEMU's options and in XML as it is. */
static bool is_plain_path(const char *text)
{
    if (*text != '/' || strlen(text) >= PMU_SOCKET_SIZE)
        return false;
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7F || strchr(",&<>\"'", *text))
            return false;
    return true;
}

static int set_socket(struct pmu *pmu, const char *value, struct xml_error *error)
{
    if (!is_plain_path(value)) {
        xml_fail(error, "socket: '%.80s' is no absolute path of at most %u plain characters", value,
                 PMU_SOCKET_SIZE - 1);
        return -1;
    }
    snprintf(pmu->socket, sizeof(pmu->socket), "%s", value);
    return 0;
}

static int refuse_value(const struct field *field, const char *value, struct xml_error *error)
{
    char words[80] = "";

    for (unsigned i = 0; field->words && i <= field->most; i++)
        snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s", i ? ", " : "",
                 field->words[i]);
    if (field->words)
        xml_fail(error, "%s: '%.40s' is none of %s", field->name, value, words);
    else
        xml_fail(error, "%s: '%.40s' is no number from %u to %u", field->name, value, field->least,
                 field->most);
    return -1;
}

int pmu_set(struct pmu *pmu, const char *name, const char *value, struct xml_error *error)
{
    unsigned number;

    if (!strcmp(name, "socket"))
        return set_socket(pmu, value, error);
    for (const struct field *field = fields; field < fields + ROWS(fields); field++) {
        if (strcmp(name, field->name) != 0)
            continue;
        if (!(field->words ? parse_word : parse_number)(field, value, &number))
            return refuse_value(field, value, error);
        memcpy((char *)pmu + field->offset, &number, sizeof(number));
        return 0;
    }
    xml_fail(error, "there is no attribute '%.40s'", name);
    return -1;
}

int pmu_add_event(struct pmu_events *events, const char *event, struct xml_error *error)
{
    struct vpmu_rules rules = {0};
    const char *why = vpmu_rules_add(&rules, VPMU_VENDOR_INTEL, event);

    if (why && vpmu_rules_add(&rules, VPMU_VENDOR_AMD, event)) {
        xml_fail(error, "'%.40s' %s", event, why);
        return -1;
    }
    if (events->count == PMU_EVENTS_MAX) {
        xml_fail(error, "'%.40s' is one event too many: a list has at most %u", event,
                 PMU_EVENTS_MAX);
        return -1;
    }
    snprintf(events->event[events->count++], PMU_EVENT_SIZE, "%s", event);
    return 0;
}

int pmu_check(const struct pmu *pmu, struct xml_error *error)
{
    if (pmu->least > pmu->counters)
        xml_fail(error, "least is %u, which is more than the %u counters asked for", pmu->least,
                 pmu->counters);
    else if (pmu->least && pmu->policy != VPMU_POLICY_REDUCE)
        xml_fail(error, "least is for policy reduce alone");
    else
        return 0;
    return -1;
}

/* ---- The element ---- */

static int take_attributes(const xmlNode *element, struct pmu *pmu, struct xml_error *error)
{
    for (const xmlAttr *attribute = element->properties; attribute; attribute = attribute->next) {
        const char *name = (const char *)attribute->name;
        char value[PMU_SOCKET_SIZE];

        if (attribute->ns) {
            xml_fail(error, "there is no attribute '%.40s' of another namespace", name);
            return -1;
        }
        if (!xml_attribute(element, name, value, sizeof(value))) {
            xml_fail(error, "%.40s: the value is too long", name);
            return -1;
        }
        if (pmu_set(pmu, name, value, error))
            return -1;
    }
    return 0;
}

static int take_event(const xmlNode *child, struct pmu *pmu, struct xml_error *error)
{
    struct pmu_events *events = xml_is(child, "allow", PMU_NAMESPACE)  ? &pmu->allow
                                : xml_is(child, "deny", PMU_NAMESPACE) ? &pmu->deny
                                                                       : NULL;
    char event[PMU_EVENT_SIZE];

    if (!events) {
        xml_fail(error, "there is no element '%.40s' in it", (const char *)child->name);
        return -1;
    }
    if (!xml_attribute(child, "event", event, sizeof(event))) {
        xml_fail(error, "an element '%s' has no event, or a long one", (const char *)child->name);
        return -1;
    }
    return pmu_add_event(events, event, error);
}

static int take_element(const xmlNode *element, struct pmu *pmu, struct xml_error *error)
{
    if (take_attributes(element, pmu, error))
        return -1;
    for (const xmlNode *child = element->children; child; child = child->next)
        if (child->type == XML_ELEMENT_NODE && take_event(child, pmu, error))
            return -1;
    return pmu_check(pmu, error);
}

/* libvirt keeps one <metadata>, and in it one element for each namespace. */
static bool is_only_one(const xmlNode *element, const char *name, const char *uri)
{
    while ((element = element->next))
        if (xml_is(element, name, uri))
            return false;
    return true;
}

int pmu_of_domain(const xmlNode *domain, struct pmu *pmu, struct xml_error *error)
{
    const xmlNode *metadata = xml_child(domain, "metadata", NULL);
    const xmlNode *element = metadata ? xml_child(metadata, PMU_ELEMENT, PMU_NAMESPACE) : NULL;
    struct xml_error reason = {"there are two"};

    pmu_init(pmu);
    if (metadata && !is_only_one(metadata, "metadata", NULL)) {
        xml_fail(error, "the domain has two <metadata>");
        return -1;
    }
    if (!element)
        return 0;
    if (is_only_one(element, PMU_ELEMENT, PMU_NAMESPACE) && !take_element(element, pmu, &reason))
        return 1;
    xml_fail(error, "the domain's <" PMU_PREFIX ":" PMU_ELEMENT ">: %s", reason.text);
    return -1;
}

static void put_number(xmlNode *element, const struct field *field, unsigned value)
{
    char number[16];

    snprintf(number, sizeof(number), "%u", value);
    xmlNewProp(element, (const xmlChar *)field->name,
               (const xmlChar *)(field->words ? field->words[value] : number));
}

static void put_events(xmlNode *element, const char *name, const struct pmu_events *events)
{
    for (unsigned i = 0; i < events->count; i++) {
        xmlNode *child = xmlNewChild(element, element->ns, (const xmlChar *)name, NULL);

        xmlNewProp(child, (const xmlChar *)"event", (const xmlChar *)events->event[i]);
    }
}

xmlNode *pmu_to_element(const struct pmu *pmu)
{
    xmlNode *element = xmlNewNode(NULL, (const xmlChar *)PMU_ELEMENT);
    struct pmu usual;

    if (!element)
        return NULL;
    pmu_init(&usual);
    xmlSetNs(element,
             xmlNewNs(element, (const xmlChar *)PMU_NAMESPACE, (const xmlChar *)PMU_PREFIX));
    for (const struct field *field = fields; field < fields + ROWS(fields); field++)
        if (field == fields || value_of(pmu, field) != value_of(&usual, field))
            put_number(element, field, value_of(pmu, field));
    if (strcmp(pmu->socket, usual.socket) != 0)
        xmlNewProp(element, (const xmlChar *)"socket", (const xmlChar *)pmu->socket);
    put_events(element, "allow", &pmu->allow);
    put_events(element, "deny", &pmu->deny);
    return element;
}

/* ---- For others ---- */

__attribute__((format(printf, 4, 5))) static void append(char *text, size_t size, size_t *length,
                                                         const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int more = vsnprintf(*length < size ? text + *length : NULL,
                               *length < size ? size - *length : 0, format, arguments);
    va_end(arguments);
    *length += more > 0 ? (size_t)more : 0;
}

size_t pmu_to_object(const struct pmu *pmu, char *text, size_t size)
{
    size_t length = 0;

    append(text, size, &length, "vpmu,id=vpmu0,gp=%u,fixed=%u,class=%s,policy=%s,socket=%s",
           pmu->counters, pmu->fixed, class_words[pmu->event_class], policy_words[pmu->policy],
           pmu->socket);
    if (pmu->yields)
        append(text, size, &length, ",yields=on");
    for (unsigned i = 0; i < pmu->allow.count; i++)
        append(text, size, &length, ",allow=%s", pmu->allow.event[i]);
    for (unsigned i = 0; i < pmu->deny.count; i++)
        append(text, size, &length, ",deny=%s", pmu->deny.event[i]);
    return length;
}

struct vpmu_claim pmu_to_claim(const struct pmu *pmu, const char *name)
{
    const struct vpmu_amount need = {(uint16_t)pmu->counters, (uint16_t)((1u << pmu->fixed) - 1)};
    const struct vpmu_amount least = {(uint16_t)(pmu->least ? pmu->least : 1), 0};

    return (struct vpmu_claim){
        .binding = VPMU_BOUND_VCPU,
        .flags = pmu->yields ? VPMU_CLAIM_YIELDS : 0,
        .need = need,
        .least = pmu->policy == VPMU_POLICY_REDUCE ? least : need,
        .name = name,
    };
}

const char *pmu_class_name(unsigned event_class)
{
    return class_words[event_class];
}

const char *pmu_policy_name(unsigned policy)
{
    return policy_words[policy];
}

void pmu_describe(const struct pmu *pmu, char *text, size_t size)
{
    size_t length = 0;

    append(text, size, &length, "%u general-purpose and %u fixed counters", pmu->counters,
           pmu->fixed);
    if (pmu->least)
        append(text, size, &length, " (at least %u)", pmu->least);
}
