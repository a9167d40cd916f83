// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program with vpmud's filter that tries what the filter forbids: it is linked with every file of
 * vpmud that has NEEDS(), so that vpmud itself needs no back door.
 *
 * sandbox-probe        names of what can be tried; "!": it ends the program
 * sandbox-probe NAME   tries it; prints "refused" or "allowed"
 */
#include "hv/daemon/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static long try_execve(void)
{
    char *const arguments[] = {"true", NULL};

    return execve("/bin/true", arguments, arguments + 1);
}

static long try_fork(void)
{
    return syscall(SYS_fork);
}

static long try_clone(void)
{
    return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static long try_ptrace(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static long try_mount(void)
{
    return mount("none", "/mnt", "tmpfs", 0, NULL);
}

static long try_bpf(void)
{
    return syscall(SYS_bpf, 0, NULL, 0);
}

static long try_kill(void)
{
    return kill(getppid(), 0);
}

static long try_setuid(void)
{
    return syscall(SYS_setuid, 0);
}

static long try_bind(void)
{
    return bind(0, NULL, 0);
}

static long try_chmod(void)
{
    return chmod("/nonexistent", 0777);
}

static long try_unshare(void)
{
    return syscall(SYS_unshare, 0);
}

static long try_module(void)
{
    return syscall(SYS_init_module, NULL, 0, "");
}

static long try_io_uring(void)
{
    return syscall(SYS_io_uring_setup, 1, NULL);
}

static long try_internet(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

static long try_packets(void)
{
    return socket(AF_PACKET, SOCK_RAW, 0);
}

static long try_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
               ? -1
               : 0;
}

static long try_making_code(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return page == MAP_FAILED ? 0 : mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static const struct attempt {
    const char *name;
    long (*run)(void);
} attempts[] = {
    {"!execve", try_execve},
    {"!fork", try_fork},
    {"!clone", try_clone},
    {"!ptrace", try_ptrace},
    {"!mount", try_mount},
    {"!bpf", try_bpf},
    {"!kill", try_kill},
    {"!setuid", try_setuid},
    {"!bind", try_bind},
    {"!chmod", try_chmod},
    {"!unshare", try_unshare},
    {"!init_module", try_module},
    {"!io_uring", try_io_uring},
    {"internet", try_internet},
    {"packets", try_packets},
    {"code", try_code},
    {"making-code", try_making_code},
};

#define ATTEMPTS (sizeof(attempts) / sizeof(attempts[0]))

int main(int argc, char **argv)
{
    struct sandbox_error error;
    struct sandbox_rights rights = {.perfmon = true};

    for (size_t i = 0; argc < 2 && i < ATTEMPTS; i++)
        puts(attempts[i].name);
    if (argc < 2)
        return 0;
    if (sandbox_identity(NULL, &rights, &error) || sandbox_calls(&error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    for (size_t i = 0; i < ATTEMPTS; i++)
        if (!strcmp(attempts[i].name, argv[1]))
            puts(attempts[i].run() < 0 ? "refused" : "allowed");
    return 0;
}
