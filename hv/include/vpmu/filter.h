// SPDX-License-Identifier: BSD-3-Clause
/*
 * Which events a guest may count, and what its processor advertises of what it was granted.
 *
 * A policy is a class of events, what is allowed besides, and what is denied of both. Under TCG the
 * model asks it about each counter; for KVM it is written as rules of KVM_SET_PMU_EVENT_FILTER,
 * which the kernel skips without an error where they cannot match: what this makes always can.
 *
 * Pure: no allocation and no I/O. Codes are those of struct vpmu_counter_info.
 */
#ifndef VPMU_FILTER_H
#define VPMU_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "vpmu/model.h"

/* The kernel takes no more (KVM_PMU_EVENT_FILTER_MAX_EVENTS, arch/x86/kvm/pmu.c). */
#define VPMU_RULES_MAX 300u

/* The event selectors whose event select is `select` and whose unit mask, masked, is `match`. */
struct vpmu_rule {
    uint16_t select; /* Intel: 0..FFH; AMD: 0..FFFH */
    uint8_t mask;    /* FFH: exactly this unit mask; 0: any */
    uint8_t match;   /* no bit outside of mask, or nothing would match */
};

struct vpmu_rules {
    uint16_t count;
    struct vpmu_rule rule[VPMU_RULES_MAX];
};

struct vpmu_policy {
    uint8_t vendor;      /* enum vpmu_vendor */
    uint8_t event_class; /* enum vpmu_event_class */
    struct vpmu_rules allow;
    struct vpmu_rules deny;
};

/* An event's name in lists and to people, such as "cycles"; "none" for VPMU_EVENT_NONE. */
const char *vpmu_event_name(enum vpmu_event event);

/*
 * Adds what `text` names: "r" and a raw code in hexadecimal as perf writes it (event select in bits
 * 7:0, and 35:32 for AMD; unit mask in bits 15:8), or the name of an event, for each of the codes
 * that the vendor has for it. NULL, or a static phrase that says why not ("... " and the phrase).
 */
const char *vpmu_rules_add(struct vpmu_rules *rules, enum vpmu_vendor vendor, const char *text);

/* Whether nothing at all is denied. */
bool vpmu_policy_is_open(const struct vpmu_policy *policy);

/* Whether a code may be counted; an event, with every code that the vendor has for it. An event
 * without a code of the vendor's is none that could be denied. */
bool vpmu_policy_allows(const struct vpmu_policy *policy, uint32_t code);
bool vpmu_policy_allows_event(const struct vpmu_policy *policy, enum vpmu_event event);

/* struct kvm_pmu_event_filter without its padding (Documentation/virt/kvm/api.rst, 4.120). */
struct vpmu_kvm_filter {
    bool deny;               /* the action for what matches: KVM_PMU_EVENT_DENY, or _ALLOW */
    bool masked;             /* KVM_PMU_EVENT_FLAG_MASKED_EVENTS */
    uint32_t fixed_counters; /* fixed counters that the action is for */
    uint32_t count;
    uint64_t events[VPMU_RULES_MAX];
};

/*
 * The policy as a filter; `masked` if the kernel has KVM_CAP_PMU_EVENT_MASKED_EVENTS. NULL, or a
 * static sentence that says why it cannot be one. Not for a policy that is open.
 */
const char *vpmu_kvm_filter(const struct vpmu_policy *policy, bool masked,
                            struct vpmu_kvm_filter *filter);

/*
 * The PMU that KVM_GET_SUPPORTED_CPUID offers, in a configuration: vendor, version, counters and
 * their width. gp is 0 if there is none. Leaves are {EAX, EBX, ECX, EDX}. With AMD's legacy
 * counters nothing says that they are there: the caller knows.
 */
struct vpmu_config vpmu_offer_intel(const uint32_t leaf_0a[4]);
struct vpmu_config vpmu_offer_amd(uint32_t leaf_80000001_ecx, const uint32_t leaf_80000022[4]);

/*
 * The largest processor that `offer` can be cut down to with at most so many counters. AMD's can
 * have 4 (legacy), 6, 7 or 8: no software that knows no PerfMonV2 could be told of another number.
 * False if there is none.
 */
bool vpmu_cut(const struct vpmu_config *offer, unsigned gp, unsigned fixed,
              struct vpmu_config *granted);

/* Cuts CPUID leaf 0AH, as the source has it, down to what was granted: the numbers of counters, and
 * architectural events that the policy (NULL: open) denies are unavailable. For other vendors than
 * Intel it is left alone. */
void vpmu_cut_0a(const struct vpmu_config *granted, const struct vpmu_policy *policy,
                 uint32_t leaf_0a[4]);

#endif
