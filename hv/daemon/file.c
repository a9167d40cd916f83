// SPDX-License-Identifier: BSD-3-Clause
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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

static char *read_open(int fd, size_t most, size_t *size)
{
    size_t room = 1 << 16, length = 0;
    char *text = malloc(room + 1);
    ssize_t got = 1;

    while (text && got > 0) {
        if (length == room) {
            char *larger = realloc(text, room * 2 + 1);

            if (!larger)
                break;
            text = larger;
            room *= 2;
        }
        got = read(fd, text + length, room - length);
        length += got > 0 ? (size_t)got : 0;
        if (length > most) {
            errno = EFBIG;
            got = -1;
        }
    }
    if (!text || got) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    *size = length;
    return text;
}

char *file_read(const char *path, size_t most, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text;
    int saved;

    if (fd < 0)
        return NULL;
    text = read_open(fd, most, size);
    saved = errno;
    close(fd);
    errno = saved;
    return text;
}
