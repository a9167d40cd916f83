/* SPDX-License-Identifier: BSD-3-Clause */
/* The I/O manager: drivers, devices, symbolic links, requests from user programs. */
#ifndef NT_IO_H
#define NT_IO_H

#include "image.h"
#include "ntmore.h"

struct driver {
    bool used;
    struct image *image;
    DRIVER_OBJECT object;
    DRIVER_EXTENSION extension;
};

/**
 * Loads the driver of a boot module ("contract.sys") and runs its DriverEntry.
 * The driver stays loaded only if that succeeds. *status receives its status, or
 * STATUS_OBJECT_NAME_NOT_FOUND without such a module, or STATUS_INVALID_PARAMETER
 * (see *pe, if not NULL) for an image that cannot be loaded.
 */
struct driver *driver_load(const char *module, NTSTATUS *status, enum pe_status *pe);

/**
 * Runs DriverUnload and takes the driver away. What it leaves behind (devices,
 * links, pool, counters, queued DPCs) is reported as violations.
 */
void driver_unload(struct driver *driver);

struct boot_module;

/** The boot module of this file name, NULL for none. */
const struct boot_module *driver_module(const char *name);

/* What a user program calls (CreateFile, CloseHandle, DeviceIoControl), with NT statuses. */

/** Opens "\\.\name". */
NTSTATUS user_open(const char *name, HANDLE *handle);
NTSTATUS user_close(HANDLE handle);

/**
 * Sends a device control request. *returned receives IoStatus.Information.
 * Pointers outside of user memory give STATUS_ACCESS_VIOLATION.
 */
NTSTATUS user_ioctl(HANDLE handle, ULONG code, const void *in, ULONG in_size, void *out,
                    ULONG out_size, ULONG *returned);

/* The same without waiting for its end. Each request that is begun must be ended. */
struct user_request;

struct user_request *user_ioctl_begin(HANDLE handle, ULONG code, const void *in, ULONG in_size,
                                      void *out, ULONG out_size);
bool user_ioctl_done(const struct user_request *user);

/** Waits for the end at most so long; whether it has come. */
bool user_ioctl_wait(struct user_request *user, unsigned milliseconds);

/** Asks the driver to give the request up, as CancelIoEx does. */
void user_ioctl_cancel(struct user_request *user);

/** Waits for the end, and takes the result and the output. */
NTSTATUS user_ioctl_end(struct user_request *user, ULONG *returned);

struct process;

/** A process dies: its requests are cancelled. */
void io_cancel_process(const struct process *process);

/** The highest device object of a stack. */
PDEVICE_OBJECT io_top_of_stack(PDEVICE_OBJECT device);

/** The last handle of a file object is closed: CLEANUP, CLOSE, and its reference is dropped. */
void io_close_file(void *file);

#endif
