/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands between vpmuperf and the provider routines, linked in their place. It passes each call on
 * to Wine's routine and prints it; it fails calls as it is told; it refuses a second instance of
 * one name, as Microsoft documents it and Wine does not; and it is the consumer that Wine lacks: it
 * reads the instance blocks that Wine keeps.
 *
 * VPMU_DOUBLE="ROUTINE:N:ERROR ...": call N of a routine, from 1, gives this error; N 0: each call.
 * VPMU_DOUBLE_NULL=1: PerfSetCounterRefValue takes NULL, as documented.
 *
 * Commands, one a line on stdin, each answered with DONE:
 *   begin, read, end  a collection: the request, what a consumer gets, the request
 *   stop              Ctrl+C; so is the end of stdin
 */
#include <windows.h>

#include <perflib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest-drivers/vpmuperf/counters.h"

enum { COLLECT_START = 5, COLLECT_END = 6, UNKNOWN_REQUEST = 9 };

static struct {
    SRWLOCK lock; /* over blocks and counts */
    PERF_COUNTERSET_INSTANCE *blocks[64];
    PERFLIBREQUEST control;
    PHANDLER_ROUTINE on_console;
    HANDLE live;
} world = {.lock = SRWLOCK_INIT};

static FARPROC real(const char *name)
{
    FARPROC routine = GetProcAddress(LoadLibraryW(L"advapi32.dll"), name);

    if (!routine) {
        printf("BROKEN no %s\n", name);
        exit(99);
    }
    return routine;
}

/* --- Failing as told
 * ------------------------------------------------------------------------------ */

enum routine { START, SET_INFO, CREATE, DELETE_INSTANCE, REFER, STOP, ROUTINES };

static const char *const names[ROUTINES] = {
    [START] = "PerfStartProviderEx",    [SET_INFO] = "PerfSetCounterSetInfo",
    [CREATE] = "PerfCreateInstance",    [DELETE_INSTANCE] = "PerfDeleteInstance",
    [REFER] = "PerfSetCounterRefValue", [STOP] = "PerfStopProvider",
};

/* The error that the call about to be made is to give; 0: none. */
static ULONG told(enum routine routine)
{
    static ULONG calls[ROUTINES];
    const char *at = getenv("VPMU_DOUBLE");
    size_t length = strlen(names[routine]);
    char *rest;
    ULONG n;

    calls[routine]++;
    for (; at && *at; at = *rest ? rest + 1 : rest) {
        const char *colon = strchr(at, ':');
        n = strtoul(colon + 1, &rest, 10);
        ULONG error = strtoul(rest + 1, &rest, 10);
        if ((size_t)(colon - at) == length && strncmp(at, names[routine], length) == 0 &&
            (!n || n == calls[routine]))
            return error;
    }
    return 0;
}

static ULONG done(enum routine routine, ULONG error, const char *about)
{
    printf("CALL %s(%s) -> %lu\n", names[routine], about, error);
    fflush(stdout);
    return error;
}

static const struct counter_set *set_of(const GUID *guid)
{
    for (int i = 0; i < COUNTER_SETS; i++) {
        if (memcmp(&counter_sets[i].guid, guid, sizeof(*guid)) == 0)
            return &counter_sets[i];
    }
    return NULL;
}

static const WCHAR *name_of(const PERF_COUNTERSET_INSTANCE *block)
{
    return (const WCHAR *)((const char *)block + block->InstanceNameOffset);
}

/* --- The routines
 * --------------------------------------------------------------------------------- */

static ULONG WINAPI start_provider(LPGUID guid, PPERF_PROVIDER_CONTEXT context, HANDLE *provider)
{
    ULONG error = told(START);

    world.control = context->ControlCallback;
    if (!error)
        error = ((ULONG(WINAPI *)(LPGUID, PPERF_PROVIDER_CONTEXT, HANDLE *))(void *)real(
            names[START]))(guid, context, provider);
    if (!error)
        world.live = *provider;
    return done(START, error, "");
}

static ULONG WINAPI set_info(HANDLE provider, PPERF_COUNTERSET_INFO template, ULONG size)
{
    const struct counter_set *set = set_of(&template->CounterSetGuid);
    ULONG error = told(SET_INFO);

    if (!error)
        error = ((ULONG(WINAPI *)(HANDLE, PPERF_COUNTERSET_INFO, ULONG))(void *)real(
            names[SET_INFO]))(provider, template, size);
    return done(SET_INFO, error, set ? set->name : "?");
}

static PERF_COUNTERSET_INSTANCE **find_block(const GUID *guid, const WCHAR *name)
{
    for (int i = 0; i < 64; i++) {
        PERF_COUNTERSET_INSTANCE *block = world.blocks[i];
        if (name ? block && memcmp(&block->CounterSetGuid, guid, sizeof(*guid)) == 0 &&
                       wcscmp(name_of(block), name) == 0
                 : !block)
            return &world.blocks[i];
    }
    return NULL;
}

static PPERF_COUNTERSET_INSTANCE WINAPI create(HANDLE provider, LPCGUID guid, LPCWSTR name,
                                               ULONG id)
{
    PERF_COUNTERSET_INSTANCE *block = NULL;
    ULONG error = told(CREATE);
    char about[64];

    AcquireSRWLockExclusive(&world.lock);
    if (!error && find_block(guid, name))
        error = ERROR_ALREADY_EXISTS;
    if (!error) {
        block = ((PPERF_COUNTERSET_INSTANCE(WINAPI *)(HANDLE, LPCGUID, LPCWSTR, ULONG))(void *)real(
            names[CREATE]))(provider, guid, name, id);
        error = block ? 0 : GetLastError();
    }
    if (block)
        *find_block(guid, NULL) = block;
    ReleaseSRWLockExclusive(&world.lock);
    snprintf(about, sizeof(about), "%s, %ls, %lu", set_of(guid)->name, name, id);
    done(CREATE, error, about);
    SetLastError(error);
    return block;
}

static ULONG WINAPI delete_instance(HANDLE provider, PPERF_COUNTERSET_INSTANCE block)
{
    ULONG error = told(DELETE_INSTANCE);
    char about[64];

    snprintf(about, sizeof(about), "%s, %ls", set_of(&block->CounterSetGuid)->name, name_of(block));
    AcquireSRWLockExclusive(&world.lock);
    for (int i = 0; i < 64; i++) {
        if (world.blocks[i] == block)
            world.blocks[i] = NULL;
    }
    if (!error)
        error = ((ULONG(WINAPI *)(HANDLE, PPERF_COUNTERSET_INSTANCE))(void *)real(
            names[DELETE_INSTANCE]))(provider, block);
    ReleaseSRWLockExclusive(&world.lock);
    return done(DELETE_INSTANCE, error, about);
}

static ULONG slot_of(const struct counter_set *set, ULONG counter)
{
    ULONG slot = 0;

    while (slot < set->count && set->rows[slot].id != counter)
        slot++;
    return slot;
}

static ULONG WINAPI refer(HANDLE provider, PPERF_COUNTERSET_INSTANCE block, ULONG counter,
                          PVOID address)
{
    const struct counter_set *set = set_of(&block->CounterSetGuid);
    ULONG error = told(REFER);
    char about[64];

    if (!error && !address && getenv("VPMU_DOUBLE_NULL"))
        ((void **)(block + 1))[slot_of(set, counter)] = NULL;
    else if (!error)
        error = ((ULONG(WINAPI *)(HANDLE, PPERF_COUNTERSET_INSTANCE, ULONG, PVOID))(void *)real(
            names[REFER]))(provider, block, counter, address);
    snprintf(about, sizeof(about), "%s, %ls, %lu%s", set->name, name_of(block), counter,
             address ? "" : ", NULL");
    return done(REFER, error, about);
}

static ULONG WINAPI stop_provider(HANDLE provider)
{
    ULONG error = told(STOP), left = 0;
    char about[32];

    for (int i = 0; i < 64; i++)
        left += world.blocks[i] != NULL;
    snprintf(about, sizeof(about), "%s, %lu instances left",
             provider == world.live ? "live" : "not live", left);
    if (provider == world.live && !error)
        error = ((ULONG(WINAPI *)(HANDLE))(void *)real(names[STOP]))(provider);
    world.live = NULL;
    return done(STOP, error, about);
}

/* --- The consumer
 * --------------------------------------------------------------------------------- */

static void print_block(const PERF_COUNTERSET_INSTANCE *block)
{
    const struct counter_set *set = set_of(&block->CounterSetGuid);
    uint64_t *const *slots = (uint64_t *const *)(block + 1);

    printf("DATA %s|%ls", set->name, name_of(block));
    for (ULONG i = 0; i < set->count; i++) {
        if (slots[i])
            printf("|%s=%llu", set->rows[i].symbol, (unsigned long long)*slots[i]);
    }
    printf("\n");
}

static void print_blocks(void)
{
    AcquireSRWLockShared(&world.lock);
    for (int i = 0; i < 64; i++) {
        if (world.blocks[i])
            print_block(world.blocks[i]);
    }
    ReleaseSRWLockShared(&world.lock);
}

static bool obey(const char *command)
{
    if (strcmp(command, "begin\n") == 0)
        printf("CONTROL %lu\n", world.control(COLLECT_START, NULL, 0));
    else if (strcmp(command, "end\n") == 0)
        printf("CONTROL %lu\n", world.control(COLLECT_END, NULL, 0));
    else if (strcmp(command, "unknown\n") == 0)
        printf("CONTROL %lu\n", world.control(UNKNOWN_REQUEST, NULL, 0));
    else if (strcmp(command, "read\n") == 0)
        print_blocks();
    else
        return false;
    printf("DONE\n");
    fflush(stdout);
    return true;
}

static DWORD WINAPI consume(void *argument)
{
    char command[32];

    (void)argument;
    while (fgets(command, sizeof(command), stdin) && obey(command))
        ;
    world.on_console(CTRL_C_EVENT);
    return 0;
}

static BOOL WINAPI set_console_handler(PHANDLER_ROUTINE handler, BOOL add)
{
    (void)add;
    world.on_console = handler;
    CloseHandle(CreateThread(NULL, 0, consume, NULL, 0, NULL));
    return TRUE;
}

/* What the linker takes in place of the import library's. */
void *const __imp_PerfStartProviderEx = (void *)start_provider;
void *const __imp_PerfSetCounterSetInfo = (void *)set_info;
void *const __imp_PerfCreateInstance = (void *)create;
void *const __imp_PerfDeleteInstance = (void *)delete_instance;
void *const __imp_PerfSetCounterRefValue = (void *)refer;
void *const __imp_PerfStopProvider = (void *)stop_provider;
void *const __imp_SetConsoleCtrlHandler = (void *)set_console_handler;
