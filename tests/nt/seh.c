/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Structured exception handling by tables, for exceptions in driver images
 * ("x64 exception handling" in Microsoft's C++ documentation). First the frames
 * are searched for a handler that wants the exception; then they are unwound up
 * to it, termination handlers on the way, and execution goes on at its target.
 */
#include "seh.h"

#include "check.h"
#include "image.h"
#include "libc.h"
#include "ntlayout.h"
#include "ntmore.h"
#include "processor.h"
#include "trap.h"

enum { RCX = 1, RDX = 2, RBX = 3, RSP = 4, RBP = 5, RSI = 6, RDI = 7 };
enum { EXCEPTION_HANDLER = 1, TERMINATION_HANDLER = 2, CHAINED = 4 };

enum unwind_operation {
    PUSH_NONVOL,
    ALLOC_LARGE,
    ALLOC_SMALL,
    SET_FPREG,
    SAVE_NONVOL,
    SAVE_NONVOL_FAR,
    SAVE_XMM128 = 8,
    SAVE_XMM128_FAR,
    PUSH_MACHFRAME,
};

struct unwind_info {
    uint8_t version_flags, prologue, count, frame;
    uint16_t codes[];
};

struct frame {
    const struct image *image;
    uint64_t pc, establisher;
    struct pe_function function;
    unsigned flags;
    EXCEPTION_ROUTINE *handler; /* NULL: none */
    void *handler_data;
};

_Static_assert(offsetof(CONTEXT, Gpr) == CONTEXT_RAX, "ntlayout.h");
_Static_assert(offsetof(CONTEXT, Rip) == CONTEXT_RIP, "ntlayout.h");
_Static_assert(offsetof(CONTEXT, EFlags) == CONTEXT_EFLAGS, "ntlayout.h");

void restore_context(const CONTEXT *context) __attribute__((noreturn));

static uint64_t stack_word(uint64_t address)
{
    return *(const uint64_t *)address;
}

static void pop_rip(CONTEXT *context)
{
    context->Rip = stack_word(context->Gpr[RSP]);
    context->Gpr[RSP] += 8;
}

static unsigned slots_of(unsigned operation, unsigned info)
{
    switch (operation) {
    case ALLOC_LARGE:
        return info ? 3 : 2;
    case SAVE_NONVOL:
    case SAVE_XMM128:
        return 2;
    case SAVE_NONVOL_FAR:
    case SAVE_XMM128_FAR:
        return 3;
    default:
        return 1;
    }
}

static uint32_t far_operand(const uint16_t *code)
{
    return code[1] | (uint32_t)code[2] << 16;
}

/* Undoes one step of a prologue. SSE registers are the driver's own affair here. */
static void undo(const struct unwind_info *info, const uint16_t *code, uint64_t establisher,
                 CONTEXT *context)
{
    unsigned operand = code[0] >> 12;
    uint64_t *gpr = context->Gpr;

    switch (code[0] >> 8 & 0xf) {
    case PUSH_NONVOL:
        gpr[operand] = stack_word(gpr[RSP]);
        gpr[RSP] += 8;
        break;
    case ALLOC_LARGE:
        gpr[RSP] += operand ? far_operand(code) : 8u * code[1];
        break;
    case ALLOC_SMALL:
        gpr[RSP] += 8 * operand + 8;
        break;
    case SET_FPREG:
        gpr[RSP] = gpr[info->frame & 0xf] - 16u * (info->frame >> 4);
        break;
    case SAVE_NONVOL:
        gpr[operand] = stack_word(establisher + 8u * code[1]);
        break;
    case SAVE_NONVOL_FAR:
        gpr[operand] = stack_word(establisher + far_operand(code));
        break;
    default:
        break;
    }
}

static const struct unwind_info *info_of(const struct image *image, uint32_t rva)
{
    const struct unwind_info *info = (const void *)(image->base + rva);

    if (rva > image->pe.image_size - 4 ||
        rva + sizeof(*info) + 2u * info->count + 12 > image->pe.image_size)
        panic("%s: unwind information outside of the image", image->name);
    return info;
}

static void undo_all(const struct image *image, const struct pe_function *function, uint64_t pc,
                     uint64_t establisher, CONTEXT *context)
{
    const struct unwind_info *info = info_of(image, function->unwind_rva);
    uint64_t offset = pc - image->base - function->begin_rva;

    for (unsigned i = 0; i < info->count;) {
        const uint16_t *code = &info->codes[i];

        if ((code[0] & 0xff) <= offset)
            undo(info, code, establisher, context);
        i += slots_of(code[0] >> 8 & 0xf, code[0] >> 12);
    }
    if (info->version_flags >> 3 & CHAINED) {
        struct pe_function parent;

        memcpy(&parent, &info->codes[(info->count + 1u) & ~1u], sizeof(parent));
        undo_all(image, &parent, image->base + parent.end_rva, establisher, context);
    }
}

/* Describes the frame that context stands in, and moves context to its caller. */
static bool unwind_frame(CONTEXT *context, struct frame *frame)
{
    const struct unwind_info *info;

    memset(frame, 0, sizeof(*frame));
    frame->pc = context->Rip;
    frame->image = image_at(context->Rip);
    frame->establisher = context->Gpr[RSP];
    if (!frame->image)
        return false;
    if (!pe_find_function(&frame->image->pe, frame->image->memory,
                          (uint32_t)(frame->pc - frame->image->base), &frame->function)) {
        pop_rip(context); /* a leaf function */
        return true;
    }
    info = info_of(frame->image, frame->function.unwind_rva);
    if (info->frame & 0xf)
        frame->establisher = context->Gpr[info->frame & 0xf] - 16u * (info->frame >> 4);
    frame->flags = info->version_flags >> 3;
    if (frame->flags & (EXCEPTION_HANDLER | TERMINATION_HANDLER)) {
        const uint32_t *handler = (const void *)&info->codes[(info->count + 1u) & ~1u];

        frame->handler = (EXCEPTION_ROUTINE *)(frame->image->base + *handler);
        frame->handler_data = (void *)(handler + 1);
    }
    undo_all(frame->image, &frame->function, frame->pc, frame->establisher, context);
    pop_rip(context);
    return true;
}

static int call_handler(const struct frame *frame, EXCEPTION_RECORD *record, CONTEXT *original,
                        CONTEXT *unwound)
{
    RUNTIME_FUNCTION entry = {frame->function.begin_rva, frame->function.end_rva,
                              frame->function.unwind_rva};
    DISPATCHER_CONTEXT dispatcher = {
        .ControlPc = frame->pc,
        .ImageBase = frame->image->base,
        .FunctionEntry = &entry,
        .EstablisherFrame = frame->establisher,
        .ContextRecord = unwound,
        .LanguageHandler = frame->handler,
        .HandlerData = frame->handler_data,
    };

    return frame->handler(record, (PVOID)frame->establisher, original, &dispatcher);
}

/* The second pass: goes on at target in the frame of that establisher. */
static void __attribute__((noreturn)) unwind_to(uint64_t establisher, uint64_t target,
                                                EXCEPTION_RECORD *record, const CONTEXT *original)
{
    CONTEXT context = *original;

    for (;;) {
        CONTEXT here = context;
        struct frame frame;

        if (!unwind_frame(&context, &frame))
            panic("seh: the frame to unwind to is gone");
        record->ExceptionFlags |= EXCEPTION_UNWINDING;
        if (frame.establisher == establisher)
            record->ExceptionFlags |= EXCEPTION_TARGET_UNWIND;
        if (frame.flags & TERMINATION_HANDLER)
            call_handler(&frame, record, &here, &context);
        if (frame.establisher == establisher) {
            here.Rip = target;
            here.Gpr[0] = record->ExceptionCode;
            restore_context(&here);
        }
    }
}

typedef LONG NTAPI filter_routine(EXCEPTION_POINTERS *pointers, PVOID frame);
typedef VOID NTAPI finally_routine(BOOLEAN abnormal, PVOID frame);

static int search_scopes(const SCOPE_TABLE *table, EXCEPTION_RECORD *record, CONTEXT *context,
                         const DISPATCHER_CONTEXT *dispatcher)
{
    uint64_t base = dispatcher->ImageBase;
    uint64_t rva = dispatcher->ControlPc - base;
    EXCEPTION_POINTERS pointers = {record, context};

    for (ULONG i = 0; i < table->Count; i++) {
        LONG wanted = EXCEPTION_EXECUTE_HANDLER;

        if (rva < table->ScopeRecord[i].BeginAddress || rva >= table->ScopeRecord[i].EndAddress ||
            !table->ScopeRecord[i].JumpTarget)
            continue;
        if (table->ScopeRecord[i].HandlerAddress != EXCEPTION_EXECUTE_HANDLER)
            wanted = ((filter_routine *)(base + table->ScopeRecord[i].HandlerAddress))(
                &pointers, (PVOID)dispatcher->EstablisherFrame);
        if (wanted < 0)
            return ExceptionContinueExecution;
        if (wanted > 0)
            unwind_to(dispatcher->EstablisherFrame, base + table->ScopeRecord[i].JumpTarget, record,
                      context);
    }
    return ExceptionContinueSearch;
}

static void run_termination(const SCOPE_TABLE *table, const DISPATCHER_CONTEXT *dispatcher)
{
    uint64_t base = dispatcher->ImageBase;
    uint64_t rva = dispatcher->ControlPc - base;

    for (ULONG i = 0; i < table->Count; i++)
        if (rva >= table->ScopeRecord[i].BeginAddress && rva < table->ScopeRecord[i].EndAddress &&
            !table->ScopeRecord[i].JumpTarget)
            ((finally_routine *)(base + table->ScopeRecord[i].HandlerAddress))(
                TRUE, (PVOID)dispatcher->EstablisherFrame);
}

int NTAPI __C_specific_handler(EXCEPTION_RECORD *ExceptionRecord, PVOID EstablisherFrame,
                               CONTEXT *ContextRecord, DISPATCHER_CONTEXT *DispatcherContext)
{
    (void)EstablisherFrame;
    if (!(ExceptionRecord->ExceptionFlags & EXCEPTION_UNWINDING))
        return search_scopes(DispatcherContext->HandlerData, ExceptionRecord, ContextRecord,
                             DispatcherContext);
    run_termination(DispatcherContext->HandlerData, DispatcherContext);
    return ExceptionContinueSearch;
}

/* The first pass. Returns only if a handler wants to try the instruction again. */
static void dispatch(EXCEPTION_RECORD *record, CONTEXT *original)
{
    CONTEXT context = *original;
    struct frame frame;

    while (unwind_frame(&context, &frame))
        if (frame.flags & EXCEPTION_HANDLER &&
            call_handler(&frame, record, original, &context) == ExceptionContinueExecution)
            return;
    panic("exception %08x at %p (%s address %lx): no handler, stack %lx", record->ExceptionCode,
          record->ExceptionAddress, record->ExceptionInformation[0] ? "write of" : "read of",
          record->ExceptionInformation[1], original->Gpr[RSP]);
}

static void context_of(const struct trap_frame *f, CONTEXT *context)
{
    const uint64_t gpr[16] = {f->rax, f->rcx, f->rdx, f->rbx, f->rsp, f->rbp, f->rsi, f->rdi,
                              f->r8,  f->r9,  f->r10, f->r11, f->r12, f->r13, f->r14, f->r15};

    memset(context, 0, sizeof(*context));
    memcpy(context->Gpr, gpr, sizeof(gpr));
    context->Rip = f->rip;
    context->EFlags = (ULONG)f->rflags;
    context->SegCs = (USHORT)f->cs;
    context->SegSs = (USHORT)f->ss;
}

/* RDMSR, WRMSR and RDPMC fault with #GP where the register is not there. */
static bool is_msr_instruction(uint64_t rip)
{
    const uint8_t *code = (const uint8_t *)rip;

    return code[0] == 0x0f && (code[1] == 0x30 || code[1] == 0x32 || code[1] == 0x33);
}

static NTSTATUS code_of(const struct trap_frame *frame)
{
    switch (frame->vector) {
    case EXC_DE:
        return STATUS_INTEGER_DIVIDE_BY_ZERO;
    case EXC_UD:
        return STATUS_ILLEGAL_INSTRUCTION;
    case EXC_GP:
        if (is_msr_instruction(frame->rip))
            return STATUS_PRIVILEGED_INSTRUCTION;
        return STATUS_ACCESS_VIOLATION;
    default:
        return STATUS_ACCESS_VIOLATION;
    }
}

static void on_exception(struct trap_frame *frame)
{
    EXCEPTION_RECORD record = {
        .ExceptionCode = (ULONG)code_of(frame),
        .ExceptionAddress = (PVOID)frame->rip,
        .ExceptionInformation = {frame->error >> 1 & 1, read_cr2()},
    };
    const struct image *image = image_at(frame->rip);
    CONTEXT context;

    if (!image)
        panic("vector %lu, error %lx at %lx:%lx, stack %lx, cr2 %lx", frame->vector, frame->error,
              frame->cs, frame->rip, frame->rsp, read_cr2());
    note("%s: exception %08x at RVA %lx", image->name, record.ExceptionCode,
         frame->rip - image->base);
    context_of(frame, &context);
    interrupts_restore(frame->rflags & FLAG_IF);
    dispatch(&record, &context);
    restore_context(&context);
}

void seh_init(void)
{
    static const unsigned vectors[] = {EXC_DE, EXC_UD, EXC_GP, EXC_PF};

    for (unsigned i = 0; i < ARRAY_SIZE(vectors); i++)
        trap_set(vectors[i], on_exception);
}
