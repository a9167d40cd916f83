/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PMU of a vCPU under TCG: the model (vpmu/model.h) over what the
 * translator counts (exec/retire.h).
 *
 * All of these may be called for a vCPU without a PMU, and then do nothing.
 * They run on the vCPU's own thread, or while it is stopped.
 */
#ifndef I386_TCG_VPMU_H
#define I386_TCG_VPMU_H

#include "cpu.h"

struct vpmu;
struct vpmu_state;

/* Give @cpu the PMU that its properties ask for. False and @errp if none can be. */
bool x86_vpmu_realize(X86CPU *cpu, Error **errp);
void x86_vpmu_unrealize(X86CPU *cpu);
void x86_vpmu_reset(X86CPU *cpu);

/*
 * The guest's accesses. True if the register is the PMU's; a refused access
 * raises #GP with @ra and does not return.
 */
bool x86_vpmu_rdmsr(CPUX86State *env, uint32_t index, uint64_t *value,
                    uintptr_t ra);
bool x86_vpmu_wrmsr(CPUX86State *env, uint32_t index, uint64_t value,
                    uintptr_t ra);

/* WRMSR to EFER, whose SVME AMD's counters look at. */
void x86_vpmu_efer_written(CPUX86State *env);

/* TCGCPUOps. */
void x86_vpmu_retire_undo(CPUState *cs, const TranslationBlock *tb, int insns);
int x86_vpmu_retire_expired(CPUState *cs, const TranslationBlock *tb);

/*
 * An interrupt is about to be taken: an overflow at the instruction before comes
 * first. True if there may have been one, so that more may be pending.
 */
bool x86_vpmu_settle(CPUX86State *env);

/* A hardware interrupt has been accepted. */
void x86_vpmu_interrupt(CPUX86State *env);

/* INT n, which was executed in @class, has been delivered: it retires. */
void x86_vpmu_retire_int(CPUX86State *env, int class);

/* HLT retires and the vCPU is about to stop; it is about to go on. */
void x86_vpmu_halt(CPUX86State *env);
void x86_vpmu_wake(CPUX86State *env);

/* For INIT, which keeps the PMU, and for migration. */
void x86_vpmu_save(X86CPU *cpu, struct vpmu_state *state);
const char *x86_vpmu_load(X86CPU *cpu, const struct vpmu_state *state);

/* The vCPU's model, for those who look at it; NULL if there is none. */
struct vpmu *x86_vpmu_model(X86CPU *cpu);

#endif
