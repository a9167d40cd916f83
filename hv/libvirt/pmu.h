// SPDX-License-Identifier: BSD-3-Clause
/*
 * The PMU that a domain is to have: one element in its <metadata>, which pmu.rng describes and
 * docs/libvirt.md explains. The names of its attributes are those of vpmuctl's options, too.
 */
#ifndef VPMU_LIBVIRT_PMU_H
#define VPMU_LIBVIRT_PMU_H

#include <stdbool.h>
#include <stddef.h>

#include "hv/libvirt/xml.h"
#include "vpmu/admission.h"

#define PMU_NAMESPACE "urn:vpmu:domain:1"
#define PMU_ELEMENT "pmu"
#define PMU_PREFIX "vpmu"

#define PMU_EVENTS_MAX 64u
#define PMU_EVENT_SIZE 32u
#define PMU_SOCKET_SIZE 108u /* of sockaddr_un */

struct pmu_events {
    unsigned count;
    char event[PMU_EVENTS_MAX][PMU_EVENT_SIZE];
};

/* What <features><pmu> said before we came. */
enum pmu_before {
    PMU_BEFORE_ABSENT,
    PMU_BEFORE_ON,
    PMU_BEFORE_OFF,
};

struct pmu {
    unsigned counters;    /* 1..32 */
    unsigned fixed;       /* how many, 0..16 */
    unsigned least;       /* counters that are accepted; 0: as policy has it */
    unsigned event_class; /* enum vpmu_event_class */
    unsigned policy;      /* enum vpmu_shortage_policy */
    unsigned yields;      /* gives way to host profilers */
    unsigned status;      /* has the status device */
    unsigned before;      /* enum pmu_before */
    char socket[PMU_SOCKET_SIZE];
    struct pmu_events allow;
    struct pmu_events deny;
};

/* 4 counters, no fixed ones, any event, policy refuse, the status device, vpmud's usual socket. */
void pmu_init(struct pmu *pmu);

/* Sets what an attribute of that name stands for. -1 and error: no such attribute or value. */
int pmu_set(struct pmu *pmu, const char *name, const char *value, struct xml_error *error);

/* Adds an event. -1 and error: no event of any vendor's, or too many. */
int pmu_add_event(struct pmu_events *events, const char *event, struct xml_error *error);

/* What no single value can say. -1 and error: the range is empty. */
int pmu_check(const struct pmu *pmu, struct xml_error *error);

/*
 * The PMU of a <domain>. 1: it has one; 0: it has none, pmu is as pmu_init() leaves it; -1 and
 * error: what stands there is wrong.
 */
int pmu_of_domain(const xmlNode *domain, struct pmu *pmu, struct xml_error *error);

/* The element, in its namespace, for a document. NULL: no memory. */
xmlNode *pmu_to_element(const struct pmu *pmu);

/* The argument of QEMU's -object. Returns its length, as snprintf does. */
size_t pmu_to_object(const struct pmu *pmu, char *text, size_t size);

/* What vpmud is asked for. name stays the caller's. */
struct vpmu_claim pmu_to_claim(const struct pmu *pmu, const char *name);

/* The words of an attribute's value, for people. */
const char *pmu_class_name(unsigned event_class);
const char *pmu_policy_name(unsigned policy);

/* A line for people: "4 general-purpose and 3 fixed counters". */
void pmu_describe(const struct pmu *pmu, char *text, size_t size);

#endif
