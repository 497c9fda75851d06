/* Error counters of network links, as a table. */
#ifndef AGENT_COLLECT_LINKS_H
#define AGENT_COLLECT_LINKS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/rules/finding.h"

struct link_row {
    bool infiniband; /* of /sys/class/infiniband, else of /sys/class/net */
    const char *file;
    uint32_t window_s;
    uint32_t limit; /* growth within the window that is told */
    const char *code;
    enum severity severity;
    enum action action;
    const char *title;
};

extern const struct link_row link_rows[];
extern const size_t link_row_count;

#endif
