// SPDX-License-Identifier: BSD-3-Clause
/* Who a domain is, and its XML with a PMU and without. */
#ifndef VPMU_LIBVIRT_DOMAIN_H
#define VPMU_LIBVIRT_DOMAIN_H

#include <stdint.h>

#include "hv/libvirt/pmu.h"
#include "vpmu/wire.h"

struct domain {
    char name[VPMU_WIRE_NAME]; /* cut to that */
    uint8_t uuid[VPMU_WIRE_UUID];
};

/* Reads 32 hexadecimal digits and dashes, as libvirt writes them; false: it is no UUID. */
bool domain_parse_uuid(const char *text, uint8_t uuid[VPMU_WIRE_UUID]);

/* Reads <name> and <uuid>. -1 and error: one is missing or wrong. */
int domain_identify(const xmlNode *element, struct domain *domain, struct xml_error *error);

/*
 * Gives a domain's definition a PMU: the metadata, <features><pmu>, and QEMU's arguments. What
 * stood there of ours is replaced. pmu->before is set to what <features><pmu> said.
 * -1 and error: it has an -object vpmu that is not ours, or a metadata that is wrong; or no memory.
 */
int domain_enable(xmlDoc *doc, struct pmu *pmu, struct xml_error *error);

/* Takes all of it away again. 1: there was one; 0: there was nothing of ours; -1 as above. */
int domain_disable(xmlDoc *doc, struct xml_error *error);

#endif
