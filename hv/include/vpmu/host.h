// SPDX-License-Identifier: BSD-3-Clause
/*
 * The host: which counters this machine has, what takes them, and what is wrong with it.
 *
 * A source yields snapshots. There are two: the machine itself (sysfs, procfs, CPUID), and a
 * machine described by a JSON file, for tests and demonstrations (docs/host.md has its
 * format). A snapshot is plain data; everything that is decided from it (claims, checks) is pure.
 *
 * What cannot be known is unknown: a fact is unknown, no or yes, and a number may be
 * VPMU_HOST_UNKNOWN. Unknown is the zero of a fact, so what nobody has filled in is not a "no".
 *
 * Not thread-safe. Functions that can fail return 0, or -1 and a text.
 */
#ifndef VPMU_HOST_H
#define VPMU_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vpmu/admission.h"

#define VPMU_HOST_UNKNOWN UINT32_MAX
#define VPMU_HOST_NAME 64u
#define VPMU_HOST_ANCESTORS 8u
#define VPMU_HOST_CORE_TYPES 8u

enum vpmu_fact {
    VPMU_FACT_UNKNOWN,
    VPMU_FACT_NO,
    VPMU_FACT_YES,
};

enum vpmu_host_vendor {
    VPMU_HOST_VENDOR_UNKNOWN,
    VPMU_HOST_INTEL,
    VPMU_HOST_AMD, /* and Hygon, which has the same counters */
};

struct vpmu_host_error {
    char text[240]; /* what, where, and why; no newline */
};

/* Processors of one kind: one on most hosts, two or three on hybrid ones. */
struct vpmu_host_core_type {
    char pmu[32];       /* its PMU's name in sysfs: cpu, cpu_core, cpu_atom; "": perf has none */
    uint32_t perf_type; /* that PMU's type for perf_event_open */
    uint8_t version;    /* Intel: architectural PMU; AMD: 0 K7's, 1 PerfCtrExtCore, 2 PerfMonV2 */
    struct vpmu_amount capacity; /* gp 0: no PMU */
};

/* What a processor is, beside what admission wants to know of it. */
struct vpmu_host_detail {
    uint8_t core_type; /* index into core_types */
    uint32_t sibling; /* the lowest processor of the same core (SMT): itself if there is no other */
    uint32_t left;    /* GP counters that one more pinned event each can have, as measured;
                         VPMU_HOST_UNKNOWN: not measured */
};

enum vpmu_host_holder_kind {
    VPMU_HOST_WATCHDOG,    /* the kernel's NMI watchdog */
    VPMU_HOST_PROCESS,     /* a process with perf events */
    VPMU_HOST_DOMAIN_PERF, /* libvirt's <perf>: events on a QEMU process */
    VPMU_HOST_MEASURED,    /* what the measurement finds taken; the name says who may have it */
};

/* How the amount of a holder is known. */
enum vpmu_host_basis {
    VPMU_HOST_NOT_KNOWN, /* it has events; on which processors and how many of each is not known */
    VPMU_HOST_ESTIMATED, /* its events are a multiple of the online processors: taken for CPU-wide
                          */
    VPMU_HOST_CERTAIN,   /* by the kernel's rules, by measurement, or described */
};

struct vpmu_host_holder {
    enum vpmu_host_holder_kind kind;
    enum vpmu_host_basis basis;
    uint32_t pid;                            /* 0: no process */
    uint32_t ancestors[VPMU_HOST_ANCESTORS]; /* its parent, the parent's parent, ...; 0 ends */
    uint8_t uuid[16];                        /* DOMAIN_PERF: of the domain; else 0 */
    char name[VPMU_HOST_NAME];               /* command or domain, for people */
    uint32_t events; /* perf events that it has open; of a domain: that take a counter */
    uint8_t binding; /* enum vpmu_binding; with basis NOT_KNOWN without meaning */
    enum vpmu_fact pinned;
    enum vpmu_fact includes_guests; /* its events count while a guest runs */
    struct vpmu_amount amount;      /* on each of its processors; with basis NOT_KNOWN 0 */
    uint64_t *processors;           /* set as in struct vpmu_claim; NULL: every online processor */
    uint32_t words;
};

/* A process that has a VM of KVM's. */
struct vpmu_host_vm {
    uint32_t pid;
    char name[VPMU_HOST_NAME];
    enum vpmu_fact pmu;  /* its command line has pmu=on (or vpmu's own), or pmu=off */
    enum vpmu_fact apic; /* KVM's own APIC; no: kernel-irqchip=off, then no PMI comes */
};

struct vpmu_host_facts {
    enum vpmu_fact virtualised;    /* this machine is itself a guest */
    enum vpmu_fact hybrid;         /* KVM gives no vPMU there */
    enum vpmu_fact perf;           /* the kernel has a driver for the PMU */
    enum vpmu_fact watchdog;       /* the NMI watchdog runs */
    enum vpmu_fact watchdog_perf;  /* it takes a counter; no: the "buddy" detector, it does not */
    enum vpmu_fact kvm;            /* kvm_intel or kvm_amd is loaded */
    enum vpmu_fact enable_pmu;     /* kvm.enable_pmu; unknown also where kvm is not loaded */
    enum vpmu_fact mediated;       /* KVM's mediated vPMU is in use */
    enum vpmu_fact mediated_known; /* the kernel has the mediated vPMU's parameter */
    enum vpmu_fact mediated_asked; /* it was asked for (modprobe.d, command line) */
    enum vpmu_fact ignore_msrs;    /* kvm.ignore_msrs: unknown MSRs read 0 instead of faulting */
    enum vpmu_fact domains;        /* libvirt's status files were read; no: there are none */
    bool paranoid_known;
    int32_t paranoid;   /* perf_event_paranoid, if known */
    uint32_t processes; /* how many were looked at for perf events */
    uint32_t unseen;    /* of them: those that this user may not look into */
};

struct vpmu_host {
    bool described;  /* from a file: not this machine */
    char kernel[64]; /* release, as uname says */
    char model[64];  /* of the processor, for people; "" unknown */
    enum vpmu_host_vendor vendor;
    struct vpmu_host_facts facts;
    struct vpmu_host_core_type core_types[VPMU_HOST_CORE_TYPES];
    uint32_t core_type_count;
    struct vpmu_host_processor *processors; /* as vpmu_admission_config wants them */
    struct vpmu_host_detail *details;
    uint32_t processor_count;
    struct vpmu_host_holder *holders;
    uint32_t holder_count;
    struct vpmu_host_vm *vms;
    uint32_t vm_count;
    uint32_t holder_room; /* as many as there is memory for */
    uint32_t vm_room;
    char not_measured[160]; /* why details[].left is unknown; "" if it was measured */
};

/* ---- Sources --------------------------------------------------------------------------------- */

struct vpmu_host_source;

/*
 * This machine. root is put before every path, "" for the machine itself. NULL: no memory.
 * What may not be read is unknown in the snapshot, not an error here.
 */
struct vpmu_host_source *vpmu_host_real(const char *root);

/* The machine that a file describes. NULL and error: it cannot be read, or is not valid. */
struct vpmu_host_source *vpmu_host_described(const char *path, struct vpmu_host_error *error);

/* The same from memory; text need not end with a NUL. */
struct vpmu_host_source *vpmu_host_described_text(const char *text, size_t size,
                                                  struct vpmu_host_error *error);

void vpmu_host_source_free(struct vpmu_host_source *source);

/*
 * Takes a snapshot; vpmu_host_free() frees it. -1: there are no processors to be found, more than
 * VPMU_ADMISSION_PROCESSORS_MAX, or no memory; then *host is empty.
 */
int vpmu_host_read(struct vpmu_host_source *source, struct vpmu_host *host,
                   struct vpmu_host_error *error);

/*
 * Takes the facts, holders and VMs of a snapshot anew, and which of its processors are online;
 * these and what was measured stay. Same errors; on -1 what it observes is as it was.
 */
int vpmu_host_refresh(struct vpmu_host_source *source, struct vpmu_host *host,
                      struct vpmu_host_error *error);

void vpmu_host_free(struct vpmu_host *host);

/* What is known to have leases: it is not reported a second time. */
struct vpmu_host_managed {
    const uint32_t *pids; /* processes under a lease; their descendants too */
    uint32_t pid_count;
    const struct vpmu_amount *taken; /* CPU-wide leases for each processor; NULL: none */
};

/*
 * Measures how many GP counters are left for VMs on the processors of a set (NULL: every online
 * one), into details[].left, as a VM would find it: the calling thread moves to each processor and
 * opens pinned events that are bound to itself, until one gets no counter or there are as many as
 * the processor has.
 *
 * Such events go after everybody's CPU-wide pinned events, and no other thread's events are on the
 * processor while this thread runs there: neither a holder of pinned events nor a VM loses a
 * counter. Unpinned CPU-wide events give way for some ten microseconds, and say so in their
 * running time. With spare true that is not accepted: where a process may have unpinned events,
 * nothing is measured.
 *
 * What is found taken, less what is managed (which may be NULL) and what the watchdog has, becomes
 * holders of kind VPMU_HOST_MEASURED, in the place of those of an earlier measurement.
 *
 * Where nothing can be measured not_measured says why and the answer is still 0. -1: the set is not
 * valid, no memory.
 */
int vpmu_host_measure(struct vpmu_host_source *source, struct vpmu_host *host,
                      const uint64_t *processors, uint32_t words, bool spare,
                      const struct vpmu_host_managed *managed, struct vpmu_host_error *error);

/* ---- What follows from a snapshot: pure ------------------------------------------------------ */

/*
 * What to tell admission of: a claim, OBSERVED, for each holder that is not managed and whose
 * amount is known or estimated. Where the host has been measured, what was found stands in the
 * place of the estimates. The claims point into the snapshot. claim.holder is an identity that
 * stays the same from snapshot to snapshot. Writes at most room claims; returns how many there are.
 * managed may be NULL.
 */
size_t vpmu_host_claims(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                        struct vpmu_claim *claims, size_t room);

/* The holder of the snapshot that one of these claims is for; NULL: it is none of them. */
const struct vpmu_host_holder *vpmu_host_claimant(const struct vpmu_host *host,
                                                  const struct vpmu_claim *claim);

/* What libvirt's <perf> counts beside the vCPUs of a domain: `beside` of its VM's claim. */
struct vpmu_amount vpmu_host_beside(const struct vpmu_host *host, const uint8_t uuid[16]);

/* "Intel", "AMD", "unknown". */
const char *vpmu_host_vendor_name(enum vpmu_host_vendor vendor);

/*
 * The kernel's list format ("0-3,8", with or without a newline; empty: no processor; no strides),
 * as a set of (limit + 63) / 64 words. -1: it is not that, or names a processor from limit (at most
 * VPMU_ADMISSION_PROCESSORS_MAX) on.
 */
int vpmu_host_parse_list(const char *text, uint32_t limit, uint64_t *words);

/* Writes a set as such a list, cut with "..." where it does not fit; size is at least 16. */
void vpmu_host_write_list(const uint64_t *words, uint32_t count, char *text, size_t size);

/* ---- Checks ---------------------------------------------------------------------------------- */

enum vpmu_verdict {
    VPMU_VERDICT_OK,
    VPMU_VERDICT_WARNING, /* guests can be wrong, or less than wished for */
    VPMU_VERDICT_FAILURE, /* guests are wrong, or have no PMU */
    VPMU_VERDICT_UNKNOWN, /* it could not be seen; the text says why */
    VPMU_VERDICTS,
};

struct vpmu_finding {
    enum vpmu_verdict verdict;
    char is[240];   /* what is, with the holder's name */
    char mend[240]; /* what to do about it; "" if nothing is to be done */
};

struct vpmu_check {
    const char *id;        /* a word, stays the same */
    const char *title;     /* at most 22 columns */
    const char *elsewhere; /* look is NULL: not to be seen from a host, but there */
    /* The finding is VPMU_VERDICT_OK with empty texts before. managed may be NULL. */
    void (*look)(const struct vpmu_host *host, const struct vpmu_host_managed *managed,
                 struct vpmu_finding *finding);
};

/* Every check, in the order in which they are shown; a row with id NULL ends them. */
extern const struct vpmu_check vpmu_checks[];

/* "ok", "warning", "failure", "unknown". */
const char *vpmu_verdict_name(enum vpmu_verdict verdict);

/* ---- Files ---- */

/*
 * Reads a file of at most `most` bytes and adds a NUL that *size does not count; the caller frees
 * it. NULL with errno: EFBIG if it is larger. Does not wait for a FIFO.
 */
char *vpmu_host_load_file(const char *path, size_t most, size_t *size);

#endif
