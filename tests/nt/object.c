/* SPDX-License-Identifier: BSD-3-Clause */
#include "object.h"

#include "check.h"
#include "libc.h"
#include "pool.h"

#define OBJECT_MAGIC 0x4a424f56u

struct object {
    uint32_t magic;
    enum object_type type;
    volatile int64_t references;
    void (*destroy)(void *body);
    uint64_t reserved;
};
_Static_assert(sizeof(struct object) % 16 == 0, "bodies keep the pool's alignment");

struct handle_table kernel_handles;
static volatile unsigned live[3];

static struct object *object_of(const void *body)
{
    struct object *object = (struct object *)body - 1;

    return body && object->magic == OBJECT_MAGIC ? object : NULL;
}

void *object_create(enum object_type type, size_t size, void (*destroy)(void *body))
{
    struct object *object = pool_allocate(sizeof(*object) + size, POOL_OWN_TAG, NULL);

    if (!object)
        return NULL;
    memset(object, 0, sizeof(*object) + size);
    object->magic = OBJECT_MAGIC;
    object->type = type;
    object->references = 1;
    object->destroy = destroy;
    __atomic_add_fetch(&live[type], 1, __ATOMIC_RELAXED);
    return object + 1;
}

void object_reference(void *body)
{
    struct object *object = object_of(body);

    if (object)
        __atomic_add_fetch(&object->references, 1, __ATOMIC_RELAXED);
    else
        violation("a reference to no object is taken");
}

LONGLONG object_release(void *body)
{
    struct object *object = object_of(body);
    int64_t left;

    if (!object) {
        violation("a reference to no object is dropped");
        return 0;
    }
    left = __atomic_sub_fetch(&object->references, 1, __ATOMIC_ACQ_REL);
    if (left == 0) {
        __atomic_sub_fetch(&live[object->type], 1, __ATOMIC_RELAXED);
        if (object->destroy)
            object->destroy(body);
        object->magic = 0;
        pool_free(object, POOL_OWN_TAG);
    }
    return left;
}

enum object_type object_type(const void *body)
{
    const struct object *object = object_of(body);

    return object ? object->type : OBJECT_TYPE_NONE;
}

unsigned object_count(enum object_type type)
{
    return live[type];
}

/* Handle values are multiples of 4; those of the kernel have the upper bits set. */
HANDLE handle_open(struct handle_table *table, void *body)
{
    uint64_t flags = table == &kernel_handles ? ~UINT64_C(0x7fffffff) : 0;

    for (unsigned i = 0; i < HANDLES; i++) {
        void *none = NULL;

        if (__atomic_compare_exchange_n(&table->bodies[i], &none, body, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return (HANDLE)(flags | (4 * (i + 1)));
    }
    return NULL;
}

static void **handle_slot(struct handle_table *table, HANDLE handle)
{
    uint64_t value = (uint64_t)handle & 0x7fffffff;

    if (value % 4 || value == 0 || value / 4 > HANDLES)
        return NULL;
    return &table->bodies[value / 4 - 1];
}

void *handle_body(struct handle_table *table, HANDLE handle)
{
    void **slot = handle_slot(table, handle);

    return slot ? *slot : NULL;
}

void *handle_take(struct handle_table *table, HANDLE handle)
{
    void **slot = handle_slot(table, handle);

    return slot ? __atomic_exchange_n(slot, NULL, __ATOMIC_ACQ_REL) : NULL;
}

NTSTATUS NTAPI ObReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess, PVOID ObjectType,
                                         KPROCESSOR_MODE AccessMode, PVOID *Object,
                                         PVOID HandleInformation)
{
    void *body = handle_body(&kernel_handles, Handle);

    (void)DesiredAccess;
    (void)ObjectType;
    (void)AccessMode;
    (void)HandleInformation;
    *Object = body;
    if (!body)
        return STATUS_INVALID_HANDLE;
    object_reference(body);
    return STATUS_SUCCESS;
}

LONGLONG NTAPI ObfReferenceObject(PVOID Object)
{
    struct object *object = object_of(Object);

    object_reference(Object);
    return object ? object->references : 0;
}

LONGLONG NTAPI ObfDereferenceObject(PVOID Object)
{
    return object_release(Object);
}

NTSTATUS NTAPI ZwClose(HANDLE Handle)
{
    void *body = handle_take(&kernel_handles, Handle);

    if (!body)
        return STATUS_INVALID_HANDLE;
    object_release(body);
    return STATUS_SUCCESS;
}
