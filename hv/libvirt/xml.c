// SPDX-License-Identifier: BSD-3-Clause
#include "hv/libvirt/xml.h"

#include <libxml/parser.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void xml_fail(struct xml_error *error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    for (char *c = error->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            *c = ' ';
}

/* Entities are declared in a document type: without one there are none. */
static void refuse_document_type(void *context, const xmlChar *name, const xmlChar *external,
                                 const xmlChar *system)
{
    xmlParserCtxt *parser = context;

    (void)name;
    (void)external;
    (void)system;
    parser->_private = parser;
    xmlStopParser(parser);
}

/* libxml2 prints some errors whatever it is told. */
static void print_nothing(void *context, const char *format, ...)
{
    (void)context;
    (void)format;
}

static void explain(const xmlParserCtxt *parser, struct xml_error *error)
{
    const xmlError *last = xmlCtxtGetLastError((xmlParserCtxt *)parser);

    if (parser->_private)
        xml_fail(error, "the XML has a document type, which no domain has");
    else if (last && last->message)
        xml_fail(error, "the XML is not well-formed: line %d: %.*s", last->line,
                 (int)strcspn(last->message, "\n"), last->message);
    else
        xml_fail(error, "the XML is not well-formed");
}

static xmlDoc *parse(const char *text, size_t size, struct xml_error *error)
{
    xmlParserCtxt *parser = xmlNewParserCtxt();
    xmlDoc *doc = NULL;

    if (!parser) {
        xml_fail(error, "no memory for the XML");
        return NULL;
    }
    xmlSetGenericErrorFunc(NULL, print_nothing);
    parser->_private = NULL;
    parser->sax->internalSubset = refuse_document_type;
    doc = xmlCtxtReadMemory(parser, text, (int)size, NULL, NULL,
                            XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
                                XML_PARSE_IGNORE_ENC);
    if (!doc || parser->_private) {
        explain(parser, error);
        xmlFreeDoc(doc);
        doc = NULL;
    }
    xmlFreeParserCtxt(parser);
    return doc;
}

xmlDoc *xml_load(const char *text, size_t size, const char *root, struct xml_error *error)
{
    if (size > XML_SIZE_MAX) {
        xml_fail(error, "the XML has more than %u bytes", XML_SIZE_MAX);
        return NULL;
    }
    xmlDoc *doc = parse(text, size, error);
    const xmlNode *element = doc ? xmlDocGetRootElement(doc) : NULL;

    if (doc && (!element || !xml_is(element, root, NULL))) {
        xml_fail(error, "the XML is not a <%s>", root);
        xmlFreeDoc(doc);
        doc = NULL;
    }
    return doc;
}

bool xml_is(const xmlNode *node, const char *name, const char *uri)
{
    return node->type == XML_ELEMENT_NODE && !strcmp((const char *)node->name, name) &&
           (uri ? node->ns && !strcmp((const char *)node->ns->href, uri) : !node->ns);
}

xmlNode *xml_child(const xmlNode *parent, const char *name, const char *uri)
{
    for (xmlNode *child = parent->children; child; child = child->next)
        if (xml_is(child, name, uri))
            return child;
    return NULL;
}

/* Takes content, which may be NULL. */
static bool take(xmlChar *content, char *text, size_t size)
{
    const bool fits = content && strlen((const char *)content) < size;

    if (fits)
        memcpy(text, content, strlen((const char *)content) + 1);
    xmlFree(content);
    return fits;
}

bool xml_text(const xmlNode *node, char *text, size_t size)
{
    return take(xmlNodeGetContent(node), text, size);
}

bool xml_attribute(const xmlNode *node, const char *name, char *text, size_t size)
{
    return take(xmlGetNoNsProp((xmlNode *)node, (const xmlChar *)name), text, size);
}
