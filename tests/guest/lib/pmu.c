/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmu.h"
#include "apic.h"
#include "libc.h"
#include "x86.h"

#define CPUID_PDCM (1u << 15)
#define CAPABILITIES_FULL_WIDTH (1u << 13)

struct pmu_caps pmu;

static uint64_t bits(unsigned n)
{
    return n < 64 ? (1ul << n) - 1 : ~0ul;
}

void pmu_detect(void)
{
    struct cpuid vendor = cpuid(0, 0), leaf = {0};

    if (vendor.eax >= 0xa)
        leaf = cpuid(0xa, 0);
    pmu.intel = vendor.ecx == 0x6c65746e; /* "ntel" */
    pmu.version = leaf.eax & 0xff;
    pmu.gp = leaf.eax >> 8 & 0xff;
    pmu.gp_width = leaf.eax >> 16 & 0xff;
    pmu.events = leaf.eax >> 24;
    pmu.events_unavailable = leaf.ebx;
    pmu.fixed_mask = leaf.ecx;
    pmu.fixed = leaf.edx & 0x1f;
    pmu.fixed_width = leaf.edx >> 5 & 0xff;
    pmu.any_thread_deprecated = leaf.edx >> 15 & 1;
    pmu.pdcm = cpuid(1, 0).ecx & CPUID_PDCM;
    pmu.full_width = pmu.pdcm && rdmsr(MSR_PERF_CAPABILITIES) & CAPABILITIES_FULL_WIDTH;
}

unsigned pmu_counters(void)
{
    return pmu.gp + pmu.fixed;
}

struct pmu_counter pmu_counter(unsigned i)
{
    unsigned f = i - pmu.gp;

    if (i < pmu.gp)
        return (struct pmu_counter){false, i, i, MSR_PMC(i), i, bits(pmu.gp_width)};
    return (struct pmu_counter){
        true, f, STATUS_FIXED + f, MSR_FIXED_CTR(f), RDPMC_FIXED | f, bits(pmu.fixed_width)};
}

uint64_t pmu_gp_bits(void)
{
    return bits(pmu.gp);
}

uint64_t pmu_fixed_bits(void)
{
    return bits(pmu.fixed) << STATUS_FIXED;
}

bool pmu_event_available(unsigned bit)
{
    return bit < pmu.events && !(pmu.events_unavailable >> bit & 1);
}

void pmu_clear(void)
{
    apic_write(APIC_LVT_PMI, APIC_LVT_MASKED);
    if (pmu.version >= 2) {
        wrmsr(MSR_GLOBAL_CTRL, 0);
        wrmsr(MSR_FIXED_CTR_CTRL, 0);
        wrmsr(MSR_DEBUGCTL, 0);
    }
    for (unsigned i = 0; i < pmu.gp; i++)
        wrmsr(MSR_PERFEVTSEL(i), 0);
    for (unsigned i = 0; i < pmu_counters(); i++)
        wrmsr(pmu_counter(i).msr, 0);
    if (pmu.version >= 2)
        wrmsr(MSR_GLOBAL_OVF_CTRL, rdmsr(MSR_GLOBAL_STATUS));
}

void pmu_write(struct pmu_counter c, uint64_t value)
{
    wrmsr(!c.fixed && pmu.full_width ? MSR_A_PMC(c.index) : c.msr, value & c.mask);
}

uint64_t pmu_read(struct pmu_counter c)
{
    return rdmsr(c.msr);
}

uint64_t pmu_before_overflow(struct pmu_counter c, uint64_t n)
{
    return (0 - n) & c.mask;
}

static uint64_t fixed_flags(uint32_t flags)
{
    return (flags & EVTSEL_OS ? FIXED_OS : 0) | (flags & EVTSEL_USR ? FIXED_USR : 0) |
           (flags & EVTSEL_INT ? FIXED_PMI : 0);
}

void pmu_program(struct pmu_counter c, enum pmu_event event, uint32_t flags, uint64_t value)
{
    pmu_write(c, value);
    if (c.fixed) {
        unsigned shift = 4 * c.index;
        uint64_t others = rdmsr(MSR_FIXED_CTR_CTRL) & ~(0xful << shift);

        wrmsr(MSR_FIXED_CTR_CTRL, others | fixed_flags(flags) << shift);
    } else {
        wrmsr(MSR_PERFEVTSEL(c.index), (uint32_t)event | flags | EVTSEL_EN);
    }
}

asm(".pushsection .text\n"
    ".globl pmu_measure, pmu_measure_start\n"
    "pmu_measure:\n"
    "    push %rbx\n"
    "    push %r12\n"
    "    push %r13\n"
    "    mov %edi, %ebx\n"
    "    mov %rdx, %r12\n"
    "    mov %rcx, %r13\n"
    "    mov %r8, %rdi\n"
    "    mov %ebx, %ecx\n"
    "    mov %esi, %eax\n"
    "    mov %rsi, %rdx\n"
    "    shr $32, %rdx\n"
    "pmu_measure_start:\n"
    "    wrmsr\n"
    "    call *%r13\n"
    "    mov %ebx, %ecx\n"
    "    mov %r12d, %eax\n"
    "    mov %r12, %rdx\n"
    "    shr $32, %rdx\n"
    "    wrmsr\n"
    "    pop %r13\n"
    "    pop %r12\n"
    "    pop %rbx\n"
    "    ret\n"

    ".globl spin\n"
    "spin:\n"
    "    dec %rdi\n"
    "    jnz spin\n"
    "    ret\n"
    ".popsection\n");
