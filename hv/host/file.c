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

char *host_load_file(const char *path, size_t most, size_t *size)
{
    const int file = open_file(path);
    char *text = NULL;
    size_t room = 4096;
    long length = -1;

    if (file < 0)
        return NULL;
    do {
        char *more = room > most + 2 ? NULL : realloc(text, room);

        if (!more) {
            errno = room > most + 2 ? EFBIG : ENOMEM;
            length = -1;
            break;
        }
        text = more;
        length = lseek(file, 0, SEEK_SET) < 0 ? -1 : read_all(file, text, room);
        room *= 2;
    } while (length == (long)(room / 2) - 1);
    close_file(file);
    if (length < 0) {
        free(text);
        return NULL;
    }
    *size = (size_t)length;
    return text;
}
