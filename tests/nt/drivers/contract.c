/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract of the four routines, call by call: each status that the
 * documentation gives, in the documented and the observed behaviour, then what
 * the routines are for: overflow handlers and counts.
 */
#include "lib/testdriver.h"

const WCHAR test_device[] = u"\\Device\\contract";
const WCHAR test_link[] = u"\\DosDevices\\contract";

enum {
    MSR_PMC0 = 0xc1,
    MSR_EVNTSEL0 = 0x186,
    MSR_FIXED0 = 0x309,
    MSR_FIXED_CTRL = 0x38d,
    MSR_GLOBAL_STATUS = 0x38e,
    MSR_GLOBAL_CTRL = 0x38f,
};
enum {
    SELECT_USER = 1 << 16,
    SELECT_KERNEL = 1 << 17,
    SELECT_INT = 1 << 20,
    SELECT_ENABLE = 1 << 22
};
enum { FIXED_KERNEL = 1, FIXED_USER = 2, FIXED_PMI = 8 };
enum { EVENT_INSTRUCTIONS = 0xc0, EVENT_BRANCHES = 0xc4 };
enum { CR4_PCE = 1 << 8 };
#define FIXED_INDEX 32u
#define EVENT_BUFFER_INDEX 62u
#define FIXED_SELECTOR 0x40000000u
#define NO_HANDLE ((HANDLE)0)
#define ONES_HANDLE ((HANDLE)~0ull)
#define UNTOUCHED ((HANDLE)0x5a5a5a5a5a5a5a5aull)

static const struct test_input *in;
static struct test_output *out;

static uint64_t rdmsr(uint32_t msr)
{
    uint32_t low, high;

    __asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr) : "memory");
    return low | (uint64_t)high << 32;
}

static void wrmsr(uint32_t msr, uint64_t value)
{
    __asm__ volatile("wrmsr"
                     :
                     : "c"(msr), "a"((uint32_t)value), "d"((uint32_t)(value >> 32))
                     : "memory");
}

static ULONG status_of(NTSTATUS status)
{
    return (ULONG)status;
}

static NTSTATUS by_mode(NTSTATUS documented, NTSTATUS observed)
{
    return in->observed ? observed : documented;
}

/* ---- Lists ---- */

struct list { /* PHYSICAL_COUNTER_RESOURCE_LIST with room for three */
    ULONG Count;
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR Descriptors[3];
};
NT_OFFSET(struct list, Descriptors, offsetof(PHYSICAL_COUNTER_RESOURCE_LIST, Descriptors));

static VOID NTAPI no_overflow(ULONGLONG OverflowBits, HANDLE OwningHandle)
{
    (void)OverflowBits;
    (void)OwningHandle;
}

static VOID NTAPI no_buffer(PVOID EventBuffer, SIZE_T EntrySize, SIZE_T NumberOfEntries,
                            HANDLE OwningHandle)
{
    (void)EventBuffer;
    (void)EntrySize;
    (void)NumberOfEntries;
    (void)OwningHandle;
}

#define SINGLE(i) {.Type = ResourceTypeSingle, .u.CounterIndex = (i)}
#define RANGE(b, e)                                                                                \
    {                                                                                              \
        .Type = ResourceTypeRange, .u.Range = {(b), (e) }                                          \
    }
#define EXTENDED {.Type = ResourceTypeExtendedCounterConfiguration}
#define OVERFLOW(handler) {.Type = ResourceTypeOverflow, .u.OverflowHandler = (handler)}
#define TAG(t) {.Type = ResourceTypeIdenitificationTag, .u.IdentificationTag = (t)}
#define BUFFER(threshold)                                                                          \
    {                                                                                              \
        .Type = ResourceTypeEventBuffer, .u.EventBufferConfiguration = {                           \
            .OverflowHandler = no_buffer,                                                          \
            .EventThreshold = (threshold)                                                          \
        }                                                                                          \
    }
#define BUFFER_WITHOUT_HANDLER                                                                     \
    {.Type = ResourceTypeEventBuffer, .u.EventBufferConfiguration = {.EventThreshold = 1}}
#define LIST1(a)                                                                                   \
    {                                                                                              \
        1,                                                                                         \
        {                                                                                          \
            a                                                                                      \
        }                                                                                          \
    }
#define LIST2(a, b)                                                                                \
    {                                                                                              \
        2,                                                                                         \
        {                                                                                          \
            a, b                                                                                   \
        }                                                                                          \
    }
#define LIST3(a, b, c)                                                                             \
    {                                                                                              \
        3,                                                                                         \
        {                                                                                          \
            a, b, c                                                                                \
        }                                                                                          \
    }

/* ---- Affinities ---- */

enum where {
    EVERYWHERE,
    FIRST,
    LAST,
    ALL,
    EMPTY,
    ABSENT,
    FOREIGN_GROUP,
    RESERVED,
    TWICE,
    COUNT_ONLY,
    ZERO_COUNT
};

struct affinity {
    GROUP_AFFINITY *pointer;
    ULONG count;
    GROUP_AFFINITY entries[2];
};

static void fill_affinity(struct affinity *a, enum where where)
{
    KAFFINITY all = (1ull << in->processors) - 1;

    *a = (struct affinity){.pointer = a->entries, .count = 1, .entries = {{.Mask = all}}};
    switch (where) {
    case EVERYWHERE:
        a->pointer = NULL;
        a->count = 0;
        break;
    case FIRST:
        a->entries[0].Mask = 1;
        break;
    case LAST:
        a->entries[0].Mask = 1ull << (in->processors - 1);
        break;
    case ALL:
        break;
    case EMPTY:
        a->entries[0].Mask = 0;
        break;
    case ABSENT:
        a->entries[0].Mask = all + 1;
        break;
    case FOREIGN_GROUP:
        a->entries[0].Group = 1;
        break;
    case RESERVED:
        a->entries[0].Reserved[1] = 1;
        break;
    case TWICE:
        a->count = 2;
        a->entries[1] = a->entries[0];
        break;
    case COUNT_ONLY:
        a->pointer = NULL;
        break;
    case ZERO_COUNT:
        a->count = 0;
        break;
    }
}

/* What is asked of HalAllocateHardwareCounters. */
struct request {
    enum where where;
    BOOLEAN listed; /* else the list is NULL */
    struct list list;
};

#define WHOLE {EVERYWHERE, FALSE, {0}}
#define ALL_OF(where) {where, FALSE, {0}}
#define ASK(where, ...) {where, TRUE, __VA_ARGS__}

/* list may be NULL: no list. */
static NTSTATUS allocate(enum where where, const struct list *list, HANDLE *handle)
{
    struct affinity affinity;

    fill_affinity(&affinity, where);
    return HalAllocateHardwareCounters(affinity.pointer, affinity.count,
                                       (PPHYSICAL_COUNTER_RESOURCE_LIST)list, handle);
}

static const struct list *list_of(const struct request *request)
{
    return request->listed ? &request->list : NULL;
}

/* A refused list may leave -1 behind where the observed behaviour does. */
static HANDLE handle_after_refusal(const struct list *list)
{
    return in->observed && list ? ONES_HANDLE : NO_HANDLE;
}

static void check_answer(const char *name, NTSTATUS status, HANDLE handle, const struct list *list,
                         NTSTATUS want)
{
    test_equal(out, status_of(status), status_of(want), name);
    if (!NT_SUCCESS(status))
        test_equal(out, (uint64_t)handle, (uint64_t)handle_after_refusal(list),
                   "  the handle after it");
    else
        test_equal(out, handle == NO_HANDLE || handle == ONES_HANDLE || handle == UNTOUCHED, 0,
                   "  a handle after it");
}

static void check_allocate(const char *name, enum where where, const struct list *list,
                           NTSTATUS want)
{
    HANDLE handle = UNTOUCHED;
    NTSTATUS status = allocate(where, list, &handle);

    check_answer(name, status, handle, list, want);
    if (NT_SUCCESS(status))
        test_equal(out, status_of(HalFreeHardwareCounters(handle)), STATUS_SUCCESS, "  its free");
}

static void check_set(const char *name, HARDWARE_COUNTER *array, ULONG count, ULONG want)
{
    test_equal(out, status_of(KeSetHardwareCounterConfiguration(array, count)), want, name);
}

/* ---- HalAllocateHardwareCounters: one request at a time ---- */

struct allocate_row {
    const char *name;
    struct request request;
    ULONG status;
};

#define SUCCESS 0u
#define INVALID 0xC000000Du
#define UNSUPPORTED 0xC00000BBu
#define INSUFFICIENT 0xC000009Au
#define NOT_SUCCESSFUL 0xC0000001u
#define BUSY 0x80000011u
#define MEMORY 0xC0000017u
#define ALREADY 0xC0000303u

static void allocate_rows(void)
{
    const ULONG gp = in->gp, fixed = in->fixed, v2 = in->version >= 2;
    const ULONG buffer = in->event_buffer ? SUCCESS : UNSUPPORTED;
    const struct allocate_row rows[] = {
        {"whole PMU", WHOLE, SUCCESS},
        {"all counters of the first processor", ALL_OF(FIRST), SUCCESS},
        {"all counters of each processor", ALL_OF(ALL), SUCCESS},
        {"one counter", ASK(EVERYWHERE, LIST1(SINGLE(0))), SUCCESS},
        {"the last GP counter, last processor", ASK(LAST, LIST1(SINGLE(gp - 1))), SUCCESS},
        {"all GP counters as a range", ASK(ALL, LIST1(RANGE(0, gp - 1))), SUCCESS},
        {"a fixed counter", ASK(EVERYWHERE, LIST1(SINGLE(FIXED_INDEX))), fixed ? SUCCESS : INVALID},
        {"counters, overflow, tag",
         ASK(EVERYWHERE, LIST3(SINGLE(1), OVERFLOW(no_overflow), TAG(7))),
         v2 ? SUCCESS : UNSUPPORTED},
        {"overflow before version 2", ASK(EVERYWHERE, LIST2(SINGLE(0), OVERFLOW(no_overflow))),
         v2 ? SUCCESS : UNSUPPORTED},
        {"a GP counter too many", ASK(EVERYWHERE, LIST1(SINGLE(gp))), INVALID},
        {"a range that ends behind", ASK(EVERYWHERE, LIST1(RANGE(0, gp))), INVALID},
        {"a fixed counter too many", ASK(EVERYWHERE, LIST1(SINGLE(FIXED_INDEX + fixed))), INVALID},
        {"index 0x40", ASK(EVERYWHERE, LIST1(SINGLE(0x40))), INVALID},
        {"index 0xFFFFFFFF", ASK(EVERYWHERE, LIST1(SINGLE(0xffffffff))), INVALID},
        {"a range that ends at 0x40", ASK(EVERYWHERE, LIST1(RANGE(0, 0x40))), INVALID},
        {"a range that ends before it begins", ASK(EVERYWHERE, LIST1(RANGE(1, 0))), INVALID},
        {"extended configuration", ASK(EVERYWHERE, LIST1(EXTENDED)), UNSUPPORTED},
        {"extended configuration behind a counter", ASK(EVERYWHERE, LIST2(SINGLE(0), EXTENDED)),
         UNSUPPORTED},
        {"event buffer, needs PEBS", ASK(EVERYWHERE, LIST2(SINGLE(0), BUFFER(1))), buffer},
        {"event buffer alone, last processor", ASK(LAST, LIST1(BUFFER(~0u))), buffer},
        {"event buffer without a handler",
         ASK(EVERYWHERE, LIST2(SINGLE(0), BUFFER_WITHOUT_HANDLER)), INVALID},
        {"two event buffers", ASK(EVERYWHERE, LIST3(SINGLE(0), BUFFER(1), BUFFER(1))), INVALID},
        {"the event buffer's index as a counter",
         ASK(EVERYWHERE, LIST1(SINGLE(EVENT_BUFFER_INDEX))), INVALID},
        {"event threshold 0", ASK(EVERYWHERE, LIST2(SINGLE(0), BUFFER(0))), INVALID},
        {"two overflow handlers",
         ASK(EVERYWHERE, LIST3(SINGLE(0), OVERFLOW(no_overflow), OVERFLOW(no_overflow))), INVALID},
        {"overflow without a handler", ASK(EVERYWHERE, LIST2(SINGLE(0), OVERFLOW(NULL))), INVALID},
        {"two tags", ASK(EVERYWHERE, LIST3(SINGLE(0), TAG(1), TAG(2))), INVALID},
        {"resource type 6", ASK(EVERYWHERE, LIST1({.Type = ResourceTypeMax})), INVALID},
        {"flags that are not 0", ASK(EVERYWHERE, LIST1({.Flags = 1})), INVALID},
        {"an empty list", ASK(EVERYWHERE, {0}), INVALID},
        {"an empty mask", ASK(EMPTY, LIST1(SINGLE(0))), INVALID},
        {"an absent processor", ASK(ABSENT, LIST1(SINGLE(0))), INVALID},
        {"an absent group", ASK(FOREIGN_GROUP, LIST1(SINGLE(0))), INVALID},
        {"a reserved field", ASK(RESERVED, LIST1(SINGLE(0))), INVALID},
        {"one group twice", ASK(TWICE, LIST1(SINGLE(0))), INVALID},
        {"a count without affinities", ASK(COUNT_ONLY, LIST1(SINGLE(0))), INVALID},
        {"affinities without a count", ASK(ZERO_COUNT, LIST1(SINGLE(0))), INVALID},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_allocate(rows[i].name, rows[i].request.where, list_of(&rows[i].request),
                       (NTSTATUS)rows[i].status);
    test_equal(out, status_of(HalAllocateHardwareCounters(NULL, 0, NULL, NULL)), INVALID,
               "no place for the handle");
}

/* Where nothing is behind them, requests without a list succeed: that is the contract's trap. */
static void no_pmu(void)
{
    static const struct list one = LIST1(SINGLE(0)), tag = LIST1(TAG(1)),
                             overflow = LIST1(OVERFLOW(no_overflow)), extended = LIST1(EXTENDED),
                             buffer = LIST1(BUFFER(1));

    check_allocate("no PMU: whole PMU", EVERYWHERE, NULL, STATUS_SUCCESS);
    check_allocate("no PMU: all counters of the first processor", FIRST, NULL, STATUS_SUCCESS);
    check_allocate("no PMU: one counter", EVERYWHERE, &one, STATUS_INVALID_PARAMETER);
    check_allocate("no PMU: a tag", EVERYWHERE, &tag, STATUS_SUCCESS);
    check_allocate("no PMU: overflow", EVERYWHERE, &overflow, STATUS_NOT_SUPPORTED);
    check_allocate("no PMU: extended configuration", EVERYWHERE, &extended, STATUS_NOT_SUPPORTED);
    check_allocate("no PMU: event buffer", EVERYWHERE, &buffer, STATUS_NOT_SUPPORTED);
}

/* ---- HalAllocateHardwareCounters while something is held ---- */

/* What a machine must have for a row; a set. */
enum { ANYTHING = 0, TWO_PROCESSORS = 1, VERSION_2 = 2, EVENT_BUFFER = 4 };

struct conflict_row {
    const char *name;
    struct request held, wanted;
    ULONG documented, observed;
    unsigned needs;
};

static const struct conflict_row conflict_rows[] = {
    {"whole, then whole", WHOLE, WHOLE, INSUFFICIENT, INSUFFICIENT, ANYTHING},
    {"whole, then one", WHOLE, ASK(EVERYWHERE, LIST1(SINGLE(0))), INSUFFICIENT, NOT_SUCCESSFUL,
     ANYTHING},
    {"whole, then all of a processor", WHOLE, ALL_OF(FIRST), INSUFFICIENT, NOT_SUCCESSFUL,
     ANYTHING},
    {"one, then whole", ASK(EVERYWHERE, LIST1(SINGLE(0))), WHOLE, INSUFFICIENT, INSUFFICIENT,
     ANYTHING},
    {"one, then the same", ASK(EVERYWHERE, LIST1(SINGLE(0))), ASK(EVERYWHERE, LIST1(SINGLE(0))),
     INSUFFICIENT, INSUFFICIENT, ANYTHING},
    {"one, then another", ASK(EVERYWHERE, LIST1(SINGLE(0))), ASK(EVERYWHERE, LIST1(SINGLE(1))),
     SUCCESS, SUCCESS, ANYTHING},
    {"range, then an overlapping one", ASK(EVERYWHERE, LIST1(RANGE(0, 1))),
     ASK(EVERYWHERE, LIST1(RANGE(1, 2))), INSUFFICIENT, INSUFFICIENT, ANYTHING},
    {"range, then the next", ASK(EVERYWHERE, LIST1(RANGE(0, 1))),
     ASK(EVERYWHERE, LIST1(RANGE(2, 3))), SUCCESS, SUCCESS, ANYTHING},
    {"one, then nothing of a list where a part is held", ASK(EVERYWHERE, LIST1(SINGLE(1))),
     ASK(EVERYWHERE, LIST2(SINGLE(0), SINGLE(1))), INSUFFICIENT, INSUFFICIENT, ANYTHING},
    {"tag, then whole", ASK(EVERYWHERE, LIST1(TAG(9))), WHOLE, INSUFFICIENT, INSUFFICIENT,
     ANYTHING},
    {"whole, then a tag", WHOLE, ASK(EVERYWHERE, LIST1(TAG(9))), INSUFFICIENT, NOT_SUCCESSFUL,
     ANYTHING},
    {"all of each processor, then a tag", ALL_OF(ALL), ASK(EVERYWHERE, LIST1(TAG(9))), SUCCESS,
     SUCCESS, ANYTHING},
    {"overflow, then overflow", ASK(EVERYWHERE, LIST2(SINGLE(0), OVERFLOW(no_overflow))),
     ASK(EVERYWHERE, LIST2(SINGLE(1), OVERFLOW(no_overflow))), SUCCESS, SUCCESS, VERSION_2},
    {"all of the first processor, then one of it", ALL_OF(FIRST), ASK(FIRST, LIST1(SINGLE(0))),
     INSUFFICIENT, INSUFFICIENT, ANYTHING},
    {"all of the first processor, then whole", ALL_OF(FIRST), WHOLE, INSUFFICIENT, INSUFFICIENT,
     ANYTHING},
    {"one of the first processor, then of the last", ASK(FIRST, LIST1(SINGLE(0))),
     ASK(LAST, LIST1(SINGLE(0))), SUCCESS, SUCCESS, TWO_PROCESSORS},
    {"one of the last processor, then of all", ASK(LAST, LIST1(SINGLE(0))),
     ASK(EVERYWHERE, LIST1(SINGLE(0))), INSUFFICIENT, INSUFFICIENT, TWO_PROCESSORS},
    {"all of the first processor, then all of the last", ALL_OF(FIRST), ALL_OF(LAST), SUCCESS,
     SUCCESS, TWO_PROCESSORS},
    {"event buffer, then event buffer", ASK(EVERYWHERE, LIST2(SINGLE(0), BUFFER(1))),
     ASK(EVERYWHERE, LIST2(SINGLE(1), BUFFER(1))), INSUFFICIENT, INSUFFICIENT, EVENT_BUFFER},
    {"event buffer, then another counter", ASK(EVERYWHERE, LIST2(SINGLE(0), BUFFER(1))),
     ASK(EVERYWHERE, LIST1(SINGLE(1))), SUCCESS, SUCCESS, EVENT_BUFFER},
    {"event buffer, then whole", ASK(EVERYWHERE, LIST1(BUFFER(1))), WHOLE, INSUFFICIENT,
     INSUFFICIENT, EVENT_BUFFER},
    {"whole, then event buffer", WHOLE, ASK(EVERYWHERE, LIST1(BUFFER(1))), INSUFFICIENT,
     NOT_SUCCESSFUL, EVENT_BUFFER},
    {"all counters of each processor, then event buffer", ALL_OF(ALL),
     ASK(EVERYWHERE, LIST1(BUFFER(1))), SUCCESS, SUCCESS, EVENT_BUFFER},
    {"event buffer of the first processor, then of the last", ASK(FIRST, LIST1(BUFFER(1))),
     ASK(LAST, LIST1(BUFFER(1))), SUCCESS, SUCCESS, EVENT_BUFFER | TWO_PROCESSORS},
    {"event buffer of the last processor, then of all", ASK(LAST, LIST1(BUFFER(1))),
     ASK(EVERYWHERE, LIST1(BUFFER(1))), INSUFFICIENT, INSUFFICIENT, EVENT_BUFFER | TWO_PROCESSORS},
};

static unsigned machine_has(void)
{
    return (in->processors >= 2 ? TWO_PROCESSORS : 0) | (in->version >= 2 ? VERSION_2 : 0) |
           (in->event_buffer ? EVENT_BUFFER : 0);
}

static void conflicts(void)
{
    for (unsigned i = 0; i < sizeof(conflict_rows) / sizeof(conflict_rows[0]); i++) {
        const struct conflict_row *row = &conflict_rows[i];
        HANDLE held = UNTOUCHED;

        if (row->needs & ~machine_has())
            continue;
        test_equal(out, status_of(allocate(row->held.where, list_of(&row->held), &held)), SUCCESS,
                   "  the first of the two");
        check_allocate(row->name, row->wanted.where, list_of(&row->wanted),
                       by_mode((NTSTATUS)row->documented, (NTSTATUS)row->observed));
        test_equal(out, status_of(HalFreeHardwareCounters(held)), SUCCESS,
                   "  the free of the first");
    }
}

static void free_rows(void)
{
    static const struct list one = LIST1(SINGLE(0));
    HANDLE handle, stale;

    test_equal(out, status_of(HalFreeHardwareCounters(NO_HANDLE)), INVALID, "free 0");
    test_equal(out, status_of(HalFreeHardwareCounters(ONES_HANDLE)), INVALID, "free -1");
    test_equal(out, status_of(HalFreeHardwareCounters(UNTOUCHED)), INVALID, "free a forged handle");
    test_equal(out, status_of(HalFreeHardwareCounters(&handle)), INVALID, "free an address");
    test_equal(out, status_of(allocate(EVERYWHERE, &one, &stale)), SUCCESS, "  an allocation");
    test_equal(out, status_of(HalFreeHardwareCounters(stale)), SUCCESS, "free a live handle");
    test_equal(out, status_of(HalFreeHardwareCounters(stale)), INVALID, "free it again");
    test_equal(out, status_of(allocate(EVERYWHERE, &one, &handle)), SUCCESS, "  its successor");
    test_equal(out, status_of(HalFreeHardwareCounters(stale)), INVALID,
               "free a stale handle whose counter is held again");
    check_allocate("the successor still holds", EVERYWHERE, &one, STATUS_INSUFFICIENT_RESOURCES);
    test_equal(out, status_of(HalFreeHardwareCounters(handle)), SUCCESS, "free the successor");
}

/* Contract only: nothing fills a buffer, so its handler is never called. */
static void event_buffer(void)
{
    static const struct list first = LIST2(SINGLE(0), BUFFER(1)),
                             second = LIST2(SINGLE(1), BUFFER(2));
    HANDLE handle, again;

    test_equal(out, status_of(allocate(EVERYWHERE, &first, &handle)), SUCCESS,
               "event buffer: taken");
    check_allocate("event buffer: while another allocation owns it", EVERYWHERE, &second,
                   STATUS_INSUFFICIENT_RESOURCES);
    test_equal(out, status_of(HalFreeHardwareCounters(handle)), SUCCESS, "event buffer: freed");
    test_equal(out, status_of(allocate(EVERYWHERE, &second, &again)), SUCCESS,
               "event buffer: taken again, by the one that was refused");
    test_equal(out, status_of(HalFreeHardwareCounters(handle)), INVALID,
               "event buffer: the first handle is stale");
    check_allocate("event buffer: the second still owns it", EVERYWHERE, &first,
                   STATUS_INSUFFICIENT_RESOURCES);
    test_equal(out, status_of(HalFreeHardwareCounters(again)), SUCCESS,
               "event buffer: freed again");
}

static void full(void)
{
    static const struct list lists[] = {LIST1(SINGLE(0)), LIST1(SINGLE(1)), LIST1(SINGLE(2))};
    HANDLE handles[2];

    for (unsigned i = 0; i < 2; i++)
        test_equal(out, status_of(allocate(EVERYWHERE, &lists[i], &handles[i])), SUCCESS,
                   "  an allocation");
    check_allocate("no room for a third allocation", EVERYWHERE, &lists[2],
                   by_mode((NTSTATUS)INSUFFICIENT, (NTSTATUS)MEMORY));
    for (unsigned i = 0; i < 2; i++)
        test_equal(out, status_of(HalFreeHardwareCounters(handles[i])), SUCCESS, "  its free");
    check_allocate("room again", EVERYWHERE, &lists[2], STATUS_SUCCESS);
}

static void kernel_holds(void)
{
    static const struct list zero = LIST1(SINGLE(0)), one = LIST1(SINGLE(1));

    check_allocate("the counter of the kernel's own profiling", EVERYWHERE, &zero,
                   by_mode((NTSTATUS)INSUFFICIENT, (NTSTATUS)BUSY));
    check_allocate("another counter beside it", EVERYWHERE, &one, STATUS_SUCCESS);
    check_set("set a counter that another holds", &(HARDWARE_COUNTER){.Index = 0}, 1,
              (ULONG)by_mode((NTSTATUS)ALREADY, SUCCESS));
    check_set("empty the set", NULL, 0, SUCCESS);
    check_allocate("whole PMU beside it", EVERYWHERE, NULL,
                   by_mode((NTSTATUS)INSUFFICIENT, (NTSTATUS)BUSY));
}

static void before_1903(void)
{
    static const struct list one = LIST1(SINGLE(0));
    HANDLE handle;

    test_equal(out, status_of(allocate(EVERYWHERE, NULL, &handle)), SUCCESS,
               "before 1903: NULL, 0, NULL");
    check_allocate("before 1903: it owns every counter", EVERYWHERE, NULL,
                   STATUS_INSUFFICIENT_RESOURCES);
    test_equal(out, status_of(HalFreeHardwareCounters(handle)), SUCCESS, "before 1903: free");
    check_allocate("before 1903: NULL, 0, NULL again", EVERYWHERE, NULL, STATUS_SUCCESS);
    test_equal(out, status_of(HalAllocateHardwareCounters(NULL, 0, NULL, NULL)), INVALID,
               "before 1903: no place for the handle");
    check_allocate("before 1903: a list", EVERYWHERE, &one, STATUS_INVALID_PARAMETER);
    check_allocate("before 1903: an affinity", ALL, NULL, STATUS_INVALID_PARAMETER);
    check_allocate("before 1903: a count", COUNT_ONLY, NULL, STATUS_INVALID_PARAMETER);
}

/* ---- KeSetHardwareCounterConfiguration, KeQueryHardwareCounterConfiguration ---- */

/* Asks for the set: its length and its first index. */
static void check_query(const char *name, ULONG count, ULONG64 first)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS] = {{0}};
    ULONG got = 0x5a;

    test_equal(out, status_of(KeQueryHardwareCounterConfiguration(array, MAX_HW_COUNTERS, &got)),
               SUCCESS, name);
    test_equal(out, got, count, "  how many");
    if (count)
        test_equal(out, array[0].Index, first, "  the first");
}

/* While two are set. */
static void check_bad_queries(void)
{
    HARDWARE_COUNTER array[2] = {{.Index = 77}, {.Index = 88}};
    ULONG got = 0x5a;

    test_equal(out, status_of(KeQueryHardwareCounterConfiguration(array, 1, &got)), 0xC0000023u,
               "query two with room for one");
    test_equal(out, got, 2, "  how many are needed");
    test_equal(out, array[0].Index, 77, "  nothing is written");
    got = 0x5a;
    test_equal(out, status_of(KeQueryHardwareCounterConfiguration(NULL, 0, &got)), 0xC0000023u,
               "query two without room");
    test_equal(out, got, 2, "  how many are needed");
    test_equal(out, status_of(KeQueryHardwareCounterConfiguration(NULL, 2, &got)), INVALID,
               "query two into nowhere");
    test_equal(out, status_of(KeQueryHardwareCounterConfiguration(array, 2, NULL)), INVALID,
               "query two without a place for the number");
    test_equal(out, array[0].Index, 77, "  nothing is written");
}

/* Sets that the documentation refuses and Windows is seen to take. */
static void check_loose_sets(void)
{
    static const struct {
        const char *name;
        HARDWARE_COUNTER counter;
        ULONG64 kept;
    } rows[] = {
        {"set with a type", {.Type = 1}, 0},
        {"set with a reserved field", {.Reserved = 1, .Index = 1}, 1},
        {"set an index of more than 32 bits", {.Index = 1ull << 32 | 1}, 1},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        HARDWARE_COUNTER counter = rows[i].counter;

        check_set(rows[i].name, &counter, 1, (ULONG)by_mode((NTSTATUS)INVALID, SUCCESS));
        check_query("query after it", in->observed ? 1 : 0, rows[i].kept);
        check_set("empty the set", NULL, 0, SUCCESS);
    }
}

static void profiling(void)
{
    HARDWARE_COUNTER many[MAX_HW_COUNTERS + 1] = {{0}};
    HARDWARE_COUNTER two[2] = {{.Index = 0}, {.Index = 1}}, other = {.Index = 1};
    HARDWARE_COUNTER disjoint = {.Index = 2}, absent = {.Index = in->gp};
    HARDWARE_COUNTER fixed = {.Index = FIXED_SELECTOR};
    HARDWARE_COUNTER absent_fixed = {.Index = FIXED_SELECTOR + in->fixed};
    static const struct list zero = LIST1(SINGLE(0));
    HANDLE held;
    ULONG got = 0x5a;

    check_set("set nothing", NULL, 0, SUCCESS);
    check_query("query an empty set", 0, 0);
    test_equal(out, status_of(KeQueryHardwareCounterConfiguration(NULL, 0, &got)), SUCCESS,
               "query an empty set without room");
    test_equal(out, got, 0, "  how many");
    check_set("set 17 counters", many, MAX_HW_COUNTERS + 1, INVALID);
    check_set("set from nowhere", NULL, 1, INVALID);
    check_set("set a counter that is not there", &absent, 1, INVALID);
    check_set("set a fixed counter that is not there", &absent_fixed, 1, INVALID);
    check_query("query after refusals", 0, 0);
    check_set("set 16 counters", many, MAX_HW_COUNTERS, SUCCESS);
    check_query("query all 16", MAX_HW_COUNTERS, 0);
    check_set("set nothing, with an array", many, 0, SUCCESS);
    check_query("query after it", 0, 0);

    check_set("set two", two, 2, SUCCESS);
    two[0].Index = 3; /* the kernel has a copy */
    check_query("query two", 2, 0);
    check_bad_queries();
    check_set("set a third counter over a set", &disjoint, 1,
              (ULONG)by_mode(SUCCESS, (NTSTATUS)ALREADY));
    check_query("query after it", in->observed ? 2 : 1, in->observed ? 0 : 2);
    check_set("set another over a set", &other, 1, (ULONG)by_mode(SUCCESS, (NTSTATUS)ALREADY));
    check_query("query after it", in->observed ? 2 : 1, in->observed ? 0 : 1);
    check_set("empty the set", NULL, 0, SUCCESS);
    check_query("query after it", 0, 0);

    check_loose_sets();
    if (in->fixed) {
        check_set("set a fixed counter", &fixed, 1, SUCCESS);
        check_query("query it", 1, FIXED_SELECTOR);
        check_set("empty the set", NULL, 0, SUCCESS);
    }
    test_equal(out, status_of(allocate(EVERYWHERE, &zero, &held)), SUCCESS, "  an allocation");
    check_set("set a counter of one's own allocation", &(HARDWARE_COUNTER){0}, 1, SUCCESS);
    check_set("empty the set", NULL, 0, SUCCESS);
    test_equal(out, status_of(HalFreeHardwareCounters(held)), SUCCESS, "  its free");
}

static void no_profiling(void)
{
    HARDWARE_COUNTER one = {.Index = 0};
    ULONG got = 0x5a;

    check_set("set where thread profiling is not implemented", &one, 1, 0xC0000002u);
    check_set("empty where it is not implemented", NULL, 0, 0xC0000002u);
    test_equal(out, status_of(KeQueryHardwareCounterConfiguration(&one, 1, &got)), 0xC0000002u,
               "query where it is not implemented");
    test_equal(out, got, in->observed ? 0 : 0x5a, "  the number");
}

/* ---- Counting ---- */

#define ITERATIONS 1000u

/* 1 for the enabling WRMSR, 2 a round, 3 before the disabling WRMSR, which is not counted. */
#define WORK_INSTRUCTIONS (2 * ITERATIONS + 4)
#define WORK_BRANCHES ITERATIONS

static void work_between(uint32_t control, uint64_t on, uint64_t off)
{
    uint32_t rounds = ITERATIONS, low = (uint32_t)on, high = (uint32_t)(on >> 32);

    __asm__ volatile("wrmsr\n"
                     "1: decl %[rounds]\n"
                     "jnz 1b\n"
                     "movq %[off], %%rax\n"
                     "movq %[off], %%rdx\n"
                     "shrq $32, %%rdx\n"
                     "wrmsr"
                     : [rounds] "+&r"(rounds), "+&a"(low), "+&d"(high)
                     : [off] "r"(off), "c"(control)
                     : "memory", "cc");
}

static uint64_t interrupts_off(void)
{
    uint64_t flags;

    __asm__ volatile("pushfq; popq %0; cli" : "=r"(flags) : : "memory");
    return flags;
}

static void interrupts_restore(uint64_t flags)
{
    __asm__ volatile("pushq %0; popfq" : : "r"(flags) : "memory", "cc");
}

static uint64_t count_gp(uint32_t counter, uint32_t event)
{
    uint64_t flags = interrupts_off();
    uint64_t counted;

    wrmsr(MSR_EVNTSEL0 + counter, 0);
    wrmsr(MSR_PMC0 + counter, 0);
    work_between(MSR_EVNTSEL0 + counter, event | SELECT_KERNEL | SELECT_ENABLE, 0);
    counted = rdmsr(MSR_PMC0 + counter);
    wrmsr(MSR_PMC0 + counter, 0);
    interrupts_restore(flags);
    return counted;
}

static uint64_t count_fixed(uint32_t counter)
{
    uint64_t flags = interrupts_off();
    uint64_t gate = 1ull << (FIXED_INDEX + counter);
    uint64_t counted;

    wrmsr(MSR_FIXED0 + counter, 0);
    wrmsr(MSR_GLOBAL_CTRL, rdmsr(MSR_GLOBAL_CTRL) | gate);
    work_between(MSR_FIXED_CTRL, (uint64_t)FIXED_KERNEL << (4 * counter), 0);
    counted = rdmsr(MSR_FIXED0 + counter);
    wrmsr(MSR_GLOBAL_CTRL, rdmsr(MSR_GLOBAL_CTRL) & ~gate);
    wrmsr(MSR_FIXED0 + counter, 0);
    interrupts_restore(flags);
    return counted;
}

/* GP counters count because the reset value of GLOBAL_CTRL enables them: nobody here sets it. */
static void count_here(void *context)
{
    uint32_t processor = KeGetCurrentProcessorNumberEx(NULL);

    (void)context;
    test_equal_on(out, count_gp(0, EVENT_INSTRUCTIONS), WORK_INSTRUCTIONS,
                  "instructions, GP counter 0", processor);
    test_equal_on(out, count_gp(in->gp - 1, EVENT_BRANCHES), WORK_BRANCHES,
                  "branches, last GP counter", processor);
    if (in->fixed)
        test_equal_on(out, count_fixed(0), WORK_INSTRUCTIONS, "instructions, fixed counter 0",
                      processor);
}

static void counts(void)
{
    HANDLE handle;

    test_equal(out, status_of(allocate(EVERYWHERE, NULL, &handle)), SUCCESS, "whole PMU");
    for (uint32_t i = 0; i < in->processors; i++)
        test_on_processor(i, count_here, NULL);
    test_equal(out, status_of(HalFreeHardwareCounters(handle)), SUCCESS, "  its free");
}

/* ---- Overflow ---- */

enum { CALLERS = 2, PROCESSORS = 8 };

struct calls {
    uint32_t count;
    uint64_t bits, status;
    HANDLE handle;
    KIRQL irql;
};

static struct calls calls[CALLERS][PROCESSORS];

static void record(unsigned caller, ULONGLONG bits, HANDLE handle)
{
    struct calls *c = &calls[caller][KeGetCurrentProcessorNumberEx(NULL)];
    uint64_t irql;

    __asm__ volatile("movq %%cr8, %0" : "=r"(irql));
    c->count++;
    c->bits = bits;
    c->status = rdmsr(MSR_GLOBAL_STATUS);
    c->handle = handle;
    c->irql = (KIRQL)irql;
}

static VOID NTAPI first_overflow(ULONGLONG OverflowBits, HANDLE OwningHandle)
{
    record(0, OverflowBits, OwningHandle);
}

static VOID NTAPI second_overflow(ULONGLONG OverflowBits, HANDLE OwningHandle)
{
    record(1, OverflowBits, OwningHandle);
}

#define PERIOD 1000u

static void overflow_gp(uint32_t counter)
{
    wrmsr(MSR_PMC0 + counter, (uint32_t)-PERIOD); /* sign-extended (SDM Vol. 3, 20.2.8) */
    work_between(MSR_EVNTSEL0 + counter,
                 EVENT_INSTRUCTIONS | SELECT_KERNEL | SELECT_ENABLE | SELECT_INT, 0);
    wrmsr(MSR_PMC0 + counter, 0);
}

static void overflow_fixed(void)
{
    uint64_t mask = (1ull << in->fixed_width) - 1;

    wrmsr(MSR_FIXED0, -(uint64_t)PERIOD & mask);
    wrmsr(MSR_GLOBAL_CTRL, rdmsr(MSR_GLOBAL_CTRL) | 1ull << FIXED_INDEX);
    work_between(MSR_FIXED_CTRL, FIXED_KERNEL | FIXED_PMI, 0);
    wrmsr(MSR_GLOBAL_CTRL, rdmsr(MSR_GLOBAL_CTRL) & ~(1ull << FIXED_INDEX));
    wrmsr(MSR_FIXED0, 0);
}

static void check_calls(unsigned caller, uint32_t processor, uint64_t bits, HANDLE handle)
{
    const struct calls *c = &calls[caller][processor];

    test_equal_on(out, c->count, 1, "overflow: calls of the handler", processor);
    test_equal_on(out, c->bits, bits, "overflow: OverflowBits", processor);
    test_equal_on(out, (uint64_t)c->handle, (uint64_t)handle, "overflow: OwningHandle", processor);
    test_equal_on(out, c->irql, PROFILE_LEVEL, "overflow: IRQL", processor);
    test_equal_on(out, c->status & bits, 0, "overflow: state cleared before", processor);
}

struct overflow_run {
    HANDLE first, second;
};

static void overflow_here(void *context)
{
    const struct overflow_run *run = context;
    uint32_t processor = KeGetCurrentProcessorNumberEx(NULL);
    uint32_t others = 0;

    overflow_gp(0);
    overflow_gp(1);
    check_calls(0, processor, 1, run->first);
    check_calls(1, processor, 2, run->second);
    for (uint32_t i = 0; i < in->processors; i++)
        if (i != processor)
            others += calls[0][i].count + calls[1][i].count;
    test_equal_on(out, others, 0, "overflow: calls on others", processor);
    calls[0][processor] = calls[1][processor] = (struct calls){0};
    if (in->fixed) {
        overflow_fixed();
        check_calls(0, processor, 1ull << FIXED_INDEX, run->first);
        calls[0][processor] = (struct calls){0};
    }
}

static void overflows(void)
{
    struct list first = LIST3(SINGLE(0), SINGLE(FIXED_INDEX), OVERFLOW(first_overflow));
    struct list second = LIST2(SINGLE(1), OVERFLOW(second_overflow));
    struct overflow_run run;

    if (!in->fixed)
        first.Descriptors[1] = first.Descriptors[0];
    test_equal(out, status_of(allocate(EVERYWHERE, &first, &run.first)), SUCCESS,
               "counters with overflow");
    test_equal(out, status_of(allocate(EVERYWHERE, &second, &run.second)), SUCCESS,
               "another counter with overflow");
    for (uint32_t i = 0; i < in->processors; i++)
        test_on_processor(i, overflow_here, &run);
    test_equal(out, status_of(HalFreeHardwareCounters(run.second)), SUCCESS, "  its free");
    test_equal(out, status_of(HalFreeHardwareCounters(run.first)), SUCCESS, "  its free");
}

/* ---- Thread profiling: the driver's part ---- */

static HANDLE profiling_handle;

static void profile_on_here(void *context)
{
    uint64_t cr4;

    (void)context;
    wrmsr(MSR_PMC0, 0);
    wrmsr(MSR_PMC0 + 1, 0);
    wrmsr(MSR_EVNTSEL0, EVENT_INSTRUCTIONS | SELECT_USER | SELECT_ENABLE);
    wrmsr(MSR_EVNTSEL0 + 1, EVENT_BRANCHES | SELECT_USER | SELECT_ENABLE);
    __asm__ volatile("movq %%cr4, %0" : "=r"(cr4));
    __asm__ volatile("movq %0, %%cr4" : : "r"(cr4 | CR4_PCE) : "memory");
}

static void profile_off_here(void *context)
{
    uint64_t cr4;

    (void)context;
    wrmsr(MSR_EVNTSEL0, 0);
    wrmsr(MSR_EVNTSEL0 + 1, 0);
    __asm__ volatile("movq %%cr4, %0" : "=r"(cr4));
    __asm__ volatile("movq %0, %%cr4" : : "r"(cr4 & ~(uint64_t)CR4_PCE) : "memory");
}

static void profile_begin(void)
{
    static const struct list two = LIST1(RANGE(0, 1));
    HARDWARE_COUNTER set[2] = {{.Index = 0}, {.Index = 1}};

    test_equal(out, status_of(allocate(EVERYWHERE, &two, &profiling_handle)), SUCCESS,
               "two counters for profiling");
    check_set("empties first", NULL, 0, SUCCESS);
    check_set("sets two", set, 2, SUCCESS);
    for (uint32_t i = 0; i < in->processors; i++)
        test_on_processor(i, profile_on_here, NULL);
}

static void profile_busy(void)
{
    check_set("set a counter that a thread profiles with", &(HARDWARE_COUNTER){.Index = 1}, 1,
              ALREADY);
    check_set("set another counter meanwhile", &(HARDWARE_COUNTER){.Index = 2}, 1,
              (ULONG)by_mode(SUCCESS, (NTSTATUS)ALREADY));
    check_set("empty the set while a thread profiles", NULL, 0, SUCCESS);
    check_query("query after it", 0, 0);
}

static void profile_end(void)
{
    for (uint32_t i = 0; i < in->processors; i++)
        test_on_processor(i, profile_off_here, NULL);
    check_set("empties the set", NULL, 0, SUCCESS);
    test_equal(out, status_of(HalFreeHardwareCounters(profiling_handle)), SUCCESS, "  the free");
}

/* ---- Holding, while another driver uses the rest ---- */

enum { HOLD_PERIOD = 777 };

static HANDLE hold_handle;
static uint32_t hold_calls, hold_wrong;

static VOID NTAPI hold_overflow(ULONGLONG OverflowBits, HANDLE OwningHandle)
{
    __atomic_fetch_add(&hold_calls, 1, __ATOMIC_RELAXED);
    if (OverflowBits != 1 || OwningHandle != hold_handle)
        __atomic_fetch_add(&hold_wrong, 1, __ATOMIC_RELAXED);
    wrmsr(MSR_PMC0, (uint32_t)-HOLD_PERIOD);
}

static void hold_here(void *context)
{
    (void)context;
    wrmsr(MSR_PMC0, (uint32_t)-HOLD_PERIOD);
    wrmsr(MSR_EVNTSEL0, EVENT_INSTRUCTIONS | SELECT_USER | SELECT_ENABLE | SELECT_INT);
}

static void let_go_here(void *context)
{
    (void)context;
    wrmsr(MSR_EVNTSEL0, 0);
    wrmsr(MSR_PMC0, 0);
}

static void hold(void)
{
    struct list list = LIST3(SINGLE(0), SINGLE(in->gp - 1), OVERFLOW(hold_overflow));

    hold_calls = hold_wrong = 0;
    test_equal(out, status_of(allocate(EVERYWHERE, &list, &hold_handle)), SUCCESS,
               "holds the first and the last GP counter");
    for (uint32_t i = 0; i < in->processors; i++)
        test_on_processor(i, hold_here, NULL);
}

static void let_go(void)
{
    for (uint32_t i = 0; i < in->processors; i++)
        test_on_processor(i, let_go_here, NULL);
    test_equal(out, hold_calls > 0, 1, "the holder's own overflow handler was called");
    test_equal(out, hold_wrong, 0, "  with its own bits and handle each time");
    test_equal(out, status_of(HalFreeHardwareCounters(hold_handle)), SUCCESS, "lets go");
}

/* ---- Broken rules: four calls at DISPATCH_LEVEL, two at APC_LEVEL ---- */

static void wrong_irql(void)
{
    HANDLE handle = NULL;
    HARDWARE_COUNTER one = {0};
    ULONG count;
    KIRQL old = KeRaiseIrqlToDpcLevel();

    HalAllocateHardwareCounters(NULL, 0, NULL, &handle);
    HalFreeHardwareCounters(handle);
    KeSetHardwareCounterConfiguration(NULL, 0);
    KeQueryHardwareCounterConfiguration(&one, 1, &count);
    KeLowerIrql(APC_LEVEL);
    HalAllocateHardwareCounters(NULL, 0, NULL, &handle);
    HalFreeHardwareCounters(handle);
    KeSetHardwareCounterConfiguration(NULL, 0); /* that one is allowed */
    KeLowerIrql(old);
    test_equal(out, KeGetCurrentIrql(), PASSIVE_LEVEL, "back at PASSIVE_LEVEL");
}

static void (*const sections[])(void) = {
    [CONTRACT_NO_PMU] = no_pmu,
    [CONTRACT_ALLOCATE] = allocate_rows,
    [CONTRACT_CONFLICT] = conflicts,
    [CONTRACT_FREE] = free_rows,
    [CONTRACT_EVENT_BUFFER] = event_buffer,
    [CONTRACT_FULL] = full,
    [CONTRACT_KERNEL_HOLDS] = kernel_holds,
    [CONTRACT_BEFORE_1903] = before_1903,
    [CONTRACT_PROFILING] = profiling,
    [CONTRACT_NO_PROFILING] = no_profiling,
    [CONTRACT_OVERFLOW] = overflows,
    [CONTRACT_COUNT] = counts,
    [CONTRACT_WRONG_IRQL] = wrong_irql,
    [CONTRACT_PROFILE_BEGIN] = profile_begin,
    [CONTRACT_PROFILE_BUSY] = profile_busy,
    [CONTRACT_PROFILE_END] = profile_end,
    [CONTRACT_HOLD] = hold,
    [CONTRACT_LET_GO] = let_go,
};

void test_run(const struct test_input *input, struct test_output *output)
{
    in = input;
    out = output;
    if (input->section < sizeof(sections) / sizeof(sections[0]))
        sections[input->section]();
}

void test_unload(void)
{
}
