/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of a client driver: client.c is the driver, and one other file the client. */
#ifndef VPMU_CLIENT_H
#define VPMU_CLIENT_H

#include "client_ioctl.h"
#include "nt/counters.h"
#include "nt/kernel.h"

/* The client's part. */
extern const WCHAR client_device[];
extern const WCHAR client_link[];
void client_run(struct client_report *report);
void client_free(struct client_report *report);
NTSTATUS client_request(ULONG code, struct client_msr *msr); /* RDMSR and WRMSR */

/* For the client. Calls beyond the report's room are dropped. */
void client_note(struct client_report *report, enum client_what what, uint32_t index,
                 NTSTATUS status, uint64_t value);

#endif
