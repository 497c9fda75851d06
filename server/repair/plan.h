/* The plan of a repair: what is shown to the person who decides, and the hash that binds the
 * decision. */
#ifndef SERVER_REPAIR_PLAN_H
#define SERVER_REPAIR_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/uuid.h"
#include "db/db.h"
#include "server/repair/action.h"
#include "server/repair/admission.h"
#include "server/repair/executors/executor.h"
#include "server/repair/policy.h"

/* A row of the statement repair_facts. Texts point into the rows or the arena. */
struct repair_facts {
    struct uuid node_id;
    struct uuid boot_id;
    bool has_boot;
    struct str node_name;
    enum machine_owner owner;
    int64_t spares;       /* free ones in the cluster's pool */
    int64_t spares_total; /* claimed and broken ones too */
    unsigned hooked;      /* hook_actions of its cluster */
    struct str rack;
    struct str leaf;
    bool healthy_now;
    bool auto_repair;
    bool joined;
    int64_t healthy_delay_s; /* policy of the cluster */
    int64_t begin_within_s;
    int64_t rejoin_within_s;
    int64_t nodes;
    int64_t healthy;
    int64_t down;
    int64_t running;
    int64_t others_down;
    bool held;                 /* an incident belongs to a common cause */
    int64_t ended_seconds_ago; /* -1 = never */
    int64_t attempts[ACTION_COUNT];
    /* open node faults that ask for an action; none is possible for a person's request */
    struct str incident_ids; /* comma separated, sorted */
    struct uuid main_id;
    bool has_main;
    int wanted;          /* heaviest action that an incident asks for; -1 = none */
    int failed;          /* heaviest action that failed for these incidents; -1 = none */
    struct str summary;  /* of the main incident */
    struct str evidence; /* JSON array */
    struct str jobs;     /* JSON array: what the scheduler says runs there */
    struct str job_ids;  /* sorted, comma between; part of the hash */
    struct str check_id;
    struct str code;
    struct str policy_tag;      /* which policy counts: "default", or its id and version */
    struct str policy_settings; /* empty = the default */
    /* What the row says for admission; action, mode, attempt and executor are added when asked. */
    struct admission_counters counters;
    int64_t won;
    int64_t total;
    /* the node's open repair */
    bool has_open;
    struct uuid open_id;
    int64_t open_version;
    struct str open_state;
    struct str open_plan_hash;
    struct str open_requested_by;
    bool open_has_executor;
    int open_action; /* -1 = none */
};

struct repair_plan {
    enum repair_action action;
    struct str json;
    char hash[65];
    int64_t attempt;
    const char *executor; /* NULL = nothing here can do it */
    const char *reason;   /* sentence */
};

void repair_facts_read(const struct db_rows *rows, int row, struct repair_facts *ret_facts);

/* What the incidents ask for, one rung higher than what failed for them already, and above those
 * whose attempts are used up as far as something can carry it out: such a one never starts by
 * itself. False when only a person is left. Pure. */
bool repair_action_choose(const struct repair_facts *facts, const struct policy *policy,
                          enum repair_action *ret_action);

/* Pure but for its arguments; texts live in the arena. cooldown_s is the installation's. */
void repair_plan_build(struct arena *arena, const struct repair_facts *facts,
                       enum repair_action action, int64_t cooldown_s, int64_t now_us,
                       struct repair_plan *ret_plan);

/* What the policy says about this action now, and all that holds it. Pure. */
void repair_judge(const struct repair_facts *facts, const struct policy *policy,
                  enum repair_action action, struct admission *ret_admission);

/* [{code, detail}] */
void repair_why_not_write(struct enc *enc, const struct admission *admission);

/* SHA-256 in hex over what a decision is bound to: node, boot, action, incidents, jobs and policy;
 * not over times, counts and limits. */
void repair_plan_hash(const struct repair_facts *facts, enum repair_action action, char hash[65]);

/* Arguments of repair_facts after the org: nodes is a PostgreSQL array text. */
void repair_facts_args(struct arena *arena, const char *nodes, struct db_args *ret_args);

#endif
