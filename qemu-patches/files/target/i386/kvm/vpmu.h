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

#endif
