// SPDX-License-Identifier: BSD-3-Clause
/*
 * Round trips on vpmud's socket: prints the nanoseconds of an empty one (PING), of an acquisition
 * of 4 counters of 64 processors with its release, and of a refusal that names a VM. They take
 * turns, in batches; of all batches the fastest counts.
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

/* One answer, with one call: a second one for the body would count for the daemon. */
static void receive(struct vpmu_wire_message *message)
{
    const ssize_t size = recv(connection, message, sizeof(*message), 0);

    must(size >= (ssize_t)sizeof(message->header) && size == (ssize_t)vpmu_wire_size(message),
         "recv");
}

/* One request, its body of size bytes; the answer's body stays in message. False: an error. */
static bool ask(struct vpmu_wire_message *message, uint32_t type, const void *body, uint32_t size)
{
    static uint32_t serial;

    message->header = (struct vpmu_wire_header){
        .type = type, .flags = VPMU_WIRE_VERSION, .size = size, .serial = ++serial};
    memcpy(message->body, body, size);
    must(send(connection, message, vpmu_wire_size(message), 0) == (ssize_t)vpmu_wire_size(message),
         "send");
    receive(message);
    return !(message->header.flags & VPMU_WIRE_FLAG_ERROR);
}

static void must_ask(struct vpmu_wire_message *message, uint32_t type, const void *body,
                     uint32_t size)
{
    if (!ask(message, type, body, size))
        must(0, message->error.text);
}

static void ping(void)
{
    struct vpmu_wire_message message;

    must_ask(&message, VPMU_WIRE_PING, "", 0);
}

/* So many counters of 64 processors. */
static bool acquire(struct vpmu_wire_message *message, uint8_t binding, uint16_t gp)
{
    const struct {
        struct vpmu_wire_acquire acquire;
        uint64_t set;
    } request = {.acquire.claim = {.binding = binding, .need.gp = gp, .least.gp = gp, .words = 1},
                 .set = UINT64_MAX};

    return ask(message, VPMU_WIRE_ACQUIRE, &request, sizeof(request));
}

static void acquire_and_release(void)
{
    struct vpmu_wire_message message;
    struct vpmu_wire_lease release;

    must(acquire(&message, VPMU_BOUND_VCPU, 4), "acquire");
    release.lease = message.grant.lease;
    must_ask(&message, VPMU_WIRE_RELEASE, &release, sizeof(release));
}

/* A profiler would starve each VM there, of which the answer names one. */
static void be_refused(void)
{
    struct vpmu_wire_message message;

    must(!acquire(&message, VPMU_BOUND_CPU, 8), "a profiler is granted what VMs have");
}

static double batch_ns(void (*operation)(void))
{
    double begin = now_ns();

    for (int i = 0; i < BATCH; i++)
        operation();
    return (now_ns() - begin) / BATCH;
}

static void be(const char *path, uint32_t kind)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct vpmu_wire_hello hello = {
        .version_min = 1, .version_max = 1, .kind = kind, .name = "bench"};
    struct vpmu_wire_message message;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    connection = socket(AF_UNIX, SOCK_STREAM, 0);
    must(!connect(connection, (struct sockaddr *)&address, sizeof(address)), "connect");
    must_ask(&message, VPMU_WIRE_HELLO, &hello, sizeof(hello));
}

int main(int argc, char **argv)
{
    void (*const operations[])(void) = {ping, acquire_and_release, be_refused};
    enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };
    double least[OPERATIONS] = {1e12, 1e12, 1e12};
    struct vpmu_wire_message message;
    int vm;

    must(argc == 2, "usage: bench-client SOCKET");
    be(argv[1], VPMU_KIND_VM);
    must(acquire(&message, VPMU_BOUND_VCPU, 4), "acquire");
    vm = connection;
    be(argv[1], VPMU_KIND_PROFILER);
    const int connections[OPERATIONS] = {vm, vm, connection};

    for (int i = 0; i < BATCHES; i++) {
        for (size_t o = 0; o < OPERATIONS; o++) {
            connection = connections[o];
            double one = batch_ns(operations[o]);

            least[o] = one < least[o] ? one : least[o];
        }
    }
    printf("%.0f %.0f %.0f\n", least[0], least[1], least[2]);
    return 0;
}
