/*
 * A scheduler as Muster sees it: what it knows of its nodes, and two wishes (no new work; work
 * again). Both wishes are idempotent: they are compared with what was read and repeated until they
 * hold, so nothing is lost or doubled by a crash.
 */
#ifndef SERVER_REPAIR_EXECUTORS_SCHEDULER_H
#define SERVER_REPAIR_EXECUTORS_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "server/repair/executors/targets.h"

struct scheduler_job {
    struct str id;  /* Slurm's job id; Kubernetes: namespace/pod */
    struct str uid; /* Kubernetes: of this very pod, whatever takes its name later */
    struct str user;
    struct str name;
    int64_t gpus;       /* on this node; -1 = not known */
    int64_t started_us; /* 0 = not known */
    int64_t nodes;      /* it runs on, this one included */
    bool ending;        /* it was told to end already */
    struct str blocked; /* why it is not moved away without a person; empty = it can be */
};

struct scheduler_node {
    struct str name;
    const char *state; /* "idle", "allocated", "down", "unknown" */
    bool closed;       /* takes no new work */
    struct str reason; /* why it is closed, or down */
    struct scheduler_job *jobs;
    size_t job_count;
};

/* What was read at once; lives in the arena. */
struct scheduler_snapshot {
    struct scheduler_node *nodes; /* sorted by name */
    size_t count;
};

/* A reason of ours begins so. Only what is closed for the very reason we gave is opened by us. */
#define SCHEDULER_REASON_PREFIX "muster:"
#define SCHEDULER_ERROR_MAX 200

struct scheduler_wish {
    const struct scheduler_node *node;
    const char *reason; /* for the scheduler's own books; begins with the prefix */
    int64_t grace_s;    /* how long work may take to end once it was told to */
    bool grace_over;    /* it was waited for so long: what is left ends now */
};

struct scheduler {
    const char *kind; /* as in the executors file and cluster.scheduler */
    /* False with a sentence: nothing is known then, least of all that a node is idle. */
    bool (*read)(const struct scheduler_target *target, struct arena *arena,
                 struct scheduler_snapshot *ret_snapshot, char error[SCHEDULER_ERROR_MAX]);
    /* True: the scheduler said yes. False with a sentence: it is looked at and wished again. */
    bool (*close)(const struct scheduler_target *target, const struct scheduler_wish *wish,
                  char error[SCHEDULER_ERROR_MAX]);
    bool (*open)(const struct scheduler_target *target, const struct scheduler_wish *wish,
                 char error[SCHEDULER_ERROR_MAX]);
    /* The policy's wait is over: the work on a closed node is asked to end, each piece once. Called
     * again and again; NULL: it is waited for. False with a sentence about what stays. */
    bool (*evict)(const struct scheduler_target *target, const struct scheduler_wish *wish,
                  char error[SCHEDULER_ERROR_MAX]);
};

/* The row of a kind; NULL when there is none. */
const struct scheduler *scheduler_of(struct str kind);
/* Binary search by name; NULL when the scheduler does not know it. */
const struct scheduler_node *scheduler_node_find(const struct scheduler_snapshot *snapshot,
                                                 struct str name);
/* Appends a copy; what job points at must live as long as the arena. */
void scheduler_job_add(struct arena *arena, struct scheduler_node *node,
                       const struct scheduler_job *job);
void scheduler_snapshot_sort(struct scheduler_snapshot *snapshot);

extern const struct scheduler scheduler_slurm;
extern const struct scheduler scheduler_kubernetes;

#endif
