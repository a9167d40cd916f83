/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NT_STATUS_TEST_H
#define NT_STATUS_TEST_H

#include "io.h"

/** Finds the machine's status device and starts the driver on it. NULL: there is none. */
PDEVICE_OBJECT status_bind(struct driver *driver);

/** Starts vpmu.sys on the status device, runs program(device) as a process, then then(device). */
void status_on_device(void (*program)(void *), void (*then)(PDEVICE_OBJECT));

/** Removes the device, which must have interrupted. */
void status_remove(PDEVICE_OBJECT device);

/** Waits for the end of a request: its status; *done is false if it had to be cancelled. */
NTSTATUS status_end(struct user_request *request, bool *done);

/** Waits for the end of a request; false and a failed check if it does not come. */
bool status_ends(struct user_request *request, NTSTATUS want, const char *what);

/* Scenarios: a device of the machine's, and one that is made of memory. */
void status_device(void);
void status_denied(void);
void status_surprise(void);
void status_made_up(void);
void status_none(void);

/* status_kvm.c: under KVM, with a host that takes the counters away
 * (tests/lab/lib/scenarios_nt.py). */
void status_kvm(void);
void status_kvm_denied(void);
void status_kvm_resize(void);

#endif
