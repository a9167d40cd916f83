/* SPDX-License-Identifier: BSD-3-Clause */
/* A system without perflib: what of vpmustat runs there serves its tests. */

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "system.h"

static void become(char **program, uint32_t processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor == SYSTEM_ANYWHERE ? 0 : processor, &set);
    if (processor != SYSTEM_ANYWHERE)
        sched_setaffinity(0, sizeof(set), &set);
    execvp(program[0], program);
    _exit(127);
}

int system_run(char **program, uint32_t processor, int *status, const char **error)
{
    pid_t child = fork();
    int result;

    if (child == 0)
        become(program, processor);
    if (child < 0 || waitpid(child, &result, 0) < 0) {
        *error = strerror(errno);
        return -1;
    }
    *status = WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
    return 0;
}

uint64_t system_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void system_sleep_ms(uint32_t ms)
{
    usleep(ms * 1000);
}

void system_find_routines(const char *perflib, struct perf_routines *routines)
{
    (void)perflib;
    *routines = (struct perf_routines){0};
}

int system_profile_thread(void (*work)(void), uint64_t *counted, const char **what, uint32_t *error)
{
    (void)work;
    (void)counted;
    *what = "this system has no EnableThreadProfiling";
    *error = 0;
    return -1;
}
