/* Times in which missing things are no fault yet. Each has a deadline: what never ends is told. */
#ifndef AGENT_COLLECT_GRACE_H
#define AGENT_COLLECT_GRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/options.h"
#include "agent/rules/states.h"

struct grace {
    const struct options *options;
    bool had_driver;       /* the module was loaded in the life of this agent */
    char version[64];      /* of the module, when it was last seen */
    int64_t driver_end_us; /* clock_mono_us(); 0 = the driver is not being exchanged */
    int64_t uptime_s;      /* of the node, at the last look */
};

void grace_init(struct grace *grace, const struct options *options);
/*
 * Looks at /proc/uptime, /sys/module/nvidia and the marker file. A driver module that was unloaded
 * or came back in another version is being exchanged on purpose, because one in use cannot be
 * unloaded; so is one while the file driver_grace_file is younger than driver_grace_seconds.
 */
void grace_look(struct grace *grace, int64_t now_us);
bool grace_holds(const struct grace *grace, enum state_grace kind, int64_t now_us);

#endif
