/* SPDX-License-Identifier: BSD-3-Clause */
/* The run-time library, DbgPrint and the rest that needs no state. */
#include "check.h"
#include "image.h"
#include "libc.h"
#include "multiboot.h"
#include "ntmore.h"

VOID NTAPI RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString)
{
    USHORT length = 0;

    while (SourceString && SourceString[length])
        length++;
    DestinationString->Length = (USHORT)(2 * length);
    DestinationString->MaximumLength = (USHORT)(SourceString ? 2 * length + 2 : 0);
    DestinationString->Buffer = (PWSTR)SourceString;
}

static WCHAR upper(WCHAR c)
{
    return c >= 'a' && c <= 'z' ? (WCHAR)(c - 32) : c;
}

BOOLEAN NTAPI RtlEqualUnicodeString(const UNICODE_STRING *String1, const UNICODE_STRING *String2,
                                    BOOLEAN CaseInsensitive)
{
    if (String1->Length != String2->Length)
        return FALSE;
    for (unsigned i = 0; i < String1->Length / 2u; i++) {
        WCHAR a = String1->Buffer[i], b = String2->Buffer[i];

        if (a != b && !(CaseInsensitive && upper(a) == upper(b)))
            return FALSE;
    }
    return TRUE;
}

SIZE_T NTAPI RtlCompareMemory(const void *Source1, const void *Source2, SIZE_T Length)
{
    const uint8_t *a = Source1, *b = Source2;
    SIZE_T equal = 0;

    while (equal < Length && a[equal] == b[equal])
        equal++;
    return equal;
}

/* "build=17763" on the command line plays a Windows before 1903. */
NTSTATUS NTAPI RtlGetVersion(PRTL_OSVERSIONINFOW VersionInformation)
{
    VersionInformation->dwMajorVersion = 10;
    VersionInformation->dwMinorVersion = 0;
    VersionInformation->dwBuildNumber = (ULONG)boot_option_number("build", 18362);
    VersionInformation->dwPlatformId = 2;
    VersionInformation->szCSDVersion[0] = 0;
    return STATUS_SUCCESS;
}

/* The first 4 GiB are identity-mapped; what drivers have asked for is kept to see what they leave.
 */
#define MAPPINGS 16
static struct {
    PVOID at;
    SIZE_T length;
    const struct image *owner;
} mappings[MAPPINGS];

PVOID NTAPI MmMapIoSpace(PHYSICAL_ADDRESS PhysicalAddress, SIZE_T NumberOfBytes, ULONG CacheType)
{
    (void)CacheType;
    if (PhysicalAddress <= 0 || !NumberOfBytes ||
        (uint64_t)PhysicalAddress + NumberOfBytes > UINT64_C(1) << 32)
        return NULL;
    for (unsigned i = 0; i < MAPPINGS; i++) {
        if (mappings[i].at)
            continue;
        mappings[i].at = (PVOID)PhysicalAddress;
        mappings[i].length = NumberOfBytes;
        mappings[i].owner = image_at((uint64_t)__builtin_return_address(0));
        return mappings[i].at;
    }
    return NULL;
}

VOID NTAPI MmUnmapIoSpace(PVOID BaseAddress, SIZE_T NumberOfBytes)
{
    for (unsigned i = 0; i < MAPPINGS; i++) {
        if (mappings[i].at != BaseAddress || mappings[i].length != NumberOfBytes)
            continue;
        mappings[i].at = NULL;
        return;
    }
    violation("MmUnmapIoSpace: not mapped so");
}

unsigned memory_mappings(const struct image *owner)
{
    unsigned count = 0;

    for (unsigned i = 0; i < MAPPINGS; i++) {
        if (!mappings[i].at || mappings[i].owner != owner)
            continue;
        mappings[i].at = NULL;
        count++;
    }
    return count;
}

/* One argument of the driver's list; a double never comes (drivers use no floating point). */
static const char *format_one(char *to, size_t size, const char *format, NT_VA_LIST *args)
{
    char spec[16];
    size_t n = 1;
    bool wide = false;

    spec[0] = '%';
    while (*format && n < sizeof(spec) - 3 && !strchr("diuxXcsp%", *format)) {
        if (*format == 'I' && format[1] == '6' && format[2] == '4') {
            wide = true;
            format += 3;
        } else {
            wide |= *format == 'l' && format[1] == 'l';
            if (*format != 'l') /* long has 32 bits there */
                spec[n++] = *format;
            format++;
        }
    }
    if (wide)
        spec[n++] = 'l';
    spec[n++] = *format;
    spec[n] = 0;
    *to = 0;
    if (!*format)
        return format;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (*format == 's' || *format == 'p' || wide)
        snprintf(to, size, spec, __builtin_va_arg(*args, uint64_t));
    else if (*format == '%')
        snprintf(to, size, "%%");
    else
        snprintf(to, size, spec, __builtin_va_arg(*args, int));
#pragma GCC diagnostic pop
    return format + 1;
}

static void debug_print(const char *format, NT_VA_LIST args)
{
    char text[256];
    size_t n = 0;

    while (*format && n < sizeof(text) - 1) {
        if (*format == '%') {
            text[n] = '%';
            format = format_one(text + n, sizeof(text) - n, format + 1, &args);
            n += strlen(text + n);
        } else if (*format != '\n') {
            text[n++] = *format++;
        } else {
            format++;
        }
    }
    text[n] = 0;
    note("driver: %s", text);
}

ULONG NTAPI DbgPrint(const char *Format, ...)
{
    NT_VA_LIST args;

    __builtin_ms_va_start(args, Format);
    debug_print(Format, args);
    __builtin_ms_va_end(args);
    return STATUS_SUCCESS;
}

ULONG NTAPI DbgPrintEx(ULONG ComponentId, ULONG Level, const char *Format, ...)
{
    NT_VA_LIST args;

    (void)ComponentId;
    (void)Level;
    __builtin_ms_va_start(args, Format);
    debug_print(Format, args);
    __builtin_ms_va_end(args);
    return STATUS_SUCCESS;
}
