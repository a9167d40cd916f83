/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest driver: takes the whole PMU and gives it back. Its imports from hal.dll are by
 * ordinal (ordinal.def).
 */
#include "ntmore.h"

static VOID NTAPI unload(PDRIVER_OBJECT DriverObject)
{
    DbgPrint("ordinal: %p goes\n", DriverObject);
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    HANDLE handle;
    NTSTATUS status = HalAllocateHardwareCounters(NULL, 0, NULL, &handle);

    (void)RegistryPath;
    DbgPrint("ordinal: HalAllocateHardwareCounters %08x, processors %u\n", status,
             KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS));
    if (NT_SUCCESS(status))
        status = HalFreeHardwareCounters(handle);
    DriverObject->DriverUnload = unload;
    return status;
}
