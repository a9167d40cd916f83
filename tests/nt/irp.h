/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests (IRPs) as the kernel sends them: to the top of a device stack, through it, and back. */
#ifndef NT_IRP_H
#define NT_IRP_H

#include <stdbool.h>

#include "ntmore.h"

#define REQUEST_DEPTH 4 /* devices in a stack */

struct request {
    IRP irp; /* the first member */
    IO_STACK_LOCATION locations[REQUEST_DEPTH];
    KEVENT done;
    volatile unsigned completions;
};

/** Makes a request of a user program for a device (that is the top of its stack). */
IO_STACK_LOCATION *request_init(struct request *request, PDEVICE_OBJECT device, FILE_OBJECT *file,
                                UCHAR major);

/**
 * Calls the dispatch routine and checks what such a routine must keep to. Returns what it returned;
 * request_wait() wants that, waits for the end, and returns the request's own status.
 */
NTSTATUS request_call(struct request *request);
NTSTATUS request_wait(struct request *request, NTSTATUS returned);

/** Both. */
NTSTATUS request_send(struct request *request);

/** Calls the request's cancel routine if it has one. */
void request_cancel(struct request *request);

#endif
