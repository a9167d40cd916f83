/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files that know I/O requests share. The driver has two kinds of device objects: one
 * control device, which user programs open, from loading to unloading; and the function device
 * object of the status device, while there is one (pnp.c).
 */
#ifndef VPMU_DRIVER_H
#define VPMU_DRIVER_H

#include "nt/kernel.h"
#include "vpmu.h"

/* Requests of the control device that wait for the status device. */
struct pending {
    IO_CSQ queue; /* the first member, so that its callbacks find the rest */
    KSPIN_LOCK lock;
    LIST_ENTRY irps;
    struct vpmu *vpmu;
    KDPC dpc;
};

/* The control device's extension. */
struct control {
    struct vpmu vpmu;
    KMUTEX mutex; /* one request, or one change of the status device, at a time */
    struct pending pending;
};

struct control *control_of_driver(void);
void control_lock(struct control *control);
void control_unlock(struct control *control);

NTSTATUS complete_request(PIRP irp, NTSTATUS status, ULONG_PTR length);

/* pending.c; insert and end under the mutex */
NTSTATUS pending_init(struct pending *pending, struct vpmu *vpmu);
/* Let it wait: vpmu_ioctl() has said STATUS_PENDING. */
void pending_insert(struct pending *pending, PIRP irp);
/* Look whether the wait of some has ended. Up to the device's IRQL. */
void pending_poke(struct pending *pending);
/* End those of a file, or all of them for NULL, with a failure. */
void pending_end(struct pending *pending, PFILE_OBJECT file, NTSTATUS failure);

/* pnp.c */
DRIVER_ADD_DEVICE pnp_add_device;
NTSTATUS pnp_dispatch(PDEVICE_OBJECT device, PIRP irp);
/* Power and system control: nothing of ours. */
NTSTATUS pnp_pass_down(PDEVICE_OBJECT device, PIRP irp);

#endif
