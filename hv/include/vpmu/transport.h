// SPDX-License-Identifier: BSD-3-Clause
/*
 * How bytes come and go: over a stream socket, or over pipes (for fuzzing). Both of the protocol's
 * sides use it, with descriptors that do not block.
 */
#ifndef VPMU_TRANSPORT_H
#define VPMU_TRANSPORT_H

#include <stddef.h>
#include <sys/types.h>

struct vpmu_transport {
    const char *name;
    /*
     * As read(): bytes, 0 at the end of the stream, or -1 and errno. EAGAIN: nothing is there.
     * EPROTO: the peer has passed descriptors, which are closed; close the connection.
     */
    ssize_t (*receive)(int fd, void *data, size_t size);
    /* As write(), without SIGPIPE: bytes, or -1 and errno. EAGAIN: there is no room. */
    ssize_t (*send)(int fd, const void *data, size_t size);
};

/* A connected SOCK_STREAM socket. */
extern const struct vpmu_transport vpmu_transport_socket;

/* Pipes; the process ignores SIGPIPE. */
extern const struct vpmu_transport vpmu_transport_pipe;

/*
 * A socket, not blocking and close-on-exec, connected to path. -1 and errno: as connect(2);
 * ENAMETOOLONG; EAGAIN: as many connections wait there as may.
 */
int vpmu_transport_connect(const char *path);

#endif
