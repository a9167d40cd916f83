/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs every block of blocks.S in its rings. -append "counting": while a counter of instructions
 * runs; "rdpmc": RDPMC, too.
 */
#include "cpu.h"
#include "memory.h"
#include "multiboot.h"
#include "pmu.h"
#include "report.h"
#include "x86.h"

#define SCRATCH_PAGES 16

/* As in blocks.S. */
enum when {
    RING0 = 1,
    RING3 = 2,
    IF_ASKED = 4,
};

struct block {
    uint64_t (*fn)(uint64_t scratch);
    uint64_t when; /* enum when */
};

extern const struct block block_table[]; /* the last has no fn */

static void count_instructions(void)
{
    pmu_detect();
    pmu_clear();
    pmu_program(pmu_counter(0), EVENT_INSTRUCTIONS, EVTSEL_USR | EVTSEL_OS, 0);
    wrmsr(MSR_GLOBAL_CTRL, 1);
}

void guest_main(void)
{
    uint64_t scratch = (uintptr_t)pages_alloc(SCRATCH_PAGES);
    unsigned blocks = 0;

    write_cr4(read_cr4() | CR4_PCE);
    if (boot_option("counting"))
        count_instructions();
    for (const struct block *b = block_table; b->fn; b++, blocks++) {
        if (b->when & IF_ASKED && !boot_option("rdpmc"))
            continue;
        if (b->when & RING0)
            b->fn(scratch);
        if (b->when & RING3)
            run_user(b->fn, scratch);
    }
    if (boot_option("counting")) {
        wrmsr(MSR_GLOBAL_CTRL, 0);
        report(pmu_read(pmu_counter(0)) > 0, "the counter has counted");
    }
    report(true, "%u blocks ran", blocks);
}
