/* The handler of the grid: every node of a cluster in columns, which compress well and draw fast.
 */
#include "server/handlers/node_grid.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/encode.h"
#include "base/map.h"
#include "server/fields.h"

/* Columns of node_grid. */
enum column {
    COL_EVENT_SEQ,
    COL_ROLLUP_VERSION,
    COL_KNOWN,
    COL_VERSION,
    COL_AT,
    COL_ID,
    COL_NAME,
    COL_STATE,
    COL_WARNING,
    COL_RACK,
    COL_LEAF,
    COL_AGE,
    COL_INTERVAL,
    COL_UTIL,
    COL_MEM,
    COL_TEMP,
};

static char letter_of(struct str state, bool warning)
{
    static const struct {
        const char *state;
        char plain;
        char warning;
    } letters[] = {{"healthy", 'h', 'H'},  {"unhealthy", 'u', 'U'}, {"repairing", 'r', 'R'},
                   {"starting", 's', 'S'}, {"pending", 'p', 'P'},   {"paused", 'a', 'A'},
                   {"unknown", 'k', 'K'}};
    for (size_t i = 0; i < COUNTOF(letters); i++) {
        if (str_eq_c(state, letters[i].state)) {
            if (warning) {
                return letters[i].warning;
            }
            return letters[i].plain;
        }
    }
    return 'k';
}

static void write_names(struct enc *enc, const struct db_rows *rows, int count)
{
    enc_key(enc, "names");
    enc_arr(enc);
    for (int row = 0; row < count; row++) {
        enc_str(enc, db_text(rows, row, COL_NAME));
    }
    enc_arr_end(enc);
}

/* Ids are two thirds of a compressed grid, because nothing can shrink their randomness: who follows
 * a grid asks for them once. */
static void write_ids(struct request *rq, struct enc *enc, const struct db_rows *rows, int count)
{
    const struct grid_query *query = rq->params;
    enc_key(enc, "ids");
    if (!query->ids) {
        enc_null(enc);
        return;
    }
    enc_arr(enc);
    for (int row = 0; row < count; row++) {
        struct str id = db_text(rows, row, COL_ID);
        char text[UUID_TEXT_LEN + 3] = "\"";
        size_t len = 1;
        for (size_t i = 0; i < id.len && len <= UUID_TEXT_LEN; i++) {
            text[len] = id.ptr[i];
            len += id.ptr[i] != '-';
        }
        text[len++] = '"';
        enc_raw(enc, (struct str){text, len});
    }
    enc_arr_end(enc);
}

static void write_states(struct request *rq, struct enc *enc, const struct db_rows *rows, int count)
{
    char *letters = arena_alloc(rq->arena, (size_t)count + 1);
    for (int row = 0; row < count; row++) {
        letters[row] = letter_of(db_text(rows, row, COL_STATE), db_bool(rows, row, COL_WARNING));
    }
    letters[count] = '\0';
    enc_key(enc, "state");
    enc_str(enc, (struct str){letters, (size_t)count});
}

/* Each value once, in the order of its first node, and the place of every node's value. */
static void write_places(struct request *rq, struct enc *enc, const struct db_rows *rows, int count,
                         enum column column)
{
    struct map *seen = map_new(NULL);
    int32_t *index = arena_alloc(rq->arena, ((size_t)count + 1) * sizeof *index);
    int32_t places = 0;
    enc_key(enc, column == COL_RACK ? "rack" : "leaf");
    enc_obj(enc);
    enc_key(enc, "values");
    enc_arr(enc);
    for (int row = 0; row < count; row++) {
        struct str value = db_text(rows, row, (int)column);
        int32_t *place = map_get(seen, value);
        if (place == NULL) {
            place = &index[row]; /* of the first node with this value */
            *place = places++;
            map_put(seen, value, place);
            enc_str(enc, value);
        }
        index[row] = *place;
    }
    enc_arr_end(enc);
    enc_key(enc, "index");
    enc_arr(enc);
    for (int row = 0; row < count; row++) {
        enc_i64(enc, index[row]);
    }
    enc_arr_end(enc);
    enc_obj_end(enc);
    map_free(seen);
}

/* Readings older than three intervals are gaps. */
static void write_numbers(struct enc *enc, const struct db_rows *rows, int count, const char *key,
                          enum column column)
{
    enc_key(enc, key);
    enc_arr(enc);
    for (int row = 0; row < count; row++) {
        bool old =
            column != COL_AGE && db_i64(rows, row, COL_AGE) > 3 * db_i64(rows, row, COL_INTERVAL);
        if (old || db_is_null(rows, row, (int)column)) {
            enc_null(enc);
        } else {
            enc_raw(enc, db_text(rows, row, (int)column));
        }
    }
    enc_arr_end(enc);
}

static void write_grid(struct request *rq, struct enc *enc, const struct db_rows *rows, int count)
{
    enc_obj(enc);
    enc_key(enc, "as_of_seq");
    enc_raw(enc, db_text(rows, 0, COL_EVENT_SEQ));
    enc_key(enc, "version");
    enc_i64(enc, db_i64(rows, 0, COL_VERSION));
    enc_key(enc, "at");
    if (db_is_null(rows, 0, COL_AT)) {
        enc_null(enc);
    } else {
        enc_time(enc, db_time_us(rows, 0, COL_AT));
    }
    enc_key(enc, "n");
    enc_i64(enc, count);
    write_names(enc, rows, count);
    write_ids(rq, enc, rows, count);
    write_states(rq, enc, rows, count);
    write_places(rq, enc, rows, count, COL_RACK);
    write_places(rq, enc, rows, count, COL_LEAF);
    write_numbers(enc, rows, count, "util", COL_UTIL);
    write_numbers(enc, rows, count, "mem", COL_MEM);
    write_numbers(enc, rows, count, "temp", COL_TEMP);
    write_numbers(enc, rows, count, "age", COL_AGE);
    enc_obj_end(enc);
}

static enum err on_nodes(struct request *rq, const struct db_rows *rows)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    int count = db_rows_count(rows);
    if (count == 0 || !db_bool(rows, 0, COL_KNOWN)) {
        return fail(rq, ERR_NOT_FOUND, "There is no such cluster in this organization.");
    }
    if (db_is_null(rows, 0, COL_ID)) {
        count = 0;
    }
    buf_reserve(&text, (size_t)count * 96 + 512);
    enc_init(&enc, &text);
    write_grid(rq, &enc, rows, count);
    rq->version = db_i64(rows, 0, COL_EVENT_SEQ) + db_i64(rows, 0, COL_ROLLUP_VERSION);
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
    return ERR_NONE;
}

enum err cluster_grid(struct request *rq)
{
    struct db_args args = {0};
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    return request_query(rq, SQL_NODE_GRID, false, &args, on_nodes);
}
