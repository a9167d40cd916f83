/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A nested guest under SVM, as small as one can be: it runs in this image's own address space until
 * it calls. GuestOnly counters see its instructions and no others, HostOnly counters all but its,
 * and a counter's overflow in the guest leaves it at the very next instruction. VMRUN of a guest
 * that has a virtual interrupt loses none of the host's, and what it injects comes once.
 */
#include "amd.h"
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "memory.h"
#include "pmu.h"
#include "programs.h"
#include "report.h"
#include "trap.h"
#include "x86.h"

#define MSR_VM_HSAVE_PA 0xc0010117u

/* APM Vol. 2, appendix "VMCB Layout": what is needed of it, by offset. */
enum vmcb_field {
    VMCB_INTERCEPT_IRQ = 0x00c, /* bit 0: INTR, bit 1: NMI */
    VMCB_INTERCEPT_VM = 0x010,  /* bit 0: VMRUN, bit 1: VMMCALL */
    VMCB_ASID = 0x058,
    VMCB_INT_CTL = 0x060,
    VMCB_EXIT_CODE = 0x070,
    VMCB_EVENTINJ = 0x0a8,
    VMCB_ES = 0x400,
    VMCB_CS = 0x410,
    VMCB_SS = 0x420,
    VMCB_DS = 0x430,
    VMCB_GDTR = 0x460,
    VMCB_IDTR = 0x480,
    VMCB_CPL = 0x4cb,
    VMCB_EFER = 0x4d0,
    VMCB_CR4 = 0x548,
    VMCB_CR3 = 0x550,
    VMCB_CR0 = 0x558,
    VMCB_DR7 = 0x560,
    VMCB_DR6 = 0x568,
    VMCB_RFLAGS = 0x570,
    VMCB_RIP = 0x578,
    VMCB_RSP = 0x5d8,
    VMCB_RAX = 0x5f8,
};

#define INTERCEPT_INTR 1u
#define INTERCEPT_NMI 2u

#define V_IRQ (1ul << 8)
#define V_IGN_TPR (1ul << 20)
#define V_INTR_MASKING (1ul << 24)

#define EXIT_NMI 0x61
#define EXIT_VMMCALL 0x81

#define CODE_64 0xa9bul << 16 | 0xfffffffful << 32
#define DATA_64 0xc93ul << 16 | 0xfffffffful << 32
#define DPL_3 (0x60ul << 16 | 3)

#define VECTOR_INJECTED 0x60
#define VECTOR_TICK 0x61
#define INJECT(type, vector) (1ul << 31 | (type) << 8 | (vector))

#define ROUNDS 1000
#define TICKS 20000
#define TICK_NS 20000
#define ENTRIES 10
#define INJECTIONS 5000
#define INTERRUPT_FRAME 40 /* SS, RSP, RFLAGS, CS, RIP */

static uint8_t *vmcb;

static uint64_t *field(enum vmcb_field offset)
{
    return (uint64_t *)(vmcb + offset);
}

/*
 * VMRUN is the host's; VMMCALL does not complete, for it is intercepted. Everything else of the
 * processor's state is the host's own: nothing is loaded from the VMCB but by VMRUN.
 */
uint64_t enter_guest(uint64_t vmcb_address);
extern const uint8_t guest_code[], guest_call[], guest_iret[];
asm(".pushsection .text\n"
    "enter_guest:\n"
    "    mov %rdi, %rax\n"
    "    vmrun\n"
    "    stgi\n"
    "    ret\n"
    "guest_code:\n"
    "    mov $1000, %edi\n"
    "1:  dec %rdi\n"
    "    jnz 1b\n"
    "guest_call:\n"
    "    vmmcall\n"
    "guest_iret:\n"
    "    iretq\n"
    ".popsection\n");
#define VMRUN_INSNS 4 /* WRMSR, CALL, MOV, and itself */
#define HOST_INSNS (MEASURE_INSNS + 4)
#define HOST_BRANCHES (MEASURE_BRANCHES + 1)
#define GUEST_INSNS (1 + 2 * ROUNDS)
#define GUEST_BRANCHES ROUNDS

/* Where the guest is after n instructions: MOV, then DEC and JNZ by turns. */
static uint64_t guest_place(uint64_t n)
{
    const uint64_t start = (uintptr_t)guest_code, dec = start + 5, jnz = dec + 3;

    if (n == 0)
        return start;
    if (n == GUEST_INSNS)
        return jnz + 2;
    return n % 2 ? dec : jnz;
}

static uint64_t read_cr0(void)
{
    uint64_t value;

    asm volatile("mov %%cr0, %0" : "=r"(value));
    return value;
}

struct __attribute__((packed)) table {
    uint16_t limit;
    uint64_t base;
};

static void prepare_guest(void)
{
    struct table gdt, idt;

    memset(vmcb, 0, PAGE_SIZE);
    *field(VMCB_INTERCEPT_VM) = 3;
    *(uint32_t *)(vmcb + VMCB_INTERCEPT_IRQ) = INTERCEPT_NMI;
    *field(VMCB_ASID) = 1;
    *field(VMCB_CS) = SEL_KERNEL_CODE | CODE_64;
    *field(VMCB_SS) = *field(VMCB_DS) = *field(VMCB_ES) = SEL_KERNEL_DATA | DATA_64;
    asm volatile("sgdt %0\nsidt %1" : "=m"(gdt), "=m"(idt));
    *field(VMCB_GDTR) = (uint64_t)gdt.limit << 32;
    *field(VMCB_GDTR + 8) = gdt.base;
    *field(VMCB_IDTR) = (uint64_t)idt.limit << 32;
    *field(VMCB_IDTR + 8) = idt.base;
    *field(VMCB_EFER) = rdmsr(MSR_EFER);
    *field(VMCB_CR0) = read_cr0();
    *field(VMCB_CR3) = read_cr3();
    *field(VMCB_CR4) = read_cr4();
    *field(VMCB_DR6) = 0xffff0ff0;
    *field(VMCB_DR7) = 0x400;
    *field(VMCB_RFLAGS) = 2;
    *field(VMCB_RIP) = (uintptr_t)guest_code;
}

static void prepare_injection(uint8_t *stack, uint64_t event)
{
    prepare_guest();
    *field(VMCB_RSP) = (uintptr_t)stack + PAGE_SIZE;
    *field(VMCB_EVENTINJ) = event;
}

static void put_guest_in_ring3(void)
{
    *field(VMCB_CS) = SEL_USER_CODE | CODE_64 | DPL_3;
    *field(VMCB_SS) = *field(VMCB_DS) = *field(VMCB_ES) = SEL_USER_DATA | DATA_64 | DPL_3;
    vmcb[VMCB_CPL] = 3;
}

/* What the counter, preset to this value, makes of the guest that has been prepared. */
static uint64_t count_prepared(uint64_t select, uint64_t value)
{
    wrmsr(MSR_LEGACY_CTR(0), value);
    pmu_measure(MSR_LEGACY_CTL(0), select | EVTSEL_EN, 0, enter_guest, (uintptr_t)vmcb);
    return rdmsr(MSR_LEGACY_CTR(0));
}

static uint64_t count(uint64_t select, uint64_t value)
{
    prepare_guest();
    return count_prepared(select, value);
}

static void test_counts(void)
{
    static const struct {
        const char *name;
        uint64_t bits;
        bool host, guest;
    } rows[] = {
        {"neither", 0, true, true},
        {"GuestOnly", GUEST_ONLY, false, true},
        {"HostOnly", HOST_ONLY, true, false},
        {"both", GUEST_ONLY | HOST_ONLY, true, true},
    };

    for (unsigned r = 0; r < ARRAY_SIZE(rows); r++) {
        uint64_t host = rows[r].host, guest = rows[r].guest, flags = rows[r].bits | EVTSEL_OS;

        report_equal(count(AMD_INSTRUCTIONS | flags, 0), host * HOST_INSNS + guest * GUEST_INSNS,
                     "%s: instructions", rows[r].name);
        report_equal(*field(VMCB_EXIT_CODE), EXIT_VMMCALL, "%s: the guest calls", rows[r].name);
        report_equal(count(AMD_CYCLES | flags, 0), host * HOST_INSNS + guest * GUEST_INSNS,
                     "%s: cycles", rows[r].name);
        report_equal(count(AMD_BRANCHES | flags, 0), host * HOST_BRANCHES + guest * GUEST_BRANCHES,
                     "%s: branches", rows[r].name);
        report_equal(count(AMD_INSTRUCTIONS | rows[r].bits | EVTSEL_USR, 0), 0,
                     "%s: nothing in ring 3", rows[r].name);
    }
}

static volatile uint64_t pmis;

static void count_pmi(struct trap_frame *frame)
{
    (void)frame;
    pmis++;
}

/* The NMI of an overflow in the guest is intercepted, and the host's to take after STGI. */
static void test_overflow(void)
{
    uint64_t select = AMD_INSTRUCTIONS | EVTSEL_OS | EVTSEL_INT | GUEST_ONLY;
    unsigned wrong_place = 0, wrong_exit = 0, wrong_count = 0, wrong_pmi = 0;

    trap_set(EXC_NMI, count_pmi);
    apic_write(APIC_LVT_PMI, APIC_DELIVERY_NMI);
    for (uint64_t n = 1; n <= GUEST_INSNS; n += 7) {
        uint64_t value;

        pmis = 0;
        value = count(select, (0 - n) & AMD_COUNTER_MASK);
        wrong_exit += *field(VMCB_EXIT_CODE) != EXIT_NMI;
        if (*field(VMCB_RIP) != guest_place(n) && !wrong_place++)
            printf("# after %lu: at %#lx, want %#lx\n", n, *field(VMCB_RIP), guest_place(n));
        wrong_count += value != 0;
        wrong_pmi += pmis != 1;
    }
    report_equal(wrong_exit, 0, "overflow: not left by NMI");
    report_equal(wrong_place, 0, "overflow: not left at the next instruction");
    report_equal(wrong_count, 0, "overflow: wrong counts");
    report_equal(wrong_pmi, 0, "overflow: not one PMI");
}

static void test_ring3(void)
{
    static const struct {
        const char *name;
        uint64_t flags, want;
    } rows[] = {
        {"USR", EVTSEL_USR, GUEST_INSNS},
        {"OS", EVTSEL_OS, HOST_INSNS},
        {"USR and OS", EVTSEL_USR | EVTSEL_OS, HOST_INSNS + GUEST_INSNS},
        {"USR, GuestOnly", EVTSEL_USR | GUEST_ONLY, GUEST_INSNS},
        {"OS, GuestOnly", EVTSEL_OS | GUEST_ONLY, 0},
        {"USR, HostOnly", EVTSEL_USR | HOST_ONLY, 0},
        {"OS, HostOnly", EVTSEL_OS | HOST_ONLY, HOST_INSNS},
    };

    for (unsigned r = 0; r < ARRAY_SIZE(rows); r++) {
        prepare_guest();
        put_guest_in_ring3();
        report_equal(count_prepared(AMD_INSTRUCTIONS | rows[r].flags, 0), rows[r].want,
                     "guest in ring 3: %s", rows[r].name);
    }
}

/* An event that VMRUN injects is no instruction of the guest's; the handler's IRET is. */
static void test_injection(void)
{
    static const struct {
        const char *name;
        uint64_t event;
    } rows[] = {
        {"interrupt", INJECT(0, VECTOR_INJECTED)},
        {"exception", INJECT(3, EXC_BP)},
    };
    uint8_t *stack = pages_alloc(1);

    trap_set_entry(EXC_BP, guest_iret);
    trap_set_entry(VECTOR_INJECTED, guest_iret);
    for (unsigned r = 0; r < ARRAY_SIZE(rows); r++) {
        prepare_injection(stack, rows[r].event);
        report_equal(count_prepared(AMD_INSTRUCTIONS | EVTSEL_OS | GUEST_ONLY, 0), GUEST_INSNS + 1,
                     "injected %s: instructions", rows[r].name);
        report_equal(*field(VMCB_EXIT_CODE), EXIT_VMMCALL, "injected %s: the guest calls",
                     rows[r].name);
    }
}

/* VMRUN itself overflows: the guest is left before its first instruction. */
static void test_overflow_of_vmrun(void)
{
    static const uint64_t modes[] = {0, HOST_ONLY};

    for (unsigned m = 0; m < ARRAY_SIZE(modes); m++) {
        pmis = 0;
        count(AMD_INSTRUCTIONS | EVTSEL_OS | EVTSEL_INT | modes[m],
              (0 - (uint64_t)VMRUN_INSNS) & AMD_COUNTER_MASK);
        report_equal(*field(VMCB_EXIT_CODE), EXIT_NMI, "overflow of VMRUN: left by NMI");
        report_equal(*field(VMCB_RIP), guest_place(0), "overflow of VMRUN: where");
        report_equal(pmis, 1, "overflow of VMRUN: PMIs");
    }
}

static volatile bool ticked;

static void tick(struct trap_frame *frame)
{
    (void)frame;
    ticked = true;
    apic_eoi();
}

/*
 * The host's timer interrupts while guests are entered that have an interrupt of their own pending,
 * and do not take it. Each tick must come, and not only when something else makes the APIC look
 * again.
 */
static void test_host_interrupts(void)
{
    unsigned lost = 0;

    prepare_guest();
    *(uint32_t *)(vmcb + VMCB_INTERCEPT_IRQ) = INTERCEPT_INTR | INTERCEPT_NMI;
    *field(VMCB_INT_CTL) = V_IRQ | V_IGN_TPR | V_INTR_MASKING;
    *field(VMCB_RIP) = (uintptr_t)guest_call;
    trap_set(VECTOR_TICK, tick);
    sti();
    for (unsigned n = 0; n < TICKS; n++) {
        ticked = false;
        apic_timer_once(VECTOR_TICK, TICK_NS + n % 100);
        while (!ticked && !apic_pending(VECTOR_TICK))
            for (unsigned entry = 0; entry < ENTRIES; entry++)
                enter_guest((uintptr_t)vmcb);
        spin(ROUNDS);
        lost += !ticked;
    }
    cli();
    apic_timer_stop();
    report_equal(lost, 0, "lost timer interrupts of the host");
}

static uint8_t *guest_stack;
static volatile bool injecting;
static unsigned twice;

/* Its handler is the guest's code, which calls with one frame on the stack. */
static void inject(struct trap_frame *frame)
{
    (void)frame;
    for (unsigned n = 0; injecting && n < INJECTIONS; n++) {
        prepare_injection(guest_stack, INJECT(0, VECTOR_INJECTED));
        enter_guest((uintptr_t)vmcb);
        twice += *field(VMCB_RSP) != (uintptr_t)guest_stack + PAGE_SIZE - INTERRUPT_FRAME;
    }
    injecting = false;
}

static void send_nmis(void *unused)
{
    (void)unused;
    while (injecting) {
        apic_send_nmi(0);
        spin(ROUNDS);
    }
}

/*
 * In an NMI's handler no other NMI is taken, but each that another processor sends makes QEMU look
 * whether there is something to do.
 */
static void test_injected_once(void)
{
    guest_stack = pages_alloc(1);
    trap_set_entry(VECTOR_INJECTED, guest_code);
    trap_set(EXC_NMI, inject);
    injecting = true;
    on_cpu_start(1, send_nmis, NULL);
    while (injecting)
        spin(1);
    on_cpu_wait(1);
    report_equal(twice, 0, "injected interrupts that came twice");
}

void guest_main(void)
{
    vmcb = pages_alloc(1);
    wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SVME);
    wrmsr(MSR_VM_HSAVE_PA, (uintptr_t)pages_alloc(1));
    test_counts();
    test_ring3();
    test_injection();
    test_overflow();
    test_overflow_of_vmrun();
    test_host_interrupts();
    test_injected_once();
}
