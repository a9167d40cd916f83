// SPDX-License-Identifier: BSD-3-Clause
//
// pin COUNT [exclude-guest]: a host agent that holds COUNT counters of every processor, with pinned
// events that are bound to no task, until its standard input ends.
//
// Prints "held N of M", counted over all processors: N are on a counter, the others have none. Or
// "error ERRNO" if the kernel refuses an event.

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_EVENTS 1024

static int open_event(int cpu, int exclude_guest)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_HW_CPU_CYCLES,
        .pinned = 1,
        .exclude_guest = (unsigned)exclude_guest & 1,
    };

    return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

// A pinned event that has got no counter reads as the end of the file.
static int is_held(int event)
{
    uint64_t count;

    return read(event, &count, sizeof count) == (ssize_t)sizeof count;
}

int main(int argc, char **argv)
{
    static int events[MAX_EVENTS];
    int opened = 0, held = 0;

    if (argc < 2) {
        fputs("usage: pin COUNT [exclude-guest]\n", stderr);
        return 2;
    }
    const int count = atoi(argv[1]);
    const int exclude_guest = argc > 2 && !strcmp(argv[2], "exclude-guest");
    const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);

    for (int cpu = 0; cpu < cpus; cpu++) {
        for (int i = 0; i < count && opened < MAX_EVENTS; i++) {
            events[opened] = open_event(cpu, exclude_guest);
            if (events[opened] < 0) {
                printf("error %s\n", strerrorname_np(errno));
                return 1;
            }
            opened++;
        }
    }
    for (int i = 0; i < opened; i++) {
        held += is_held(events[i]);
    }
    printf("held %d of %d\n", held, opened);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
