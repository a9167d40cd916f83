// SPDX-License-Identifier: BSD-3-Clause
/*
 * Loaded before vpmud's libraries (LD_PRELOAD): the process dies at one of the calls by which vpmud
 * is seen from outside, as by kill -9, and vpmud itself needs no back door.
 *
 *   DIE_AT=n    before the n-th of the calls below, from 1 on; 0: never
 *   DIE_HALF=1  a call that writes or sends does half of it first
 *
 * The last thing said on the standard error, where calls are not counted, is "died at n: CALL", or
 * at a good end "lived through n".
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned long calls;

static unsigned long number(const char *name)
{
    const char *text = getenv(name);

    return text ? strtoul(text, NULL, 10) : 0;
}

static void say(const char *format, const char *call)
{
    char text[80];
    const int length = snprintf(text, sizeof(text), format, calls, call);

    syscall(SYS_write, STDERR_FILENO, text, length);
}

/* Whether the process is to die at this call. */
static int is_last(void)
{
    return ++calls == number("DIE_AT");
}

/* The filter forbids it: then it is SIGSYS that ends the process, as suddenly. */
static void die(const char *call)
{
    say("died at %lu: %s\n", call);
    syscall(SYS_kill, getpid(), SIGKILL);
    _exit(1);
}

static size_t half_of(size_t size)
{
    return number("DIE_HALF") ? size / 2 : 0;
}

/* STEP(type, call, its parameters, its arguments): dies before it. */
#define STEP(type, call, parameters, arguments)                                                    \
    type call parameters                                                                           \
    {                                                                                              \
        type(*real) parameters = (type(*) parameters)dlsym(RTLD_NEXT, #call);                      \
                                                                                                   \
        if (is_last())                                                                             \
            die(#call);                                                                            \
        return real arguments;                                                                     \
    }

STEP(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
STEP(int, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags),
     (fd, address, length, flags))
STEP(int, fsync, (int fd), (fd))
STEP(int, fchmod, (int fd, mode_t mode), (fd, mode))
STEP(int, rename, (const char *from, const char *to), (from, to))

int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    va_list more;
    mode_t mode = 0;

    if (flags & O_CREAT) {
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    if (is_last())
        die("open");
    return real(path, flags, mode);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    if (fd != STDERR_FILENO && is_last()) {
        syscall(SYS_write, fd, bytes, half_of(size));
        die("write");
    }
    return syscall(SYS_write, fd, bytes, size);
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    if (is_last()) {
        syscall(SYS_sendto, fd, bytes, half_of(size), flags, NULL, 0);
        die("send");
    }
    return syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}

__attribute__((destructor)) static void end(void)
{
    say("lived through %lu%s\n", "");
}
