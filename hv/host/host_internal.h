// SPDX-License-Identifier: BSD-3-Clause
/*
 * What the parts of hv/host share.
 *
 *   source.c     snapshots: taking, refreshing and freeing them
 *   real.c       this machine: processors and facts, from sysfs, procfs and CPUID
 *   machine.c    of it what is no file: CPUID, affinity, perf_event_open
 *   processes.c  who has perf events and VMs, from procfs
 *   libvirt.c    domains with <perf>, from libvirt's status files
 *   described.c  a machine that a JSON file describes
 *   capacity.c   CPUID -> counters; pure
 *   file.c       reading files
 *   text.c       parsers and writers of the kernel's small formats; pure
 *   measure.c    what is left for VMs
 *   claims.c     what holders mean to admission; pure
 *   checks.c     what is wrong with a host; pure
 */
#ifndef HOST_INTERNAL_H
#define HOST_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "vpmu/host.h"

#define HOST_ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* Words of a set that can have every processor. */
#define HOST_SET_WORDS (VPMU_ADMISSION_PROCESSORS_MAX / 64u)

struct host_set {
    uint64_t words[HOST_SET_WORDS];
};

/* ---- Sources ---- */

struct host_source_ops {
    /* Fills vendor, model, core types, processors and details of an empty snapshot. */
    int (*processors)(void *context, struct vpmu_host *host, struct vpmu_host_error *error);
    /* Which processors of a snapshot are online now; if that cannot be seen they stay as they are.
     */
    void (*online)(void *context, struct vpmu_host *host);
    /* Fills facts, holders and VMs of a snapshot that has its processors and none of these. */
    int (*observe)(void *context, struct vpmu_host *host, struct vpmu_host_error *error);
    /*
     * How many pinned events get a counter on a processor, at most its capacity; -1 and *why, a
     * static text or strerror's, if that cannot be found out.
     */
    int (*place)(void *context, const struct vpmu_host *host, uint32_t processor, const char **why);
    void (*placed)(void *context); /* after the last of several place() */
    void (*free)(void *context);
};

struct vpmu_host_source {
    const struct host_source_ops *ops;
    void *context;
};

/* Takes over context; NULL, and context is freed, if there is no memory. */
struct vpmu_host_source *host_source(const struct host_source_ops *ops, void *context);

/* Room for processors; the details are those of single ones, not measured. -1: no memory. */
int host_make_processors(struct vpmu_host *host, uint32_t count, struct vpmu_host_error *error);

/* One more holder, with nothing in it, or VM; NULL: no memory. */
struct vpmu_host_holder *host_add_holder(struct vpmu_host *host);
struct vpmu_host_vm *host_add_vm(struct vpmu_host *host);

/* Gives a holder a copy of a set of count words; NULL: every online processor. -1: no memory. */
int host_holder_processors(struct vpmu_host_holder *holder, const uint64_t *words, uint32_t count);

/* Words of a set of the host's processors. */
static inline uint32_t host_words(const struct vpmu_host *host)
{
    return (host->processor_count + 63) / 64;
}

/* One more holder that is a copy of this. -1: no memory. */
int host_copy_holder(struct vpmu_host *host, const struct vpmu_host_holder *holder);

/* Drops holders of a kind. */
void host_drop_holders(struct vpmu_host *host, enum vpmu_host_holder_kind kind);

/*
 * The holder that the facts about the watchdog imply, if they do, on the processors of a set (NULL:
 * every online one). -1: no memory.
 */
int host_add_watchdog(struct vpmu_host *host, const struct host_set *set);

/* Whether a holder, if it has CPU-wide events, has them on a processor. */
bool host_holder_on(const struct vpmu_host *host, const struct vpmu_host_holder *holder,
                    uint32_t processor);

/* Whether the measurement shows that an estimated holder takes nothing: all counters are left. */
bool host_is_refuted(const struct vpmu_host *host, const struct vpmu_host_holder *holder);

/* Whether it, or an ancestor, is under a lease. managed may be NULL. */
bool host_is_managed(const struct vpmu_host_holder *holder,
                     const struct vpmu_host_managed *managed);

/* Sets the error; returns -1. */
__attribute__((format(printf, 2, 3))) int host_fail(struct vpmu_host_error *error,
                                                    const char *format, ...);

/* ---- The machine, but for files ---- */

struct host_cpuid {
    uint32_t eax, ebx, ecx, edx;
};

/* Executes CPUID where the calling thread is. */
typedef struct host_cpuid host_cpuid_fn(void *context, uint32_t leaf, uint32_t subleaf);

struct host_machine {
    host_cpuid_fn *cpuid;
    int (*go)(void *context, uint32_t processor); /* moves the calling thread there; 0 or -errno */
    void (*back)(void *context);                  /* to where it was before the first go() */
    /* How many pinned events, at most most, get a counter on the processor that it is on; or
     * -errno. */
    int (*place)(void *context, uint32_t processor, const struct vpmu_host_core_type *type,
                 unsigned most);
    void *context;
};

/* The machine itself; its context is static: one user at a time. */
const struct host_machine *host_this_machine(void);

/* vpmu_host_real() on another machine, which must outlive the source. */
struct vpmu_host_source *host_real_on(const char *root, const struct host_machine *machine);

/* ---- Pure ---- */

/* What CPUID says of the counters of a processor, into version and capacity. */
enum vpmu_host_vendor host_capacity(host_cpuid_fn *cpuid, void *context,
                                    struct vpmu_host_core_type *type);

/* Whether CPUID says that it is a guest; that its processors are of several kinds. */
bool host_is_virtualised(host_cpuid_fn *cpuid, void *context);
bool host_is_hybrid(host_cpuid_fn *cpuid, void *context);

/* The processor's name, trimmed; "" if there is none. */
void host_model(host_cpuid_fn *cpuid, void *context, char *model, size_t size);

static inline bool host_set_has(const uint64_t *words, uint32_t count, uint32_t processor)
{
    return processor / 64 < count && words[processor / 64] >> processor % 64 & 1;
}

static inline void host_set_add(struct host_set *set, uint32_t processor)
{
    set->words[processor / 64] |= UINT64_C(1) << processor % 64;
}

/* One more than its last processor; 0 if it is empty. */
uint32_t host_set_count(const struct host_set *set);

/* vpmu_host_parse_list() into a set that has every processor. */
static inline int host_parse_list(const char *text, uint32_t limit, struct host_set *set)
{
    *set = (struct host_set){{0}};
    return vpmu_host_parse_list(text, limit, set->words);
}

/* A decimal number with nothing else but a newline after it; -1 if it is not, or is out of range.
 */
int host_parse_number(const char *text, int64_t least, int64_t most, int64_t *number);

/* Y, N, 1, 0 as module parameters have them; else unknown. */
enum vpmu_fact host_parse_fact(const char *text);

/*
 * From the text of a /proc/PID/stat: the command's name, printable, and the parent. -1: it is not
 * one.
 */
int host_parse_stat(const char *text, char *name, size_t size, uint32_t *parent);

/*
 * From the text of a perf event's /proc/PID/fdinfo/N: whether it takes a counter of the PMUs of
 * these types. Unknown where the kernel says nothing of the event: 6.1 and 6.12 do not, 7.3 does.
 */
enum vpmu_fact host_parse_fdinfo(const char *text, const struct vpmu_host *host);

/* Whether the words of a /proc/PID/cmdline (each ends with a NUL) say something of a VM's PMU. */
void host_parse_cmdline(const char *text, size_t size, struct vpmu_host_vm *vm);

/* Whether a line of modprobe.d or of the kernel's command line sets a parameter of KVM to yes. */
bool host_asks_for_mediated(const char *text);

/*
 * From the text of one of libvirt's status files: pid, uuid, name and the events of <perf> that
 * take a counter; the holder is otherwise as it was. False: the text is not that of a domain.
 */
bool host_parse_domain(const char *text, size_t size, struct vpmu_host_holder *holder);

/* 32 hexadecimal digits, dashes anywhere. */
bool host_parse_uuid(const char *text, uint8_t uuid[16]);

/* Copies text so that it can be printed anywhere: what is not printable ASCII or UTF-8 becomes ?.
 */
void host_copy_printable(char *to, size_t size, const char *text);

/* ---- Files ---- */

/* Reads at most size - 1 bytes of root/path and adds a NUL; the length, or -1 with errno. */
__attribute__((format(printf, 4, 5))) long host_read_file(const char *root, char *text, size_t size,
                                                          const char *path, ...);

/* Adds holders and VMs of processes, and counts what could not be seen. -1: no memory. */
int host_add_processes(const char *root, struct vpmu_host *host, struct vpmu_host_error *error);

/* Adds the domains with <perf>. -1: no memory. */
int host_add_domains(const char *root, struct vpmu_host *host, struct vpmu_host_error *error);

#endif
