/* The background loops of a server, as one thing to start and stop. */
#ifndef SERVER_LOOPS_LOOPS_H
#define SERVER_LOOPS_LOOPS_H

#include <stddef.h>

#include "base/buf.h"
#include "server/loops/runner.h"

struct follow;

/* Each loop has one thread and one connection of the loop role. */
#define LOOPS_COUNT 15

/* After config_read, db_setup and follow_new, before follow_start. The loops start at once. */
void loops_start(struct follow *follow);
void loops_stop(void); /* after the event loops; waits for the work at hand */

/* Any thread, between start and stop; returns how many rows were written (LOOPS_COUNT). */
size_t loops_read_status(struct runner_status status[LOOPS_COUNT]);

/* Appends them in Prometheus' text format. */
void loops_write_metrics(struct buf *out);
/* Of maintain_loop: the oldest partitions. */
void maintain_write_metrics(struct buf *out);

/* Incidents of one cause, parts that fail again, common causes of an org; a step of
 * propose_repairs. */
enum err correlate(struct runner *runner, const struct uuid *org) MUST_CHECK;

extern const struct runner_spec derive_nodes_loop;    /* node.state and what goes with it */
extern const struct runner_spec close_incidents_loop; /* clear rules, our cordons */
extern const struct runner_spec propose_repairs_loop;
extern const struct runner_spec approve_repairs_loop; /* what policies decide, and breakers */
extern const struct runner_spec run_repairs_loop;
extern const struct runner_spec roll_up_loop;          /* summaries and history */
extern const struct runner_spec maintain_loop;         /* partitions, anchors, pruning */
extern const struct runner_spec drive_hooks_loop;      /* orders to operators' automation */
extern const struct runner_spec drive_machines_loop;   /* orders to controllers */
extern const struct runner_spec drive_ironic_loop;     /* orders to provisioners */
extern const struct runner_spec watch_schedulers_loop; /* Slurm, Kubernetes */
extern const struct runner_spec send_webhooks_loop;    /* what happened, told elsewhere */
extern const struct runner_spec sign_audit_loop;       /* heads of the audit logs */
extern const struct runner_spec resolve_settings_loop; /* of agents; ends of trials */
extern const struct runner_spec refresh_logins_loop;   /* tokens of logins that end soon */

#endif
