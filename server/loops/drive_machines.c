/* Finds orders to the controllers of nodes and has them carried out on threads of the pool. */
#include <stdlib.h>

#include "base/log.h"
#include "server/config.h"
#include "server/loops/loops.h"
#include "server/outbound.h"
#include "server/repair/executors/machine.h"
#include "server/wake.h"

#define ARENA_CAP ((size_t)1 << 20)
#define SEEN_MS 60000
#define POLL_MS 1000
#define TOLD_WITHIN_S 900 /* four times SEEN_MS, the calls' own time, and room */

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
    const struct machine *machine;
    struct str serial;
};

/* False: another server has it. A node without a controller has machine NULL. */
static bool claim(const struct order *order, struct db_conn *db, struct arena *arena,
                  struct claimed *ret_claimed)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_uuid(&args, arena, &order->command);
    db_arg_i64(&args, arena, TOLD_WITHIN_S);
    db_arg_bool(&args, order->cut_off);
    db_arg_uuid(&args, arena, &config.instance);
    db_arg_i64(&args, arena, config.lease_seconds);
    if (db_exec(db, SQL_MACHINE_CLAIM, &order->org, &args, &rows) != 0) {
        return false;
    }
    bool mine = db_rows_count(rows) > 0;
    if (mine) {
        struct str serial = db_text(rows, 0, db_rows_col(rows, "serial"));
        ret_claimed->machine = machine_find(db_text(rows, 0, db_rows_col(rows, "org")),
                                            db_text(rows, 0, db_rows_col(rows, "cluster")),
                                            db_text(rows, 0, db_rows_col(rows, "node")));
        ret_claimed->serial =
            (struct str){arena_strndup(arena, serial.ptr, serial.len), serial.len};
    }
    db_rows_free(rows);
    return mine;
}

struct asker {
    const struct order *order;
    struct db_conn *db;
    struct arena *arena;
};

/* Reading the power may have taken a minute: a stop, a job or a boot may have come meanwhile, and a
 * server that stood still may have lost its order. Without the database nothing is begun. */
static enum machine_leave ask_leave(void *arg, char detail[MACHINE_ERROR_MAX])
{
    struct asker *asker = arg;
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    enum machine_leave leave = LEAVE_LOST;

    db_arg_uuid(&args, asker->arena, &asker->order->command);
    db_arg_uuid(&args, asker->arena, &config.instance);
    db_arg_i64(&args, asker->arena, config.lease_seconds);
    if (db_exec(asker->db, SQL_MACHINE_MAY, &asker->order->org, &args, &rows) == 0 &&
        db_rows_count(rows) > 0) {
        leave = db_is_null(rows, 0, 0) ? LEAVE_GIVEN : LEAVE_REFUSED;
        (void)snprintf(detail, MACHINE_ERROR_MAX, "%.*s", STR_FMT(db_text(rows, 0, 0)));
    }
    db_rows_free(rows);
    return leave;
}

/* False: there is nothing to tell. state NULL: nobody can say how it ended. */
static bool carry_out(struct asker *asker, const struct claimed *claimed,
                      char detail[MACHINE_ERROR_MAX], const char **ret_state)
{
    const struct machine_times times = {.seen_ms = SEEN_MS,
                                        .poll_ms = POLL_MS,
                                        .rest_ms = config.machine_rest_ms,
                                        .leave = ask_leave,
                                        .arg = asker};

    *ret_state = NULL;
    if (asker->order->cut_off) {
        (void)machine_heal(claimed->machine, &times, detail);
        return true;
    }
    switch (machine_cycle(claimed->machine, claimed->serial, &times, detail)) {
    case MACHINE_CYCLED:
        *ret_state = "accepted";
        break;
    case MACHINE_KEPT:
        *ret_state = "refused";
        break;
    case MACHINE_HELD:
        *ret_state = "withdrawn";
        break;
    case MACHINE_LOST:
        return false;
    case MACHINE_FAILED:
        *ret_state = "failed";
        break;
    case MACHINE_UNKNOWN:
        break;
    }
    return true;
}

static void tell(const struct order *order, struct db_conn *db, struct arena *arena,
                 const char *state, const char *detail)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_uuid(&args, arena, &order->command);
    db_arg(&args, state);
    db_arg(&args, detail);
    db_arg_uuid(&args, arena, &config.instance);
    if (db_exec(db, SQL_MACHINE_TOLD, &order->org, &args, &rows) != 0) {
        /* Its deadline makes it unknown, and what it left is looked at then. */
        log_warning("how an order to a controller ended could not be stored: %s",
                    db_conn_error(db));
    }
    db_rows_free(rows);
    wake_org(&order->org, WAKE_REPAIR);
}

static void work(void *arg, struct db_conn *db)
{
    struct order *order = arg;
    struct claimed claimed = {0};
    char detail[MACHINE_ERROR_MAX] = "The node's controller is not in the executors file.";

    if (db != NULL) {
        CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
        if (claim(order, db, arena, &claimed)) {
            struct asker asker = {.order = order, .db = db, .arena = arena};
            const char *state = order->cut_off ? NULL : "refused";
            if (claimed.machine == NULL || carry_out(&asker, &claimed, detail, &state)) {
                tell(order, db, arena, state, detail);
            }
        }
    }
    free(order);
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    struct arena *arena = runner_arena(runner);
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_uuid(&args, arena, &config.instance);
    db_arg_i64(&args, arena, config.lease_seconds);
    enum err err = runner_query(runner, SQL_MACHINE_ORDERS, org, &args, &rows);

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

const struct runner_spec drive_machines_loop = {
    .name = "machines",
    .topics = WAKE_REPAIR,
    .period_ms = period_ms,
    .run = run,
};
