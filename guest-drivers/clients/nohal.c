/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In the style of an old research driver: asks nobody. It writes the counter registers, points the
 * performance interrupt at vector 0xFE and hooks that vector in the interrupt table of each
 * processor. A test input: on Windows the hook alone stops the system.
 */

#include "client.h"

#include "os.h"

enum {
    VECTOR = 0xfe,
    PERIOD = 1000,
    MAX_PROCESSORS = 8,
    APIC_EOI = 0xb0,
    APIC_LVT_PERFORMANCE = 0x340,
    IA32_APIC_BASE = 0x1b,
    X2APIC_ENABLED = 1 << 10,
    X2APIC_BASE = 0x800,
    PMC0 = 0xc1,
    PERFEVTSEL0 = 0x186,
    FIXED_CTR_CTRL = 0x38d,
    GLOBAL_CTRL = 0x38f,
    GLOBAL_OVF_CTRL = 0x390,
    INSTRUCTIONS = 0xc0,
    BRANCHES = 0xc4,
    ENABLE_KERNEL = 0x420000,
    INTERRUPT = 0x100000,
};
#define ALL_GP_AND_FIXED 0x70000000full

const WCHAR client_device[] = u"\\Device\\vpmu-nohal";
const WCHAR client_link[] = u"\\DosDevices\\vpmu-nohal";

struct gate {
    uint64_t low, high;
};

struct __attribute__((packed)) table {
    uint16_t limit;
    struct gate *gates;
};

static volatile uint32_t *apic; /* NULL with x2APIC */
static uint64_t interrupts[MAX_PROCESSORS];

extern void nohal_interrupt(void); /* nohal_interrupt.S */
void nohal_pmi(void);

static uint32_t apic_read(uint32_t offset)
{
    uint64_t value = 0;

    if (apic)
        return apic[offset / 4];
    os_rdmsr(X2APIC_BASE + offset / 16, &value);
    return (uint32_t)value;
}

static void apic_write(uint32_t offset, uint32_t value)
{
    if (apic)
        apic[offset / 4] = value;
    else
        os_wrmsr(X2APIC_BASE + offset / 16, value);
}

static void find_apic(void)
{
    uint64_t base = 0;

    os_rdmsr(IA32_APIC_BASE, &base);
    apic =
        base & X2APIC_ENABLED ? NULL : MmMapIoSpace((int64_t)(base & ~0xfffull), 4096, MmNonCached);
}

/* The counter overflows once; delivery has masked the entry (SDM Vol. 3, "Local Vector Table"). */
void nohal_pmi(void)
{
    uint32_t here = os_this_processor();

    os_wrmsr(GLOBAL_OVF_CTRL, ALL_GP_AND_FIXED);
    if (here < MAX_PROCESSORS)
        __atomic_fetch_add(&interrupts[here], 1, __ATOMIC_RELAXED);
    apic_write(APIC_LVT_PERFORMANCE, VECTOR);
    apic_write(APIC_EOI, 0);
}

static struct gate *gate_of_vector(void)
{
    struct table table;

    __asm__ volatile("sidt %0" : "=m"(table));
    return &table.gates[VECTOR];
}

static struct gate gate_to(void (*handler)(void))
{
    uint64_t address = (uint64_t)handler;
    uint16_t code;

    __asm__ volatile("mov %%cs, %0" : "=r"(code));
    return (struct gate){
        .low = (address & 0xffff) | (uint64_t)code << 16 | 0x8e00ull << 32 |
               (address >> 16 & 0xffff) << 48,
        .high = address >> 32,
    };
}

static void set_up_registers(void)
{
    os_wrmsr(GLOBAL_CTRL, 0);
    os_wrmsr(FIXED_CTR_CTRL, 0);
    for (uint32_t i = 0; i < 4; i++) {
        os_wrmsr(PERFEVTSEL0 + i, 0);
        os_wrmsr(PMC0 + i, 0);
    }
    os_wrmsr(PMC0, (uint32_t)-PERIOD);
    os_wrmsr(GLOBAL_CTRL, ALL_GP_AND_FIXED);
}

/* Counter 0 counts instructions up to one overflow, counter 1 branches. */
static void count_here(void *context)
{
    struct client_report *report = context;
    struct gate *gate = gate_of_vector();
    uint64_t flags = os_interrupts_off();
    struct gate old = *gate;
    uint32_t old_entry = apic_read(APIC_LVT_PERFORMANCE);
    uint32_t here = os_this_processor();
    uint64_t value[2] = {0};

    *gate = gate_to(nohal_interrupt);
    apic_write(APIC_LVT_PERFORMANCE, VECTOR);
    set_up_registers();
    os_measure(PERFEVTSEL0, ENABLE_KERNEL | INTERRUPT | INSTRUCTIONS, 0, CLIENT_ITERATIONS);
    os_measure(PERFEVTSEL0 + 1, ENABLE_KERNEL | BRANCHES, 0, CLIENT_ITERATIONS);
    os_interrupts_restore(flags | 0x200); /* the pending interrupt is taken here */
    os_interrupts_off();
    os_rdmsr(PMC0, &value[0]);
    os_rdmsr(PMC0 + 1, &value[1]);
    set_up_registers();
    os_wrmsr(PMC0, 0);
    apic_write(APIC_LVT_PERFORMANCE, old_entry);
    *gate = old;
    os_interrupts_restore(flags);

    client_note(report, CLIENT_COUNT, 0, STATUS_SUCCESS, value[0] + PERIOD);
    client_note(report, CLIENT_COUNT, 1, STATUS_SUCCESS, value[1]);
    client_note(report, CLIENT_INTERRUPT, here, STATUS_SUCCESS,
                here < MAX_PROCESSORS ? interrupts[here] : 0);
}

void client_run(struct client_report *report)
{
    find_apic();
    for (uint32_t i = 0; i < os_processors(); i++)
        os_on_processor(i, count_here, report);
    if (apic)
        MmUnmapIoSpace((void *)apic, 4096);
    apic = NULL;
}

void client_free(struct client_report *report)
{
    (void)report;
}

NTSTATUS client_request(ULONG code, struct client_msr *msr)
{
    (void)code;
    (void)msr;
    return STATUS_INVALID_DEVICE_REQUEST;
}
