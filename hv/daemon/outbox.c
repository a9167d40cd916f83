// SPDX-License-Identifier: BSD-3-Clause
#include "outbox.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#include "needs.h"
#include "vpmu/transport.h"

NEEDS("sendto sendmsg");

/* How many of the bytes are done with; -1: the socket is gone. */
static ssize_t push(int fd, const uint8_t *bytes, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t sent = vpmu_transport_socket.send(fd, bytes + done, size - done);

        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        if (sent <= 0)
            break;
        done += (size_t)sent;
    }
    return (ssize_t)done;
}

int outbox_send(struct outbox *outbox, int fd, const void *bytes, size_t size)
{
    ssize_t done = outbox->size ? 0 : push(fd, bytes, size);

    if (done < 0)
        return -1;
    if ((size_t)done == size)
        return 0;
    outbox->bytes = g_realloc(outbox->bytes, outbox->size + size - (size_t)done);
    memcpy(outbox->bytes + outbox->size, (const uint8_t *)bytes + done, size - (size_t)done);
    outbox->size += size - (size_t)done;
    return 0;
}

int outbox_flush(struct outbox *outbox, int fd)
{
    ssize_t done = push(fd, outbox->bytes, outbox->size);

    if (done < 0)
        return -1;
    outbox->size -= (size_t)done;
    if (outbox->size)
        memmove(outbox->bytes, outbox->bytes + done, outbox->size);
    else
        outbox_free(outbox);
    return 0;
}

void outbox_free(struct outbox *outbox)
{
    g_free(outbox->bytes);
    *outbox = (struct outbox){0};
}
