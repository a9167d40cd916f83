// SPDX-License-Identifier: BSD-3-Clause
//
// vcpu [no-irqchip]: a virtual machine of one vCPU and no firmware, for the KVM of this machine.
// Its guest executes nothing but what each line of the standard input says; each line is answered
// with one, after a first one that says whether the machine could be made. no-irqchip: KVM has no
// APIC.
//
//   cpuid LEAF            the registers that the guest is given: EAX EBX ECX EDX
//   rdmsr MSR             the value
//   wrmsr MSR VALUE       ok
//   rdpmc COUNTER         the value
//   loop N                ok, after N decrements and N conditional branches; or nmi, when one came
//   overflow-nmi          the local APIC makes an NMI of a counter's overflow
//   filter allow EVENT... the events that KVM lets the guest count (KVM_SET_PMU_EVENT_FILTER)
//   filter deny EVENT...  those that it does not
//
// Numbers are hexadecimal with 0x, or decimal. An instruction that faults is answered with "fault",
// a call that KVM refuses with "error CALL ERRNO".

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY 0x10000
#define CODE 0x1000
#define STACK 0x8000
#define PORT_DONE 1
#define PORT_FAULT 2
#define PORT_NMI 3
#define VECTOR_NMI 2
#define VECTOR_GP 13
#define APIC_SVR 0xf0 // offsets and values: APM Vol. 2, 16.3
#define APIC_LVTPC 0x340
#define APIC_ENABLED 0x1ff
#define DELIVER_NMI 0x400
#define MAX_WORDS 64
#define MAX_LEAVES 256

// One stub for each instruction. The processor is in real mode: no page tables, no descriptors.
__asm__(".code16\n"
        "stubs:\n"
        "stub_rdmsr: rdmsr; out %al, $1\n"
        "stub_wrmsr: wrmsr; out %al, $1\n"
        "stub_rdpmc: rdpmc; out %al, $1\n"
        "stub_loop: dec %ecx; jnz stub_loop; out %al, $1\n"
        "stub_fault: out %al, $2\n"
        "stub_nmi: out %al, $3\n"
        "stubs_end:\n"
        ".code64\n");
extern const char stubs[], stub_rdmsr[], stub_wrmsr[], stub_rdpmc[], stub_loop[], stub_fault[];
extern const char stub_nmi[], stubs_end[];

struct machine {
    int kvm, vm, vcpu;
    uint8_t *memory;
    struct kvm_run *run;
    struct kvm_cpuid2 *cpuid;
};

static void refused(const char *call)
{
    printf("error %s %s\n", call, strerrorname_np(errno));
}

static _Noreturn void die(const char *call)
{
    refused(call);
    exit(1);
}

// CALL(file descriptor, request, argument): an ioctl that must succeed.
#define CALL(fd, request, argument) call(fd, request, (void *)(uintptr_t)(argument), #request)

static int call(int fd, unsigned long request, void *argument, const char *name)
{
    const int result = ioctl(fd, request, argument);

    if (result < 0) {
        die(name);
    }
    return result;
}

static uint64_t place(const char *stub)
{
    return CODE + (uint64_t)(stub - stubs);
}

static void set_vector(struct machine *m, size_t vector, const char *stub)
{
    const uint16_t offset_segment[2] = {(uint16_t)place(stub), 0};

    memcpy(m->memory + vector * sizeof offset_segment, offset_segment, sizeof offset_segment);
}

static void load_guest(struct machine *m)
{
    m->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->memory == MAP_FAILED) {
        die("mmap");
    }
    memcpy(m->memory + CODE, stubs, (size_t)(stubs_end - stubs));
    set_vector(m, VECTOR_GP, stub_fault);
    set_vector(m, VECTOR_NMI, stub_nmi);
    CALL(m->vm, KVM_SET_USER_MEMORY_REGION,
         &((struct kvm_userspace_memory_region){.memory_size = MEMORY,
                                                .userspace_addr = (uint64_t)(uintptr_t)m->memory}));
}

static void give_cpuid(struct machine *m)
{
    m->cpuid = calloc(1, sizeof *m->cpuid + MAX_LEAVES * sizeof m->cpuid->entries[0]);
    if (!m->cpuid) {
        die("calloc");
    }
    m->cpuid->nent = MAX_LEAVES;
    CALL(m->kvm, KVM_GET_SUPPORTED_CPUID, m->cpuid);
    CALL(m->vcpu, KVM_SET_CPUID2, m->cpuid);
}

static void start_in_real_mode(struct machine *m)
{
    struct kvm_sregs sregs;

    CALL(m->vcpu, KVM_GET_SREGS, &sregs);
    sregs.cs.base = 0;
    sregs.cs.selector = 0;
    CALL(m->vcpu, KVM_SET_SREGS, &sregs);
}

static void create(struct machine *m, int irqchip)
{
    m->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    if (m->kvm < 0) {
        die("open");
    }
    m->vm = CALL(m->kvm, KVM_CREATE_VM, 0);
    load_guest(m);
    if (irqchip) {
        CALL(m->vm, KVM_CREATE_IRQCHIP, 0);
    }
    m->vcpu = CALL(m->vm, KVM_CREATE_VCPU, 0);
    const size_t size = (size_t)CALL(m->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
    m->run = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, m->vcpu, 0);
    if (m->run == MAP_FAILED) {
        die("mmap");
    }
    give_cpuid(m);
    start_in_real_mode(m);
}

// Runs a stub with these registers; they are the guest's afterwards. The port that it ends with.
static int execute(struct machine *m, const char *stub, struct kvm_regs *regs)
{
    regs->rip = place(stub);
    regs->rsp = STACK;
    regs->rflags = 2;
    CALL(m->vcpu, KVM_SET_REGS, regs);
    CALL(m->vcpu, KVM_RUN, 0);
    if (m->run->exit_reason != KVM_EXIT_IO) {
        printf("error KVM_RUN exit reason %u\n", m->run->exit_reason);
        exit(1);
    }
    CALL(m->vcpu, KVM_GET_REGS, regs);
    return m->run->io.port;
}

static void answer(int port, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (port == PORT_DONE) {
        vprintf(format, arguments);
    } else {
        printf(port == PORT_NMI ? "nmi" : "fault");
    }
    putchar('\n');
    va_end(arguments);
}

static uint64_t value_of(const struct kvm_regs *regs)
{
    return regs->rdx << 32 | (uint32_t)regs->rax;
}

static void do_cpuid(struct machine *m, int words, char **word)
{
    const uint32_t leaf = (uint32_t)strtoul(word[1], NULL, 0);
    struct kvm_cpuid_entry2 found = {0};

    (void)words;
    for (uint32_t i = 0; i < m->cpuid->nent; i++) {
        if (m->cpuid->entries[i].function == leaf && m->cpuid->entries[i].index == 0) {
            found = m->cpuid->entries[i];
        }
    }
    answer(PORT_DONE, "%#x %#x %#x %#x", found.eax, found.ebx, found.ecx, found.edx);
}

static void do_rdmsr(struct machine *m, int words, char **word)
{
    struct kvm_regs regs = {.rcx = strtoul(word[1], NULL, 0)};

    (void)words;
    const int port = execute(m, stub_rdmsr, &regs);
    answer(port, "%llu", (unsigned long long)value_of(&regs));
}

static void do_rdpmc(struct machine *m, int words, char **word)
{
    struct kvm_regs regs = {.rcx = strtoul(word[1], NULL, 0)};

    (void)words;
    const int port = execute(m, stub_rdpmc, &regs);
    answer(port, "%llu", (unsigned long long)value_of(&regs));
}

static void do_wrmsr(struct machine *m, int words, char **word)
{
    const uint64_t value = strtoull(word[2], NULL, 0);
    struct kvm_regs regs = {
        .rcx = strtoul(word[1], NULL, 0), .rax = (uint32_t)value, .rdx = value >> 32};

    (void)words;
    answer(execute(m, stub_wrmsr, &regs), "ok");
}

static void do_loop(struct machine *m, int words, char **word)
{
    struct kvm_regs regs = {.rcx = strtoul(word[1], NULL, 0)};

    (void)words;
    answer(execute(m, stub_loop, &regs), "ok");
}

static void write_apic(struct kvm_lapic_state *apic, size_t offset, uint32_t value)
{
    memcpy(apic->regs + offset, &value, sizeof value);
}

static void do_overflow_nmi(struct machine *m, int words, char **word)
{
    struct kvm_lapic_state apic;

    (void)words;
    (void)word;
    if (ioctl(m->vcpu, KVM_GET_LAPIC, &apic)) {
        refused("KVM_GET_LAPIC");
        return;
    }
    write_apic(&apic, APIC_SVR, APIC_ENABLED);
    write_apic(&apic, APIC_LVTPC, DELIVER_NMI);
    CALL(m->vcpu, KVM_SET_LAPIC, &apic);
    answer(PORT_DONE, "ok");
}

static void do_filter(struct machine *m, int words, char **word)
{
    static struct {
        struct kvm_pmu_event_filter head;
        uint64_t events[MAX_WORDS];
    } filter;

    filter.head.action = strcmp(word[1], "deny") ? KVM_PMU_EVENT_ALLOW : KVM_PMU_EVENT_DENY;
    filter.head.nevents = (uint32_t)(words - 2);
    for (int i = 2; i < words; i++) {
        filter.head.events[i - 2] = strtoull(word[i], NULL, 0);
    }
    if (ioctl(m->vm, KVM_SET_PMU_EVENT_FILTER, &filter)) {
        refused("KVM_SET_PMU_EVENT_FILTER");
    } else {
        answer(PORT_DONE, "ok");
    }
}

static const struct command {
    const char *name;
    int least_words;
    void (*act)(struct machine *, int words, char **word);
} commands[] = {
    {"cpuid", 2, do_cpuid},
    {"rdmsr", 2, do_rdmsr},
    {"wrmsr", 3, do_wrmsr},
    {"rdpmc", 2, do_rdpmc},
    {"loop", 2, do_loop},
    {"filter", 2, do_filter},
    {"overflow-nmi", 1, do_overflow_nmi},
};

static void obey(struct machine *m, char *line)
{
    char *word[MAX_WORDS];
    int words = 0;

    for (char *w = strtok(line, " \n"); w && words < MAX_WORDS; w = strtok(NULL, " \n")) {
        word[words++] = w;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (words >= commands[i].least_words && !strcmp(word[0], commands[i].name)) {
            commands[i].act(m, words, word);
            return;
        }
    }
    puts("error command");
}

int main(int argc, char **argv)
{
    struct machine m;
    char line[1024];

    setvbuf(stdout, NULL, _IOLBF, 0);
    create(&m, argc < 2 || strcmp(argv[1], "no-irqchip"));
    puts("ok");
    while (fgets(line, sizeof line, stdin)) {
        obey(&m, line);
    }
    return 0;
}
