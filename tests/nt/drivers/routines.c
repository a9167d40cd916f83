/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The routines that drivers stand on, from a driver's side: what this kernel
 * gives must be what the documentation says, or a test of vpmu.sys proves little.
 */
#include "lib/testdriver.h"

const WCHAR test_device[] = u"\\Device\\routines";
const WCHAR test_link[] = u"\\DosDevices\\routines";

#define TAG 0x74736574u
enum { PROCESSORS = 8 };

static const struct test_input *in;
static struct test_output *out;

static ULONG status_of(NTSTATUS status)
{
    return (ULONG)status;
}

static LARGE_INTEGER milliseconds(int64_t n)
{
    return (LARGE_INTEGER){.QuadPart = -n * 10000};
}

static NTSTATUS wait_for(PVOID object, LARGE_INTEGER *timeout)
{
    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, timeout);
}

static NTSTATUS poll(PVOID object)
{
    LARGE_INTEGER zero = {.QuadPart = 0};

    return wait_for(object, &zero);
}

/* ---- Events and mutexes ---- */

static void events(void)
{
    LARGE_INTEGER soon = milliseconds(3);
    LARGE_INTEGER frequency, before;
    KEVENT event;

    KeInitializeEvent(&event, NotificationEvent, FALSE);
    test_equal(out, status_of(poll(&event)), STATUS_TIMEOUT, "event: not signalled");
    test_equal(out, (ULONG)KeSetEvent(&event, 0, FALSE), 0, "event: set, state before");
    test_equal(out, status_of(poll(&event)), STATUS_SUCCESS, "notification event: first wait");
    test_equal(out, status_of(poll(&event)), STATUS_SUCCESS, "notification event: stays");
    test_equal(out, (ULONG)KeResetEvent(&event), 1, "event: reset, state before");
    before = KeQueryPerformanceCounter(&frequency);
    test_equal(out, status_of(wait_for(&event, &soon)), STATUS_TIMEOUT, "event: time-out");
    test_equal(out,
               (KeQueryPerformanceCounter(NULL).QuadPart - before.QuadPart) * 1000 >=
                   3 * frequency.QuadPart,
               1, "event: time-out took its time");
    KeInitializeEvent(&event, SynchronizationEvent, TRUE);
    test_equal(out, status_of(poll(&event)), STATUS_SUCCESS, "synchronization event: first wait");
    test_equal(out, status_of(poll(&event)), STATUS_TIMEOUT, "synchronization event: taken");
}

static void mutexes(void)
{
    KMUTEX mutex;

    KeInitializeMutex(&mutex, 0);
    test_equal(out, status_of(poll(&mutex)), STATUS_SUCCESS, "mutex: free");
    test_equal(out, status_of(poll(&mutex)), STATUS_SUCCESS, "mutex: again by its owner");
    test_equal(out, (uint64_t)(int64_t)KeReleaseMutex(&mutex, FALSE), (uint64_t)-1,
               "mutex: release, state before");
    test_equal(out, (ULONG)KeReleaseMutex(&mutex, FALSE), 0, "mutex: last release, state before");
}

/* ---- Threads ---- */

struct shared {
    KEVENT go, done;
    FAST_MUTEX fast;
    KSPIN_LOCK spin;
    uint64_t fast_count, spin_count;
    uint32_t finished;
};

static struct shared shared;
enum { WORKERS = 4, ROUNDS = 500 };

static VOID NTAPI worker(PVOID context)
{
    struct shared *s = context;

    wait_for(&s->go, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        KIRQL old;

        ExAcquireFastMutex(&s->fast);
        s->fast_count++;
        ExReleaseFastMutex(&s->fast);
        old = KeAcquireSpinLockRaiseToDpc(&s->spin);
        s->spin_count++;
        KeReleaseSpinLock(&s->spin, old);
    }
    __atomic_add_fetch(&s->finished, 1, __ATOMIC_SEQ_CST);
    PsTerminateSystemThread(STATUS_SUCCESS);
}

static void threads(void)
{
    PVOID objects[WORKERS];
    HANDLE handle;

    shared = (struct shared){.fast = {.Count = 1}};
    KeInitializeEvent(&shared.go, NotificationEvent, FALSE);
    KeInitializeEvent(&shared.fast.Event, SynchronizationEvent, FALSE);
    for (int i = 0; i < WORKERS; i++) {
        test_equal(out,
                   status_of(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL,
                                                  worker, &shared)),
                   STATUS_SUCCESS, "thread: creation");
        test_equal(out,
                   status_of(ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, NULL, KernelMode,
                                                       &objects[i], NULL)),
                   STATUS_SUCCESS, "thread: reference by handle");
        test_equal(out, status_of(ZwClose(handle)), STATUS_SUCCESS, "thread: close of the handle");
    }
    test_equal(out, shared.finished, 0, "threads wait for the event");
    KeSetEvent(&shared.go, 0, FALSE);
    for (int i = 0; i < WORKERS; i++) {
        wait_for(objects[i], NULL);
        ObfDereferenceObject(objects[i]);
    }
    test_equal(out, shared.finished, WORKERS, "threads have ended");
    test_equal(out, shared.fast_count, WORKERS * ROUNDS, "fast mutex excludes");
    test_equal(out, shared.spin_count, WORKERS * ROUNDS, "spin lock excludes");
    test_equal(out, status_of(ZwClose(handle)), status_of(STATUS_INVALID_HANDLE),
               "a closed handle");
}

/* ---- DPCs, IPIs, affinity ---- */

struct seen {
    uint32_t processor;
    KIRQL irql;
    uint64_t argument;
};

static struct seen seen[PROCESSORS];
static KEVENT dpc_done;

static VOID NTAPI dpc_routine(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    struct seen *s = context;

    (void)dpc;
    s->processor = KeGetCurrentProcessorNumberEx(NULL);
    s->irql = KeGetCurrentIrql();
    s->argument = (uint64_t)argument1 + (uint64_t)argument2;
    KeSetEvent(&dpc_done, 0, FALSE);
}

static void dpc_on(uint32_t processor)
{
    PROCESSOR_NUMBER number;
    KDPC dpc;

    KeInitializeEvent(&dpc_done, SynchronizationEvent, FALSE);
    KeInitializeDpc(&dpc, dpc_routine, &seen[processor]);
    test_equal_on(out, status_of(KeGetProcessorNumberFromIndex(processor, &number)), STATUS_SUCCESS,
                  "processor number", processor);
    test_equal_on(out, status_of(KeSetTargetProcessorDpcEx(&dpc, &number)), STATUS_SUCCESS,
                  "DPC: target", processor);
    test_equal_on(out, KeInsertQueueDpc(&dpc, (PVOID)40, (PVOID)2), TRUE, "DPC: queued", processor);
    wait_for(&dpc_done, NULL);
    KeFlushQueuedDpcs();
    test_equal_on(out, seen[processor].processor, processor, "DPC: ran there", processor);
    test_equal_on(out, seen[processor].irql, DISPATCH_LEVEL, "DPC: IRQL", processor);
    test_equal_on(out, seen[processor].argument, 42, "DPC: arguments", processor);
}

/* At DISPATCH_LEVEL the processor's own DPC waits, and a second insertion is refused. */
static void dpc_waits(void)
{
    KDPC dpc;
    KIRQL old;

    seen[0] = (struct seen){.argument = 7};
    KeInitializeDpc(&dpc, dpc_routine, &seen[0]);
    old = KeRaiseIrqlToDpcLevel();
    test_equal(out, KeInsertQueueDpc(&dpc, NULL, NULL), TRUE, "DPC: queued at DISPATCH_LEVEL");
    test_equal(out, KeInsertQueueDpc(&dpc, NULL, NULL), FALSE, "DPC: queued twice");
    test_equal(out, seen[0].argument, 7, "DPC: has not run");
    KeLowerIrql(old);
    KeFlushQueuedDpcs();
    test_equal(out, seen[0].argument, 0, "DPC: has run after the IRQL was lowered");
}

static ULONG_PTR NTAPI broadcast(ULONG_PTR context)
{
    struct seen *all = (struct seen *)context;
    uint32_t processor = KeGetCurrentProcessorNumberEx(NULL);

    all[processor] = (struct seen){processor, KeGetCurrentIrql(), 1};
    return 100 + processor;
}

static void broadcasts(void)
{
    ULONG_PTR result;
    uint64_t count = 0;

    for (uint32_t i = 0; i < PROCESSORS; i++)
        seen[i] = (struct seen){0};
    result = KeIpiGenericCall(broadcast, (ULONG_PTR)seen);
    test_equal(out, result >= 100 && result < 100 + in->processors, 1,
               "IPI: result of the caller's");
    for (uint32_t i = 0; i < in->processors; i++) {
        count += seen[i].argument;
        test_equal_on(out, seen[i].irql, IPI_LEVEL, "IPI: IRQL", i);
    }
    test_equal(out, count, in->processors, "IPI: processors");
    test_equal(out, KeGetCurrentIrql(), PASSIVE_LEVEL, "IPI: IRQL afterwards");
}

static void where_am_i(void *context)
{
    *(uint32_t *)context = KeGetCurrentProcessorNumberEx(NULL);
}

static void affinities(void)
{
    GROUP_AFFINITY last = {.Mask = 1ull << (in->processors - 1)}, before;
    KIRQL old;

    for (uint32_t i = in->processors; i-- > 0;) {
        uint32_t where = ~0u;

        test_on_processor(i, where_am_i, &where);
        test_equal_on(out, where, i, "affinity: moved", i);
    }
    test_on_processor(0, where_am_i, &(uint32_t){0});
    old = KeRaiseIrqlToDpcLevel();
    KeSetSystemGroupAffinityThread(&last, &before);
    KeLowerIrql(old);
    test_equal(out, KeGetCurrentProcessorNumberEx(NULL), in->processors - 1,
               "affinity: set at DISPATCH_LEVEL, moves when it is lowered");
    KeRevertToUserGroupAffinityThread(&before);
    test_equal(out, KeQueryActiveProcessorCountEx(0), in->processors, "processors of group 0");
    test_equal(out, KeQueryActiveProcessorCountEx(1), 0, "processors of group 1");
    test_equal(out, KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS), in->processors,
               "processors of all groups");
}

/* ---- Pool, names, time ---- */

static uint64_t sum_bytes(const uint8_t *bytes, uint32_t n)
{
    uint64_t sum = 0;

    while (n--)
        sum += bytes[n];
    return sum;
}

typedef PVOID NTAPI allocate_pool_2(ULONG64 Flags, SIZE_T NumberOfBytes, ULONG Tag);

static void pools(void)
{
    UNICODE_STRING name, nowhere;
    allocate_pool_2 *allocate;
    uint8_t *block = ExAllocatePoolWithTag(NonPagedPoolNx, 100, TAG);

    test_equal(out, block != NULL && (uint64_t)block % 16 == 0, 1, "pool: aligned block");
    for (int i = 0; i < 100; i++)
        block[i] = (uint8_t)i;
    test_equal(out, sum_bytes(block, 100), 4950, "pool: keeps what is written");
    ExFreePoolWithTag(block, TAG);
    RtlInitUnicodeString(&name, u"ExAllocatePool2");
    RtlInitUnicodeString(&nowhere, u"ExAllocatePool3000");
    allocate = (allocate_pool_2 *)MmGetSystemRoutineAddress(&name);
    test_equal(out, MmGetSystemRoutineAddress(&nowhere) == NULL, 1, "routine that is not there");
    test_equal(out, allocate != NULL, 1, "routine by name");
    if (!allocate)
        return;
    block = allocate(POOL_FLAG_NON_PAGED, 333, TAG);
    test_equal(out, sum_bytes(block, 333), 0, "ExAllocatePool2: zeroed");
    ExFreePoolWithTag(block, TAG);
    test_equal(out, (uint64_t)allocate(0, 16, TAG), 0, "ExAllocatePool2: no kind of pool");
}

static void names(void)
{
    UNICODE_STRING a, b, none;

    RtlInitUnicodeString(&a, u"Counter");
    RtlInitUnicodeString(&b, u"cOUNTER");
    RtlInitUnicodeString(&none, NULL);
    test_equal(out, a.Length, 14, "string: length");
    test_equal(out, a.MaximumLength, 16, "string: maximum length");
    test_equal(out, none.Length + none.MaximumLength, 0, "string: none");
    test_equal(out, RtlEqualUnicodeString(&a, &b, TRUE), TRUE, "string: equal but for case");
    test_equal(out, RtlEqualUnicodeString(&a, &b, FALSE), FALSE, "string: not equal");
}

static void times(void)
{
    LARGE_INTEGER frequency, start = KeQueryPerformanceCounter(&frequency), end;
    LARGE_INTEGER delay = milliseconds(2);

    KeDelayExecutionThread(KernelMode, FALSE, &delay);
    end = KeQueryPerformanceCounter(NULL);
    test_equal(out, end.QuadPart - start.QuadPart >= frequency.QuadPart / 500, 1,
               "delay of 2 ms by the performance counter");
}

static void irqls(void)
{
    KIRQL old = KfRaiseIrql(APC_LEVEL), next = KfRaiseIrql(HIGH_LEVEL);
    uint64_t cr8;

    __asm__ volatile("movq %%cr8, %0" : "=r"(cr8));
    KeLowerIrql(next);
    KeLowerIrql(old);
    test_equal(out, old, PASSIVE_LEVEL, "IRQL: first");
    test_equal(out, next, APC_LEVEL, "IRQL: second");
    test_equal(out, cr8, HIGH_LEVEL, "IRQL: is CR8");
}

static void plain(void)
{
    events();
    mutexes();
    threads();
    for (uint32_t i = 0; i < in->processors; i++)
        dpc_on(i);
    dpc_waits();
    broadcasts();
    affinities();
    pools();
    names();
    times();
    irqls();
}

/* ---- Exceptions: routines_seh.h has the guarded functions ---- */

uint64_t seh_rdmsr(uint32_t msr);
uint64_t seh_nested(uint32_t msr);
uint64_t seh_filtered(uint32_t msr);
uint64_t seh_finally(uint32_t msr, volatile uint64_t *ran);
uint64_t seh_write(volatile uint8_t *address);
uint64_t seh_call(const void *address);
LONG NTAPI seh_filter(EXCEPTION_POINTERS *pointers, PVOID frame);

static ULONG filter_code;

LONG NTAPI seh_filter(EXCEPTION_POINTERS *pointers, PVOID frame)
{
    (void)frame;
    filter_code = pointers->ExceptionRecord->ExceptionCode;
    return EXCEPTION_EXECUTE_HANDLER;
}

static const uint8_t constant[16] = "read only data";
static uint8_t variable[16] = {0xc3}; /* a RET */

#define FAULT 0xffffffffffffffffull
#define NO_SUCH_MSR 0x7ffff000u
#define MSR_EFER 0xc0000080u

static void exceptions(void)
{
    volatile uint64_t ran = 0;

    test_equal(out, seh_rdmsr(MSR_EFER) & 0x400, 0x400, "guarded RDMSR of EFER");
    test_equal(out, seh_nested(MSR_EFER) & 0x400, 0x400, "the same one call deeper");
    filter_code = 0;
    test_equal(out, seh_filtered(MSR_EFER) & 0x400, 0x400, "the same with a filter");
    test_equal(out, filter_code, 0, "the filter has not run");
    test_equal(out, seh_write((volatile uint8_t *)variable), 0, "write to data");
    test_equal(out, seh_write((volatile uint8_t *)constant), FAULT, "write to read-only data");
    test_equal(out, constant[0], 'r', "  it is unchanged");
    test_equal(out, seh_write((volatile uint8_t *)(uintptr_t)exceptions), FAULT, "write to code");
    variable[0] = 0xc3;
    test_equal(out, seh_call(variable), FAULT, "call of data");
    test_equal(out, seh_write((volatile uint8_t *)0xffff800000000000ull), FAULT,
               "write to where nothing is");
    test_equal(out, seh_write((volatile uint8_t *)0x8000000000000000ull), FAULT,
               "write to an address that is not canonical");
    test_equal(out, seh_finally(MSR_EFER, &ran) & 0x400, 0x400, "no fault under a finally block");
    test_equal(out, ran, 0, "  which has not run");
    test_equal(out, KeGetCurrentIrql(), PASSIVE_LEVEL, "IRQL afterwards");
}

/* On a machine whose MSRs fault: those of a PMU that is there, at an index that is not. */
static void msr_exceptions(uint32_t msr)
{
    volatile uint64_t ran = 0;

    test_equal(out, seh_rdmsr(msr), FAULT, "RDMSR of no register");
    test_equal(out, seh_nested(msr), FAULT, "the same one call deeper");
    test_equal(out, seh_filtered(msr), FAULT, "the same with a filter");
    test_equal(out, filter_code, status_of(STATUS_PRIVILEGED_INSTRUCTION), "  the filter saw");
    test_equal(out, seh_finally(msr, &ran), FAULT, "the same through a finally block");
    test_equal(out, ran, 1, "  which has run once");
}

/* ---- Broken rules ---- */

static void wrong_irql(void)
{
    LARGE_INTEGER soon = milliseconds(1);
    UNICODE_STRING name;
    KEVENT event;
    KIRQL old;
    PVOID block;

    KeInitializeEvent(&event, NotificationEvent, FALSE);
    RtlInitUnicodeString(&name, u"DbgPrint");
    old = KeRaiseIrqlToDpcLevel();
    wait_for(&event, &soon);                          /* 1: would wait */
    block = ExAllocatePoolWithTag(PagedPool, 8, TAG); /* 2: paged */
    MmGetSystemRoutineAddress(&name);                 /* 3 */
    KfRaiseIrql(PASSIVE_LEVEL);                       /* 4: lowers */
    KeLowerIrql(HIGH_LEVEL);                          /* 5: raises */
    KeLowerIrql(old);
    ExFreePoolWithTag(block, TAG + 1); /* 6: another's tag */
    ExFreePoolWithTag(block, TAG);     /* 7: twice */
    block = ExAllocatePoolWithTag(NonPagedPoolNx, 8, TAG);
    ((volatile uint8_t *)block)[8] = 1;
    ExFreePoolWithTag(block, TAG); /* 8: written behind it */
    old = KfRaiseIrql(PROFILE_LEVEL);
    KeSetEvent(&event, 0, FALSE);                           /* 9 */
    ExAllocatePoolWithTag(NonPagedPoolNx, 0x7fffffff, TAG); /* 10; and too large */
    KeLowerIrql(old);
    KeReleaseSpinLock(&(KSPIN_LOCK){1}, PASSIVE_LEVEL); /* 11: not at DISPATCH_LEVEL */
    test_equal(out, KeGetCurrentIrql(), PASSIVE_LEVEL, "back at PASSIVE_LEVEL");
}

static void leak(void)
{
    HANDLE handle;

    ExAllocatePoolWithTag(NonPagedPoolNx, 24, TAG);
    test_equal(out, status_of(HalAllocateHardwareCounters(NULL, 0, NULL, &handle)), STATUS_SUCCESS,
               "an allocation that is never freed");
}

void test_run(const struct test_input *input, struct test_output *output)
{
    in = input;
    out = output;
    switch (input->section) {
    case ROUTINES_PLAIN:
        plain();
        break;
    case ROUTINES_EXCEPTIONS:
        exceptions();
        if (input->gp)
            msr_exceptions(0x186 + input->gp);
        break;
    case ROUTINES_WRONG_IRQL:
        wrong_irql();
        break;
    case ROUTINES_LEAK:
        leak();
        break;
    }
}

void test_unload(void)
{
}
