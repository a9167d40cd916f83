/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exact counts. Blocks of assembly whose instructions can be counted by reading them, run in ring 0
 * and in ring 3, on all CPUs at the same time. Each is compared to the last digit: instructions of
 * the ring it runs in and of the other one, branches, conditional branches, cycles.
 *
 * What counts: an instruction counts once when it has completed, in the ring that executed it; not
 * when it faults; REP and all its repetitions are one instruction.
 */
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "memory.h"
#include "pmu.h"
#include "report.h"
#include "trap.h"
#include "x86.h"

#define VECTOR_TICK 0x40
#define VECTOR_SOFT 0x60
#define AREA_PAGES 32
#define AREA_BASE 0x4000000000ul
#define AREA_STRIDE 0x40000000ul
#define N 1000ul
#define MAX_INTERRUPTED_RUNS 100

#define RING0 1u
#define RING3 2u
#define BOTH (RING0 | RING3)

/* What a block retires in its own ring. */
struct counts {
    uint64_t insns, branches, cond;
};

/* What it makes run in ring 0: how often, and the instructions each time, the last one an IRET. */
struct handler {
    uint64_t runs, insns;
};

struct block {
    const char *name;
    uint64_t (*fn)(uint64_t);
    uint64_t arg; /* where there is no area */
    struct counts want;
    unsigned rings;
    struct handler handler;
    void (*set_up)(void);
    void (*tear_down)(void);
    enum { PLAIN, AREA, WINDOW } argument;
};

/* Each CPU's memory: by its identity address, and through a window that page faults fill. */
static uint8_t *areas[MAX_CPUS];

/* What the handlers below find at the GS base. */
struct handler_data {
    uint64_t ticks;           /* gs:8 */
    uint64_t *window_entries; /* gs:16, page table entries of the window */
};

static struct handler_data *handler_data(unsigned cpu)
{
    return (struct handler_data *)cpu_get(cpu)->client;
}

/* clang-format off */
asm(".pushsection .text\n"
    "raw_iret:\n"
    "    iretq\n"
    "raw_sysret:\n"
    "    sysretq\n"
    "raw_tick:\n"
    "    incq %gs:8\n"
    "    addr32 movl $0, 0xfee000b0\n" /* EOI */
    "    iretq\n"
    "raw_skip_2:\n"
    "    addq $2, (%rsp)\n"
    "    iretq\n"
    "raw_skip_2_error:\n"
    "    add $8, %rsp\n"
    "    addq $2, (%rsp)\n"
    "    iretq\n"
    "raw_resume:\n"
    "    orl $0x10000, 16(%rsp)\n" /* RF: past the breakpoint */
    "    iretq\n"
    "raw_fill:\n" /* makes the page of the window present */
    "    push %rax\n"
    "    push %rcx\n"
    "    mov %cr2, %rax\n"
    "    shr $12, %rax\n"
    "    and $31, %eax\n"
    "    mov %gs:16, %rcx\n"
    "    orb $1, (%rcx,%rax,8)\n"
    "    pop %rcx\n"
    "    pop %rax\n"
    "    add $8, %rsp\n"
    "    iretq\n"
    ".popsection\n");
/* clang-format on */
extern const uint8_t raw_iret[], raw_sysret[], raw_tick[], raw_skip_2[], raw_skip_2_error[],
    raw_resume[], raw_fill[];
#define IRET_INSNS 1
#define SYSRET_INSNS 1
#define TICK_INSNS 3
#define SKIP_INSNS 2
#define SKIP_ERROR_INSNS 3
#define RESUME_INSNS 2
#define FILL_INSNS 11

static uint64_t window(void)
{
    return AREA_BASE + this_cpu()->id * AREA_STRIDE;
}

static void empty_window(void)
{
    for (unsigned i = 0; i < AREA_PAGES; i++) {
        uint64_t page = window() + i * PAGE_SIZE;

        map_page(page, (uintptr_t)areas[this_cpu()->id] + i * PAGE_SIZE, MAP_ALL & ~MAP_PRESENT);
        invlpg((void *)page);
    }
    memset(areas[this_cpu()->id], 0, AREA_PAGES * PAGE_SIZE);
}

/* Code that crosses from one page to the next, both absent: NOPs, and one MOV across the border. */
static void set_up_window_code(void)
{
    uint8_t *code = areas[this_cpu()->id];

    empty_window();
    memset(code, 0x90, 2 * PAGE_SIZE);
    code[PAGE_SIZE - 2] = 0xb8; /* mov $imm32, %eax */
    code[2 * PAGE_SIZE - 1] = 0xc3;
}
#define WINDOW_CODE_INSNS (2 * PAGE_SIZE - 5 + 1)

extern const uint8_t breakpoint_here[];

static void set_dr(uint64_t address, uint64_t dr7)
{
    asm volatile("mov %0, %%dr0; mov %1, %%dr7" : : "r"(address), "r"(dr7));
}

static void set_up_watchpoint(void)
{
    memset(areas[this_cpu()->id], 0, PAGE_SIZE);
    set_dr((uintptr_t)areas[this_cpu()->id], 0x90602); /* G0: writes, 8 bytes */
}

static void set_up_breakpoint(void)
{
    set_dr((uintptr_t)breakpoint_here, 0x602); /* G0: execution */
}

static void clear_dr7(void)
{
    set_dr(0, 0x400);
}

static void set_up_syscall(void)
{
    wrmsr(MSR_STAR, (uint64_t)(SEL_USER_CODE32 | 3) << 48 | (uint64_t)SEL_KERNEL_CODE << 32);
    wrmsr(MSR_LSTAR, (uintptr_t)raw_sysret);
    wrmsr(MSR_FMASK, FLAG_IF);
}

static void set_up_halt(void)
{
    apic_timer_once(VECTOR_TICK, 0);
}

/* A block ends with RET, which counts as one instruction and one branch. */
#define DEFINE(name, text)                                                                         \
    uint64_t name(uint64_t arg);                                                                   \
    asm(".pushsection .text\n.globl " #name "\n" #name ":\n" text "ret\n.popsection\n");
#define DEFINE_ON_PAGE(name, text)                                                                 \
    uint64_t name(uint64_t arg);                                                                   \
    asm(".pushsection .text\n.globl " #name "\n.balign 4096\n" #name ":\n" text                    \
        "ret\n.popsection\n");
/* Rounds in %rdi; two instructions and one conditional branch each. */
#define LOOP(body) "1: " body "dec %rdi\njnz 1b\n"
#define LOOP_FIXED(rounds, body) "mov %rdi, %rsi\nmov $" #rounds ", %edi\n" LOOP(body)

DEFINE(b_empty, "")
DEFINE(b_straight, ".rept 2000\nnop\n.endr\n")
DEFINE(b_long, ".rept 1500\nlea 0x12345678(%rax,%rdx,1), %rax\n.endr\n")
DEFINE(b_calls, LOOP("call 2f\n") "jmp 3f\n2: ret\n3: ")
DEFINE(b_recursion, "dec %rdi\njz 1f\ncall b_recursion\n1: ")
DEFINE(b_indirect, LOOP("lea 2f(%rip), %rax\njmp *%rax\nud2\n2: "))
DEFINE(b_cond, LOOP("xor %eax, %eax\njnz 1b\njz 2f\nud2\n2: "))
DEFINE(b_loop, "mov %rdi, %rcx\n1: jrcxz 2f\nloop 1b\n2: ")
DEFINE_ON_PAGE(b_border, ".fill 4094, 1, 0x90\nmov $1, %eax\n.fill 4090, 1, 0x90\n"
                         "mov $0x123456789abcdef0, %rax\ntest %eax, %eax\n")
DEFINE_ON_PAGE(b_border_jump, "jmp 1f\n.balign 4096\n.skip 4095\n1: jz 2f\n2: ")
DEFINE(b_rep_movs, "lea 65536(%rdi), %rsi\nmov $10000, %ecx\nrep movsb\n")
DEFINE(b_rep_none, "xor %ecx, %ecx\nmov %rdi, %rsi\nrep movsb\nrep stosq\nrepne scasb\n")
DEFINE(b_rep_scas, "mov $5000, %ecx\nmov $1, %eax\nrepne scasb\n")
DEFINE(b_rep_cmps, "lea 4096(%rdi), %rsi\nmov $3000, %ecx\nrepe cmpsb\n")
DEFINE(b_rep_lods, "mov %rdi, %rsi\nmov $500, %ecx\nrep lodsq\n")
DEFINE(b_rep_loop, "mov %rdi, %rdx\nmov $100, %esi\n"
                   "1: mov %rdx, %rdi\nmov $64, %ecx\nrep stosb\ndec %esi\njnz 1b\n")
DEFINE(b_rep_fault, "mov $65536, %ecx\nmov $7, %eax\nrep stosb\n")
DEFINE(b_rep_copy_fault, "lea 65536(%rdi), %rsi\nmov $8192, %ecx\nrep movsq\n")
DEFINE(b_load_fault, "mov $16, %ecx\n"
                     "1: nop\nmov (%rdi), %rax\nadd $4096, %rdi\ndec %ecx\njnz 1b\n")
DEFINE(b_store_fault, "mov $16, %ecx\n"
                      "1: nop\nmov %rax, 8(%rdi)\nadd $4096, %rdi\ndec %ecx\njnz 1b\n")
DEFINE(b_rmw_fault, "mov $16, %ecx\n"
                    "1: nop\nlock incq 16(%rdi)\nadd $4096, %rdi\ndec %ecx\njnz 1b\n")
DEFINE(b_cross_fault, "nop\nmov 4092(%rdi), %rax\nmov %rax, 12284(%rdi)\n")
DEFINE(b_push_fault, "mov %rsp, %rax\nlea 8192(%rdi), %rsp\npush %rax\n"
                     "call 1f\n1: pop %rcx\npop %rsp\n")
DEFINE(b_call_in, "nop\ncall *%rdi\n")
DEFINE(b_ud, LOOP("nop\nud2\n"))
DEFINE(b_divide, "xor %ecx, %ecx\n" LOOP("nop\ndiv %ecx\n"))
DEFINE(b_int3, LOOP("nop\nint3\n"))
DEFINE(b_int, LOOP("nop\nint $0x60\n"))
DEFINE(b_syscall, LOOP("nop\nsyscall\n"))
DEFINE(b_iret, LOOP("mov %rsp, %rax\nmov %ss, %ecx\npush %rcx\npush %rax\npushfq\nmov %cs, %ecx\n"
                    "push %rcx\nlea 2f(%rip), %rax\npush %rax\niretq\n2: "))
DEFINE(b_far_return, LOOP("mov %cs, %ecx\npush %rcx\nlea 2f(%rip), %rax\npush %rax\nlretq\n2: "))
DEFINE(b_int_denied, LOOP("nop\nint $0x61\n"))
DEFINE(b_rdpmc_bad, LOOP("mov $0x3f, %ecx\nrdpmc\n"))
DEFINE(b_wrmsr_bad, LOOP("mov $0x38e, %ecx\nwrmsr\n")) /* GLOBAL_STATUS is read-only */
DEFINE(b_self_modifying, LOOP("incb 2f+1(%rip)\n2: mov $0, %eax\nadd %eax, %edx\n"))
DEFINE(b_mmio,
       "mov $0xfee00000, %esi\n" LOOP("nop\nmov 0x20(%rsi), %eax\nnop\nmovl $0, 0x80(%rsi)\nnop\n"))
DEFINE(b_port, LOOP("nop\nin $0x61, %al\nout %al, $0x80\n"))
DEFINE(b_rep_port, "mov %rdi, %rsi\nmov $0x80, %edx\nmov $300, %ecx\nrep outsb\n"
                   "mov $100, %ecx\nmov $0x61, %edx\nrep insb\n")
DEFINE(b_leave,
       "push %rbx\n" LOOP(
           "xor %eax, %eax\ncpuid\nrdtsc\npause\nmfence\nlfence\nclflush b_empty\n") "pop %rbx\n")
DEFINE(b_system,
       LOOP("mov %cr3, %rax\nmov %rax, %cr3\ninvlpg b_empty\nmov %cr0, %rax\nmov %rax, %cr0\n"
            "mov $0xc0000084, %ecx\nrdmsr\nwrmsr\npushfq\npopfq\nclts\n"
            "mov %cr4, %rax\nmov %rax, %cr4\n"))
DEFINE(b_shadow, LOOP("mov %ss, %eax\nmov %eax, %ss\nnop\n"))
DEFINE(b_sti_cli, LOOP("sti\nnop\ncli\n"))
DEFINE(b_locked,
       "push %rbx\n" LOOP_FIXED(
           1000,
           "lock xaddq %rax, (%rsi)\nxchg %rax, 8(%rsi)\nlock cmpxchg16b (%rsi)\n") "pop %rbx\n")
DEFINE(b_split_lock, LOOP_FIXED(50, "nop\nlock xaddq %rax, 4092(%rsi)\nlock incl 62(%rsi)\n"))
DEFINE(b_data_cross, LOOP_FIXED(1000, "mov 4092(%rsi), %rax\nmov %rax, 8189(%rsi)\n"))
DEFINE(b_watched, LOOP_FIXED(100, "nop\nmov %rdi, (%rsi)\nmov (%rsi), %rax\n"))
DEFINE(b_breakpoint, ".globl breakpoint_here\n" LOOP("nop\nbreakpoint_here: mov %rdi, %rax\n"))
DEFINE(b_rdpmc, LOOP("xor %ecx, %ecx\nrdpmc\n"))
DEFINE(b_rdmsr, LOOP("mov $0xc1, %ecx\nrdmsr\n"))
DEFINE(b_x87, LOOP("fld1\nfldpi\nfaddp\nfstp %st(0)\n"))
DEFINE(b_halt, "mov $0xfee00000, %esi\n" LOOP("movl $20000, 0x380(%rsi)\nsti\nhlt\ncli\n"))
DEFINE(b_long_rep, "mov %rdi, %rdx\nmov $200, %esi\n"
                   "1: mov %rdx, %rdi\nmov $65536, %ecx\nrep stosb\ndec %esi\njnz 1b\n")
DEFINE(b_long_compare, "mov %rdi, %rdx\nmov $50, %eax\n"
                       "1: mov %rdx, %rdi\nmov %rdx, %rsi\nmov $65536, %ecx\nrepe cmpsb\n"
                       "dec %eax\njnz 1b\n")
DEFINE(b_interruptible, "sti\n" LOOP("") "cli\n")

/* clang-format off */
static const struct block blocks[] = {
    {"empty", b_empty, 0, {1, 1, 0}, BOTH},
    {"loop", spin, 100 * N, {SPIN_INSNS(100 * N), SPIN_BRANCHES(100 * N), 100 * N}, BOTH},
    {"2000 NOPs in a row", b_straight, 0, {2001, 1, 0}, BOTH},
    {"1500 long instructions in a row", b_long, 0, {1501, 1, 0}, BOTH},
    {"calls", b_calls, N, {4 * N + 2, 3 * N + 2, N}, BOTH},
    {"recursion", b_recursion, 100, {4 * 100 - 1, 3 * 100 - 1, 100}, BOTH},
    {"indirect jumps", b_indirect, N, {4 * N + 1, 2 * N + 1, N}, BOTH},
    {"conditional, taken and not", b_cond, N, {5 * N + 1, 3 * N + 1, 3 * N}, BOTH},
    {"LOOP and JRCXZ", b_loop, N, {2 * N + 2, 2 * N + 1, 2 * N}, BOTH},
    {"across pages", b_border, 0, {4094 + 1 + 4090 + 2 + 1, 1, 0}, BOTH},
    {"jump across pages", b_border_jump, 0, {3, 3, 1}, BOTH},
    {"REP MOVS", b_rep_movs, 0, {4, 1, 0}, BOTH, .argument = AREA},
    {"REP with count 0", b_rep_none, 0, {6, 1, 0}, BOTH, .argument = AREA},
    {"REPNE SCAS", b_rep_scas, 0, {4, 1, 0}, BOTH, .argument = AREA},
    {"REPE CMPS", b_rep_cmps, 0, {4, 1, 0}, BOTH, .argument = AREA},
    {"REP LODS", b_rep_lods, 0, {4, 1, 0}, BOTH, .argument = AREA},
    {"REP in a loop", b_rep_loop, 0, {2 + 5 * 100 + 1, 101, 100}, BOTH, .argument = AREA},
    {"REP STOS over page faults", b_rep_fault, 0, {4, 1, 0}, BOTH, {16, FILL_INSNS}, empty_window,
     .argument = WINDOW},
    {"REP MOVS over page faults", b_rep_copy_fault, 0, {4, 1, 0}, BOTH, {32, FILL_INSNS},
     empty_window, .argument = WINDOW},
    {"load faults", b_load_fault, 0, {1 + 5 * 16 + 1, 17, 16}, BOTH, {16, FILL_INSNS}, empty_window,
     .argument = WINDOW},
    {"store faults", b_store_fault, 0, {1 + 5 * 16 + 1, 17, 16}, BOTH, {16, FILL_INSNS},
     empty_window, .argument = WINDOW},
    {"locked faults", b_rmw_fault, 0, {1 + 5 * 16 + 1, 17, 16}, BOTH, {16, FILL_INSNS},
     empty_window, .argument = WINDOW},
    {"faults across pages", b_cross_fault, 0, {4, 1, 0}, BOTH, {4, FILL_INSNS}, empty_window,
     .argument = WINDOW},
    {"stack faults", b_push_fault, 0, {7, 2, 0}, RING3, {1, FILL_INSNS}, empty_window,
     .argument = WINDOW},
    {"fetch faults", b_call_in, 0, {WINDOW_CODE_INSNS + 3, 3, 0}, BOTH, {2, FILL_INSNS},
     set_up_window_code, .argument = WINDOW},
    {"#UD, skipped", b_ud, N, {3 * N + 1, N + 1, N}, BOTH, {N, SKIP_INSNS}},
    {"#DE, skipped", b_divide, N, {3 * N + 2, N + 1, N}, BOTH, {N, SKIP_INSNS}},
    {"INT3", b_int3, N, {4 * N + 1, 2 * N + 1, N}, BOTH, {N, IRET_INSNS}},
    {"INT n", b_int, N, {4 * N + 1, 2 * N + 1, N}, BOTH, {N, IRET_INSNS}},
    {"SYSCALL", b_syscall, N, {4 * N + 1, 2 * N + 1, N}, RING3, {N, SYSRET_INSNS}, set_up_syscall},
    {"IRET", b_iret, N, {12 * N + 1, 2 * N + 1, N}, BOTH},
    {"far RET", b_far_return, N, {7 * N + 1, 2 * N + 1, N}, BOTH},
    {"INT n, denied", b_int_denied, N, {3 * N + 1, N + 1, N}, RING3, {N, SKIP_ERROR_INSNS}},
    {"RDPMC, denied", b_rdpmc_bad, N, {3 * N + 1, N + 1, N}, BOTH, {N, SKIP_ERROR_INSNS}},
    {"WRMSR, denied", b_wrmsr_bad, N, {3 * N + 1, N + 1, N}, RING0, {N, SKIP_ERROR_INSNS}},
    {"code that changes itself", b_self_modifying, 200, {5 * 200 + 1, 201, 200}, BOTH},
    {"MMIO", b_mmio, N, {7 * N + 2, N + 1, N}, BOTH},
    {"port I/O", b_port, N, {5 * N + 1, N + 1, N}, RING0},
    {"REP OUTS and INS", b_rep_port, 0, {8, 1, 0}, RING0, .argument = AREA},
    {"CPUID, RDTSC, PAUSE, fences", b_leave, N, {9 * N + 3, N + 1, N}, BOTH},
    {"control registers", b_system, N, {15 * N + 1, N + 1, N}, RING0},
    {"MOV SS", b_shadow, N, {5 * N + 1, N + 1, N}, BOTH},
    {"STI and CLI", b_sti_cli, N, {5 * N + 1, N + 1, N}, RING0},
    {"locked", b_locked, 0, {4 + 5 * 1000 + 1, 1001, 1000}, BOTH, .argument = AREA},
    {"locked across lines and pages", b_split_lock, 0, {2 + 5 * 50 + 1, 51, 50}, BOTH,
     .argument = AREA},
    {"data across pages", b_data_cross, 0, {2 + 4 * 1000 + 1, 1001, 1000}, BOTH, .argument = AREA},
    {"data breakpoint", b_watched, 0, {2 + 5 * 100 + 1, 101, 100}, BOTH, {100, RESUME_INSNS},
     set_up_watchpoint, clear_dr7, AREA},
    {"code breakpoint", b_breakpoint, 100, {4 * 100 + 1, 101, 100}, BOTH, {100, RESUME_INSNS},
     set_up_breakpoint, clear_dr7},
    {"RDPMC", b_rdpmc, N, {4 * N + 1, N + 1, N}, BOTH},
    {"RDMSR of a counter", b_rdmsr, N, {4 * N + 1, N + 1, N}, RING0},
    {"x87", b_x87, N, {6 * N + 1, N + 1, N}, BOTH},
    {"HLT, woken by the timer", b_halt, 20, {2 + 6 * 20, 20 + 1, 20}, RING0, {20, TICK_INSNS},
     set_up_halt},
};
/* clang-format on */

struct result {
    struct counts own;
    uint64_t other; /* instructions in the ring that the block is not in */
    uint64_t all, cycles;
    uint64_t ticks; /* timer interrupts while it ran */
};

/* What all CPUs do at the same time. */
struct run {
    const struct block *block;
    unsigned ring;
    uint64_t flags; /* in ring 3 */
    uint32_t tick;  /* ns between timer interrupts; 0: none */
    struct result results[MAX_CPUS];
    volatile unsigned ready;
};

static uint64_t argument_of(const struct block *b)
{
    switch (b->argument) {
    case AREA:
        return (uintptr_t)areas[this_cpu()->id];
    case WINDOW:
        return window();
    default:
        return b->arg;
    }
}

static struct run current;

static uint64_t in_ring3(uint64_t arg)
{
    return enter_user(current.block->fn, arg, current.flags, user_stack_top());
}

static uint64_t all_counters(void)
{
    return pmu_gp_bits() | pmu_fixed_bits();
}

static void program(uint32_t own, uint32_t other)
{
    pmu_clear();
    pmu_program(pmu_counter(0), EVENT_INSTRUCTIONS, own, 0);
    pmu_program(pmu_counter(1), EVENT_BRANCHES, own, 0);
    pmu_program(pmu_counter(2), EVENT_COND_BRANCHES, own, 0);
    pmu_program(pmu_counter(3), EVENT_INSTRUCTIONS, other, 0);
    pmu_program(pmu_counter(pmu.gp), EVENT_INSTRUCTIONS, own | other, 0);
    pmu_program(pmu_counter(pmu.gp + 1), EVENT_CYCLES, own | other, 0);
}

/* So that the blocks of all CPUs run at the same time. */
static void meet(void)
{
    __atomic_add_fetch(&current.ready, 1, __ATOMIC_SEQ_CST);
    while (current.ready < cpu_count())
        pause();
}

/* The IPI that woke this CPU may still be pending. */
static void take_interrupts(void)
{
    sti();
    asm volatile("nop");
    cli();
}

static void run_here(void *arg)
{
    const struct block *b = current.block;
    struct result *r = &current.results[this_cpu()->id];
    bool user = current.ring == RING3;

    (void)arg;
    meet();
    take_interrupts();
    handler_data(this_cpu()->id)->ticks = 0;
    program(user ? EVTSEL_USR : EVTSEL_OS, user ? EVTSEL_OS : EVTSEL_USR);
    if (current.tick)
        apic_timer_start(VECTOR_TICK, current.tick);
    pmu_measure(MSR_GLOBAL_CTRL, all_counters(), 0, user ? in_ring3 : b->fn, argument_of(b));
    if (current.tick)
        apic_timer_stop();
    *r = (struct result){
        .own = {pmu_read(pmu_counter(0)), pmu_read(pmu_counter(1)), pmu_read(pmu_counter(2))},
        .other = pmu_read(pmu_counter(3)),
        .all = pmu_read(pmu_counter(pmu.gp)),
        .cycles = pmu_read(pmu_counter(pmu.gp + 1)),
        .ticks = handler_data(this_cpu()->id)->ticks,
    };
    pmu_clear();
}

static void set_up_here(void *arg)
{
    void (*const *fn)(void) = arg;
    (*fn)();
}

static void run_block(const struct block *b, unsigned ring)
{
    void (*set_up)(void) = b->set_up, (*tear_down)(void) = b->tear_down;

    if (set_up)
        for (unsigned i = 0; i < cpu_count(); i++)
            on_cpu(i, set_up_here, &set_up);
    current.block = b;
    current.ring = ring;
    current.ready = 0;
    on_all_cpus(run_here, NULL);
    if (tear_down)
        for (unsigned i = 0; i < cpu_count(); i++)
            on_cpu(i, set_up_here, &tear_down);
}

static bool right(const struct result *r, const struct counts *want, uint64_t want_other)
{
    bool is = r->own.insns == want->insns && r->own.branches == want->branches &&
              r->own.cond == want->cond && r->other == want_other &&
              r->all == r->own.insns + r->other && r->cycles == r->all;

    if (!is) {
        printf("# got %lu instructions, %lu branches, %lu conditional; other ring %lu; both %lu, "
               "cycles %lu\n",
               r->own.insns, r->own.branches, r->own.cond, r->other, r->all, r->cycles);
        printf("# want %lu, %lu, %lu; %lu\n", want->insns, want->branches, want->cond, want_other);
    }
    return is;
}

/* Instructions in ring 0 on the way to an empty block in ring 3, and back. */
static uint64_t way_to_ring3;

/* Timer interrupts come on top of the handlers that the block itself calls for. */
static bool right_in_ring3(const struct block *b, const struct result *r)
{
    struct counts want = b->want;
    uint64_t handlers = b->handler.runs * b->handler.insns + r->ticks * TICK_INSNS;

    want.insns += USER_EXIT_INSNS;
    want.branches += USER_EXIT_INSNS;
    return right(r, &want, way_to_ring3 + handlers);
}

static bool right_in_ring0(const struct block *b, const struct result *r)
{
    struct counts want = b->want;
    uint64_t ticks = b->handler.insns == TICK_INSNS ? 0 : r->ticks;

    want.insns += MEASURE_INSNS + b->handler.runs * b->handler.insns + ticks * TICK_INSNS;
    want.branches += MEASURE_BRANCHES + b->handler.runs + ticks;
    return right(r, &want, 0);
}

static bool right_on(unsigned cpu)
{
    const struct result *r = &current.results[cpu];

    return current.ring == RING3 ? right_in_ring3(current.block, r)
                                 : right_in_ring0(current.block, r);
}

static void test_block(const struct block *b, unsigned ring)
{
    if (!(b->rings & ring))
        return;
    run_block(b, ring);
    for (unsigned i = 0; i < cpu_count(); i++)
        report(right_on(i), "CPU %u: %s", i, b->name);
}

static void set_up_handlers(void)
{
    trap_set_entry(EXC_PF, raw_fill);
    trap_set_entry(EXC_UD, raw_skip_2);
    trap_set_entry(EXC_GP, raw_skip_2_error);
    trap_set_entry(EXC_DE, raw_skip_2);
    trap_set_entry(EXC_BP, raw_iret);
    trap_set_entry(EXC_DB, raw_resume);
    trap_set_entry(VECTOR_SOFT, raw_iret);
    trap_set_entry(VECTOR_TICK, raw_tick);
}

static void test_blocks(void)
{
    run_block(&blocks[0], RING3);
    way_to_ring3 = current.results[0].other;
    for (unsigned i = 0; i < ARRAY_SIZE(blocks); i++) {
        report_prefix_push("ring 3");
        test_block(&blocks[i], RING3);
        report_prefix_pop();
        report_prefix_push("ring 0");
        test_block(&blocks[i], RING0);
        report_prefix_pop();
    }
}

/* Runs the block until every CPU has been interrupted in it; each run must be right. */
static void test_interrupted(const struct block *b)
{
    unsigned wrong = 0, runs = 0, interrupted[MAX_CPUS] = {0}, missing;

    do {
        missing = 0;
        run_block(b, b->rings);
        for (unsigned i = 0; i < cpu_count(); i++) {
            wrong += !right_on(i);
            interrupted[i] += current.results[i].ticks > 0;
            missing += !interrupted[i];
        }
    } while (missing && ++runs < MAX_INTERRUPTED_RUNS);
    report_equal(wrong, 0, "ring %u: %s: wrong", b->rings == RING3 ? 3 : 0, b->name);
    report_equal(missing, 0, "ring %u: %s: CPUs never interrupted", b->rings == RING3 ? 3 : 0,
                 b->name);
}

/* Timer interrupts in the middle, on every CPU: the other counts are the same. */
static void test_interrupts(void)
{
    static const struct block interrupted[] = {
        {"loop", spin, 3000 * N, {6000 * N + 1, 3000 * N + 1, 3000 * N}, RING3},
        {"REP STOS", b_long_rep, 0, {2 + 5 * 200 + 1, 201, 200}, RING3, .argument = AREA},
        {"REPE CMPS", b_long_compare, 0, {2 + 6 * 50 + 1, 51, 50}, RING3, .argument = AREA},
        {"calls", b_calls, 300 * N, {1200 * N + 2, 900 * N + 2, 300 * N}, RING3},
        {"loop", b_interruptible, 3000 * N, {6000 * N + 3, 3000 * N + 1, 3000 * N}, RING0},
    };

    report_prefix_push("under interrupts");
    current.flags = FLAG_IF;
    current.tick = 50000;
    for (unsigned i = 0; i < ARRAY_SIZE(interrupted); i++)
        test_interrupted(&interrupted[i]);
    current.flags = 0;
    current.tick = 0;
    report_prefix_pop();
}

static void set_up_cpu(void *arg)
{
    (void)arg;
    areas[this_cpu()->id] = pages_alloc(AREA_PAGES);
    write_cr4(read_cr4() | CR4_PCE);
    empty_window();
    handler_data(this_cpu()->id)->window_entries = map_entry(window());
}

void guest_main(void)
{
    pmu_detect();
    if (pmu.version < 2 || pmu.gp < 4 || pmu.fixed < 2) {
        report_skip("exact: needs version 2 with 4 + 2 counters");
        return;
    }
    for (unsigned i = 0; i < cpu_count(); i++)
        on_cpu(i, set_up_cpu, NULL);
    set_up_handlers();
    test_blocks();
    test_interrupts();
}
