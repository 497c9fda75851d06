/* Processes as /proc shows them. */
#ifndef AGENT_COLLECT_PROCESSES_H
#define AGENT_COLLECT_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/str.h"

struct process {
    char name[32]; /* printable, without blanks */
    char state;    /* R, S, D, Z ... */
    uint64_t flags;
    uint64_t started; /* in ticks after the boot */
};

/* /proc/<pid>/stat (proc(5)); the name may hold brackets and blanks. */
bool process_parse(struct str text, struct process *ret_process) MUST_CHECK;

#endif
