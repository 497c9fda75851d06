/* Handlers of the past: samples in columns, transitions, counts by interval. */
#include "server/handlers/history.h"

#include "base/buf.h"
#include "base/encode.h"
#include "server/span.h"

/* A request for samples: first whether the thing exists, then the samples. */
struct history {
    struct span span;
    enum sql_id sql;
    const char *const *columns; /* of the statement behind `at`, NULL-terminated */
    bool counts_last;           /* the last column counts: 0 and not null in a gap */
    int64_t version;
};

static void write_times(struct enc *enc, const struct span *span)
{
    enc_key(enc, "at");
    enc_arr(enc);
    for (size_t i = 0; i < span->count; i++) {
        enc_i64(enc, span->first_s + (int64_t)i * span->step_s);
    }
    enc_arr_end(enc);
}

/* Rows come in order of time, and not for every point: what is missing is a gap. */
static void write_column(struct enc *enc, const struct history *history, const struct db_rows *rows,
                         int col)
{
    int row = 0;
    bool counts = history->counts_last && history->columns[col] == NULL;
    enc_key(enc, history->columns[col - 1]);
    enc_arr(enc);
    for (size_t i = 0; i < history->span.count; i++) {
        int64_t at = history->span.first_s + (int64_t)i * history->span.step_s;
        while (row < db_rows_count(rows) && db_i64(rows, row, 0) < at) {
            row++;
        }
        bool there =
            row < db_rows_count(rows) && db_i64(rows, row, 0) == at && !db_is_null(rows, row, col);
        if (there) {
            enc_raw(enc, db_text(rows, row, col));
        } else if (counts) {
            enc_i64(enc, 0);
        } else {
            enc_null(enc);
        }
    }
    enc_arr_end(enc);
}

static enum err on_samples(struct request *rq, const struct db_rows *rows)
{
    const struct history *history = rq->params;
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    buf_reserve(&text, history->span.count * 48 + 256);
    enc_init(&enc, &text);
    enc_obj(&enc);
    write_times(&enc, &history->span);
    for (int col = 1; history->columns[col - 1] != NULL; col++) {
        write_column(&enc, history, rows, col);
    }
    enc_obj_end(&enc);
    rq->version = history->version;
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
    return ERR_NONE;
}

static enum err on_known(struct request *rq, const struct db_rows *rows)
{
    struct history *history = arena_alloc(rq->arena, sizeof *history);
    struct db_args args = {0};
    *history = *(const struct history *)rq->params;
    rq->params = history;
    if (db_rows_count(rows) == 0) {
        return fail(rq, ERR_NOT_FOUND, "There is no such thing in this organization.");
    }
    history->version = db_i64(rows, 0, db_rows_col(rows, "version"));
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    span_bind(rq, &history->span, &args);
    db_arg_i64(&args, rq->arena, history->span.step_s);
    return request_query(rq, history->sql, false, &args, on_samples);
}

static enum err start_history(struct request *rq, enum sql_id known, struct history wanted)
{
    struct history *history = arena_alloc(rq->arena, sizeof *history);
    struct db_args args = {0};
    enum err err = span_points(rq, rq->params, &wanted.span);
    if (err != ERR_NONE) {
        return err;
    }
    *history = wanted;
    rq->params = history;
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    return request_query(rq, known, false, &args, on_known);
}

enum err cluster_history(struct request *rq)
{
    static const char *const columns[] = {"gpu_busy_ratio", "gpu_mem_ratio", "cpu_ratio",
                                          "net_mbps",       "nodes_read",    NULL};
    return start_history(
        rq, SQL_CLUSTER_KNOWN,
        (struct history){.sql = SQL_CLUSTER_HISTORY, .columns = columns, .counts_last = true});
}

enum err node_history(struct request *rq)
{
    static const char *const columns[] = {"gpu_util_ratio", "gpu_mem_ratio", "cpu_ratio",
                                          "net_mbps", NULL};
    return start_history(rq, SQL_NODE_KNOWN,
                         (struct history){.sql = SQL_NODE_HISTORY, .columns = columns});
}

enum err node_transitions(struct request *rq)
{
    struct span span;
    struct db_args args = {0};
    enum err err = span_read(rq, rq->params, &span);
    if (err != ERR_NONE) {
        return err;
    }
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    span_bind(rq, &span, &args);
    return request_query(rq, SQL_NODE_TRANSITIONS, false, &args, NULL);
}

enum err cluster_events_strip(struct request *rq)
{
    struct span span;
    struct db_args args = {0};
    enum err err = span_buckets(rq, rq->params, 96, &span);
    if (err != ERR_NONE) {
        return err;
    }
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    span_bind(rq, &span, &args);
    db_arg_i64(&args, rq->arena, (int64_t)span.count);
    return request_query(rq, SQL_EVENT_STRIP, false, &args, NULL);
}
