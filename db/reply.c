/* Rows, the reply row, and the meaning of PostgreSQL's error codes. */
#include "db/rows.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/crypto.h"

/* A row per SQLSTATE, or per class where the code has two characters; the first that fits counts.
 */
static const struct {
    const char *code;
    struct failure failure;
} sqlstates[] = {
    {"23505", {ERR_CONFLICT, RETRY_NEVER, false}},       /* unique_violation: see failure_of */
    {"23503", {ERR_CONFLICT, RETRY_NEVER, false}},       /* foreign_key_violation */
    {"23514", {ERR_INVALID_FIELDS, RETRY_NEVER, false}}, /* check_violation: see failure_of */
    {"22001", {ERR_INVALID_FIELDS, RETRY_NEVER, false}}, /* string_data_right_truncation */
    {"22003", {ERR_INVALID_FIELDS, RETRY_NEVER, false}}, /* numeric_value_out_of_range */
    {"22007", {ERR_INVALID_FIELDS, RETRY_NEVER, false}}, /* invalid_datetime_format */
    {"22008", {ERR_INVALID_FIELDS, RETRY_NEVER, false}}, /* datetime_field_overflow */
    {"22021", {ERR_INVALID_FIELDS, RETRY_NEVER, false}}, /* character_not_in_repertoire */
    {"22P02", {ERR_INVALID_FIELDS, RETRY_NEVER, false}}, /* invalid_text_representation */
    {"22P05", {ERR_INVALID_FIELDS, RETRY_NEVER, false}}, /* untranslatable_character: \u0000 */
    {"40001", {ERR_UNAVAILABLE, RETRY_ONCE, false}},     /* serialization_failure */
    {"40P01", {ERR_UNAVAILABLE, RETRY_ONCE, false}},     /* deadlock_detected */
    {"0A000", {ERR_INTERNAL, RETRY_PREPARE, false}},  /* cached plan must not change result type */
    {"26000", {ERR_INTERNAL, RETRY_PREPARE, false}},  /* the prepared statement is gone */
    {"25006", {ERR_UNAVAILABLE, RETRY_NEVER, true}},  /* read_only_sql_transaction: a standby */
    {"55P03", {ERR_UNAVAILABLE, RETRY_NEVER, false}}, /* lock_not_available */
    {"57014", {ERR_UNAVAILABLE, RETRY_NEVER, false}}, /* query_canceled: statement_timeout */
    {"57", {ERR_UNAVAILABLE, RETRY_NEVER, true}},     /* shutdown and crash */
    {"08", {ERR_UNAVAILABLE, RETRY_NEVER, true}},     /* connection */
    {"53", {ERR_UNAVAILABLE, RETRY_NEVER, false}},    /* disk full, memory, too many clients */
    {"58", {ERR_UNAVAILABLE, RETRY_NEVER, false}},    /* input or output error */
};

static bool ends_with(const char *text, const char *end)
{
    size_t text_len = strlen(text);
    size_t end_len = strlen(end);
    return text_len >= end_len && strcmp(text + text_len - end_len, end) == 0;
}

/* Names of keys decide which kind of conflict it is: they end in _name where the name is the key.
 */
static struct failure judge_unique(const char *constraint)
{
    if (strcmp(constraint, "idempotency_pkey") == 0) {
        /* A twin with the same key won: run once more and its stored answer is replayed. */
        return (struct failure){ERR_KEY_IN_FLIGHT, RETRY_ONCE, false};
    }
    bool is_name = ends_with(constraint, "_name_key") || ends_with(constraint, "_name");
    return (struct failure){is_name ? ERR_NAME_TAKEN : ERR_CONFLICT, RETRY_NEVER, false};
}

struct failure failure_of(const PGresult *result)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (code == NULL) {
        /* libpq's own errors: the connection broke. */
        return (struct failure){ERR_UNAVAILABLE, RETRY_NEVER, true};
    }
    const char *constraint = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
    if (strcmp(code, "23505") == 0 && constraint != NULL) {
        return judge_unique(constraint);
    }
    if (strcmp(code, "23514") == 0 && constraint == NULL) {
        /* "no partition of relation found for row": partitions must be made. */
        return (struct failure){ERR_UNAVAILABLE, RETRY_NEVER, false};
    }
    for (size_t i = 0; i < COUNTOF(sqlstates); i++) {
        if (strncmp(code, sqlstates[i].code, strlen(sqlstates[i].code)) == 0) {
            return sqlstates[i].failure;
        }
    }
    return (struct failure){ERR_INTERNAL, RETRY_NEVER, false};
}

void failure_describe(const PGresult *result, const char *name, char *text, size_t cap)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (message == NULL) {
        message = PQresultErrorMessage(result);
    }
    int len = (int)strcspn(message, "\n");
    (void)snprintf(text, cap, "%s: %s %.*s", name, code == NULL ? "-" : code, len, message);
}

struct db_rows *db_rows_new(PGresult *result)
{
    struct db_rows *rows = calloc(1, sizeof(*rows));
    if (rows == NULL) {
        abort();
    }
    rows->result = result;
    return rows;
}

void db_rows_free(struct db_rows *rows)
{
    if (rows != NULL) {
        PQclear(rows->result);
        free(rows);
    }
}

int db_rows_count(const struct db_rows *rows)
{
    return PQntuples(rows->result);
}

static int find_col(const struct db_rows *rows, const char *name)
{
    int count = PQnfields(rows->result);
    for (int col = 0; col < count; col++) {
        if (strcmp(PQfname(rows->result, col), name) == 0) {
            return col;
        }
    }
    return -1;
}

int db_rows_col(const struct db_rows *rows, const char *name)
{
    int col = find_col(rows, name);
    assert(col >= 0);
    return col;
}

bool db_is_null(const struct db_rows *rows, int row, int col)
{
    return PQgetisnull(rows->result, row, col) != 0;
}

struct str db_text(const struct db_rows *rows, int row, int col)
{
    return (struct str){PQgetvalue(rows->result, row, col),
                        (size_t)PQgetlength(rows->result, row, col)};
}

int64_t db_i64(const struct db_rows *rows, int row, int col)
{
    int64_t value = 0;
    if (!db_is_null(rows, row, col)) {
        bool ok = str_parse_i64(db_text(rows, row, col), INT64_MIN, INT64_MAX, &value);
        assert(ok);
    }
    return value;
}

double db_double(const struct db_rows *rows, int row, int col)
{
    double value = 0;
    /* NaN and infinity count as nothing. */
    if (db_is_null(rows, row, col) || !str_parse_double(db_text(rows, row, col), &value)) {
        return 0;
    }
    return value;
}

bool db_bool(const struct db_rows *rows, int row, int col)
{
    return str_eq_c(db_text(rows, row, col), "t");
}

bool db_uuid(const struct db_rows *rows, int row, int col, struct uuid *ret_uuid)
{
    return !db_is_null(rows, row, col) && uuid_parse(db_text(rows, row, col), ret_uuid);
}

int64_t db_time_us(const struct db_rows *rows, int row, int col)
{
    if (db_is_null(rows, row, col)) {
        return 0;
    }
    struct str text = db_text(rows, row, col);
    if (str_eq_c(text, "infinity")) {
        return INT64_MAX;
    }
    /* "2026-12-01 12:00:00.123456+00" (the session is in UTC and ISO style) becomes RFC 3339. */
    char copy[STR_RFC3339_LEN + 1];
    int64_t us = 0;
    if (!str_ends(text, STR("+00")) || text.len - 2 > STR_RFC3339_LEN || text.len < 13) {
        return text.len > 0 && text.ptr[0] == '-' ? INT64_MIN : 0;
    }
    size_t len = text.len - 2;
    memcpy(copy, text.ptr, len);
    copy[10] = 'T';
    copy[len - 1] = 'Z';
    return str_parse_rfc3339((struct str){copy, len}, &us) ? us : 0;
}

size_t db_bytes(const struct db_rows *rows, int row, int col, void *data, size_t cap)
{
    struct str text = db_text(rows, row, col);
    if (!str_starts(text, STR("\\x"))) {
        return 0;
    }
    struct str hex = {text.ptr + 2, text.len - 2};
    size_t len = hex.len / 2;
    if (len > cap || !crypto_unhex(hex, data, len)) {
        return 0;
    }
    return len;
}

/* The text of an optional column: ptr NULL when it is absent or NULL. */
static struct str read_optional(const struct db_rows *rows, const char *name)
{
    int col = find_col(rows, name);
    if (col < 0 || db_is_null(rows, 0, col)) {
        return (struct str){NULL, 0};
    }
    return db_text(rows, 0, col);
}

enum err db_reply_read(const struct db_rows *rows, struct db_reply *ret_reply)
{
    struct db_reply reply = {.status = 200, .version = -1};
    if (db_rows_count(rows) == 0) {
        reply.status = 404;
        *ret_reply = reply;
        return ERR_NONE;
    }
    int64_t status = 200;
    struct str text = read_optional(rows, "status");
    if (text.ptr != NULL && !str_parse_i64(text, 100, 599, &status)) {
        return ERR_INTERNAL;
    }
    text = read_optional(rows, "version");
    if (text.ptr != NULL && !str_parse_i64(text, 0, INT64_MAX, &reply.version)) {
        return ERR_INTERNAL;
    }
    reply.status = (int)status;
    reply.next = read_optional(rows, "next");
    reply.body = read_optional(rows, "body");
    reply.replayed = str_eq_c(read_optional(rows, "replayed"), "t");
    reply.problem = read_optional(rows, "problem");
    reply.detail = read_optional(rows, "detail");
    reply.state = read_optional(rows, "state");
    reply.pointer = read_optional(rows, "pointer");
    *ret_reply = reply;
    return ERR_NONE;
}
