/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -object vpmu: what PMU the guest is to have, and has been granted.
 *
 * Theory of operation. There is at most one. The accelerator of the first vCPU
 * that is realized says what it can offer, x86_vpmu_admit() decides by the
 * object's properties and asks vpmud for a lease, and the vCPUs then get
 * what the object has been granted, before any of them runs.
 */
#ifndef I386_VPMU_OBJECT_H
#define I386_VPMU_OBJECT_H

#include "qapi/qapi-types-misc-target.h"
#include "qapi/qapi-types-qom.h"
#include "qom/object.h"
#include "vpmu/filter.h"

#define TYPE_VPMU_OBJECT "vpmu"
OBJECT_DECLARE_SIMPLE_TYPE(VpmuObject, VPMU_OBJECT)

/* What an accelerator can give a vCPU. */
typedef struct VpmuOffer {
    VpmuGrantSource source;
    struct vpmu_config most; /* gp 0: nothing */
    const char *missing;     /* then why: what follows "there is none: " */
    unsigned gp, fixed;      /* what it is where the properties say nothing */

    /*
     * Why it cannot be had just now, or NULL; asked last, since vpmud knows
     * better who has it.
     */
    const char *(*held)(void);
} VpmuOffer;

struct VpmuObject {
    Object parent_obj;

    /* Asked for. */
    bool has_gp, has_fixed;
    uint8_t gp, fixed;
    VpmuEventClass event_class;
    VpmuShortagePolicy shortage;
    strList *allow, *deny;
    char *socket;
    bool yields;

    /* Granted, once admitted. */
    bool admitted;
    VpmuGrantSource source;
    char *hidden;              /* why there is no PMU, NULL if there is one */
    struct vpmu_config config; /* what the vCPUs' PMU is like */
    struct vpmu_policy policy; /* what it may count */

    /* What a guest that comes in was granted where it comes from. */
    struct VpmuContract {
        uint8_t source, hidden, vendor, version, gp, fixed, event_class;
        uint32_t rules; /* checksum of the policy */
    } contract;
};

/* The machine's, NULL if it has none. */
VpmuObject *x86_vpmu_object(void);

/*
 * Decides what the machine's vCPUs get, at the first call; the others do
 * nothing. False and @errp if the guest must not start.
 */
bool x86_vpmu_admit(VpmuObject *object, const VpmuOffer *offer, Error **errp);

/* Cuts CPUID leaf 0xA down to what was granted; without an object, nothing. */
void x86_vpmu_cut_0a(uint32_t leaf[4]);

/* Whether the policy denies a code; the model's `denied`, whatever @opaque. */
bool x86_vpmu_denied(void *opaque, uint32_t code);

#endif
