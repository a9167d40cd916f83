/* SPDX-License-Identifier: GPL-2.0-or-later */
/* KVM's vPMU under the rule of -object vpmu. */
#ifndef I386_KVM_VPMU_H
#define I386_KVM_VPMU_H

#include "cpu.h"

/*
 * Gives @cpu what the machine's vpmu object is granted, deciding that with
 * the first one; KVM's virtual machine is told before it has a vCPU. Without
 * an object, nothing. False and @errp if the guest must not start.
 */
bool kvm_vpmu_realize(X86CPU *cpu, Error **errp);

/*
 * The guest's PMU as a model that does not count, and whether the guest is in
 * ring 3, and halted; NULL if the kernel does not tell. On the vCPU's own
 * thread, with the big lock, and good for as long as that is held.
 */
struct vpmu *kvm_vpmu_read(X86CPU *cpu, bool *user, bool *halted);

/*
 * Has the kernel try again to get what counts for a counter of the guest's,
 * which is programmed as @state says, if it may count now. By itself it does so
 * only when the guest programs the counter anew (or, since Linux 6.2, when the
 * filter changes); the guest does not see that we have. As kvm_vpmu_read().
 */
void kvm_vpmu_revive(X86CPU *cpu, const struct vpmu_state *state,
                     const struct vpmu_counter_info *info);

/*
 * Whether the guest's counters count at all. It sees no difference but that
 * they stand still, and the host gets what counted for them.
 */
void kvm_vpmu_set_counting(bool counting);

#endif
