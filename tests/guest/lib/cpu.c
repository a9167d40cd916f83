/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu.h"
#include "apic.h"
#include "libc.h"
#include "trap.h"
#include "x86.h"

#define STACK_SIZE 16384
#define FW_CFG_SELECT 0x510
#define FW_CFG_DATA 0x511
#define FW_CFG_NB_CPUS 5

_Static_assert(offsetof(struct cpu, user_return_sp) == CPU_USER_RETURN_SP, "layout.h");
_Static_assert(offsetof(struct cpu, tss.rsp) == CPU_TSS_RSP0, "layout.h");

enum stack { STACK_MAIN, STACK_NMI, STACK_DF, STACK_USER, STACKS };

static struct cpu cpus[MAX_CPUS];
static uint8_t stacks[MAX_CPUS][STACKS][STACK_SIZE] __attribute__((aligned(4096)));
static unsigned count;

/* For boot.S: what the next CPU to start gets. */
uint32_t ap_stack, ap_cpu;
extern const uint8_t ap_boot[], ap_boot_end[];

void lock(struct lock *l)
{
    while (__atomic_exchange_n(&l->taken, 1, __ATOMIC_ACQUIRE))
        pause();
}

void unlock(struct lock *l)
{
    __atomic_store_n(&l->taken, 0, __ATOMIC_RELEASE);
}

static uint8_t *stack_top(unsigned id, enum stack stack)
{
    return stacks[id][stack] + STACK_SIZE;
}

struct cpu *cpu_get(unsigned id)
{
    return &cpus[id];
}

unsigned cpu_count(void)
{
    return count;
}

static void fill_gdt(struct cpu *cpu)
{
    uint64_t base = (uintptr_t)&cpu->tss, limit = sizeof(cpu->tss) - 1;

    cpu->gdt[SEL_KERNEL_CODE / 8] = 0x00af9b000000ffff;
    cpu->gdt[SEL_KERNEL_DATA / 8] = 0x00cf93000000ffff;
    cpu->gdt[SEL_USER_CODE32 / 8] = 0x00cffb000000ffff;
    cpu->gdt[SEL_USER_DATA / 8] = 0x00cff3000000ffff;
    cpu->gdt[SEL_USER_CODE / 8] = 0x00affb000000ffff;
    cpu->gdt[SEL_TSS / 8] =
        limit | (base & 0xffffff) << 16 | 0x89ull << 40 | (base >> 24 & 0xff) << 56;
    cpu->gdt[SEL_TSS / 8 + 1] = base >> 32;
}

/* Gives the running CPU its tables, its GS base and its local APIC. */
static void cpu_init(struct cpu *cpu)
{
    struct {
        uint16_t limit;
        uint64_t base;
    } __attribute__((packed)) gdtr = {sizeof(cpu->gdt) - 1, (uintptr_t)cpu->gdt};

    fill_gdt(cpu);
    cpu->self = cpu;
    cpu->tss.iomap = sizeof(cpu->tss);
    cpu->tss.rsp[0] = (uintptr_t)stack_top(cpu->id, STACK_MAIN);
    cpu->tss.ist[IST_NMI - 1] = (uintptr_t)stack_top(cpu->id, STACK_NMI);
    cpu->tss.ist[IST_DF - 1] = (uintptr_t)stack_top(cpu->id, STACK_DF);
    asm volatile("lgdt %0" : : "m"(gdtr));
    asm volatile("ltr %w0" : : "r"(SEL_TSS));
    wrmsr(MSR_GS_BASE, (uintptr_t)cpu);
    trap_init_cpu();
    apic_init();
}

static void wake(struct trap_frame *frame)
{
    (void)frame;
    apic_eoi();
}

static void idle(struct cpu *cpu)
{
    for (;;) {
        cli();
        if (cpu->work) {
            cpu->work(cpu->work_arg);
            cli();
            __atomic_store_n(&cpu->work, NULL, __ATOMIC_RELEASE);
        } else {
            sti_hlt();
        }
    }
}

void start_ap(struct cpu *cpu) __attribute__((noreturn));
void start_ap(struct cpu *cpu)
{
    cpu_init(cpu);
    cpu->online = true;
    idle(cpu);
    __builtin_unreachable();
}

void cpu_restart(unsigned id)
{
    struct cpu *cpu = cpu_get(id);

    cpu->online = false;
    cpu->work = NULL;
    ap_cpu = (uint32_t)(uintptr_t)cpu;
    ap_stack = (uint32_t)(uintptr_t)stack_top(id, STACK_MAIN);
    apic_send_init(id);
    apic_send_startup(id, AP_BOOT_ADDRESS);
    while (!cpu->online)
        pause();
}

static unsigned read_cpu_count(void)
{
    unsigned low;

    outw(FW_CFG_SELECT, FW_CFG_NB_CPUS);
    low = inb(FW_CFG_DATA);
    return low | (unsigned)inb(FW_CFG_DATA) << 8;
}

void cpu_init_first(void)
{
    for (unsigned i = 0; i < MAX_CPUS; i++)
        cpus[i].id = i;
    cpu_init(&cpus[0]);
    cpus[0].online = true;
    trap_set(VECTOR_WAKE, wake);
}

void cpu_init_others(void)
{
    unsigned present = read_cpu_count();

    count = present < MAX_CPUS ? present : MAX_CPUS;
    memcpy((void *)AP_BOOT_ADDRESS, ap_boot, (size_t)(ap_boot_end - ap_boot));
    for (unsigned i = 1; i < count; i++)
        cpu_restart(i);
}

void on_cpu_start(unsigned id, cpu_work *fn, void *arg)
{
    struct cpu *cpu = cpu_get(id);

    on_cpu_wait(id);
    cpu->work_arg = arg;
    __atomic_store_n(&cpu->work, fn, __ATOMIC_RELEASE);
    apic_send_fixed(id, VECTOR_WAKE);
}

void on_cpu_wait(unsigned id)
{
    while (__atomic_load_n(&cpu_get(id)->work, __ATOMIC_ACQUIRE))
        pause();
}

void on_cpu(unsigned id, cpu_work *fn, void *arg)
{
    if (id == this_cpu()->id) {
        fn(arg);
        return;
    }
    on_cpu_start(id, fn, arg);
    on_cpu_wait(id);
}

void on_all_cpus(cpu_work *fn, void *arg)
{
    unsigned self = this_cpu()->id;

    for (unsigned i = 0; i < count; i++)
        if (i != self)
            on_cpu_start(i, fn, arg);
    fn(arg);
    for (unsigned i = 0; i < count; i++)
        if (i != self)
            on_cpu_wait(i);
}

void *user_stack_top(void)
{
    return stack_top(this_cpu()->id, STACK_USER);
}

uint64_t run_user(uint64_t (*fn)(uint64_t), uint64_t arg)
{
    return enter_user(fn, arg, read_flags() & FLAG_IF, user_stack_top());
}
