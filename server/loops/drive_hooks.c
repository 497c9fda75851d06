/* Finds orders to the operators' automation and has them sent on threads of the pool. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "server/config.h"
#include "server/loops/loops.h"
#include "server/outbound.h"
#include "server/repair/executors/hook.h"
#include "server/repair/executors/targets.h"
#include "server/ticket.h"
#include "server/wake.h"

#define ARENA_CAP ((size_t)1 << 20)
#define TOLD_WITHIN_S 180 /* a call, the asking afterwards with its pauses, and room */
#define BUSY_REST_S 10
#define CALL_BACK_S 86400 /* how long a call-back is taken */

static int64_t period_ms(void)
{
    return config.loop_period_ms;
}

struct order {
    struct uuid org;
    struct uuid command;
    bool cut_off; /* its server was gone before it told the end */
};

struct claimed {
    const struct hook_target *hook;
    struct str id;
    struct str body;
};

static const char *call_back(struct arena *arena, const struct order *order)
{
    char address[512];
    char text[TICKET_TEXT_MAX];
    int64_t now_s = clock_wall_us() / 1000000;
    const struct ticket ticket = {.use = HOOK_TICKET_USE,
                                  .org = order->org,
                                  .id = order->command,
                                  .limit = 1,
                                  .issued_s = now_s,
                                  .expires_s = now_s + CALL_BACK_S};

    config_address(address, sizeof address);
    return ticket_sign(&ticket, text)
               ? arena_printf(arena, "%s/callbacks/orders?ticket=%s", address, text)
               : NULL;
}

static void write_texts(struct enc *enc, const struct db_rows *rows)
{
    static const char *const names[] = {"repair_id", "action",  "org",     "cluster",
                                        "node",      "node_id", "boot_id", "plan_hash"};

    for (size_t i = 0; i < COUNTOF(names); i++) {
        enc_key(enc, names[i]);
        enc_str(enc, db_text(rows, 0, db_rows_col(rows, names[i])));
    }
}

/* The message, as docs/executors.md has it. */
static struct str write_body(struct arena *arena, const struct order *order, struct str id,
                             const struct db_rows *rows)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;

    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "type");
    enc_cstr(&enc, "repair.order");
    enc_key(&enc, "timestamp");
    enc_time(&enc, clock_wall_us());
    enc_key(&enc, "data");
    enc_obj(&enc);
    enc_key(&enc, "command_id");
    enc_str(&enc, id);
    write_texts(&enc, rows);
    enc_key(&enc, "repair_no");
    enc_i64(&enc, db_i64(rows, 0, db_rows_col(rows, "repair_no")));
    enc_key(&enc, "deadline");
    enc_time(&enc, db_time_us(rows, 0, db_rows_col(rows, "back_by")));
    enc_key(&enc, "callback_url");
    enc_cstr(&enc, call_back(arena, order));
    enc_obj_end(&enc);
    enc_obj_end(&enc);
    return (struct str){arena_strndup(arena, text.ptr, text.len), text.len};
}

/* False: another server has it, or it may not be sent. */
static bool claim(const struct order *order, struct db_conn *db, struct arena *arena,
                  struct claimed *ret_claimed)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_uuid(&args, arena, &order->command);
    db_arg_i64(&args, arena, TOLD_WITHIN_S);
    db_arg_bool(&args, order->cut_off);
    if (db_exec(db, SQL_HOOK_CLAIM, &order->org, &args, &rows) != 0) {
        return false;
    }
    bool mine = db_rows_count(rows) > 0;
    if (mine) {
        struct str id = db_text(rows, 0, db_rows_col(rows, "id"));
        ret_claimed->hook = hook_find(db_text(rows, 0, db_rows_col(rows, "org")),
                                      db_text(rows, 0, db_rows_col(rows, "cluster")));
        ret_claimed->id = (struct str){arena_strndup(arena, id.ptr, id.len), id.len};
        ret_claimed->body = write_body(arena, order, ret_claimed->id, rows);
    }
    db_rows_free(rows);
    return mine;
}

/* NULL: nobody can say. What was sent and is unclear is asked about, and never sent again. */
static const char *carry_out(const struct order *order, struct arena *arena,
                             const struct claimed *claimed, char detail[HOOK_ERROR_MAX])
{
    static const char *const states[] = {
        [HOOK_ACCEPTED] = "accepted", [HOOK_DONE] = "done",  [HOOK_FAILED] = "failed",
        [HOOK_REFUSED] = "refused",   [HOOK_BUSY] = "ready", [HOOK_UNCLEAR] = NULL,
    };
    enum hook_said said = HOOK_UNCLEAR;

    (void)snprintf(detail, HOOK_ERROR_MAX, "%s", "Its server was gone before it told the end.");
    if (!order->cut_off) {
        said = hook_order(claimed->hook, arena, claimed->id, claimed->body, detail);
    }
    if (said == HOOK_UNCLEAR) {
        char error[HOOK_ERROR_MAX];
        said = hook_ask(claimed->hook, arena, claimed->id, error);
    }
    return states[said];
}

static void tell(const struct order *order, struct db_conn *db, struct arena *arena,
                 const char *state, const char *detail)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_uuid(&args, arena, &order->command);
    db_arg(&args, state);
    db_arg(&args, detail);
    db_arg_i64(&args, arena, config.command_within_seconds);
    if (db_exec(db, SQL_HOOK_TOLD, &order->org, &args, &rows) != 0) {
        /* Its deadline makes it unknown, and it is asked about then. */
        log_warning("how an order to the operator's automation ended could not be stored: %s",
                    db_conn_error(db));
    }
    db_rows_free(rows);
    wake_org(&order->org, WAKE_REPAIR);
}

static void work(void *arg, struct db_conn *db)
{
    struct order *order = arg;
    struct claimed claimed = {0};
    char detail[HOOK_ERROR_MAX] = "The cluster's automation is not in the executors file.";

    if (db != NULL) {
        CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
        if (claim(order, db, arena, &claimed)) {
            const char *state = order->cut_off ? NULL : "refused";
            if (claimed.hook != NULL) {
                state = carry_out(order, arena, &claimed, detail);
            }
            tell(order, db, arena, state, detail);
        }
    }
    free(order);
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_i64(&args, runner_arena(runner), BUSY_REST_S);
    enum err err = runner_query(runner, SQL_HOOK_ORDERS, org, &args, &rows);
    if (err != 0) {
        return err;
    }
    for (int i = 0; i < db_rows_count(rows); i++) {
        struct order *order = calloc(1, sizeof *order);
        if (order == NULL) {
            abort();
        }
        order->org = *org;
        order->cut_off = db_bool(rows, i, db_rows_col(rows, "cut_off"));
        if (!db_uuid(rows, i, 0, &order->command) ||
            !outbound_post(OUTBOUND_MACHINE, work, order)) {
            free(order); /* the next look finds it again */
        }
    }
    db_rows_free(rows);
    return 0;
}

const struct runner_spec drive_hooks_loop = {
    .name = "hooks",
    .topics = WAKE_REPAIR,
    .period_ms = period_ms,
    .run = run,
};
