/* What systemd says about units. */
#ifndef AGENT_COLLECT_SERVICES_H
#define AGENT_COLLECT_SERVICES_H

#include <stdbool.h>

#include "base/buf.h"

/*
 * Reads what `systemctl show` prints (a property a line, units apart by an empty line) and writes a
 * line "unit active sub" for each that is judged: all when they were configured, else those that
 * are there and enabled. Returns how many.
 */
unsigned services_read(struct str text, bool configured, struct buf *out);

#endif
