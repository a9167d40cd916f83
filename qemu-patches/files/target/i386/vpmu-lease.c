/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lease of the host's counters.
 *
 * Theory of operation. The lease is acquired at the start, waiting for the
 * answer. After that nothing waits: what vpmud has to say comes through the
 * main loop. When the connection is lost, vpmud has gone or is starting anew;
 * the guest runs on, and the lease is asked for again until it is renewed.
 * Revoked counters are taken from the guest in the kernel, by a filter that
 * lets no event count, and come back with the lease.
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "qemu/uuid.h"
#include "system/kvm.h"
#include "system/system.h"
#include "kvm/vpmu.h"
#include "vpmu/client.h"
#include "vpmu-lease.h"
#include "vpmu-validity.h"

#define RETRY_MS 1000
#define REFUSED_MS 10000 /* to the next try after a refusal */
#define ALL_STATES ((1u << VPMU_LEASE_STATES) - 1)

QEMU_BUILD_BUG_ON((int)VPMU_SHORTAGE_POLICY_REFUSE != (int)VPMU_POLICY_REFUSE);
QEMU_BUILD_BUG_ON((int)VPMU_SHORTAGE_POLICY_HIDE != (int)VPMU_POLICY_HIDE);
QEMU_BUILD_BUG_ON(VPMU_LEASE_STATES != (int)VPMU_LEASE_STATE__MAX);
QEMU_BUILD_BUG_ON((int)VPMU_LEASE_REVOKED != (int)VPMU_LEASE_STATE_REVOKED);

static struct {
    struct vpmu_amount shape;   /* what CPUID describes */
    struct vpmu_amount wanted;  /* of it, what the guest is to have */
    struct vpmu_amount granted; /* of it, what it has */
    uint32_t revocations;

    /* With vpmud only. */
    struct vpmu_client *client;
    int fd; /* that is watched, or -1 */
    struct vpmu_claim claim;
    enum vpmu_shortage_policy policy;
    enum vpmu_lease_state state;
    QEMUTimer *retry;

    /* A resize that has no answer yet. */
    struct vpmu_amount resize;
    void (*resized)(void *opaque, uint32_t ntstatus);
    void *resized_opaque;
} lease = { .fd = -1 };

static const char *const state_text[VPMU_LEASE_STATES] = {
    [VPMU_LEASE_GRANTED] = "whole again",
    [VPMU_LEASE_SHORT] = "short",
    [VPMU_LEASE_YIELDING] = "about to be revoked",
    [VPMU_LEASE_REVOKED] = "revoked",
};

static struct vpmu_amount to_wire(VpmuAmount amount)
{
    return (struct vpmu_amount) { amount.gp, (1u << amount.fixed) - 1 };
}

/* Of fixed counters, those up to the first that is missing. */
static VpmuAmount from_wire(struct vpmu_amount amount)
{
    return (VpmuAmount) { amount.gp, cto32(amount.fixed) };
}

static bool is_within(struct vpmu_amount amount, struct vpmu_amount bound)
{
    return amount.gp <= bound.gp && !(amount.fixed & ~bound.fixed);
}

static struct vpmu_amount both(struct vpmu_amount a, struct vpmu_amount b)
{
    return (struct vpmu_amount) { MIN(a.gp, b.gp), a.fixed & b.fixed };
}

/* What is granted, in the kernel and for the guest */

static void set_granted(struct vpmu_amount granted)
{
    struct vpmu_amount before = lease.granted;

    lease.granted = both(granted, lease.shape);
    if (!is_within(both(before, lease.wanted), lease.granted)) {
        lease.revocations++;
    }
    x86_vpmu_regranted();
}

static void set_state(enum vpmu_lease_state state, struct vpmu_amount granted,
                      const char *text)
{
    if (state == lease.state) {
        set_granted(granted);
        return;
    }
    warn_report("vpmu: the lease of the host's counters is %s%s%s",
                state_text[state], *text ? ": " : "", text);
    if (kvm_enabled() && (state == VPMU_LEASE_REVOKED ||
                          lease.state == VPMU_LEASE_REVOKED)) {
        kvm_vpmu_set_counting(state != VPMU_LEASE_REVOKED);
    }
    lease.state = state;
    set_granted(granted);
}

/* What vpmud says */

static void on_notice(void *user, const struct vpmu_wire_notice *notice)
{
    if (notice->lease == vpmu_client_lease(lease.client)) {
        set_state(notice->state, notice->granted, notice->text);
    }
}

static void try_again(int64_t in_ms)
{
    timer_mod(lease.retry, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + in_ms);
}

static void unwatch(void)
{
    if (lease.fd >= 0) {
        qemu_set_fd_handler(lease.fd, NULL, NULL, NULL);
        lease.fd = -1;
    }
}

/* Whoever waits for an answer gets none. */
static void end_resize(uint32_t ntstatus)
{
    void (*resized)(void *opaque, uint32_t ntstatus) = lease.resized;

    lease.resized = NULL;
    if (resized) {
        resized(lease.resized_opaque, ntstatus);
    }
}

static void lost(const struct vpmu_client_error *error)
{
    unwatch();
    if (!timer_pending(lease.retry)) {
        warn_report("vpmu: %s; asking again until vpmud answers", error->text);
    }
    try_again(RETRY_MS);
    end_resize(VPMU_STATUS_UNSUCCESSFUL);
}

/* After a request that is only sent: whether the connection is still there. */
static bool is_sent(int result, const struct vpmu_client_error *error)
{
    if (result < 0 && vpmu_client_fd(lease.client) < 0) {
        lost(error);
    }
    return result == 0;
}

static void renew(void)
{
    struct vpmu_client_error error;

    is_sent(vpmu_client_renew(lease.client, &lease.claim, lease.policy, NULL,
                              &error), &error);
}

static void subscribe(void)
{
    struct vpmu_client_error error;

    is_sent(vpmu_client_subscribe(lease.client, ALL_STATES, NULL, &error),
            &error);
}

static void renewed(const struct vpmu_client_answer *answer,
                    const struct vpmu_client_error *error)
{
    if (answer) {
        info_report("vpmu: vpmud has renewed the lease of the host's counters");
        set_state(VPMU_LEASE_GRANTED, answer->grant.granted,
                  answer->grant.text);
        subscribe();
    } else {
        set_state(VPMU_LEASE_REVOKED, (struct vpmu_amount) {}, error->text);
        try_again(REFUSED_MS);
    }
}

static void resized(const struct vpmu_client_answer *answer,
                    const struct vpmu_client_error *error)
{
    if (answer) {
        lease.wanted = lease.resize;
        lease.claim.need = lease.resize;
        lease.claim.least = both(lease.claim.least, lease.resize);
        set_granted(answer->grant.granted);
    }
    end_resize(answer ? VPMU_STATUS_SUCCESS : error->status);
}

static void on_answer(void *user, uint32_t type,
                      const struct vpmu_client_answer *answer,
                      const struct vpmu_client_error *error)
{
    if (type == VPMU_WIRE_HELLO && answer) {
        renew();
    } else if (type == VPMU_WIRE_RENEW) {
        renewed(answer, error);
    } else if (type == VPMU_WIRE_RESIZE) {
        resized(answer, error);
    }
}

/* The connection */

static void on_readable(void *opaque)
{
    struct vpmu_client_error error;

    if (vpmu_client_dispatch(lease.client, &error) < 0) {
        lost(&error);
    }
}

static void watch(void)
{
    lease.fd = vpmu_client_fd(lease.client);
    qemu_set_fd_handler(lease.fd, on_readable, NULL, NULL);
}

static void on_retry(void *opaque)
{
    struct vpmu_client_error error;

    unwatch();
    if (vpmu_client_connect_start(lease.client, &error) < 0) {
        try_again(RETRY_MS);
    } else {
        watch();
    }
}

static struct vpmu_client *connect_to(const char *socket,
                                      struct vpmu_client_error *error)
{
    const char *name = qemu_get_vm_name();
    g_autofree char *pid = g_strdup_printf("qemu %d", getpid());
    struct vpmu_client_options options = {
        .path = socket,
        .kind = VPMU_KIND_VM,
        .name = name ? name : pid,
        .uuid = qemu_uuid_set ? qemu_uuid.data : NULL,
        .notice = on_notice,
        .answered = on_answer,
    };
    struct vpmu_client *client = vpmu_client_new(&options, error);

    if (client && vpmu_client_connect(client, error) < 0) {
        vpmu_client_free(client);
        client = NULL;
    }
    return client;
}

/* What the machine asks for */

static bool acquire(struct vpmu_client_answer *answer, Error **errp)
{
    struct vpmu_client_error error;

    if (vpmu_client_acquire(lease.client, &lease.claim, lease.policy, answer,
                            &error) < 0) {
        error_setg(errp, "vpmu: %s", error.text);
        return false;
    }
    if (answer->grant.text[0]) {
        warn_report("vpmu: %s", answer->grant.text);
    }
    return true;
}

bool vpmu_lease_acquire(const VpmuAsk *ask, VpmuAmount *granted, Error **errp)
{
    struct vpmu_client_answer answer;
    struct vpmu_client_error error;

    *granted = ask->need;
    if (!ask->socket) {
        return true;
    }
    lease.policy = (enum vpmu_shortage_policy)ask->policy;
    lease.claim = (struct vpmu_claim) {
        .binding = VPMU_BOUND_VCPU,
        .flags = ask->yields ? VPMU_CLAIM_YIELDS : 0,
        .need = to_wire(ask->need),
        .least = to_wire(ask->least),
    };
    lease.client = connect_to(ask->socket, &error);
    if (!lease.client) {
        error_setg(errp, "vpmu: %s", error.text);
        return false;
    }
    if (!acquire(&answer, errp)) {
        vpmu_lease_release();
        return false;
    }
    *granted = from_wire(answer.grant.granted);
    lease.retry = timer_new_ms(QEMU_CLOCK_REALTIME, on_retry, NULL);
    watch();
    subscribe();
    return true;
}

void vpmu_lease_release(void)
{
    unwatch();
    timer_free(lease.retry);
    vpmu_client_free(lease.client);
    lease.client = NULL;
    lease.retry = NULL;
}

void vpmu_lease_begin(VpmuAmount shape)
{
    lease.shape = lease.wanted = lease.granted = to_wire(shape);
}

struct vpmu_amount vpmu_lease_wanted(void)
{
    return lease.wanted;
}

struct vpmu_amount vpmu_lease_granted(void)
{
    return lease.granted;
}

uint32_t vpmu_lease_revocations(void)
{
    return lease.revocations;
}

bool vpmu_lease_state(VpmuLeaseState *state)
{
    *state = (VpmuLeaseState)lease.state;
    return lease.client;
}

void vpmu_lease_resize(unsigned gp, uint32_t fixed,
                       void (*done)(void *opaque, uint32_t ntstatus),
                       void *opaque)
{
    struct vpmu_amount amount = { MIN(gp, UINT16_MAX), fixed };
    struct vpmu_client_error error;

    if (fixed > UINT16_MAX || !is_within(amount, lease.shape)) {
        done(opaque, VPMU_STATUS_INVALID_PARAMETER);
    } else if (!lease.client) {
        lease.wanted = amount;
        set_granted(amount);
        done(opaque, VPMU_STATUS_SUCCESS);
    } else if (lease.resized) {
        done(opaque, VPMU_STATUS_DEVICE_BUSY);
    } else if (is_sent(vpmu_client_resize(lease.client,
                                          vpmu_client_lease(lease.client),
                                          amount, NULL, &error), &error)) {
        lease.resize = amount;
        lease.resized = done;
        lease.resized_opaque = opaque;
    } else {
        done(opaque, VPMU_STATUS_UNSUCCESSFUL);
    }
}

bool vpmu_lease_report(struct vpmu_wire_report *report,
                       const struct vpmu_status_counter *counters)
{
    struct vpmu_client_error error;

    if (!lease.client) {
        return true;
    }
    report->lease = vpmu_client_lease(lease.client);
    return report->lease != VPMU_LEASE_NONE &&
        is_sent(vpmu_client_report(lease.client, report, counters, NULL,
                                   &error), &error);
}
