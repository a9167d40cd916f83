/* SPDX-License-Identifier: BSD-3-Clause */
#include "trap.h"
#include "cpu.h"
#include "libc.h"
#include "x86.h"

#define VECTORS 256
#define GATE_INTERRUPT 0x8e
#define GATE_DPL3 0x60

struct gate {
    uint16_t offset_low, selector;
    uint8_t ist, type;
    uint16_t offset_middle;
    uint32_t offset_high, reserved;
};

struct fix_up {
    uint64_t from, to;
};

extern const struct fix_up ex_table[], ex_table_end[];
extern const uint8_t trap_stubs[], trap_stubs_end[];
extern const uint8_t user_return[];

static struct gate idt[VECTORS];
static trap_handler *handlers[VECTORS];

static void set_gate(unsigned vector, const void *entry, uint8_t ist, uint8_t dpl)
{
    uint64_t offset = (uintptr_t)entry;

    idt[vector] = (struct gate){
        .offset_low = (uint16_t)offset,
        .selector = SEL_KERNEL_CODE,
        .ist = ist,
        .type = GATE_INTERRUPT | dpl,
        .offset_middle = (uint16_t)(offset >> 16),
        .offset_high = (uint32_t)(offset >> 32),
    };
}

trap_handler *trap_set(unsigned vector, trap_handler *handler)
{
    return __atomic_exchange_n(&handlers[vector], handler, __ATOMIC_SEQ_CST);
}

static const struct fix_up *find_fix_up(uint64_t rip)
{
    for (const struct fix_up *f = ex_table; f < ex_table_end; f++)
        if (f->from == rip)
            return f;
    return NULL;
}

static void unhandled(const struct trap_frame *f)
{
    panic("CPU %u: vector %lu error %lx at %lx:%lx flags %lx sp %lx cr2 %lx", this_cpu()->id,
          f->vector, f->error, f->cs, f->rip, f->rflags, f->rsp, read_cr2());
}

void trap_dispatch(struct trap_frame *frame);
void trap_dispatch(struct trap_frame *frame)
{
    const struct fix_up *fix_up = frame->vector < 32 ? find_fix_up(frame->rip) : NULL;
    trap_handler *handler = handlers[frame->vector];

    if (fix_up && frame->vector != EXC_NMI && frame->vector != EXC_DB) {
        frame->rdi = frame->vector;
        frame->rip = fix_up->to;
    } else if (handler) {
        handler(frame);
    } else if (frame->vector != VECTOR_SPURIOUS) {
        unhandled(frame);
    }
}

static const uint8_t *stub(unsigned vector)
{
    return trap_stubs + vector * ((size_t)(trap_stubs_end - trap_stubs) / VECTORS);
}

static uint8_t ist_of(unsigned vector)
{
    return vector == EXC_NMI ? IST_NMI : vector == EXC_DF ? IST_DF : 0;
}

void trap_set_entry(unsigned vector, const void *entry)
{
    set_gate(vector, entry ? entry : stub(vector), ist_of(vector), GATE_DPL3);
}

void trap_init(void)
{
    for (unsigned v = 0; v < VECTORS; v++)
        set_gate(v, stub(v), ist_of(v), v == EXC_BP ? GATE_DPL3 : 0);
    set_gate(VECTOR_USER_RETURN, user_return, 0, GATE_DPL3);
}

void trap_init_cpu(void)
{
    struct {
        uint16_t limit;
        uint64_t base;
    } __attribute__((packed)) idtr = {sizeof(idt) - 1, (uintptr_t)idt};

    asm volatile("lidt %0" : : "m"(idtr));
}
