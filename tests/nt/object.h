/* SPDX-License-Identifier: BSD-3-Clause */
/* Reference-counted objects and handles. */
#ifndef NT_OBJECT_H
#define NT_OBJECT_H

#include "ntmore.h"

enum object_type { OBJECT_TYPE_NONE, OBJECT_TYPE_THREAD, OBJECT_TYPE_FILE };

#define HANDLES 64

struct handle_table {
    void *bodies[HANDLES];
};

/** Allocates a zeroed body behind an object header, with one reference. */
void *object_create(enum object_type type, size_t size, void (*destroy)(void *body));
void object_reference(void *body);

/** Drops a reference; the last one destroys the object. Returns how many are left. */
LONGLONG object_release(void *body);
enum object_type object_type(const void *body);

/** Live objects of a type. */
unsigned object_count(enum object_type type);

/** Gives a handle that owns one reference; NULL when the table is full. */
HANDLE handle_open(struct handle_table *table, void *body);

/** The body behind a handle, NULL if it is not a live one. No reference is taken. */
void *handle_body(struct handle_table *table, HANDLE handle);

/** Takes the handle away; the caller owns its reference now. */
void *handle_take(struct handle_table *table, HANDLE handle);

/** The handles of the kernel itself, what PsCreateSystemThread gives. */
extern struct handle_table kernel_handles;

#endif
