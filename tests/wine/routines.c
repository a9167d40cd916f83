/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider routines of the system that this runs on, against what is documented of them and
 * what conformance tests expect of Windows. Prints a line for each fact: PASS or FAIL, and where
 * Wine is known to differ, what it answers.
 */
#include <windows.h>

#include <perflib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest-drivers/vpmuperf/counters.h"

#define AT(type, field, offset)                                                                    \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field " is not at " #offset)
#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " has not " #size " bytes")

/* The x64 layouts that the routines take. */
SIZE(PERF_COUNTERSET_INFO, 40);
AT(PERF_COUNTERSET_INFO, CounterSetGuid, 0);
AT(PERF_COUNTERSET_INFO, ProviderGuid, 16);
AT(PERF_COUNTERSET_INFO, NumCounters, 32);
AT(PERF_COUNTERSET_INFO, InstanceType, 36);
SIZE(PERF_COUNTER_INFO, 32);
AT(PERF_COUNTER_INFO, CounterId, 0);
AT(PERF_COUNTER_INFO, Type, 4);
AT(PERF_COUNTER_INFO, Attrib, 8);
AT(PERF_COUNTER_INFO, Size, 16);
AT(PERF_COUNTER_INFO, DetailLevel, 20);
AT(PERF_COUNTER_INFO, Scale, 24);
AT(PERF_COUNTER_INFO, Offset, 28);
SIZE(PERF_COUNTERSET_INSTANCE, 32);
AT(PERF_COUNTERSET_INSTANCE, CounterSetGuid, 0);
AT(PERF_COUNTERSET_INSTANCE, dwSize, 16);
AT(PERF_COUNTERSET_INSTANCE, InstanceId, 20);
AT(PERF_COUNTERSET_INSTANCE, InstanceNameOffset, 24);
AT(PERF_COUNTERSET_INSTANCE, InstanceNameSize, 28);
SIZE(PERF_PROVIDER_CONTEXT, 40);
AT(PERF_PROVIDER_CONTEXT, ContextSize, 0);
AT(PERF_PROVIDER_CONTEXT, Reserved, 4);
AT(PERF_PROVIDER_CONTEXT, ControlCallback, 8);
AT(PERF_PROVIDER_CONTEXT, MemAllocRoutine, 16);
AT(PERF_PROVIDER_CONTEXT, MemFreeRoutine, 24);
AT(PERF_PROVIDER_CONTEXT, pMemContext, 32);

static HANDLE provider;
static const GUID provider_guid = {0x1d9ef0a1, 0x31f5, 0x4a55, {1, 2, 3, 4, 5, 6, 7, 8}};
static const GUID set_guid = {0x1d9ef0a2, 0x31f5, 0x4a55, {1, 2, 3, 4, 5, 6, 7, 8}};
static const GUID other_guid = {0x1d9ef0a3, 0x31f5, 0x4a55, {1, 2, 3, 4, 5, 6, 7, 8}};

static struct {
    PERF_COUNTERSET_INFO head;
    PERF_COUNTER_INFO counters[3];
} template;

static void fact(const char *name, bool good)
{
    printf("%s %s\n", good ? "PASS" : "FAIL", name);
}

static void equal(const char *name, ULONG got, ULONG want)
{
    if (got == want)
        printf("PASS %s\n", name);
    else
        printf("FAIL %s: got %lu, want %lu\n", name, got, want);
}

/* What Wine and Windows do differently: both are named, anything else fails. */
static void documented(const char *name, ULONG got, ULONG want, ULONG wine)
{
    if (got == wine && got != want)
        printf("PASS %s: Wine's own %lu, by the documents %lu\n", name, got, want);
    else
        equal(name, got, want);
}

static void fill_template(ULONG attribute)
{
    memset(&template, 0, sizeof(template));
    template.head.CounterSetGuid = set_guid;
    template.head.ProviderGuid = provider_guid;
    template.head.NumCounters = 3;
    template.head.InstanceType = COUNTER_MULTIPLE;
    for (ULONG i = 0; i < 3; i++)
        template.counters[i] = (PERF_COUNTER_INFO){
            .CounterId = i + 1,
            .Type = COUNTER_RATE,
            .Attrib = attribute,
            .Size = sizeof(PERF_COUNTER_INFO),
            .DetailLevel = 100,
            .Offset = 0xdeadbeef, /* does not matter: slots are 32 + 8 i */
        };
}

static void check_start(void)
{
    PERF_PROVIDER_CONTEXT context = {.ContextSize = sizeof(context)};
    struct {
        PERF_PROVIDER_CONTEXT context;
        char more[64];
    } large = {.context = {.ContextSize = sizeof(large)}};
    GUID guid = provider_guid;
    HANDLE second = NULL;

    equal("PerfStartProvider: no GUID", PerfStartProvider(NULL, NULL, &second), 87);
    equal("PerfStartProvider: no place for the handle", PerfStartProvider(&guid, NULL, NULL), 87);
    equal("PerfStartProvider: starts", PerfStartProvider(&guid, NULL, &second), 0);
    fact("PerfStartProvider: gives a handle", second != NULL);
    equal("PerfStartProviderEx: no GUID", PerfStartProviderEx(NULL, &context, &provider), 87);
    equal("PerfStartProviderEx: no place for the handle",
          PerfStartProviderEx(&guid, &context, NULL), 87);
    context.ContextSize = 0;
    equal("PerfStartProviderEx: ContextSize 0", PerfStartProviderEx(&guid, &context, &provider),
          87);
    context.ContextSize = sizeof(context);
    equal("PerfStartProviderEx: the same GUID a second time",
          PerfStartProviderEx(&guid, &context, &provider), 0);
    fact("PerfStartProviderEx: gives another handle", provider != NULL && provider != second);
    equal("PerfStopProvider: stops", PerfStopProvider(second), 0);
    equal("PerfStartProviderEx: a larger context",
          PerfStartProviderEx(&guid, &large.context, &second), 0);
    equal("PerfStopProvider: stops the second", PerfStopProvider(second), 0);
}

static void check_sets(void)
{
    fill_template(1);
    template.head.NumCounters = 0;
    equal("PerfSetCounterSetInfo: NumCounters 0",
          PerfSetCounterSetInfo(provider, &template.head, sizeof(template)), 87);
    fill_template(1);
    equal("PerfSetCounterSetInfo: too short for its counters",
          PerfSetCounterSetInfo(provider, &template.head, sizeof(template) - 1), 87);
    equal("PerfSetCounterSetInfo: no template", PerfSetCounterSetInfo(provider, NULL, 0), 87);
    equal("PerfSetCounterSetInfo: registers",
          PerfSetCounterSetInfo(provider, &template.head, sizeof(template)), 0);
    equal("PerfSetCounterSetInfo: the same set again",
          PerfSetCounterSetInfo(provider, &template.head, sizeof(template)), 183);
}

static ULONG create_error(const GUID *guid, const WCHAR *name, ULONG id)
{
    PERF_COUNTERSET_INSTANCE *block;

    SetLastError(0xdead);
    block = PerfCreateInstance(provider, guid, name, id);
    if (!block)
        return GetLastError();
    PerfDeleteInstance(provider, block);
    return 0;
}

static void check_block(const PERF_COUNTERSET_INSTANCE *block)
{
    const WCHAR *name = (const WCHAR *)((const char *)block + block->InstanceNameOffset);
    ULONG name_size = (ULONG)(sizeof(L"first"));

    fact("instance block: the set's GUID", memcmp(&block->CounterSetGuid, &set_guid, 16) == 0);
    equal("instance block: InstanceId", block->InstanceId, 11);
    equal("instance block: InstanceNameOffset", block->InstanceNameOffset, 32 + 8 * 3);
    equal("instance block: InstanceNameSize", block->InstanceNameSize, name_size);
    equal("instance block: dwSize is a multiple of 8", block->dwSize,
          (32 + 8 * 3 + name_size + 7) & ~7ul);
    fact("instance block: the name", wcscmp(name, L"first") == 0);
}

static PERF_COUNTERSET_INSTANCE *check_instances(void)
{
    PERF_COUNTERSET_INSTANCE *block;

    equal("PerfCreateInstance: no GUID", create_error(NULL, L"x", 1), 87);
    equal("PerfCreateInstance: no name", create_error(&set_guid, NULL, 1), 87);
    equal("PerfCreateInstance: no name of an unknown set", create_error(&other_guid, NULL, 1), 87);
    equal("PerfCreateInstance: unknown set", create_error(&other_guid, L"x", 1), 1168);
    block = PerfCreateInstance(provider, &set_guid, L"first", 11);
    fact("PerfCreateInstance: creates", block != NULL);
    if (!block)
        return NULL;
    check_block(block);
    equal("PerfCreateInstance: the id exists", create_error(&set_guid, L"second", 11), 183);
    documented("PerfCreateInstance: the name exists", create_error(&set_guid, L"first", 12), 183,
               0);
    equal("PerfCreateInstance: another id and name", create_error(&set_guid, L"second", 12), 0);
    equal("PerfCreateInstance: what was deleted can be made again",
          create_error(&set_guid, L"second", 12), 0);
    return block;
}

static void check_references(PERF_COUNTERSET_INSTANCE *block)
{
    static ULONGLONG value = 77;
    void **slots = (void **)(block + 1);

    fact("PerfSetCounterRefValue: slots begin empty", !slots[0] && !slots[1] && !slots[2]);
    equal("PerfSetCounterRefValue: sets", PerfSetCounterRefValue(provider, block, 2, &value), 0);
    fact("PerfSetCounterRefValue: slot i is at 32 + 8 i, whatever Offset says",
         slots[1] == &value && !slots[0] && !slots[2]);
    equal("PerfSetCounterRefValue: unknown counter",
          PerfSetCounterRefValue(provider, block, 9, &value), 1168);
    equal("PerfSetCounterRefValue: no instance", PerfSetCounterRefValue(provider, NULL, 2, &value),
          87);
    documented("PerfSetCounterRefValue: NULL takes the data away",
               PerfSetCounterRefValue(provider, block, 2, NULL), 0, 87);
}

/* What a system may lack; who needs one of them asks at run time. */
static void list_absent(void)
{
    static const char *const newer[] = {
        "PerfQueryInstance",
        "PerfSetULongCounterValue",
        "PerfSetULongLongCounterValue",
        "PerfIncrementULongCounterValue",
        "PerfIncrementULongLongCounterValue",
        "PerfDecrementULongCounterValue",
        "PerfDecrementULongLongCounterValue",
    };
    HMODULE advapi = GetModuleHandleW(L"advapi32.dll");

    for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
        printf("NOTE %s is %s here\n", newer[i],
               GetProcAddress(advapi, newer[i]) ? "there" : "absent");
}

int wmain(void)
{
    PERF_COUNTERSET_INSTANCE *block;

    check_start();
    check_sets();
    block = check_instances();
    if (block)
        check_references(block);
    equal("PerfDeleteInstance: no instance", PerfDeleteInstance(provider, NULL), 87);
    equal("PerfDeleteInstance: no provider", PerfDeleteInstance(NULL, block), 87);
    equal("PerfDeleteInstance: deletes", PerfDeleteInstance(provider, block), 0);
    equal("PerfStopProvider: stops the last", PerfStopProvider(provider), 0);
    list_absent();
    return 0;
}
