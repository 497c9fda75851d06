/* The next step of a repair, decided from what is known about it; the effects are others' work. */
#ifndef SERVER_REPAIR_WORK_H
#define SERVER_REPAIR_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/uuid.h"
#include "db/db.h"
#include "server/repair/action.h"
#include "server/repair/executors/executor.h"
#include "server/repair/fsm.h"

/* A row of the statement repair_work. Texts point into the rows. */
struct repair_work {
    struct uuid id;
    struct uuid node_id;
    int64_t no;
    int64_t version;
    enum repair_state state;
    enum repair_action action;
    struct str node_name;
    bool by_muster;    /* proposed by Muster: it lives as long as its incidents */
    bool demo;         /* the org is a demo: orders are for simulated nodes only */
    double state_s;    /* seconds in this state */
    bool late;         /* past the deadline of this state */
    int64_t incidents; /* what the plan is about */
    int64_t incidents_open;
    bool plan_holds;          /* boot, incidents and policy are still those of the plan */
    bool rebooted;            /* another boot than the plan's was seen */
    bool ready;               /* the agent finished its first round of this boot */
    bool silent;              /* nothing heard for three intervals */
    struct str earlier_waves; /* of its batch: waits, failed; empty = done or none */
    struct str stopped;       /* how wide a person's stop reaches; empty = nobody stopped repairs */
    int64_t healthy_delay_s;
    int64_t rejoin_within_s;
    bool has_command;
    struct str command_state;
    struct str command_result;
    bool command_late;
    enum machine_owner owner; /* set by the reader's caller */
    bool fresh;           /* the node joined anew, with another key, since the order was given */
    unsigned hooked;      /* hook_actions of the cluster; set by the reader's caller */
    struct str scheduler; /* its kind; empty = none is configured for the cluster */
    bool drained;         /* it said, since this state began, that the node is closed and empty */
    bool occupied;        /* it said, since this state began, that it is not closed or not empty */
    bool overdue;         /* jobs outlived the policy's wait, which interrupts none */
    struct str jobs;      /* what runs there, in words; empty = nothing is known to run */
    struct str came_back; /* sentence; empty = no fault since the node was back */
    struct str not_clear; /* sentence; empty = every clear rule holds */
};

struct repair_settings {
    int64_t drain_wait_s; /* between cordon and act */
};

enum repair_node_effect { NODE_NONE, NODE_CORDON, NODE_UNDO, NODE_UNCORDON, NODE_REMOVE };

enum repair_todo {
    TODO_WAIT,
    TODO_ACT,  /* the executor's act, now */
    TODO_STEP, /* the event below */
};

struct repair_next {
    enum repair_todo todo;
    enum repair_event event;
    const char *detail; /* one sentence; in the arena or static */
    int64_t deadline_s; /* of the next state; -1 = none */
    enum repair_node_effect node;
    bool close_incidents;
    bool expire_command;
    bool void_approval;
};

/* False for a row that this version does not understand (another's state or action). */
bool repair_work_read(const struct db_rows *rows, int row, struct repair_work *ret_work) MUST_CHECK;

/* Pure. executor NULL = none. */
void repair_next_decide(struct arena *arena, const struct repair_work *work,
                        const struct executor *executor, const struct repair_settings *settings,
                        struct repair_next *ret_next);

/* States in which repair_next_decide has something to say, as a PostgreSQL array text. */
struct repair_list repair_work_states(void);

#endif
