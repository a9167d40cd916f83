/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu.h"
#include "libc.h"
#include "memory.h"
#include "multiboot.h"
#include "report.h"
#include "trap.h"
#include "x86.h"

#define PIC_MASTER_MASK 0x21
#define PIC_SLAVE_MASK 0xa1

/* Each image's own: makes its reports and returns. */
void guest_main(void);

/* The firmware's timer interrupt would come in on vector 8. */
static void mask_pics(void)
{
    outb(PIC_MASTER_MASK, 0xff);
    outb(PIC_SLAVE_MASK, 0xff);
}

void start(void) __attribute__((noreturn));
void start(void)
{
    uint64_t from, to;

    mask_pics();
    trap_init();
    cpu_init_first();
    multiboot_init(&from, &to);
    memory_init(from, to);
    cpu_init_others();
    guest_main();
    guest_exit(report_summary());
}
