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

typedef ULONG_PTR KSPIN_LOCK;

/* Interrupts */

typedef struct KINTERRUPT *PKINTERRUPT; /* opaque */

/* Runs at the message's IRQL. TRUE: the interrupt was the device's. */
typedef BOOLEAN NTAPI KMESSAGE_SERVICE_ROUTINE(PKINTERRUPT Interrupt, PVOID ServiceContext,
                                               ULONG MessageId);

typedef struct {
    PHYSICAL_ADDRESS MessageAddress;
    KAFFINITY TargetProcessorSet;
    PKINTERRUPT InterruptObject;
    ULONG MessageData;
    ULONG Vector;
    KIRQL Irql;
    ULONG Mode;
    ULONG Polarity;
} IO_INTERRUPT_MESSAGE_INFO_ENTRY;
NT_OFFSET(IO_INTERRUPT_MESSAGE_INFO_ENTRY, InterruptObject, 16);
NT_OFFSET(IO_INTERRUPT_MESSAGE_INFO_ENTRY, Irql, 32);
NT_SIZE(IO_INTERRUPT_MESSAGE_INFO_ENTRY, 48);

typedef struct {
    KIRQL UnifiedIrql;
    ULONG MessageCount;
    IO_INTERRUPT_MESSAGE_INFO_ENTRY MessageInfo[1]; /* MessageCount of them */
} IO_INTERRUPT_MESSAGE_INFO, *PIO_INTERRUPT_MESSAGE_INFO;
NT_OFFSET(IO_INTERRUPT_MESSAGE_INFO, MessageInfo, 8);

enum { CONNECT_MESSAGE_BASED = 3 };

typedef struct {
    ULONG Version;
    union {
        struct {
            PDEVICE_OBJECT PhysicalDeviceObject;
            PIO_INTERRUPT_MESSAGE_INFO *ConnectionContext;
            KMESSAGE_SERVICE_ROUTINE *MessageServiceRoutine;
            PVOID ServiceContext;
            KSPIN_LOCK *SpinLock;
            KIRQL SynchronizeIrql;
            BOOLEAN FloatingSave;
            PVOID FallBackServiceRoutine;
        } MessageBased;
        UCHAR Size[72];
    };
} IO_CONNECT_INTERRUPT_PARAMETERS, *PIO_CONNECT_INTERRUPT_PARAMETERS;
NT_OFFSET(IO_CONNECT_INTERRUPT_PARAMETERS, MessageBased.PhysicalDeviceObject, 8);
NT_OFFSET(IO_CONNECT_INTERRUPT_PARAMETERS, MessageBased.SynchronizeIrql, 48);
NT_OFFSET(IO_CONNECT_INTERRUPT_PARAMETERS, MessageBased.FallBackServiceRoutine, 56);
NT_SIZE(IO_CONNECT_INTERRUPT_PARAMETERS, 80);

typedef struct {
    ULONG Version;
    PVOID ConnectionContext;
} IO_DISCONNECT_INTERRUPT_PARAMETERS, *PIO_DISCONNECT_INTERRUPT_PARAMETERS;
NT_OFFSET(IO_DISCONNECT_INTERRUPT_PARAMETERS, ConnectionContext, 8);

/* Resources of a device; packed to 4 bytes. */

enum { CmResourceTypeInterrupt = 2, CmResourceTypeMemory = 3 };
enum { CM_RESOURCE_INTERRUPT_LATCHED = 1, CM_RESOURCE_INTERRUPT_MESSAGE = 2 };

#pragma pack(push, 4)
typedef struct {
    UCHAR Type;
    UCHAR ShareDisposition;
    USHORT Flags;
    union {
        struct {
            PHYSICAL_ADDRESS Start;
            ULONG Length;
        } Memory;
        struct {
            ULONG Level;
            ULONG Vector;
            KAFFINITY Affinity;
        } Interrupt; /* translated */
    } u;
} CM_PARTIAL_RESOURCE_DESCRIPTOR;
#pragma pack(pop)
NT_OFFSET(CM_PARTIAL_RESOURCE_DESCRIPTOR, u.Memory.Length, 12);
NT_SIZE(CM_PARTIAL_RESOURCE_DESCRIPTOR, 20);

typedef struct {
    USHORT Version;
    USHORT Revision;
    ULONG Count;
    CM_PARTIAL_RESOURCE_DESCRIPTOR PartialDescriptors[1]; /* Count of them */
} CM_PARTIAL_RESOURCE_LIST;
NT_OFFSET(CM_PARTIAL_RESOURCE_LIST, PartialDescriptors, 8);

typedef struct {
    ULONG Count; /* of full descriptors; a PCI device has one */
    struct {
        ULONG InterfaceType;
        ULONG BusNumber;
        CM_PARTIAL_RESOURCE_LIST PartialResourceList;
    } List[1];
} CM_RESOURCE_LIST, *PCM_RESOURCE_LIST;
NT_OFFSET(CM_RESOURCE_LIST, List[0].PartialResourceList, 12);
NT_SIZE(CM_RESOURCE_LIST, 40);

/* I/O requests */

enum {
    IRP_MJ_CREATE = 0x00,
    IRP_MJ_CLOSE = 0x02,
    IRP_MJ_DEVICE_CONTROL = 0x0e,
    IRP_MJ_CLEANUP = 0x12,
    IRP_MJ_POWER = 0x16,
    IRP_MJ_SYSTEM_CONTROL = 0x17,
    IRP_MJ_PNP = 0x1b,
    IRP_MJ_MAXIMUM_FUNCTION = 0x1b,
};
enum {
    IRP_MN_START_DEVICE = 0x00,
    IRP_MN_QUERY_REMOVE_DEVICE = 0x01,
    IRP_MN_REMOVE_DEVICE = 0x02,
    IRP_MN_CANCEL_REMOVE_DEVICE = 0x03,
    IRP_MN_STOP_DEVICE = 0x04,
    IRP_MN_QUERY_STOP_DEVICE = 0x05,
    IRP_MN_CANCEL_STOP_DEVICE = 0x06,
    IRP_MN_SURPRISE_REMOVAL = 0x17,
};
enum { SL_PENDING_RETURNED = 1 };
enum { IO_NO_INCREMENT = 0 };
enum { DO_BUFFERED_IO = 0x4, DO_DEVICE_INITIALIZING = 0x80, DO_POWER_PAGABLE = 0x2000 };
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
        struct {
            PCM_RESOURCE_LIST AllocatedResources;
            PCM_RESOURCE_LIST AllocatedResourcesTranslated;
        } StartDevice;
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
NT_OFFSET(IO_STACK_LOCATION, Parameters.StartDevice.AllocatedResourcesTranslated, 16);
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
        PVOID DriverContext[4]; /* [3] belongs to a cancel-safe queue */
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

/* The driver below sees the caller's own stack location. */
static inline VOID IoSkipCurrentIrpStackLocation(PIRP Irp)
{
    Irp->CurrentLocation++;
    Irp->Tail.CurrentStackLocation++;
}

/* Cancel-safe queues of requests; see IO_CSQ in Microsoft's documentation. */

typedef struct IO_CSQ *PIO_CSQ;
typedef VOID NTAPI IO_CSQ_INSERT_IRP(PIO_CSQ Csq, PIRP Irp);
typedef VOID NTAPI IO_CSQ_REMOVE_IRP(PIO_CSQ Csq, PIRP Irp);
typedef PIRP NTAPI IO_CSQ_PEEK_NEXT_IRP(PIO_CSQ Csq, PIRP Irp, PVOID PeekContext);
typedef VOID NTAPI IO_CSQ_ACQUIRE_LOCK(PIO_CSQ Csq, KIRQL *Irql);
typedef VOID NTAPI IO_CSQ_RELEASE_LOCK(PIO_CSQ Csq, KIRQL Irql);
typedef VOID NTAPI IO_CSQ_COMPLETE_CANCELED_IRP(PIO_CSQ Csq, PIRP Irp);

typedef struct IO_CSQ {
    ULONG Type;
    IO_CSQ_INSERT_IRP *CsqInsertIrp;
    IO_CSQ_REMOVE_IRP *CsqRemoveIrp;
    IO_CSQ_PEEK_NEXT_IRP *CsqPeekNextIrp;
    IO_CSQ_ACQUIRE_LOCK *CsqAcquireLock;
    IO_CSQ_RELEASE_LOCK *CsqReleaseLock;
    IO_CSQ_COMPLETE_CANCELED_IRP *CsqCompleteCanceledIrp;
    PVOID ReservePointer;
} IO_CSQ;
NT_OFFSET(IO_CSQ, CsqInsertIrp, 8);
NT_SIZE(IO_CSQ, 64);

/* As a release build of a driver has it. */
typedef struct {
    BOOLEAN Removed;
    BOOLEAN Reserved[3];
    LONG IoCount;
    KEVENT RemoveEvent;
} IO_REMOVE_LOCK;
NT_OFFSET(IO_REMOVE_LOCK, RemoveEvent, 8);
NT_SIZE(IO_REMOVE_LOCK, 32);

/* Objects */

typedef NTSTATUS NTAPI DRIVER_INITIALIZE(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath);
typedef NTSTATUS NTAPI DRIVER_DISPATCH(PDEVICE_OBJECT DeviceObject, PIRP Irp);
typedef VOID NTAPI DRIVER_UNLOAD(PDRIVER_OBJECT DriverObject);
typedef NTSTATUS NTAPI DRIVER_ADD_DEVICE(PDRIVER_OBJECT DriverObject,
                                         PDEVICE_OBJECT PhysicalDeviceObject);

typedef struct {
    PDRIVER_OBJECT DriverObject;
    DRIVER_ADD_DEVICE *AddDevice;
    ULONG Count;
    UNICODE_STRING ServiceKeyName;
} DRIVER_EXTENSION;
NT_OFFSET(DRIVER_EXTENSION, AddDevice, 8);

typedef struct DRIVER_OBJECT {
    CSHORT Type; /* 4 */
    CSHORT Size;
    PDEVICE_OBJECT DeviceObject;
    ULONG Flags;
    PVOID DriverStart;
    ULONG DriverSize;
    PVOID DriverSection;
    DRIVER_EXTENSION *DriverExtension;
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
NT_OFFSET(DRIVER_OBJECT, DriverExtension, 0x30);
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

NTIMPORT NTSTATUS NTAPI IofCallDriver(PDEVICE_OBJECT DeviceObject, PIRP Irp); /* DISPATCH */
NTIMPORT BOOLEAN NTAPI IoForwardIrpSynchronously(PDEVICE_OBJECT DeviceObject, PIRP Irp); /* APC */
NTIMPORT PDEVICE_OBJECT NTAPI IoAttachDeviceToDeviceStack(
    PDEVICE_OBJECT SourceDevice, PDEVICE_OBJECT TargetDevice);   /* DISPATCH */
NTIMPORT VOID NTAPI IoDetachDevice(PDEVICE_OBJECT TargetDevice); /* APC */
NTIMPORT VOID NTAPI IoInitializeRemoveLockEx(IO_REMOVE_LOCK *Lock, ULONG AllocateTag,
                                             ULONG MaxLockedMinutes, ULONG HighWatermark,
                                             ULONG RemlockSize); /* PASSIVE */
NTIMPORT NTSTATUS NTAPI IoAcquireRemoveLockEx(IO_REMOVE_LOCK *RemoveLock, PVOID Tag,
                                              const char *File, ULONG Line,
                                              ULONG RemlockSize); /* DISPATCH */
NTIMPORT VOID NTAPI IoReleaseRemoveLockEx(IO_REMOVE_LOCK *RemoveLock, PVOID Tag,
                                          ULONG RemlockSize); /* DISPATCH */
NTIMPORT VOID NTAPI IoReleaseRemoveLockAndWaitEx(IO_REMOVE_LOCK *RemoveLock, PVOID Tag,
                                                 ULONG RemlockSize); /* PASSIVE */
NTIMPORT NTSTATUS NTAPI
IoConnectInterruptEx(PIO_CONNECT_INTERRUPT_PARAMETERS Parameters); /* PASSIVE */
NTIMPORT VOID NTAPI
IoDisconnectInterruptEx(PIO_DISCONNECT_INTERRUPT_PARAMETERS Parameters); /* PASSIVE */
NTIMPORT NTSTATUS NTAPI IoCsqInitialize(PIO_CSQ Csq, IO_CSQ_INSERT_IRP *CsqInsertIrp,
                                        IO_CSQ_REMOVE_IRP *CsqRemoveIrp,
                                        IO_CSQ_PEEK_NEXT_IRP *CsqPeekNextIrp,
                                        IO_CSQ_ACQUIRE_LOCK *CsqAcquireLock,
                                        IO_CSQ_RELEASE_LOCK *CsqReleaseLock,
                                        IO_CSQ_COMPLETE_CANCELED_IRP *CsqCompleteCanceledIrp);
NTIMPORT VOID NTAPI IoCsqInsertIrp(PIO_CSQ Csq, PIRP Irp, PVOID Context); /* DISPATCH */
NTIMPORT PIRP NTAPI IoCsqRemoveNextIrp(PIO_CSQ Csq, PVOID PeekContext);   /* DISPATCH */

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

NTIMPORT NTSTATUS NTAPI KeDelayExecutionThread(KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                               PLARGE_INTEGER Interval);                   /* APC */
NTIMPORT VOID NTAPI KeInitializeDpc(PKDPC Dpc, KDEFERRED_ROUTINE *Routine, PVOID Context); /* any */
NTIMPORT BOOLEAN NTAPI KeInsertQueueDpc(PKDPC Dpc, PVOID Argument1, PVOID Argument2);      /* any */
NTIMPORT VOID NTAPI KeFlushQueuedDpcs(VOID);                                /* PASSIVE */
NTIMPORT KIRQL NTAPI KeAcquireSpinLockRaiseToDpc(KSPIN_LOCK *SpinLock);     /* DISPATCH */
NTIMPORT VOID NTAPI KeReleaseSpinLock(KSPIN_LOCK *SpinLock, KIRQL NewIrql); /* DISPATCH */

NTIMPORT PVOID NTAPI MmMapIoSpace(PHYSICAL_ADDRESS PhysicalAddress, SIZE_T NumberOfBytes,
                                  ULONG CacheType);                          /* DISPATCH */
NTIMPORT VOID NTAPI MmUnmapIoSpace(PVOID BaseAddress, SIZE_T NumberOfBytes); /* DISPATCH */

NTIMPORT BOOLEAN NTAPI SeSinglePrivilegeCheck(LUID PrivilegeValue,
                                              KPROCESSOR_MODE PreviousMode); /* PASSIVE */

NTIMPORT ULONG NTAPI DbgPrint(const char *Format, ...); /* DIRQL; no wide string above PASSIVE */

#endif
