/* SPDX-License-Identifier: BSD-3-Clause */
#include "install.h"

#include <stdbool.h>
#include <stdio.h>
#include <wchar.h>

#include "counters.h"
#include "manifest.h"

enum { PATH_LENGTH = 1024 };

static int fail(const char *what, DWORD error)
{
    printf("vpmuperf: %s (error %lu)\n", what, error);
    return 1;
}

/* This program and its manifest, with their folder. */
static bool own_paths(WCHAR program[PATH_LENGTH], WCHAR manifest[PATH_LENGTH])
{
    DWORD length = GetModuleFileNameW(NULL, program, PATH_LENGTH);
    WCHAR *dot;

    if (!length || length >= PATH_LENGTH - 4)
        return false;
    wcscpy(manifest, program);
    dot = wcsrchr(manifest, L'.');
    wcscpy(dot && !wcschr(dot, L'\\') ? dot : manifest + length, L".man");
    return true;
}

/* --- The counter sets
 * ----------------------------------------------------------------------------- */

/* Runs a program of the system with one argument. Returns its exit code, or -1. */
static int run_tool(const WCHAR *tool, const WCHAR *argument)
{
    WCHAR path[MAX_PATH], line[PATH_LENGTH + MAX_PATH + 8];
    STARTUPINFOW startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION process;
    DWORD code = (DWORD)-1;
    UINT length = GetSystemDirectoryW(path, MAX_PATH);

    if (!length || length + wcslen(tool) + 2 > MAX_PATH)
        return -1;
    swprintf(path + length, MAX_PATH - length, L"\\%ls", tool);
    swprintf(line, sizeof(line) / sizeof(line[0]), L"\"%ls\" %ls", path, argument);
    if (!CreateProcessW(path, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &process))
        return -1;
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    CloseHandle(process.hThread);
    CloseHandle(process.hProcess);
    return (int)code;
}

static int write_manifest(const WCHAR *program, const WCHAR *manifest)
{
    const WCHAR *slash = wcsrchr(program, L'\\');
    char name[MAX_PATH];
    FILE *file;
    bool good;

    if (!WideCharToMultiByte(CP_UTF8, 0, slash ? slash + 1 : program, -1, name, sizeof(name), NULL,
                             NULL))
        return -1;
    file = _wfopen(manifest, L"wb");
    if (!file)
        return -1;
    manifest_write(file, name);
    good = !ferror(file);
    return fclose(file) == 0 && good ? 0 : -1;
}

static int add_sets(const WCHAR *program, const WCHAR *manifest)
{
    WCHAR argument[PATH_LENGTH + 8];

    if (write_manifest(program, manifest) < 0)
        return fail("cannot write vpmuperf.man beside the program", GetLastError());
    swprintf(argument, PATH_LENGTH + 8, L"/m:\"%ls\"", manifest);
    if (run_tool(L"lodctr.exe", argument) == 0)
        return 0;
    DeleteFileW(manifest);
    return fail("lodctr does not register the counter sets: run as administrator", 0);
}

static int remove_sets(const WCHAR *manifest)
{
    WCHAR argument[64];
    char guid[39];

    counter_guid_text(&counter_provider, guid);
    swprintf(argument, 64, L"/g:%hs", guid);
    DeleteFileW(manifest);
    if (run_tool(L"unlodctr.exe", argument) != 0)
        return fail("unlodctr does not remove the counter sets: run as administrator", 0);
    return 0;
}

/* --- The service
 * ---------------------------------------------------------------------------------- */

static int create_service(SC_HANDLE manager, const WCHAR *program, const WCHAR *options)
{
    WCHAR line[2 * PATH_LENGTH];
    SERVICE_DESCRIPTIONW description = {
        .lpDescription = (WCHAR[]){L"Publishes the virtual machine's hardware counters."}};
    SC_HANDLE service;

    swprintf(line, sizeof(line) / sizeof(line[0]), L"\"%ls\" service%ls%ls", program,
             options ? L" " : L"", options ? options : L"");
    service = CreateServiceW(manager, SERVICE_NAME, L"Virtual PMU counters", SERVICE_ALL_ACCESS,
                             SERVICE_WIN32_OWN_PROCESS, SERVICE_AUTO_START, SERVICE_ERROR_NORMAL,
                             line, NULL, NULL, NULL, NULL, NULL);
    if (!service)
        return fail(GetLastError() == ERROR_SERVICE_EXISTS
                        ? "the service is there already: run vpmuperf uninstall first"
                        : "cannot create the service",
                    GetLastError());
    ChangeServiceConfig2W(service, SERVICE_CONFIG_DESCRIPTION, &description);
    CloseServiceHandle(service);
    return 0;
}

/* A service that is still starting takes no stop yet. */
static bool ask_to_stop(SC_HANDLE service, SERVICE_STATUS *status)
{
    return ControlService(service, SERVICE_CONTROL_STOP, status) ||
           GetLastError() == ERROR_SERVICE_CANNOT_ACCEPT_CTRL;
}

static void stop_service(SC_HANDLE service)
{
    SERVICE_STATUS status;

    for (int i = 0; i < 100 && ask_to_stop(service, &status); i++)
        Sleep(100);
}

static int delete_service(SC_HANDLE manager)
{
    SC_HANDLE service = OpenServiceW(manager, SERVICE_NAME, SERVICE_ALL_ACCESS);
    DWORD error = GetLastError();

    if (!service)
        return error == ERROR_SERVICE_DOES_NOT_EXIST ? 0 : fail("cannot open the service", error);
    stop_service(service);
    error = DeleteService(service) ? 0 : GetLastError();
    CloseServiceHandle(service);
    return error && error != ERROR_SERVICE_MARKED_FOR_DELETE
               ? fail("cannot delete the service", error)
               : 0;
}

static SC_HANDLE open_manager(void)
{
    SC_HANDLE manager = OpenSCManagerW(NULL, NULL, SC_MANAGER_ALL_ACCESS);

    if (!manager)
        fail("cannot reach the service manager: run as administrator", GetLastError());
    return manager;
}

int install(const WCHAR *options)
{
    WCHAR program[PATH_LENGTH], manifest[PATH_LENGTH];
    SC_HANDLE manager;
    int result;

    if (!own_paths(program, manifest))
        return fail("its own path is too long", GetLastError());
    manager = open_manager();
    if (!manager)
        return 1;
    result = create_service(manager, program, options);
    if (result == 0 && add_sets(program, manifest) != 0) {
        delete_service(manager);
        result = 1;
    }
    CloseServiceHandle(manager);
    if (result == 0)
        printf("installed; start it with: net start vpmuperf\n");
    return result;
}

int uninstall(void)
{
    WCHAR program[PATH_LENGTH], manifest[PATH_LENGTH];
    SC_HANDLE manager;
    int result;

    if (!own_paths(program, manifest))
        return fail("its own path is too long", GetLastError());
    manager = open_manager();
    if (!manager)
        return 1;
    result = delete_service(manager);
    result |= remove_sets(manifest);
    CloseServiceHandle(manager);
    if (result == 0)
        printf("removed\n");
    return result;
}
