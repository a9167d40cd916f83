/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The status device: tells the guest which of its counters are backed.
 *
 * vpmu/status.h has the layout, docs/device.md of the vpmu project the
 * semantics. All that it tells comes from vpmu-validity.h: after each look at a
 * vCPU its page is written anew, which the guest reads without an exit. The
 * registers are read as of now. Everything here runs with the big lock.
 */

#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "hw/boards.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci_device.h"
#include "migration/vmstate.h"
#include "system/tcg.h"
#include "target/i386/cpu.h"
#include "target/i386/vpmu-object.h"
#include "target/i386/vpmu-validity.h"
#include "vpmu/arbiter.h"
#include "vpmu/status.h"

#define TYPE_VPMU_STATUS "vpmu-status"
OBJECT_DECLARE_SIMPLE_TYPE(VPMUStatus, VPMU_STATUS)

#define REGISTERS_BAR 0
#define PAGES_BAR 2
#define MSIX_BAR 4
#define REGISTERS_SIZE (4 * KiB)

/* What a guest may ask of the host: so much at once, and then at that pace. */
#define REQUESTS_AT_ONCE 16
#define REQUEST_MS 10

#define WORD(field) (offsetof(struct vpmu_status_registers, field) / 4)
#define WORDS (sizeof(struct vpmu_status_registers) / 4)

struct VPMUStatus {
    PCIDevice parent_obj;

    MemoryRegion registers_bar;
    MemoryRegion pages_bar;
    Notifier look;
    union {
        struct vpmu_status_registers registers;
        uint32_t words[WORDS];
    };
    uint32_t asked_gp, asked_fixed; /* for which the guest last got SUCCESS */
    QEMUTimer *later;     /* when it is the pending request's turn */
    int64_t paced_ms;     /* the turn of the request before, or long ago */
    uint32_t sequence;    /* of the page written last, whichever it was */
    uint32_t revocations; /* that are in the register already */
};

QEMU_BUILD_BUG_ON((int)VPMU_EVENT_CLASS__MAX != (int)VPMU_EVENT_CLASSES);
QEMU_BUILD_BUG_ON((int)VPMU_SHORTAGE_POLICY__MAX != (int)VPMU_POLICIES);

static void G_GNUC_PRINTF(1, 2) guest_error(const char *fmt, ...)
{
    va_list args;
    g_autofree char *text = NULL;

    if (!qemu_loglevel_mask(LOG_GUEST_ERROR)) {
        return;
    }
    va_start(args, fmt);
    text = g_strdup_vprintf(fmt, args);
    va_end(args);
    qemu_log("vpmu-status: %s\n", text);
}

static void interrupt(VPMUStatus *s)
{
    if (s->registers.interrupt && msix_enabled(PCI_DEVICE(s))) {
        msix_notify(PCI_DEVICE(s), 0);
    }
}

/* Pages */

static struct vpmu_status_page *page_of(VPMUStatus *s, unsigned vcpu)
{
    uint8_t *pages = memory_region_get_ram_ptr(&s->pages_bar);

    return (void *)(pages + vcpu * VPMU_STATUS_PAGE_SIZE);
}

static void put_counters(struct vpmu_status_page *page, X86CPU *cpu)
{
    struct vpmu_status_counter counters[VPMU_STATUS_COUNTERS];
    unsigned count = x86_vpmu_counters(cpu, counters, VPMU_STATUS_COUNTERS);

    page->count = cpu_to_le32(count);
    page->updated_ns = cpu_to_le64(x86_vpmu_ran_ns(cpu));
    for (unsigned i = 0; i < count; i++) {
        page->counters[i] = (struct vpmu_status_counter) {
            .index = cpu_to_le32(counters[i].index),
            .state = cpu_to_le32(counters[i].state),
            .selector = cpu_to_le64(counters[i].selector),
            .enabled_ns = cpu_to_le64(counters[i].enabled_ns),
            .backed_ns = cpu_to_le64(counters[i].backed_ns),
        };
    }
}

/*
 * All pages share one sequence, which migrates: so no page has the same one
 * twice, not even in another process.
 */
static void put_page(VPMUStatus *s, X86CPU *cpu)
{
    struct vpmu_status_page *page = page_of(s, CPU(cpu)->cpu_index);

    qatomic_set(&page->sequence, cpu_to_le32(s->sequence + 1));
    smp_wmb(); /* odd, then the page, then even: readers go the other way */
    put_counters(page, cpu);
    smp_wmb(); /* as above */
    s->sequence += 2;
    qatomic_set(&page->sequence, cpu_to_le32(s->sequence));
}

static void put_all_pages(VPMUStatus *s)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        put_page(s, X86_CPU(cs));
    }
}

static void on_look(Notifier *notifier, void *data)
{
    VPMUStatus *s = container_of(notifier, VPMUStatus, look);
    const X86VPMULook *look = data;

    put_page(s, look->cpu);
    if (look->changed) {
        s->registers.changes++;
        interrupt(s);
    }
}

static void pages_write(void *opaque, hwaddr offset, uint64_t value,
                        unsigned size)
{
    guest_error("page %u cannot be written (offset 0x%x)",
                (unsigned)(offset / VPMU_STATUS_PAGE_SIZE),
                (unsigned)(offset % VPMU_STATUS_PAGE_SIZE));
}

/* Reads come here only while the memory is being taken from the guest. */
static uint64_t pages_read(void *opaque, hwaddr offset, unsigned size)
{
    return 0;
}

static const MemoryRegionOps pages_ops = {
    .read = pages_read,
    .write = pages_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

/* Registers */

static void nobody(void *opaque, uint32_t ntstatus)
{
}

static void refresh(VPMUStatus *s)
{
    uint32_t revocations = x86_vpmu_revocations();

    x86_vpmu_granted(&s->registers.granted_gp, &s->registers.granted_fixed);
    s->registers.revocations += revocations - s->revocations;
    s->revocations = revocations;
}

/* Has the host grant what the guest has asked for, if it is something else. */
static void ask_again(VPMUStatus *s)
{
    refresh(s);
    if (s->registers.granted_gp != s->asked_gp ||
        s->registers.granted_fixed != s->asked_fixed) {
        x86_vpmu_resize(s->asked_gp, s->asked_fixed, nobody, NULL);
    }
}

static void answer(VPMUStatus *s, uint32_t ntstatus)
{
    s->registers.request_status = ntstatus;
    interrupt(s);
}

static void resized(void *opaque, uint32_t ntstatus)
{
    VPMUStatus *s = opaque;

    if (s->registers.request_status != VPMU_STATUS_PENDING ||
        timer_pending(s->later)) {
        ask_again(s); /* it is from before a reset or a loadvm */
        return;
    }
    if (ntstatus == VPMU_STATUS_SUCCESS) {
        s->asked_gp = s->registers.request_gp;
        s->asked_fixed = s->registers.request_fixed;
    }
    answer(s, ntstatus);
}

static void resize(void *opaque)
{
    VPMUStatus *s = opaque;

    x86_vpmu_resize(s->registers.request_gp, s->registers.request_fixed,
                    resized, s);
}

/* Each request costs the host an answer and perhaps a line in a log. */
static void resize_in_turn(VPMUStatus *s)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);

    s->paced_ms = MAX(s->paced_ms, now - REQUESTS_AT_ONCE * REQUEST_MS) +
        REQUEST_MS;
    if (s->paced_ms <= now) {
        resize(s);
    } else {
        timer_mod(s->later, s->paced_ms);
    }
}

static void submit(VPMUStatus *s)
{
    uint32_t request = s->registers.request;

    s->registers.request = 0;
    s->registers.request_status = VPMU_STATUS_PENDING;
    if (request == VPMU_REQUEST_RESIZE) {
        resize_in_turn(s);
    } else {
        guest_error("there is no request %" PRIu32, request);
        answer(s, VPMU_STATUS_INVALID_PARAMETER);
    }
}

/* The registers that can be written. */
static const struct {
    uint32_t mask;
    bool mailbox; /* not while a request is pending */
    void (*written)(VPMUStatus *s);
} registers[WORDS] = {
    [WORD(interrupt)] = { .mask = 1 },
    [WORD(request_gp)] = { .mask = UINT32_MAX, .mailbox = true },
    [WORD(request_fixed)] = { .mask = UINT32_MAX, .mailbox = true },
    [WORD(request)] = { UINT32_MAX, true, submit },
};

static bool is_word(hwaddr offset, unsigned size)
{
    if (size == 4 && offset % 4 == 0) {
        return true;
    }
    guest_error("access of %u bytes at 0x%x", size, (unsigned)offset);
    return false;
}

static uint64_t registers_read(void *opaque, hwaddr offset, unsigned size)
{
    VPMUStatus *s = opaque;

    if (!is_word(offset, size) || offset / 4 >= WORDS) {
        return 0;
    }
    refresh(s);
    return s->words[offset / 4];
}

static void registers_write(void *opaque, hwaddr offset, uint64_t value,
                            unsigned size)
{
    VPMUStatus *s = opaque;
    unsigned i = offset / 4;

    if (!is_word(offset, size)) {
        return;
    }
    if (i >= WORDS || !registers[i].mask) {
        guest_error("register 0x%x cannot be written", (unsigned)offset);
    } else if (registers[i].mailbox &&
               s->registers.request_status == VPMU_STATUS_PENDING) {
        guest_error("the mailbox is written while a request is pending");
    } else {
        s->words[i] = value & registers[i].mask;
        if (registers[i].written) {
            registers[i].written(s);
        }
    }
}

static const MemoryRegionOps registers_ops = {
    .read = registers_read,
    .write = registers_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

/* Life */

/* Of a system that has just started: what CPUID tells it. */
static void ask_for_shape(VPMUStatus *s)
{
    s->asked_gp = s->registers.shape_gp;
    s->asked_fixed = s->registers.shape_fixed;
    ask_again(s);
}

/* What counts how often the host has done something goes on. */
static void vpmu_status_reset(DeviceState *dev)
{
    VPMUStatus *s = VPMU_STATUS(dev);

    timer_del(s->later);
    s->registers.interrupt = 0;
    s->registers.request_gp = 0;
    s->registers.request_fixed = 0;
    s->registers.request_status = VPMU_STATUS_SUCCESS;
    ask_for_shape(s);
}

/* The host that is to answer is another now. */
static int vpmu_status_post_load(void *opaque, int version_id)
{
    VPMUStatus *s = opaque;

    put_all_pages(s);
    timer_del(s->later);
    if (s->registers.request_status == VPMU_STATUS_PENDING) {
        resize(s);
    } else {
        ask_again(s);
    }
    return 0;
}

static const VMStateDescription vmstate_vpmu_status = {
    .name = TYPE_VPMU_STATUS,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = vpmu_status_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, VPMUStatus),
        VMSTATE_MSIX(parent_obj, VPMUStatus),
        VMSTATE_UINT32_EQUAL(registers.vcpus, VPMUStatus,
                             "-smp must have the same maxcpus"),
        VMSTATE_UINT32(registers.changes, VPMUStatus),
        VMSTATE_UINT32(registers.revocations, VPMUStatus),
        VMSTATE_UINT32(registers.interrupt, VPMUStatus),
        VMSTATE_UINT32(registers.request_gp, VPMUStatus),
        VMSTATE_UINT32(registers.request_fixed, VPMUStatus),
        VMSTATE_UINT32(registers.request_status, VPMUStatus),
        VMSTATE_UINT32(asked_gp, VPMUStatus),
        VMSTATE_UINT32(asked_fixed, VPMUStatus),
        VMSTATE_UINT32(sequence, VPMUStatus),
        VMSTATE_END_OF_LIST()
    }
};

static bool may_exist(Error **errp)
{
    const VpmuObject *object = x86_vpmu_object();
    bool ambiguous;

    object_resolve_path_type("", TYPE_VPMU_STATUS, &ambiguous);
    if (ambiguous) {
        error_setg(errp, "a machine can have one vpmu-status device only");
        return false;
    }
    if (!X86_CPU(first_cpu)->vpmu_watch && !(object && object->hidden)) {
        error_setg(errp, "vpmu-status: the guest has no PMU to tell of: "
                         "give it one with -object vpmu");
        return false;
    }
    return true;
}

static void describe(VPMUStatus *s)
{
    const VpmuObject *object = x86_vpmu_object();
    const X86CPU *cpu = X86_CPU(first_cpu);
    struct vpmu_status_registers *r = &s->registers;

    r->magic = VPMU_STATUS_MAGIC;
    r->version = VPMU_STATUS_VERSION;
    r->vcpus = current_machine->smp.max_cpus;
    if (object) {
        r->event_class = object->event_class;
        r->policy = object->shortage;
    }
    if (cpu->vpmu_watch) {
        r->source = tcg_enabled() ? VPMU_SOURCE_TCG : VPMU_SOURCE_KVM;
        r->shape_gp = cpu->vpmu_config.gp;
        r->shape_fixed = MAKE_64BIT_MASK(0, cpu->vpmu_config.fixed);
    }
}

/* Those of vCPUs that are to come, too. */
static void name_pages(VPMUStatus *s)
{
    MachineState *machine = current_machine;
    const CPUArchIdList *vcpus =
        MACHINE_GET_CLASS(machine)->possible_cpu_arch_ids(machine);

    for (unsigned i = 0; i < s->registers.vcpus; i++) {
        struct vpmu_status_page *page = page_of(s, i);

        page->vcpu = cpu_to_le32(i);
        page->apic_id = cpu_to_le32(vcpus->cpus[i].arch_id);
    }
}

static void vpmu_status_realize(PCIDevice *pci, Error **errp)
{
    VPMUStatus *s = VPMU_STATUS(pci);

    if (!may_exist(errp)) {
        return;
    }
    describe(s);
    /* Not migrated: the pages tell of this process, and are rebuilt. */
    if (!memory_region_init_rom_device_nomigrate(
            &s->pages_bar, OBJECT(s), &pages_ops, s, "vpmu-status-pages",
            pow2ceil(s->registers.vcpus) * VPMU_STATUS_PAGE_SIZE, errp)) {
        return;
    }
    if (msix_init_exclusive_bar(pci, 1, MSIX_BAR, errp)) {
        return;
    }
    memory_region_init_io(&s->registers_bar, OBJECT(s), &registers_ops, s,
                          "vpmu-status-registers", REGISTERS_SIZE);
    pci_register_bar(pci, REGISTERS_BAR, PCI_BASE_ADDRESS_SPACE_MEMORY,
                     &s->registers_bar);
    pci_register_bar(pci, PAGES_BAR, PCI_BASE_ADDRESS_SPACE_MEMORY,
                     &s->pages_bar);
    msix_vector_use(pci, 0);
    name_pages(s);
    put_all_pages(s);
    s->later = timer_new_ms(QEMU_CLOCK_REALTIME, resize, s);
    s->look.notify = on_look;
    x86_vpmu_add_look_notifier(&s->look);
}

static void vpmu_status_class_init(ObjectClass *class, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(class);
    PCIDeviceClass *k = PCI_DEVICE_CLASS(class);

    k->realize = vpmu_status_realize;
    k->vendor_id = VPMU_STATUS_PCI_VENDOR;
    k->device_id = VPMU_STATUS_PCI_DEVICE;
    k->class_id = VPMU_STATUS_PCI_CLASS;
    device_class_set_legacy_reset(dc, vpmu_status_reset);
    dc->vmsd = &vmstate_vpmu_status;
    dc->desc = "Tells the guest which of its counters are backed";
    dc->hotpluggable = false;
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
}

static const TypeInfo vpmu_status_types[] = {
    {
        .name = TYPE_VPMU_STATUS,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(VPMUStatus),
        .class_init = vpmu_status_class_init,
        .interfaces = (InterfaceInfo[]) {
            { INTERFACE_CONVENTIONAL_PCI_DEVICE },
            { },
        },
    },
};

DEFINE_TYPES(vpmu_status_types)
