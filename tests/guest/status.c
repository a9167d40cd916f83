/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The status device, as a driver sees it that knows vpmu/status.h alone, and as a driver that does
 * all that it must not. -append: class=, policy=, vcpus= (those that may be), deny (branches are).
 */
#include "vpmu/status.h"
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "multiboot.h"
#include "pci.h"
#include "pmu.h"
#include "report.h"
#include "trap.h"
#include "vpmu/arbiter.h"
#include "x86.h"

#define VECTOR_STATUS 0x60
#define LOOKS 40 /* at a vCPU, within which what must be seen is seen */
#define READS 20000
#define ROUND 100000ul
#define BAR_REGISTERS 0
#define BAR_PAGES 2
#define BAR_MSIX 4
#define BAR_SIZE 4096u
#define MSIX_MASKED 1u
#define MSIX_ADDRESS 0xfee00000u

#define WORD(field) (offsetof(struct vpmu_status_registers, field) / 4)
#define WORDS (sizeof(struct vpmu_status_registers) / 4)

static struct {
    pci_function function;
    unsigned msix; /* its capability */
    volatile uint32_t *words;
    volatile struct vpmu_status_registers *registers;
    volatile uint8_t *pages;
    volatile uint32_t *vector; /* MSI-X table entry: address, its upper half, data, control */
} device;

static volatile unsigned interrupts;
static volatile bool stop;

/* Pages */

static volatile struct vpmu_status_page *page_of(unsigned vcpu)
{
    return (volatile void *)(device.pages + (size_t)vcpu * VPMU_STATUS_PAGE_SIZE);
}

/* docs/device.md has this loop. */
static void read_page(unsigned vcpu, struct vpmu_status_page *copy)
{
    const volatile struct vpmu_status_page *page = page_of(vcpu);
    uint32_t sequence;

    do {
        while ((sequence = page->sequence) & 1)
            pause();
        asm volatile("" : : : "memory");
        memcpy(copy, (const void *)page, sizeof(*copy));
        asm volatile("" : : : "memory");
    } while (page->sequence != sequence);
}

/* The record of a GP counter, or of a fixed one (32 + n). */
static struct vpmu_status_counter record_of(const struct vpmu_status_page *page, uint32_t index)
{
    for (unsigned i = 0; i < page->count; i++)
        if (page->counters[i].index == index)
            return page->counters[i];
    return (struct vpmu_status_counter){.index = index, .state = VPMU_COUNTER_STATES};
}

static void wait_look(unsigned vcpu)
{
    uint32_t before = page_of(vcpu)->sequence;

    while (page_of(vcpu)->sequence == before)
        pause();
}

/* Its record, as soon as it has this state, or after LOOKS. */
static struct vpmu_status_counter wait_state(unsigned vcpu, uint32_t index, uint32_t state)
{
    struct vpmu_status_page page;
    struct vpmu_status_counter record;

    for (unsigned i = 0;; i++) {
        read_page(vcpu, &page);
        record = record_of(&page, index);
        if (record.state == state || i == LOOKS)
            return record;
        wait_look(vcpu);
    }
}

/* Counters at work */

/* What each of the first GP counters counts, and the state that it has. */
static struct row {
    const char *name;
    enum pmu_event event;
    enum vpmu_counter_state state;
} rows[] = {
    {"instructions", EVENT_INSTRUCTIONS, VPMU_COUNTER_BACKED},
    {"last-level cache misses", EVENT_LLC_MISSES, VPMU_COUNTER_UNSUPPORTED},
    {"branches", EVENT_BRANCHES, VPMU_COUNTER_BACKED},
};

static void start_counters(void *arg)
{
    (void)arg;
    pmu_clear();
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
        pmu_program(pmu_counter(i), rows[i].event, EVTSEL_USR | EVTSEL_OS, 0);
    pmu_program(pmu_counter(pmu.gp), EVENT_INSTRUCTIONS, EVTSEL_USR | EVTSEL_OS, 0);
    wrmsr(MSR_GLOBAL_CTRL, pmu_gp_bits() | pmu_fixed_bits());
}

static void stop_counters(void *arg)
{
    (void)arg;
    pmu_clear();
}

static void on_each_cpu(cpu_work *work)
{
    for (unsigned i = 0; i < cpu_count(); i++)
        on_cpu(i, work, NULL);
}

static void work_on(void *arg)
{
    (void)arg;
    while (!stop)
        spin(ROUND);
}

static void set_others_to_work(void)
{
    stop = false;
    for (unsigned i = 1; i < cpu_count(); i++)
        on_cpu_start(i, work_on, NULL);
}

static void end_work(void)
{
    stop = true;
    for (unsigned i = 1; i < cpu_count(); i++)
        on_cpu_wait(i);
}

/* Tests */

static bool find_device(void)
{
    if (!pci_find(VPMU_STATUS_PCI_VENDOR, VPMU_STATUS_PCI_DEVICE, &device.function))
        return false;
    pci_write(device.function, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    device.registers = (volatile void *)pci_bar(device.function, BAR_REGISTERS);
    device.words = (volatile uint32_t *)device.registers;
    device.pages = (volatile uint8_t *)pci_bar(device.function, BAR_PAGES);
    device.msix = pci_capability(device.function, PCI_CAP_MSIX);
    return device.msix;
}

static uint64_t whole_power(uint64_t n)
{
    uint64_t power = 1;

    while (power < n)
        power *= 2;
    return power;
}

static void test_function(void)
{
    uint32_t table = pci_read(device.function, device.msix + PCI_MSIX_TABLE);
    uint32_t control = pci_read(device.function, device.msix);

    report_equal(pci_read(device.function, PCI_CLASS) >> 16, VPMU_STATUS_PCI_CLASS, "class");
    report_equal(pci_bar_size(device.function, BAR_REGISTERS), BAR_SIZE, "size of BAR 0");
    report_equal(pci_bar_size(device.function, BAR_PAGES),
                 whole_power(device.registers->vcpus) * VPMU_STATUS_PAGE_SIZE, "size of BAR 2");
    report_equal(table & PCI_MSIX_BAR, BAR_MSIX, "BAR of MSI-X");
    report_equal(control >> 16 & 0x7ff, 0, "vectors, less one");
    device.vector =
        (volatile uint32_t *)(pci_bar(device.function, BAR_MSIX) + (table & ~PCI_MSIX_BAR));
}

static void test_registers(void)
{
    volatile struct vpmu_status_registers *r = device.registers;

    report_equal(r->magic, VPMU_STATUS_MAGIC, "magic");
    report_equal(r->version, VPMU_STATUS_VERSION, "version");
    report_equal(r->vcpus, boot_option_number("vcpus", cpu_count()), "vcpus");
    report_equal(r->source, VPMU_SOURCE_TCG, "source");
    report_equal(r->event_class, boot_option_number("class", 0), "event_class");
    report_equal(r->policy, boot_option_number("policy", 0), "policy");
    report_equal(r->shape_gp, pmu.gp, "shape_gp");
    report_equal(r->shape_fixed, pmu_fixed_bits() >> STATUS_FIXED, "shape_fixed");
    report_equal(r->granted_gp, r->shape_gp, "granted_gp");
    report_equal(r->granted_fixed, r->shape_fixed, "granted_fixed");
    report_equal(r->revocations, 0, "revocations");
    report_equal(r->interrupt, 0, "interrupt");
    report_equal(r->request_status, VPMU_STATUS_SUCCESS, "request_status");
    for (size_t i = WORDS; i < BAR_SIZE / 4; i++)
        if (device.words[i])
            report(false, "word %zu, which is not described, is %#x", i, device.words[i]);
}

static void test_page(unsigned vcpu)
{
    struct vpmu_status_page page;
    bool ordered = true;

    read_page(vcpu, &page);
    report_equal(page.vcpu, vcpu, "page %u: vcpu", vcpu);
    report_equal(page.apic_id, vcpu, "page %u: apic_id", vcpu);
    report_equal(page.count, vcpu < cpu_count() ? pmu_counters() : 0, "page %u: count", vcpu);
    for (unsigned i = 0; i < page.count; i++)
        ordered &= page.counters[i].index == (i < pmu.gp ? i : 32 + i - pmu.gp);
    report(ordered, "page %u: order of the indices", vcpu);
    for (size_t i = 0; i < ARRAY_SIZE(page.reserved); i++)
        report_equal(page.reserved[i], 0, "page %u: reserved %zu", vcpu, i);
}

static void test_pages(void)
{
    unsigned vcpus = device.registers->vcpus;

    for (unsigned i = 0; i < vcpus; i++)
        test_page(i);
}

static void check_times(const struct vpmu_status_counter *c, const char *name)
{
    bool backed = c->state == VPMU_COUNTER_BACKED;

    report(c->enabled_ns > 0, "%s: %lu ns enabled", name, c->enabled_ns);
    report(backed ? c->backed_ns > 0 : !c->backed_ns, "%s: %lu ns backed", name, c->backed_ns);
}

/* The first look finds it enabled, the second that it has been for some time. */
static void test_states_of(unsigned vcpu)
{
    struct vpmu_status_page page;
    uint32_t fixed = 32;

    report_prefix_push("vCPU %u", vcpu);
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
        report_equal(wait_state(vcpu, i, rows[i].state).state, rows[i].state, "%s: state",
                     rows[i].name);
    report_equal(wait_state(vcpu, fixed, VPMU_COUNTER_BACKED).state, VPMU_COUNTER_BACKED,
                 "fixed: state");
    wait_look(vcpu);
    read_page(vcpu, &page);
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        struct vpmu_status_counter c = record_of(&page, i);

        report_equal(c.selector, rows[i].event | EVTSEL_USR | EVTSEL_OS | EVTSEL_EN, "%s: selector",
                     rows[i].name);
        check_times(&c, rows[i].name);
    }
    report_equal(record_of(&page, fixed).selector, FIXED_OS | FIXED_USR, "fixed: selector");
    report_equal(record_of(&page, 3).state, VPMU_COUNTER_GRANTED, "not enabled: state");
    report_prefix_pop();
}

static unsigned inconsistencies(const struct vpmu_status_page *page)
{
    unsigned wrong = page->sequence & 1;

    for (unsigned i = 0; i < page->count; i++) {
        const struct vpmu_status_counter *c = &page->counters[i];

        wrong += c->backed_ns > c->enabled_ns || c->enabled_ns > page->updated_ns ||
                 c->state >= VPMU_COUNTER_STATES;
    }
    return wrong;
}

/* Read as often as can be while the host writes. */
static void test_readers(void)
{
    struct vpmu_status_page page;
    unsigned wrong = 0, changes = 0;
    uint64_t last[MAX_CPUS] = {0};

    for (unsigned i = 0; i < READS || changes < 4 * cpu_count(); i++) {
        unsigned vcpu = i % cpu_count();

        read_page(vcpu, &page);
        wrong += inconsistencies(&page) + (page.updated_ns < last[vcpu]);
        changes += page.updated_ns != last[vcpu];
        last[vcpu] = page.updated_ns;
    }
    report_equal(wrong, 0, "pages that are not consistent");
}

static void test_states(void)
{
    on_each_cpu(start_counters);
    set_others_to_work();
    for (unsigned i = 0; i < cpu_count(); i++)
        test_states_of(i);
    test_readers();
    end_work();
    on_each_cpu(stop_counters);
    for (unsigned i = 0; i < cpu_count(); i++)
        report_equal(wait_state(i, 0, VPMU_COUNTER_GRANTED).state, VPMU_COUNTER_GRANTED,
                     "vCPU %u: stopped: state", i);
}

static void on_interrupt(struct trap_frame *frame)
{
    (void)frame;
    interrupts++;
    apic_eoi();
}

static void enable_vector(void)
{
    trap_set(VECTOR_STATUS, on_interrupt);
    device.vector[0] = MSIX_ADDRESS;
    device.vector[1] = 0;
    device.vector[2] = VECTOR_STATUS;
    device.vector[3] = 0;
    pci_write(device.function, device.msix,
              pci_read(device.function, device.msix) | PCI_MSIX_ENABLE);
}

static bool wait_interrupt(void)
{
    for (unsigned i = 0; i < LOOKS && !interrupts; i++)
        wait_look(0);
    return interrupts;
}

static volatile uint32_t *pending_bits(void)
{
    uint32_t where = pci_read(device.function, device.msix + PCI_MSIX_PENDING);

    return (volatile uint32_t *)(pci_bar(device.function, where & PCI_MSIX_BAR) +
                                 (where & ~PCI_MSIX_BAR));
}

static void test_interrupt(void)
{
    uint32_t changes;

    enable_vector();
    sti();
    interrupts = 0;
    changes = device.registers->changes;
    device.registers->interrupt = 1;
    report_equal(device.registers->interrupt, 1, "interrupt: enabled");
    start_counters(NULL);
    report(wait_interrupt(), "interrupt: comes with a change");
    report(device.registers->changes > changes, "interrupt: changes goes up");

    wait_state(0, 0, VPMU_COUNTER_BACKED);
    device.vector[3] = MSIX_MASKED;
    interrupts = 0;
    stop_counters(NULL);
    wait_state(0, 0, VPMU_COUNTER_GRANTED);
    wait_look(0);
    report_equal(interrupts, 0, "interrupt: masked");
    report_equal(*pending_bits() & 1, 1, "interrupt: pending");
    device.vector[3] = 0;
    report(wait_interrupt(), "interrupt: comes when unmasked");

    device.registers->interrupt = 0;
    interrupts = 0;
    changes = device.registers->changes;
    start_counters(NULL);
    wait_state(0, 0, VPMU_COUNTER_BACKED);
    stop_counters(NULL);
    wait_state(0, 0, VPMU_COUNTER_GRANTED);
    report(device.registers->changes > changes, "interrupt: changes goes up, disabled, too");
    report_equal(interrupts, 0, "interrupt: none when disabled");
    cli();
}

static uint32_t ask(uint32_t gp, uint32_t fixed, uint32_t request)
{
    device.registers->request_gp = gp;
    device.registers->request_fixed = fixed;
    device.registers->request = request;
    while (device.registers->request_status == VPMU_STATUS_PENDING)
        pause();
    return device.registers->request_status;
}

static void check_granted(const char *when, uint32_t gp, uint32_t fixed)
{
    report_equal(device.registers->granted_gp, gp, "%s: granted_gp", when);
    report_equal(device.registers->granted_fixed, fixed, "%s: granted_fixed", when);
}

static void test_refusals(uint32_t gp, uint32_t fixed)
{
    const struct {
        const char *name;
        uint32_t gp, fixed, request;
    } requests[] = {
        {"one counter too many", gp + 1, fixed, VPMU_REQUEST_RESIZE},
        {"65536 more", gp + 0x10000, fixed, VPMU_REQUEST_RESIZE},
        {"all", UINT32_MAX, UINT32_MAX, VPMU_REQUEST_RESIZE},
        {"a fixed counter too many", gp, fixed + 1 + fixed, VPMU_REQUEST_RESIZE},
        {"fixed counter 31", gp, fixed | 1u << 31, VPMU_REQUEST_RESIZE},
        {"request 0", gp, fixed, 0},
        {"request 2", gp, fixed, 2},
        {"request 2^32 - 1", gp, fixed, UINT32_MAX},
    };

    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        report_equal(ask(requests[i].gp, requests[i].fixed, requests[i].request),
                     VPMU_STATUS_INVALID_PARAMETER, "%s: status", requests[i].name);
        check_granted(requests[i].name, gp, fixed);
        report_equal(device.registers->request_gp, requests[i].gp, "%s: request_gp stays",
                     requests[i].name);
        report_equal(device.registers->request, 0, "%s: request reads as 0", requests[i].name);
    }
}

static void test_mailbox(void)
{
    uint32_t gp = device.registers->shape_gp, fixed = device.registers->shape_fixed;

    report_prefix_push("mailbox");
    sti();
    device.registers->interrupt = 1;
    interrupts = 0;
    report_equal(ask(gp - 1, fixed & 1, VPMU_REQUEST_RESIZE), VPMU_STATUS_SUCCESS, "give back");
    check_granted("given back", gp - 1, fixed & 1);
    report(wait_interrupt(), "the answer interrupts");
    for (unsigned i = 0; i < cpu_count(); i++)
        report_equal(wait_state(i, gp - 1, VPMU_COUNTER_ABSENT).state, VPMU_COUNTER_ABSENT,
                     "vCPU %u: what was given back: state", i);
    report_equal(ask(gp, fixed, VPMU_REQUEST_RESIZE), VPMU_STATUS_SUCCESS, "grow");
    check_granted("grown", gp, fixed);
    for (unsigned i = 0; i < cpu_count(); i++)
        report_equal(wait_state(i, gp - 1, VPMU_COUNTER_GRANTED).state, VPMU_COUNTER_GRANTED,
                     "vCPU %u: what has come again: state", i);
    device.registers->interrupt = 0;
    cli();
    test_refusals(gp, fixed);
    report_equal(ask(gp, fixed, VPMU_REQUEST_RESIZE), VPMU_STATUS_SUCCESS, "the same again");
    report_prefix_pop();
}

/* An access of any size, anywhere; compilers know nothing of what is not aligned. */
static void access(volatile void *address, unsigned size, uint64_t value)
{
    switch (size) {
    case 1:
        asm volatile("movb %b1, %0; movb %0, %b1" : "+m"(*(volatile char *)address), "+r"(value));
        break;
    case 2:
        asm volatile("movw %w1, %0; movw %0, %w1" : "+m"(*(volatile char *)address), "+r"(value));
        break;
    case 4:
        asm volatile("movl %k1, %0; movl %0, %k1" : "+m"(*(volatile char *)address), "+r"(value));
        break;
    default:
        asm volatile("movq %1, %0; movq %0, %1" : "+m"(*(volatile char *)address), "+r"(value));
    }
}

static void hammer(volatile void *start, size_t length)
{
    static const uint64_t patterns[] = {0, UINT64_MAX, 0x5a5a5a5a5a5a5a5a};

    for (unsigned size = 1; size <= 8; size *= 2)
        for (size_t offset = 0; offset + size <= length; offset++)
            for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
                access((volatile uint8_t *)start + offset, size, patterns[i]);
}

/* All that a driver is told, but for what the hammer may write. */
static void read_words(uint32_t words[WORDS])
{
    static const size_t writable[] = {WORD(interrupt), WORD(request_gp), WORD(request_fixed),
                                      WORD(request_status)};

    for (size_t i = 0; i < WORDS; i++)
        words[i] = device.words[i];
    for (size_t i = 0; i < ARRAY_SIZE(writable); i++)
        words[writable[i]] = 0;
}

static void test_hostile(void)
{
    static uint32_t before[WORDS], after[WORDS];

    report_prefix_push("hostile");
    pci_write(device.function, device.msix,
              pci_read(device.function, device.msix) & ~PCI_MSIX_ENABLE);
    for (unsigned i = 0; i < 2 * cpu_count(); i++)
        wait_look(i % cpu_count()); /* what the requests have changed is told */
    read_words(before);
    hammer(device.words, BAR_SIZE);
    hammer(device.pages, (size_t)device.registers->vcpus * VPMU_STATUS_PAGE_SIZE);
    hammer((volatile void *)pci_bar(device.function, BAR_MSIX), BAR_SIZE);
    read_words(after);
    for (size_t i = 0; i < WORDS; i++)
        report_equal(after[i], before[i], "word %zu", i);
    device.registers->interrupt = 0;
    test_pages();
    report_prefix_pop();
}

void guest_main(void)
{
    pmu_detect();
    if (boot_option("deny"))
        rows[2].state = VPMU_COUNTER_FILTERED;
    if (!find_device()) {
        report(false, "a status device on PCI");
        return;
    }
    test_function();
    test_registers();
    test_pages();
    test_states();
    test_interrupt();
    test_mailbox();
    test_hostile();
    test_interrupt();
    test_mailbox();
    test_states();
}
