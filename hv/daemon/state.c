// SPDX-License-Identifier: BSD-3-Clause
/*
 * The state file has a line of JSON for the head, one for each lease, and one for the end:
 *
 *   {"vpmud": 1, "instance": 81985529216486895, "clean": false, "next": 17}
 *   {"id": 3, "state": "live", "kind": "vm", "name": "web1", ...}
 *   {"leases": 1}
 */
#include "state.h"

#include <errno.h>
#include <glib.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "describe.h"
#include "file.h"
#include "vpmu/host.h"

#define STATE_VERSION 1
#define STATE_BYTES (1u << 30)

static int fail(struct state_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Always -1. */
static int fail(struct state_error *error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    return -1;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void append_line(GString *text, struct json_object *object)
{
    g_string_append(text, json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
    g_string_append_c(text, '\n');
    json_object_put(object);
}

static struct json_object *describe_head(const struct state_head *head)
{
    struct json_object *object = json_object_new_object();

    json_object_object_add(object, "vpmud", json_object_new_int(STATE_VERSION));
    json_object_object_add(object, "instance", json_object_new_uint64(head->instance));
    json_object_object_add(object, "clean", json_object_new_boolean(head->clean));
    json_object_object_add(object, "next", json_object_new_uint64(head->next_id));
    return object;
}

/* A lease that has nothing keeps nothing for its holder. */
static bool is_kept(const struct books *books, const struct entry *entry)
{
    struct vpmu_admission_lease lease;

    books_lease(books, entry, &lease);
    return entry->owner.state != ENTRY_OBSERVED && !lease.revoked;
}

static GString *describe_all(const struct state_head *head, const struct books *books)
{
    GString *text = g_string_sized_new(1 << 16);
    struct json_object *end = json_object_new_object();
    int count = 0;

    append_line(text, describe_head(head));
    for (struct entry *entry = books_next(books, NULL); entry; entry = books_next(books, entry)) {
        if (!is_kept(books, entry))
            continue;
        append_line(text, describe_entry(books, entry));
        count++;
    }
    json_object_object_add(end, "leases", json_object_new_int(count));
    append_line(text, end);
    return text;
}

int state_write(const char *path, const struct state_head *head, const struct books *books,
                struct state_error *error)
{
    GString *text = describe_all(head, books);
    int status = file_replace(path, text->str, text->len, 0600);

    if (status)
        fail(error, "%.200s cannot be written: %s", path, strerror(errno));
    g_string_free(text, TRUE);
    return status;
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct reading {
    struct state_head *head;
    void (*each)(void *user, uint64_t id, const struct entry_owner *owner,
                 const struct vpmu_claim *claim);
    void *user;
    uint64_t last_id;
    int64_t leases;
    bool at_end;
};

static int64_t integer(struct json_object *object, const char *key)
{
    struct json_object *value = json_object_object_get(object, key);

    return json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : -1;
}

static bool parse_head(struct json_object *object, struct reading *reading)
{
    if (integer(object, "vpmud") != STATE_VERSION || integer(object, "next") < 1)
        return false;
    reading->head->instance = json_object_get_uint64(json_object_object_get(object, "instance"));
    reading->head->clean = json_object_get_boolean(json_object_object_get(object, "clean"));
    reading->head->next_id = (uint64_t)integer(object, "next");
    return reading->head->instance;
}

/* Ids rise: books_enter() is given none twice. */
static bool parse_lease(struct json_object *object, struct reading *reading)
{
    uint64_t set[BOOKS_SET_WORDS], id;
    struct entry_owner owner;
    struct vpmu_claim claim;

    if (!describe_parse(object, &id, &owner, &claim, set) || id <= reading->last_id ||
        owner.state == ENTRY_OBSERVED)
        return false;
    reading->last_id = id;
    reading->leases++;
    reading->each(reading->user, id, &owner, &claim);
    return true;
}

static bool parse_line(const char *line, bool first, struct reading *reading)
{
    struct json_object *object = json_tokener_parse(line);
    bool good = json_object_is_type(object, json_type_object) && !reading->at_end;

    if (good && first) {
        good = parse_head(object, reading);
    } else if (good && json_object_object_get_ex(object, "leases", NULL)) {
        reading->at_end = true;
        good = integer(object, "leases") == reading->leases;
    } else if (good) {
        good = parse_lease(object, reading);
    }
    json_object_put(object);
    return good;
}

/* Returns the number of the first line that is wrong; 0: none is. */
static unsigned parse_all(char *text, struct reading *reading)
{
    char *rest = text, *line;
    unsigned number = 0;

    while ((line = strsep(&rest, "\n")) && (*line || rest))
        if (!parse_line(line, ++number == 1, reading))
            return number;
    return reading->at_end ? 0 : number + 1;
}

int state_read(const char *path, struct state_head *head,
               void (*each)(void *user, uint64_t id, const struct entry_owner *owner,
                            const struct vpmu_claim *claim),
               void *user, struct state_error *error)
{
    struct reading reading = {.head = head, .each = each, .user = user};
    size_t size;
    char *text = vpmu_host_load_file(path, STATE_BYTES, &size);
    unsigned wrong;

    if (!text && errno == ENOENT)
        return 0;
    if (!text)
        return fail(error, "%.200s cannot be read: %s", path, strerror(errno));
    wrong = parse_all(text, &reading);
    free(text);
    return wrong ? fail(error, "%.200s is no state file of ours, from line %u on", path, wrong) : 1;
}
