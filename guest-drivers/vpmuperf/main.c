/* SPDX-License-Identifier: BSD-3-Clause */
/* vpmuperf: the virtual machine's hardware counters for Performance Monitor. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>

#include "install.h"
#include "manifest.h"
#include "provider.h"
#include "service.h"

static const char usage[] = "usage: vpmuperf COMMAND [OPTION...]\n"
                            "\n"
                            "  run        publish until Ctrl+C, and say what happens\n"
                            "  install    register the counter sets and the service\n"
                            "  uninstall  remove both\n"
                            "  manifest   print what install gives to lodctr\n"
                            "  service    for the service manager\n"
                            "\n"
                            "  --source driver|file:PATH   where the values come from (driver)\n"
                            "  --period MS                 between two looks, 10 to 60000 (1000)\n"
                            "  --seconds N                 with run: stop after so long\n";

enum { FAILED = 1, WRONG_USE = 2 };

static HANDLE stop_event;

static void say(const char *text)
{
    printf("vpmuperf: %s\n", text);
    fflush(stdout);
}

/* A service has no console; a debugger or DebugView shows this. */
static void say_to_debugger(const char *text)
{
    char line[220];

    snprintf(line, sizeof(line), "vpmuperf: %s\n", text);
    OutputDebugStringA(line);
}

static int misuse(const char *what, const WCHAR *argument)
{
    fprintf(stderr, "vpmuperf: %s%ls\n\n%s", what, argument ? argument : L"", usage);
    return WRONG_USE;
}

static BOOL WINAPI on_console(DWORD event)
{
    (void)event;
    return SetEvent(stop_event); /* Ctrl+C, a closed window: instances are deleted first */
}

/* --- Options
 * -------------------------------------------------------------------------------------- */

struct arguments {
    struct provider_options provider;
    char source[1024];
    WCHAR service[1024]; /* the options again, for the service */
};

static bool parse_number(const WCHAR *text, unsigned long least, unsigned long most, DWORD *number)
{
    WCHAR *end;
    unsigned long value = wcstoul(text, &end, 10);

    *number = value;
    return *text >= L'0' && *text <= L'9' && !*end && value >= least && value <= most;
}

static bool parse_source(struct arguments *arguments, const WCHAR *value)
{
    arguments->provider.source = arguments->source;
    return !wcschr(value, L'"') && WideCharToMultiByte(CP_ACP, 0, value, -1, arguments->source,
                                                       sizeof(arguments->source), NULL, NULL) != 0;
}

static bool parse_period(struct arguments *arguments, const WCHAR *value)
{
    return parse_number(value, 10, 60000, &arguments->provider.period_ms);
}

static bool parse_seconds(struct arguments *arguments, const WCHAR *value)
{
    bool good = parse_number(value, 1, 1000000, &arguments->provider.length_ms);

    arguments->provider.length_ms *= 1000;
    return good;
}

static const struct {
    const WCHAR *name;
    bool (*parse)(struct arguments *arguments, const WCHAR *value);
} options[] = {
    {L"--source", parse_source},
    {L"--period", parse_period},
    {L"--seconds", parse_seconds},
};

static bool parse_option(struct arguments *arguments, const WCHAR *name, const WCHAR *value)
{
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (wcscmp(options[i].name, name) == 0)
            return options[i].parse(arguments, value);
    }
    return false;
}

static bool keep_for_service(struct arguments *arguments, const WCHAR *name, const WCHAR *value)
{
    size_t used = wcslen(arguments->service);
    size_t room = sizeof(arguments->service) / sizeof(WCHAR) - used;
    int length = swprintf(arguments->service + used, room, L"%ls%ls \"%ls\"", used ? L" " : L"",
                          name, value);

    return length >= 0 && (size_t)length < room;
}

/* Returns NULL, or the argument that is wrong. */
static const WCHAR *parse(struct arguments *arguments, int argc, WCHAR **argv)
{
    for (int i = 0; i < argc; i += 2) {
        if (i + 1 == argc || !parse_option(arguments, argv[i], argv[i + 1]) ||
            !keep_for_service(arguments, argv[i], argv[i + 1]))
            return argv[i];
    }
    return NULL;
}

/* --- Commands
 * ------------------------------------------------------------------------------------- */

static int command_run(struct arguments *arguments)
{
    SetConsoleCtrlHandler(on_console, TRUE);
    return provider_run(&arguments->provider);
}

static int command_install(struct arguments *arguments)
{
    return install(arguments->service[0] ? arguments->service : NULL);
}

static int command_uninstall(struct arguments *arguments)
{
    (void)arguments;
    return uninstall();
}

static int command_manifest(struct arguments *arguments)
{
    (void)arguments;
    manifest_write(stdout, "vpmuperf.exe");
    return 0;
}

static int command_service(struct arguments *arguments)
{
    arguments->provider.say = say_to_debugger;
    return service_run(&arguments->provider);
}

static const struct {
    const WCHAR *name;
    int (*run)(struct arguments *arguments);
} commands[] = {
    {L"run", command_run},
    {L"install", command_install},
    {L"uninstall", command_uninstall},
    {L"manifest", command_manifest},
    {L"service", command_service},
};

int wmain(int argc, WCHAR **argv)
{
    static struct arguments arguments = {
        .provider = {.period_ms = 1000, .length_ms = INFINITE, .say = say}};
    const WCHAR *wrong;

    if (argc < 2 || wcscmp(argv[1], L"--help") == 0) {
        fputs(usage, argc < 2 ? stderr : stdout);
        return argc < 2 ? WRONG_USE : 0;
    }
    wrong = parse(&arguments, argc - 2, argv + 2);
    if (wrong)
        return misuse("not understood, or its value is wrong: ", wrong);
    stop_event = arguments.provider.stop = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (!stop_event)
        return FAILED;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (wcscmp(commands[i].name, argv[1]) == 0)
            return commands[i].run(&arguments);
    }
    return misuse("no such command: ", argv[1]);
}
