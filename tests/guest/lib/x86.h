/* SPDX-License-Identifier: BSD-3-Clause */
/* Single instructions, and the register numbers of the SDM's that the library itself needs. */
#ifndef GUEST_X86_H
#define GUEST_X86_H

#include <stdbool.h>
#include <stdint.h>

#define MSR_APIC_BASE 0x1b
#define MSR_STAR 0xc0000081
#define MSR_LSTAR 0xc0000082
#define MSR_FMASK 0xc0000084
#define MSR_GS_BASE 0xc0000101

#define CR4_PCE (1ul << 8)

#define FLAG_TF (1ul << 8)
#define FLAG_IF (1ul << 9)

enum exception {
    EXC_DE = 0,
    EXC_DB = 1,
    EXC_NMI = 2,
    EXC_BP = 3,
    EXC_UD = 6,
    EXC_DF = 8,
    EXC_GP = 13,
    EXC_PF = 14,
};

struct cpuid {
    uint32_t eax, ebx, ecx, edx;
};

static inline struct cpuid cpuid(uint32_t leaf, uint32_t subleaf)
{
    struct cpuid r;
    asm volatile("cpuid"
                 : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx)
                 : "a"(leaf), "c"(subleaf));
    return r;
}

static inline uint64_t rdmsr(uint32_t msr)
{
    uint32_t low, high;
    asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr) : "memory");
    return low | (uint64_t)high << 32;
}

static inline void wrmsr(uint32_t msr, uint64_t value)
{
    asm volatile("wrmsr"
                 :
                 : "c"(msr), "a"((uint32_t)value), "d"((uint32_t)(value >> 32))
                 : "memory");
}

static inline uint64_t rdpmc(uint32_t selector)
{
    uint32_t low, high;
    asm volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(selector) : "memory");
    return low | (uint64_t)high << 32;
}

static inline uint64_t rdtsc(void)
{
    uint32_t low, high;
    asm volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return low | (uint64_t)high << 32;
}

/*
 * An instruction that may fault: the trap handler goes on after it with the vector in %rdi, which
 * is 0 where nothing faulted (no instruction tried here divides).
 */
#define EX_TRY(insn)                                                                               \
    "xor %%edi, %%edi\n"                                                                           \
    "771: " insn "\n"                                                                              \
    "772:\n"                                                                                       \
    ".pushsection .ex_table, \"a\"\n"                                                              \
    ".quad 771b, 772b\n"                                                                           \
    ".popsection\n"

/* Like rdmsr, but returns the vector of the exception, 0 for none; *value is 0 after one. */
static inline unsigned rdmsr_safe(uint32_t msr, uint64_t *value)
{
    uint32_t low = 0, high = 0, vector;
    asm volatile(EX_TRY("rdmsr") : "+a"(low), "+d"(high), "=&D"(vector) : "c"(msr) : "memory");
    *value = vector ? 0 : low | (uint64_t)high << 32;
    return vector;
}

static inline unsigned wrmsr_safe(uint32_t msr, uint64_t value)
{
    uint32_t vector;
    asm volatile(EX_TRY("wrmsr")
                 : "=&D"(vector)
                 : "c"(msr), "a"((uint32_t)value), "d"((uint32_t)(value >> 32))
                 : "memory");
    return vector;
}

static inline unsigned rdpmc_safe(uint32_t selector, uint64_t *value)
{
    uint32_t low = 0, high = 0, vector;
    asm volatile(EX_TRY("rdpmc") : "+a"(low), "+d"(high), "=&D"(vector) : "c"(selector) : "memory");
    *value = vector ? 0 : low | (uint64_t)high << 32;
    return vector;
}

static inline void outb(uint16_t port, uint8_t value)
{
    asm volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline void outw(uint16_t port, uint16_t value)
{
    asm volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static inline void outl(uint16_t port, uint32_t value)
{
    asm volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint8_t inb(uint16_t port)
{
    uint8_t value;
    asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static inline uint32_t inl(uint16_t port)
{
    uint32_t value;
    asm volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static inline uint64_t read_cr2(void)
{
    uint64_t value;
    asm volatile("mov %%cr2, %0" : "=r"(value));
    return value;
}

static inline uint64_t read_cr3(void)
{
    uint64_t value;
    asm volatile("mov %%cr3, %0" : "=r"(value));
    return value;
}

static inline uint64_t read_cr4(void)
{
    uint64_t value;
    asm volatile("mov %%cr4, %0" : "=r"(value));
    return value;
}

static inline void write_cr4(uint64_t value)
{
    asm volatile("mov %0, %%cr4" : : "r"(value) : "memory");
}

static inline uint64_t read_flags(void)
{
    uint64_t value;
    asm volatile("pushfq; pop %0" : "=r"(value));
    return value;
}

static inline void invlpg(const void *address)
{
    asm volatile("invlpg (%0)" : : "r"(address) : "memory");
}

static inline void cli(void)
{
    asm volatile("cli" : : : "memory");
}

static inline void sti(void)
{
    asm volatile("sti" : : : "memory");
}

/* Waits for one interrupt; none is lost between the two (SDM Vol. 2, STI). */
static inline void sti_hlt(void)
{
    asm volatile("sti; hlt" : : : "memory");
}

static inline void pause(void)
{
    asm volatile("pause" : : : "memory");
}

#endif
