/* The checks that Muster knows: what each looks at, how bad it is at worst, and how its incidents
 * end. */
#ifndef SERVER_HEALTH_CATALOG_H
#define SERVER_HEALTH_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/*
 * A check can fail; its incidents carry check_id. Severity, action and node_fault are those of its
 * gravest finding: an event says what this one is. Every check has a rule by which it ends.
 */
struct catalog_check {
    const char *check_id;
    const char *title;
    const char *source;   /* what is read: a collector's name, "person" or "server" */
    const char *kind;     /* "passive": seen without disturbing work; "active": run on purpose */
    const char *severity; /* info, warning, critical */
    const char *action;   /* none, reset_gpu, reboot, power_cycle, reprovision, failover, remove */
    bool node_fault;      /* the node cannot do its work */
    const char *clears;   /* new_boot, event, quiet, person: as in incident.clears */
    int quiet_seconds;    /* clears = quiet */
    const char *clear_rule; /* in words, one sentence */
};

extern const struct catalog_check catalog_checks[];
extern const size_t catalog_count;

const struct catalog_check *catalog_find(struct str check_id); /* NULL = not known */

#endif
