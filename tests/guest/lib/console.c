/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu.h"
#include "libc.h"
#include "report.h"
#include "x86.h"

#define COM1 0x3f8
#define COM_LINE_STATUS (COM1 + 5)
#define COM_THR_EMPTY 0x20
#define DEBUG_EXIT 0xf4

static struct lock console_lock;

static void put_char(char c)
{
    while (!(inb(COM_LINE_STATUS) & COM_THR_EMPTY))
        pause();
    outb(COM1, (uint8_t)c);
}

int vprintf(const char *fmt, va_list args)
{
    char text[512];
    int n = vsnprintf(text, sizeof(text), fmt, args);

    lock(&console_lock);
    for (const char *c = text; *c; c++)
        put_char(*c);
    unlock(&console_lock);
    return n;
}

int printf(const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vprintf(fmt, args);
    va_end(args);
    return n;
}

void guest_exit(unsigned code)
{
    outl(DEBUG_EXIT, code);
    for (;;) {
        cli();
        asm volatile("hlt");
    }
}

void panic(const char *fmt, ...)
{
    char text[256];
    va_list args;

    console_lock.taken = 0; /* it may be this CPU that holds it */
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    printf("PANIC %s\n", text);
    guest_exit(REPORT_EXIT_FAILED);
}
