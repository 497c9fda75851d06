/* Handlers of the server itself: readiness, metrics, its own description and its problem pages. */
#include "server/handlers/system.h"

#include <string.h>

#include "base/buf.h"
#include "base/encode.h"
#include "db/statements.h"
#include "server/api_data.h"
#include "server/config.h"
#include "server/follow.h"
#include "server/loop.h"
#include "server/loops/loops.h"
#include "server/metrics.h"
#include "server/network.h"

/* The follower polls four times a second: silence for so long means that nothing wakes. */
#define FOLLOW_LATE_US (5 * (int64_t)1000000)
/* Partitions are made 14 days ahead; below this an administrator must look. */
#define PARTITION_DAYS_MIN 2

struct ready {
    bool database;
    int64_t migration;
    int64_t partitions_days; /* days ahead that have all their partitions; 0 also when unknown */
    bool durable;
};

enum err system_health(struct request *rq)
{
    reply_json(rq, 200, STR("ok\n"));
    rq->content_type = "text/plain; charset=utf-8";
    return ERR_NONE;
}

static void write_loops(const struct request *rq, struct enc *enc)
{
    size_t count = 0;
    struct loop *const *peers = loop_peers(rq->loop, &count);
    enc_key(enc, "loops");
    enc_arr(enc);
    for (size_t i = 0; i < count; i++) {
        enc_obj(enc);
        enc_key(enc, "n");
        enc_i64(enc, (int64_t)i);
        enc_key(enc, "lag_ms");
        enc_double(enc, (double)loop_lag_us(peers[i]) / 1000, 3);
        enc_key(enc, "streams");
        enc_i64(enc, (int64_t)loop_metrics_stream_count(loop_metrics(peers[i])));
        enc_obj_end(enc);
    }
    enc_arr_end(enc);
}

/* age_ms: since a look at everything ended; null = none yet. */
static void write_background(struct enc *enc)
{
    struct runner_status status[LOOPS_COUNT];
    size_t count = loops_read_status(status);
    enc_key(enc, "background");
    enc_arr(enc);
    for (size_t i = 0; i < count; i++) {
        enc_obj(enc);
        enc_key(enc, "name");
        enc_cstr(enc, status[i].name);
        enc_key(enc, "ok");
        enc_bool(enc, status[i].ok);
        enc_key(enc, "age_ms");
        if (status[i].age_us < 0) {
            enc_null(enc);
        } else {
            enc_i64(enc, status[i].age_us / 1000);
        }
        enc_key(enc, "duration_ms");
        enc_double(enc, (double)status[i].duration_us / 1000, 3);
        enc_obj_end(enc);
    }
    enc_arr_end(enc);
}

static void reply_ready(struct request *rq, const struct ready *state)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    bool follows = follow_age_us(loop_follow(rq->loop)) < FOLLOW_LATE_US;
    bool ready = state->database && follows && state->migration == migrations_count &&
                 state->partitions_days >= PARTITION_DAYS_MIN && !request_stopping(rq);
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "ready");
    enc_bool(&enc, ready);
    enc_key(&enc, "database");
    enc_bool(&enc, state->database && follows);
    enc_key(&enc, "migrations");
    enc_bool(&enc, state->migration == migrations_count);
    write_loops(rq, &enc);
    write_background(&enc);
    enc_key(&enc, "partitions_days");
    enc_i64(&enc, state->partitions_days);
    enc_key(&enc, "durable");
    enc_bool(&enc, state->durable);
    enc_obj_end(&enc);
    reply_json(rq, ready ? 200 : 503,
               (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
}

static enum err on_ready(struct request *rq, const struct db_rows *rows)
{
    struct ready state = {
        .database = true,
        .migration = db_i64(rows, 0, db_rows_col(rows, "migration")),
        .partitions_days = db_i64(rows, 0, db_rows_col(rows, "partitions_days")),
        .durable = db_bool(rows, 0, db_rows_col(rows, "durable")),
    };
    reply_ready(rq, &state);
    return ERR_NONE;
}

enum err system_ready(struct request *rq)
{
    const struct db_args none = {0};
    const struct ready down = {0};
    if (!db_loop_ready(loop_db(rq->loop))) {
        reply_ready(rq, &down);
        return ERR_NONE;
    }
    return request_query_as(rq, NULL, SQL_READY_STATE, false, &none, on_ready);
}

enum err system_metrics(struct request *rq)
{
    CLEANUP(buf_free) struct buf text = {0};
    size_t count = 0;
    if (!networks_hold(config.metrics_from, rq->address)) {
        return fail(rq, ERR_FORBIDDEN, "Metrics are served to metrics_from only.");
    }
    struct loop *const *peers = loop_peers(rq->loop, &count);
    metrics_write(peers, count, &text);
    loops_write_metrics(&text);
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
    rq->content_type = "text/plain; version=0.0.4; charset=utf-8";
    return ERR_NONE;
}

enum err system_openapi(struct request *rq)
{
    reply_json(rq, 200, (struct str){api_openapi, api_openapi_len});
    return ERR_NONE;
}

enum err system_problem(struct request *rq)
{
    struct str slug = {rq->path.ptr + sizeof("/problems/") - 1,
                       rq->path.len - (sizeof("/problems/") - 1)};
    for (size_t i = 0; i < api_pages_count; i++) {
        if (str_eq_c(slug, api_pages[i].slug)) {
            reply_json(rq, 200, str_of(api_pages[i].text));
            rq->content_type = "text/markdown; charset=utf-8";
            return ERR_NONE;
        }
    }
    return fail(rq, ERR_NOT_FOUND, "There is no such problem page.");
}
