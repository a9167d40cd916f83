// SPDX-License-Identifier: BSD-3-Clause
/* The kernel's small formats. Pure, and safe against any text. */
#include "host_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vpmu/utf8.h"

/* Where attr.type does not name a PMU of a processor: linux/perf_event.h, enum perf_type_id. */
#define PERF_HARDWARE 0u
#define PERF_HW_CACHE 3u
#define PERF_RAW 4u

/* ---- Numbers and facts ---- */

/* Reads digits; the text after them, or NULL if there is none or it is above most. */
static const char *read_digits(const char *text, uint64_t most, uint64_t *number)
{
    uint64_t value = 0;

    if (!isdigit((unsigned char)*text))
        return NULL;
    for (; isdigit((unsigned char)*text); text++) {
        const uint64_t digit = (uint64_t)(*text - '0');
        if (value > (most - digit) / 10 || digit > most)
            return NULL;
        value = value * 10 + digit;
    }
    *number = value;
    return text;
}

static bool at_end(const char *text)
{
    return !*text || (text[0] == '\n' && !text[1]);
}

int host_parse_number(const char *text, int64_t least, int64_t most, int64_t *number)
{
    const bool negative = *text == '-';
    uint64_t value;
    const char *end = read_digits(text + negative, INT64_MAX, &value);

    if (!end || !at_end(end))
        return -1;
    const int64_t with_sign = negative ? -(int64_t)value : (int64_t)value;

    if (with_sign < least || with_sign > most)
        return -1;
    *number = with_sign;
    return 0;
}

enum vpmu_fact host_parse_fact(const char *text)
{
    if (!*text || !at_end(text + 1))
        return VPMU_FACT_UNKNOWN;
    if (*text == 'Y' || *text == 'y' || *text == '1')
        return VPMU_FACT_YES;
    if (*text == 'N' || *text == 'n' || *text == '0')
        return VPMU_FACT_NO;
    return VPMU_FACT_UNKNOWN;
}

/* ---- Lists of processors ---- */

uint32_t host_set_count(const struct host_set *set)
{
    for (uint32_t w = HOST_SET_WORDS; w--;)
        if (set->words[w])
            return w * 64 + 64 - (uint32_t)__builtin_clzll(set->words[w]);
    return 0;
}

/* "3" or "0-3"; the text after it, or NULL. */
static const char *read_range(const char *text, uint64_t most, uint64_t *first, uint64_t *last)
{
    text = read_digits(text, most, first);
    if (!text)
        return NULL;
    *last = *first;
    if (*text != '-')
        return text;
    text = read_digits(text + 1, most, last);
    return text && *last >= *first ? text : NULL;
}

int vpmu_host_parse_list(const char *text, uint32_t limit, uint64_t *words)
{
    memset(words, 0, (limit + 63) / 64 * sizeof(*words));
    if (at_end(text))
        return 0;
    if (!limit)
        return -1;
    for (;;) {
        uint64_t first, last;

        text = read_range(text, limit - 1, &first, &last);
        if (!text)
            return -1;
        for (uint64_t p = first; p <= last; p++)
            words[p / 64] |= UINT64_C(1) << p % 64;
        if (*text != ',')
            return at_end(text) ? 0 : -1;
        text++;
    }
}

void vpmu_host_write_list(const uint64_t *words, uint32_t count, char *text, size_t size)
{
    const uint32_t limit = count * 64;
    size_t length = 0;

    text[0] = '\0';
    for (uint32_t p = 0; p < limit; p++) {
        char range[32];
        uint32_t last = p;

        if (!host_set_has(words, count, p))
            continue;
        while (host_set_has(words, count, last + 1))
            last++;
        if (last > p)
            snprintf(range, sizeof(range), "%s%u-%u", length ? "," : "", p, last);
        else
            snprintf(range, sizeof(range), "%s%u", length ? "," : "", p);
        if (length + strlen(range) + sizeof(",...") > size) {
            snprintf(text + length, size - length, "%s...", length ? "," : "");
            return;
        }
        length += (size_t)snprintf(text + length, size - length, "%s", range);
        p = last;
    }
}

/* ---- Text for people ---- */

void host_copy_printable(char *to, size_t size, const char *text)
{
    size_t at = 0;

    for (size_t left = strlen(text); left;) {
        const size_t length = vpmu_utf8_length(text, left);
        const size_t step = length ? length : 1;

        if (at + step >= size)
            break;
        if (length)
            memcpy(to + at, text, length);
        else
            to[at] = '?';
        at += step;
        text += step;
        left -= step;
    }
    to[at] = '\0';
}

bool host_parse_uuid(const char *text, uint8_t uuid[16])
{
    size_t digits = 0;

    for (; *text; text++) {
        static const char hex[] = "0123456789abcdef";
        const char *digit = strchr(hex, tolower((unsigned char)*text));

        if (*text == '-')
            continue;
        if (!digit || digits == 32)
            return false;
        uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | (digit - hex));
        digits++;
    }
    return digits == 32;
}

/* ---- /proc ---- */

int host_parse_stat(const char *text, char *name, size_t size, uint32_t *parent)
{
    /* The name is in the first and last parenthesis and may have any others: proc_pid_stat(5). */
    const char *start = strchr(text, '('), *end = strrchr(text, ')');
    char command[VPMU_HOST_NAME];
    uint64_t number;

    if (!start || !end || end < start)
        return -1;
    const size_t length = (size_t)(end - start) - 1;

    snprintf(command, sizeof(command), "%.*s", (int)(length < 63 ? length : 63), start + 1);
    host_copy_printable(name, size, command);
    /* ") S PARENT " */
    if (end[1] != ' ' || !end[2] || end[3] != ' ' || !read_digits(end + 4, UINT32_MAX, &number))
        return -1;
    *parent = (uint32_t)number;
    return 0;
}

enum vpmu_fact host_parse_fdinfo(const char *text, const struct vpmu_host *host)
{
    /* The first is Linux 7.3's, the second was proposed before (Chun-Tse Shao on the kernel's list,
     * 2024). */
    static const char *const keys[] = {"perf_event_attr.type:", "perf_event-attr.type:"};
    uint64_t type;

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        for (size_t i = 0; i < HOST_ROWS(keys); i++) {
            const size_t length = strlen(keys[i]);

            if (strncmp(line, keys[i], length) != 0)
                continue;
            line += length + strspn(line + length, " \t");
            if (!read_digits(line, UINT32_MAX, &type))
                return VPMU_FACT_UNKNOWN;
            if (type == PERF_HARDWARE || type == PERF_HW_CACHE || type == PERF_RAW)
                return VPMU_FACT_YES;
            for (uint32_t t = 0; t < host->core_type_count; t++)
                if (host->core_types[t].pmu[0] && host->core_types[t].perf_type == type)
                    return VPMU_FACT_YES;
            return VPMU_FACT_NO;
        }
    }
    return VPMU_FACT_UNKNOWN;
}

/* Whether one of the comma-separated properties of a word is this. */
static bool has_property(const char *word, const char *property)
{
    const size_t length = strlen(property);

    for (const char *at = word; (at = strstr(at, property)); at += length)
        if ((at == word || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

void host_parse_cmdline(const char *text, size_t size, struct vpmu_host_vm *vm)
{
    static const struct {
        const char *property;
        size_t field;
        enum vpmu_fact fact;
    } rows[] = {
        {"pmu=on", offsetof(struct vpmu_host_vm, pmu), VPMU_FACT_YES},
        {"+pmu", offsetof(struct vpmu_host_vm, pmu), VPMU_FACT_YES},
        {"pmu=off", offsetof(struct vpmu_host_vm, pmu), VPMU_FACT_NO},
        {"-pmu", offsetof(struct vpmu_host_vm, pmu), VPMU_FACT_NO},
        {"kernel-irqchip=off", offsetof(struct vpmu_host_vm, apic), VPMU_FACT_NO},
        {"kernel_irqchip=off", offsetof(struct vpmu_host_vm, apic), VPMU_FACT_NO},
        {"kernel-irqchip=on", offsetof(struct vpmu_host_vm, apic), VPMU_FACT_YES},
        {"kernel-irqchip=split", offsetof(struct vpmu_host_vm, apic), VPMU_FACT_YES},
    };

    for (size_t at = 0; at < size; at += strnlen(text + at, size - at) + 1) {
        char word[256];

        snprintf(word, sizeof(word), "%.*s", (int)strnlen(text + at, size - at), text + at);
        for (size_t i = 0; i < HOST_ROWS(rows); i++)
            if (has_property(word, rows[i].property))
                memcpy((char *)vm + rows[i].field, &rows[i].fact, sizeof(rows[i].fact));
    }
}

bool host_asks_for_mediated(const char *text)
{
    static const char name[] = "enable_mediated_pmu=";
    bool asked = false;

    for (const char *at = text; (at = strstr(at, name));) {
        const char *line = at;

        at += sizeof(name) - 1;
        while (line > text && line[-1] != '\n')
            line--;
        line += strspn(line, " \t");
        if (*line != '#')
            asked = *at == '1' || *at == 'Y' || *at == 'y';
    }
    return asked;
}
