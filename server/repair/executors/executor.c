/* The table of executors, and the order that all of them leave in the database. */
#include "server/repair/executors/executor.h"

#include <string.h>

#include "base/log.h"
#include "server/config.h"
#include "server/repair/executors/targets.h"
#include "server/repair/fsm.h"
#include "server/repair/work.h"

static const struct executor *const executors[] = {
    &executor_agent,
    &executor_machine,
    &executor_hook,
    &executor_ironic,
};

enum machine_owner machine_owner_of(struct str org, struct str cluster, struct str node)
{
    if (provisioner_find(org, cluster) != NULL) {
        return MACHINE_OF_PROVISIONER;
    }
    return machine_find(org, cluster, node) != NULL ? MACHINE_OF_CONTROLLER : MACHINE_OF_NOBODY;
}

const struct executor *executor_for(enum repair_action action, enum machine_owner owner,
                                    unsigned hooked)
{
    if ((hooked & executor_hook.actions & (1u << action)) != 0) {
        return &executor_hook;
    }
    for (size_t i = 0; i < COUNTOF(executors); i++) {
        if ((executors[i]->actions & (1u << action)) != 0 && executors[i] != &executor_hook &&
            (executors[i] != &executor_machine || owner == MACHINE_OF_CONTROLLER) &&
            (executors[i] != &executor_ironic || owner == MACHINE_OF_PROVISIONER)) {
            return executors[i];
        }
    }
    return NULL;
}

unsigned executor_actions(const char *name)
{
    for (size_t i = 0; i < COUNTOF(executors); i++) {
        if (strcmp(executors[i]->name, name) == 0) {
            return executors[i]->actions;
        }
    }
    return 0;
}

enum act_result executor_order(struct db_conn *conn, struct arena *arena, const struct uuid *org,
                               const struct repair_work *work, const char *order_args)
{
    const struct executor *executor = executor_for(work->action, work->owner, work->hooked);
    struct repair_list acting = repair_event_from(REPAIR_ON_ACTED);
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct uuid command = uuid_v7();

    db_arg_uuid(&args, arena, &work->id);
    db_arg_i64(&args, arena, work->version);
    db_arg(&args, acting.text);
    db_arg_uuid(&args, arena, &command);
    db_arg_i64(&args, arena, config.command_within_seconds);
    db_arg(&args, order_args);
    db_arg(&args, executor == NULL ? NULL : executor->name);
    enum err err = db_exec(conn, SQL_REPAIR_ACT, org, &args, &rows);
    if (err != 0) {
        log_warning("repair %lld: the order was not stored: %s", (long long)work->no,
                    db_conn_error(conn));
        return ACT_UNKNOWN;
    }
    bool acted = !db_is_null(rows, 0, db_rows_col(rows, "version"));
    bool mine = db_bool(rows, 0, db_rows_col(rows, "mine"));
    db_rows_free(rows);
    if (acted) {
        return ACT_ACCEPTED;
    }
    return mine ? ACT_REFUSED : ACT_BUSY;
}

enum watch_result executor_watch_order(const struct repair_work *work)
{
    struct str state = work->command_state;

    if (str_eq_c(state, "refused")) {
        return WATCH_REFUSED;
    }
    if (str_eq_c(state, "failed")) {
        return WATCH_FAILED;
    }
    if (str_eq_c(state, "done") || (work->action != ACTION_RESET_GPU && work->rebooted)) {
        return WATCH_DONE;
    }
    if (str_eq_c(state, "accepted")) {
        return WATCH_ACCEPTED;
    }
    if (str_eq_c(state, "expired") || str_eq_c(state, "withdrawn")) {
        return WATCH_NEVER_TAKEN;
    }
    if (!work->command_late) {
        return WATCH_WAITING;
    }
    return str_eq_c(state, "ready") ? WATCH_NEVER_TAKEN : WATCH_LOST;
}
