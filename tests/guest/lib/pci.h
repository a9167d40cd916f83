/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PCI functions, through configuration mechanism 1 (PCI Local Bus Specification 3.0, 3.2.2.3.2).
 * Of one CPU at a time.
 */
#ifndef GUEST_PCI_H
#define GUEST_PCI_H

#include <stdbool.h>
#include <stdint.h>

enum pci_register {
    PCI_ID = 0x00,
    PCI_COMMAND = 0x04,
    PCI_CLASS = 0x08,
    PCI_BAR0 = 0x10,
    PCI_CAPABILITIES = 0x34,
};

#define PCI_COMMAND_MEMORY 2u
#define PCI_COMMAND_MASTER 4u

#define PCI_CAP_MSIX 0x11
#define PCI_MSIX_ENABLE (1u << 31) /* of the capability's first 4 bytes */
#define PCI_MSIX_TABLE 4           /* register: offset, and its BAR in bits 2:0 */
#define PCI_MSIX_PENDING 8
#define PCI_MSIX_BAR 7u

/* Bus, device and function, as in the configuration address's bits 23:8. */
typedef uint16_t pci_function;

/* Registers are multiples of 4. */
uint32_t pci_read(pci_function f, unsigned reg);
void pci_write(pci_function f, unsigned reg, uint32_t value);

/* The first function on bus 0 that has these; false if there is none. */
bool pci_find(uint16_t vendor, uint16_t device, pci_function *found);

/* Of a 32-bit memory BAR. The size is asked for with the BAR out of use for that time. */
uint64_t pci_bar(pci_function f, unsigned bar);
uint64_t pci_bar_size(pci_function f, unsigned bar);

/* The register where the capability with this id begins, 0 if there is none. */
unsigned pci_capability(pci_function f, uint8_t id);

#endif
