/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows. Routines that a system may lack are resolved at run time. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "system.h"

/* ---- Routines ---- */

/* A routine by its name, of whatever type: the target's size is a pointer's. */
static void find(HMODULE module, const char *name, void *routine)
{
    FARPROC found = module ? GetProcAddress(module, name) : NULL;

    memcpy(routine, &found, sizeof(found));
}

static wchar_t *to_wide(const char *text)
{
    size_t room = strlen(text) + 1;
    wchar_t *wide = calloc(room, sizeof(*wide));

    if (wide && perf_utf16(text, (uint8_t *)wide, room - 1) < 0) {
        free(wide);
        return NULL;
    }
    return wide;
}

void system_find_routines(const char *perflib, struct perf_routines *routines)
{
    HMODULE module = NULL;
    wchar_t *path = perflib ? to_wide(perflib) : NULL;

    if (path)
        module = LoadLibraryW(path);
    else if (!perflib)
        module = LoadLibraryExW(L"advapi32.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
    free(path);
    if (!module && perflib)
        fprintf(stderr, "vpmustat: cannot load %s (%lu)\n", perflib, GetLastError());
#define PERF_ROUTINE(name, parameters) find(module, #name, &routines->name);
#include "routines.def"
#undef PERF_ROUTINE
}

/* ---- Thread profiling: winbase.h, Windows 7 on; layouts of the documentation ---- */

struct hardware_counter_data {
    uint32_t type, reserved;
    uint64_t value;
};

struct performance_data {
    uint16_t size;
    uint8_t version; /* 1 */
    uint8_t counters;
    uint32_t switches;
    uint64_t wait_reasons;
    uint64_t cycles;
    uint32_t retries, reserved;
    struct hardware_counter_data counter[16];
};
_Static_assert(sizeof(struct performance_data) == 288, "PERFORMANCE_DATA");

#define READ_THREAD_COUNTERS 2u /* READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS */

struct profiling {
    DWORD(WINAPI *enable)(HANDLE thread, DWORD flags, DWORD64 counters, HANDLE *profiling);
    DWORD(WINAPI *disable)(HANDLE profiling);
    DWORD(WINAPI *read)(HANDLE profiling, DWORD flags, struct performance_data *data);
};

static const char *find_profiling(struct profiling *profiling)
{
    HMODULE kernel32 = GetModuleHandleW(L"kernel32.dll");

    find(kernel32, "EnableThreadProfiling", &profiling->enable);
    find(kernel32, "DisableThreadProfiling", &profiling->disable);
    find(kernel32, "ReadThreadProfilingData", &profiling->read);
    return !profiling->enable    ? "this system has no EnableThreadProfiling"
           : !profiling->disable ? "this system has no DisableThreadProfiling"
           : !profiling->read    ? "this system has no ReadThreadProfilingData"
                                 : NULL;
}

static uint32_t read_counter(const struct profiling *profiling, HANDLE handle, uint64_t *value)
{
    struct performance_data data = {.size = sizeof(data), .version = 1};
    DWORD error = profiling->read(handle, READ_THREAD_COUNTERS, &data);

    *value = data.counter[0].value;
    return error;
}

int system_profile_thread(void (*work)(void), uint64_t *counted, const char **what, uint32_t *error)
{
    struct profiling profiling;
    uint64_t before = 0, after = 0;
    HANDLE handle;

    *error = 0;
    *what = find_profiling(&profiling);
    if (*what)
        return -1;
    *what = "EnableThreadProfiling";
    *error = profiling.enable(GetCurrentThread(), 0, 1, &handle);
    if (*error)
        return -1;
    *what = "ReadThreadProfilingData";
    *error = read_counter(&profiling, handle, &before);
    work();
    if (!*error)
        *error = read_counter(&profiling, handle, &after);
    profiling.disable(handle);
    *counted = *error ? 0 : (uint32_t)(after - before); /* kept modulo 2^32 */
    return *error ? -1 : 0;
}

/* ---- A program ---- */

/* Where a line is written, or with to NULL only measured. */
struct line {
    char *to;
    size_t used;
};

static void put(struct line *line, char c, size_t times)
{
    for (; times; times--, line->used++) {
        if (line->to)
            line->to[line->used] = c;
    }
}

/* In quotes, as CommandLineToArgvW reads it back: a backslash counts only before a quote. */
static void put_quoted(struct line *line, const char *argument)
{
    put(line, '"', 1);
    while (*argument) {
        size_t slashes = strspn(argument, "\\");
        char next = argument[slashes];

        put(line, '\\', next && next != '"' ? slashes : 2 * slashes);
        if (next)
            put(line, '\\', next == '"');
        if (next)
            put(line, next, 1);
        argument += slashes + (next != 0);
    }
    put(line, '"', 1);
}

/* Without quotes where it can be: cmd.exe has rules of its own for them. */
static void put_arguments(struct line *line, char **program)
{
    for (char **argument = program; *argument; argument++) {
        put(line, ' ', argument != program);
        if (**argument && !strpbrk(*argument, " \t\n\v\"")) {
            for (const char *c = *argument; *c; c++)
                put(line, *c, 1);
        } else {
            put_quoted(line, *argument);
        }
    }
    put(line, 0, 1);
}

static wchar_t *command_line(char **program)
{
    struct line line = {0};
    wchar_t *wide;

    put_arguments(&line, program);
    line = (struct line){.to = malloc(line.used)};
    if (!line.to)
        return NULL;
    put_arguments(&line, program);
    wide = to_wide(line.to);
    free(line.to);
    return wide;
}

/* A program starts with the affinity of who starts it. Returns the mask from before, 0: failure. */
static DWORD_PTR bind_self(DWORD_PTR mask)
{
    DWORD_PTR before, all;

    if (!GetProcessAffinityMask(GetCurrentProcess(), &before, &all) ||
        !SetProcessAffinityMask(GetCurrentProcess(), mask))
        return 0;
    return before;
}

static BOOL start(char **program, PROCESS_INFORMATION *process)
{
    STARTUPINFOW startup = {.cb = sizeof(startup)};
    wchar_t *line = command_line(program);
    BOOL started =
        line && CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, process);

    free(line);
    return started;
}

int system_run(char **program, uint32_t processor, int *status, const char **error)
{
    PROCESS_INFORMATION process;
    DWORD_PTR before = 0;
    DWORD code = 1;
    BOOL started;

    *error = "vpmustat cannot be bound to the processor";
    if (processor != SYSTEM_ANYWHERE) {
        before = bind_self((DWORD_PTR)1 << processor);
        if (!before)
            return -1;
    }
    *error = "the program cannot be started";
    started = start(program, &process);
    if (before)
        SetProcessAffinityMask(GetCurrentProcess(), before);
    if (!started)
        return -1;
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    CloseHandle(process.hThread);
    CloseHandle(process.hProcess);
    *status = (int)code;
    return 0;
}

uint64_t system_now_ns(void)
{
    LARGE_INTEGER now, frequency;

    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    return (uint64_t)((double)now.QuadPart * 1e9 / (double)frequency.QuadPart);
}

void system_sleep_ms(uint32_t ms)
{
    Sleep(ms);
}
