// SPDX-License-Identifier: BSD-3-Clause
/* Leases as JSON: for the state file and the control socket. */
#ifndef VPMUD_DESCRIBE_H
#define VPMUD_DESCRIBE_H

#include <json-c/json_object.h>

#include "books.h"

#define UUID_TEXT 37u

/* "8-4-4-4-12", lower case. */
void uuid_write(const uint8_t uuid[BOOKS_UUID], char text[UUID_TEXT]);

/* False: it is not that. */
bool uuid_parse(const char *text, uint8_t uuid[BOOKS_UUID]);

/* "vm", "profiler", ...; "?" for what is none. */
const char *kind_name(uint32_t kind);

/* "backed", ...; "?" for what is none. */
const char *counter_state_name(uint32_t state);

/* {"gp": number, "fixed": set}. */
struct json_object *describe_amount(struct vpmu_amount amount);

/* Everything about an entry that outlives its connection; docs/control.md lists it. */
struct json_object *describe_entry(const struct books *books, const struct entry *entry);

/* What a VM has said of its counters. */
struct json_object *describe_report(const struct entry_report *report);

/* The other way: state, kind, uuid, name, uid and since into owner; what was granted into claim,
 * its processors into set. False: something is missing or is not what it must be. */
bool describe_parse(struct json_object *object, uint64_t *id, struct entry_owner *owner,
                    struct vpmu_claim *claim, uint64_t set[BOOKS_SET_WORDS]);

#endif
