// SPDX-License-Identifier: BSD-3-Clause
/* vpmud's answer to a domain that wants to start, and what a person is told of a refusal. */
#ifndef VPMU_LIBVIRT_ASK_H
#define VPMU_LIBVIRT_ASK_H

#include <stdio.h>

#include "hv/libvirt/domain.h"
#include "vpmu/client.h"

/*
 * Reserves for a domain, as vpmu_client_reserve(), for timeout_s. -1 and error also where vpmud
 * cannot be reached.
 */
int ask_reserve(const struct pmu *pmu, const struct domain *domain, unsigned timeout_s,
                struct vpmu_client_answer *answer, struct vpmu_client_error *error);

/* Frees what is reserved for it; nothing is a success. */
int ask_unreserve(const struct pmu *pmu, const struct domain *domain,
                  struct vpmu_client_error *error);

/* Whether vpmud has judged the request; else it could not be asked, or did not want to be. */
bool ask_was_judged(const struct vpmu_client_error *error);

/* Four lines: that it does not start, what was asked, what was answered, what to do. */
void ask_explain(FILE *to, const struct pmu *pmu, const struct domain *domain,
                 const struct vpmu_client_error *error);

#endif
