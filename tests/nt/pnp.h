/* SPDX-License-Identifier: BSD-3-Clause */
/* Plug and Play: a bus driver of the kernel's own, and what the PnP manager asks of a driver. */
#ifndef NT_PNP_H
#define NT_PNP_H

#include "io.h"
#include "pci.h"

struct pnp_memory {
    uint64_t start, length;
};

/** A physical device object for a PCI function; NULL if there is none with these ids. */
PDEVICE_OBJECT pnp_find(uint16_t vendor, uint16_t device);

/** One for a device that is two pieces of memory, and messages (0 or 1) that the caller sends. */
PDEVICE_OBJECT pnp_made_up(struct pnp_memory registers, struct pnp_memory pages, unsigned messages);

/** The IRPs that a device has been sent since it was made, as a mask of minor functions. */
uint32_t pnp_requests_seen(PDEVICE_OBJECT physical);

/** Calls the driver's AddDevice. */
NTSTATUS pnp_add(struct driver *driver, PDEVICE_OBJECT physical);

/** IRP_MN_START_DEVICE with the device's resources; after a failure IRP_MN_REMOVE_DEVICE. */
NTSTATUS pnp_start(PDEVICE_OBJECT physical);

/** Sends another IRP_MJ_PNP, or IRP_MJ_POWER or _SYSTEM_CONTROL with a minor function of 0. */
NTSTATUS pnp_request(PDEVICE_OBJECT physical, UCHAR major, UCHAR minor);

/** IRP_MN_QUERY_REMOVE_DEVICE and IRP_MN_REMOVE_DEVICE; the physical device object goes, too. */
void pnp_remove(PDEVICE_OBJECT physical);

/** The device has gone: IRP_MN_SURPRISE_REMOVAL and IRP_MN_REMOVE_DEVICE. */
void pnp_surprise(PDEVICE_OBJECT physical);

/** Sends the message of a made-up device. False: nobody is connected to it. */
bool pnp_interrupt(PDEVICE_OBJECT physical);

/** A PCI device decodes no memory and sends nothing any more, as if it had been pulled out. */
void pnp_pull_out(PDEVICE_OBJECT physical);

/** Calls of interrupt service routines so far. */
unsigned pnp_interrupts(void);

#endif
