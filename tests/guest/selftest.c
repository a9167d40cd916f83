/* SPDX-License-Identifier: BSD-3-Clause */
/* The library against itself, on a QEMU of any kind: what every other image stands on. */
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "memory.h"
#include "multiboot.h"
#include "pmu.h"
#include "programs.h"
#include "report.h"
#include "step.h"
#include "trap.h"
#include "x86.h"

#define VECTOR_TICK 0x40
#define TRIAL_PAGE 0x4000000000ul
#define MSR_EFER 0xc0000080

static volatile unsigned ticks, nmis, faults;

static void test_format(void)
{
    char text[64];

    snprintf(text, sizeof(text), "%5d|%-5u|%05x|%#lx|%s|%.2s|%c|%%", -42, 7u, 0x2au, 0x1ful, "abc",
             "xyz", 'q');
    report(!strcmp(text, "  -42|7    |0002a|0x1f|abc|xy|q|%"), "format: %s", text);
    report_equal((uint64_t)snprintf(text, 4, "%llu", 123456ull), 6, "format: length when cut");
    report(!strcmp(text, "123"), "format: text when cut");
    report(!strcmp(strrchr("a/b/c", '/'), "/c") && strstr("haystack", "st") != NULL &&
               strtoul("0x1F", NULL, 0) == 31,
           "strings");
}

static void test_fix_up(void)
{
    uint64_t value = 1, not_canonical = 1ull << 63;
    uint32_t vector;

    asm volatile(EX_TRY("ud2") : "=&D"(vector));
    report_equal(vector, EXC_UD, "fix-up: UD2");
    asm volatile(EX_TRY("movb $0, (%1)") : "=&D"(vector) : "r"(not_canonical) : "memory");
    report_equal(vector, EXC_GP, "fix-up: address that is not canonical");
    report_equal(rdmsr_safe(MSR_EFER, &value), 0, "fix-up: EFER reads");
    report(value & 0x400, "fix-up: EFER.LMA");
}

static void tick(struct trap_frame *frame)
{
    (void)frame;
    ticks++;
    apic_eoi();
}

static void count_nmi(struct trap_frame *frame)
{
    (void)frame;
    nmis++;
}

static void test_interrupts(void)
{
    trap_set(VECTOR_TICK, tick);
    apic_timer_start(VECTOR_TICK, 100000);
    while (ticks < 10)
        sti_hlt();
    cli();
    apic_timer_stop();
    report(ticks >= 10, "timer interrupts");

    trap_set(EXC_NMI, count_nmi);
    apic_send_nmi(this_cpu()->id);
    for (int i = 0; i < 1000 && !nmis; i++)
        pause();
    report_equal(nmis, 1, "NMI to itself");
    trap_set(EXC_NMI, NULL);
}

static void map_on_fault(struct trap_frame *frame)
{
    (void)frame;
    faults++;
    map_page(read_cr2() & -PAGE_SIZE, (uintptr_t)pages_alloc(1), MAP_ALL);
}

static uint64_t user_fault(uint64_t address)
{
    *(volatile uint32_t *)address = 0x12345678;
    return *(volatile uint32_t *)address;
}

static uint64_t user_segment(uint64_t arg)
{
    uint16_t cs;
    asm volatile("mov %%cs, %0" : "=r"(cs));
    return cs + arg;
}

static void test_user(void)
{
    report_equal(run_user(user_segment, 0x100), 0x100 + (SEL_USER_CODE | 3), "ring 3 and back");
    trap_set(EXC_PF, map_on_fault);
    report_equal(run_user(user_fault, TRIAL_PAGE), 0x12345678, "page fault in ring 3, and retry");
    report_equal(faults, 1, "one page fault");
    trap_set(EXC_PF, NULL);
    map_page(TRIAL_PAGE, 0, 0);
}

static uint64_t step_kernel_spin(uint64_t n)
{
    return spin(n);
}

/* The oracle, over a loop that can be counted by hand, and a REP that is one instruction. */
static void test_step(void)
{
    static uint64_t rips[8];
    struct step_trace trace = {.rips = rips, .size = ARRAY_SIZE(rips)};
    uint64_t start = (uintptr_t)spin;
    struct step_counts c = step_user(spin, 50, &trace);

    report_equal(c.insns, SPIN_INSNS(50), "stepping in ring 3: instructions");
    report_equal(c.branches, SPIN_BRANCHES(50), "stepping in ring 3: branches");
    report_equal(c.cond, SPIN_COND_BRANCHES(50), "stepping in ring 3: conditional branches");
    report_equal(trace.length, ARRAY_SIZE(rips), "trace: is full");
    report(rips[0] == start && rips[2] == start && rips[1] > start && rips[3] == rips[1],
           "trace: addresses");

    step_user(spin, 1, &trace);
    report_equal(trace.length, SPIN_INSNS(1) + 1, "trace: whole");
    c = step_kernel(step_kernel_spin, 50, start, rips[2], NULL);
    report_equal(c.insns, SPIN_INSNS(50) - 1, "stepping in ring 0, up to RET");

    c = step_user(program_strings, 1, NULL);
    report(c.insns > 100 && c.branches > c.cond, "stepping over strings: %lu", c.insns);
    report_equal(step_user(program_strings, 1, NULL).insns, c.insns, "the same again");
}

static uint64_t user_add(uint64_t arg)
{
    return arg + this_cpu()->id;
}

static void on_each(void *arg)
{
    uint64_t *results = arg;
    results[this_cpu()->id] = run_user(user_add, 1000);
}

static void test_cpus(void)
{
    uint64_t results[MAX_CPUS] = {0};

    on_all_cpus(on_each, results);
    for (unsigned i = 0; i < cpu_count(); i++)
        report_equal(results[i], 1000 + i, "CPU %u: ring 3 on all at once", i);
    for (unsigned i = 1; i < cpu_count(); i++) {
        results[i] = 0;
        cpu_restart(i);
        on_cpu(i, on_each, results);
        report_equal(results[i], 1000 + i, "CPU %u: works after INIT", i);
    }
}

void guest_main(void)
{
    printf("command line: %s\n", boot_command_line());
    for (size_t i = 0; i < boot_module_count(); i++)
        printf("module %s: %lu bytes, first %02x\n", boot_module(i)->command_line,
               boot_module(i)->size, boot_module(i)->data[0]);
    report_equal(cpu_count(), boot_option_number("cpus", 1), "number of CPUs");
    test_format();
    test_fix_up();
    test_interrupts();
    test_user();
    test_step();
    test_cpus();
}
