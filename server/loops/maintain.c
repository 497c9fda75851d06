/* Housekeeping: partitions ahead of time, daily anchors, and what has outlived its use. */
#include "server/loops/loops.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/log.h"
#include "server/config.h"

#define DROPS_MAX 64 /* a server that was off for weeks goes on at its next look */
#define TABLES_MAX 8
#define TABLE_NAME_MAX 32

/* Metrics: written by the loop, read by whoever asks for them. */
static struct {
    char name[TABLE_NAME_MAX]; /* written once, before count counts it */
    _Atomic int64_t days;
} oldest[TABLES_MAX];
static _Atomic size_t oldest_count;

#define PERIOD_MS 600000 /* an anchor is at most so much later than midnight */

static int64_t period_ms(void)
{
    return PERIOD_MS;
}

static enum err run_list(struct runner *runner, const struct uuid *org, const enum sql_id *list,
                         size_t count)
{
    enum err worst = 0;

    /* One that fails must not keep the others from running. */
    for (size_t i = 0; i < count; i++) {
        enum err err = runner_exec(runner, list[i], org, NULL, NULL);
        worst = err != 0 ? err : worst;
    }
    return worst;
}

/* What is older than its period goes, a partition a transaction: each holds its lock shortly. */
static enum err drop_partitions(struct runner *runner)
{
    struct db_args args = {0};
    enum err err = ERR_NONE;
    bool more = true;

    db_arg_i64(&args, runner_arena(runner), config.event_keep_days);
    db_arg_i64(&args, runner_arena(runner), config.history_keep_days);
    for (int i = 0; i < DROPS_MAX && more && err == ERR_NONE && !runner_stopping(runner); i++) {
        struct db_rows *rows = NULL;
        err = runner_query(runner, SQL_PARTITION_DROP, NULL, &args, &rows);
        if (err != ERR_NONE) {
            break;
        }
        struct str name = db_rows_count(rows) > 0 ? db_text(rows, 0, 0) : (struct str){0};
        more = name.len > 0;
        if (more) {
            log_info("the partition %.*s was dropped: its time is over", STR_FMT(name));
        }
        db_rows_free(rows);
    }
    return err;
}

static void note_oldest(struct str name, int64_t days)
{
    size_t count = atomic_load(&oldest_count);
    size_t i = 0;

    while (i < count && !str_eq_c(name, oldest[i].name)) {
        i++;
    }
    if (i == TABLES_MAX || name.len >= TABLE_NAME_MAX) {
        return;
    }
    atomic_store(&oldest[i].days, days);
    if (i == count) {
        (void)snprintf(oldest[i].name, TABLE_NAME_MAX, "%.*s", STR_FMT(name));
        atomic_store(&oldest_count, count + 1);
    }
}

static enum err look_at_oldest(struct runner *runner)
{
    struct db_rows *rows = NULL;
    enum err err = runner_query(runner, SQL_PARTITIONS_OLDEST, NULL, NULL, &rows);

    if (err != ERR_NONE) {
        return err;
    }
    for (int row = 0; row < db_rows_count(rows); row++) {
        note_oldest(db_text(rows, row, 0), db_i64(rows, row, 1));
    }
    db_rows_free(rows);
    return ERR_NONE;
}

void maintain_write_metrics(struct buf *out)
{
    size_t count = atomic_load(&oldest_count);

    buf_printf(out, "# HELP muster_partition_oldest_days Since the oldest partition of a table "
                    "begins.\n# TYPE muster_partition_oldest_days gauge\n");
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "muster_partition_oldest_days{table=\"%s\"} %lld\n", oldest[i].name,
                   (long long)atomic_load(&oldest[i].days));
    }
}

static enum err run_global(struct runner *runner)
{
    static const enum sql_id list[] = {SQL_PARTITIONS_MAKE, SQL_SIGN_IN_LINK_PRUNE,
                                       SQL_DEVICE_CODE_PRUNE};

    enum err worst = run_list(runner, NULL, list, COUNTOF(list));
    enum err err = drop_partitions(runner);
    worst = err != ERR_NONE ? err : worst;
    err = look_at_oldest(runner);
    return err != ERR_NONE ? err : worst;
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    static const enum sql_id list[] = {
        SQL_ANCHOR_WRITE,           SQL_IDEMPOTENCY_PRUNE,
        SQL_SESSION_PRUNE,          SQL_AGENT_TOKEN_PRUNE,
        SQL_JOIN_TOKEN_PRUNE,       SQL_STREAM_PRUNE,
        SQL_EXPORT_LINK_PRUNE,      SQL_LOGIN_PRUNE,
        SQL_LOGIN_ATTEMPT_PRUNE,    SQL_LOGOUT_TOKEN_PRUNE,
        SQL_WEBHOOK_DELIVERY_PRUNE,
    };

    return run_list(runner, org, list, COUNTOF(list));
}

const struct runner_spec maintain_loop = {
    .name = "maintain",
    .topics = 0,
    .period_ms = period_ms,
    .run = run,
    .run_global = run_global,
};
