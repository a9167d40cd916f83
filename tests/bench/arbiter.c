/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an operation of the arbiter costs while 10, 1,000 and 1,000,000 leases live on a machine of
 * 4,096 processors with 48 counters each. The three machines stand side by side and take turns, so
 * that a ratio compares what ran in the same seconds; of all rounds the fastest counts.
 *
 * One machine has 196,608 counters, so not each of a million leases can have one: as long as there
 * are counters (four of each processor stay free for the operations measured), a lease has a
 * counter and an overflow handler; beyond that it has a tag on one processor. Sixteen leases share
 * a holder.
 *
 * An operation touches a bounded number of places, but those of a million leases do not fit a
 * cache: each may cost a read from memory. How long such a read takes is measured in the same run,
 * and a row is called flat if its cost at most doubles, or if what it gains is worth 16 such reads
 * or less.
 */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include "vpmu/arbiter.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"

#define PROCESSORS 4096u
#define COUNTERS 48u
#define SPARE 4u
#define PER_HOLDER 16u
#define ROUNDS 15

static const uint32_t populations[] = {10, 1000, 1000000};
#define POPULATIONS (sizeof(populations) / sizeof(populations[0]))

struct machine {
    struct vpmu_arbiter *arbiter;
    vpmu_lease *leases;
    uint32_t live;
    uint64_t random;
    size_t size;
};

static void must(vpmu_status status, const char *what)
{
    if (status == VPMU_STATUS_SUCCESS)
        return;
    fprintf(stderr, "arbiter bench: %s: %s\n", what, vpmu_status_name(status));
    exit(1);
}

static void must_not(vpmu_status status, const char *what)
{
    if (status != VPMU_STATUS_SUCCESS)
        return;
    fprintf(stderr, "arbiter bench: %s was granted\n", what);
    exit(1);
}

static void *must_have(void *memory)
{
    if (memory)
        return memory;
    fprintf(stderr, "arbiter bench: not enough memory\n");
    exit(1);
}

/* xorshift64 (Marsaglia 2003): cheap beside what is measured. */
static uint32_t random_below(struct machine *machine, uint32_t limit)
{
    machine->random ^= machine->random << 13;
    machine->random ^= machine->random >> 7;
    machine->random ^= machine->random << 17;
    return (uint32_t)(machine->random >> 32) % limit;
}

static struct vpmu_affinity one_processor(uint32_t p)
{
    return (struct vpmu_affinity){.group = (uint16_t)(p / 64), .mask = UINT64_C(1) << p % 64};
}

static const struct vpmu_holder prober = {.id = UINT64_MAX, .name = "prober"};

/* ---- The population ---- */

static void populate_one(struct machine *machine, uint32_t i)
{
    bool counter = i < PROCESSORS * (COUNTERS - SPARE);
    struct vpmu_affinity affinity = one_processor(i % PROCESSORS);
    struct vpmu_resource resources[] = {
        {.type = VPMU_RESOURCE_SINGLE, .u.counter = SPARE + i / PROCESSORS},
        {.type = VPMU_RESOURCE_OVERFLOW, .u.overflow_handler = 1},
        {.type = VPMU_RESOURCE_TAG, .u.tag = i},
    };
    struct vpmu_request request = {&affinity, 1, counter ? 2 : 1,
                                   counter ? resources : resources + 2};
    struct vpmu_holder holder = {.id = 1 + i / PER_HOLDER, .name = "holder"};

    must(vpmu_arbiter_allocate(machine->arbiter, &holder, &request, &machine->leases[i], NULL),
         "population");
}

static void populate(struct machine *machine, uint32_t live)
{
    static struct vpmu_processor processors[PROCESSORS];
    struct vpmu_arbiter_config config = {.processors = processors,
                                         .processor_count = PROCESSORS,
                                         .leases = live + 1,
                                         .spans = live + 64};

    for (uint32_t p = 0; p < PROCESSORS; p++)
        processors[p] = (struct vpmu_processor){VPMU_COUNTERS, 5, true, true};
    size_t size = vpmu_arbiter_size(&config);
    machine->arbiter = must_have(vpmu_arbiter_init(malloc(size), size, &config));
    machine->leases = must_have(malloc(live * sizeof(vpmu_lease)));
    machine->live = live;
    machine->size = size;
    machine->random = 88172645463325252;
    for (uint32_t i = 0; i < live; i++)
        populate_one(machine, i);
    printf("%7u leases: %.1f MiB\n", live, (double)size / (1 << 20));
}

/* ---- Operations ---- */

static const struct vpmu_resource spare_counter = {.type = VPMU_RESOURCE_SINGLE, .u.counter = 0};

static void grant_and_free(struct machine *machine, const struct vpmu_request *request)
{
    vpmu_lease lease;

    must(vpmu_arbiter_allocate(machine->arbiter, &prober, request, &lease, NULL), "allocate");
    must(vpmu_arbiter_free(machine->arbiter, lease, NULL), "free");
}

static void on_one(struct machine *machine)
{
    struct vpmu_affinity affinity = one_processor(random_below(machine, PROCESSORS));

    grant_and_free(machine, &(struct vpmu_request){&affinity, 1, 1, &spare_counter});
}

static void on_a_group(struct machine *machine)
{
    struct vpmu_affinity affinity = {.group = (uint16_t)random_below(machine, PROCESSORS / 64),
                                     .mask = UINT64_MAX};

    grant_and_free(machine, &(struct vpmu_request){&affinity, 1, 1, &spare_counter});
}

static void on_all(struct machine *machine)
{
    grant_and_free(machine, &(struct vpmu_request){NULL, 0, 1, &spare_counter});
}

/* The lease of a random place is freed and made anew: what a busy machine does. */
static void replace(struct machine *machine)
{
    uint32_t i = random_below(machine, machine->live);

    must(vpmu_arbiter_free(machine->arbiter, machine->leases[i], NULL), "replace");
    populate_one(machine, i);
}

/* One on which a lease has the first counter that is not spare. */
static uint32_t busy_processor(struct machine *machine)
{
    return random_below(machine, machine->live < PROCESSORS ? machine->live : PROCESSORS);
}

static void refuse_one(struct machine *machine)
{
    struct vpmu_affinity affinity = one_processor(busy_processor(machine));
    struct vpmu_resource taken = {.type = VPMU_RESOURCE_SINGLE, .u.counter = SPARE};
    struct vpmu_request request = {&affinity, 1, 1, &taken};
    struct vpmu_explanation why;
    vpmu_lease lease;

    must_not(vpmu_arbiter_allocate(machine->arbiter, &prober, &request, &lease, &why),
             "a conflict");
}

static void refuse_whole(struct machine *machine)
{
    struct vpmu_request request = {0};
    struct vpmu_explanation why;
    vpmu_lease lease;

    must_not(vpmu_arbiter_allocate(machine->arbiter, &prober, &request, &lease, &why), "whole PMU");
}

static void deliver(struct machine *machine)
{
    uint64_t bits = UINT64_C(1) << SPARE;
    struct vpmu_delivery delivery;

    if (!vpmu_arbiter_overflow(machine->arbiter, busy_processor(machine), &bits, &delivery))
        must_not(VPMU_STATUS_SUCCESS, "no delivery");
}

static const struct operation {
    const char *name;
    void (*run)(struct machine *machine);
    uint32_t times; /* in a round */
} operations[] = {
    {"allocate and free, 1 processor", on_one, 100000},
    {"allocate and free, 64 processors", on_a_group, 5000},
    {"allocate and free, 4,096 processors", on_all, 100},
    {"free any, allocate anew", replace, 100000},
    {"refusal, counter held", refuse_one, 100000},
    {"refusal, whole PMU", refuse_whole, 100000},
    {"delivery of an overflow", deliver, 100000},
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* ---- Measurement ---- */

static double nanoseconds(struct machine *machine, const struct operation *operation)
{
    double start = now_ns();

    for (uint32_t i = 0; i < operation->times; i++)
        operation->run(machine);
    return (now_ns() - start) / operation->times;
}

/* One cycle through all cache lines of a piece of memory (Sattolo's shuffle). */
struct cycle {
    uint32_t (*line)[16];
    uint32_t lines, at;
};

static void make_cycle(struct cycle *cycle, struct machine *machine)
{
    cycle->lines = (uint32_t)(machine->size / 64);
    cycle->line = must_have(malloc((size_t)cycle->lines * 64));
    for (uint32_t i = 0; i < cycle->lines; i++)
        cycle->line[i][0] = i;
    for (uint32_t i = cycle->lines - 1; i > 0; i--) {
        uint32_t j = random_below(machine, i), kept = cycle->line[i][0];
        cycle->line[i][0] = cycle->line[j][0];
        cycle->line[j][0] = kept;
    }
}

/* The time of one read at random. */
static double read_nanoseconds(struct cycle *cycle)
{
    const uint32_t reads = 100000;
    double start = now_ns();

    for (uint32_t i = 0; i < reads; i++)
        cycle->at = cycle->line[cycle->at][0];
    double cost = (now_ns() - start) / reads;
    return cycle->at < cycle->lines ? cost : 0; /* a walk whose end nobody reads is left out */
}

static void keep_fastest(double *fastest, double cost)
{
    if (*fastest == 0 || cost < *fastest)
        *fastest = cost;
}

static void print_row(const struct operation *operation, const double cost[POPULATIONS],
                      double read)
{
    double ratio = cost[POPULATIONS - 1] / cost[0];
    double reads = (cost[POPULATIONS - 1] - cost[0]) / read;

    printf("| %s | %.0f | %.0f | %.0f | %.2f | %.1f | %s |\n", operation->name, cost[0], cost[1],
           cost[2], ratio, reads > 0 ? reads : 0, ratio <= 2 || reads <= 16 ? "yes" : "NO");
}

int main(void)
{
    static struct machine machines[POPULATIONS];
    static double fastest[OPERATIONS][POPULATIONS];
    struct cycle cycle = {0};
    double read = 0;

    for (size_t m = 0; m < POPULATIONS; m++)
        populate(&machines[m], populations[m]);
    make_cycle(&cycle, &machines[POPULATIONS - 1]);
    for (int round = 0; round < ROUNDS; round++) {
        keep_fastest(&read, read_nanoseconds(&cycle));
        for (size_t o = 0; o < OPERATIONS; o++)
            for (size_t m = 0; m < POPULATIONS; m++)
                keep_fastest(&fastest[o][m], nanoseconds(&machines[m], &operations[o]));
    }

    printf("one read at random in as much memory as the last: %.0f ns\n\n", read);
    printf("| arbiter, ns per operation | 10 leases | 1,000 | 1,000,000 | ratio | gain in reads | "
           "flat |\n");
    printf("|---|---:|---:|---:|---:|---:|---|\n");
    for (size_t o = 0; o < OPERATIONS; o++)
        print_row(&operations[o], fastest[o], read);
    for (size_t m = 0; m < POPULATIONS; m++) {
        free(machines[m].leases);
        free(machines[m].arbiter);
    }
    free(cycle.line);
    return 0;
}
