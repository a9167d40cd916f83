/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs one workload, counted or not: -append "work=NAME counting=off|insns|armed [rounds=N]".
 *
 * insns: one counter of instructions in all rings, no interrupt.
 * armed: instructions and branches in all rings, an overflow of each after every PERIOD, whose
 * handler sets the counter back.
 *
 * The lines that come out must not depend on the emulator, and those of one mode not on the run.
 */
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "multiboot.h"
#include "pmu.h"
#include "report.h"
#include "trap.h"
#include "workloads.h"
#include "x86.h"

#define PERIOD 1000000
#define VECTOR_PMI 0x50
#define BOTH_RINGS (EVTSEL_USR | EVTSEL_OS)

static uint64_t pmis[2];

/* The value of "name=text" on the command line, or what stands for its absence. */
static const char *option(const char *name, const char *otherwise)
{
    static char values[2][32];
    static unsigned used;
    const char *at = strstr(boot_command_line(), name);
    char *value = values[used++ % 2];
    size_t n = 0;

    if (!at)
        return otherwise;
    for (at += strlen(name); *at && *at != ' ' && n < sizeof(values[0]) - 1; at++)
        value[n++] = *at;
    value[n] = 0;
    return value;
}

static void on_pmi(struct trap_frame *frame)
{
    uint64_t status = rdmsr(MSR_GLOBAL_STATUS);

    (void)frame;
    for (unsigned i = 0; i < ARRAY_SIZE(pmis); i++)
        if (status >> i & 1) {
            struct pmu_counter c = pmu_counter(i);

            pmu_write(c, pmu_before_overflow(c, PERIOD));
            pmis[i]++;
        }
    wrmsr(MSR_GLOBAL_OVF_CTRL, status);
    apic_write(APIC_LVT_PMI, VECTOR_PMI);
    apic_eoi();
}

static void start_insns(void)
{
    pmu_program(pmu_counter(0), EVENT_INSTRUCTIONS, BOTH_RINGS, 0);
    wrmsr(MSR_GLOBAL_CTRL, 1);
}

static void start_armed(void)
{
    static const enum pmu_event events[] = {EVENT_INSTRUCTIONS, EVENT_BRANCHES};

    trap_set(VECTOR_PMI, on_pmi);
    apic_write(APIC_LVT_PMI, VECTOR_PMI);
    for (unsigned i = 0; i < ARRAY_SIZE(events); i++) {
        struct pmu_counter c = pmu_counter(i);

        pmu_program(c, events[i], BOTH_RINGS | EVTSEL_INT, pmu_before_overflow(c, PERIOD));
    }
    wrmsr(MSR_GLOBAL_CTRL, 3);
}

static void stop_insns(void)
{
    wrmsr(MSR_GLOBAL_CTRL, 0);
    printf("instructions %lu\n", pmu_read(pmu_counter(0)));
}

static void stop_armed(void)
{
    wrmsr(MSR_GLOBAL_CTRL, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(pmis); i++) {
        struct pmu_counter c = pmu_counter(i);

        printf("%s %lu\n", i ? "branches" : "instructions",
               pmis[i] * PERIOD + pmu_read(c) - pmu_before_overflow(c, PERIOD));
    }
}

static void nothing(void)
{
}

static const struct counting {
    const char *name;
    void (*start)(void), (*stop)(void);
} countings[] = {
    {"off", nothing, nothing},
    {"insns", start_insns, stop_insns},
    {"armed", start_armed, stop_armed},
};

static void run(const struct named_workload *w, const struct counting *c)
{
    uint64_t rounds = boot_option_number("rounds", w->rounds), value;

    if (c->start != nothing) {
        pmu_detect();
        if (pmu.version < 2 || pmu.gp < 2)
            panic("no PMU to count with");
        pmu_clear();
    }
    sti();
    c->start();
    value = run_user(w->fn, rounds);
    c->stop();
    printf("value %lx\n", value);
}

void guest_main(void)
{
    const char *work = option("work=", "none"), *counting = option("counting=", "off");

    for (unsigned i = 0; i < WORKLOADS; i++)
        for (unsigned j = 0; j < ARRAY_SIZE(countings); j++)
            if (!strcmp(workloads[i].name, work) && !strcmp(countings[j].name, counting)) {
                run(&workloads[i], &countings[j]);
                report(true, "%s %s", work, counting);
                return;
            }
    report(false, "%s %s: no such workload or counting", work, counting);
}
