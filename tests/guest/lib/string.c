/* SPDX-License-Identifier: BSD-3-Clause */
#include "libc.h"

void *memcpy(void *to, const void *from, size_t n)
{
    void *start = to;
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    return start;
}

void *memmove(void *to, const void *from, size_t n)
{
    char *t = to;
    const char *f = from;

    if (t <= f || t >= f + n)
        return memcpy(to, from, n);
    while (n--)
        t[n] = f[n];
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    void *start = to;
    asm volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
    return start;
}

void *memchr(const void *s, int byte, size_t n)
{
    for (const uint8_t *c = s; n; n--, c++)
        if (*c == (uint8_t)byte)
            return (void *)(uintptr_t)c;
    return NULL;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;

    for (; n; n--, x++, y++)
        if (*x != *y)
            return *x - *y;
    return 0;
}

size_t strlen(const char *s)
{
    return strnlen(s, SIZE_MAX);
}

size_t strnlen(const char *s, size_t max)
{
    size_t n = 0;

    while (n < max && s[n])
        n++;
    return n;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

int strncmp(const char *a, const char *b, size_t n)
{
    for (; n && *a && *a == *b; n--, a++, b++)
        ;
    return n ? (unsigned char)*a - (unsigned char)*b : 0;
}

char *strchr(const char *s, int c)
{
    for (;; s++) {
        if (*s == (char)c)
            return (char *)s;
        if (!*s)
            return NULL;
    }
}

char *strrchr(const char *s, int c)
{
    const char *last = NULL;

    do {
        if (*s == (char)c)
            last = s;
    } while (*s++);
    return (char *)last;
}

char *strstr(const char *s, const char *part)
{
    size_t n = strlen(part);

    for (;; s++) {
        if (!strncmp(s, part, n))
            return (char *)s;
        if (!*s)
            return NULL;
    }
}

char *strcpy(char *to, const char *from)
{
    return memcpy(to, from, strlen(from) + 1);
}

char *strncpy(char *to, const char *from, size_t n)
{
    size_t used = strnlen(from, n);

    memcpy(to, from, used);
    memset(to + used, 0, n - used);
    return to;
}

static unsigned digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
        return (unsigned)((c | 0x20) - 'a' + 10);
    return 36;
}

unsigned long strtoul(const char *s, char **end, int base)
{
    unsigned long value = 0;

    while (*s == ' ')
        s++;
    if ((base == 0 || base == 16) && s[0] == '0' && (s[1] | 0x20) == 'x') {
        s += 2;
        base = 16;
    }
    if (base == 0)
        base = *s == '0' ? 8 : 10;
    for (; digit_of(*s) < (unsigned)base; s++)
        value = value * (unsigned)base + digit_of(*s);
    if (end)
        *end = (char *)s;
    return value;
}
