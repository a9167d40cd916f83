/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NT_MORE_H
#define NT_MORE_H

/*
 * What the NT test guest exports beyond the needs of our drivers, which guest-drivers/include/nt
 * declares: documented routines and structures of x64 Windows 10 1903 and later.
 */

#include "nt/counters.h"
#include "nt/kernel.h"
#include "nt/types.h"

#ifdef __MINGW32__
typedef __builtin_va_list NT_VA_LIST;
#else
typedef __builtin_ms_va_list NT_VA_LIST;
#endif

#define STATUS_TIMEOUT ((NTSTATUS)0x00000102)
#define STATUS_MORE_PROCESSING_REQUIRED ((NTSTATUS)0xC0000016)
#define STATUS_MUTANT_NOT_OWNED ((NTSTATUS)0xC0000046)
#define STATUS_INTEGER_DIVIDE_BY_ZERO ((NTSTATUS)0xC0000094)
#define STATUS_ILLEGAL_INSTRUCTION ((NTSTATUS)0xC000001D)

typedef struct {
    LONG Count; /* 1: free */
    PVOID Owner;
    ULONG Contention;
    KEVENT Event;
    ULONG OldIrql;
} FAST_MUTEX, *PFAST_MUTEX;
NT_OFFSET(FAST_MUTEX, Event, 24);
NT_OFFSET(FAST_MUTEX, OldIrql, 48);
NT_SIZE(FAST_MUTEX, 56);

enum { LowImportance = 0, MediumImportance = 1, HighImportance = 2 };
enum { THREAD_ALL_ACCESS = 0x1fffff };

#define POOL_FLAG_UNINITIALIZED UINT64_C(0x2)
#define POOL_FLAG_NON_PAGED UINT64_C(0x40)
#define POOL_FLAG_PAGED UINT64_C(0x100)

typedef VOID NTAPI KSTART_ROUTINE(PVOID StartContext);
typedef VOID NTAPI CREATE_PROCESS_NOTIFY_ROUTINE(HANDLE ParentId, HANDLE ProcessId, BOOLEAN Create);

NTIMPORT PVOID NTAPI ExAllocatePool2(ULONG64 Flags, SIZE_T NumberOfBytes, ULONG Tag);
NTIMPORT VOID NTAPI ExFreePool(PVOID P);
NTIMPORT VOID NTAPI ExAcquireFastMutex(PFAST_MUTEX Mutex);
NTIMPORT VOID NTAPI ExReleaseFastMutex(PFAST_MUTEX Mutex);
NTIMPORT BOOLEAN NTAPI ExTryToAcquireFastMutex(PFAST_MUTEX Mutex);
NTIMPORT PVOID NTAPI MmGetSystemRoutineAddress(PUNICODE_STRING SystemRoutineName);
NTIMPORT ULONG NTAPI DbgPrintEx(ULONG ComponentId, ULONG Level, const char *Format, ...);

NTIMPORT VOID NTAPI KeInitializeEvent(PKEVENT Event, ULONG Type, BOOLEAN State);
NTIMPORT LONG NTAPI KeSetEvent(PKEVENT Event, KPRIORITY Increment, BOOLEAN Wait);
NTIMPORT LONG NTAPI KeResetEvent(PKEVENT Event);
NTIMPORT VOID NTAPI KeClearEvent(PKEVENT Event);
NTIMPORT LONG NTAPI KeReadStateEvent(PKEVENT Event);

NTIMPORT NTSTATUS NTAPI KeSetTargetProcessorDpcEx(PKDPC Dpc, PPROCESSOR_NUMBER ProcNumber);
NTIMPORT VOID NTAPI KeSetTargetProcessorDpc(PKDPC Dpc, CCHAR Number);
NTIMPORT VOID NTAPI KeSetImportanceDpc(PKDPC Dpc, ULONG Importance);
NTIMPORT BOOLEAN NTAPI KeRemoveQueueDpc(PKDPC Dpc);

NTIMPORT USHORT NTAPI KeQueryActiveGroupCount(VOID);
NTIMPORT KAFFINITY NTAPI KeQueryGroupAffinity(USHORT GroupNumber);
NTIMPORT ULONG NTAPI KeGetProcessorIndexFromNumber(PPROCESSOR_NUMBER ProcNumber);
NTIMPORT LARGE_INTEGER NTAPI KeQueryPerformanceCounter(PLARGE_INTEGER PerformanceFrequency);

NTIMPORT KIRQL NTAPI KfRaiseIrql(KIRQL NewIrql);
NTIMPORT VOID NTAPI KeLowerIrql(KIRQL NewIrql);
NTIMPORT KIRQL NTAPI KeGetCurrentIrql(VOID);
NTIMPORT KIRQL NTAPI KeRaiseIrqlToDpcLevel(VOID);
NTIMPORT VOID NTAPI KeAcquireSpinLockAtDpcLevel(KSPIN_LOCK *SpinLock);
NTIMPORT VOID NTAPI KeReleaseSpinLockFromDpcLevel(KSPIN_LOCK *SpinLock);

NTIMPORT HANDLE NTAPI PsGetCurrentProcessId(VOID);
NTIMPORT HANDLE NTAPI PsGetCurrentThreadId(VOID);
NTIMPORT PVOID NTAPI IoGetCurrentProcess(VOID);
NTIMPORT PVOID NTAPI KeGetCurrentThread(VOID);
NTIMPORT NTSTATUS NTAPI PsCreateSystemThread(PHANDLE ThreadHandle, ULONG DesiredAccess,
                                             PVOID ObjectAttributes, HANDLE ProcessHandle,
                                             PVOID ClientId, KSTART_ROUTINE *StartRoutine,
                                             PVOID StartContext);
NTIMPORT NTSTATUS NTAPI PsTerminateSystemThread(NTSTATUS ExitStatus);
NTIMPORT NTSTATUS NTAPI
PsSetCreateProcessNotifyRoutine(CREATE_PROCESS_NOTIFY_ROUTINE *NotifyRoutine, BOOLEAN Remove);
NTIMPORT NTSTATUS NTAPI ObReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess,
                                                  PVOID ObjectType, KPROCESSOR_MODE AccessMode,
                                                  PVOID *Object, PVOID HandleInformation);
NTIMPORT LONGLONG NTAPI ObfReferenceObject(PVOID Object);
NTIMPORT LONGLONG NTAPI ObfDereferenceObject(PVOID Object);
NTIMPORT NTSTATUS NTAPI ZwClose(HANDLE Handle);

NTIMPORT SIZE_T NTAPI RtlCompareMemory(const void *Source1, const void *Source2, SIZE_T Length);
NTIMPORT BOOLEAN NTAPI RtlEqualUnicodeString(const UNICODE_STRING *String1,
                                             const UNICODE_STRING *String2,
                                             BOOLEAN CaseInsensitive);

/* Structured exception handling (x64 exception handling, Microsoft's C++ documentation). */

typedef struct {
    ULONG ExceptionCode;
    ULONG ExceptionFlags;
    PVOID ExceptionRecord;
    PVOID ExceptionAddress;
    ULONG NumberParameters;
    ULONG_PTR ExceptionInformation[15];
} EXCEPTION_RECORD;
NT_SIZE(EXCEPTION_RECORD, 152);

typedef struct __attribute__((aligned(16))) {
    ULONGLONG Home[6];
    ULONG ContextFlags;
    ULONG MxCsr;
    USHORT SegCs, SegDs, SegEs, SegFs, SegGs, SegSs;
    ULONG EFlags;
    ULONGLONG Dr[6];
    ULONGLONG Gpr[16]; /* rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15 */
    ULONGLONG Rip;
    UCHAR Extended[976];
} CONTEXT;
NT_OFFSET(CONTEXT, EFlags, 0x44);
NT_OFFSET(CONTEXT, Gpr, 0x78);
NT_OFFSET(CONTEXT, Rip, 0xf8);
NT_SIZE(CONTEXT, 1232);

typedef struct {
    EXCEPTION_RECORD *ExceptionRecord;
    CONTEXT *ContextRecord;
} EXCEPTION_POINTERS;

struct DISPATCHER_CONTEXT;
typedef int NTAPI EXCEPTION_ROUTINE(EXCEPTION_RECORD *ExceptionRecord, PVOID EstablisherFrame,
                                    CONTEXT *ContextRecord,
                                    struct DISPATCHER_CONTEXT *DispatcherContext);

typedef struct DISPATCHER_CONTEXT {
    ULONGLONG ControlPc;
    ULONGLONG ImageBase;
    RUNTIME_FUNCTION *FunctionEntry;
    ULONGLONG EstablisherFrame;
    ULONGLONG TargetIp;
    CONTEXT *ContextRecord;
    EXCEPTION_ROUTINE *LanguageHandler;
    PVOID HandlerData;
    PVOID HistoryTable;
    ULONG ScopeIndex;
    ULONG Fill0;
} DISPATCHER_CONTEXT;
NT_OFFSET(DISPATCHER_CONTEXT, ContextRecord, 0x28);
NT_OFFSET(DISPATCHER_CONTEXT, HandlerData, 0x38);
NT_SIZE(DISPATCHER_CONTEXT, 80);

enum { ExceptionContinueExecution = 0, ExceptionContinueSearch = 1 };
enum { EXCEPTION_UNWINDING = 0x02, EXCEPTION_TARGET_UNWIND = 0x20 };
enum { EXCEPTION_CONTINUE_SEARCH = 0, EXCEPTION_CONTINUE_EXECUTION = -1 };

NTIMPORT int NTAPI __C_specific_handler(EXCEPTION_RECORD *ExceptionRecord, PVOID EstablisherFrame,
                                        CONTEXT *ContextRecord,
                                        DISPATCHER_CONTEXT *DispatcherContext);

/* Thread profiling, the user-mode side (winbase.h; the size of the block was measured). */

typedef struct {
    ULONG Type;
    ULONG Reserved;
    ULONG64 Value;
} HARDWARE_COUNTER_DATA;
NT_OFFSET(HARDWARE_COUNTER_DATA, Value, 8);
NT_SIZE(HARDWARE_COUNTER_DATA, 16);

typedef struct {
    USHORT Size;
    UCHAR Version;
    UCHAR HwCountersCount;
    ULONG ContextSwitchCount;
    ULONG64 WaitReasonBitMap;
    ULONG64 CycleTime;
    ULONG RetryCount;
    ULONG Reserved;
    HARDWARE_COUNTER_DATA HwCounters[MAX_HW_COUNTERS];
} PERFORMANCE_DATA;
NT_OFFSET(PERFORMANCE_DATA, Version, 2);
NT_OFFSET(PERFORMANCE_DATA, HwCountersCount, 3);
NT_OFFSET(PERFORMANCE_DATA, ContextSwitchCount, 4);
NT_OFFSET(PERFORMANCE_DATA, WaitReasonBitMap, 8);
NT_OFFSET(PERFORMANCE_DATA, CycleTime, 16);
NT_OFFSET(PERFORMANCE_DATA, RetryCount, 24);
NT_OFFSET(PERFORMANCE_DATA, HwCounters, 32);
NT_SIZE(PERFORMANCE_DATA, 288);

enum { PERFORMANCE_DATA_VERSION = 1 };
enum { THREAD_PROFILING_FLAG_DISPATCH = 1 };
enum {
    READ_THREAD_PROFILING_FLAG_DISPATCHING = 1,
    READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS = 2
};

#endif
