/* SPDX-License-Identifier: BSD-3-Clause */
/* The few library calls that images use; each as in ISO C unless it says otherwise. */
#ifndef GUEST_LIBC_H
#define GUEST_LIBC_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
void *memchr(const void *s, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);

size_t strlen(const char *s);
size_t strnlen(const char *s, size_t max);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);
char *strstr(const char *s, const char *part);
char *strcpy(char *to, const char *from);
char *strncpy(char *to, const char *from, size_t n);
unsigned long strtoul(const char *s, char **end, int base);

/*
 * d i u x X c s p %, flags - 0 #, width, precision (also *), lengths hh h l ll z j t.
 * No floating point.
 */
int vsnprintf(char *to, size_t size, const char *fmt, va_list args);
int snprintf(char *to, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* To the serial console; one call is never mixed with another CPU's. At most 512 bytes. */
int printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int vprintf(const char *fmt, va_list args);

/* Ends QEMU through its isa-debug-exit device: its exit status is 2 * code + 1. */
void guest_exit(unsigned code) __attribute__((noreturn));

/* Prints the message and ends the run as failed. */
void panic(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
