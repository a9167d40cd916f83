/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The basic types of the NT kernel's interface on x86-64, in our own words.
 *
 * The header compiles for the drivers (mingw-w64, where `long` has 32 bits) and for a host or bare
 * ELF program that plays the kernel (where it has 64), so nothing here depends on `long`, and every
 * routine that crosses the boundary carries NTAPI, the Microsoft calling convention.
 */
#ifndef VPMU_NT_TYPES_H
#define VPMU_NT_TYPES_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __MINGW32__
#define NTAPI
#define NTIMPORT __declspec(dllimport)
#else
#define NTAPI __attribute__((ms_abi))
#define NTIMPORT
#endif

/* A layout that Windows fixes: the offset of a field, or the size of a structure. */
#define NT_OFFSET(type, field, offset)                                                             \
    static_assert(offsetof(type, field) == (offset), #type "." #field " is not at " #offset)
#define NT_SIZE(type, size) static_assert(sizeof(type) == (size), #type " is not " #size " bytes")

typedef void VOID;
typedef void *PVOID;
typedef void *HANDLE;
typedef HANDLE *PHANDLE;
typedef char CHAR;
typedef int8_t CCHAR;
typedef uint8_t UCHAR;
typedef uint8_t BOOLEAN;
typedef int16_t SHORT;
typedef int16_t CSHORT;
typedef uint16_t USHORT;
typedef uint16_t WCHAR; /* spell literals u"", which are 16 bits wide everywhere */
typedef WCHAR *PWSTR;
typedef const WCHAR *PCWSTR;
typedef int32_t LONG;
typedef uint32_t ULONG;
typedef ULONG *PULONG;
typedef int64_t LONGLONG;
typedef uint64_t ULONGLONG;
typedef uint64_t ULONG64;
typedef uint64_t ULONG_PTR;
typedef uint64_t SIZE_T;
typedef uint64_t KAFFINITY;
typedef ULONG ACCESS_MASK;
typedef int32_t NTSTATUS;
typedef UCHAR KIRQL;
typedef KIRQL *PKIRQL;
typedef CCHAR KPROCESSOR_MODE;
typedef LONG KPRIORITY;
typedef int64_t PHYSICAL_ADDRESS; /* passed as the LARGE_INTEGER union is: in one register */

enum { FALSE = 0, TRUE = 1 };
enum { KernelMode = 0, UserMode = 1 };

typedef struct {
    USHORT Length; /* bytes, without a terminator */
    USHORT MaximumLength;
    PWSTR Buffer;
} UNICODE_STRING, *PUNICODE_STRING;
NT_OFFSET(UNICODE_STRING, Buffer, 8);
NT_SIZE(UNICODE_STRING, 16);

typedef struct LIST_ENTRY {
    struct LIST_ENTRY *Flink, *Blink;
} LIST_ENTRY;

typedef union {
    struct {
        ULONG LowPart;
        LONG HighPart;
    };
    LONGLONG QuadPart;
} LARGE_INTEGER, *PLARGE_INTEGER;
NT_SIZE(LARGE_INTEGER, 8);

typedef struct {
    ULONG LowPart;
    LONG HighPart;
} LUID;
NT_SIZE(LUID, 8);

typedef struct {
    KAFFINITY Mask;
    USHORT Group;
    USHORT Reserved[3];
} GROUP_AFFINITY, *PGROUP_AFFINITY;
NT_OFFSET(GROUP_AFFINITY, Group, 8);
NT_OFFSET(GROUP_AFFINITY, Reserved, 10);
NT_SIZE(GROUP_AFFINITY, 16);

typedef struct {
    USHORT Group;
    UCHAR Number;
    UCHAR Reserved;
} PROCESSOR_NUMBER, *PPROCESSOR_NUMBER;
NT_SIZE(PROCESSOR_NUMBER, 4);

enum { ALL_PROCESSOR_GROUPS = 0xFFFF };

/* IRQLs of x86-64; CR8 holds the current one. */
enum {
    PASSIVE_LEVEL = 0,
    APC_LEVEL = 1,
    DISPATCH_LEVEL = 2,
    CLOCK_LEVEL = 13,
    IPI_LEVEL = 14,
    PROFILE_LEVEL = 15,
    HIGH_LEVEL = 15,
};

#define NT_SUCCESS(status) ((NTSTATUS)(status) >= 0)
#define STATUS_SUCCESS ((NTSTATUS)0x00000000)
#define STATUS_PENDING ((NTSTATUS)0x00000103)
#define STATUS_BUFFER_OVERFLOW ((NTSTATUS)0x80000005)
#define STATUS_DEVICE_BUSY ((NTSTATUS)0x80000011)
#define STATUS_UNSUCCESSFUL ((NTSTATUS)0xC0000001)
#define STATUS_NOT_IMPLEMENTED ((NTSTATUS)0xC0000002)
#define STATUS_INFO_LENGTH_MISMATCH ((NTSTATUS)0xC0000004)
#define STATUS_ACCESS_VIOLATION ((NTSTATUS)0xC0000005)
#define STATUS_INVALID_HANDLE ((NTSTATUS)0xC0000008)
#define STATUS_INVALID_PARAMETER ((NTSTATUS)0xC000000D)
#define STATUS_NO_SUCH_DEVICE ((NTSTATUS)0xC000000E)
#define STATUS_INVALID_DEVICE_REQUEST ((NTSTATUS)0xC0000010)
#define STATUS_NO_MEMORY ((NTSTATUS)0xC0000017)
#define STATUS_ACCESS_DENIED ((NTSTATUS)0xC0000022)
#define STATUS_BUFFER_TOO_SMALL ((NTSTATUS)0xC0000023)
#define STATUS_OBJECT_NAME_NOT_FOUND ((NTSTATUS)0xC0000034)
#define STATUS_OBJECT_NAME_COLLISION ((NTSTATUS)0xC0000035)
#define STATUS_DEVICE_ALREADY_ATTACHED ((NTSTATUS)0xC0000038)
#define STATUS_DELETE_PENDING ((NTSTATUS)0xC0000056)
#define STATUS_REVISION_MISMATCH ((NTSTATUS)0xC0000059)
#define STATUS_PRIVILEGE_NOT_HELD ((NTSTATUS)0xC0000061)
#define STATUS_INSUFFICIENT_RESOURCES ((NTSTATUS)0xC000009A)
#define STATUS_PRIVILEGED_INSTRUCTION ((NTSTATUS)0xC0000096)
#define STATUS_DEVICE_DATA_ERROR ((NTSTATUS)0xC000009C)
#define STATUS_DEVICE_NOT_CONNECTED ((NTSTATUS)0xC000009D)
#define STATUS_DEVICE_NOT_READY ((NTSTATUS)0xC00000A3)
#define STATUS_IO_TIMEOUT ((NTSTATUS)0xC00000B5)
#define STATUS_NOT_SUPPORTED ((NTSTATUS)0xC00000BB)
#define STATUS_INVALID_PARAMETER_1 ((NTSTATUS)0xC00000EF)
#define STATUS_INVALID_PARAMETER_2 ((NTSTATUS)0xC00000F0)
#define STATUS_INVALID_PARAMETER_3 ((NTSTATUS)0xC00000F1)
#define STATUS_CANCELLED ((NTSTATUS)0xC0000120)
#define STATUS_DEVICE_CONFIGURATION_ERROR ((NTSTATUS)0xC0000182)
#define STATUS_INVALID_DEVICE_STATE ((NTSTATUS)0xC0000184)
#define STATUS_IO_DEVICE_ERROR ((NTSTATUS)0xC0000185)
#define STATUS_DEVICE_PROTOCOL_ERROR ((NTSTATUS)0xC0000186)
#define STATUS_INVALID_BUFFER_SIZE ((NTSTATUS)0xC0000206)
#define STATUS_NOT_FOUND ((NTSTATUS)0xC0000225)
#define STATUS_DEVICE_REMOVED ((NTSTATUS)0xC00002B6)
#define STATUS_WMI_ALREADY_DISABLED ((NTSTATUS)0xC0000302)
#define STATUS_WMI_ALREADY_ENABLED ((NTSTATUS)0xC0000303)

#endif
