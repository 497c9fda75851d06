/* Handlers of nodes: the list, written in C because a page has 100 rows of 24 fields, and cordon.
 */
#include "server/handlers/nodes.h"

#include <string.h>

#include "base/buf.h"
#include "base/encode.h"
#include "server/bind.h"
#include "server/fields.h"

/* ------------------------------------------------------------------ the list */

/* Columns of the statements node_list_*: the fragment node_page after four of the list's own. */
enum column {
    COL_EVENT_SEQ,
    COL_ROLLUP_VERSION,
    COL_KNOWN,
    COL_CURSOR,
    COL_ID,
    COL_NAME,
    COL_STATE,
    COL_REASON,
    COL_STATE_SINCE,
    COL_WARNING,
    COL_SCHEDULABLE,
    COL_RACK,
    COL_LEAF,
    COL_PARTITION,
    COL_SEEN_AT,
    COL_INTERVAL,
    COL_GPUS,
    COL_FRESH,
    COL_GPU_UTIL,
    COL_GPU_MEM_USED,
    COL_GPU_MEM_TOTAL,
    COL_GPU_TEMP,
    COL_CPU,
    COL_MEM_USED,
    COL_MEM_TOTAL,
    COL_NET,
    COL_INCIDENT,
    COL_REPAIR,
    COL_VERSION,
};

enum form { FORM_TEXT, FORM_WORD, FORM_TIME, FORM_BOOL, FORM_NUMBER, FORM_PERMILLE };

/* The fields of a node summary in order. A reading that is not fresh is a gap: null. */
static const struct {
    const char *key;
    enum column column;
    enum form form;
    bool reading;
} fields[] = {
    {"id", COL_ID, FORM_WORD, false},
    {"name", COL_NAME, FORM_TEXT, false},
    {"state", COL_STATE, FORM_WORD, false},
    {"reason", COL_REASON, FORM_TEXT, false},
    {"state_since", COL_STATE_SINCE, FORM_TIME, false},
    {"warning", COL_WARNING, FORM_BOOL, false},
    {"schedulable", COL_SCHEDULABLE, FORM_BOOL, false},
    {"rack", COL_RACK, FORM_TEXT, false},
    {"leaf", COL_LEAF, FORM_TEXT, false},
    {"partition", COL_PARTITION, FORM_TEXT, false},
    {"seen_at", COL_SEEN_AT, FORM_TIME, false},
    {"interval_seconds", COL_INTERVAL, FORM_NUMBER, false},
    {"gpus", COL_GPUS, FORM_NUMBER, false},
    {"gpu_util_ratio", COL_GPU_UTIL, FORM_PERMILLE, true},
    {"gpu_mem_used_mib", COL_GPU_MEM_USED, FORM_NUMBER, true},
    {"gpu_mem_total_mib", COL_GPU_MEM_TOTAL, FORM_NUMBER, true},
    {"gpu_temp_max_c", COL_GPU_TEMP, FORM_NUMBER, true},
    {"cpu_ratio", COL_CPU, FORM_PERMILLE, true},
    {"mem_used_mib", COL_MEM_USED, FORM_NUMBER, true},
    {"mem_total_mib", COL_MEM_TOTAL, FORM_NUMBER, true},
    {"net_mbps", COL_NET, FORM_NUMBER, true},
    {"incident_id", COL_INCIDENT, FORM_WORD, false},
    {"repair_id", COL_REPAIR, FORM_WORD, false},
    {"version", COL_VERSION, FORM_NUMBER, false},
};

/* Ids and states hold nothing to escape. */
static void write_word(struct enc *enc, struct str word)
{
    char text[UUID_TEXT_LEN + 3];
    if (word.len > UUID_TEXT_LEN) {
        enc_str(enc, word);
        return;
    }
    text[0] = '"';
    memcpy(text + 1, word.ptr, word.len);
    text[word.len + 1] = '"';
    enc_raw(enc, (struct str){text, word.len + 2});
}

/* PostgreSQL's "2026-12-01 12:00:00.5+00" as RFC 3339, without counting days. */
static void write_time(struct enc *enc, struct str time)
{
    char text[STR_RFC3339_LEN + 3];
    if (!str_ends(time, STR("+00")) || time.len > STR_RFC3339_LEN + 2 || time.len < 22) {
        enc_null(enc);
        return;
    }
    size_t len = time.len - 3;
    text[0] = '"';
    memcpy(text + 1, time.ptr, len);
    text[11] = 'T';
    text[len + 1] = 'Z';
    text[len + 2] = '"';
    enc_raw(enc, (struct str){text, len + 3});
}

static void write_permille(struct enc *enc, int64_t value)
{
    int64_t rest = value % 1000;
    char text[] = {(char)('0' + value / 1000 % 10), '.', (char)('0' + rest / 100),
                   (char)('0' + rest / 10 % 10), (char)('0' + rest % 10)};
    enc_raw(enc, (struct str){text, sizeof text});
}

static void write_value(struct enc *enc, const struct db_rows *rows, int row, size_t i)
{
    int col = (int)fields[i].column;
    if (db_is_null(rows, row, col)) {
        enc_null(enc);
        return;
    }
    switch (fields[i].form) {
    case FORM_WORD:
        write_word(enc, db_text(rows, row, col));
        break;
    case FORM_TIME:
        write_time(enc, db_text(rows, row, col));
        break;
    case FORM_BOOL:
        enc_bool(enc, db_bool(rows, row, col));
        break;
    case FORM_NUMBER:
        enc_raw(enc, db_text(rows, row, col));
        break;
    case FORM_PERMILLE:
        write_permille(enc, db_i64(rows, row, col));
        break;
    case FORM_TEXT:
    default:
        enc_str(enc, db_text(rows, row, col));
        break;
    }
}

static void write_node(struct request *rq, struct enc *enc, const struct db_rows *rows, int row)
{
    bool fresh = db_bool(rows, row, COL_FRESH);
    enc_obj(enc);
    for (size_t i = 0; i < COUNTOF(fields); i++) {
        enc_key(enc, fields[i].key);
        if (fields[i].reading && !fresh) {
            enc_null(enc);
        } else {
            write_value(enc, rows, row, i);
        }
        if (i == 0) {
            enc_key(enc, "cluster_id");
            enc_uuid(enc, &rq->path_ids[0]);
        }
    }
    enc_obj_end(enc);
}

static enum err on_page(struct request *rq, const struct db_rows *rows)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    int count = db_rows_count(rows);
    int limit = (int)rq->page_limit;
    if (count == 0 || !db_bool(rows, 0, COL_KNOWN)) {
        return fail(rq, ERR_NOT_FOUND, "There is no such cluster in this organization.");
    }
    buf_reserve(&text, (size_t)count * 800);
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "items");
    enc_arr(&enc);
    for (int row = 0; row < count && row < limit && !db_is_null(rows, row, COL_ID); row++) {
        write_node(rq, &enc, rows, row);
    }
    enc_arr_end(&enc);
    enc_key(&enc, "as_of_seq");
    enc_raw(&enc, db_text(rows, 0, COL_EVENT_SEQ));
    enc_obj_end(&enc);
    rq->version = db_i64(rows, 0, COL_EVENT_SEQ) + db_i64(rows, 0, COL_ROLLUP_VERSION);
    if (count > limit) {
        struct str keys = db_text(rows, limit - 1, COL_CURSOR);
        rq->next = (struct str){arena_strndup(rq->arena, keys.ptr, keys.len), keys.len};
    }
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
    return ERR_NONE;
}

enum err node_list(struct request *rq)
{
    const struct node_query *query = rq->params;
    struct db_args args = {0};
    enum sql_id sql = query->has_state ? SQL_NODE_LIST_STATES : SQL_NODE_LIST_NAME;
    if (str_eq_c(query->sort, "state")) {
        sql = SQL_NODE_LIST_WORST;
    } else if (str_eq_c(query->sort, "-name")) {
        sql = SQL_NODE_LIST_NAME_DESC;
    }
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    bind_fields(rq, node_filters, query, &args);
    db_arg_i64(&args, rq->arena, rq->page_limit);
    db_arg_str(&args, rq->arena, rq->page_keys);
    return request_query(rq, sql, false, &args, on_page);
}

/* ------------------------------------------------------------------ cordon */

static enum err cordon(struct request *rq, bool schedulable)
{
    struct db_args args = {0};
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    bind_key(rq, &args);
    bind_actor(rq, &args);
    bind_fields(rq, node_cordon_body, rq->in, &args);
    db_arg_bool(&args, schedulable);
    return request_query(rq, SQL_NODE_CORDON, true, &args, NULL);
}

enum err node_cordon(struct request *rq)
{
    return cordon(rq, false);
}

enum err node_uncordon(struct request *rq)
{
    return cordon(rq, true);
}
