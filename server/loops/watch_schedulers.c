/* Reads each configured scheduler, on threads of the pool, and makes its nodes take work, or not,
 * as Muster wishes. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "server/config.h"
#include "server/loops/loops.h"
#include "server/outbound.h"
#include "server/repair/executors/scheduler.h"
#include "server/repair/policy.h"
#include "server/wake.h"

/* A controller that hangs is not asked at once again: 1 s, doubled up to 16 s. */
#define REST_AFTER_FAILURE_US 1000000
#define REST_DOUBLINGS 4

#define REST_SHARE 9 /* times as long as a reading took, so that it takes a tenth of the time */
#define ARENA_CAP ((size_t)512 << 20) /* 10,000 nodes with their jobs */

/* By the place of its target. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int64_t not_before_us;
    int failures; /* in a row */
    bool busy;    /* a thread is at it */
} turns[TARGETS_MAX];

/* One scheduler's turn on a thread of the pool. */
struct turn {
    struct uuid org;
    struct uuid cluster;
    const struct scheduler_target *target;
    struct db_conn *db;
    struct arena *arena;
};

static int64_t period_ms(void)
{
    return config.scheduler_period_ms;
}

static enum err query(const struct turn *turn, enum sql_id sql, const struct db_args *args,
                      struct db_rows **ret_rows)
{
    return db_exec(turn->db, sql, &turn->org, args, ret_rows);
}

/* One node: what is wished of it, and what the scheduler says. */
struct pair {
    struct scheduler_wish wish;
    struct uuid node_id;
    struct str our_reason;
    bool wanted_closed;
    bool evict;
    const char *said;
};

static const struct scheduler_node nobody = {.state = "unknown"};

static void read_pair(struct arena *arena, const struct db_rows *rows, int row,
                      const struct scheduler_snapshot *snapshot, struct pair *ret_pair)
{
    struct str name = db_text(rows, row, db_rows_col(rows, "name"));
    struct str reason = db_text(rows, row, db_rows_col(rows, "reason"));
    const struct scheduler_node *node = scheduler_node_find(snapshot, name);

    *ret_pair = (struct pair){
        .wish = {.node = node == NULL ? &nobody : node,
                 .reason = arena_strndup(arena, reason.ptr, reason.len),
                 .grace_s = db_i64(rows, row, db_rows_col(rows, "grace_seconds")),
                 .grace_over = db_bool(rows, row, db_rows_col(rows, "grace_over"))},
        .our_reason = db_text(rows, row, db_rows_col(rows, "our_reason")),
        .wanted_closed = !db_bool(rows, row, db_rows_col(rows, "schedulable")),
        .evict = db_bool(rows, row, db_rows_col(rows, "evict")),
        .said = node == NULL ? "The scheduler does not know this node." : "",
    };
    (void)db_uuid(rows, row, db_rows_col(rows, "id"), &ret_pair->node_id);
}

/* Closed by somebody else, or for a reason that was changed since: not ours to open. */
static bool is_ours(const struct pair *pair)
{
    return pair->our_reason.len > 0 && str_starts(pair->wish.node->reason, pair->our_reason);
}

static enum err intend(const struct turn *turn, const struct pair *pair)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_uuid(&args, turn->arena, &pair->node_id);
    db_arg_uuid(&args, turn->arena, &turn->cluster);
    db_arg(&args, pair->wish.reason);
    enum err err = query(turn, SQL_SCHEDULER_INTEND, &args, &rows);
    db_rows_free(rows);
    return err;
}

/* Grants one wish when what was read differs from it. *ret_asked: the scheduler was told something,
 * so it has to be read again before anything is known. */
static enum err grant(const struct turn *turn, struct pair *pair, bool *ret_asked)
{
    const struct scheduler_target *target = turn->target;
    char error[SCHEDULER_ERROR_MAX] = "";
    bool ok = true;

    if (pair->wish.node == &nobody) {
        return 0;
    }
    if (pair->wanted_closed && !pair->wish.node->closed) {
        enum err err = intend(turn, pair);
        if (err != 0) {
            return err;
        }
        ok = target->scheduler->close(target, &pair->wish, error);
        *ret_asked = true;
    } else if (!pair->wanted_closed && pair->wish.node->closed && is_ours(pair)) {
        ok = target->scheduler->open(target, &pair->wish, error);
        *ret_asked = true;
    } else if (pair->evict && pair->wish.node->closed && pair->wish.node->job_count > 0 &&
               target->scheduler->evict != NULL) {
        ok = target->scheduler->evict(target, &pair->wish, error);
    }
    if (!ok) {
        pair->said = arena_printf(turn->arena, "%s", error);
    }
    return 0;
}

static void write_jobs(struct enc *enc, const struct scheduler_node *node)
{
    enc_key(enc, "jobs");
    enc_arr(enc);
    for (size_t i = 0; i < node->job_count; i++) {
        const struct scheduler_job *job = &node->jobs[i];
        enc_obj(enc);
        enc_key(enc, "id");
        enc_str(enc, job->id);
        enc_key(enc, "user");
        enc_str(enc, job->user);
        enc_key(enc, "name");
        enc_str(enc, job->name);
        enc_key(enc, "gpus");
        if (job->gpus < 0) {
            enc_null(enc);
        } else {
            enc_i64(enc, job->gpus);
        }
        enc_key(enc, "started_at");
        if (job->started_us == 0) {
            enc_null(enc);
        } else {
            enc_time(enc, job->started_us);
        }
        enc_key(enc, "nodes");
        enc_i64(enc, job->nodes);
        enc_key(enc, "blocked");
        enc_str(enc, job->blocked);
        enc_obj_end(enc);
    }
    enc_arr_end(enc);
}

static void write_pair(struct enc *enc, const struct pair *pair)
{
    const struct scheduler_node *node = pair->wish.node;
    CLEANUP(buf_free) struct buf ids = {0};

    for (size_t i = 0; i < node->job_count; i++) {
        buf_printf(&ids, "%s%.*s", i == 0 ? "" : ",", STR_FMT(node->jobs[i].id));
    }
    enc_obj(enc);
    enc_key(enc, "node_id");
    enc_uuid(enc, &pair->node_id);
    enc_key(enc, "state");
    enc_cstr(enc, node->state);
    enc_key(enc, "closed");
    enc_bool(enc, node->closed);
    enc_key(enc, "reason");
    enc_str(enc, node->reason);
    write_jobs(enc, node);
    enc_key(enc, "job_ids");
    enc_str(enc, buf_str(&ids));
    enc_key(enc, "said");
    enc_cstr(enc, pair->said);
    enc_obj_end(enc);
}

static enum err store(const struct turn *turn, const char *error, const char *nodes)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_uuid(&args, turn->arena, &turn->cluster);
    db_arg(&args, turn->target->scheduler->kind);
    db_arg(&args, error);
    db_arg(&args, nodes);
    enum err err = query(turn, SQL_SCHEDULER_STORE, &args, &rows);
    if (err == 0 && db_rows_count(rows) > 0 && db_i64(rows, 0, 0) > 0) {
        wake_org(&turn->org, WAKE_REPAIR);
    }
    db_rows_free(rows);
    return err;
}

/* Wishes first, then what was read before them is stored: `closed` is told only after it was seen,
 * and a node that has just been asked to close is never taken for drained. */
static enum err grant_all(const struct turn *turn, const struct scheduler_snapshot *snapshot,
                          bool *ret_asked)
{
    const struct policy policy = policy_default(config.cooldown_seconds);
    CLEANUP(buf_free) struct buf text = {0};
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct enc enc;

    db_arg_uuid(&args, turn->arena, &turn->cluster);
    db_arg_i64(&args, turn->arena, policy.idle_wait_seconds);
    db_arg_i64(&args, turn->arena, policy.grace_seconds);
    enum err err = query(turn, SQL_SCHEDULER_WISHES, &args, &rows);
    if (err != 0) {
        return err;
    }
    enc_init(&enc, &text);
    enc_arr(&enc);
    for (int i = 0; i < db_rows_count(rows) && err == 0; i++) {
        struct pair pair;
        read_pair(turn->arena, rows, i, snapshot, &pair);
        err = grant(turn, &pair, ret_asked);
        write_pair(&enc, &pair);
    }
    enc_arr_end(&enc);
    db_rows_free(rows);
    return err != 0 ? err : store(turn, "", text.ptr);
}

/* Reads, grants, and reads once more when something was asked, so that its effect shows at once.
 * *ret_read: the scheduler answered. */
static enum err watch(const struct turn *turn, bool *ret_read)
{
    for (int round = 0; round < 2; round++) {
        struct scheduler_snapshot snapshot;
        char error[SCHEDULER_ERROR_MAX] = "";
        bool asked = false;
        *ret_read = turn->target->scheduler->read(turn->target, turn->arena, &snapshot, error);
        if (!*ret_read) {
            return store(turn, error, "[]");
        }
        enum err err = grant_all(turn, &snapshot, &asked);
        if (err != 0 || !asked) {
            return err;
        }
    }
    return 0;
}

/* ------------------------------------------------------------------ turns */

/* False: a thread is at it, or it rests. */
static bool take_turn(const struct scheduler_target *target)
{
    size_t place = (size_t)(target - target_at(0));

    pthread_mutex_lock(&lock);
    bool mine = !turns[place].busy && clock_mono_us() >= turns[place].not_before_us;
    turns[place].busy = turns[place].busy || mine;
    pthread_mutex_unlock(&lock);
    return mine;
}

static void end_turn(const struct scheduler_target *target, bool read, int64_t took_us)
{
    size_t place = (size_t)(target - target_at(0));
    int64_t period_us = config.scheduler_period_ms * 1000;
    int64_t rest_us = took_us * REST_SHARE < period_us ? took_us * REST_SHARE : period_us;

    pthread_mutex_lock(&lock);
    if (!read) {
        rest_us = (int64_t)REST_AFTER_FAILURE_US << turns[place].failures;
        turns[place].failures += turns[place].failures < REST_DOUBLINGS ? 1 : 0;
    } else {
        turns[place].failures = 0;
    }
    turns[place].not_before_us = clock_mono_us() + rest_us;
    turns[place].busy = false;
    pthread_mutex_unlock(&lock);
}

static void work(void *arg, struct db_conn *db)
{
    struct turn *turn = arg;
    int64_t begun_us = clock_mono_us();
    bool read = true;

    if (db != NULL) {
        turn->db = db;
        turn->arena = arena_new(ARENA_CAP);
        if (watch(turn, &read) != 0) {
            log_warning("what the scheduler of %.*s/%.*s said could not be stored: %s",
                        STR_FMT(turn->target->org), STR_FMT(turn->target->cluster),
                        db_conn_error(db));
        }
        arena_free(turn->arena);
    }
    end_turn(turn->target, read, clock_mono_us() - begun_us);
    free(turn);
}

static void post(const struct uuid *org, const struct uuid *cluster,
                 const struct scheduler_target *target)
{
    if (!take_turn(target)) {
        return;
    }
    struct turn *turn = calloc(1, sizeof *turn);
    if (turn == NULL) {
        abort();
    }
    *turn = (struct turn){.org = *org, .cluster = *cluster, .target = target};
    if (!outbound_post(OUTBOUND_SCHEDULER, work, turn)) {
        end_turn(target, true, 0);
        free(turn);
    }
}

static const char *target_names(struct arena *arena)
{
    CLEANUP(buf_free) struct buf text = {0};

    for (size_t i = 0; i < targets_count(); i++) {
        const struct scheduler_target *target = target_at(i);
        buf_printf(&text, "%s%.*s/%.*s", i == 0 ? "{" : ",", STR_FMT(target->org),
                   STR_FMT(target->cluster));
    }
    buf_add_c(&text, targets_count() == 0 ? "{}" : "}");
    return arena_strndup(arena, text.ptr, text.len);
}

static enum err forget(struct runner *runner, const struct uuid *org, const struct db_rows *rows)
{
    struct arena *arena = runner_arena(runner);
    CLEANUP(buf_free) struct buf text = {0};
    struct db_args args = {0};

    buf_add_char(&text, '{');
    for (int i = 0; i < db_rows_count(rows); i++) {
        buf_printf(&text, "%s%.*s", i == 0 ? "" : ",", STR_FMT(db_text(rows, i, 0)));
    }
    buf_add_char(&text, '}');
    db_arg(&args, arena_strndup(arena, text.ptr, text.len));
    return runner_exec(runner, SQL_SCHEDULER_FORGET, org, &args, NULL);
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    struct arena *arena = runner_arena(runner);
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg(&args, target_names(arena));
    enum err err = runner_query(runner, SQL_SCHEDULER_CLUSTERS, org, &args, &rows);
    if (err != 0) {
        return err;
    }
    err = forget(runner, org, rows);
    for (int i = 0; i < db_rows_count(rows) && err == 0 && !runner_stopping(runner); i++) {
        struct uuid cluster;
        const struct scheduler_target *target =
            target_find(db_text(rows, i, db_rows_col(rows, "org")),
                        db_text(rows, i, db_rows_col(rows, "name")));
        if (target == NULL || !db_uuid(rows, i, 0, &cluster)) {
            continue;
        }
        post(org, &cluster, target);
    }
    db_rows_free(rows);
    return err;
}

const struct runner_spec watch_schedulers_loop = {
    .name = "schedulers",
    .topics = WAKE_REPAIR,
    .period_ms = period_ms,
    .run = run,
};
