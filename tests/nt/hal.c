/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who holds which counter is hv/arbiter's business; this file is the edge that
 * knows CPUID, the MSRs, the local APIC and the drivers' addresses. Registers:
 * SDM Vol. 3, chapter 20 (architectural performance monitoring).
 */
#include "hal.h"

#include "apic.h"
#include "check.h"
#include "image.h"
#include "libc.h"
#include "memory.h"
#include "multiboot.h"
#include "processor.h"
#include "vpmu/arbiter.h"

enum {
    MSR_EVNTSEL0 = 0x186,
    MSR_MISC_ENABLE = 0x1a0,
    MSR_PERF_CAPABILITIES = 0x345,
    MSR_FIXED_CTRL = 0x38d,
    MSR_GLOBAL_STATUS = 0x38e,
    MSR_GLOBAL_CTRL = 0x38f,
    MSR_GLOBAL_OVF_CTRL = 0x390,
};

#define CPUID_1_EDX_DS (1u << 21)
#define MISC_ENABLE_PEBS_UNAVAILABLE (1u << 12)
#define HV_MONITORS_COUNTERS (1u << 2) /* 0x40000003 EDX, TLFS */

struct hal_pmu hal_pmu;

static struct vpmu_arbiter *arbiter;
static struct lock arbiter_lock; /* taken with interrupts off: the overflow interrupt needs it */
static vpmu_lease kernel_lease;
static volatile unsigned overflows, unclaimed;

_Static_assert(sizeof(GROUP_AFFINITY) == sizeof(struct vpmu_affinity), "passed through");
_Static_assert(sizeof(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR) == sizeof(struct vpmu_resource),
               "passed through");
_Static_assert(sizeof(HARDWARE_COUNTER) == sizeof(struct vpmu_hardware_counter), "passed through");

/* Why this kernel uses no counters, as Windows decides at boot; NULL if it does. */
static const char *why_no_pmu(void)
{
    struct cpuid leaf = cpuid(0, 0);
    struct cpuid pmu;

    if (leaf.ebx != 0x756e6547 || leaf.ecx != 0x6c65746e || leaf.edx != 0x49656e69)
        return "the vendor is not GenuineIntel";
    if (leaf.eax < 0xa)
        return "there is no CPUID leaf 0xA";
    pmu = cpuid(0xa, 0);
    if ((pmu.eax & 0xff) == 0 || pmu.eax >> 24 == 0 || pmu.ebx & 1)
        return "CPUID leaf 0xA offers no counters";
    if (cpuid(1, 0).ecx >> 31 && cpuid(0x40000001, 0).eax == 0x31237648 &&
        !(cpuid(0x40000003, 0).edx & HV_MONITORS_COUNTERS))
        return "the hypervisor interface offers no counters";
    return NULL;
}

/* Windows reads 0x345 without asking whether it is there (PDCM). */
static bool has_pebs(void)
{
    uint64_t value;

    return hal_pmu.version >= 2 && cpuid(1, 0).edx & CPUID_1_EDX_DS &&
           !(rdmsr(MSR_MISC_ENABLE) & MISC_ENABLE_PEBS_UNAVAILABLE) &&
           !rdmsr_safe(MSR_PERF_CAPABILITIES, &value);
}

static void find_pmu(void)
{
    struct cpuid pmu = cpuid(0xa, 0);

    hal_pmu.why_none = why_no_pmu();
    if (hal_pmu.why_none)
        return;
    hal_pmu.version = pmu.eax & 0xff;
    hal_pmu.gp = pmu.eax >> 8 & 0xff;
    hal_pmu.gp_width = pmu.eax >> 16 & 0xff;
    hal_pmu.fixed = hal_pmu.version >= 2 ? pmu.edx & 0x1f : 0;
    hal_pmu.fixed_width = pmu.edx >> 5 & 0xff;
    hal_pmu.event_buffer = has_pebs() || boot_option("eventbuffer");
}

static uint32_t arbiter_mode(void)
{
    uint32_t mode = boot_option("observed") ? VPMU_MODE_OBSERVED : VPMU_MODE_DOCUMENTED;

    if (boot_option_number("build", 18362) < 18362)
        mode |= VPMU_MODE_BEFORE_1903;
    if (boot_option("noprofiling"))
        mode |= VPMU_MODE_NO_PROFILING;
    return mode;
}

/*
 * GP enables in IA32_PERF_GLOBAL_CTRL stay as reset left them, as Windows leaves
 * them: GP counters count only if the machine's reset value has their bits set.
 */
void hal_start_processor(void)
{
    uint64_t fixed = ((UINT64_C(1) << hal_pmu.fixed) - 1) << VPMU_FIXED_COUNTER;

    if (!hal_pmu.version)
        return;
    for (unsigned i = 0; i < hal_pmu.gp; i++)
        wrmsr(MSR_EVNTSEL0 + i, 0);
    if (hal_pmu.version >= 2) {
        wrmsr(MSR_FIXED_CTRL, 0);
        wrmsr(MSR_GLOBAL_CTRL, rdmsr(MSR_GLOBAL_CTRL) & ~fixed);
        wrmsr(MSR_GLOBAL_OVF_CTRL, vpmu_counter_set(hal_pmu.gp, hal_pmu.fixed));
    }
    /* Version 1 has no status that says whose counter overflowed: no interrupt there. */
    apic_write(APIC_LVT_PMI, hal_pmu.version >= 2 ? VECTOR_PMI : APIC_LVT_MASKED);
}

static bool enter_arbiter(void)
{
    bool enabled = interrupts_off();

    lock(&arbiter_lock);
    return enabled;
}

static void leave_arbiter(bool enabled)
{
    unlock(&arbiter_lock);
    interrupts_restore(enabled);
}

static bool next_delivery(uint64_t *bits, struct vpmu_delivery *delivery)
{
    bool enabled = enter_arbiter();
    bool found = vpmu_arbiter_overflow(arbiter, processor_current()->number, bits, delivery);

    leave_arbiter(enabled);
    return found;
}

static void deliver(const struct vpmu_delivery *delivery)
{
    PHYSICAL_COUNTER_OVERFLOW_HANDLER *handler =
        (PHYSICAL_COUNTER_OVERFLOW_HANDLER *)delivery->handler;

    if (!handler || delivery->event_buffer) {
        unclaimed++;
        return;
    }
    handler(delivery->bits, (HANDLE)delivery->lease);
    if (irql_current() != PROFILE_LEVEL) {
        violation("an overflow handler returned at IRQL %u", irql_current());
        irql_set(PROFILE_LEVEL);
    }
}

/* The overflow state is cleared before the handlers run, the LVT entry's mask bit too. */
static void on_overflow(void)
{
    struct vpmu_delivery delivery;
    uint64_t bits = rdmsr(MSR_GLOBAL_STATUS);

    wrmsr(MSR_GLOBAL_OVF_CTRL, bits);
    apic_write(APIC_LVT_PMI, VECTOR_PMI);
    overflows++;
    while (next_delivery(&bits, &delivery))
        deliver(&delivery);
    if (bits & VPMU_COUNTERS)
        unclaimed++;
}

void hal_init(void)
{
    struct vpmu_processor all[MAX_CPUS];
    struct vpmu_arbiter_config config = {
        .processors = all,
        .processor_count = cpu_count(),
        .leases = (uint32_t)boot_option_number("leases", 256),
        .spans = 1024,
        .mode = arbiter_mode(),
    };
    size_t size;

    find_pmu();
    interrupt_connect(VECTOR_PMI, on_overflow);
    for (unsigned i = 0; i < cpu_count(); i++)
        all[i] = (struct vpmu_processor){
            .counters = vpmu_counter_set(hal_pmu.gp, hal_pmu.fixed),
            .version = (uint8_t)hal_pmu.version,
            .event_buffer = hal_pmu.event_buffer,
            .online = true,
        };
    size = vpmu_arbiter_size(&config);
    arbiter = vpmu_arbiter_init(pages_alloc(size / PAGE_SIZE + 1), size, &config);
    if (!arbiter)
        panic("hal: no arbiter");
    if (hal_pmu.version)
        note("hal: PMU version %u, %u GP counters of %u bits, %u fixed of %u bits", hal_pmu.version,
             hal_pmu.gp, hal_pmu.gp_width, hal_pmu.fixed, hal_pmu.fixed_width);
    else
        note("hal: no PMU: %s", hal_pmu.why_none);
}

unsigned hal_overflows(void)
{
    return overflows;
}

unsigned hal_unclaimed_overflows(void)
{
    return unclaimed;
}

static struct vpmu_holder holder_of(const struct image *image)
{
    struct vpmu_holder holder = {.id = image ? (uint64_t)image : 1};

    snprintf(holder.name, sizeof(holder.name), "%.23s", image ? image->name : "nt");
    return holder;
}

static NTSTATUS explain(const char *routine, const struct vpmu_explanation *why)
{
    char text[200];

    if (why->cause != VPMU_CAUSE_NONE) {
        vpmu_explanation_text(why, text, sizeof(text));
        note("hal: %s: %s", routine, text);
    }
    return (NTSTATUS)why->status;
}

#define CALLER image_at((uint64_t)__builtin_return_address(0))

NTSTATUS NTAPI HalAllocateHardwareCounters(PGROUP_AFFINITY GroupAffinity, ULONG GroupCount,
                                           PPHYSICAL_COUNTER_RESOURCE_LIST ResourceList,
                                           PHANDLE CounterSetHandle)
{
    struct vpmu_holder holder = holder_of(CALLER);
    struct vpmu_request request = {
        .affinity = (const struct vpmu_affinity *)GroupAffinity,
        .affinity_count = GroupCount,
    };
    struct vpmu_explanation why;
    bool enabled;

    if (ResourceList) {
        request.resources = (const struct vpmu_resource *)ResourceList->Descriptors;
        request.resource_count = ResourceList->Count;
    }
    enabled = enter_arbiter();
    vpmu_arbiter_allocate(arbiter, &holder, &request, (vpmu_lease *)CounterSetHandle, &why);
    leave_arbiter(enabled);
    return explain("HalAllocateHardwareCounters", &why);
}

NTSTATUS NTAPI HalFreeHardwareCounters(HANDLE CounterSetHandle)
{
    struct vpmu_explanation why;
    bool enabled = enter_arbiter();

    vpmu_arbiter_free(arbiter, (vpmu_lease)CounterSetHandle, &why);
    leave_arbiter(enabled);
    return explain("HalFreeHardwareCounters", &why);
}

NTSTATUS NTAPI KeSetHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG Count)
{
    struct vpmu_holder holder = holder_of(CALLER);
    struct vpmu_explanation why;
    bool enabled = enter_arbiter();

    vpmu_arbiter_set_profiling(arbiter, &holder, (const struct vpmu_hardware_counter *)CounterArray,
                               Count, &why);
    leave_arbiter(enabled);
    return explain("KeSetHardwareCounterConfiguration", &why);
}

NTSTATUS NTAPI KeQueryHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray,
                                                   ULONG MaximumCount, PULONG Count)
{
    struct vpmu_explanation why;
    bool enabled = enter_arbiter();

    vpmu_arbiter_query_profiling(arbiter, (struct vpmu_hardware_counter *)CounterArray,
                                 MaximumCount, Count, &why);
    leave_arbiter(enabled);
    return explain("KeQueryHardwareCounterConfiguration", &why);
}

unsigned hal_leases_of(const struct image *image)
{
    bool enabled = enter_arbiter();
    vpmu_lease lease = VPMU_LEASE_NONE;
    unsigned count = 0;

    while ((lease = vpmu_arbiter_next_of(arbiter, (uint64_t)image, lease)))
        count++;
    leave_arbiter(enabled);
    return count;
}

void hal_forget(const struct image *image)
{
    bool enabled = enter_arbiter();

    vpmu_arbiter_free_holder(arbiter, (uint64_t)image);
    leave_arbiter(enabled);
}

unsigned hal_leases(void)
{
    return vpmu_arbiter_leases(arbiter);
}

void hal_kernel_profiling(bool on)
{
    struct vpmu_resource counter = {.type = VPMU_RESOURCE_SINGLE};
    struct vpmu_request request = {.resources = &counter, .resource_count = 1};
    struct vpmu_holder holder = {.id = VPMU_HOLDER_KERNEL, .name = "ETW"};
    bool enabled = enter_arbiter();
    vpmu_status status = on ? vpmu_arbiter_allocate(arbiter, &holder, &request, &kernel_lease, NULL)
                            : vpmu_arbiter_free(arbiter, kernel_lease, NULL);

    leave_arbiter(enabled);
    check_equal(status, VPMU_STATUS_SUCCESS, "the kernel's own profiling turns %s",
                on ? "on" : "off");
}

void hal_thread_profiling(bool on)
{
    bool enabled = enter_arbiter();

    vpmu_arbiter_thread_profiling(arbiter, on);
    leave_arbiter(enabled);
}
