// SPDX-License-Identifier: BSD-3-Clause
/* This machine, what of it is no file: CPUID, affinity, perf_event_open. */
#include "host_internal.h"

#include <cpuid.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_EVENTS 32u

/* Where the thread was before the first go(). A set of ours is laid out as a cpu_set_t is. */
static struct host_set before;
static bool moved;

_Static_assert(sizeof(unsigned long) == sizeof(uint64_t), "words of cpu_set_t");

static struct host_cpuid machine_cpuid(void *context, uint32_t leaf, uint32_t subleaf)
{
    struct host_cpuid out;

    __cpuid_count(leaf, subleaf, out.eax, out.ebx, out.ecx, out.edx);
    return out;
}

static int machine_go(void *context, uint32_t processor)
{
    struct host_set there = {0};

    if (!moved && sched_getaffinity(0, sizeof(before), (cpu_set_t *)&before))
        return -errno;
    host_set_add(&there, processor);
    if (sched_setaffinity(0, sizeof(there), (const cpu_set_t *)&there))
        return -errno;
    moved = true;
    return 0;
}

static void machine_back(void *context)
{
    if (moved)
        sched_setaffinity(0, sizeof(before), (const cpu_set_t *)&before);
    moved = false;
}

/*
 * An event that every GP counter can count and no fixed one does: branches. It neither sees the
 * kernel, so that no privilege is needed (perf_event_paranoid up to 2), nor guests, so that it may
 * be open beside a mediated vPMU.
 */
static int open_event(uint32_t processor, const struct vpmu_host_core_type *type)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
        .pinned = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .exclude_guest = 1,
    };

    /* Which PMU of a hybrid machine: perf_event_open(2), PERF_PMU_TYPE_SHIFT. "cpu" has none. */
    if (type->perf_type != PERF_TYPE_RAW)
        attr.config |= (uint64_t)type->perf_type << 32;
    return (int)syscall(SYS_perf_event_open, &attr, 0, (int)processor, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A pinned event that has got no counter reads as the end of the file: perf_event_open(2). */
static bool has_counter(int event)
{
    uint64_t count;

    return read(event, &count, sizeof(count)) == (ssize_t)sizeof(count);
}

static int machine_place(void *context, uint32_t processor, const struct vpmu_host_core_type *type,
                         unsigned most)
{
    int events[MOST_EVENTS], opened = 0, placed = 0, error = 0;

    while (placed < (int)most && placed < (int)MOST_EVENTS) {
        const int event = open_event(processor, type);

        if (event < 0) {
            error = errno;
            break;
        }
        events[opened++] = event;
        if (!has_counter(event))
            break;
        placed++;
    }
    while (opened)
        close(events[--opened]);
    return error ? -error : placed;
}

const struct host_machine *host_this_machine(void)
{
    static const struct host_machine machine = {
        .cpuid = machine_cpuid,
        .go = machine_go,
        .back = machine_back,
        .place = machine_place,
    };

    return &machine;
}
