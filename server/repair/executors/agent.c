/* The node's own agent as executor: orders are signed commands that it fetches with its reports. */
#include "server/repair/executors/executor.h"

#include "base/buf.h"
#include "base/encode.h"
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
    const char *command_args = NULL;

    return write_args(conn, arena, org, work, &command_args) != 0
               ? ACT_BUSY
               : executor_order(conn, arena, org, work, command_args);
}

const struct executor executor_agent = {
    .name = "agent",
    .who = "The agent",
    .actions = 1u << ACTION_RESET_GPU | 1u << ACTION_REBOOT,
    .plan = agent_plan,
    .probe = agent_probe,
    .act = agent_act,
    .watch = executor_watch_order,
};
