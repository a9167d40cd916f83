/* SPDX-License-Identifier: BSD-3-Clause */
/* vpmu.sys through DeviceIoControl. Elsewhere there is no such driver, and that is said. */

#include "device.h"
#include "internal.h"

#ifdef _WIN32
#include <windows.h>

/* Win32 errors lose what NTSTATUS says; the driver answers with few, so they come back. */
static uint32_t status_of(DWORD error)
{
    static const struct {
        uint32_t nt;
        DWORD win32;
    } rows[] = {
#define SOURCE_STATUS(name, nt, win32, text) {nt, win32},
#include "statuses.def"
#undef SOURCE_STATUS
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].win32 == error)
            return rows[i].nt;
    }
    return 0xC0070000u | (error & 0xffff); /* NTSTATUS_FROM_WIN32: no fact is lost */
}

static uint32_t request(void *context, uint32_t code, const void *in, uint32_t in_size, void *out,
                        uint32_t out_size)
{
    DWORD returned;

    if (!DeviceIoControl(context, code, (void *)(uintptr_t)in, in_size, out, out_size, &returned,
                         NULL))
        return status_of(GetLastError());
    return returned == out_size ? 0 : (uint32_t)SOURCE_NT_REVISION_MISMATCH;
}

static void close_device(void *context)
{
    CloseHandle(context);
}

/* The driver opens only for who may profile the system, and has said so in the token. */
static void enable_privilege(void)
{
    TOKEN_PRIVILEGES wanted = {.PrivilegeCount = 1};
    HANDLE token;

    wanted.Privileges[0].Attributes = SE_PRIVILEGE_ENABLED;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES, &token))
        return;
    if (LookupPrivilegeValueW(NULL, L"SeSystemProfilePrivilege", &wanted.Privileges[0].Luid))
        AdjustTokenPrivileges(token, FALSE, &wanted, 0, NULL, NULL);
    CloseHandle(token);
}

int source_device_open(struct source_device *device, struct source_error *error)
{
    HANDLE handle;

    enable_privilege();
    handle = CreateFileW((const WCHAR *)VPMU_USER_PATH, GENERIC_READ | GENERIC_WRITE,
                         FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
    if (handle == INVALID_HANDLE_VALUE) {
        *error = (struct source_error){.what = "cannot open \\\\.\\vpmu",
                                       .status = status_of(GetLastError())};
        return -1;
    }
    *device = (struct source_device){.request = request, .close = close_device, .context = handle};
    return 0;
}

#else

int source_device_open(struct source_device *device, struct source_error *error)
{
    (void)device;
    *error = (struct source_error){.what = "there is no vpmu.sys on this system: use file:PATH"};
    return -1;
}

#endif
