/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hardware counters in the NT kernel: allocation (hal.dll) and thread profiling (ntoskrnl.exe).
 *
 * Layouts are those of x64 Windows 10 1903 and later. The declarations that ship with mingw-w64 are
 * older: there a descriptor has 16 bytes and follows its count at once.
 */
#ifndef VPMU_NT_COUNTERS_H
#define VPMU_NT_COUNTERS_H

#include "nt/types.h"

typedef enum {
    ResourceTypeSingle = 0,
    ResourceTypeRange = 1,
    ResourceTypeExtendedCounterConfiguration = 2,
    ResourceTypeOverflow = 3,
    ResourceTypeEventBuffer = 4,
    ResourceTypeIdenitificationTag = 5, /* the spelling of Microsoft's header */
    ResourceTypeMax = 6,
} PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE;

/* Both run at PROFILE_LEVEL: no paged memory, no spin lock. */
typedef VOID NTAPI PHYSICAL_COUNTER_OVERFLOW_HANDLER(ULONGLONG OverflowBits, HANDLE OwningHandle);
typedef VOID NTAPI PHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER(PVOID EventBuffer,
                                                                  SIZE_T EntrySize,
                                                                  SIZE_T NumberOfEntries,
                                                                  HANDLE OwningHandle);

typedef struct {
    PHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER *OverflowHandler;
    ULONG CustomEventBufferEntrySize;
    ULONG EventThreshold;
} PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION;
NT_OFFSET(PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION, CustomEventBufferEntrySize, 8);
NT_OFFSET(PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION, EventThreshold, 12);
NT_SIZE(PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION, 16);

typedef struct {
    ULONG Type;  /* PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE */
    ULONG Flags; /* zero */
    union {
        ULONG CounterIndex;
        struct {
            ULONG Begin;
            ULONG End; /* inclusive */
        } Range;
        PHYSICAL_COUNTER_OVERFLOW_HANDLER *OverflowHandler;
        PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION EventBufferConfiguration;
        ULONG IdentificationTag;
    } u;
} PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR;
NT_OFFSET(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR, Flags, 4);
NT_OFFSET(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR, u.CounterIndex, 8);
NT_OFFSET(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR, u.Range.End, 12);
NT_OFFSET(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR, u.OverflowHandler, 8);
NT_OFFSET(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR, u.EventBufferConfiguration, 8);
NT_OFFSET(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR, u.IdentificationTag, 8);
NT_SIZE(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR, 24);

typedef struct {
    ULONG Count;
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR Descriptors[1]; /* Count of them */
} PHYSICAL_COUNTER_RESOURCE_LIST, *PPHYSICAL_COUNTER_RESOURCE_LIST;
NT_OFFSET(PHYSICAL_COUNTER_RESOURCE_LIST, Descriptors, 8);
NT_SIZE(PHYSICAL_COUNTER_RESOURCE_LIST, 32);

enum { PMCCounter = 0, MAX_HW_COUNTERS = 16 };

typedef struct {
    ULONG Type; /* PMCCounter */
    ULONG Reserved;
    ULONG64 Index; /* the RDPMC selector */
} HARDWARE_COUNTER, *PHARDWARE_COUNTER;
NT_OFFSET(HARDWARE_COUNTER, Index, 8);
NT_SIZE(HARDWARE_COUNTER, 16);

/* hal.dll; PASSIVE_LEVEL */
NTIMPORT NTSTATUS NTAPI HalAllocateHardwareCounters(PGROUP_AFFINITY GroupAffinity, ULONG GroupCount,
                                                    PPHYSICAL_COUNTER_RESOURCE_LIST ResourceList,
                                                    PHANDLE CounterSetHandle);
NTIMPORT NTSTATUS NTAPI HalFreeHardwareCounters(HANDLE CounterSetHandle);

/* ntoskrnl.exe; <= APC_LEVEL */
NTIMPORT NTSTATUS NTAPI KeSetHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray,
                                                          ULONG Count);
NTIMPORT NTSTATUS NTAPI KeQueryHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray,
                                                            ULONG MaximumCount, PULONG Count);

#endif
