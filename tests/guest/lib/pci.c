/* SPDX-License-Identifier: BSD-3-Clause */
#include "pci.h"

#include "x86.h"

#define PORT_ADDRESS 0xcf8
#define PORT_DATA 0xcfc
#define ADDRESS_ENABLE (1u << 31)
#define FUNCTIONS_OF_A_BUS 256u
#define BAR_FLAGS 0xfu

uint32_t pci_read(pci_function f, unsigned reg)
{
    outl(PORT_ADDRESS, ADDRESS_ENABLE | (uint32_t)f << 8 | reg);
    return inl(PORT_DATA);
}

void pci_write(pci_function f, unsigned reg, uint32_t value)
{
    outl(PORT_ADDRESS, ADDRESS_ENABLE | (uint32_t)f << 8 | reg);
    outl(PORT_DATA, value);
}

bool pci_find(uint16_t vendor, uint16_t device, pci_function *found)
{
    for (unsigned f = 0; f < FUNCTIONS_OF_A_BUS; f++) {
        *found = (pci_function)f;
        if (pci_read(*found, PCI_ID) == (vendor | (uint32_t)device << 16))
            return true;
    }
    return false;
}

uint64_t pci_bar(pci_function f, unsigned bar)
{
    return pci_read(f, PCI_BAR0 + 4 * bar) & ~BAR_FLAGS;
}

uint64_t pci_bar_size(pci_function f, unsigned bar)
{
    unsigned reg = PCI_BAR0 + 4 * bar;
    uint32_t command = pci_read(f, PCI_COMMAND), before = pci_read(f, reg), answer;

    pci_write(f, PCI_COMMAND, command & ~PCI_COMMAND_MEMORY);
    pci_write(f, reg, UINT32_MAX);
    answer = pci_read(f, reg) & ~BAR_FLAGS;
    pci_write(f, reg, before);
    pci_write(f, PCI_COMMAND, command);
    return answer ? ~answer + 1 : 0;
}

unsigned pci_capability(pci_function f, uint8_t id)
{
    unsigned reg = pci_read(f, PCI_CAPABILITIES) & 0xfc;

    while (reg && (pci_read(f, reg) & 0xff) != id)
        reg = pci_read(f, reg) >> 8 & 0xfc;
    return reg;
}
