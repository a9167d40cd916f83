// SPDX-License-Identifier: BSD-3-Clause
#include "hv/libvirt/domain.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define QEMU_NAMESPACE "http://libvirt.org/schemas/domain/qemu/1.0"
#define OBJECT_OF_OURS "vpmu,id=vpmu0,"
#define STATUS_DEVICE "vpmu-status"
#define OBJECT_SIZE (256u + 2 * PMU_EVENTS_MAX * (PMU_EVENT_SIZE + 7))

#define X(text) ((const xmlChar *)(text))

/* ---- Who it is ---- */

/* The value of a hexadecimal digit; 16 if it is none. */
static unsigned digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

    return found ? (unsigned)(found - digits) : 16;
}

bool domain_parse_uuid(const char *text, uint8_t uuid[VPMU_WIRE_UUID])
{
    unsigned digits = 0;

    memset(uuid, 0, VPMU_WIRE_UUID);
    for (; *text; text++) {
        if (*text == '-')
            continue;
        if (digit(*text) > 15 || digits == 2 * VPMU_WIRE_UUID)
            return false;
        uuid[digits / 2] = (uint8_t)((unsigned)uuid[digits / 2] << 4 | digit(*text));
        digits++;
    }
    return digits == 2 * VPMU_WIRE_UUID;
}

/* The wire's names have no control characters and are whole in UTF-8. */
static void cut_name(const char *from, char name[VPMU_WIRE_NAME])
{
    size_t size = strlen(from) < VPMU_WIRE_NAME ? strlen(from) : VPMU_WIRE_NAME - 1;

    while (size && ((unsigned char)from[size] & 0xC0) == 0x80)
        size--;
    snprintf(name, VPMU_WIRE_NAME, "%.*s", (int)size, from);
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            *c = '?';
}

int domain_identify(const xmlNode *element, struct domain *domain, struct xml_error *error)
{
    const xmlNode *name = xml_child(element, "name", NULL);
    const xmlNode *uuid = xml_child(element, "uuid", NULL);
    char text[1024];

    if (!name || !xml_text(name, text, sizeof(text)) || !*text) {
        xml_fail(error, "the domain has no name, or a long one");
        return -1;
    }
    cut_name(text, domain->name);
    if (!uuid || !xml_text(uuid, text, sizeof(text)) || !domain_parse_uuid(text, domain->uuid)) {
        xml_fail(error, "the domain %s has no UUID", domain->name);
        return -1;
    }
    return 0;
}

/* ---- QEMU's arguments ---- */

static bool has_value(const xmlNode *arg, const char *begin)
{
    char value[OBJECT_SIZE];

    return arg && xml_attribute(arg, "value", value, sizeof(value)) &&
           !strncmp(value, begin, strlen(begin));
}

static xmlNode *next_arg(const xmlNode *node)
{
    for (xmlNode *next = node->next; next; next = next->next)
        if (xml_is(next, "arg", QEMU_NAMESPACE))
            return next;
    return NULL;
}

/* The next option whose name is name and whose value begins so; its value is next_arg() of it. */
static xmlNode *find_option(const xmlNode *commandline, const char *name, const char *begin)
{
    for (xmlNode *arg = xml_child(commandline, "arg", QEMU_NAMESPACE); arg; arg = next_arg(arg))
        if (has_value(arg, name) && has_value(next_arg(arg), begin))
            return arg;
    return NULL;
}

static void remove_node(xmlNode *node)
{
    xmlUnlinkNode(node);
    xmlFreeNode(node);
}

static void remove_option(xmlNode *commandline, const char *name, const char *begin)
{
    xmlNode *arg = find_option(commandline, name, begin);

    if (arg) {
        remove_node(next_arg(arg));
        remove_node(arg);
    }
}

static bool is_blank(const xmlNode *parent)
{
    for (const xmlNode *child = parent->children; child; child = child->next)
        if (!xmlIsBlankNode(child))
            return false;
    return true;
}

static void remove_if_blank(xmlNode *node)
{
    if (is_blank(node))
        remove_node(node);
}

static void add_arg(xmlNode *commandline, const char *value)
{
    xmlNode *arg = xmlNewChild(commandline, commandline->ns, X("arg"), NULL);

    if (arg)
        xmlNewProp(arg, X("value"), X(value));
}

/* Where nobody has declared its namespace it is declared on itself, and goes with it. */
static xmlNode *make_commandline(xmlNode *root)
{
    xmlNode *commandline = xml_child(root, "commandline", QEMU_NAMESPACE);
    xmlNs *ns = xmlSearchNsByHref(root->doc, root, X(QEMU_NAMESPACE));

    if (!commandline) {
        commandline = xmlNewChild(root, NULL, X("commandline"), NULL);
        xmlSetNs(commandline, ns ? ns : xmlNewNs(commandline, X(QEMU_NAMESPACE), X("qemu")));
    }
    return commandline;
}

static void add_arguments(xmlNode *root, const struct pmu *pmu)
{
    xmlNode *commandline = make_commandline(root);
    char object[OBJECT_SIZE];

    pmu_to_object(pmu, object, sizeof(object));
    add_arg(commandline, "-object");
    add_arg(commandline, object);
    if (pmu->status) {
        add_arg(commandline, "-device");
        add_arg(commandline, STATUS_DEVICE);
    }
}

static void remove_arguments(xmlNode *root, const struct pmu *pmu)
{
    xmlNode *commandline = xml_child(root, "commandline", QEMU_NAMESPACE);

    if (!commandline)
        return;
    remove_option(commandline, "-object", OBJECT_OF_OURS);
    if (pmu->status)
        remove_option(commandline, "-device", STATUS_DEVICE);
    remove_if_blank(commandline);
}

/* ---- <features><pmu> ---- */

static xmlNode *make_child(xmlNode *parent, const char *name)
{
    xmlNode *child = xml_child(parent, name, NULL);

    return child ? child : xmlNewChild(parent, NULL, X(name), NULL);
}

/* Without the attribute it is on. */
static enum pmu_before feature_of(const xmlNode *root)
{
    const xmlNode *features = xml_child(root, "features", NULL);
    const xmlNode *feature = features ? xml_child(features, "pmu", NULL) : NULL;
    char state[4];

    if (!feature)
        return PMU_BEFORE_ABSENT;
    return xml_attribute(feature, "state", state, sizeof(state)) && !strcmp(state, "off")
               ? PMU_BEFORE_OFF
               : PMU_BEFORE_ON;
}

static void set_feature(xmlNode *root, const char *state)
{
    xmlSetProp(make_child(make_child(root, "features"), "pmu"), X("state"), X(state));
}

static void restore_feature(xmlNode *root, unsigned before)
{
    xmlNode *features = xml_child(root, "features", NULL);
    xmlNode *feature = features ? xml_child(features, "pmu", NULL) : NULL;

    if (feature && before == PMU_BEFORE_OFF)
        xmlSetProp(feature, X("state"), X("off"));
    if (feature && before == PMU_BEFORE_ABSENT) {
        remove_node(feature);
        remove_if_blank(features);
    }
}

/* ---- All of it ---- */

/* Where libvirt writes it: a difference shows nothing else. */
static xmlNode *make_metadata(xmlNode *root)
{
    static const char *const before[] = {"description", "title", "genid", "uuid", "name"};
    xmlNode *metadata = make_child(root, "metadata");
    xmlNode *anchor = NULL;

    for (size_t i = 0; !anchor && i < sizeof(before) / sizeof(before[0]); i++)
        anchor = xml_child(root, before[i], NULL);
    if (anchor && is_blank(metadata))
        xmlAddNextSibling(anchor, metadata);
    return metadata;
}

int domain_disable(xmlDoc *doc, struct xml_error *error)
{
    xmlNode *root = xmlDocGetRootElement(doc);
    xmlNode *metadata = xml_child(root, "metadata", NULL);
    struct pmu pmu;
    const int found = pmu_of_domain(root, &pmu, error);

    if (found != 1)
        return found;
    remove_arguments(root, &pmu);
    restore_feature(root, pmu.before);
    remove_node(xml_child(metadata, PMU_ELEMENT, PMU_NAMESPACE));
    remove_if_blank(metadata);
    return 1;
}

static bool has_object_of_others(const xmlNode *root)
{
    const xmlNode *commandline = xml_child(root, "commandline", QEMU_NAMESPACE);

    return commandline && (find_option(commandline, "-object", "vpmu,") ||
                           find_option(commandline, "-object", "{\"qom-type\":\"vpmu\""));
}

int domain_enable(xmlDoc *doc, struct pmu *pmu, struct xml_error *error)
{
    xmlNode *root = xmlDocGetRootElement(doc);

    if (domain_disable(doc, error) < 0)
        return -1;
    if (has_object_of_others(root)) {
        xml_fail(error, "its <qemu:commandline> has an -object vpmu that is not vpmuctl's:"
                        " remove it first (virsh edit)");
        return -1;
    }
    pmu->before = feature_of(root);
    xmlNode *element = pmu_to_element(pmu);

    if (!element) {
        xml_fail(error, "no memory");
        return -1;
    }
    xmlAddChild(make_metadata(root), element);
    set_feature(root, "on");
    add_arguments(root, pmu);
    return 0;
}
