/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Instructions that fault where a register does not exist. CPUID cannot rule that out: a hypervisor may
 * list a counter and refuse its MSR. The guard is what a compiler makes of __try and __except: a scope
 * table for __C_specific_handler ("x64 exception handling" in Microsoft's documentation), with the
 * constant EXCEPTION_EXECUTE_HANDLER in place of a filter. Each function returns 1, or 0 on a fault.
 */

        .text

        /* The body between labels 1 and 2 is guarded; a fault goes on at 3. */
        .macro guarded name
        .globl \name
        .p2align 4
        .seh_proc \name
\name:
        subq $40, %rsp
        .seh_stackalloc 40
        .seh_endprologue
        .endm

        .macro end_guarded
        movl $1, %eax
        addq $40, %rsp
        ret
3:      xorl %eax, %eax
        addq $40, %rsp
        ret
        .seh_handler __C_specific_handler, @except
        .seh_handlerdata
        .long 1         /* scopes */
        .rva 1b
        .rva 2b
        .long 1         /* EXCEPTION_EXECUTE_HANDLER */
        .rva 3b
        .text
        .seh_endproc
        .endm

/* bool os_rdmsr(uint32_t msr, uint64_t *value) */
guarded os_rdmsr
        movq %rdx, %r8
1:      rdmsr
2:      shlq $32, %rdx
        orq %rdx, %rax
        movq %rax, (%r8)
end_guarded

/* bool os_wrmsr(uint32_t msr, uint64_t value) */
guarded os_wrmsr
        movq %rdx, %rax
        shrq $32, %rdx
1:      wrmsr
2:
end_guarded

/* bool os_rdpmc(uint32_t selector, uint64_t *value) */
guarded os_rdpmc
        movq %rdx, %r8
1:      rdpmc
2:      shlq $32, %rdx
        orq %rdx, %rax
        movq %rax, (%r8)
end_guarded

/*
 * bool os_measure(uint32_t msr, uint64_t on, uint64_t off, uint32_t iterations)
 *
 * OS_WORK_INSTRUCTIONS and OS_WORK_BRANCHES count what stands between the two WRMSRs, and one of them.
 */
guarded os_measure
        movq %rdx, %rax
        shrq $32, %rdx
1:      wrmsr
4:      decl %r9d
        jnz 4b
        movq %r8, %rax
        movq %r8, %rdx
        shrq $32, %rdx
        wrmsr
2:
end_guarded
