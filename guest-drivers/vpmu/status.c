/* SPDX-License-Identifier: BSD-3-Clause */

#include "status.h"

#include "os.h"

enum {
    TRIES = 100, /* to find a page or the registers at rest, before a rest of our own */
    RESTS = 50,
    MOST_GP = 32,
    INDICES = 64,
};

void status_init(struct status *status)
{
    *status = (struct status){.failure = STATUS_NO_SUCH_DEVICE};
}

static NTSTATUS check_identity(const volatile struct vpmu_status_registers *registers)
{
    if (registers->magic != VPMU_STATUS_MAGIC)
        return STATUS_DEVICE_PROTOCOL_ERROR;
    return registers->version == VPMU_STATUS_VERSION ? STATUS_SUCCESS : STATUS_REVISION_MISMATCH;
}

NTSTATUS status_attach(struct status *status, volatile void *registers, uint64_t registers_length,
                       const volatile void *pages, uint64_t pages_length)
{
    volatile struct vpmu_status_registers *at = registers;
    uint32_t vcpus;
    NTSTATUS failure;

    if (registers_length < sizeof(*at))
        return status->failure = STATUS_DEVICE_CONFIGURATION_ERROR;
    failure = check_identity(at);
    if (!NT_SUCCESS(failure))
        return status->failure = failure;
    vcpus = at->vcpus;
    if (!vcpus || vcpus > pages_length / VPMU_STATUS_PAGE_SIZE)
        return status->failure = STATUS_DEVICE_CONFIGURATION_ERROR;
    *status = (struct status){.registers = at, .pages = pages, .vcpus = vcpus};
    return STATUS_SUCCESS;
}

void status_interrupt(struct status *status, bool enable)
{
    status->registers->interrupt = enable;
    status->interrupt = enable;
}

void status_detach(struct status *status, NTSTATUS why)
{
    *status = (struct status){.failure = why};
}

/* A device that has been pulled out reads as all ones or as all zeroes. */
static NTSTATUS check_presence(const struct status *status)
{
    if (!status->registers)
        return status->failure;
    return NT_SUCCESS(check_identity(status->registers)) ? STATUS_SUCCESS
                                                         : STATUS_DEVICE_NOT_CONNECTED;
}

/* --- The VM ------------------------------------------------------------------------------------
 */

static bool is_plausible(const struct vpmu_host *host)
{
    return host->source <= VPMU_SOURCE_KVM && host->event_class < VPMU_EVENT_CLASSES &&
           host->policy < VPMU_POLICIES && host->shape_gp <= MOST_GP &&
           host->granted_gp <= host->shape_gp && !(host->granted_fixed & ~host->shape_fixed);
}

static void read_registers(const struct status *status, struct vpmu_host *out)
{
    const volatile struct vpmu_status_registers *from = status->registers;

    out->flags = VPMU_HOST_DEVICE | (status->interrupt ? VPMU_HOST_INTERRUPT : 0u);
    out->device_status = STATUS_SUCCESS;
    out->vcpus = status->vcpus;
    out->changes = from->changes;
    out->source = from->source;
    out->event_class = from->event_class;
    out->policy = from->policy;
    out->shape_gp = from->shape_gp;
    out->shape_fixed = from->shape_fixed;
    out->granted_gp = from->granted_gp;
    out->granted_fixed = from->granted_fixed;
    out->revocations = from->revocations;
    out->request_status = (NTSTATUS)from->request_status;
}

/* One state of the VM: `changes` is the same before and after. */
static NTSTATUS read_host(const struct status *status, struct vpmu_host *out)
{
    for (int i = 0; i < TRIES; i++) {
        NTSTATUS failure;

        read_registers(status, out);
        if (status->registers->changes != out->changes)
            continue;
        failure = check_presence(status);
        if (!NT_SUCCESS(failure))
            return failure;
        return is_plausible(out) ? STATUS_SUCCESS : STATUS_DEVICE_DATA_ERROR;
    }
    return STATUS_IO_TIMEOUT;
}

static struct vpmu_host without_device(NTSTATUS why)
{
    return (struct vpmu_host){
        .device_status = why,
        .vcpus = VPMU_NONE,
        .source = VPMU_NONE,
        .event_class = VPMU_NONE,
        .policy = VPMU_NONE,
        .shape_gp = VPMU_NONE,
        .shape_fixed = VPMU_NONE,
        .granted_gp = VPMU_NONE,
        .granted_fixed = VPMU_NONE,
        .changes = VPMU_NONE,
        .revocations = VPMU_NONE,
        .request_status = why,
    };
}

NTSTATUS status_host(const struct status *status, struct vpmu_host *out)
{
    NTSTATUS failure = check_presence(status);

    if (NT_SUCCESS(failure))
        return read_host(status, out);
    *out = without_device(failure);
    return STATUS_SUCCESS;
}

/* --- A processor -------------------------------------------------------------------------------
 */

static const volatile struct vpmu_status_page *find_page(const struct status *status,
                                                         uint32_t apic_id)
{
    for (uint32_t i = 0; i < status->vcpus; i++) {
        const volatile struct vpmu_status_page *page =
            (const volatile void *)(status->pages + (uint64_t)i * VPMU_STATUS_PAGE_SIZE);

        if (page->apic_id == apic_id && page->vcpu == i)
            return page;
    }
    return NULL;
}

/* Indices go up, so there is none twice. */
static bool read_records(const volatile struct vpmu_status_page *page, struct vpmu_states *out)
{
    uint32_t least = 0;

    out->count = page->count;
    out->updated_ns = page->updated_ns;
    if (out->count > VPMU_STATUS_COUNTERS)
        return false;
    for (uint32_t i = 0; i < out->count; i++) {
        const volatile struct vpmu_status_counter *from = &page->counters[i];
        struct vpmu_state state = {from->index, from->state, from->selector, from->enabled_ns,
                                   from->backed_ns};

        if (state.counter < least || state.counter >= INDICES ||
            state.state >= VPMU_COUNTER_STATES || state.backed_ns > state.enabled_ns)
            return false;
        least = state.counter + 1;
        out->states[i] = state;
    }
    return true;
}

/* x86 keeps the order of loads, and the compiler that of volatile ones. */
static NTSTATUS try_page(const volatile struct vpmu_status_page *page, struct vpmu_states *out)
{
    uint32_t before = page->sequence;
    bool plausible = read_records(page, out);

    if (before & 1 || page->sequence != before)
        return STATUS_IO_TIMEOUT;
    return plausible ? STATUS_SUCCESS : STATUS_DEVICE_DATA_ERROR;
}

/* The writer may be a thread of the host that is off its processor for a while. */
static NTSTATUS read_page(const volatile struct vpmu_status_page *page, struct vpmu_states *out)
{
    for (int i = 0; i < RESTS; i++) {
        for (int j = 0; j < TRIES; j++) {
            NTSTATUS result = try_page(page, out);
            if (result != STATUS_IO_TIMEOUT)
                return result;
        }
        os_rest();
    }
    return STATUS_IO_TIMEOUT;
}

NTSTATUS status_states(const struct status *status, uint32_t apic_id, struct vpmu_states *out)
{
    const volatile struct vpmu_status_page *page;
    NTSTATUS result = check_presence(status);

    if (!NT_SUCCESS(result))
        return result;
    page = find_page(status, apic_id);
    result = page ? read_page(page, out) : STATUS_NOT_FOUND;
    if (!NT_SUCCESS(check_presence(status)))
        return STATUS_DEVICE_NOT_CONNECTED;
    out->flags = VPMU_STATES_DEVICE;
    return result;
}

/* --- Requests that wait ------------------------------------------------------------------------
 */

static NTSTATUS check_waitable(const struct status *status)
{
    NTSTATUS failure = check_presence(status);

    if (!NT_SUCCESS(failure))
        return failure;
    return status->interrupt ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED;
}

static NTSTATUS answer_wait(const struct status *status, struct vpmu_host *out)
{
    if (status->registers->changes == out->changes)
        return STATUS_PENDING;
    return read_host(status, out);
}

/* The host's status, unless that is no end of anything. */
static NTSTATUS answer_resize(struct status *status, struct vpmu_host *out)
{
    NTSTATUS answer = (NTSTATUS)status->registers->request_status;

    if (answer == STATUS_PENDING)
        return STATUS_PENDING;
    __atomic_store_n(&status->resizing, false, __ATOMIC_RELEASE);
    if (NT_SUCCESS(answer) && answer != STATUS_SUCCESS)
        return STATUS_DEVICE_DATA_ERROR;
    return NT_SUCCESS(answer) ? read_host(status, out) : answer;
}

NTSTATUS status_answer(struct status *status, uint32_t code, struct vpmu_host *out)
{
    NTSTATUS failure = check_presence(status);

    if (!NT_SUCCESS(failure)) {
        status_forget(status, code);
        return failure;
    }
    return code == VPMU_IOCTL_RESIZE ? answer_resize(status, out) : answer_wait(status, out);
}

void status_forget(struct status *status, uint32_t code)
{
    if (code == VPMU_IOCTL_RESIZE)
        __atomic_store_n(&status->resizing, false, __ATOMIC_RELEASE);
}

NTSTATUS status_wait(const struct status *status, uint32_t changes, struct vpmu_host *out)
{
    NTSTATUS failure = check_waitable(status);

    if (!NT_SUCCESS(failure))
        return failure;
    out->changes = changes;
    return answer_wait(status, out);
}

/* One at a time: the mailbox keeps one answer. */
NTSTATUS status_resize(struct status *status, uint32_t gp, uint32_t fixed, struct vpmu_host *out)
{
    NTSTATUS failure = check_waitable(status);

    if (!NT_SUCCESS(failure))
        return failure;
    if (__atomic_load_n(&status->resizing, __ATOMIC_ACQUIRE) ||
        (NTSTATUS)status->registers->request_status == STATUS_PENDING)
        return STATUS_DEVICE_BUSY;
    status->resizing = true;
    status->registers->request_gp = gp;
    status->registers->request_fixed = fixed;
    status->registers->request = VPMU_REQUEST_RESIZE;
    return status_answer(status, VPMU_IOCTL_RESIZE, out);
}
