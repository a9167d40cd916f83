// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program with vpmud's filter that tries what the filter forbids: it is linked with every file of
 * vpmud that has NEEDS(), so that vpmud itself needs no back door.
 *
 * sandbox-probe          names of what can be tried; "!": it ends the program
 * sandbox-probe NAME     tries it; prints "refused" or "allowed"
 * sandbox-probe --every  makes every system call that no NEEDS() names, each in a process of its
 *                        own; prints those that do not end it, and how many there were
 */
#include "hv/daemon/sandbox.h"

#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

/* ---- Every call ------------------------------------------------------------------------------ */

#define CALLS 600u            /* more than Linux has */
#define X32 UINT32_C(1 << 30) /* the same calls by another table: Linux, asm/unistd.h */
#define PATIENCE_S 10u        /* for a call that is not forbidden, and waits */

extern const char *const __start_vpmud_needs[], *const __stop_vpmud_needs[];

static bool is_word_of(const char *words, const char *word)
{
    const size_t length = strlen(word);

    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

/* No filter sees these two, which only return from probes of the kernel's own: kernel/seccomp.c. */
static bool is_probe(unsigned number)
{
    return number == 335 || number == 336; /* uretprobe, uprobe */
}

static bool is_needed(unsigned number)
{
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);
    bool needed = false;

    for (const char *const *words = __start_vpmud_needs; name && words < __stop_vpmud_needs;
         words++)
        needed = needed || is_word_of(*words, name);
    free(name);
    return needed;
}

/* Whether the call ends a process that has the filter. Its arguments are good for nothing. */
static bool is_fatal(uint32_t number)
{
    struct sandbox_error error;
    int status;
    pid_t child = fork();

    if (!child) {
        alarm(PATIENCE_S);
        if (!sandbox_calls(&error))
            syscall((long)number, -1L, -1L, -1L, -1L, -1L, -1L);
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGSYS;
}

static int try_every(void)
{
    unsigned tried = 0;

    for (uint32_t number = 0; number < CALLS; number++) {
        const bool needed = is_needed(number) || is_probe(number);

        if (!needed && !is_fatal(number))
            printf("call %u goes on\n", number);
        if (!is_fatal(X32 | number))
            printf("call %u of x32 goes on\n", number);
        tried += needed ? 1 : 2;
        fflush(stdout);
    }
    printf("tried %u\n", tried);
    return 0;
}

#define ATTEMPTS (sizeof(attempts) / sizeof(attempts[0]))

int main(int argc, char **argv)
{
    struct sandbox_error error;
    struct sandbox_rights rights = {.perfmon = true};

    for (size_t i = 0; argc < 2 && i < ATTEMPTS; i++)
        puts(attempts[i].name);
    if (argc < 2)
        return 0;
    if (!strcmp(argv[1], "--every"))
        return try_every();
    if (sandbox_identity(NULL, &rights, &error) || sandbox_calls(&error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    for (size_t i = 0; i < ATTEMPTS; i++)
        if (!strcmp(attempts[i].name, argv[1]))
            puts(attempts[i].run() < 0 ? "refused" : "allowed");
    return 0;
}
