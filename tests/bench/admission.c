/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an operation of admission costs while 100, 1,000 and 10,000 VMs of 64 vCPUs live on a host
 * of 512 processors. The hosts stand side by side and take turns, so that a ratio compares what ran
 * in the same seconds; of all rounds the fastest counts.
 *
 * A VM may run on 64 processors, one for each vCPU, or, each tenth, on any of the host. A refusal
 * also looks for the lease to name among all: that row is meant to grow, the others are not.
 */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include "vpmu/admission.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"

#define PROCESSORS 512u
#define WORDS (PROCESSORS / 64)
#define SPARE 64u /* leases beside the VMs */
#define ROUNDS 15

static const uint32_t populations[] = {100, 1000, 10000};
#define POPULATIONS (sizeof(populations) / sizeof(populations[0]))

struct host {
    struct vpmu_admission *admission;
    vpmu_lease *leases;
    uint32_t live;
    uint64_t random;
};

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "admission bench: %s\n", what);
    exit(1);
}

/* xorshift64 (Marsaglia 2003): cheap beside what is measured. */
static uint32_t random_below(struct host *host, uint32_t limit)
{
    host->random ^= host->random << 13;
    host->random ^= host->random >> 7;
    host->random ^= host->random << 17;
    return (uint32_t)(host->random >> 32) % limit;
}

/* ---- The population ---- */

static vpmu_lease admit(struct host *host, const struct vpmu_claim *claim)
{
    vpmu_lease lease;

    must(vpmu_admission_acquire(host->admission, claim, &lease, NULL, NULL) == VPMU_STATUS_SUCCESS,
         "a lease was refused");
    return lease;
}

static vpmu_lease admit_vm(struct host *host, uint32_t i)
{
    uint64_t set[WORDS] = {0};
    struct vpmu_claim claim = {
        .binding = VPMU_BOUND_VCPU,
        .flags = i % 2 ? VPMU_CLAIM_YIELDS : 0,
        .need = {(uint16_t)(1 + i % 4), 3},
        .least = {1, 0},
        .processors = set,
        .words = WORDS,
        .holder = i,
        .name = "vm",
    };

    set[i % WORDS] = UINT64_MAX;
    if (i % 10 == 0) {
        claim.processors = NULL;
        claim.words = 0;
    }
    return admit(host, &claim);
}

static void populate(struct host *host, uint32_t live)
{
    static struct vpmu_host_processor processors[PROCESSORS];
    struct vpmu_admission_config config = {processors, PROCESSORS, live + SPARE, false};

    for (uint32_t p = 0; p < PROCESSORS; p++)
        processors[p] = (struct vpmu_host_processor){{8, 7}, true};
    size_t size = vpmu_admission_size(&config);
    host->admission = vpmu_admission_init(malloc(size), size, &config);
    host->leases = malloc(live * sizeof(vpmu_lease));
    must(host->admission && host->leases, "not enough memory");
    host->live = live;
    host->random = 88172645463325252;
    for (uint32_t i = 0; i < live; i++)
        host->leases[i] = admit_vm(host, i);
    printf("%6u VMs: %.1f MiB\n", live, (double)size / (1 << 20));
}

/* ---- Operations ---- */

/* The VM of a random place ends and begins anew: what a busy host does. */
static void replace_vm(struct host *host)
{
    uint32_t i = random_below(host, host->live);

    must(vpmu_admission_release(host->admission, host->leases[i], NULL) == VPMU_STATUS_SUCCESS,
         "a lease was lost");
    host->leases[i] = admit_vm(host, i);
}

static void profile(struct host *host, const uint64_t *set, uint32_t words)
{
    const struct vpmu_claim claim = {
        .need = {4, 4}, .least = {4, 4}, .processors = set, .words = words, .name = "perf"};
    vpmu_lease lease = admit(host, &claim);

    must(vpmu_admission_release(host->admission, lease, NULL) == VPMU_STATUS_SUCCESS, "release");
}

static void profile_one(struct host *host)
{
    uint64_t set[WORDS] = {0};
    uint32_t p = random_below(host, PROCESSORS);

    set[p / 64] = UINT64_C(1) << p % 64;
    profile(host, set, WORDS);
}

static void profile_all(struct host *host)
{
    profile(host, NULL, 0);
}

static void resize(struct host *host)
{
    vpmu_lease lease = host->leases[random_below(host, host->live)];
    struct vpmu_amount need = {(uint16_t)(1 + random_below(host, 4)), 3};

    must(vpmu_admission_resize(host->admission, lease, need, NULL) == VPMU_STATUS_SUCCESS,
         "resize");
}

static void refuse_with(struct host *host, struct vpmu_answer *answer)
{
    const struct vpmu_claim claim = {.need = {8, 7}, .least = {8, 7}, .name = "perf"};
    vpmu_lease lease;

    must(vpmu_admission_acquire(host->admission, &claim, &lease, NULL, answer) !=
             VPMU_STATUS_SUCCESS,
         "what does not fit was granted");
}

static void refuse(struct host *host)
{
    refuse_with(host, NULL);
}

static void refuse_by_name(struct host *host)
{
    struct vpmu_answer answer;

    refuse_with(host, &answer);
}

static const struct operation {
    const char *name;
    void (*run)(struct host *host);
    uint32_t times; /* in a round */
    bool flat;      /* it must not depend on how many VMs there are */
} operations[] = {
    {"release any VM, acquire anew", replace_vm, 5000, true},
    {"profiler on 1 processor, acquire and release", profile_one, 50000, true},
    {"profiler on 512 processors, acquire and release", profile_all, 500, true},
    {"resize any VM", resize, 5000, true},
    {"refusal", refuse, 50000, true},
    {"refusal that names who is in the way", refuse_by_name, 100, false},
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* ---- Measurement ---- */

static double nanoseconds(struct host *host, const struct operation *operation)
{
    double start = now_ns();

    for (uint32_t i = 0; i < operation->times; i++)
        operation->run(host);
    return (now_ns() - start) / operation->times;
}

static void print_row(const struct operation *operation, const double cost[POPULATIONS])
{
    double ratio = cost[POPULATIONS - 1] / cost[0];

    printf("| %s | %.0f | %.0f | %.0f | %.2f | %s |\n", operation->name, cost[0], cost[1], cost[2],
           ratio,
           !operation->flat ? "-"
           : ratio <= 2     ? "yes"
                            : "NO");
}

int main(void)
{
    static struct host hosts[POPULATIONS];
    static double fastest[OPERATIONS][POPULATIONS];

    for (size_t h = 0; h < POPULATIONS; h++)
        populate(&hosts[h], populations[h]);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t o = 0; o < OPERATIONS; o++)
            for (size_t h = 0; h < POPULATIONS; h++) {
                double cost = nanoseconds(&hosts[h], &operations[o]);
                if (round == 0 || cost < fastest[o][h])
                    fastest[o][h] = cost;
            }

    printf("\n| admission, ns per operation | 100 VMs | 1,000 | 10,000 | ratio | flat |\n");
    printf("|---|---:|---:|---:|---:|---|\n");
    for (size_t o = 0; o < OPERATIONS; o++)
        print_row(&operations[o], fastest[o]);
    for (size_t h = 0; h < POPULATIONS; h++) {
        free(hosts[h].leases);
        free(hosts[h].admission);
    }
    return 0;
}
