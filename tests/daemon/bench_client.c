// SPDX-License-Identifier: BSD-3-Clause
/*
 * Round trips on vpmud's socket: prints the nanoseconds of an empty one (PING), and of an
 * acquisition of 4 counters of 64 processors with its release. They take turns, in batches; of all
 * batches the fastest counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/bench/clock.h"
#include "vpmu/wire.h"

#define BATCHES 40
#define BATCH 200

static int connection;

static void must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench-client: %s\n", what);
    exit(1);
}

static void receive(void *to, size_t size)
{
    /* Nothing to come is not waited for: recv() would. */
    must(!size || recv(connection, to, size, MSG_WAITALL) == (ssize_t)size, "recv");
}

/* One request, its body of size bytes; the answer's body stays in message. */
static void ask(struct vpmu_wire_message *message, uint32_t type, const void *body, uint32_t size)
{
    static uint32_t serial;

    message->header = (struct vpmu_wire_header){
        .type = type, .flags = VPMU_WIRE_VERSION, .size = size, .serial = ++serial};
    memcpy(message->body, body, size);
    must(send(connection, message, vpmu_wire_size(message), 0) == (ssize_t)vpmu_wire_size(message),
         "send");
    receive(&message->header, sizeof(message->header));
    receive(message->body, message->header.size);
    if (message->header.flags & VPMU_WIRE_FLAG_ERROR)
        must(0, message->error.text);
}

static void ping(void)
{
    struct vpmu_wire_message message;

    ask(&message, VPMU_WIRE_PING, "", 0);
}

static void acquire_and_release(void)
{
    struct {
        struct vpmu_wire_acquire acquire;
        uint64_t set;
    } request = {
        .acquire.claim = {.binding = VPMU_BOUND_VCPU, .need.gp = 4, .least.gp = 4, .words = 1},
        .set = UINT64_MAX};
    struct vpmu_wire_message message;
    struct vpmu_wire_lease release;

    ask(&message, VPMU_WIRE_ACQUIRE, &request, sizeof(request));
    release.lease = message.grant.lease;
    ask(&message, VPMU_WIRE_RELEASE, &release, sizeof(release));
}

static double batch_ns(void (*operation)(void))
{
    double begin = now_ns();

    for (int i = 0; i < BATCH; i++)
        operation();
    return (now_ns() - begin) / BATCH;
}

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct vpmu_wire_hello hello = {
        .version_min = 1, .version_max = 1, .kind = VPMU_KIND_VM, .name = "bench"};
    struct vpmu_wire_message message;
    double empty = 1e12, pair = 1e12;

    must(argc == 2, "usage: bench-client SOCKET");
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
    connection = socket(AF_UNIX, SOCK_STREAM, 0);
    must(!connect(connection, (struct sockaddr *)&address, sizeof(address)), "connect");
    ask(&message, VPMU_WIRE_HELLO, &hello, sizeof(hello));
    for (int i = 0; i < BATCHES; i++) {
        double one = batch_ns(ping), other = batch_ns(acquire_and_release);

        empty = one < empty ? one : empty;
        pair = other < pair ? other : pair;
    }
    printf("%.0f %.0f\n", empty, pair);
    return 0;
}
