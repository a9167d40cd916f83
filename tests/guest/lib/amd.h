/* SPDX-License-Identifier: BSD-3-Clause */
/* AMD's PMU: registers and events (APM Vol. 2, "Performance Monitoring Counters"; PPRs). */
#ifndef GUEST_AMD_H
#define GUEST_AMD_H

#include <stdint.h>

#define MSR_LEGACY_CTL(i) (0xc0010000u + (i))
#define MSR_LEGACY_CTR(i) (0xc0010004u + (i))
#define MSR_PERF_CTL(i) (0xc0010200u + 2 * (i))
#define MSR_PERF_CTR(i) (0xc0010201u + 2 * (i))
#define MSR_AMD_STATUS 0xc0000300u
#define MSR_AMD_CTL 0xc0000301u
#define MSR_AMD_STATUS_CLR 0xc0000302u
#define MSR_AMD_STATUS_SET 0xc0000303u
#define MSR_HWCR 0xc0010015u
#define MSR_IRPERF 0xc00000e9u
#define MSR_EFER 0xc0000080u

#define EFER_SVME (1ul << 12)
#define HWCR_IRPERF_EN (1ul << 30)
#define GUEST_ONLY (1ul << 40)
#define HOST_ONLY (1ul << 41)

#define AMD_INTERRUPTS 0x2cul
#define AMD_INSTRUCTIONS 0xc0ul
#define AMD_CYCLES 0x76ul
#define AMD_BRANCHES 0xc2ul
#define AMD_BRANCH_MISSES 0xc3ul
#define AMD_NEAR_RETURNS 0xc8ul
#define AMD_COND_BRANCHES 0xd1ul
#define AMD_REF_CYCLES 0x100000120ul

#define AMD_COUNTER_MASK 0xfffffffffffful /* 48 bits */

enum amd_version { LEGACY, EXT_CORE, PERFMON_V2 };

#endif
