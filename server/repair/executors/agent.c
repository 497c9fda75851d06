/* The node's own agent as executor: orders are signed commands that it fetches with its reports. */
#include "server/repair/executors/executor.h"

#include "base/buf.h"
#include "base/encode.h"
#include "base/log.h"
#include "server/config.h"
#include "server/repair/fsm.h"
#include "server/repair/work.h"

static const char *agent_plan(enum repair_action action)
{
    return action == ACTION_RESET_GPU ? "The node's agent resets the GPUs named in the evidence."
                                      : "The node's agent restarts the operating system.";
}

static bool agent_probe(const struct repair_work *work, const char **ret_why)
{
    if (work->silent) {
        *ret_why = "The node is silent, so its agent cannot take an order.";
        return false;
    }
    return true;
}

/* {"gpus": ["0000:bb:00"]} for a reset; a demo's orders say that they are for simulated nodes. */
static enum err write_args(struct db_conn *conn, struct arena *arena, const struct uuid *org,
                           const struct repair_work *work, const char **ret_args)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;

    enc_init(&enc, &text);
    enc_obj(&enc);
    if (work->demo) {
        enc_key(&enc, "simulated");
        enc_bool(&enc, true);
    }
    if (work->action == ACTION_RESET_GPU) {
        struct db_args args = {0};
        struct db_rows *rows = NULL;
        db_arg_uuid(&args, arena, &work->id);
        enum err err = db_exec(conn, SQL_REPAIR_DEVICES, org, &args, &rows);
        if (err != 0) {
            return err;
        }
        enc_key(&enc, "gpus");
        enc_arr(&enc);
        for (int i = 0; i < db_rows_count(rows); i++) {
            enc_str(&enc, db_text(rows, i, 0));
        }
        enc_arr_end(&enc);
        db_rows_free(rows);
    }
    enc_obj_end(&enc);
    *ret_args = arena_strndup(arena, text.ptr, text.len);
    return 0;
}

static enum act_result agent_act(struct db_conn *conn, struct arena *arena, const struct uuid *org,
                                 const struct repair_work *work)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct uuid command = uuid_v7();
    struct repair_list acting = {0};
    const char *command_args = NULL;

    if (write_args(conn, arena, org, work, &command_args) != 0) {
        return ACT_BUSY;
    }
    acting = repair_event_from(REPAIR_ON_ACTED);
    db_arg_uuid(&args, arena, &work->id);
    db_arg_i64(&args, arena, work->version);
    db_arg(&args, acting.text);
    db_arg_uuid(&args, arena, &command);
    db_arg_i64(&args, arena, config.command_within_seconds);
    db_arg(&args, command_args);
    enum err err = db_exec(conn, SQL_REPAIR_ACT_AGENT, org, &args, &rows);
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

static enum watch_result agent_watch(const struct repair_work *work)
{
    struct str state = work->command_state;

    if (str_eq_c(state, "refused")) {
        return WATCH_REFUSED;
    }
    if (str_eq_c(state, "failed")) {
        return WATCH_FAILED;
    }
    if (str_eq_c(state, "done") || (work->action == ACTION_REBOOT && work->rebooted)) {
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

const struct executor executor_agent = {
    .name = "agent",
    .actions = 1u << ACTION_RESET_GPU | 1u << ACTION_REBOOT,
    .plan = agent_plan,
    .probe = agent_probe,
    .act = agent_act,
    .watch = agent_watch,
};
