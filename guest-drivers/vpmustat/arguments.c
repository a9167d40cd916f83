/* SPDX-License-Identifier: BSD-3-Clause */
#include "arguments.h"

#include <stdlib.h>
#include <string.h>

static int refuse(struct arguments *arguments, const char *error, const char *culprit)
{
    arguments->error = error;
    arguments->culprit = culprit;
    return -1;
}

static int parse_events(struct arguments *arguments, const char *text)
{
    arguments->events = 0;
    while (true) {
        size_t length = strcspn(text, ",");
        uint32_t event = source_event_by_name(text, length);

        if (event == VPMU_NONE)
            return refuse(arguments, "no such event", text);
        arguments->events |= 1u << event;
        if (!text[length])
            return 0;
        text += length + 1;
    }
}

static int parse_number(struct arguments *arguments, const char *text, uint32_t most,
                        uint32_t *number)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || value > most)
        return refuse(arguments, "not a number in range", text);
    *number = (uint32_t)value;
    return 0;
}

static int parse_format(struct arguments *arguments, const char *text)
{
    static const char *const names[] = {"text", "csv", "json"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            arguments->format = (enum report_format)i;
            return 0;
        }
    }
    return refuse(arguments, "a format is text, csv or json", text);
}

/* Options with a value. Returns 1 where this is none of them. */
static int parse_valued(struct arguments *arguments, const char *option, const char *value)
{
    if (strcmp(option, "-e") == 0)
        return parse_events(arguments, value);
    if (strcmp(option, "-o") == 0)
        return parse_format(arguments, value);
    if (strcmp(option, "-C") == 0)
        return parse_number(arguments, value, ARGUMENTS_PROCESSOR_MAX, &arguments->processor);
    if (strcmp(option, "-i") == 0)
        return parse_number(arguments, value, 3600, &arguments->seconds);
    if (strcmp(option, "--source") == 0)
        arguments->source = value;
    else if (strcmp(option, "--perflib") == 0)
        arguments->perflib = value;
    else
        return 1;
    return 0;
}

/* Options without. Returns whether this is one of them. */
static bool parse_plain(struct arguments *arguments, const char *option)
{
    if (strcmp(option, "-a") == 0)
        arguments->everywhere = true;
    else if (strcmp(option, "-A") == 0)
        arguments->apart = true;
    else if (strcmp(option, "-u") == 0)
        arguments->modes |= VPMU_COUNT_USER;
    else if (strcmp(option, "-k") == 0)
        arguments->modes |= VPMU_COUNT_KERNEL;
    else if (strcmp(option, "-h") == 0 || strcmp(option, "--help") == 0)
        arguments->command = COMMAND_HELP;
    else if (strcmp(option, "--version") == 0)
        arguments->command = COMMAND_VERSION;
    else
        return false;
    return true;
}

static int parse_word(struct arguments *arguments, char *word, bool *has_command)
{
    static const char *const names[] = {
        [COMMAND_LIST] = "list",
        [COMMAND_SETS] = "sets",
        [COMMAND_QUERY] = "query",
        [COMMAND_SELFTEST] = "selftest",
    };

    if (*has_command && arguments->command == COMMAND_QUERY && !arguments->query) {
        arguments->query = word;
        return 0;
    }
    for (unsigned i = COMMAND_LIST; !*has_command && i <= COMMAND_SELFTEST; i++) {
        if (strcmp(word, names[i]) == 0) {
            arguments->command = (enum command)i;
            *has_command = true;
            return 0;
        }
    }
    return refuse(arguments, *has_command ? "too much" : "no such command; a program follows --",
                  word);
}

static int check(struct arguments *arguments, bool has_command)
{
    if (arguments->command == COMMAND_HELP || arguments->command == COMMAND_VERSION)
        return 0;
    if (arguments->program && has_command)
        return refuse(arguments, "this command runs no program", arguments->program[0]);
    if (!has_command && (!arguments->program || !arguments->program[0]))
        return refuse(arguments, "a command, or -- and a program, is missing", "");
    if (arguments->command == COMMAND_QUERY && !arguments->query)
        return refuse(arguments, "query needs SET[(INSTANCE)][\\COUNTER]", "");
    if (!arguments->modes)
        arguments->modes =
            arguments->everywhere ? VPMU_COUNT_USER | VPMU_COUNT_KERNEL : VPMU_COUNT_USER;
    return 0;
}

#define DEFAULT_EVENTS                                                                             \
    (1u << VPMU_EVENT_INSTRUCTIONS | 1u << VPMU_EVENT_CYCLES | 1u << VPMU_EVENT_BRANCHES |         \
     1u << VPMU_EVENT_BRANCH_MISSES)

int arguments_parse(int argc, char **argv, struct arguments *arguments)
{
    bool has_command = false;

    *arguments = (struct arguments){.command = COMMAND_COUNT, .events = DEFAULT_EVENTS};
    for (int i = 1; i < argc; i++) {
        int result = 1;

        if (strcmp(argv[i], "--") == 0) {
            arguments->program = argv + i + 1;
            break;
        }
        if (argv[i][0] != '-') {
            if (parse_word(arguments, argv[i], &has_command) < 0)
                return -1;
            continue;
        }
        if (parse_plain(arguments, argv[i]))
            continue;
        result = parse_valued(arguments, argv[i], i + 1 < argc ? argv[i + 1] : "");
        if (result > 0)
            return refuse(arguments, "no such option", argv[i]);
        if (i + 1 == argc)
            return refuse(arguments, "a value is missing behind", argv[i]);
        if (result < 0)
            return -1;
        i++;
    }
    return check(arguments, has_command);
}

static int put(char *to, const char *from, size_t length)
{
    if (length >= QUERY_PART)
        return -1;
    memcpy(to, from, length);
    to[length] = 0;
    return 0;
}

/* Where an instance that begins at text ends: its ")" is the last character, or "\" follows. */
static const char *instance_end(const char *text)
{
    const char *end = strstr(text, ")\\");
    size_t length = strlen(text);

    if (end)
        return end;
    return length && text[length - 1] == ')' ? text + length - 1 : NULL;
}

int query_path_parse(const char *text, struct query_path *path)
{
    const char *rest;

    *path = (struct query_path){0};
    text += *text == '\\';
    rest = text + strcspn(text, "(\\");
    if (rest == text || put(path->set, text, (size_t)(rest - text)) < 0)
        return -1;
    if (*rest == '(') {
        const char *end = instance_end(rest + 1);
        if (!end || end == rest + 1 || put(path->instance, rest + 1, (size_t)(end - rest - 1)) < 0)
            return -1;
        rest = end + 1;
    }
    if (!*rest)
        return 0;
    return *rest == '\\' && rest[1] ? put(path->counter, rest + 1, strlen(rest + 1)) : -1;
}
