/* SPDX-License-Identifier: BSD-3-Clause */
/* Text of bounded length: what does not fit is counted and left out. */
#include "arbiter_internal.h"

void arb_put_char(struct text *text, char c)
{
    if (text->length + 1 < text->size)
        text->to[text->length] = c;
    text->length++;
}

void arb_put_string(struct text *text, const char *string)
{
    while (*string)
        arb_put_char(text, *string++);
}

void arb_put_number(struct text *text, uint64_t number, unsigned base)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    while (count)
        arb_put_char(text, digits[--count]);
}

size_t arb_text_end(struct text *text)
{
    if (text->size)
        text->to[text->length < text->size ? text->length : text->size - 1] = '\0';
    return text->length;
}
