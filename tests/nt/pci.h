/* SPDX-License-Identifier: BSD-3-Clause */
/* PCI functions, by configuration mechanism 1 (PCI Local Bus Specification 3.0, 3.2.2.3.2). */
#ifndef NT_PCI_H
#define NT_PCI_H

#include <stdbool.h>
#include <stdint.h>

#define PCI_BARS 6

struct pci_function {
    uint16_t address; /* bus << 8 | device << 3 | function */
    struct pci_bar {
        uint64_t start;
        uint64_t length; /* 0: not a memory BAR */
    } bars[PCI_BARS];
    uint8_t msix;        /* where the capability is, 0 for none */
    uint16_t messages;   /* entries of its table */
    uint64_t msix_table; /* physical address */
};

/** Finds a function by its ids, behind bridges too, with BARs as the firmware has set them. */
bool pci_find(uint16_t vendor, uint16_t device, struct pci_function *function);

/** Lets it decode memory and send messages, or neither. */
void pci_enable(const struct pci_function *function, bool on);

/** Writes an entry of the MSI-X table. */
void pci_message(const struct pci_function *function, unsigned message, uint32_t address,
                 uint32_t data, bool masked);
void pci_messages_enable(const struct pci_function *function, bool on);

#endif
