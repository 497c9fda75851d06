/* Log lines that mean something, as a table. */
#ifndef AGENT_RULES_PATTERNS_H
#define AGENT_RULES_PATTERNS_H

#include <stddef.h>

#include "agent/rules/finding.h"

enum device_kind { DEVICE_NONE, DEVICE_GPU, DEVICE_PCI, DEVICE_NAME };

/* What a row needs beyond its columns. */
enum refine {
    REFINE_NONE,
    REFINE_CONTEXT,     /* no fault: evidence for what follows about the same GPU */
    REFINE_JOIN,        /* evidence for an open incident of the check; else it opens one */
    REFINE_INIT,        /* takes in what was told before without the GPU's address */
    REFINE_CLEAR,       /* the condition is gone */
    REFINE_HOLD,        /* waits a moment for what may follow */
    REFINE_AER,         /* a fatal error belongs to a GPU loss when there is one */
    REFINE_MISMATCH,    /* only a warning while host tools work: a container's own libraries */
    REFINE_LOST,        /* the driver's words for Xid 79 */
    REFINE_HUNG_TASK,   /* a fault when the GPU driver hangs too */
    REFINE_SOFT_LOCKUP, /* a fault when it lasts */
    REFINE_NIC_LOCKUP,  /* names what a soft lockup is stuck in */
    REFINE_EDAC,        /* severity by count */
    REFINE_MCE,         /* a record left by the boot before is history */
    REFINE_BUFFER_IO,   /* follows a lost disk */
    REFINE_NO_SWITCH,   /* right on a node without NVSwitch */
    REFINE_FLAP,        /* severity by how often */
};

struct pattern {
    const char *pattern; /* match.h */
    const char *service; /* who must have written it; NULL = the kernel */
    const char *check;
    const char *code; /* "$1" is replaced by the first capture; NULL = none */
    enum severity severity;
    enum action action;
    bool node_fault;
    enum clears clears;
    uint32_t quiet_seconds;
    int device; /* which capture names it, from 1; 0 = none */
    enum device_kind device_kind;
    enum refine refine;
    const char *title;
};

extern const struct pattern patterns[];
extern const size_t pattern_count;

#endif
