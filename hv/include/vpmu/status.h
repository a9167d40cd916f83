/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The status device: a PCI function that tells a guest which of its counters are backed.
 * docs/device.md explains it for authors of drivers.
 *
 *   BAR 0  registers (struct vpmu_status_registers), 4 KiB; aligned accesses of 4 bytes, and of 8
 *          where a field has 8
 *   BAR 2  one page for each vCPU (struct vpmu_status_page), read-only memory: reading it costs no
 *          exit
 *   BAR 4  MSI-X, one vector: some state has changed, or a request has been answered
 *
 * Everything is little-endian. What is not described reads as 0. A write to what cannot be written,
 * or an access of another size, is logged on the host and has no effect.
 */
#ifndef VPMU_STATUS_H
#define VPMU_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "vpmu/abi.h"

#define VPMU_STATUS_PCI_VENDOR 0x1234u
#define VPMU_STATUS_PCI_DEVICE 0x5650u
#define VPMU_STATUS_PCI_CLASS 0x0880u /* system peripheral, other */

#define VPMU_STATUS_MAGIC 0x554D5056u /* "VPMU" */
#define VPMU_STATUS_VERSION 1u

#define VPMU_STATUS_PAGE_SIZE 4096u
#define VPMU_STATUS_COUNTERS 48u /* records that a page has room for */

enum vpmu_status_source {
    VPMU_SOURCE_NONE = 0, /* no PMU */
    VPMU_SOURCE_TCG = 1,  /* the emulator counts */
    VPMU_SOURCE_KVM = 2,  /* KVM's vPMU over the host's */
};

enum vpmu_shortage_policy {
    VPMU_POLICY_REFUSE = 0,
    VPMU_POLICY_REDUCE = 1,
    VPMU_POLICY_HIDE = 2,
    VPMU_POLICIES = 3,
};

/* Of vpmu_status_registers.request; all else is STATUS_INVALID_PARAMETER. */
enum vpmu_status_request {
    VPMU_REQUEST_RESIZE = 1, /* have request_gp and request_fixed from now on, within the shape */
};

/* What BAR 0 has. "rw" can be written. */
struct vpmu_status_registers {
    uint32_t magic; /* VPMU_STATUS_MAGIC */
    uint32_t
        version;    /* VPMU_STATUS_VERSION: what is here keeps its meaning while this is the same */
    uint32_t vcpus; /* pages in BAR 2; page i is the vCPU whose CPU index is i */
    uint32_t source;      /* enum vpmu_status_source */
    uint32_t event_class; /* enum vpmu_event_class */
    uint32_t policy;      /* enum vpmu_shortage_policy */
    uint32_t shape_gp;    /* counters that CPUID lists */
    uint32_t shape_fixed; /* set */
    uint32_t granted_gp;  /* how many of them the host has granted */
    uint32_t granted_fixed;
    uint32_t changes;     /* goes up with each change of a state or a grant */
    uint32_t revocations; /* how often the host has taken counters back */
    uint32_t interrupt;   /* rw: 1 enables the vector; 0 after reset */
    uint32_t reserved[3];
    /* The mailbox: write the arguments, then request. */
    uint32_t request_gp;     /* rw */
    uint32_t request_fixed;  /* rw: set */
    uint32_t request;        /* rw: enum vpmu_status_request; reads as 0 */
    uint32_t request_status; /* NTSTATUS of the last request; STATUS_PENDING until answered */
};

_Static_assert(offsetof(struct vpmu_status_registers, request_gp) == 64, "mailbox");
_Static_assert(sizeof(struct vpmu_status_registers) == 80, "registers");

#define VPMU_STATUS_PENDING 0x00000103u /* NTSTATUS of a request that is not answered yet */

/* One counter. */
struct vpmu_status_counter {
    uint32_t index;      /* GP counter i is i, fixed counter i is 32 + i */
    uint32_t state;      /* enum vpmu_counter_state */
    uint64_t selector;   /* as the guest has written it; of a fixed counter: its control bits */
    uint64_t enabled_ns; /* for how long the guest has had it enabled while its vCPU ran */
    uint64_t backed_ns;  /* for how much of that it has counted */
};

_Static_assert(sizeof(struct vpmu_status_counter) == 32, "counter");

/*
 * One vCPU, in BAR 2. Readers take sequence, read what they want, and read sequence again: if it
 * was odd or has changed, they start again.
 */
struct vpmu_status_page {
    uint32_t sequence;
    uint32_t vcpu; /* CPU index */
    uint32_t apic_id;
    uint32_t
        count; /* valid records: the counters that CPUID lists, in the order of their indices */
    uint64_t updated_ns; /* the vCPU's running time as of this page */
    uint64_t reserved[5];
    struct vpmu_status_counter counters[VPMU_STATUS_COUNTERS];
};

_Static_assert(offsetof(struct vpmu_status_page, counters) == 64, "page");
_Static_assert(sizeof(struct vpmu_status_page) <= VPMU_STATUS_PAGE_SIZE, "page");

#endif
