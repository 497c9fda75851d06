/* Carries decided repairs out, one stored step after the other; a crash anywhere resumes from what
 * is stored. */
#include "server/loops/loops.h"

#include "base/log.h"
#include "server/config.h"
#include "server/repair/executors/executor.h"
#include "server/repair/executors/targets.h"
#include "server/repair/fsm.h"
#include "server/repair/policy.h"
#include "server/repair/work.h"
#include "server/wake.h"

/* A repair that needs nothing from outside goes through all its steps in one run. */
#define PASSES_MAX 8

static int64_t period_ms(void)
{
    return config.loop_period_ms;
}

static const char *event_type(enum repair_state to)
{
    switch (to) {
    case REPAIR_SUCCEEDED:
        return "repair.succeeded";
    case REPAIR_FAILED:
        return "repair.failed";
    case REPAIR_CANCELLED:
        return "repair.cancelled";
    case REPAIR_RESOLVED:
        return "repair.resolved";
    case REPAIR_UNKNOWN:
        return "repair.unknown";
    case REPAIR_PROPOSED:
        return "repair.proposed";
    case REPAIR_APPROVED:
    case REPAIR_CORDONING:
    case REPAIR_DRAINING:
    case REPAIR_ACTING:
    case REPAIR_REJOINING:
    case REPAIR_VERIFYING:
    case REPAIR_REJECTED:
    case REPAIR_STATE_COUNT:
        break;
    }
    return "repair.step";
}

static const char *event_severity(enum repair_state to)
{
    if (to == REPAIR_FAILED || to == REPAIR_UNKNOWN) {
        return "critical";
    }
    return to == REPAIR_PROPOSED ? "warning" : "info";
}

/* False when another replica was first: nothing happened then. */
static enum err move(struct runner *runner, const struct uuid *org, const struct repair_work *work,
                     const struct repair_next *next, bool *ret_moved)
{
    static const char *const node_effects[] = {
        [NODE_NONE] = NULL,           [NODE_CORDON] = "cordon", [NODE_UNDO] = "undo",
        [NODE_UNCORDON] = "uncordon", [NODE_REMOVE] = "remove",
    };
    struct arena *arena = runner_arena(runner);
    struct repair_list from = repair_event_from(next->event);
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    enum repair_state to;

    if (!repair_step(work->state, next->event, &to)) {
        log_error("repair %lld: %s is not possible while %s", (long long)work->no,
                  repair_event_name(next->event), repair_state_name(work->state));
        return 0;
    }
    db_arg_uuid(&args, arena, &work->id);
    db_arg_i64(&args, arena, work->version);
    db_arg(&args, from.text);
    db_arg(&args, repair_state_name(to));
    db_arg_bool(&args, (repair_state_traits(to) & REPAIR_ENDED) != 0);
    db_arg(&args, next->detail);
    if (next->deadline_s >= 0) {
        db_arg_i64(&args, arena, next->deadline_s);
    } else {
        db_arg(&args, NULL);
    }
    db_arg(&args, event_type(to));
    db_arg(&args, event_severity(to));
    db_arg(&args, node_effects[next->node]);
    db_arg_bool(&args, next->close_incidents);
    db_arg_bool(&args, next->expire_command);
    db_arg_bool(&args, next->void_approval);
    enum err err = runner_query(runner, SQL_REPAIR_MOVE, org, &args, &rows);
    if (err != 0) {
        return err;
    }
    *ret_moved = !db_is_null(rows, 0, db_rows_col(rows, "version"));
    db_rows_free(rows);
    return 0;
}

static enum err look_at(struct runner *runner, const struct uuid *org, const struct db_rows *rows,
                        int row, bool *ret_moved)
{
    const struct repair_settings settings = {.drain_wait_s = config.drain_wait_seconds};
    struct repair_work work;
    struct repair_next next;

    if (!repair_work_read(rows, row, &work)) {
        return 0; /* a newer replica's business */
    }
    work.owner =
        machine_owner_of(db_text(rows, row, db_rows_col(rows, "org_name")),
                         db_text(rows, row, db_rows_col(rows, "cluster_name")), work.node_name);
    work.hooked = hook_actions(db_text(rows, row, db_rows_col(rows, "org_name")),
                               db_text(rows, row, db_rows_col(rows, "cluster_name")));
    const struct executor *executor = executor_for(work.action, work.owner, work.hooked);
    repair_next_decide(runner_arena(runner), &work, executor, &settings, &next);
    switch (next.todo) {
    case TODO_ACT:
        *ret_moved =
            executor->act(runner_conn(runner), runner_arena(runner), org, &work) == ACT_ACCEPTED;
        return 0;
    case TODO_STEP:
        return move(runner, org, &work, &next, ret_moved);
    case TODO_WAIT:
        break;
    }
    return 0;
}

static enum err run_pass(struct runner *runner, const struct uuid *org, bool *ret_moved)
{
    struct repair_list states = repair_work_states();
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    enum err worst = 0;

    const struct policy policy = policy_default(config.cooldown_seconds);
    db_arg(&args, states.text);
    db_arg_i64(&args, runner_arena(runner), policy.idle_wait_seconds);
    enum err err = runner_query(runner, SQL_REPAIR_WORK, org, &args, &rows);
    if (err != 0) {
        return err;
    }
    for (int i = 0; i < db_rows_count(rows) && !runner_stopping(runner); i++) {
        bool moved = false;
        err = look_at(runner, org, rows, i, &moved);
        worst = err != 0 ? err : worst;
        *ret_moved = *ret_moved || moved;
    }
    db_rows_free(rows);
    return worst;
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    enum err err = 0;
    bool moved = true;
    bool changed = false;

    for (int pass = 0; pass < PASSES_MAX && moved && err == 0; pass++) {
        moved = false;
        err = run_pass(runner, org, &moved);
        changed = changed || moved;
    }
    if (changed) {
        runner_changed(runner, org, WAKE_REPAIR | WAKE_HEALTH);
    }
    return err;
}

static enum err list_orgs(struct runner *runner, struct uuid **ret_orgs, size_t *ret_count)
{
    struct repair_list states = repair_work_states();
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg(&args, states.text);
    enum err err = runner_query(runner, SQL_REPAIR_ORGS, NULL, &args, &rows);
    if (err != 0) {
        return err;
    }
    int count = db_rows_count(rows);
    struct uuid *orgs = arena_alloc(runner_arena(runner), (size_t)count * sizeof *orgs + 1);
    for (int i = 0; i < count; i++) {
        (void)db_uuid(rows, i, 0, &orgs[i]);
    }
    db_rows_free(rows);
    *ret_orgs = orgs;
    *ret_count = (size_t)count;
    return 0;
}

const struct runner_spec run_repairs_loop = {
    .name = "run_repairs",
    .topics = WAKE_HEALTH | WAKE_REPAIR | WAKE_NODE | WAKE_STATE,
    .period_ms = period_ms,
    .orgs = list_orgs,
    .run = run,
};
