// SPDX-License-Identifier: BSD-3-Clause
//
// step PROGRAM: runs a program one instruction at a time and counts the steps, with a hardware
// counter on it at the same time. Prints "steps N", then "instructions N" or "instructions
// unsupported". The steps need no PMU and no disassembly, so they are the measure of both.

#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int wait_for(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) != pid) {
        die("waitpid");
    }
    return status;
}

static uint64_t rip_of(pid_t pid)
{
    struct user_regs_struct regs;

    if (ptrace(PTRACE_GETREGS, pid, 0, &regs)) {
        die("PTRACE_GETREGS");
    }
    return regs.rip;
}

// A counter of the ring 3 instructions of pid, from its next exec on; -1 if there is none.
static int open_counter(pid_t pid)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_HW_INSTRUCTIONS,
        .disabled = 1,
        .enable_on_exec = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };

    return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0);
}

static pid_t start(char *const *argv)
{
    pid_t pid = fork();

    if (pid < 0) {
        die("fork");
    }
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0)) {
            die("PTRACE_TRACEME");
        }
        raise(SIGSTOP); // the parent opens the counter here
        execv(argv[0], argv);
        die(argv[0]);
    }
    wait_for(pid);
    return pid;
}

// Steps pid, which stands before its first instruction, to its end.
//
// What is a step but no instruction: one that ends in a signal (the instruction faulted), the one
// that enters a signal's handler, and all but the last repetition of a string instruction (the
// trap comes after each, with RIP unmoved; no program here jumps to itself).
static uint64_t count_steps(pid_t pid)
{
    uint64_t steps = 0;
    uint64_t rip = rip_of(pid);
    int signal = 0;

    for (;;) {
        if (ptrace(PTRACE_SINGLESTEP, pid, 0, signal)) {
            die("PTRACE_SINGLESTEP");
        }
        const int entered_handler = signal != 0;
        const int status = wait_for(pid);
        if (!WIFSTOPPED(status)) {
            return steps + 1; // the system call that ends the program
        }
        const uint64_t next = rip_of(pid);
        signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        if (!signal && !entered_handler && next != rip) {
            steps++;
        }
        rip = next;
    }
}

int main(int argc, char **argv)
{
    uint64_t count;

    if (argc != 2) {
        fputs("usage: step PROGRAM\n", stderr);
        return 2;
    }

    const pid_t pid = start(argv + 1);
    const int counter = open_counter(pid);
    if (ptrace(PTRACE_CONT, pid, 0, 0)) {
        die("PTRACE_CONT");
    }
    if (!WIFSTOPPED(wait_for(pid))) {
        return 1; // exec failed, the child has said why
    }

    printf("steps %llu\n", (unsigned long long)count_steps(pid));
    if (counter < 0) {
        puts("instructions unsupported");
    } else if (read(counter, &count, sizeof count) != (ssize_t)sizeof count) {
        die("read");
    } else {
        printf("instructions %llu\n", (unsigned long long)count);
    }
    return 0;
}
