/* The log of NVIDIA's fabric manager. */
#ifndef AGENT_COLLECT_FABRIC_MANAGER_H
#define AGENT_COLLECT_FABRIC_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/str.h"

/* "[Sep 02 2024 11:00:55] ..." in local time, as the fabric manager writes it: seconds since 1970.
 * False when the line does not begin so. */
bool fabric_manager_time(struct str line, int64_t *ret_s) MUST_CHECK;

#endif
