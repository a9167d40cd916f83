/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions with exception handlers, as a compiler makes them of __try. Each
 * returns ~0 where its guarded instruction faulted. The frames differ: pushed
 * registers, a frame pointer, a large allocation, so that unwinding is tried.
 */

    .text

    .macro handler begin, end, filter, target
    .seh_handler __C_specific_handler, @except, @unwind
    .seh_handlerdata
    .long 1
    .rva \begin
    .rva \end
    \filter
    \target
    .text
    .seh_endproc
    .endm

    .macro executes begin, end, target
    handler \begin, \end, ".long 1", ".rva \target"
    .endm

/* uint64_t seh_rdmsr(uint32_t msr): the fault is in the guarded function itself. */
    .globl seh_rdmsr
    .seh_proc seh_rdmsr
seh_rdmsr:
    pushq %rbx
    .seh_pushreg %rbx
    subq $32, %rsp
    .seh_stackalloc 32
    .seh_endprologue
1:  rdmsr
2:  shlq $32, %rdx
    orq %rdx, %rax
4:  addq $32, %rsp
    popq %rbx
    ret
3:  movq $-1, %rax
    jmp 4b
    executes 1b, 2b, 3b

/* A function with a frame of 4 KiB and no handler, on the way of the exception. */
    .seh_proc read_msr
read_msr:
    pushq %rsi
    .seh_pushreg %rsi
    pushq %rdi
    .seh_pushreg %rdi
    subq $4096 + 8, %rsp
    .seh_stackalloc 4096 + 8
    .seh_endprologue
    movq $0x1234, %rsi
    movq $0x5678, %rdi
    call leaf
    addq $4096 + 8, %rsp
    popq %rdi
    popq %rsi
    ret
    .seh_endproc

/* No unwind information at all: a leaf function. */
leaf:
    rdmsr
    shlq $32, %rdx
    orq %rdx, %rax
    ret

/* uint64_t seh_nested(uint32_t msr): two frames below. RSI and RDI must survive. */
    .globl seh_nested
    .seh_proc seh_nested
seh_nested:
    pushq %rbp
    .seh_pushreg %rbp
    subq $48, %rsp
    .seh_stackalloc 48
    leaq 32(%rsp), %rbp
    .seh_setframe %rbp, 32
    .seh_endprologue
    movq %rsi, 32(%rsp)
    movq %rdi, 40(%rsp)
    subq $64, %rsp
1:  call read_msr
    nop
2:  jmp 4f
3:  movq $-1, %rax
    cmpq %rsi, 0(%rbp)
    jne 5f
    cmpq %rdi, 8(%rbp)
    je 4f
5:  movq $-2, %rax
4:  leaq 16(%rbp), %rsp
    popq %rbp
    ret
    executes 1b, 2b, 3b

/* uint64_t seh_filtered(uint32_t msr): seh_filter decides. */
    .globl seh_filtered
    .seh_proc seh_filtered
seh_filtered:
    subq $40, %rsp
    .seh_stackalloc 40
    .seh_endprologue
1:  call read_msr
    nop
2:  addq $40, %rsp
    ret
3:  movq $-1, %rax
    jmp 2b
    handler 1b, 2b, ".rva seh_filter", ".rva 3b"

/* The __finally block: the frame of seh_guard_finally is in RDX; the address to tell lies there. */
finally_block:
    movq 32(%rdx), %rax
    incq (%rax)
    ret

    .seh_proc guard_finally
guard_finally:
    subq $56, %rsp
    .seh_stackalloc 56
    .seh_endprologue
    movq %rdx, 32(%rsp)
1:  call read_msr
    nop
2:  addq $56, %rsp
    ret
    handler 1b, 2b, ".rva finally_block", ".long 0"

/* uint64_t seh_finally(uint32_t msr, volatile uint64_t *ran) */
    .globl seh_finally
    .seh_proc seh_finally
seh_finally:
    subq $40, %rsp
    .seh_stackalloc 40
    .seh_endprologue
1:  call guard_finally
    nop
2:  addq $40, %rsp
    ret
3:  movq $-1, %rax
    jmp 2b
    executes 1b, 2b, 3b

/* uint64_t seh_write(volatile uint8_t *address) */
    .globl seh_write
    .seh_proc seh_write
seh_write:
    subq $40, %rsp
    .seh_stackalloc 40
    .seh_endprologue
1:  movb $0xc3, (%rcx)
2:  xorl %eax, %eax
4:  addq $40, %rsp
    ret
3:  movq $-1, %rax
    jmp 4b
    executes 1b, 2b, 3b

/*
 * uint64_t seh_call(const void *address): the fault's RIP is in data, which has
 * no function entry and so counts as a leaf; its caller is the guarded call.
 */
    .globl seh_call
    .seh_proc seh_call
seh_call:
    subq $40, %rsp
    .seh_stackalloc 40
    .seh_endprologue
1:  call *%rcx
    nop
2:  xorl %eax, %eax
4:  addq $40, %rsp
    ret
3:  movq $-1, %rax
    jmp 4b
    executes 1b, 2b, 3b
