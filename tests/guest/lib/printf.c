/* SPDX-License-Identifier: BSD-3-Clause */
#include "libc.h"

struct out {
    char *to;
    size_t size, used;
};

struct spec {
    bool left, zero, alternate, upper;
    int width, precision; /* precision -1: none given */
    int size;             /* of an integer argument, in bytes */
};

static void put(struct out *o, char c)
{
    if (o->used + 1 < o->size)
        o->to[o->used] = c;
    o->used++;
}

static void pad(struct out *o, char c, int n)
{
    while (n-- > 0)
        put(o, c);
}

static void put_text(struct out *o, const struct spec *s, const char *text, size_t n)
{
    int gap = s->width - (int)n;

    if (!s->left)
        pad(o, ' ', gap);
    for (size_t i = 0; i < n; i++)
        put(o, text[i]);
    if (s->left)
        pad(o, ' ', gap);
}

static void put_number(struct out *o, const struct spec *s, uint64_t value, unsigned base,
                       const char *prefix)
{
    const char *digits = s->upper ? "0123456789ABCDEF" : "0123456789abcdef";
    char text[24];
    int n = 0, zeros, gap;

    for (; value; value /= base)
        text[n++] = digits[value % base];
    zeros = (s->precision < 0 ? 1 : s->precision) - n;
    if (zeros < 0)
        zeros = 0;
    gap = s->width - n - zeros - (int)strlen(prefix);
    if (s->zero && !s->left && s->precision < 0 && gap > 0) {
        zeros += gap;
        gap = 0;
    }
    if (!s->left)
        pad(o, ' ', gap);
    for (; *prefix; prefix++)
        put(o, *prefix);
    pad(o, '0', zeros);
    while (n)
        put(o, text[--n]);
    if (s->left)
        pad(o, ' ', gap);
}

static const char *parse_flags(const char *f, struct spec *s)
{
    for (;; f++) {
        if (*f == '-')
            s->left = true;
        else if (*f == '0')
            s->zero = true;
        else if (*f == '#')
            s->alternate = true;
        else
            return f;
    }
}

static const char *parse_length(const char *f, struct spec *s)
{
    s->size = 4;
    for (;; f++) {
        if (*f == 'h')
            s->size /= 2;
        else if (*f == 'l' || *f == 'z' || *f == 'j' || *f == 't')
            s->size = 8;
        else
            return f;
    }
}

static uint64_t truncate(uint64_t value, int size)
{
    return size == 8 ? value : value & ((1ull << 8 * size) - 1);
}

static int64_t extend(uint64_t value, int size)
{
    int shift = 64 - 8 * size;

    return (int64_t)(value << shift) >> shift;
}

int vsnprintf(char *to, size_t size, const char *fmt, va_list list)
{
    struct out o = {to, size, 0};
    va_list args;

    va_copy(args, list);
    for (const char *f = fmt; *f; f++) {
        struct spec s = {.precision = -1};

        if (*f != '%') {
            put(&o, *f);
            continue;
        }
        f = parse_flags(f + 1, &s);
        if (*f == '*') {
            s.width = va_arg(args, int);
            f++;
        } else {
            s.width = (int)strtoul(f, (char **)&f, 10);
        }
        if (*f == '.') {
            f++;
            if (*f == '*') {
                s.precision = va_arg(args, int);
                f++;
            } else {
                s.precision = (int)strtoul(f, (char **)&f, 10);
            }
        }
        f = parse_length(f, &s);
        switch (*f) {
        case 'd':
        case 'i': {
            int64_t value =
                extend(s.size == 8 ? va_arg(args, uint64_t) : va_arg(args, unsigned), s.size);
            put_number(&o, &s, value < 0 ? -(uint64_t)value : (uint64_t)value, 10,
                       value < 0 ? "-" : "");
            break;
        }
        case 'u':
        case 'x':
        case 'X': {
            uint64_t value =
                truncate(s.size == 8 ? va_arg(args, uint64_t) : va_arg(args, unsigned), s.size);
            s.upper = *f == 'X';
            put_number(&o, &s, value, *f == 'u' ? 10 : 16, s.alternate && value ? "0x" : "");
            break;
        }
        case 'p':
            put_number(&o, &s, (uintptr_t)va_arg(args, void *), 16, "0x");
            break;
        case 'c': {
            char c = (char)va_arg(args, int);
            put_text(&o, &s, &c, 1);
            break;
        }
        case 's': {
            const char *text = va_arg(args, const char *);
            text = text ? text : "(null)";
            put_text(&o, &s, text, strnlen(text, s.precision < 0 ? SIZE_MAX : (size_t)s.precision));
            break;
        }
        case '%':
            put(&o, '%');
            break;
        default:
            put(&o, '?');
            break;
        }
        if (!*f)
            break;
    }
    va_end(args);
    if (size)
        to[o.used < size ? o.used : size - 1] = 0;
    return (int)o.used;
}

int snprintf(char *to, size_t size, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(to, size, fmt, args);
    va_end(args);
    return n;
}
