// SPDX-License-Identifier: BSD-3-Clause
#include "vpmu/transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Without room for control messages the kernel closes what is passed, and says so: unix(7). */
static ssize_t receive_socket(int fd, void *data, size_t size)
{
    struct iovec part = {.iov_base = data, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);

    if (got >= 0 && message.msg_flags & MSG_CTRUNC) {
        errno = EPROTO;
        return -1;
    }
    return got;
}

static ssize_t send_socket(int fd, const void *data, size_t size)
{
    return send(fd, data, size, MSG_NOSIGNAL);
}

const struct vpmu_transport vpmu_transport_socket = {"socket", receive_socket, send_socket};
const struct vpmu_transport vpmu_transport_pipe = {"pipe", read, write};

int vpmu_transport_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, saved;

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || !connect(fd, (const struct sockaddr *)&address, sizeof(address)))
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}
