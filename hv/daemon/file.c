// SPDX-License-Identifier: BSD-3-Clause
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "needs.h"

NEEDS("openat read write fsync fchmod rename unlink close newfstatat fstat");

static int write_all(int fd, const char *text, size_t size)
{
    while (size) {
        ssize_t done = write(fd, text, size);

        if (done < 0)
            return -1;
        text += done;
        size -= (size_t)done;
    }
    return 0;
}

static int write_new(const char *path, const char *text, size_t size, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    int status, saved;

    if (fd < 0)
        return -1;
    status = fchmod(fd, mode) || write_all(fd, text, size) || fsync(fd);
    saved = errno;
    /* Some file systems say only here that there is no room. */
    if (close(fd) && !status)
        return -1;
    errno = saved;
    return status ? -1 : 0;
}

/* The name is durable when its folder is. */
static int sync_folder(const char *path)
{
    char copy[PATH_MAX];
    int fd, status;

    snprintf(copy, sizeof(copy), "%s", path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    status = fsync(fd);
    close(fd);
    return status;
}

int file_replace(const char *path, const char *text, size_t size, mode_t mode)
{
    char aside[PATH_MAX];
    int saved;

    if ((size_t)snprintf(aside, sizeof(aside), "%s.new", path) >= sizeof(aside)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (!write_new(aside, text, size, mode) && !rename(aside, path))
        return sync_folder(path);
    saved = errno;
    unlink(aside);
    errno = saved;
    return -1;
}
