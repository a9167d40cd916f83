// SPDX-License-Identifier: BSD-3-Clause
/* A domain's XML, from anybody. */
#ifndef VPMU_LIBVIRT_XML_H
#define VPMU_LIBVIRT_XML_H

#include <libxml/tree.h>
#include <stdbool.h>
#include <stddef.h>

/* libvirt itself takes no larger string over its RPC (VIR_NET_MESSAGE_STRING_MAX, 4 MiB). */
#define XML_SIZE_MAX (4u << 20)

struct xml_error {
    char text[320]; /* one line for people, no newline */
};

__attribute__((format(printf, 2, 3))) void xml_fail(struct xml_error *error, const char *format,
                                                    ...);

/*
 * Parses a document in UTF-8, as libvirt writes it, whose root is root. NULL and error: it is too
 * large, deeper than libxml2's 256 levels, not well-formed, something else, or has a document type:
 * so no entity is ever expanded and nothing is ever loaded.
 */
xmlDoc *xml_load(const char *text, size_t size, const char *root, struct xml_error *error);

/* The child of that name and namespace (NULL: none); NULL if there is none. */
xmlNode *xml_child(const xmlNode *parent, const char *name, const char *uri);

/* Whether an element has that name and namespace (NULL: none). */
bool xml_is(const xmlNode *node, const char *name, const char *uri);

/* Copies an element's text; false if there is none, or it does not fit with its NUL. */
bool xml_text(const xmlNode *node, char *text, size_t size);

/* Copies an attribute without a namespace; as xml_text(). */
bool xml_attribute(const xmlNode *node, const char *name, char *text, size_t size);

#endif
