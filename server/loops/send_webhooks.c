/* Makes deliveries of what happened, and has each webhook's sent on a thread of the pool. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/config.h"
#include "server/loops/loops.h"
#include "server/outbound.h"
#include "server/wake.h"
#include "server/webhooks.h"

#define ARENA_CAP ((size_t)1 << 20)
#define EVENTS_AT_ONCE 1000
#define ROUNDS_MAX 20     /* of one look; the next goes on */
#define WAITING_MAX 10000 /* of one webhook */
#define LEASE_S 60        /* above a call's deadline and the database's */
#define TURN_US 5000000   /* one webhook keeps a thread for so long, then others have it */
#define OVERFLOW_SENTENCE "10000 deliveries wait for it, and no more are kept."

static int64_t period_ms(void)
{
    return config.loop_period_ms;
}

/* ------------------------------------------------------------------ sending */

struct turn {
    struct uuid org;
    struct uuid webhook;
    struct uuid lease;
    bool kept; /* the lease runs out by itself: what was sent could not be stored */
};

/* Sends the oldest that is due. False when there is none, another has it, or it was not taken. */
static bool send_one(struct turn *turn, struct db_conn *db)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    struct webhook_message message;
    struct webhook_end end;
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_uuid(&args, arena, &turn->webhook);
    db_arg_uuid(&args, arena, &turn->lease);
    db_arg_i64(&args, arena, LEASE_S);
    if (db_exec(db, SQL_WEBHOOK_CLAIM, &turn->org, &args, &rows) != 0) {
        return false;
    }
    if (db_rows_count(rows) == 0) {
        db_rows_free(rows);
        return false;
    }
    int64_t attempts = db_i64(rows, 0, db_rows_col(rows, "attempts"));
    webhook_message_read(arena, rows, &turn->webhook, &message);
    db_rows_free(rows);
    webhook_send(db, arena, &turn->org, &message, &end);
    if (webhook_tell(db, arena, &turn->org, &message, &end, attempts, false) != 0) {
        /* It is sent once more when the lease is over: at least once, with the same id. */
        log_warning("how a webhook's delivery ended could not be stored: %s", db_conn_error(db));
        turn->kept = true;
        return false;
    }
    return end.error[0] == '\0';
}

static void release(const struct turn *turn, struct db_conn *db)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_uuid(&args, arena, &turn->webhook);
    db_arg_uuid(&args, arena, &turn->lease);
    if (db_exec(db, SQL_WEBHOOK_RELEASE, &turn->org, &args, &rows) != 0) {
        log_warning("a webhook's turn ends with its lease: %s", db_conn_error(db));
    }
    db_rows_free(rows);
}

static void work(void *arg, struct db_conn *db)
{
    struct turn *turn = arg;
    int64_t begun_us = clock_mono_us();

    if (db != NULL) {
        while (send_one(turn, db) && clock_mono_us() - begun_us < TURN_US) {
        }
        if (!turn->kept) {
            release(turn, db);
        }
        wake_org(&turn->org, WAKE_WEBHOOK);
    }
    free(turn);
}

/* ------------------------------------------------------------------ finding */

static enum err fan_out(struct runner *runner, const struct uuid *org)
{
    struct arena *arena = runner_arena(runner);
    bool behind = true;
    enum err err = 0;

    for (int i = 0; i < ROUNDS_MAX && behind && err == 0 && !runner_stopping(runner); i++) {
        struct db_args args = {0};
        struct db_rows *rows = NULL;
        db_arg(&args, webhook_kinds_json);
        db_arg_i64(&args, arena, EVENTS_AT_ONCE);
        db_arg_i64(&args, arena, WAITING_MAX);
        err = runner_query(runner, SQL_WEBHOOK_FAN_OUT, org, &args, &rows);
        behind = err == 0 && db_i64(rows, 0, db_rows_col(rows, "behind")) > 0;
        db_rows_free(rows);
    }
    return err;
}

static enum err disable_overflown(struct runner *runner, const struct uuid *org)
{
    struct db_args args = {0};

    db_arg_i64(&args, runner_arena(runner), WAITING_MAX);
    db_arg(&args, OVERFLOW_SENTENCE);
    return runner_exec(runner, SQL_WEBHOOK_OVERFLOW, org, &args, NULL);
}

static void post(const struct uuid *org, const struct uuid *webhook)
{
    struct turn *turn = calloc(1, sizeof *turn);

    if (turn == NULL) {
        abort();
    }
    *turn = (struct turn){.org = *org, .webhook = *webhook, .lease = uuid_v7()};
    if (!outbound_post(OUTBOUND_WEBHOOK, work, turn)) {
        free(turn); /* the next look finds it again */
    }
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    struct db_rows *rows = NULL;
    enum err err = fan_out(runner, org);

    if (err == 0) {
        err = disable_overflown(runner, org);
    }
    if (err == 0) {
        err = runner_query(runner, SQL_WEBHOOK_DUE, org, NULL, &rows);
    }
    if (err != 0) {
        return err;
    }
    for (int i = 0; i < db_rows_count(rows); i++) {
        struct uuid webhook;
        if (db_uuid(rows, i, 0, &webhook)) {
            post(org, &webhook);
        }
    }
    db_rows_free(rows);
    return 0;
}

static enum err list_orgs(struct runner *runner, struct uuid **ret_orgs, size_t *ret_count)
{
    struct db_rows *rows = NULL;
    enum err err = runner_query(runner, SQL_WEBHOOK_ORGS, NULL, NULL, &rows);

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

const struct runner_spec send_webhooks_loop = {
    .name = "webhooks",
    .topics = WAKE_ANY | WAKE_WEBHOOK,
    .period_ms = period_ms,
    .orgs = list_orgs,
    .run = run,
};
