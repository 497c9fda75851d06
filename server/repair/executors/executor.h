/* What carries an action out. One file an executor; the table is in executor.c. */
#ifndef SERVER_REPAIR_EXECUTORS_EXECUTOR_H
#define SERVER_REPAIR_EXECUTORS_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/uuid.h"
#include "db/db.h"
#include "server/repair/action.h"

struct repair_work;

enum act_result {
    ACT_ACCEPTED, /* the order is out; from now on only watch */
    ACT_REFUSED,  /* nothing went out: what must be true no longer is */
    ACT_BUSY,     /* nothing went out: try again later */
    ACT_UNKNOWN,  /* it may have gone out; what is stored decides at the next look */
};

enum watch_result {
    WATCH_WAITING,
    WATCH_ACCEPTED,    /* taken; the effect is to come */
    WATCH_DONE,        /* the effect was seen */
    WATCH_REFUSED,     /* surely no effect */
    WATCH_FAILED,      /* tried and failed */
    WATCH_NEVER_TAKEN, /* surely no effect: it was not handed out in time */
    WATCH_LOST,        /* handed out, no answer in time: nobody knows */
};

struct executor {
    const char *name;
    const char *who;  /* in sentences: "The agent" */
    unsigned actions; /* bits 1 << enum repair_action */
    /* How it does it, one sentence for the plan. */
    const char *(*plan)(enum repair_action action);
    /* Whether the work can begin now; false with a sentence. Pure. */
    bool (*probe)(const struct repair_work *work, const char **ret_why);
    /* Sends the order; at most once for a repair, whatever crashes: the order and the fact that it
     * was given commit together. Called on a loop's thread; blocks for the database only. */
    enum act_result (*act)(struct db_conn *conn, struct arena *arena, const struct uuid *org,
                           const struct repair_work *work);
    /* What became of it, from what is stored. Pure. */
    enum watch_result (*watch)(const struct repair_work *work);
};

/* What the executors file says of a node's hardware. */
enum machine_owner {
    MACHINE_OF_NOBODY,
    MACHINE_OF_CONTROLLER,  /* its own entry among the machines */
    MACHINE_OF_PROVISIONER, /* the cluster's provisioner installs and powers it, and nobody else */
};
enum machine_owner machine_owner_of(struct str org, struct str cluster, struct str node);

/* NULL when nothing here can do it. hooked: what the cluster's own automation does (hook_actions),
 * before everybody else. */
const struct executor *executor_for(enum repair_action action, enum machine_owner owner,
                                    unsigned hooked);
/* Bits of the actions that the executor of this name can do; 0 when there is none. */
unsigned executor_actions(const char *name);

/* The act of both: the order is stored for whoever carries it out, with the fact that it was given.
 * args: JSON. */
enum act_result executor_order(struct db_conn *conn, struct arena *arena, const struct uuid *org,
                               const struct repair_work *work, const char *args);
/* What became of a stored order. Pure. */
enum watch_result executor_watch_order(const struct repair_work *work);

extern const struct executor executor_agent;   /* signed commands that the node fetches */
extern const struct executor executor_hook;    /* the operator's own automation, by messages */
extern const struct executor executor_machine; /* the node's controller (BMC): power */
extern const struct executor executor_ironic;  /* the cluster's provisioner */

#endif
