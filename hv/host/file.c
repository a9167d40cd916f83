// SPDX-License-Identifier: BSD-3-Clause
/* Reading files. */
#include "host_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads until size - 1 bytes, the end or an error; -1 with errno. */
static long read_all(int file, char *text, size_t size)
{
    size_t length = 0;

    while (length < size - 1) {
        const ssize_t count = read(file, text + length, size - 1 - length);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -1;
        if (!count)
            break;
        length += (size_t)count;
    }
    text[length] = '\0';
    return (long)length;
}

/* O_NONBLOCK: a FIFO in the place of a file does not stop us. -1 with errno. */
static int open_file(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static void close_file(int file)
{
    const int saved = errno;

    close(file);
    errno = saved;
}

long host_read_file(const char *root, char *text, size_t size, const char *path, ...)
{
    char full[PATH_MAX];
    const int prefix = snprintf(full, sizeof(full), "%s", root);
    va_list arguments;

    text[0] = '\0';
    if (prefix < 0 || (size_t)prefix >= sizeof(full)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    va_start(arguments, path);
    vsnprintf(full + prefix, sizeof(full) - (size_t)prefix, path, arguments);
    va_end(arguments);

    const int file = open_file(full);

    if (file < 0)
        return -1;
    const long length = read_all(file, text, size);

    close_file(file);
    if (length < 0)
        text[0] = '\0';
    return length;
}

/* One byte more than most is asked for, to see whether there is one. */
static char *load(int file, size_t most, size_t *size)
{
    size_t room = 0, length = 0;
    char *text = NULL;
    long got;

    do {
        room = room ? room * 2 : 4096;
        if (room > most + 2)
            room = most + 2;
        char *more = realloc(text, room);

        got = more ? read_all(file, more + length, room - length) : -1;
        text = more ? more : text;
        length += got > 0 ? (size_t)got : 0;
    } while (got >= 0 && length == room - 1 && length <= most);
    if (length > most)
        errno = EFBIG;
    if (got < 0 || length > most) {
        free(text);
        return NULL;
    }
    *size = length;
    return text;
}

char *vpmu_host_load_file(const char *path, size_t most, size_t *size)
{
    const int file = open_file(path);
    char *text = file < 0 ? NULL : load(file, most, size);

    if (file >= 0)
        close_file(file);
    return text;
}
