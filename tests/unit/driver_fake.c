/* SPDX-License-Identifier: BSD-3-Clause */

#include "driver_fake.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;
struct fake_status fake_status;
struct vpmu driver;

/* --- The machine --- */

enum {
    IA32_PMC0 = 0xc1,
    IA32_PERFEVTSEL0 = 0x186,
    IA32_FIXED_CTR0 = 0x309,
    IA32_FIXED_CTR_CTRL = 0x38d,
    IA32_PERF_GLOBAL_CTRL = 0x38f,
    FIXED = 32,
};

uint64_t *fake_msr(uint32_t processor, uint32_t number)
{
    for (uint32_t i = 0; i < fake.msrs; i++) {
        if (fake.msr[processor][i].number == number)
            return &fake.msr[processor][i].value;
    }
    return NULL;
}

static void add_msr(uint32_t number, uint64_t value)
{
    assert(fake.msrs < FAKE_MSRS);
    for (uint32_t p = 0; p < FAKE_PROCESSORS; p++)
        fake.msr[p][fake.msrs] = (struct fake_msr){number, value};
    fake.msrs++;
}

static uint32_t control_msr(uint32_t index)
{
    if (fake.vendor == VPMU_VENDOR_AMD)
        return 0xc0010200 + 2 * index;
    return index >= FIXED ? IA32_FIXED_CTR_CTRL : IA32_PERFEVTSEL0 + index;
}

static uint32_t value_msr(uint32_t index)
{
    if (fake.vendor == VPMU_VENDOR_AMD)
        return 0xc0010201 + 2 * index;
    return index >= FIXED ? IA32_FIXED_CTR0 + index - FIXED : IA32_PMC0 + index;
}

static uint64_t all_counters(void)
{
    return ((1ull << fake.gp) - 1) | ((1ull << fake.fixed) - 1) << FIXED;
}

static void reset(void)
{
    fake = (struct fake){
        .processors = FAKE_PROCESSORS,
        .width = 48,
        .build = 19041,
        .refusal = STATUS_INSUFFICIENT_RESOURCES,
    };
    driver = (struct vpmu){0};
}

void fake_intel(uint32_t version, uint32_t gp, uint32_t fixed)
{
    reset();
    fake.vendor = VPMU_VENDOR_INTEL;
    fake.version = version;
    fake.gp = gp;
    fake.fixed = fixed;
    for (uint32_t i = 0; i < gp; i++) {
        add_msr(IA32_PERFEVTSEL0 + i, 0);
        add_msr(IA32_PMC0 + i, 0);
    }
    for (uint32_t i = 0; i < fixed; i++)
        add_msr(IA32_FIXED_CTR0 + i, 0);
    if (version >= 2) {
        add_msr(IA32_FIXED_CTR_CTRL, 0);
        add_msr(IA32_PERF_GLOBAL_CTRL, (1ull << gp) - 1);
    }
    vpmu_init(&driver, fake.per_processor, FAKE_PROCESSORS);
}

void fake_amd(void)
{
    reset();
    fake.vendor = VPMU_VENDOR_AMD;
    fake.gp = 6;
    for (uint32_t i = 0; i < 6; i++) {
        add_msr(control_msr(i), 0);
        add_msr(value_msr(i), 0);
    }
    vpmu_init(&driver, fake.per_processor, FAKE_PROCESSORS);
}

/* What counter `index` of a processor is set to: its event select, 0 if it does not count. */
static bool counts(uint32_t processor, uint32_t index, uint32_t *event)
{
    uint64_t *global = fake_msr(processor, IA32_PERF_GLOBAL_CTRL);
    uint64_t control = *fake_msr(processor, control_msr(index));
    static const uint32_t fixed_event[] = {0xc0, 0x3c, 0x13c, 0x1a4};

    if (global && !(*global >> index & 1))
        return false;
    if (index >= FIXED) {
        *event = fixed_event[index - FIXED];
        return control >> (4 * (index - FIXED)) & 3;
    }
    *event = control & 0xffff;
    return control & PMU_ENABLE && control & (PMU_USER | PMU_KERNEL);
}

static uint64_t distort(uint32_t index, uint32_t event, uint64_t events)
{
    if (fake.starved >> index & 1 || (fake.denied && event == fake.denied))
        return 0;
    if (fake.slow >> index & 1)
        return events / 2;
    return fake.wild >> index & 1 ? events * 10 : events;
}

static bool interrupts(uint32_t processor, uint32_t index)
{
    uint64_t control = *fake_msr(processor, control_msr(index));

    return index >= FIXED ? control >> (4 * (index - FIXED)) & PMU_FIXED_INTERRUPT
                          : control & PMU_INTERRUPT;
}

/* Returns the counter's bit if that made it overflow and it is to interrupt. */
static uint64_t add_events(uint32_t processor, uint32_t index, uint64_t events)
{
    uint64_t *value = fake_msr(processor, value_msr(index));
    uint64_t before = *value;

    *value = (before + events) & pmu_width_mask(fake.width);
    return *value < before && interrupts(processor, index) ? 1ull << index : 0;
}

/* The HAL's handler: each holder is called with its own bits, on the processor concerned. */
static void deliver(uint32_t processor, uint64_t bits)
{
    uint32_t here = fake.here;

    if (fake.loses_interrupts)
        return;
    fake.here = processor;
    for (uint32_t i = 0; i < FAKE_LIVE && bits; i++) {
        if (fake.set[i].live && fake.set[i].handler && bits & fake.set[i].counters)
            fake.set[i].handler(bits & fake.set[i].counters, (HANDLE)(uintptr_t)(i + 1));
    }
    fake.here = here;
}

bool os_rdmsr(uint32_t msr, uint64_t *value)
{
    uint64_t *at = fake_msr(fake.here, msr);

    if (!at)
        return false;
    *value = *at;
    return true;
}

static uint32_t index_of_control(uint32_t msr)
{
    for (uint32_t i = 0; i < fake.gp; i++) {
        if (control_msr(i) == msr)
            return i;
    }
    return FIXED;
}

/* 32 bits, their sign extended to the counter's width. */
static uint64_t legacy_write(uint64_t value)
{
    int64_t extended = (int32_t)value;

    return (uint64_t)extended & pmu_width_mask(fake.width);
}

bool os_wrmsr(uint32_t msr, uint64_t value)
{
    uint64_t *at = fake_msr(fake.here, msr);
    uint32_t control = index_of_control(msr);

    if (!at)
        return false;
    if (fake.vendor == VPMU_VENDOR_INTEL && msr >= IA32_PMC0 && msr < IA32_PMC0 + fake.gp)
        value = legacy_write(value);
    if (!((control < FIXED || msr == IA32_FIXED_CTR_CTRL) && fake.drops >> control & 1))
        *at = value;
    return true;
}

bool os_rdpmc(uint32_t selector, uint64_t *value)
{
    uint32_t index = selector >> 30 ? FIXED + (selector & 0xff) : selector;

    if (!(all_counters() >> index & 1) || fake.rdpmc_faults >> index & 1)
        return false;
    return os_rdmsr(value_msr(index), value);
}

bool os_measure(uint32_t msr, uint64_t on, uint64_t off, uint32_t iterations)
{
    assert(fake.interrupts_off);
    if (!os_wrmsr(msr, on))
        return false;
    for (uint64_t left = all_counters(); left; left &= left - 1) {
        uint32_t index = pmu_first(left), event = 0;
        bool branches;

        if (!counts(fake.here, index, &event))
            continue;
        branches = event == (fake.vendor == VPMU_VENDOR_AMD ? 0xc2u : 0xc4u);
        fake.pending |= add_events(
            fake.here, index,
            distort(index, event,
                    branches ? OS_WORK_BRANCHES(iterations) : OS_WORK_INSTRUCTIONS(iterations)));
    }
    return os_wrmsr(msr, off);
}

void fake_count(uint32_t processor, uint64_t events)
{
    uint64_t bits = 0;
    uint32_t event;

    for (uint64_t left = all_counters(); left; left &= left - 1) {
        uint32_t index = pmu_first(left);

        if (counts(processor, index, &event))
            bits |= add_events(processor, index, distort(index, event, events));
    }
    deliver(processor, bits);
}

bool fake_is_quiet(void)
{
    for (uint32_t p = 0; p < fake.processors; p++) {
        for (uint64_t left = all_counters(); left; left &= left - 1) {
            uint32_t index = pmu_first(left);
            if (*fake_msr(p, control_msr(index)) || *fake_msr(p, value_msr(index)))
                return false;
        }
        if (fake.user_rdpmc[p])
            return false;
    }
    return true;
}

static void vendor_name(uint32_t regs[4])
{
    static const uint32_t intel[] = {0x756e6547, 0x6c65746e, 0x49656e69};
    static const uint32_t amd[] = {0x68747541, 0x444d4163, 0x69746e65};

    memcpy(regs + 1, fake.vendor == VPMU_VENDOR_AMD ? amd : intel, sizeof(intel));
}

void os_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
    (void)subleaf;
    memset(regs, 0, 4 * sizeof(*regs));
    if (leaf == 0) {
        regs[0] = 0xd;
        vendor_name(regs);
    } else if (leaf == 0xb) {
        regs[1] = 1;
        regs[3] = FAKE_APIC_ID(fake.here);
    } else if (leaf == 0xa && fake.version) {
        regs[0] = fake.version | fake.gp << 8 | fake.width << 16 | 8u << 24;
        regs[1] = fake.unavailable;
        regs[3] = fake.fixed | fake.width << 5;
    } else if (leaf == 0x80000000 && fake.vendor == VPMU_VENDOR_AMD) {
        regs[0] = 0x80000008;
    } else if (leaf == 0x80000001 && fake.vendor == VPMU_VENDOR_AMD) {
        regs[2] = 1 << 23;
    }
}

uint64_t os_tsc(void)
{
    return 1;
}

void os_rest(void)
{
    fake.rests++;
    if (fake.on_rest)
        fake.on_rest();
}

uint64_t os_interrupts_off(void)
{
    bool was = fake.interrupts_off;

    fake.interrupts_off = true;
    return was;
}

void os_interrupts_restore(uint64_t flags)
{
    uint64_t bits = flags ? 0 : fake.pending;

    fake.interrupts_off = flags;
    if (!flags)
        fake.pending = 0;
    deliver(fake.here, bits);
}

bool os_user_rdpmc(bool allow)
{
    bool was = fake.user_rdpmc[fake.here];

    fake.user_rdpmc[fake.here] = allow;
    return was;
}

uint32_t os_processors(void)
{
    return fake.processors;
}

uint32_t os_this_processor(void)
{
    return fake.here;
}

NTSTATUS os_on_processor(uint32_t processor, os_work *work, void *context)
{
    uint32_t here = fake.here;

    if (processor >= fake.processors)
        return STATUS_INVALID_PARAMETER;
    assert(!fake.interrupts_off);
    fake.here = processor;
    work(context);
    fake.here = here;
    return STATUS_SUCCESS;
}

uint32_t os_build(void)
{
    return fake.build;
}

KIRQL os_irql(void)
{
    return PROFILE_LEVEL;
}

/* --- The status device --- */

void fake_status_reset(void)
{
    memset(&fake_status, 0, sizeof(fake_status));
    fake_status.registers = (struct vpmu_status_registers){
        .magic = VPMU_STATUS_MAGIC,
        .version = VPMU_STATUS_VERSION,
        .vcpus = FAKE_PROCESSORS,
        .source = VPMU_SOURCE_KVM,
        .shape_gp = 2,
        .granted_gp = 2,
        .changes = 1,
    };
    for (uint32_t i = 0; i < FAKE_PROCESSORS; i++) {
        fake_status.pages[i].page = (struct vpmu_status_page){
            .vcpu = i,
            .apic_id = FAKE_APIC_ID(i),
            .count = 2,
            .updated_ns = 1000,
            .counters = {{0, VPMU_COUNTER_BACKED, 0x4100c0, 100, 100},
                         {1, VPMU_COUNTER_STARVED, 0x41003c, 100, 10 * i}},
        };
    }
}

NTSTATUS fake_status_attach(void)
{
    NTSTATUS status = status_attach(&driver.status, &fake_status.registers, VPMU_STATUS_PAGE_SIZE,
                                    fake_status.pages, sizeof(fake_status.pages));

    if (NT_SUCCESS(status))
        status_interrupt(&driver.status, true);
    return status;
}

/* --- The HAL --- */

uint32_t fake_live(void)
{
    uint32_t live = 0;

    for (uint32_t i = 0; i < FAKE_LIVE; i++)
        live += fake.set[i].live;
    return live;
}

static NTSTATUS hold(struct fake_set set, PHANDLE handle)
{
    for (uint32_t i = 0; i < FAKE_LIVE; i++) {
        if (!fake.set[i].live) {
            set.live = true;
            fake.set[i] = set;
            *handle = (HANDLE)(uintptr_t)(i + 1);
            return STATUS_SUCCESS;
        }
    }
    return STATUS_NO_MEMORY;
}

NTSTATUS NTAPI HalAllocateHardwareCounters(PGROUP_AFFINITY GroupAffinity, ULONG GroupCount,
                                           PPHYSICAL_COUNTER_RESOURCE_LIST ResourceList,
                                           PHANDLE CounterSetHandle)
{
    struct fake_set set = {.whole = !ResourceList};

    assert(!GroupAffinity && !GroupCount && CounterSetHandle && !fake.interrupts_off);
    *CounterSetHandle = (HANDLE)(intptr_t)-1; /* as seen on failure: only the status tells */
    if (set.whole) {
        fake.wholes++;
        return fake.taken ? STATUS_UNSUCCESSFUL : hold(set, CounterSetHandle);
    }
    fake.lists++;
    assert(fake.build >= 18362);
    for (ULONG i = 0; i < ResourceList->Count; i++) {
        const PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR *d = &ResourceList->Descriptors[i];

        assert(!d->Flags && (d->Type == ResourceTypeSingle || d->Type == ResourceTypeOverflow));
        if (d->Type == ResourceTypeOverflow) {
            set.handler = d->u.OverflowHandler;
            if (fake.overflow_status)
                return fake.overflow_status;
        } else {
            set.counters |= 1ull << d->u.CounterIndex;
        }
    }
    if (set.counters & ~all_counters())
        return STATUS_INVALID_PARAMETER;
    if (set.counters & fake.taken)
        return fake.refusal;
    return hold(set, CounterSetHandle);
}

NTSTATUS NTAPI HalFreeHardwareCounters(HANDLE CounterSetHandle)
{
    uintptr_t number = (uintptr_t)CounterSetHandle;

    if (number - 1 >= FAKE_LIVE || !fake.set[number - 1].live) {
        fake.bad_frees++;
        return STATUS_INVALID_PARAMETER;
    }
    fake.set[number - 1].live = false;
    return STATUS_SUCCESS;
}

/* --- The profiling configuration --- */

NTSTATUS NTAPI KeSetHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG Count)
{
    assert(Count <= MAX_HW_COUNTERS);
    if (Count && fake.standing_count)
        return STATUS_WMI_ALREADY_ENABLED;
    if (Count && fake.set_status)
        return fake.set_status;
    if (fake.set_forgets)
        return STATUS_SUCCESS;
    if (Count)
        memcpy(fake.standing, CounterArray, Count * sizeof(*CounterArray));
    fake.standing_count = Count;
    return STATUS_SUCCESS;
}

NTSTATUS NTAPI KeQueryHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray,
                                                   ULONG MaximumCount, PULONG Count)
{
    *Count = fake.standing_count;
    if (MaximumCount < fake.standing_count)
        return STATUS_BUFFER_TOO_SMALL;
    memcpy(CounterArray, fake.standing, fake.standing_count * sizeof(*CounterArray));
    return STATUS_SUCCESS;
}

/* --- Requests --- */

NTSTATUS fake_request(const void *client, uint32_t code, const void *in, uint32_t in_length,
                      void *out, uint32_t out_length, uint32_t *written)
{
    uint32_t length = in_length > out_length ? in_length : out_length, ignored;
    void *buffer = length ? malloc(length) : NULL;
    NTSTATUS status;

    if (!written)
        written = &ignored;
    if (buffer)
        memset(buffer, 0xa5, length);
    if (in_length)
        memcpy(buffer, in, in_length);
    status = vpmu_ioctl(&driver, client, code, buffer, in_length, out_length, written);
    if (out && *written)
        memcpy(out, buffer, *written);
    free(buffer);
    return status;
}
