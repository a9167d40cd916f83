/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu.h"
#include "libc.h"
#include "memory.h"
#include "multiboot.h"
#include "report.h"
#include "trap.h"

/* Each image's own: makes its reports and returns. */
void guest_main(void);

void start(void) __attribute__((noreturn));
void start(void)
{
    uint64_t from, to;

    trap_init();
    cpu_init_first();
    multiboot_init(&from, &to);
    memory_init(from, to);
    cpu_init_others();
    guest_main();
    guest_exit(report_summary());
}
