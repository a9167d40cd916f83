// SPDX-License-Identifier: BSD-3-Clause
#include "books.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

const char *const entry_state_names[ENTRY_STATES] = {
    [ENTRY_LIVE] = "live",
    [ENTRY_RESERVED] = "reserved",
    [ENTRY_HELD] = "held",
    [ENTRY_OBSERVED] = "observed",
};

struct books {
    void *memory; /* admission's */
    struct vpmu_admission *admission;
    uint64_t next_id;
    struct entry *first, *last;
    GHashTable *by_id;        /* key: the entry's id */
    GHashTable *reservations; /* key: the entry's uuid */
    uint32_t count[ENTRY_STATES];
};

static guint uuid_hash(gconstpointer key)
{
    guint hash;

    memcpy(&hash, key, sizeof(hash)); /* a uuid's first bytes are random, or a time's lowest */
    return hash;
}

static gboolean uuid_equal(gconstpointer a, gconstpointer b)
{
    return !memcmp(a, b, BOOKS_UUID);
}

bool uuid_is_set(const uint8_t uuid[BOOKS_UUID])
{
    static const uint8_t none[BOOKS_UUID];

    return memcmp(uuid, none, BOOKS_UUID) != 0;
}

static void free_entry(struct entry *entry)
{
    g_free(entry->report);
    g_free(entry);
}

struct books *books_new(const struct vpmu_admission_config *config)
{
    struct books *books = g_new0(struct books, 1);
    size_t size = vpmu_admission_size(config);

    books->memory = size ? malloc(size) : NULL;
    books->admission = books->memory ? vpmu_admission_init(books->memory, size, config) : NULL;
    books->next_id = 1;
    books->by_id = g_hash_table_new(g_int64_hash, g_int64_equal);
    books->reservations = g_hash_table_new(uuid_hash, uuid_equal);
    if (books->admission)
        return books;
    books_free(books);
    return NULL;
}

void books_free(struct books *books)
{
    struct entry *next;

    for (struct entry *entry = books->first; entry; entry = next) {
        next = entry->next;
        free_entry(entry);
    }
    g_hash_table_destroy(books->by_id);
    g_hash_table_destroy(books->reservations);
    free(books->memory);
    g_free(books);
}

const struct vpmu_admission *books_admission(const struct books *books)
{
    return books->admission;
}

/* ---- Entries --------------------------------------------------------------------------------- */

/* Counts the entry, and finds a reservation by its uuid, as long as its owner is what it is. */
static void index_owner(struct books *books, struct entry *entry)
{
    books->count[entry->owner.state]++;
    if (entry->owner.state == ENTRY_RESERVED)
        g_hash_table_insert(books->reservations, entry->owner.uuid, entry);
}

static void forget_owner(struct books *books, struct entry *entry)
{
    books->count[entry->owner.state]--;
    if (entry->owner.state == ENTRY_RESERVED)
        g_hash_table_remove(books->reservations, entry->owner.uuid);
}

static void append(struct books *books, struct entry *entry)
{
    entry->previous = books->last;
    *(books->last ? &books->last->next : &books->first) = entry;
    books->last = entry;
    g_hash_table_insert(books->by_id, &entry->id, entry);
}

static void unlink_entry(struct books *books, struct entry *entry)
{
    *(entry->previous ? &entry->previous->next : &books->first) = entry->next;
    *(entry->next ? &entry->next->previous : &books->last) = entry->previous;
    g_hash_table_remove(books->by_id, &entry->id);
}

static void record_claim(struct entry *entry, const struct vpmu_claim *claim)
{
    entry->need = claim->need;
    entry->least = claim->least;
    entry->every = !claim->processors;
}

/* People and holders know entries by their ids, which admission has as its holders. */
static vpmu_status translate(struct vpmu_answer *answer)
{
    if (answer->lease != VPMU_LEASE_NONE)
        answer->lease = answer->holder;
    return answer->status;
}

static vpmu_status acquire(struct books *books, struct entry *entry, const struct vpmu_claim *claim,
                           struct vpmu_amount *granted, struct vpmu_answer *answer)
{
    struct vpmu_claim named = *claim;
    vpmu_lease lease;

    named.holder = entry->id;
    vpmu_admission_acquire(books->admission, &named, &lease, granted, answer);
    if (answer->status == VPMU_STATUS_SUCCESS)
        entry->lease = lease;
    return translate(answer);
}

static void release(struct books *books, vpmu_lease lease)
{
    struct vpmu_answer ignored;

    vpmu_admission_release(books->admission, lease, &ignored);
}

struct entry *books_enter(struct books *books, uint64_t id, const struct entry_owner *owner,
                          const struct vpmu_claim *claim, struct vpmu_amount *granted,
                          struct vpmu_answer *answer)
{
    struct entry *entry = g_new0(struct entry, 1);

    entry->id = id ? id : books->next_id;
    if (acquire(books, entry, claim, granted, answer) != VPMU_STATUS_SUCCESS) {
        g_free(entry);
        return NULL;
    }
    if (entry->id >= books->next_id)
        books->next_id = entry->id + 1;
    entry->owner = *owner;
    record_claim(entry, claim);
    append(books, entry);
    index_owner(books, entry);
    return entry;
}

void books_strike(struct books *books, struct entry *entry)
{
    release(books, entry->lease);
    forget_owner(books, entry);
    unlink_entry(books, entry);
    free_entry(entry);
}

vpmu_status books_resize(struct books *books, struct entry *entry, struct vpmu_amount need,
                         struct vpmu_answer *answer)
{
    vpmu_admission_resize(books->admission, entry->lease, need, answer);
    if (answer->status == VPMU_STATUS_SUCCESS)
        entry->need = entry->least = need;
    return translate(answer);
}

vpmu_status books_revoke(struct books *books, struct entry *entry, struct vpmu_answer *answer)
{
    vpmu_admission_revoke(books->admission, entry->lease, answer);
    return translate(answer);
}

bool books_set_online(struct books *books, const uint64_t *online, uint32_t words)
{
    return vpmu_admission_set_online(books->admission, online, words);
}

bool books_short(const struct books *books, const struct entry *entry, struct vpmu_answer *answer)
{
    bool is_short = vpmu_admission_short(books->admission, entry->lease, answer);

    if (is_short)
        translate(answer);
    return is_short;
}

struct entry *books_yielding(const struct books *books, const struct vpmu_claim *claim,
                             const struct entry *after)
{
    struct vpmu_admission_lease info;
    vpmu_lease lease =
        vpmu_admission_yielding(books->admission, claim, after ? after->lease : VPMU_LEASE_NONE);

    if (lease == VPMU_LEASE_NONE)
        return NULL;
    vpmu_admission_lease(books->admission, lease, &info);
    return books_find(books, info.holder);
}

bool books_restore(struct books *books, struct entry *entry, struct vpmu_amount *granted)
{
    vpmu_lease revoked = entry->lease;
    struct vpmu_claim claim = books_claim(books, entry);
    struct vpmu_answer answer;

    /* The revoked lease has nothing: it does not stand in the way of its own successor. */
    if (acquire(books, entry, &claim, granted, &answer) != VPMU_STATUS_SUCCESS)
        return false;
    release(books, revoked);
    entry->yielded = false;
    return true;
}

vpmu_status books_take_over(struct books *books, struct entry *entry,
                            const struct entry_owner *owner, const struct vpmu_claim *claim,
                            struct vpmu_amount *granted, struct vpmu_answer *answer)
{
    struct vpmu_admission_lease had;
    struct vpmu_claim standing = books_claim(books, entry);
    uint64_t set[BOOKS_SET_WORDS];
    char name[VPMU_ADMISSION_NAME];
    struct vpmu_answer ignored;

    books_lease(books, entry, &had);
    memcpy(set, had.processors, had.words * sizeof(set[0]));
    memcpy(name, entry->owner.name, sizeof(name));
    standing.processors = entry->every ? NULL : set;
    standing.name = name;
    standing.need = standing.least = had.granted;
    release(books, entry->lease);
    if (acquire(books, entry, claim, granted, answer) != VPMU_STATUS_SUCCESS) {
        /* Nothing has come between: what stood still fits. */
        acquire(books, entry, &standing, NULL, &ignored);
        return answer->status;
    }
    forget_owner(books, entry);
    entry->owner = *owner;
    record_claim(entry, claim);
    index_owner(books, entry);
    return answer->status;
}

/* ---- Looking up ------------------------------------------------------------------------------ */

struct entry *books_find(const struct books *books, uint64_t id)
{
    return g_hash_table_lookup(books->by_id, &id);
}

struct entry *books_reservation(const struct books *books, const uint8_t uuid[BOOKS_UUID])
{
    return g_hash_table_lookup(books->reservations, uuid);
}

struct entry *books_next(const struct books *books, const struct entry *entry)
{
    return entry ? entry->next : books->first;
}

void books_lease(const struct books *books, const struct entry *entry,
                 struct vpmu_admission_lease *lease)
{
    vpmu_admission_lease(books->admission, entry->lease, lease);
}

struct vpmu_claim books_claim(const struct books *books, const struct entry *entry)
{
    struct vpmu_admission_lease info;

    books_lease(books, entry, &info);
    return (struct vpmu_claim){
        .binding = info.binding,
        .flags = info.flags,
        .need = entry->need,
        .least = entry->least,
        .beside = info.beside,
        .processors = entry->every ? NULL : info.processors,
        .words = entry->every ? 0 : info.words,
        .holder = entry->id,
        .name = entry->owner.name,
    };
}

uint32_t books_count(const struct books *books, enum entry_state state)
{
    return books->count[state];
}

uint64_t books_next_id(const struct books *books)
{
    return books->next_id;
}

void books_begin_at(struct books *books, uint64_t id)
{
    if (id > books->next_id)
        books->next_id = id;
}
