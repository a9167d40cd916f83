/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subset of the Windows Driver Model that our drivers use: objects with their x64 layouts, and
 * the routines of ntoskrnl.exe. Fields that a driver has no business with are kept as reserved
 * bytes.
 */
#ifndef VPMU_NT_KERNEL_H
#define VPMU_NT_KERNEL_H

#include "nt/types.h"

typedef struct DRIVER_OBJECT *PDRIVER_OBJECT;
typedef struct DEVICE_OBJECT *PDEVICE_OBJECT;
typedef struct FILE_OBJECT *PFILE_OBJECT;
typedef struct IRP *PIRP;
typedef struct IO_STACK_LOCATION *PIO_STACK_LOCATION;
typedef struct KDPC *PKDPC;

/* Dispatcher objects */

typedef struct {
    UCHAR Type;
    UCHAR Signalling;
    UCHAR Size;
    UCHAR Reserved;
    LONG SignalState;
    LIST_ENTRY WaitListHead;
} DISPATCHER_HEADER;
NT_OFFSET(DISPATCHER_HEADER, SignalState, 4);
NT_OFFSET(DISPATCHER_HEADER, WaitListHead, 8);
NT_SIZE(DISPATCHER_HEADER, 24);

typedef struct {
    DISPATCHER_HEADER Header;
} KEVENT, *PKEVENT;
NT_SIZE(KEVENT, 24);

typedef struct {
    DISPATCHER_HEADER Header;
    LIST_ENTRY MutantListEntry;
    PVOID OwnerThread;
    UCHAR Abandoned;
    UCHAR ApcDisable;
} KMUTEX, *PKMUTEX;
NT_OFFSET(KMUTEX, OwnerThread, 40);
NT_SIZE(KMUTEX, 56);

typedef enum { NotificationEvent = 0, SynchronizationEvent = 1 } EVENT_TYPE;
typedef enum { Executive = 0 } KWAIT_REASON;

/* Deferred procedure calls */

typedef VOID NTAPI KDEFERRED_ROUTINE(PKDPC Dpc, PVOID DeferredContext, PVOID SystemArgument1,
                                     PVOID SystemArgument2);

typedef struct KDPC {
    UCHAR Type;
    UCHAR Importance;
    USHORT Number;
    PVOID DpcListEntry;
    KAFFINITY ProcessorHistory;
    KDEFERRED_ROUTINE *DeferredRoutine;
    PVOID DeferredContext;
    PVOID SystemArgument1;
    PVOID SystemArgument2;
    PVOID DpcData;
} KDPC;
NT_OFFSET(KDPC, DpcListEntry, 8);
NT_OFFSET(KDPC, DeferredRoutine, 24);
NT_OFFSET(KDPC, DpcData, 56);
NT_SIZE(KDPC, 64);

/* I/O requests */

enum {
    IRP_MJ_CREATE = 0x00,
    IRP_MJ_CLOSE = 0x02,
    IRP_MJ_DEVICE_CONTROL = 0x0e,
    IRP_MJ_CLEANUP = 0x12,
    IRP_MJ_MAXIMUM_FUNCTION = 0x1b,
};
enum { IO_NO_INCREMENT = 0 };
enum { DO_BUFFERED_IO = 0x4, DO_DEVICE_INITIALIZING = 0x80 };
enum { FILE_DEVICE_UNKNOWN = 0x22, FILE_DEVICE_SECURE_OPEN = 0x100 };

#ifndef CTL_CODE
#define CTL_CODE(type, function, method, access)                                                   \
    (((uint32_t)(type) << 16) | ((uint32_t)(access) << 14) | ((uint32_t)(function) << 2) |         \
     (uint32_t)(method))
#endif
enum { METHOD_BUFFERED = 0, METHOD_NEITHER = 3 };
enum { FILE_ANY_ACCESS = 0, FILE_READ_ACCESS = 1, FILE_WRITE_ACCESS = 2 };

typedef struct {
    union {
        NTSTATUS Status;
        PVOID Pointer;
    };
    ULONG_PTR Information;
} IO_STATUS_BLOCK, *PIO_STATUS_BLOCK;
NT_OFFSET(IO_STATUS_BLOCK, Information, 8);
NT_SIZE(IO_STATUS_BLOCK, 16);

typedef struct IO_STACK_LOCATION {
    UCHAR MajorFunction;
    UCHAR MinorFunction;
    UCHAR Flags;
    UCHAR Control;
    union {
        struct {
            ULONG OutputBufferLength;
            ULONG OutputPadding;
            ULONG InputBufferLength;
            ULONG InputPadding;
            ULONG IoControlCode;
            ULONG CodePadding;
            PVOID Type3InputBuffer;
        } DeviceIoControl;
        PVOID Argument[4];
    } Parameters;
    PDEVICE_OBJECT DeviceObject;
    PFILE_OBJECT FileObject;
    PVOID CompletionRoutine;
    PVOID Context;
} IO_STACK_LOCATION;
NT_OFFSET(IO_STACK_LOCATION, Parameters.DeviceIoControl.OutputBufferLength, 8);
NT_OFFSET(IO_STACK_LOCATION, Parameters.DeviceIoControl.InputBufferLength, 16);
NT_OFFSET(IO_STACK_LOCATION, Parameters.DeviceIoControl.IoControlCode, 24);
NT_OFFSET(IO_STACK_LOCATION, DeviceObject, 40);
NT_OFFSET(IO_STACK_LOCATION, FileObject, 48);
NT_SIZE(IO_STACK_LOCATION, 72);

typedef struct IRP {
    CSHORT Type; /* 6 */
    USHORT Size; /* of the packet with its stack locations */
    USHORT AllocationProcessorNumber;
    USHORT Reserved;
    PVOID MdlAddress;
    ULONG Flags;
    union {
        struct IRP *MasterIrp;
        LONG IrpCount;
        PVOID SystemBuffer;
    } AssociatedIrp;
    LIST_ENTRY ThreadListEntry;
    IO_STATUS_BLOCK IoStatus;
    KPROCESSOR_MODE RequestorMode;
    BOOLEAN PendingReturned;
    CHAR StackCount;
    CHAR CurrentLocation;
    BOOLEAN Cancel;
    KIRQL CancelIrql;
    CCHAR ApcEnvironment;
    UCHAR AllocationFlags;
    PIO_STATUS_BLOCK UserIosb;
    PKEVENT UserEvent;
    PVOID Overlay[2];
    PVOID CancelRoutine;
    PVOID UserBuffer;
    struct {
        PVOID DriverContext[4];
        PVOID Thread;
        PVOID AuxiliaryBuffer;
        LIST_ENTRY ListEntry;
        PIO_STACK_LOCATION CurrentStackLocation;
        PFILE_OBJECT OriginalFileObject;
        PVOID IrpExtension;
    } Tail;
} IRP;
NT_OFFSET(IRP, MdlAddress, 0x08);
NT_OFFSET(IRP, AssociatedIrp, 0x18);
NT_OFFSET(IRP, IoStatus, 0x30);
NT_OFFSET(IRP, RequestorMode, 0x40);
NT_OFFSET(IRP, UserIosb, 0x48);
NT_OFFSET(IRP, CancelRoutine, 0x68);
NT_OFFSET(IRP, UserBuffer, 0x70);
NT_OFFSET(IRP, Tail.Thread, 0x98);
NT_OFFSET(IRP, Tail.CurrentStackLocation, 0xb8);
NT_SIZE(IRP, 0xd0);

static inline PIO_STACK_LOCATION IoGetCurrentIrpStackLocation(PIRP Irp)
{
    return Irp->Tail.CurrentStackLocation;
}

/* Objects */

typedef NTSTATUS NTAPI DRIVER_INITIALIZE(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath);
typedef NTSTATUS NTAPI DRIVER_DISPATCH(PDEVICE_OBJECT DeviceObject, PIRP Irp);
typedef VOID NTAPI DRIVER_UNLOAD(PDRIVER_OBJECT DriverObject);

typedef struct DRIVER_OBJECT {
    CSHORT Type; /* 4 */
    CSHORT Size;
    PDEVICE_OBJECT DeviceObject;
    ULONG Flags;
    PVOID DriverStart;
    ULONG DriverSize;
    PVOID DriverSection;
    PVOID DriverExtension;
    UNICODE_STRING DriverName;
    PUNICODE_STRING HardwareDatabase;
    PVOID FastIoDispatch;
    DRIVER_INITIALIZE *DriverInit;
    PVOID DriverStartIo;
    DRIVER_UNLOAD *DriverUnload;
    DRIVER_DISPATCH *MajorFunction[IRP_MJ_MAXIMUM_FUNCTION + 1];
} DRIVER_OBJECT;
NT_OFFSET(DRIVER_OBJECT, DeviceObject, 0x08);
NT_OFFSET(DRIVER_OBJECT, DriverStart, 0x18);
NT_OFFSET(DRIVER_OBJECT, DriverName, 0x38);
NT_OFFSET(DRIVER_OBJECT, DriverUnload, 0x68);
NT_OFFSET(DRIVER_OBJECT, MajorFunction, 0x70);
NT_SIZE(DRIVER_OBJECT, 0x150);

typedef struct DEVICE_OBJECT {
    CSHORT Type; /* 3 */
    USHORT Size;
    LONG ReferenceCount;
    PDRIVER_OBJECT DriverObject;
    PDEVICE_OBJECT NextDevice;
    PDEVICE_OBJECT AttachedDevice;
    PIRP CurrentIrp;
    PVOID Timer;
    ULONG Flags;
    ULONG Characteristics;
    PVOID Vpb;
    PVOID DeviceExtension;
    ULONG DeviceType;
    CCHAR StackSize;
    PVOID Queue[9];
    ULONG AlignmentRequirement;
    PVOID DeviceQueue[5];
    KDPC Dpc;
    ULONG ActiveThreadCount;
    PVOID SecurityDescriptor;
    KEVENT DeviceLock;
    USHORT SectorSize;
    USHORT Spare1;
    PVOID DeviceObjectExtension;
    PVOID Reserved[2];
} DEVICE_OBJECT;
NT_OFFSET(DEVICE_OBJECT, DriverObject, 0x08);
NT_OFFSET(DEVICE_OBJECT, Flags, 0x30);
NT_OFFSET(DEVICE_OBJECT, DeviceExtension, 0x40);
NT_OFFSET(DEVICE_OBJECT, StackSize, 0x4c);
NT_OFFSET(DEVICE_OBJECT, AlignmentRequirement, 0x98);
NT_OFFSET(DEVICE_OBJECT, Dpc, 0xc8);
NT_OFFSET(DEVICE_OBJECT, SecurityDescriptor, 0x110);
NT_OFFSET(DEVICE_OBJECT, DeviceObjectExtension, 0x138);
NT_SIZE(DEVICE_OBJECT, 0x150);

typedef struct FILE_OBJECT {
    CSHORT Type; /* 5 */
    CSHORT Size;
    PDEVICE_OBJECT DeviceObject;
    PVOID Vpb;
    PVOID FsContext;
    PVOID FsContext2;
    PVOID SectionObjectPointer;
    PVOID PrivateCacheMap;
    NTSTATUS FinalStatus;
    PFILE_OBJECT RelatedFileObject;
    BOOLEAN LockOperation[8];
    ULONG Flags;
    UNICODE_STRING FileName;
    LARGE_INTEGER CurrentByteOffset;
    ULONG Waiters;
    ULONG Busy;
    PVOID LastLock;
    KEVENT Lock;
    KEVENT Event;
    PVOID CompletionContext;
    ULONG_PTR IrpListLock;
    LIST_ENTRY IrpList;
    PVOID FileObjectExtension;
} FILE_OBJECT;
NT_OFFSET(FILE_OBJECT, FsContext, 0x18);
NT_OFFSET(FILE_OBJECT, Flags, 0x50);
NT_OFFSET(FILE_OBJECT, FileName, 0x58);
NT_OFFSET(FILE_OBJECT, Lock, 0x80);
NT_SIZE(FILE_OBJECT, 0xd8);

typedef struct {
    ULONG dwOSVersionInfoSize;
    ULONG dwMajorVersion;
    ULONG dwMinorVersion;
    ULONG dwBuildNumber;
    ULONG dwPlatformId;
    WCHAR szCSDVersion[128];
} RTL_OSVERSIONINFOW, *PRTL_OSVERSIONINFOW;
NT_OFFSET(RTL_OSVERSIONINFOW, dwBuildNumber, 12);
NT_SIZE(RTL_OSVERSIONINFOW, 276);

typedef enum { NonPagedPool = 0, PagedPool = 1, NonPagedPoolNx = 512 } POOL_TYPE;
typedef enum { MmNonCached = 0, MmCached = 1 } MEMORY_CACHING_TYPE;

enum { SE_SYSTEM_PROFILE_PRIVILEGE = 11 };

/* Structured exception handling: what a guarded range in assembly leaves in .pdata and .xdata. */

typedef struct {
    ULONG BeginAddress; /* all three relative to the image */
    ULONG EndAddress;
    ULONG UnwindInfoAddress;
} RUNTIME_FUNCTION;
NT_SIZE(RUNTIME_FUNCTION, 12);

enum { EXCEPTION_EXECUTE_HANDLER = 1 };

typedef struct {
    ULONG Count;
    struct {
        ULONG BeginAddress;
        ULONG EndAddress;
        ULONG HandlerAddress; /* a filter, or EXCEPTION_EXECUTE_HANDLER */
        ULONG JumpTarget;
    } ScopeRecord[1];
} SCOPE_TABLE;
NT_OFFSET(SCOPE_TABLE, ScopeRecord, 4);

/* ntoskrnl.exe. The highest IRQL at which each may be called stands behind it. */

NTIMPORT NTSTATUS NTAPI IoCreateDevice(PDRIVER_OBJECT DriverObject, ULONG DeviceExtensionSize,
                                       PUNICODE_STRING DeviceName, ULONG DeviceType,
                                       ULONG DeviceCharacteristics, BOOLEAN Exclusive,
                                       PDEVICE_OBJECT *DeviceObject); /* APC */
NTIMPORT VOID NTAPI IoDeleteDevice(PDEVICE_OBJECT DeviceObject);      /* APC */
NTIMPORT NTSTATUS NTAPI IoCreateSymbolicLink(PUNICODE_STRING SymbolicLinkName,
                                             PUNICODE_STRING DeviceName);       /* PASSIVE */
NTIMPORT NTSTATUS NTAPI IoDeleteSymbolicLink(PUNICODE_STRING SymbolicLinkName); /* PASSIVE */
NTIMPORT VOID NTAPI IofCompleteRequest(PIRP Irp, CCHAR PriorityBoost);          /* DISPATCH */

NTIMPORT VOID NTAPI RtlInitUnicodeString(PUNICODE_STRING DestinationString,
                                         PCWSTR SourceString);                 /* DISPATCH */
NTIMPORT NTSTATUS NTAPI RtlGetVersion(PRTL_OSVERSIONINFOW VersionInformation); /* PASSIVE */

NTIMPORT PVOID NTAPI ExAllocatePoolWithTag(ULONG PoolType, SIZE_T NumberOfBytes,
                                           ULONG Tag);     /* DISPATCH */
NTIMPORT VOID NTAPI ExFreePoolWithTag(PVOID P, ULONG Tag); /* DISPATCH */

NTIMPORT VOID NTAPI KeInitializeMutex(PKMUTEX Mutex, ULONG Level); /* any */
NTIMPORT LONG NTAPI KeReleaseMutex(PKMUTEX Mutex, BOOLEAN Wait);   /* DISPATCH */
NTIMPORT NTSTATUS NTAPI
KeWaitForSingleObject(PVOID Object, ULONG WaitReason, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                      PLARGE_INTEGER Timeout); /* APC without a time-out of 0 */

NTIMPORT ULONG NTAPI KeQueryActiveProcessorCountEx(USHORT GroupNumber);  /* any */
NTIMPORT ULONG NTAPI KeQueryMaximumProcessorCountEx(USHORT GroupNumber); /* any */
NTIMPORT NTSTATUS NTAPI KeGetProcessorNumberFromIndex(ULONG ProcIndex,
                                                      PPROCESSOR_NUMBER ProcNumber); /* any */
NTIMPORT ULONG NTAPI KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber);    /* any */
NTIMPORT VOID NTAPI KeSetSystemGroupAffinityThread(PGROUP_AFFINITY Affinity,
                                                   PGROUP_AFFINITY PreviousAffinity);    /* APC */
NTIMPORT VOID NTAPI KeRevertToUserGroupAffinityThread(PGROUP_AFFINITY PreviousAffinity); /* APC */

typedef ULONG_PTR NTAPI KIPI_BROADCAST_WORKER(ULONG_PTR Argument); /* runs at IPI_LEVEL */
NTIMPORT ULONG_PTR NTAPI KeIpiGenericCall(KIPI_BROADCAST_WORKER *BroadcastFunction,
                                          ULONG_PTR Context); /* below IPI_LEVEL */

NTIMPORT PVOID NTAPI MmMapIoSpace(PHYSICAL_ADDRESS PhysicalAddress, SIZE_T NumberOfBytes,
                                  ULONG CacheType);                          /* DISPATCH */
NTIMPORT VOID NTAPI MmUnmapIoSpace(PVOID BaseAddress, SIZE_T NumberOfBytes); /* DISPATCH */

NTIMPORT BOOLEAN NTAPI SeSinglePrivilegeCheck(LUID PrivilegeValue,
                                              KPROCESSOR_MODE PreviousMode); /* PASSIVE */

NTIMPORT ULONG NTAPI DbgPrint(const char *Format, ...); /* DIRQL; no wide string above PASSIVE */

#endif
