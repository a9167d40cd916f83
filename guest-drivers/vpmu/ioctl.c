/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests. A row of the table says what a code takes and gives; one function does all checks
 * that follow from it, so that a handler sees a request of the right length and version, from a
 * client that may make it, and an output that is zero but for its header.
 */

#include "vpmu.h"

#include "os.h"

struct vpmu_nothing {
    char none[1];
};
#define LENGTH(type)                                                                               \
    (__builtin_types_compatible_p(struct type, struct vpmu_nothing)                                \
         ? 0u                                                                                      \
         : (uint32_t)sizeof(struct type))

/* As large and as aligned as any input. */
union request {
    struct vpmu_header header;
#define VPMU_IOCTL(name, function, access, in, out) struct in in_##name;
#include "ioctls.def"
#undef VPMU_IOCTL
};

typedef NTSTATUS handler(struct vpmu *vpmu, const void *client, const union request *request,
                         void *out);

static handler on_INFO, on_EVENT, on_GRANT, on_READ, on_ACQUIRE, on_RELEASE, on_PROGRAM, on_START,
    on_STOP, on_PROFILE, on_VERIFY, on_HOST, on_STATES, on_WAIT, on_RESIZE;

static const struct row {
    uint32_t code;
    uint32_t in_length;
    uint32_t out_length;
    bool owner_only;
    handler *handle;
} rows[] = {
#define VPMU_IOCTL(name, function, access, in, out)                                                \
    {VPMU_IOCTL_##name, LENGTH(in), LENGTH(out), VPMU_ACCESS_##access == VPMU_ACCESS_WRITE,        \
     on_##name},
#include "ioctls.def"
#undef VPMU_IOCTL
};

static void copy(void *to, const void *from, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        ((char *)to)[i] = ((const char *)from)[i];
}

static void clear(void *at, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++)
        ((char *)at)[i] = 0;
}

static NTSTATUS check_lengths(const struct row *row, const void *buffer, uint32_t in_length,
                              uint32_t out_length)
{
    const struct vpmu_header *header = buffer;

    if (in_length != row->in_length)
        return STATUS_INVALID_PARAMETER;
    if (out_length < row->out_length)
        return STATUS_BUFFER_TOO_SMALL;
    if ((in_length || row->out_length) && !buffer)
        return STATUS_INVALID_PARAMETER;
    if (in_length && header->size != in_length)
        return STATUS_INVALID_PARAMETER;
    if (in_length && header->version != VPMU_IOCTL_VERSION)
        return STATUS_REVISION_MISMATCH;
    return STATUS_SUCCESS;
}

/* Whoever comes first owns the counters; ACQUIRE makes it so. There may be none to own before
 * RESIZE. */
static NTSTATUS check_owner(const struct vpmu *vpmu, const void *client, const struct row *row)
{
    if (!row->owner_only || vpmu->owner == client)
        return STATUS_SUCCESS;
    if (vpmu->owner)
        return STATUS_DEVICE_BUSY;
    return row->code == VPMU_IOCTL_ACQUIRE || row->code == VPMU_IOCTL_RESIZE
               ? STATUS_SUCCESS
               : STATUS_INVALID_DEVICE_STATE;
}

static NTSTATUS finish(NTSTATUS status, uint32_t out_length, void *buffer, uint32_t *written)
{
    *written = 0;
    if (!NT_SUCCESS(status) || status == STATUS_PENDING)
        return status;
    if (out_length)
        *(struct vpmu_header *)buffer =
            (struct vpmu_header){.size = out_length, .version = VPMU_IOCTL_VERSION};
    *written = out_length;
    return status;
}

static NTSTATUS perform(struct vpmu *vpmu, const void *client, const struct row *row, void *buffer,
                        uint32_t *written)
{
    union request request;

    copy(&request, buffer, row->in_length); /* input and output share the buffer */
    clear(buffer, row->out_length);
    return finish(row->handle(vpmu, client, &request, buffer), row->out_length, buffer, written);
}

NTSTATUS vpmu_ioctl(struct vpmu *vpmu, const void *client, uint32_t code, void *buffer,
                    uint32_t in_length, uint32_t out_length, uint32_t *written)
{
    *written = 0;
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        NTSTATUS status;

        if (row->code != code)
            continue;
        status = check_lengths(row, buffer, in_length, out_length);
        if (NT_SUCCESS(status))
            status = check_owner(vpmu, client, row);
        if (NT_SUCCESS(status))
            status = perform(vpmu, client, row, buffer, written);
        return status;
    }
    return STATUS_INVALID_DEVICE_REQUEST;
}

NTSTATUS vpmu_answer(struct vpmu *vpmu, uint32_t code, void *buffer, uint32_t *written)
{
    return finish(status_answer(&vpmu->status, code, buffer), sizeof(struct vpmu_host), buffer,
                  written);
}

void vpmu_init(struct vpmu *vpmu, struct vpmu_processor *processor, uint32_t processors)
{
    vpmu->processor = processor;
    vpmu->processors = processors;
    pmu_discover(&vpmu->pmu);
    status_init(&vpmu->status);
}

void vpmu_client_gone(struct vpmu *vpmu, const void *client)
{
    if (vpmu->owner && vpmu->owner == client)
        counters_release(vpmu);
}

static NTSTATUS on_INFO(struct vpmu *vpmu, const void *client, const union request *request,
                        void *out)
{
    const struct pmu *pmu = &vpmu->pmu;

    (void)request;
    *(struct vpmu_info *)out = (struct vpmu_info){
        .driver_version = VPMU_DRIVER_VERSION,
        .os_build = os_build(),
        .vendor = pmu->vendor,
        .pmu_version = pmu->version,
        .gp_counters = pmu->gp_counters,
        .fixed_counters = pmu->fixed_counters,
        .gp_width = pmu->gp_width,
        .fixed_width = pmu->fixed_width,
        .processors = os_processors(),
        .events = VPMU_EVENTS,
        .owner = !vpmu->owner            ? VPMU_OWNER_NONE
                 : vpmu->owner == client ? VPMU_OWNER_YOU
                                         : VPMU_OWNER_ANOTHER,
        .held = vpmu->held,
        .running = vpmu->running,
    };
    return STATUS_SUCCESS;
}

static const struct {
    char name[sizeof(((struct vpmu_event *)0)->name)];
    uint32_t fixed;
} events[VPMU_EVENTS] = {
#define VPMU_EVENT(id, name, intel, bit, fixed, amd) [VPMU_EVENT_##id] = {name, fixed},
#include "events.def"
#undef VPMU_EVENT
};

static NTSTATUS on_EVENT(struct vpmu *vpmu, const void *client, const union request *request,
                         void *out)
{
    uint32_t id = request->in_EVENT.event;
    struct vpmu_event *event = out;
    uint32_t fixed;

    (void)client;
    if (id >= VPMU_EVENTS || request->in_EVENT.reserved)
        return STATUS_INVALID_PARAMETER;
    event->event = id;
    event->available = vpmu->pmu.event[id].available;
    event->config = vpmu->pmu.event[id].config;
    fixed = events[id].fixed;
    event->fixed = fixed < vpmu->pmu.fixed_counters ? VPMU_FIRST_FIXED + fixed : VPMU_NONE;
    copy(event->name, events[id].name, sizeof(event->name));
    return STATUS_SUCCESS;
}

static NTSTATUS on_GRANT(struct vpmu *vpmu, const void *client, const union request *request,
                         void *out)
{
    (void)client;
    (void)request;
    copy(out, &vpmu->grant, sizeof(vpmu->grant));
    return STATUS_SUCCESS;
}

static NTSTATUS on_READ(struct vpmu *vpmu, const void *client, const union request *request,
                        void *out)
{
    (void)client;
    if (request->in_READ.reserved)
        return STATUS_INVALID_PARAMETER;
    return counters_read(vpmu, request->in_READ.processor, out);
}

static NTSTATUS on_ACQUIRE(struct vpmu *vpmu, const void *client, const union request *request,
                           void *out)
{
    NTSTATUS status = counters_acquire(vpmu, client, &request->in_ACQUIRE);

    if (NT_SUCCESS(status))
        copy(out, &vpmu->grant, sizeof(vpmu->grant));
    return status;
}

static NTSTATUS on_RELEASE(struct vpmu *vpmu, const void *client, const union request *request,
                           void *out)
{
    (void)client;
    (void)request;
    (void)out;
    counters_release(vpmu);
    return STATUS_SUCCESS;
}

static NTSTATUS on_PROGRAM(struct vpmu *vpmu, const void *client, const union request *request,
                           void *out)
{
    (void)client;
    (void)out;
    return counters_program(vpmu, &request->in_PROGRAM);
}

static NTSTATUS on_START(struct vpmu *vpmu, const void *client, const union request *request,
                         void *out)
{
    (void)client;
    (void)out;
    return counters_start(vpmu, request->in_START.counters);
}

static NTSTATUS on_STOP(struct vpmu *vpmu, const void *client, const union request *request,
                        void *out)
{
    (void)client;
    (void)out;
    return counters_stop(vpmu, request->in_STOP.counters);
}

static NTSTATUS on_PROFILE(struct vpmu *vpmu, const void *client, const union request *request,
                           void *out)
{
    (void)client;
    return profiling_set(vpmu, &request->in_PROFILE, out);
}

static NTSTATUS on_VERIFY(struct vpmu *vpmu, const void *client, const union request *request,
                          void *out)
{
    (void)client;
    return verify(vpmu, &request->in_VERIFY, out);
}

static NTSTATUS on_HOST(struct vpmu *vpmu, const void *client, const union request *request,
                        void *out)
{
    (void)client;
    (void)request;
    return status_host(&vpmu->status, out);
}

static NTSTATUS on_STATES(struct vpmu *vpmu, const void *client, const union request *request,
                          void *out)
{
    (void)client;
    if (request->in_STATES.reserved)
        return STATUS_INVALID_PARAMETER;
    return states_read(vpmu, request->in_STATES.processor, out);
}

static NTSTATUS on_WAIT(struct vpmu *vpmu, const void *client, const union request *request,
                        void *out)
{
    (void)client;
    if (request->in_WAIT.reserved)
        return STATUS_INVALID_PARAMETER;
    return status_wait(&vpmu->status, request->in_WAIT.changes, out);
}

static NTSTATUS on_RESIZE(struct vpmu *vpmu, const void *client, const union request *request,
                          void *out)
{
    (void)client;
    return status_resize(&vpmu->status, request->in_RESIZE.gp, request->in_RESIZE.fixed, out);
}
