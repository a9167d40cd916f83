/* SPDX-License-Identifier: BSD-3-Clause */
#include "step.h"
#include "cpu.h"
#include "libc.h"
#include "trap.h"
#include "x86.h"

/* One CPU steps at a time. */
static struct {
    struct step_counts counts;
    struct step_trace *trace;
    uint64_t rip, first, last;
    bool counting;
} step;

enum kind { OTHER, BRANCH, CONDITIONAL };

static bool is_prefix(uint8_t b)
{
    static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
                                       0x66, 0x67, 0xf0, 0xf2, 0xf3};

    return memchr(prefixes, b, sizeof(prefixes)) || (b & 0xf0) == 0x40; /* REX */
}

static bool is_string(uint8_t op)
{
    return (op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf) || (op >= 0x6c && op <= 0x6f);
}

/* SDM Vol. 2, opcode maps, 64-bit mode. */
static enum kind kind_of(const uint8_t *op)
{
    while (is_prefix(*op))
        op++;
    if (*op == 0x0f) {
        op++;
        if ((*op & 0xf0) == 0x80)
            return CONDITIONAL;
        return *op == 0x05 || *op == 0x07 || *op == 0x34 || *op == 0x35 ? BRANCH : OTHER;
    }
    if ((*op & 0xf0) == 0x70 || (*op >= 0xe0 && *op <= 0xe3))
        return CONDITIONAL;
    if (*op == 0xff) {
        unsigned extension = op[1] >> 3 & 7;
        return extension >= 2 && extension <= 5 ? BRANCH : OTHER;
    }
    switch (*op) {
    case 0xc2: /* RET */
    case 0xc3:
    case 0xca:
    case 0xcb:
    case 0xcc: /* INT */
    case 0xcd:
    case 0xcf: /* IRET */
    case 0xe8: /* CALL */
    case 0xe9: /* JMP */
    case 0xeb:
        return BRANCH;
    default:
        return OTHER;
    }
}

/* A REP that will go on traps at its own address. */
static bool goes_on(uint64_t rip)
{
    const uint8_t *op = (const uint8_t *)rip;

    if (rip != step.rip)
        return false;
    while (is_prefix(*op))
        op++;
    return is_string(*op);
}

static void record(uint64_t rip)
{
    struct step_trace *t = step.trace;

    if (t && t->length < t->size)
        t->rips[t->length++] = rip;
}

static void retired(uint64_t next)
{
    enum kind kind = kind_of((const uint8_t *)step.rip);

    step.counts.insns++;
    step.counts.branches += kind != OTHER;
    step.counts.cond += kind == CONDITIONAL;
    record(next);
}

static void trap(struct trap_frame *frame)
{
    if (step.counting && !goes_on(frame->rip))
        retired(frame->rip);
    if (!step.counting && frame->rip == step.first) {
        step.counting = true;
        record(frame->rip);
    } else if (frame->rip == step.last) {
        step.counting = false;
    }
    step.rip = frame->rip;
    asm volatile("mov %0, %%dr6" : : "r"(0ul));
}

static void start(struct step_trace *trace, uint64_t first, uint64_t last)
{
    memset(&step, 0, sizeof(step));
    step.trace = trace;
    step.first = first;
    step.last = last;
    if (trace)
        trace->length = 0;
}

struct step_counts step_user(uint64_t (*fn)(uint64_t), uint64_t arg, struct step_trace *trace)
{
    trap_handler *before = trap_set(EXC_DB, trap);

    start(trace, 0, 0);
    step.counting = true;
    step.rip = (uintptr_t)fn;
    record(step.rip);
    enter_user(fn, arg, FLAG_TF, user_stack_top());
    trap_set(EXC_DB, before);
    return step.counts;
}

struct step_counts step_kernel(uint64_t (*fn)(uint64_t), uint64_t arg, uint64_t first,
                               uint64_t last, struct step_trace *trace)
{
    trap_handler *before = trap_set(EXC_DB, trap);

    start(trace, first, last);
    asm volatile("pushfq; orq $0x100, (%%rsp); popfq" : : : "memory", "cc");
    fn(arg);
    asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" : : : "memory", "cc");
    trap_set(EXC_DB, before);
    return step.counts;
}
