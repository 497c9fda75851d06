/* PCI addresses as drivers and tools write them, in one form. */
#ifndef AGENT_RULES_PCI_H
#define AGENT_RULES_PCI_H

#include "base/str.h"

/* "dddd:bb:dd": domain (4 digits, more only when needed), bus, device; the function is left out,
 * because a GPU is named by its slot. */
#define PCI_CAP 20

struct pci {
    char text[PCI_CAP];
    int mig_instance; /* GPU instance of "GPU-I:05", -1 = none */
};

/*
 * Accepts, with or without "PCI:" in front: 0000:b3:00, 0000:b3:00.0, b3:00.0 (domain 0),
 * 00000000:B3:00.0, and the MIG form "0000:b3:00 GPU-I:05" (also "... GPU-I:05 CI:1"). The whole
 * text must be an address. False otherwise.
 */
bool pci_parse(struct str text, struct pci *ret_pci) MUST_CHECK;

#endif
