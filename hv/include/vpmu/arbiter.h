// SPDX-License-Identifier: BSD-3-Clause
/*
 * The arbiter: who holds which hardware counters of which processors.
 *
 * It is the contract of HalAllocateHardwareCounters, HalFreeHardwareCounters and
 * Ke{Set,Query}HardwareCounterConfiguration over our own types, as a pure library: the caller gives
 * the memory, there is no clock, no I/O and no lock. Calls on one arbiter must not run at the same
 * time; a caller with several processors, or with interrupts that look up owners, takes a lock.
 *
 * Words
 *   processor  numbered over all groups: processor 64 * g + n is number n of group g
 *   resource   something of one processor that one lease can hold. Its index is its bit in
 *              IA32_PERF_GLOBAL_STATUS (SDM Vol. 3, performance monitoring): GP counter i is i,
 *              fixed counter i is 32 + i, the event buffer (PEBS) is 62
 *   lease      what one successful allocation holds until it is freed
 *   holder     who has leases: a driver, a process, a VM, the kernel's own profiling
 *   whole PMU  every resource of every processor, for one lease alone
 *
 * Cost: a request is O(processors that it names), the whole PMU is O(1); nothing scans leases.
 *
 * Two behaviours. The documented one (ntddk.h pages) is the default. The observed one (described in
 * public notes on Windows kernels) differs in these places. Each has its VPMU_MODE_ flag; all of
 * them together are VPMU_MODE_OBSERVED.
 *
 *   flag          place                                    documented              observed
 *   UNSUCCESSFUL  part wanted while the whole PMU is held  INSUFFICIENT_RESOURCES  UNSUCCESSFUL
 *   DEVICE_BUSY   what is wanted is held by the kernel's   INSUFFICIENT_RESOURCES  DEVICE_BUSY
 *                 own profiling (the status was seen; that
 *                 this is its occasion is our inference)
 *   NO_MEMORY     no room for one more lease               INSUFFICIENT_RESOURCES  NO_MEMORY
 *   HANDLE_ONES   handle after a refused list              0                       -1
 *   SET_ONCE      Set over a set, neither empty            replaces it, unless one ALREADY_ENABLED
 *                                                          of its counters is used always
 *   SET_LOOSE     Set: Type and Reserved                   must be 0               not looked at
 *   SET_LOOSE     Set: Index                               64 bits                 its low 32 bits
 *   COUNT_ALWAYS  Query: *Count when NOT_IMPLEMENTED       not written             0
 *
 * A counter is "used" while it is in the standing set and a thread profiles with that, or while
 * another holder has it leased. If both UNSUCCESSFUL and DEVICE_BUSY apply, it is UNSUCCESSFUL.
 *
 * Where the sources are silent, in both behaviours: an empty list or mask, a repeated group, a mask
 * with an absent processor, a NULL handler, a second event buffer, and a Set that names a counter
 * that some processor lacks (RDPMC would fault in the scheduler) are INVALID_PARAMETER. A counter
 * named twice in one list is taken once. Overflow and tag belong to the lease and never conflict.
 * A request is judged in this order: pointers and affinity, the list entry by entry, what each
 * processor has, what is held, what room is left.
 */
#ifndef VPMU_ARBITER_H
#define VPMU_ARBITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Statuses: the values of NTSTATUS (ntstatus.h), kept unsigned. */
typedef uint32_t vpmu_status;

#define VPMU_STATUS_SUCCESS 0x00000000u
#define VPMU_STATUS_DEVICE_BUSY 0x80000011u
#define VPMU_STATUS_UNSUCCESSFUL 0xC0000001u
#define VPMU_STATUS_NOT_IMPLEMENTED 0xC0000002u
#define VPMU_STATUS_INVALID_PARAMETER 0xC000000Du
#define VPMU_STATUS_NO_MEMORY 0xC0000017u
#define VPMU_STATUS_BUFFER_TOO_SMALL 0xC0000023u
#define VPMU_STATUS_INSUFFICIENT_RESOURCES 0xC000009Au
#define VPMU_STATUS_NOT_SUPPORTED 0xC00000BBu
#define VPMU_STATUS_WMI_ALREADY_ENABLED 0xC0000303u

/* Resource indices; see "resource" above. */
#define VPMU_FIXED_COUNTER 32u
#define VPMU_EVENT_BUFFER 62u
#define VPMU_INDEX_MAX 0x3Fu

/* Every index that can be a counter: 32 GP and 16 fixed; the bits above have other uses (SDM). */
#define VPMU_COUNTERS UINT64_C(0x0000FFFFFFFFFFFF)

/* The first gp_count GP counters (0..32) and the first fixed_count fixed counters (0..16). */
static inline uint64_t vpmu_counter_set(unsigned gp_count, unsigned fixed_count)
{
    return ((UINT64_C(1) << gp_count) - 1) | ((UINT64_C(1) << fixed_count) - 1)
                                                 << VPMU_FIXED_COUNTER;
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

/* What one processor has. A processor that is not online is a hole in its group. */
struct vpmu_processor {
    uint64_t counters; /* set of counter indices, a subset of VPMU_COUNTERS; 0: no PMU */
    uint8_t version;   /* architectural PMU version; overflow needs 2 */
    bool event_buffer; /* it has PEBS */
    bool online;
};

enum vpmu_mode {
    VPMU_MODE_DOCUMENTED = 0,
    VPMU_MODE_UNSUCCESSFUL = 1 << 0,
    VPMU_MODE_DEVICE_BUSY = 1 << 1,
    VPMU_MODE_NO_MEMORY = 1 << 2,
    VPMU_MODE_HANDLE_ONES = 1 << 3,
    VPMU_MODE_SET_ONCE = 1 << 4,
    VPMU_MODE_SET_LOOSE = 1 << 5,
    VPMU_MODE_COUNT_ALWAYS = 1 << 6,
    VPMU_MODE_OBSERVED = (1 << 7) - 1,

    /* Before Windows 10 1903: the arguments must be NULL, 0, NULL, else INVALID_PARAMETER. */
    VPMU_MODE_BEFORE_1903 = 1 << 8,
    /* A processor architecture without thread profiling: Set and Query are NOT_IMPLEMENTED. */
    VPMU_MODE_NO_PROFILING = 1 << 9,
    /*
     * A request without a list on processors without counters is NOT_SUPPORTED. Without this flag
     * it succeeds, as Hyper-V documents, and the explanation says VPMU_CAUSE_NOTHING_BEHIND.
     */
    VPMU_MODE_STRICT = 1 << 10,
};

struct vpmu_arbiter_config {
    const struct vpmu_processor *processors; /* copied; 64 to a group, the last may be short */
    uint32_t processor_count;                /* 1..VPMU_PROCESSORS_MAX */
    uint32_t leases;                         /* live leases at most, 1..VPMU_LEASES_MAX */
    uint32_t holders; /* holders with a lease or a set at most; 0: leases + 1 */
    uint32_t spans;   /* affinity entries of all live leases; 0: leases */
    uint32_t mode;    /* enum vpmu_mode, or-ed */
};

#define VPMU_PROCESSORS_MAX (UINT32_C(65536) * 64)
#define VPMU_LEASES_MAX UINT32_C(0x7FFFFFFF)

struct vpmu_arbiter;

/* Bytes of memory that an arbiter of this configuration needs; 0 if a field is out of range. */
size_t vpmu_arbiter_size(const struct vpmu_arbiter_config *config);

/*
 * Makes an arbiter in the caller's memory, which must be aligned for uint64_t and stay in place.
 * Dropping the memory is all there is to destroy it.
 * Returns NULL if the configuration is out of range or size is below vpmu_arbiter_size().
 */
struct vpmu_arbiter *vpmu_arbiter_init(void *memory, size_t size,
                                       const struct vpmu_arbiter_config *config);

/* ---- Requests: the layouts of x64 Windows 10 1903 and later, a HAL can pass them through ----- */

/* GROUP_AFFINITY. */
struct vpmu_affinity {
    uint64_t mask; /* processors of the group; not 0 */
    uint16_t group;
    uint16_t reserved[3]; /* 0 */
};

/* PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE. */
enum vpmu_resource_type {
    VPMU_RESOURCE_SINGLE = 0,
    VPMU_RESOURCE_RANGE = 1,
    VPMU_RESOURCE_EXTENDED = 2, /* ExtendedCounterConfiguration: never supported */
    VPMU_RESOURCE_OVERFLOW = 3,
    VPMU_RESOURCE_EVENT_BUFFER = 4,
    VPMU_RESOURCE_TAG = 5,
    VPMU_RESOURCE_TYPES = 6,
};

/* PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION. */
struct vpmu_event_buffer {
    uint64_t handler; /* address or cookie; not 0 */
    uint32_t entry_size;
    uint32_t threshold; /* not 0 */
};

/* PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR. */
struct vpmu_resource {
    uint32_t type;  /* enum vpmu_resource_type */
    uint32_t flags; /* 0 */
    union {
        uint32_t counter; /* Single: 0..VPMU_INDEX_MAX */
        struct {
            uint32_t begin;
            uint32_t end; /* inclusive */
        } range;
        uint64_t overflow_handler; /* address or cookie; not 0 */
        struct vpmu_event_buffer event_buffer;
        uint32_t tag;
    } u;
};

/* HARDWARE_COUNTER. */
struct vpmu_hardware_counter {
    uint32_t type;     /* PMCCounter, 0 */
    uint32_t reserved; /* 0 */
    uint64_t index;    /* selector of RDPMC: GP counter i is i, fixed counter i is 0x40000000 | i */
};

#define VPMU_RDPMC_FIXED UINT64_C(0x40000000)
#define VPMU_PROFILING_MAX 16u /* MAX_HW_COUNTERS */

_Static_assert(sizeof(struct vpmu_affinity) == 16, "GROUP_AFFINITY");
_Static_assert(offsetof(struct vpmu_affinity, group) == 8, "GROUP_AFFINITY");
_Static_assert(sizeof(struct vpmu_event_buffer) == 16, "EVENT_BUFFER_CONFIGURATION");
_Static_assert(sizeof(struct vpmu_resource) == 24, "RESOURCE_DESCRIPTOR");
_Static_assert(offsetof(struct vpmu_resource, u) == 8, "RESOURCE_DESCRIPTOR");
_Static_assert(sizeof(struct vpmu_hardware_counter) == 16, "HARDWARE_COUNTER");
_Static_assert(offsetof(struct vpmu_hardware_counter, index) == 8, "HARDWARE_COUNTER");

/* What HalAllocateHardwareCounters is given. All zero asks for the whole PMU. */
struct vpmu_request {
    const struct vpmu_affinity *affinity;  /* NULL: every online processor */
    uint32_t affinity_count;               /* 0 exactly when affinity is NULL */
    uint32_t resource_count;               /* not 0 when resources is not NULL */
    const struct vpmu_resource *resources; /* NULL: the whole PMU; with affinity: its counters */
};

#define VPMU_HOLDER_NAME 24u

/* Who asks. The id decides; the name is what people are told. */
struct vpmu_holder {
    uint64_t id;                 /* of the caller's choosing; VPMU_HOLDER_KERNEL is taken */
    char name[VPMU_HOLDER_NAME]; /* ended by a NUL; the name of a holder's first lease stands */
};

/* The id of the kernel's own (ETW) profiling, a holder like any other. */
#define VPMU_HOLDER_KERNEL UINT64_C(0)

/* A handle: a slot and its generation. Never 0 or all ones. */
typedef uint64_t vpmu_lease;

#define VPMU_LEASE_NONE UINT64_C(0)
#define VPMU_LEASE_ONES (~UINT64_C(0))

/* ---- Explanations ---------------------------------------------------------------------------- */

/* Why an answer is what it is. After each: the fields of struct vpmu_explanation that it sets. */
enum vpmu_cause {
    VPMU_CAUSE_NONE,           /* granted */
    VPMU_CAUSE_NOTHING_BEHIND, /* no counter there: processor. It can go with success */
    VPMU_CAUSE_NULL_POINTER,
    VPMU_CAUSE_BEFORE_1903,
    VPMU_CAUSE_AFFINITY_COUNT,    /* affinity and affinity_count do not go together */
    VPMU_CAUSE_NO_SUCH_GROUP,     /* position */
    VPMU_CAUSE_REPEATED_GROUP,    /* position */
    VPMU_CAUSE_EMPTY_MASK,        /* position */
    VPMU_CAUSE_NO_SUCH_PROCESSOR, /* position, processor */
    VPMU_CAUSE_RESERVED,          /* a field that must be 0 is not: position */
    VPMU_CAUSE_EMPTY_LIST,
    VPMU_CAUSE_UNKNOWN_TYPE,      /* position, type */
    VPMU_CAUSE_BAD_INDEX,         /* above VPMU_INDEX_MAX: position, type, index */
    VPMU_CAUSE_BAD_RANGE,         /* end below begin: position, type, index (begin) */
    VPMU_CAUSE_REPEATED_RESOURCE, /* position, type */
    VPMU_CAUSE_NO_HANDLER,        /* position, type */
    VPMU_CAUSE_ZERO_THRESHOLD,    /* position, type */
    VPMU_CAUSE_NO_SUCH_COUNTER,   /* index; processor unless none has it */
    VPMU_CAUSE_UNSUPPORTED,       /* type; processor unless none has it */
    VPMU_CAUSE_HELD,              /* processor, index, lease, holder */
    VPMU_CAUSE_WHOLE_HELD,        /* the whole PMU is held: lease, holder */
    VPMU_CAUSE_PARTS_HELD, /* the whole PMU is wanted, the oldest part is held: lease, holder */
    VPMU_CAUSE_NO_ROOM,    /* the arbiter's memory is full */
    VPMU_CAUSE_BAD_HANDLE, /* stale, freed, forged, 0 or all ones: lease (as given) */
    VPMU_CAUSE_TOO_MANY_COUNTERS,
    VPMU_CAUSE_COUNTER_TYPE, /* position */
    VPMU_CAUSE_SET_STANDS,   /* a set that is not empty stands: holder */
    VPMU_CAUSE_SET_USED,     /* a thread profiles with the counter: position, index, holder */
    VPMU_CAUSE_NOT_IMPLEMENTED,
    VPMU_CAUSE_BUFFER_TOO_SMALL,
    VPMU_CAUSES,
};

#define VPMU_NOT_SET UINT32_MAX

/* The answer in full. Numbers that the cause does not set are VPMU_NOT_SET; lease and holder, 0. */
struct vpmu_explanation {
    vpmu_status status;
    enum vpmu_cause cause;
    uint32_t position;         /* in the affinity, the list or the array, from 0 */
    uint32_t type;             /* enum vpmu_resource_type */
    uint32_t processor;        /* 64 * group + number */
    uint32_t index;            /* resource index */
    vpmu_lease lease;          /* the lease that is in the way */
    struct vpmu_holder holder; /* and who holds it */
};

/*
 * Writes the explanation as one English line without a newline, such as "STATUS_... : counter 3 of
 * processor 0:5 is held by lease 0x100000002 of WindowsPerf (id 7)".
 * At most size bytes including the NUL; returns the length of the whole text, as snprintf does.
 */
size_t vpmu_explanation_text(const struct vpmu_explanation *explanation, char *text, size_t size);

/* "STATUS_INSUFFICIENT_RESOURCES" and so on; "STATUS_?" for a value that is not of this header. */
const char *vpmu_status_name(vpmu_status status);

/* ---- The four routines ----------------------------------------------------------------------- */

/*
 * HalAllocateHardwareCounters. All that is asked for on all processors, or nothing.
 *
 * lease        receives the handle; VPMU_LEASE_NONE on failure, or VPMU_LEASE_ONES (a refused
 *              list under VPMU_MODE_HANDLE_ONES): test the status, not the handle
 * explanation  NULL, or receives why; also filled on success
 *
 * SUCCESS                 held by holder until it is freed
 * INSUFFICIENT_RESOURCES  something wanted is held, or there is no room; the table on top says
 *                         when it is UNSUCCESSFUL, DEVICE_BUSY or NO_MEMORY instead
 * INVALID_PARAMETER       a bad argument, or a counter that a processor does not have
 * NOT_SUPPORTED           ExtendedCounterConfiguration; Overflow on a PMU version below 2;
 *                         EventBuffer without PEBS
 */
vpmu_status vpmu_arbiter_allocate(struct vpmu_arbiter *arbiter, const struct vpmu_holder *holder,
                                  const struct vpmu_request *request, vpmu_lease *lease,
                                  struct vpmu_explanation *explanation);

/*
 * HalFreeHardwareCounters. INVALID_PARAMETER, and nothing changes, if the handle is not that of a
 * live lease. The generation of a slot has 32 bits: a stale handle could be taken for live only
 * after 2^32 allocations in its slot.
 */
vpmu_status vpmu_arbiter_free(struct vpmu_arbiter *arbiter, vpmu_lease lease,
                              struct vpmu_explanation *explanation);

/*
 * A holder is gone (a process died, a driver was unloaded): frees all its leases and empties the
 * profiling set if it is the holder's. Returns the number of leases freed.
 */
uint32_t vpmu_arbiter_free_holder(struct vpmu_arbiter *arbiter, uint64_t holder_id);

/*
 * KeSetHardwareCounterConfiguration: the counters that thread profiling reads, on all processors.
 * The array is copied; count 0 empties the set and always succeeds where it is implemented.
 *
 * INVALID_PARAMETER   count above VPMU_PROFILING_MAX; a NULL array; a counter that some online
 *                     processor lacks; type or reserved not 0
 * WMI_ALREADY_ENABLED a counter is used, or (SET_ONCE) a set stands
 * NOT_IMPLEMENTED     VPMU_MODE_NO_PROFILING
 * INSUFFICIENT_RESOURCES, NO_MEMORY  no room for one more holder
 */
vpmu_status vpmu_arbiter_set_profiling(struct vpmu_arbiter *arbiter,
                                       const struct vpmu_holder *holder,
                                       const struct vpmu_hardware_counter *counters, uint32_t count,
                                       struct vpmu_explanation *explanation);

/*
 * KeQueryHardwareCounterConfiguration: copies the set out. Nothing is written to counters on
 * failure. With BUFFER_TOO_SMALL *count is the number needed. counters may be NULL if it would
 * not be written.
 *
 * BUFFER_TOO_SMALL   maximum is below the size of the set
 * INVALID_PARAMETER  a NULL pointer
 * NOT_IMPLEMENTED    VPMU_MODE_NO_PROFILING
 */
vpmu_status vpmu_arbiter_query_profiling(const struct vpmu_arbiter *arbiter,
                                         struct vpmu_hardware_counter *counters, uint32_t maximum,
                                         uint32_t *count, struct vpmu_explanation *explanation);

/* A thread began (on) or ended profiling with the standing set. Begin and end go in pairs. */
void vpmu_arbiter_thread_profiling(struct vpmu_arbiter *arbiter, bool on);

/* ---- Delivery at interrupt time -------------------------------------------------------------- */

/* One call that an overflow interrupt is to make. */
struct vpmu_delivery {
    vpmu_lease lease;  /* OwningHandle */
    uint64_t bits;     /* OverflowBits: those of the asked ones whose resources the lease holds */
    uint64_t handler;  /* 0: the lease has none, call nobody */
    bool event_buffer; /* handler and bits are the event buffer's */
    struct vpmu_event_buffer buffer; /* its configuration, if so */
};

/*
 * Takes from *bits, which have the layout of IA32_PERF_GLOBAL_STATUS, those of one lease, and says
 * whom to call: the owner of the lowest bit that has one. False when nobody holds what is left in
 * *bits. The event buffer's bit is a call of its own:
 *
 *     while (vpmu_arbiter_overflow(arbiter, processor, &bits, &delivery))
 *         call(delivery.handler, delivery.bits, delivery.lease);
 */
bool vpmu_arbiter_overflow(const struct vpmu_arbiter *arbiter, uint32_t processor, uint64_t *bits,
                           struct vpmu_delivery *delivery);

/* ---- Questions ------------------------------------------------------------------------------- */

struct vpmu_lease_info {
    vpmu_lease lease;
    struct vpmu_holder holder;
    uint64_t resources;        /* set of indices; on each processor, those of it that exist there */
    uint64_t overflow_handler; /* 0: none */
    struct vpmu_event_buffer event_buffer; /* handler 0: none */
    uint32_t tag;
    bool has_tag;
    bool whole;          /* the whole PMU */
    bool all_processors; /* no affinity was given */
};

/* What a lease is. INVALID_PARAMETER, and nothing is written, if it is not live. */
vpmu_status vpmu_arbiter_lease(const struct vpmu_arbiter *arbiter, vpmu_lease lease,
                               struct vpmu_lease_info *info);

/* The online processors of group that a lease covers, as a mask; 0 if none or not live. */
uint64_t vpmu_arbiter_lease_mask(const struct vpmu_arbiter *arbiter, vpmu_lease lease,
                                 uint32_t group);

/* The live lease after lease, oldest first; VPMU_LEASE_NONE begins and ends the round. */
vpmu_lease vpmu_arbiter_next(const struct vpmu_arbiter *arbiter, vpmu_lease lease);

/* The same among the leases of one holder. */
vpmu_lease vpmu_arbiter_next_of(const struct vpmu_arbiter *arbiter, uint64_t holder_id,
                                vpmu_lease lease);

/* Who holds a counter, or VPMU_EVENT_BUFFER, of a processor; VPMU_LEASE_NONE: nobody. */
vpmu_lease vpmu_arbiter_owner(const struct vpmu_arbiter *arbiter, uint32_t processor,
                              uint32_t index);

/* The resources that a processor has, and those of them that are left; 0 if it is not online. */
uint64_t vpmu_arbiter_capacity(const struct vpmu_arbiter *arbiter, uint32_t processor);
uint64_t vpmu_arbiter_left(const struct vpmu_arbiter *arbiter, uint32_t processor);

/* How many leases are live. */
uint32_t vpmu_arbiter_leases(const struct vpmu_arbiter *arbiter);

/* How many holders have a lease or the profiling set. */
uint32_t vpmu_arbiter_holders(const struct vpmu_arbiter *arbiter);

#endif
