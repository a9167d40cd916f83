/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The export tables of ntoskrnl.exe and hal.dll. A driver is given the address
 * of a stub, one per row, that checks the IRQL before it goes on to the routine.
 */
#include "exports.h"

#include "check.h"
#include "image.h"
#include "libc.h"
#include "ntlayout.h"
#include "ntmore.h"

struct export
{
    const void *routine;
    uint8_t lowest, highest; /* IRQL */
    const char *dll, *name;
    const void *stub;
};
_Static_assert(offsetof(struct export, routine) == EXPORT_ROUTINE, "ntlayout.h");
_Static_assert(offsetof(struct export, lowest) == EXPORT_LOWEST, "ntlayout.h");
_Static_assert(offsetof(struct export, highest) == EXPORT_HIGHEST, "ntlayout.h");

/* ISO C's routines in the drivers' calling convention. */
#define C_ROUTINE(name) nt_##name

static void *NTAPI nt_memcpy(void *to, const void *from, size_t n)
{
    return memcpy(to, from, n);
}

static void *NTAPI nt_memmove(void *to, const void *from, size_t n)
{
    return memmove(to, from, n);
}

static void *NTAPI nt_memset(void *to, int byte, size_t n)
{
    return memset(to, byte, n);
}

static int NTAPI nt_memcmp(const void *a, const void *b, size_t n)
{
    return memcmp(a, b, n);
}

/* A stub per row, and the row that it points to. */
#define EXPORT_ROW(dll, name, function, lowest, highest)                                           \
    void stub_##name(void);                                                                        \
    extern const struct export row_##name;                                                         \
    const struct export row_##name = {function, lowest, highest, dll, #name, stub_##name};         \
    asm(".pushsection .text\n"                                                                     \
        "stub_" #name ": lea row_" #name "(%rip), %rax\n"                                          \
        "jmp export_enter\n"                                                                       \
        ".popsection");
#define EXPORT(dll, name, lowest, highest) EXPORT_ROW(#dll, name, name, lowest, highest)
#define EXPORT_C(name) EXPORT_ROW("ntoskrnl", name, C_ROUTINE(name), PASSIVE_LEVEL, HIGH_LEVEL)
#include "exports.def"
#undef EXPORT
#undef EXPORT_C

static const struct export *const rows[] = {
#define EXPORT(dll, name, lowest, highest) &row_##name,
#define EXPORT_C(name) &row_##name,
#include "exports.def"
#undef EXPORT
#undef EXPORT_C
};

static bool same_letter(char a, char b)
{
    return a == b || (a >= 'A' && a <= 'Z' && a + 32 == b);
}

/* "NTOSKRNL.EXE" and "ntoskrnl" name the image "ntoskrnl". */
static bool names_image(const char *dll, const char *image)
{
    while (*image && same_letter(*dll, *image)) {
        dll++;
        image++;
    }
    return *image == 0 && (*dll == 0 || *dll == '.');
}

uint64_t export_resolve(void *context, const char *dll, const char *name, uint16_t ordinal)
{
    unsigned position = 0;

    (void)context;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (!names_image(dll, rows[i]->dll))
            continue;
        position++;
        if (name ? !strcmp(rows[i]->name, name) : position == ordinal)
            return (uint64_t)rows[i]->stub;
    }
    return 0;
}

PVOID NTAPI MmGetSystemRoutineAddress(PUNICODE_STRING SystemRoutineName)
{
    char name[64];
    size_t length = SystemRoutineName->Length / 2;
    uint64_t address;

    if (length >= sizeof(name))
        return NULL;
    for (size_t i = 0; i < length; i++)
        name[i] = (char)SystemRoutineName->Buffer[i];
    name[length] = 0;
    address = export_resolve(NULL, "ntoskrnl", name, 0);
    return (PVOID)(address ? address : export_resolve(NULL, "hal", name, 0));
}

void export_wrong_irql(const struct export *row, uint64_t irql, uint64_t caller);
void export_wrong_irql(const struct export *row, uint64_t irql, uint64_t caller)
{
    const struct image *image = image_at(caller);

    violation("%s at IRQL %lu from %s, allowed %u to %u", row->name, irql,
              image ? image->name : "nowhere", row->lowest, row->highest);
}
