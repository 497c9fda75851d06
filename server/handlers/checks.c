/* Handlers of checks: the catalogue, and results by check and time. */
#include "server/handlers/checks.h"

#include <string.h>

#include "base/buf.h"
#include "base/encode.h"
#include "server/bind.h"
#include "server/config.h"
#include "server/fields_custom.h"
#include "server/health/traits.h"
#include "server/span.h"

/* ------------------------------------------------------------------ the catalogue */

static void write_texts(struct enc *enc, const struct catalog_check *check)
{
    const struct {
        const char *key;
        const char *value;
    } texts[] = {
        {"check_id", check->check_id}, {"title", check->title},           {"source", check->source},
        {"kind", check->kind},         {"severity", check->severity},     {"action", check->action},
        {"clears", check->clears},     {"clear_rule", check->clear_rule},
    };
    for (size_t i = 0; i < COUNTOF(texts); i++) {
        enc_key(enc, texts[i].key);
        enc_cstr(enc, texts[i].value);
    }
}

/* What an override of it may set. */
static void write_settable(struct enc *enc, const struct catalog_check *check)
{
    bool settable = (catalog_trait_find(check->check_id)->flags & CATALOG_FIXED) == 0;
    const struct {
        const char *field;
        bool has;
    } fields[] = {
        {"mode", settable},
        {"severity", settable},
        {"action", settable && strcmp(check->action, "none") != 0},
        {"threshold", catalog_counts(check)},
        {"looks", settable && catalog_looks_find(check->check_id) != NULL},
    };
    enc_key(enc, "settable");
    enc_arr(enc);
    for (size_t i = 0; i < COUNTOF(fields); i++) {
        if (fields[i].has) {
            enc_cstr(enc, fields[i].field);
        }
    }
    enc_arr_end(enc);
}

/* Columns of check_override_all. */
enum override_column {
    OVERRIDE_CHECK,
    OVERRIDE_BODY,
    OVERRIDE_HOLDS,
    OVERRIDE_SOURCE,
    OVERRIDE_MODE,
    OVERRIDE_SEVERITY,
    OVERRIDE_ACTION,
    OVERRIDE_THRESHOLD,
    OVERRIDE_LOOKS,
    OVERRIDE_CLEAR_LOOKS,
    OVERRIDE_SHADOW_UNTIL,
    OVERRIDE_ID,
};

/* The override's word, or what was delivered. */
static void write_word(struct enc *enc, const char *key, const struct db_rows *rows, int row,
                       enum override_column column, const char *delivered)
{
    enc_key(enc, key);
    if (row >= 0 && !db_is_null(rows, row, column)) {
        enc_str(enc, db_text(rows, row, column));
    } else if (delivered != NULL) {
        enc_cstr(enc, delivered);
    } else {
        enc_null(enc);
    }
}

/* The same for numbers; delivered 0 = the check has none. */
static void write_number(struct enc *enc, const char *key, const struct db_rows *rows, int row,
                         enum override_column column, int64_t delivered)
{
    enc_key(enc, key);
    if (row >= 0 && !db_is_null(rows, row, column)) {
        enc_i64(enc, db_i64(rows, row, column));
    } else if (delivered > 0) {
        enc_i64(enc, delivered);
    } else {
        enc_null(enc);
    }
}

static int rank(struct str severity)
{
    return str_eq_c(severity, "critical") ? 2 : str_eq_c(severity, "warning") ? 1 : 0;
}

/* An override makes it milder, never worse. */
static bool is_milder(const struct catalog_check *check, const struct db_rows *rows, int row)
{
    return row >= 0 && !db_is_null(rows, row, OVERRIDE_SEVERITY) &&
           rank(db_text(rows, row, OVERRIDE_SEVERITY)) < rank(str_of(check->severity));
}

/* What holds at the place that was asked for, and why. */
static void write_effective(struct enc *enc, const struct catalog_check *check,
                            const struct catalog_looks *looks, const struct db_rows *rows)
{
    int row = db_rows_count(rows) - 1;

    while (row >= 0 && !(str_eq_c(db_text(rows, row, OVERRIDE_CHECK), check->check_id) &&
                         db_bool(rows, row, OVERRIDE_HOLDS))) {
        row--;
    }
    int mild = is_milder(check, rows, row) ? row : -1;
    enc_key(enc, "effective");
    enc_obj(enc);
    write_word(enc, "mode", rows, row, OVERRIDE_MODE, "live");
    write_word(enc, "severity", rows, mild, OVERRIDE_SEVERITY, check->severity);
    write_word(enc, "action", rows, row, OVERRIDE_ACTION, check->action);
    write_number(enc, "threshold", rows, row, OVERRIDE_THRESHOLD, 1);
    write_number(enc, "looks", rows, row, OVERRIDE_LOOKS, looks != NULL ? looks->looks : 0);
    write_number(enc, "clear_looks", rows, row, OVERRIDE_CLEAR_LOOKS,
                 looks != NULL ? looks->clear_looks : 0);
    write_word(enc, "shadow_until", rows, row, OVERRIDE_SHADOW_UNTIL, NULL);
    write_word(enc, "source", rows, row, OVERRIDE_SOURCE, "delivered");
    write_word(enc, "override_id", rows, row, OVERRIDE_ID, NULL);
    enc_obj_end(enc);
}

static void write_looks(struct enc *enc, const struct catalog_looks *looks)
{
    const struct {
        const char *key;
        int value;
    } numbers[] = {
        {"looks", looks != NULL ? looks->looks : 0},
        {"clear_looks", looks != NULL ? looks->clear_looks : 0},
        {"look_seconds", looks != NULL ? looks->window_s : 0},
    };

    for (size_t i = 0; i < COUNTOF(numbers); i++) {
        enc_key(enc, numbers[i].key);
        if (looks == NULL) {
            enc_null(enc);
        } else {
            enc_i64(enc, numbers[i].value);
        }
    }
}

static void write_overrides(struct enc *enc, const struct catalog_check *check,
                            const struct db_rows *rows)
{
    enc_key(enc, "overrides");
    enc_arr(enc);
    for (int row = 0; row < db_rows_count(rows); row++) {
        if (str_eq_c(db_text(rows, row, OVERRIDE_CHECK), check->check_id)) {
            enc_raw(enc, db_text(rows, row, OVERRIDE_BODY));
        }
    }
    enc_arr_end(enc);
}

static void write_check(struct enc *enc, const struct catalog_check *check,
                        const struct db_rows *rows)
{
    const struct catalog_trait *trait = catalog_trait_find(check->check_id);
    const struct catalog_looks *looks = catalog_looks_find(check->check_id);

    enc_obj(enc);
    write_texts(enc, check);
    enc_key(enc, "node_fault");
    enc_bool(enc, check->node_fault);
    enc_key(enc, "threshold");
    enc_i64(enc, 1);
    enc_key(enc, "threshold_unit");
    enc_cstr(enc, "events");
    enc_key(enc, "threshold_max");
    enc_i64(enc, catalog_counts(check) ? 1000000 : 1);
    write_looks(enc, looks);
    enc_key(enc, "window_seconds");
    enc_i64(enc, check->quiet_seconds);
    enc_key(enc, "family");
    enc_cstr(enc, trait->family);
    enc_key(enc, "settles");
    enc_bool(enc, (trait->flags & CATALOG_SETTLES) != 0);
    enc_key(enc, "boot_grace");
    enc_bool(enc, (trait->flags & CATALOG_GRACE) != 0);
    write_settable(enc, check);
    write_effective(enc, check, looks, rows);
    write_overrides(enc, check, rows);
    enc_obj_end(enc);
}

static enum err on_overrides(struct request *rq, const struct db_rows *rows)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    if (db_rows_count(rows) == 0 || !db_bool(rows, 0, OVERRIDE_HOLDS)) {
        return fail(rq, ERR_NOT_FOUND, "There is no such cluster or node in this organization.");
    }
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "items");
    enc_arr(&enc);
    for (size_t i = 0; i < catalog_count; i++) {
        write_check(&enc, &catalog_checks[i], rows);
    }
    enc_arr_end(&enc);
    enc_key(&enc, "settle_seconds");
    enc_i64(&enc, config.settle_seconds);
    enc_key(&enc, "boot_grace_seconds");
    enc_i64(&enc, config.boot_grace_seconds);
    enc_obj_end(&enc);
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
    return ERR_NONE;
}

enum err check_list(struct request *rq)
{
    struct db_args args = {0};

    bind_fields(rq, check_place_query, rq->params, &args);
    return request_query(rq, SQL_CHECK_OVERRIDE_ALL, false, &args, on_overrides);
}

/* ------------------------------------------------------------------ by check and time */

/* Columns of check_matrix. */
enum column {
    COL_KIND,
    COL_CHECK,
    COL_N,
    COL_NODE,
    COL_NAME,
    COL_SUMMARY,
    COL_FAILED,
    COL_SECONDS,
    COL_VERSION,
};

struct matrix {
    const struct db_rows *rows;
    struct span span;
    char *coverage; /* one character an interval: d, or . */
    size_t covered;
    double bucket_s;
    int64_t nodes;
};

static bool is_kind(const struct matrix *matrix, int row, const char *kind)
{
    return str_eq_c(db_text(matrix->rows, row, COL_KIND), kind);
}

static bool is_row_of(const struct matrix *matrix, int row, const char *kind, struct str check)
{
    return is_kind(matrix, row, kind) && str_eq(db_text(matrix->rows, row, COL_CHECK), check);
}

static void read_coverage(struct request *rq, struct matrix *matrix)
{
    matrix->coverage = arena_alloc(rq->arena, matrix->span.count + 1);
    memset(matrix->coverage, '.', matrix->span.count);
    matrix->coverage[matrix->span.count] = '\0';
    for (int row = 0; row < db_rows_count(matrix->rows); row++) {
        int64_t bucket = db_i64(matrix->rows, row, COL_N);
        if (is_kind(matrix, row, "data") && bucket >= 0 && (size_t)bucket < matrix->span.count) {
            matrix->covered += matrix->coverage[bucket] == '.';
            matrix->coverage[bucket] = 'd';
        }
    }
}

/* False when the collector that the check reads works on no node: then nothing has passed. */
static bool is_seen(const struct matrix *matrix, const struct catalog_check *known)
{
    for (int row = 0; known != NULL && row < db_rows_count(matrix->rows); row++) {
        if (is_kind(matrix, row, "source") &&
            str_eq_c(db_text(matrix->rows, row, COL_NAME), known->source)) {
            return db_i64(matrix->rows, row, COL_N) > 0;
        }
    }
    return true;
}

/* What we could see and found nothing in has passed; a fault counts also where no samples are.
 * Returns the node-seconds with an incident. */
static double write_cells(struct request *rq, struct enc *enc, const struct matrix *matrix,
                          struct str check, bool seen)
{
    double lost_s = 0;
    char *cells = arena_alloc(rq->arena, matrix->span.count + 1);
    for (size_t i = 0; i < matrix->span.count; i++) {
        cells[i] = seen && matrix->coverage[i] == 'd' ? 'p' : '.';
    }
    cells[matrix->span.count] = '\0';
    for (int row = 0; row < db_rows_count(matrix->rows); row++) {
        if (!is_row_of(matrix, row, "bad", check)) {
            continue;
        }
        int64_t bucket = db_i64(matrix->rows, row, COL_N);
        if (bucket >= 0 && (size_t)bucket < matrix->span.count) {
            cells[bucket] = db_bool(matrix->rows, row, COL_FAILED) ? 'f' : 'w';
            lost_s +=
                matrix->coverage[bucket] == 'd' ? db_double(matrix->rows, row, COL_SECONDS) : 0;
        }
    }
    enc_key(enc, "cells");
    enc_cstr(enc, cells);
    return lost_s;
}

static void write_worst(struct enc *enc, const struct matrix *matrix, struct str check)
{
    enc_key(enc, "worst");
    enc_arr(enc);
    for (int row = 0; row < db_rows_count(matrix->rows); row++) {
        if (is_row_of(matrix, row, "worst", check)) {
            enc_obj(enc);
            enc_key(enc, "node_id");
            enc_str(enc, db_text(matrix->rows, row, COL_NODE));
            enc_key(enc, "name");
            enc_str(enc, db_text(matrix->rows, row, COL_NAME));
            enc_key(enc, "summary");
            enc_str(enc, db_text(matrix->rows, row, COL_SUMMARY));
            enc_obj_end(enc);
        }
    }
    enc_arr_end(enc);
}

static void write_row(struct request *rq, struct enc *enc, const struct matrix *matrix,
                      struct str check, const struct catalog_check *known)
{
    bool seen = is_seen(matrix, known);
    double seen_s = seen ? (double)matrix->covered * matrix->bucket_s * (double)matrix->nodes : 0;
    enc_obj(enc);
    enc_key(enc, "check_id");
    enc_str(enc, check);
    enc_key(enc, "title");
    enc_str(enc, known != NULL ? str_of(known->title) : check);
    enc_key(enc, "kind");
    enc_cstr(enc, known != NULL ? known->kind : "passive");
    double lost_s = write_cells(rq, enc, matrix, check, seen);
    enc_key(enc, "passed_ratio");
    if (seen_s > 0) {
        enc_double(enc, lost_s < seen_s ? 1 - lost_s / seen_s : 0, 6);
    } else {
        enc_null(enc);
    }
    write_worst(enc, matrix, check);
    enc_obj_end(enc);
}

/* Checks that failed and that no catalogue of ours has: a newer agent's. Each once. */
static void write_unknown(struct request *rq, struct enc *enc, const struct matrix *matrix)
{
    struct str last = {NULL, 0};
    for (int row = 0; row < db_rows_count(matrix->rows); row++) {
        struct str check = db_text(matrix->rows, row, COL_CHECK);
        if (is_kind(matrix, row, "bad") && !str_eq(check, last) && catalog_find(check) == NULL) {
            write_row(rq, enc, matrix, check, NULL);
            last = check;
        }
    }
}

static enum err on_matrix(struct request *rq, const struct db_rows *rows)
{
    struct matrix matrix = {.rows = rows, .span = *(const struct span *)rq->params};
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    if (db_rows_count(rows) == 0 || !is_kind(&matrix, 0, "head")) {
        return fail(rq, ERR_NOT_FOUND, "There is no such cluster in this organization.");
    }
    matrix.nodes = db_i64(rows, 0, COL_N);
    matrix.bucket_s = db_double(rows, 0, COL_SECONDS);
    read_coverage(rq, &matrix);
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "since");
    enc_time(&enc, matrix.span.since_us);
    enc_key(&enc, "until");
    enc_time(&enc, matrix.span.until_us);
    enc_key(&enc, "bucket_seconds");
    enc_double(&enc, matrix.bucket_s, 3);
    enc_key(&enc, "coverage");
    enc_cstr(&enc, matrix.coverage);
    enc_key(&enc, "rows");
    enc_arr(&enc);
    for (size_t i = 0; i < catalog_count; i++) {
        write_row(rq, &enc, &matrix, str_of(catalog_checks[i].check_id), &catalog_checks[i]);
    }
    write_unknown(rq, &enc, &matrix);
    enc_arr_end(&enc);
    enc_obj_end(&enc);
    rq->version = db_i64(rows, 0, COL_VERSION);
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
    return ERR_NONE;
}

enum err cluster_checks(struct request *rq)
{
    struct span *span = arena_alloc(rq->arena, sizeof *span);
    struct db_args args = {0};
    enum err err = span_buckets(rq, rq->params, 48, span);
    if (err != ERR_NONE) {
        return err;
    }
    rq->params = span;
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    span_bind(rq, span, &args);
    db_arg_i64(&args, rq->arena, (int64_t)span->count);
    return request_query(rq, SQL_CHECK_MATRIX, false, &args, on_matrix);
}
