/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider.h"

#include <perflib.h>
#include <stdio.h>
#include <winperf.h>

#include "sync.h"

/* perflib.h of mingw-w64 lacks these; values of Microsoft's perflib.h. */
enum { ATTRIB_BY_REFERENCE = 1, ATTRIB_NO_DISPLAYABLE = 2 };
enum {
    REQUEST_ADD_COUNTER = 1,
    REQUEST_REMOVE_COUNTER = 2,
    REQUEST_ENUM_INSTANCES = 3,
    REQUEST_COLLECT_START = 5,
    REQUEST_COLLECT_END = 6,
};

/* A look costs a request for each processor: consumers that come together share one. */
#define FRESH_MS 10
/* A collection that never ends does not hold the values for ever. */
#define COLLECTION_MS 10000

_Static_assert(sizeof(struct counter_guid) == sizeof(GUID), "GUID");
_Static_assert(sizeof(PERF_COUNTERSET_INFO) == 40 && sizeof(PERF_COUNTER_INFO) == 32,
               "what PerfSetCounterSetInfo takes");
_Static_assert(sizeof(PERF_COUNTERSET_INSTANCE) == 32, "an instance block's head");
_Static_assert(sizeof(PERF_PROVIDER_CONTEXT) == 40, "what PerfStartProviderEx takes");
_Static_assert(COUNTER_NUMBER == PERF_COUNTER_LARGE_RAWCOUNT &&
                   COUNTER_RATE == PERF_COUNTER_BULK_COUNT &&
                   COUNTER_FRACTION == PERF_LARGE_RAW_FRACTION &&
                   COUNTER_BASE == PERF_LARGE_RAW_BASE,
               "counter types of winperf.h");

/* The one provider of this process: perflib's callback carries no context. */
static struct {
    const struct provider_options *options;
    struct source *source;
    struct publish publish;
    HANDLE handle; /* NULL: not started, or stopped */
    SRWLOCK lock;  /* over all below, and over the calls of perflib */
    ULONGLONG looked;
    ULONGLONG collecting; /* since when a consumer reads; 0: nobody does */
    bool failing;
    uint32_t instances, values; /* as last said */
} provider = {.lock = SRWLOCK_INIT};

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    char text[200];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    provider.options->say(text);
}

/* --- perflib's routines
 * --------------------------------------------------------------------------- */

static void fill_counter(PERF_COUNTER_INFO *info, const struct counter_row *row, ULONG slot)
{
    *info = (PERF_COUNTER_INFO){
        .CounterId = row->id,
        .Type = row->type,
        .Attrib = ATTRIB_BY_REFERENCE | (row->type == COUNTER_BASE ? ATTRIB_NO_DISPLAYABLE : 0),
        .Size = sizeof(PERF_COUNTER_INFO),
        .DetailLevel = PERF_DETAIL_NOVICE,
        .Scale = row->scale,
        .Offset = (ULONG)(sizeof(PERF_COUNTERSET_INSTANCE) + slot * sizeof(ULONGLONG)),
    };
}

static uint32_t add_set(void *context, enum counter_set_id id)
{
    const struct counter_set *set = &counter_sets[id];
    struct {
        PERF_COUNTERSET_INFO head;
        PERF_COUNTER_INFO counters[COUNTER_MAX_SLOTS];
    } template = {.head = {.NumCounters = set->count, .InstanceType = set->instances}};

    (void)context;
    memcpy(&template.head.CounterSetGuid, &set->guid, sizeof(GUID));
    memcpy(&template.head.ProviderGuid, &counter_provider, sizeof(GUID));
    for (ULONG i = 0; i < set->count; i++)
        fill_counter(&template.counters[i], &set->rows[i], i);
    return PerfSetCounterSetInfo(
        provider.handle, &template.head,
        (ULONG)(sizeof(template.head) + set->count * sizeof(PERF_COUNTER_INFO)));
}

static uint32_t create_instance(void *context, enum counter_set_id set, const char *name,
                                uint32_t id, void **instance)
{
    GUID guid;
    WCHAR wide[sizeof(((struct publish_item *)0)->name)];
    size_t i = 0;

    (void)context;
    memcpy(&guid, &counter_sets[set].guid, sizeof(guid));
    do
        wide[i] = (WCHAR)name[i];
    while (name[i++]);
    SetLastError(ERROR_SUCCESS);
    *instance = PerfCreateInstance(provider.handle, &guid, wide, id);
    if (*instance)
        return 0;
    return GetLastError() ? GetLastError() : ERROR_GEN_FAILURE;
}

static uint32_t delete_instance(void *context, void *instance)
{
    (void)context;
    return PerfDeleteInstance(provider.handle, instance);
}

static uint32_t refer(void *context, void *instance, uint32_t counter, uint64_t *value)
{
    (void)context;
    return PerfSetCounterRefValue(provider.handle, instance, counter, value);
}

static void report(void *context, const char *text)
{
    (void)context;
    provider.options->say(text);
}

static const struct perflib perflib = {
    .add_set = add_set,
    .create = create_instance,
    .remove = delete_instance,
    .refer = refer,
    .report = report,
};

/* --- Looking
 * -------------------------------------------------------------------------------------- */

static void say_failure(bool failed)
{
    char text[100];

    if (failed && !provider.failing)
        say("no data: %s", source_error_text(&provider.source->error, text, sizeof(text)));
    if (!failed && provider.failing)
        say("the source answers again");
    provider.failing = failed;
}

static void say_change(void)
{
    uint32_t instances = 0, values = 0;

    for (uint32_t i = 0; i < provider.publish.count; i++) {
        const struct publish_item *item = provider.publish.items[i];
        instances += item->instance != NULL;
        values += (uint32_t)__builtin_popcount(item->referred);
    }
    if (instances != provider.instances || values != provider.values)
        say("%u instances, %u values", instances, values);
    provider.instances = instances;
    provider.values = values;
}

static int look(bool values_only)
{
    say_failure(publish_look(&provider.publish, provider.source) < 0);
    provider.looked = GetTickCount64();
    return sync_step(&perflib, &provider.publish, values_only);
}

static bool is_collecting(void)
{
    return provider.collecting && GetTickCount64() - provider.collecting < COLLECTION_MS;
}

static int tick(void)
{
    int result = 0;

    AcquireSRWLockExclusive(&provider.lock);
    if (!is_collecting()) {
        result = look(false);
        say_change();
    }
    ReleaseSRWLockExclusive(&provider.lock);
    return result;
}

/*
 * perflib asks before a consumer reads, so that it reads what is so now. perflib may hold a lock of
 * its own here: waiting for ours, whose holder may be waiting for that one, would be for ever. If
 * ours is taken, somebody is looking at this moment, and that is as good.
 */
static void collect(bool begins)
{
    if (!TryAcquireSRWLockExclusive(&provider.lock))
        return;
    if (provider.handle && begins && !is_collecting() &&
        GetTickCount64() - provider.looked >= FRESH_MS)
        look(true);
    provider.collecting = begins ? GetTickCount64() : 0;
    ReleaseSRWLockExclusive(&provider.lock);
}

static ULONG WINAPI control(ULONG request, PVOID buffer, ULONG size)
{
    (void)buffer;
    (void)size;
    switch (request) {
    case REQUEST_COLLECT_START:
    case REQUEST_COLLECT_END:
        collect(request == REQUEST_COLLECT_START);
        return ERROR_SUCCESS;
    case REQUEST_ADD_COUNTER:
    case REQUEST_REMOVE_COUNTER:
    case REQUEST_ENUM_INSTANCES:
        return ERROR_SUCCESS; /* everything is always there */
    default:
        return ERROR_CALL_NOT_IMPLEMENTED;
    }
}

/* --- From start to end
 * ---------------------------------------------------------------------------- */

static void say_source_error(const char *what, const struct source_error *error)
{
    char text[120];

    say("%s: %s", what, source_error_text(error, text, sizeof(text)));
}

/* Without a source there is no counter set at all: an empty one would look like a VM at rest. */
static int open_source(void)
{
    struct source_facts facts;
    struct source_error error;

    provider.source = source_open(provider.options->source, &error);
    if (provider.source && source_look(provider.source, &facts) < 0) {
        error = provider.source->error;
        source_close(provider.source);
        provider.source = NULL;
    }
    if (!provider.source)
        say_source_error("no counter set is published", &error);
    return provider.source ? 0 : -1;
}

static void take_counters(void)
{
    uint32_t placed;

    switch (source_take(provider.source, SOURCE_ALL_EVENTS, VPMU_COUNT_USER | VPMU_COUNT_KERNEL,
                        &placed)) {
    case 0:
        break;
    case 1:
        say("the counters have another owner: what that one counts is published");
        break;
    default:
        say_source_error("nothing is counted", &provider.source->error);
    }
}

static int start(void)
{
    PERF_PROVIDER_CONTEXT context = {.ContextSize = sizeof(context), .ControlCallback = control};
    GUID guid;
    ULONG error;

    memcpy(&guid, &counter_provider, sizeof(guid));
    error = PerfStartProviderEx(&guid, &context, &provider.handle);
    if (error) {
        provider.handle = NULL;
        say("perflib does not start the provider (error %lu)", error);
        return -1;
    }
    return sync_start(&perflib);
}

/* A second PerfStopProvider would crash the process. */
static void stop(void)
{
    HANDLE handle;

    AcquireSRWLockExclusive(&provider.lock);
    handle = provider.handle;
    if (handle)
        sync_stop(&perflib, &provider.publish);
    provider.handle = NULL;
    ReleaseSRWLockExclusive(&provider.lock);
    if (handle && PerfStopProvider(handle) != ERROR_SUCCESS)
        say("perflib does not stop the provider");
}

static int run(void)
{
    const struct provider_options *options = provider.options;
    ULONGLONG begin = GetTickCount64();

    do {
        if (tick() < 0)
            return -1;
        if (options->ready && !provider.failing && provider.looked >= begin)
            options->ready();
    } while (WaitForSingleObject(options->stop, options->period_ms) == WAIT_TIMEOUT &&
             (options->length_ms == INFINITE || GetTickCount64() - begin < options->length_ms));
    return 0;
}

int provider_run(const struct provider_options *options)
{
    int result = -1;

    provider.options = options;
    if (open_source() < 0)
        return 1;
    if (publish_init(&provider.publish) < 0) {
        say("no memory");
    } else {
        take_counters();
        result = start() < 0 ? -1 : run();
        stop();
    }
    source_close(provider.source);
    publish_free(&provider.publish);
    return result < 0;
}
