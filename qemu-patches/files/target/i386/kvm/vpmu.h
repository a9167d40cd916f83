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
 * ring 3; NULL if the kernel does not tell. On the vCPU's own thread, with the
 * big lock, and good for as long as that is held.
 */
struct vpmu *kvm_vpmu_read(X86CPU *cpu, bool *user);

/*
 * Whether the guest's counters count at all. It sees no difference but that
 * they stand still, and the host gets what counted for them.
 */
void kvm_vpmu_set_counting(bool counting);

#endif
