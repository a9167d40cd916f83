// SPDX-License-Identifier: BSD-3-Clause
/*
 * GLib's GKeyFile reads the syntax; a table says which keys there are, what they may be and what
 * they are when they are not given. Nothing is ignored: an unknown section, an unknown key or a
 * value out of range makes the whole file invalid, and the error says what would be right.
 */
#include "config.h"

#include <errno.h>
#include <glib.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "needs.h"
#include "vpmu/host.h"

/* Names of users and groups come from NSS, which may ask a local service. */
NEEDS("openat read fstat newfstatat lseek close socket connect sendto recvmsg poll fcntl getpid");

#define CONFIG_BYTES 1048576u

enum value {
    VALUE_NUMBER,
    VALUE_FLAG,   /* yes or no, as a number */
    VALUE_SOCKET, /* a path that fits struct sockaddr_un */
    VALUE_PATH,
    VALUE_WORD,
    VALUE_UIDS,
    VALUE_GIDS,
    VALUE_RIGHTS,
};

struct key {
    const char *name;
    size_t at; /* in struct config or struct policy */
    enum value value;
    uint32_t least, most;
    const char *fallback; /* NULL: may be missing, and is nothing then */
    bool fixed;           /* needs a restart */
};

#define DAEMON(field) .name = #field, .at = offsetof(struct config, field)
#define POLICY(title, field) .name = (title), .at = offsetof(struct policy, field)
#define RANGE(low, high, usual)                                                                    \
    .value = VALUE_NUMBER, .least = (low), .most = (high), .fallback = (usual)

static const struct key daemon_keys[] = {
    {DAEMON(socket), .value = VALUE_SOCKET, .fallback = "/run/vpmud/vpmud.sock", .fixed = true},
    {DAEMON(control), .value = VALUE_SOCKET, .fallback = "/run/vpmud/control.sock", .fixed = true},
    {DAEMON(metrics), .value = VALUE_SOCKET, .fixed = true},
    {DAEMON(textfile), .value = VALUE_PATH},
    {DAEMON(state), .value = VALUE_PATH, .fallback = "/var/lib/vpmud/state", .fixed = true},
    {DAEMON(user), .value = VALUE_WORD, .fixed = true},
    {DAEMON(grace_ms), RANGE(0, 600000, "5000")},
    {DAEMON(notice_ms), RANGE(0, 600000, "2000")},
    {DAEMON(reserve_ms), RANGE(1000, 86400000, "120000")},
    {DAEMON(leases), RANGE(1, 1000000, "65536"), .fixed = true},
    {DAEMON(connections), RANGE(1, 1000000, "16384")},
    {DAEMON(pending), RANGE(0, 65536, "256")},
    {DAEMON(queue_bytes), RANGE(8192, 1u << 26, "65536")},
    {.name = NULL},
};

static const struct key watch_keys[] = {
    {DAEMON(interval_ms), RANGE(0, 3600000, "10000")},
    {DAEMON(name_holders), .value = VALUE_FLAG, .fallback = "no", .fixed = true},
    {.name = NULL},
};

static const struct key policy_keys[] = {
    {POLICY("uid", uids), .value = VALUE_UIDS},
    {POLICY("gid", gids), .value = VALUE_GIDS},
    {POLICY("may", may), .value = VALUE_RIGHTS},
    {POLICY("max_gp", max_gp), RANGE(0, 32, "32")},
    {POLICY("max_fixed", max_fixed), RANGE(0, 0xFFFF, "0xffff")},
    {.name = NULL},
};

static const struct section {
    const char *name;
    const struct key *keys;
} sections[] = {{"daemon", daemon_keys}, {"watch", watch_keys}};

#define SECTIONS (sizeof(sections) / sizeof(sections[0]))

static bool wrong(struct config_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Always false. */
static bool wrong(struct config_error *error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    return false;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool parse_number(const char *text, uint32_t least, uint32_t most, uint32_t *number)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 0);
    if (errno || end == text || *end || *text == '-' || value < least || value > most)
        return false;
    *number = (uint32_t)value;
    return true;
}

static bool set_number(const struct key *key, const char *text, void *at,
                       struct config_error *error)
{
    return parse_number(text, key->least, key->most, at) ||
           wrong(error, "%s = %.40s: not a number from %u to %u", key->name, text, key->least,
                 key->most);
}

static bool set_flag(const struct key *key, const char *text, void *at, struct config_error *error)
{
    uint32_t yes = !strcmp(text, "yes");

    if (!yes && strcmp(text, "no") != 0)
        return wrong(error, "%s = %.40s: neither yes nor no", key->name, text);
    *(uint32_t *)at = yes;
    return true;
}

static bool set_path(const struct key *key, const char *text, void *at, struct config_error *error)
{
    if (*text != '/')
        return wrong(error, "%s = %.80s: not an absolute path", key->name, text);
    *(char **)at = g_strdup(text);
    return true;
}

static bool set_socket(const struct key *key, const char *text, void *at,
                       struct config_error *error)
{
    const size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

    if (strlen(text) > most)
        return wrong(error, "%s: a socket's path has at most %zu bytes, this has %zu", key->name,
                     most, strlen(text));
    return set_path(key, text, at, error);
}

static bool set_word(const struct key *key, const char *text, void *at, struct config_error *error)
{
    if (!*text || strpbrk(text, " \t"))
        return wrong(error, "%s = %.80s: not one word", key->name, text);
    *(char **)at = g_strdup(text);
    return true;
}

static bool find_user(const char *name, uint32_t *id)
{
    const struct passwd *user = getpwnam(name);

    if (user)
        *id = user->pw_uid;
    return user;
}

static bool find_group(const char *name, uint32_t *id)
{
    const struct group *group = getgrnam(name);

    if (group)
        *id = group->gr_gid;
    return group;
}

/* A list "a, b c"; calls add for each. */
static bool each_word(const char *text, bool (*add)(const char *word, void *user), void *user)
{
    char **words = g_strsplit_set(text, ", \t", -1);
    bool good = true;

    for (char **word = words; good && *word; word++)
        good = !**word || add(*word, user);
    g_strfreev(words);
    return good;
}

struct id_list {
    struct ids *ids;
    bool (*find)(const char *name, uint32_t *id);
    const char *key, *what;
    struct config_error *error;
};

static bool add_id(const char *word, void *user)
{
    struct id_list *list = user;
    uint32_t id = 0;

    if (!strcmp(word, "*")) {
        list->ids->any = true;
        return true;
    }
    if (!parse_number(word, 0, UINT32_MAX - 1, &id) && !list->find(word, &id))
        return wrong(list->error, "%s: this machine has no %s %.60s", list->key, list->what, word);
    list->ids->list = g_renew(uint32_t, list->ids->list, list->ids->count + 1);
    list->ids->list[list->ids->count++] = id;
    return true;
}

static bool set_uids(const struct key *key, const char *text, void *at, struct config_error *error)
{
    struct id_list list = {at, find_user, key->name, "user", error};

    return each_word(text, add_id, &list);
}

static bool set_gids(const struct key *key, const char *text, void *at, struct config_error *error)
{
    struct id_list list = {at, find_group, key->name, "group", error};

    return each_word(text, add_id, &list);
}

struct right_set {
    uint32_t *set;
    struct config_error *error;
};

static bool add_right(const char *word, void *user)
{
    struct right_set *rights = user;

    for (unsigned i = 0; i < RIGHTS; i++) {
        if (!strcmp(word, right_names[i])) {
            *rights->set |= 1u << i;
            return true;
        }
    }
    return wrong(rights->error, "may: %.40s is none of vm, profiler, hook, observer, revoke", word);
}

static bool set_rights(const struct key *key, const char *text, void *at,
                       struct config_error *error)
{
    struct right_set rights = {at, error};

    (void)key;
    return each_word(text, add_right, &rights);
}

static bool (*const setters[])(const struct key *key, const char *text, void *at,
                               struct config_error *error) = {
    [VALUE_NUMBER] = set_number, [VALUE_FLAG] = set_flag,     [VALUE_SOCKET] = set_socket,
    [VALUE_PATH] = set_path,     [VALUE_WORD] = set_word,     [VALUE_UIDS] = set_uids,
    [VALUE_GIDS] = set_gids,     [VALUE_RIGHTS] = set_rights,
};

/* ---- Sections -------------------------------------------------------------------------------- */

static bool is_key(const struct key *keys, const char *name)
{
    while (keys->name && strcmp(keys->name, name) != 0)
        keys++;
    return keys->name;
}

static bool check_keys(GKeyFile *file, const char *section, const struct key *keys,
                       struct config_error *error)
{
    char **names = g_key_file_get_keys(file, section, NULL, NULL);
    bool good = true;

    for (char **name = names; good && name && *name; name++)
        if (!is_key(keys, *name))
            good = wrong(error, "[%.40s] has no key %.60s", section, *name);
    g_strfreev(names);
    return good;
}

static bool read_key(GKeyFile *file, const char *section, const struct key *key, void *into,
                     struct config_error *error)
{
    char *given = g_key_file_get_value(file, section, key->name, NULL);
    const char *text = given ? given : key->fallback;
    struct config_error inner = {""};
    bool good = !text || setters[key->value](key, text, (char *)into + key->at, &inner);

    g_free(given);
    return good || wrong(error, "[%.40s] %s", section, inner.text);
}

static bool read_section(GKeyFile *file, const char *section, const struct key *keys, void *into,
                         struct config_error *error)
{
    if (!check_keys(file, section, keys, error))
        return false;
    for (; keys->name; keys++)
        if (!read_key(file, section, keys, into, error))
            return false;
    return true;
}

static const char policy_prefix[] = "policy ";

static bool read_policy(GKeyFile *file, const char *section, struct config *config,
                        struct config_error *error)
{
    const char *name = section + strlen(policy_prefix);
    struct policy *policy;

    config->policies = g_renew(struct policy, config->policies, config->policy_count + 1);
    policy = &config->policies[config->policy_count++];
    memset(policy, 0, sizeof(*policy));
    if (g_strlcpy(policy->name, name, sizeof(policy->name)) >= sizeof(policy->name))
        return wrong(error, "[%.40s...]: a policy's name has at most %u bytes", section,
                     POLICY_NAME - 1);
    if (!read_section(file, section, policy_keys, policy, error))
        return false;
    if (!policy->uids.any && !policy->uids.count && !policy->gids.any && !policy->gids.count)
        return wrong(error, "[%.40s] names nobody: give it uid or gid", section);
    return policy->may || wrong(error, "[%.40s] allows nothing: give it may", section);
}

static bool is_section(const char *name)
{
    for (size_t i = 0; i < SECTIONS; i++)
        if (!strcmp(sections[i].name, name))
            return true;
    return false;
}

static bool read_policies(GKeyFile *file, struct config *config, struct config_error *error)
{
    char **groups = g_key_file_get_groups(file, NULL);
    bool good = true;

    for (char **group = groups; good && *group; group++) {
        if (g_str_has_prefix(*group, policy_prefix))
            good = read_policy(file, *group, config, error);
        else if (!is_section(*group))
            good = wrong(error, "[%.60s] is none of [daemon], [watch], [policy NAME]", *group);
    }
    g_strfreev(groups);
    return good;
}

static bool read_all(GKeyFile *file, struct config *config, struct config_error *error)
{
    for (size_t i = 0; i < SECTIONS; i++)
        if (!read_section(file, sections[i].name, sections[i].keys, config, error))
            return false;
    if (!read_policies(file, config, error))
        return false;
    return config->policy_count ||
           wrong(error, "there is no [policy NAME]: nobody could ask for anything");
}

struct config *config_parse(const char *text, size_t size, struct config_error *error)
{
    GKeyFile *file = g_key_file_new();
    struct config *config = g_new0(struct config, 1);
    GError *reason = NULL;
    bool good = false;

    if (memchr(text, '\0', size))
        wrong(error, "it has a NUL byte");
    else if (!g_key_file_load_from_data(file, text, size, G_KEY_FILE_NONE, &reason))
        wrong(error, "%.300s", reason->message);
    else
        good = read_all(file, config, error);
    g_clear_error(&reason);
    g_key_file_free(file);
    if (good)
        return config;
    config_free(config);
    return NULL;
}

struct config *config_load(const char *path, struct config_error *error)
{
    size_t size;
    char *text = vpmu_host_load_file(path, CONFIG_BYTES, &size);
    struct config *config = NULL;

    if (text)
        config = config_parse(text, size, error);
    else
        wrong(error, "%s", strerror(errno));
    free(text);
    return config;
}

void config_free(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->policy_count; i++) {
        g_free(config->policies[i].uids.list);
        g_free(config->policies[i].gids.list);
    }
    g_free(config->policies);
    g_free(config->socket);
    g_free(config->control);
    g_free(config->metrics);
    g_free(config->textfile);
    g_free(config->state);
    g_free(config->user);
    g_free(config);
}

/* ---- Following ------------------------------------------------------------------------------- */

static bool is_same(const struct key *key, const struct config *a, const struct config *b)
{
    const void *left = (const char *)a + key->at, *right = (const char *)b + key->at;

    if (key->value == VALUE_NUMBER || key->value == VALUE_FLAG)
        return *(const uint32_t *)left == *(const uint32_t *)right;
    return !g_strcmp0(*(char *const *)left, *(char *const *)right);
}

bool config_may_follow(const struct config *config, const struct config *next,
                       struct config_error *error)
{
    for (size_t i = 0; i < SECTIONS; i++)
        for (const struct key *key = sections[i].keys; key->name; key++)
            if (key->fixed && !is_same(key, config, next))
                return wrong(error, "[%s] %s cannot change without a restart", sections[i].name,
                             key->name);
    return true;
}
