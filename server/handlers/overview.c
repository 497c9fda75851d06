/*
 * The handler of a cluster's overview. Its figures are read each time. The worst nodes, the waiting
 * repairs and the last changes move only with the org's event or roll-up counter, so each loop
 * keeps them for the counters they were read at: most reads are then one row of the database.
 */
#include "server/handlers/overview.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/encode.h"
#include "server/loop.h"

/* Columns of overview_base: the cluster's fields, the roll-up's, the org's counters. */
enum form { FORM_TEXT, FORM_RAW, FORM_TIME };

struct member {
    const char *key;
    enum form form;
};

static const struct member cluster_members[] = {
    {"id", FORM_TEXT},
    {"project_id", FORM_TEXT},
    {"name", FORM_TEXT},
    {"scheduler", FORM_TEXT},
    {"region", FORM_TEXT},
    {"gpu_type", FORM_TEXT},
    {"gpus_per_node", FORM_RAW},
    {"driver_version", FORM_TEXT},
    {"network", FORM_TEXT},
    {"os_image", FORM_TEXT},
    {"billing_rate", FORM_RAW},
    {"billing_currency", FORM_TEXT},
    {"healthy_delay_seconds", FORM_RAW},
    {"begin_within_seconds", FORM_RAW},
    {"rejoin_within_seconds", FORM_RAW},
    {"created_at", FORM_TIME},
    {"updated_at", FORM_TIME},
    {"version", FORM_RAW},
};
static const struct member rollup_head[] = {
    {"version", FORM_RAW}, {"at", FORM_TIME}, {"nodes", FORM_RAW}};
static const struct member rollup_states[] = {
    {"pending", FORM_RAW},   {"starting", FORM_RAW}, {"healthy", FORM_RAW}, {"unhealthy", FORM_RAW},
    {"repairing", FORM_RAW}, {"paused", FORM_RAW},   {"unknown", FORM_RAW},
};
static const struct member rollup_figures[] = {
    {"warning", FORM_RAW},           {"seen_20s", FORM_RAW},       {"gpus", FORM_RAW},
    {"gpus_read", FORM_RAW},         {"gpu_busy_ratio", FORM_RAW}, {"gpu_mem_used_mib", FORM_RAW},
    {"gpu_mem_total_mib", FORM_RAW}, {"cpu_ratio", FORM_RAW},      {"mem_used_mib", FORM_RAW},
    {"mem_total_mib", FORM_RAW},     {"net_mbps", FORM_RAW},       {"fabric_mbps", FORM_RAW},
    {"power_w", FORM_RAW},
};
#define COL_COUNTERS                                                                 \
    (int)(COUNTOF(cluster_members) + COUNTOF(rollup_head) + COUNTOF(rollup_states) + \
          COUNTOF(rollup_figures))

/* Returns the column after the last one written. */
static int write_members(struct enc *enc, const struct db_rows *rows, int col,
                         const struct member *members, size_t count)
{
    for (size_t i = 0; i < count; i++, col++) {
        enc_key(enc, members[i].key);
        if (db_is_null(rows, 0, col)) {
            enc_null(enc);
        } else if (members[i].form == FORM_TIME) {
            enc_time(enc, db_time_us(rows, 0, col));
        } else if (members[i].form == FORM_RAW) {
            enc_raw(enc, db_text(rows, 0, col));
        } else {
            enc_str(enc, db_text(rows, 0, col));
        }
    }
    return col;
}

static void write_base(struct enc *enc, const struct db_rows *rows)
{
    enc_key(enc, "cluster");
    enc_obj(enc);
    int col = write_members(enc, rows, 0, cluster_members, COUNTOF(cluster_members));
    enc_obj_end(enc);
    enc_key(enc, "rollup");
    enc_obj(enc);
    col = write_members(enc, rows, col, rollup_head, COUNTOF(rollup_head));
    enc_key(enc, "states");
    enc_obj(enc);
    col = write_members(enc, rows, col, rollup_states, COUNTOF(rollup_states));
    enc_obj_end(enc);
    (void)write_members(enc, rows, col, rollup_figures, COUNTOF(rollup_figures));
    enc_obj_end(enc);
}

/* ------------------------------------------------------------------ what a loop keeps */

#define KEPT_MAX 64 /* clusters a loop; a place is found by the cluster's id, the newest wins */
#define PARTS_MAX 65536

struct kept {
    struct uuid org;
    struct uuid cluster;
    int64_t event_seq;
    int64_t rollup_version;
    char *parts; /* members of a JSON object; NULL = nothing kept */
    size_t len;
};

struct overviews {
    struct kept kept[KEPT_MAX];
};

void overview_attach(struct loop *loop)
{
    struct overviews *overviews = calloc(1, sizeof *overviews);
    if (overviews == NULL) {
        abort();
    }
    loop_slot_set(loop, LOOP_SLOT_OVERVIEW, overviews);
}

void overview_detach(struct loop *loop)
{
    struct overviews *overviews = loop_slot(loop, LOOP_SLOT_OVERVIEW);
    for (size_t i = 0; overviews != NULL && i < KEPT_MAX; i++) {
        free(overviews->kept[i].parts);
    }
    free(overviews);
    loop_slot_set(loop, LOOP_SLOT_OVERVIEW, NULL);
}

static struct kept *kept_of(struct request *rq)
{
    struct overviews *overviews = loop_slot(rq->loop, LOOP_SLOT_OVERVIEW);
    /* The last bytes of a UUIDv7 are random. */
    return &overviews->kept[rq->path_ids[0].bytes[15] % KEPT_MAX];
}

static bool kept_is(const struct kept *kept, const struct request *rq, const struct db_rows *base)
{
    return kept->parts != NULL && uuid_eq(&kept->org, &rq->caller.org) &&
           uuid_eq(&kept->cluster, &rq->path_ids[0]) &&
           kept->event_seq == db_i64(base, 0, COL_COUNTERS) &&
           kept->rollup_version == db_i64(base, 0, COL_COUNTERS + 1);
}

static void keep(struct request *rq, const struct db_rows *rows, struct str parts)
{
    struct kept *kept = kept_of(rq);
    free(kept->parts);
    kept->parts = NULL;
    if (parts.len > PARTS_MAX) {
        return;
    }
    kept->parts = calloc(1, parts.len + 1);
    if (kept->parts == NULL) {
        return;
    }
    memcpy(kept->parts, parts.ptr, parts.len);
    kept->len = parts.len;
    kept->org = rq->caller.org;
    kept->cluster = rq->path_ids[0];
    kept->event_seq = db_i64(rows, 0, 0);
    kept->rollup_version = db_i64(rows, 0, 1);
}

/* ------------------------------------------------------------------ the request */

/* The first part of the answer is rq->answer, without the brace at its end. */
static enum err finish(struct request *rq, struct str parts)
{
    char *text = arena_alloc(rq->arena, rq->answer.len + parts.len + 2);
    memcpy(text, rq->answer.ptr, rq->answer.len);
    text[rq->answer.len] = ',';
    memcpy(text + rq->answer.len + 1, parts.ptr, parts.len);
    text[rq->answer.len + 1 + parts.len] = '}';
    reply_json(rq, 200, (struct str){text, rq->answer.len + parts.len + 2});
    return ERR_NONE;
}

static enum err on_parts(struct request *rq, const struct db_rows *rows)
{
    if (db_rows_count(rows) == 0) {
        return fail(rq, ERR_NOT_FOUND, "There is no such cluster in this organization.");
    }
    struct str parts = db_text(rows, 0, db_rows_col(rows, "parts"));
    keep(rq, rows, parts);
    return finish(rq, parts);
}

static enum err on_base(struct request *rq, const struct db_rows *rows)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct db_args args = {0};
    struct enc enc;
    if (db_rows_count(rows) == 0) {
        return fail(rq, ERR_NOT_FOUND, "There is no such cluster in this organization.");
    }
    buf_reserve(&text, 2048);
    enc_init(&enc, &text);
    enc_obj(&enc);
    /* The older of the two statements' counters: what happened between them comes again, never
     * lost.
     */
    enc_key(&enc, "as_of_seq");
    enc_raw(&enc, db_text(rows, 0, COL_COUNTERS));
    write_base(&enc, rows);
    rq->answer = (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len};
    rq->version = db_i64(rows, 0, COL_COUNTERS) + db_i64(rows, 0, COL_COUNTERS + 1);
    struct kept *kept = kept_of(rq);
    if (kept_is(kept, rq, rows)) {
        return finish(rq, (struct str){kept->parts, kept->len});
    }
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    return request_query(rq, SQL_OVERVIEW_PARTS, false, &args, on_parts);
}

enum err cluster_overview(struct request *rq)
{
    struct db_args args = {0};
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    return request_query(rq, SQL_OVERVIEW_BASE, false, &args, on_base);
}
