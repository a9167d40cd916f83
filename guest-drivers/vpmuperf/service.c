/* SPDX-License-Identifier: BSD-3-Clause */
#include "service.h"

#include <stdio.h>

#include "install.h"

enum { START_HINT_MS = 30000 }; /* VERIFY on every processor takes its time */

static struct {
    struct provider_options *options;
    SERVICE_STATUS_HANDLE handle;
    SERVICE_STATUS status;
} service = {
    .status = {.dwServiceType = SERVICE_WIN32_OWN_PROCESS},
};

static void tell(DWORD state)
{
    service.status.dwCurrentState = state;
    service.status.dwControlsAccepted =
        state == SERVICE_RUNNING ? SERVICE_ACCEPT_STOP | SERVICE_ACCEPT_SHUTDOWN : 0;
    service.status.dwWaitHint =
        state == SERVICE_RUNNING || state == SERVICE_STOPPED ? 0 : START_HINT_MS;
    SetServiceStatus(service.handle, &service.status);
}

static DWORD WINAPI control(DWORD code, DWORD type, void *data, void *context)
{
    (void)type;
    (void)data;
    (void)context;
    switch (code) {
    case SERVICE_CONTROL_STOP:
    case SERVICE_CONTROL_SHUTDOWN:
        tell(SERVICE_STOP_PENDING);
        SetEvent(service.options->stop);
        return NO_ERROR;
    case SERVICE_CONTROL_INTERROGATE:
        return NO_ERROR;
    default:
        return ERROR_CALL_NOT_IMPLEMENTED;
    }
}

static void ready(void)
{
    if (service.status.dwCurrentState == SERVICE_START_PENDING)
        tell(SERVICE_RUNNING);
}

static void WINAPI service_main(DWORD argc, WCHAR **argv)
{
    (void)argc;
    (void)argv;
    service.handle = RegisterServiceCtrlHandlerExW(SERVICE_NAME, control, NULL);
    if (!service.handle)
        return;
    tell(SERVICE_START_PENDING);
    service.options->ready = ready;
    if (provider_run(service.options) != 0) {
        service.status.dwWin32ExitCode = ERROR_SERVICE_SPECIFIC_ERROR;
        service.status.dwServiceSpecificExitCode = 1;
    }
    tell(SERVICE_STOPPED);
}

int service_run(struct provider_options *options)
{
    SERVICE_TABLE_ENTRYW table[] = {{(WCHAR[]){SERVICE_NAME}, service_main}, {NULL, NULL}};

    service.options = options;
    if (StartServiceCtrlDispatcherW(table))
        return 0;
    printf("vpmuperf: \"service\" is for the service manager: use run, or net start vpmuperf\n");
    return 1;
}
