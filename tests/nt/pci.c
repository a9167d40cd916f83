/* SPDX-License-Identifier: BSD-3-Clause */
#include "pci.h"

#include "libc.h"
#include "x86.h"

enum {
    PORT_ADDRESS = 0xcf8,
    PORT_DATA = 0xcfc,
    REG_ID = 0x00,
    REG_COMMAND = 0x04, /* and the status above it */
    REG_HEADER = 0x0c,
    REG_BAR0 = 0x10,
    REG_BUSES = 0x18, /* of a bridge: primary, secondary, subordinate */
    REG_CAPABILITIES = 0x34,
    HEADER_BRIDGE = 1,
    HEADER_MANY = 0x80,
    COMMAND_MEMORY = 2,
    COMMAND_MASTER = 4,
    STATUS_CAPABILITIES = 1 << 20,
    CAPABILITY_MSIX = 0x11,
    BAR_IO = 1,
    BAR_64 = 4,
    MSIX_ENTRY = 16,
};
#define MSIX_ENABLE (1u << 31)
#define MSIX_MASK_ALL (1u << 30)
#define NOBODY 0xffffffffu

static uint32_t read(uint16_t address, uint8_t reg)
{
    outl(PORT_ADDRESS, 1u << 31 | (uint32_t)address << 8 | reg);
    return inl(PORT_DATA);
}

static void write(uint16_t address, uint8_t reg, uint32_t value)
{
    outl(PORT_ADDRESS, 1u << 31 | (uint32_t)address << 8 | reg);
    outl(PORT_DATA, value);
}

static void set_command(uint16_t address, uint32_t bits, bool on)
{
    uint32_t command = read(address, REG_COMMAND) & 0xffff;

    write(address, REG_COMMAND, on ? command | bits : command & ~bits);
}

/* Writes all ones to learn which bits of the BAR are wired; decoding is off meanwhile. */
static unsigned read_bar(struct pci_function *function, unsigned i)
{
    uint8_t reg = (uint8_t)(REG_BAR0 + 4 * i);
    uint32_t low = read(function->address, reg), high = 0;
    bool wide = !(low & BAR_IO) && low & BAR_64;
    uint64_t mask = 0xffffffff00000000;

    write(function->address, reg, NOBODY);
    mask |= read(function->address, reg) & ~0xfu;
    write(function->address, reg, low);
    if (wide) {
        high = read(function->address, (uint8_t)(reg + 4));
        write(function->address, (uint8_t)(reg + 4), NOBODY);
        mask &= (uint64_t)read(function->address, (uint8_t)(reg + 4)) << 32 | 0xffffffff;
        write(function->address, (uint8_t)(reg + 4), high);
    }
    if (!(low & BAR_IO) && (uint32_t)mask)
        function->bars[i] = (struct pci_bar){(uint64_t)high << 32 | (low & ~0xfu), ~mask + 1};
    return wide ? 2 : 1;
}

static void read_bars(struct pci_function *function)
{
    set_command(function->address, COMMAND_MEMORY, false);
    for (unsigned i = 0; i < PCI_BARS;)
        i += read_bar(function, i);
}

static void read_msix(struct pci_function *function)
{
    uint8_t at = 0;

    if (read(function->address, REG_COMMAND) & STATUS_CAPABILITIES)
        at = read(function->address, REG_CAPABILITIES) & 0xfc;
    while (at && (read(function->address, at) & 0xff) != CAPABILITY_MSIX)
        at = read(function->address, at) >> 8 & 0xfc;
    function->msix = at;
    if (!at)
        return;
    function->messages = (read(function->address, at) >> 16 & 0x7ff) + 1;
    function->msix_table = function->bars[read(function->address, (uint8_t)(at + 4)) & 7].start +
                           (read(function->address, (uint8_t)(at + 4)) & ~7u);
}

/* Bridges' buses have higher numbers than their own, so this ends. */
static bool find_on(unsigned bus, uint32_t id, struct pci_function *function)
{
    for (unsigned slot = 0; slot < 32 * 8; slot++) {
        uint16_t address = (uint16_t)(bus << 8 | slot);
        uint32_t found = read(address, REG_ID);
        uint32_t header = read(address, REG_HEADER) >> 16 & 0xff;
        unsigned secondary = read(address, REG_BUSES) >> 8 & 0xff;

        if (found == id) {
            function->address = address;
            return true;
        }
        if (found != NOBODY && (header | HEADER_MANY) == (HEADER_BRIDGE | HEADER_MANY) &&
            secondary > bus && find_on(secondary, id, function))
            return true;
        if (slot % 8 == 0 && (found == NOBODY || !(header & HEADER_MANY)))
            slot += 7;
    }
    return false;
}

bool pci_find(uint16_t vendor, uint16_t device, struct pci_function *function)
{
    memset(function, 0, sizeof(*function));
    if (!find_on(0, (uint32_t)device << 16 | vendor, function))
        return false;
    read_bars(function);
    read_msix(function);
    return true;
}

void pci_enable(const struct pci_function *function, bool on)
{
    set_command(function->address, COMMAND_MEMORY | COMMAND_MASTER, on);
}

void pci_message(const struct pci_function *function, unsigned message, uint32_t address,
                 uint32_t data, bool masked)
{
    volatile uint32_t *entry =
        (volatile uint32_t *)(function->msix_table + (uint64_t)message * MSIX_ENTRY);

    entry[3] = 1;
    entry[0] = address;
    entry[1] = 0;
    entry[2] = data;
    entry[3] = masked;
}

void pci_messages_enable(const struct pci_function *function, bool on)
{
    uint32_t control = read(function->address, function->msix) & ~(MSIX_ENABLE | MSIX_MASK_ALL);

    write(function->address, function->msix, on ? control | MSIX_ENABLE : control);
}
