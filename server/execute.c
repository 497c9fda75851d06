/* From the caller to the answer: the headers of the route, decoding, and its handler or statement.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/log.h"
#include "server/bind.h"
#include "server/cursor.h"
#include "server/exchange.h"
#include "server/reply.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX 200
#define WAIT_MAX_S 60
#define KEY_MAX 255
#define FIELDS_MAX 40
#define QUERY_PARTS_MAX 64

/* What ARG_PAGE adds to a route's query. */
struct page {
    int64_t limit;
    bool has_limit;
    struct str cursor;
};

/* ------------------------------------------------------------------ headers with a meaning */

/* One strong entity tag; its text without the quotes. */
static enum err read_if_match(struct exchange *ex)
{
    struct str tag = str_trim(ex->headers[HEADER_IF_MATCH]);
    struct request *rq = &ex->rq;
    if (ex->headers[HEADER_IF_MATCH].ptr == NULL) {
        return (rq->route->flags & ROUTE_IF_MATCH) == 0
                   ? ERR_NONE
                   : fail(rq, ERR_PRECONDITION_REQUIRED,
                          "Send If-Match with the ETag that you read, so that nobody's change is "
                          "overwritten.");
    }
    if (tag.len < 2 || tag.ptr[0] != '"' || tag.ptr[tag.len - 1] != '"') {
        return fail(rq, ERR_BAD_REQUEST,
                    "If-Match must be one ETag as it was answered, like \"5\".");
    }
    struct str digits = {tag.ptr + 1, tag.len - 2};
    uint64_t version;
    if (!str_parse_u64(digits, 0, INT64_MAX, &version)) {
        return fail(rq, ERR_PRECONDITION_FAILED, "Read it again and send its present ETag.");
    }
    rq->if_match = (struct str){arena_strndup(rq->arena, digits.ptr, digits.len), digits.len};
    return ERR_NONE;
}

/* A structured-field string or a bare token (draft-ietf-httpapi-idempotency-key-header). */
static enum err read_key(struct exchange *ex)
{
    struct str key = str_trim(ex->headers[HEADER_IDEMPOTENCY_KEY]);
    struct request *rq = &ex->rq;
    if (ex->headers[HEADER_IDEMPOTENCY_KEY].ptr == NULL) {
        return (rq->route->flags & ROUTE_KEY) == 0 ? ERR_NONE
                                                   : fail(rq, ERR_KEY_REQUIRED,
                                                          "Send an Idempotency-Key (a fresh UUID) "
                                                          "with this request, and the same one "
                                                          "when you repeat it.");
    }
    if (key.len >= 2 && key.ptr[0] == '"' && key.ptr[key.len - 1] == '"') {
        key = (struct str){key.ptr + 1, key.len - 2};
    }
    bool good = key.len > 0 && key.len <= KEY_MAX;
    for (size_t i = 0; good && i < key.len; i++) {
        good = key.ptr[i] > 0x20 && key.ptr[i] < 0x7f && key.ptr[i] != '"' && key.ptr[i] != '\\';
    }
    if (!good) {
        return fail(
            rq, ERR_BAD_REQUEST,
            "Idempotency-Key must have 1 to 255 visible ASCII characters, a UUID for example.");
    }
    rq->idempotency_key = (struct str){arena_strndup(rq->arena, key.ptr, key.len), key.len};
    CLEANUP(buf_free) struct buf text = {0};
    buf_printf(&text, "%.*s %.*s?%.*s\n", STR_FMT(rq->method), STR_FMT(rq->path),
               STR_FMT(rq->query));
    buf_add(&text, rq->body.ptr, rq->body.len);
    crypto_sha256(buf_str(&text), rq->fingerprint);
    return ERR_NONE;
}

/* RFC 7240: of all preferences only wait=SECONDS is known. */
static void read_prefer(struct exchange *ex)
{
    struct str rest = ex->headers[HEADER_PREFER];
    struct str part;
    while (str_split(&rest, ',', &part)) {
        uint64_t seconds = 0;
        part = str_trim(part);
        if (str_starts(part, STR("wait=")) &&
            str_parse_u64((struct str){part.ptr + 5, part.len - 5}, 0, INT32_MAX, &seconds)) {
            ex->rq.wait_seconds = seconds > WAIT_MAX_S ? WAIT_MAX_S : (int)seconds;
        }
    }
}

static enum err read_headers(struct exchange *ex)
{
    enum err err = read_if_match(ex);
    ex->rq.if_none_match = ex->headers[HEADER_IF_NONE_MATCH];
    if (ex->headers[HEADER_PREFER].ptr != NULL) {
        read_prefer(ex);
    }
    return err != ERR_NONE ? err : read_key(ex);
}

/* ------------------------------------------------------------------ decoding */

static int compare_parts(const void *a, const void *b)
{
    const struct str *left = a;
    const struct str *right = b;
    size_t len = left->len < right->len ? left->len : right->len;
    int order = len == 0 ? 0 : memcmp(left->ptr, right->ptr, len);
    return order != 0 ? order : (left->len > right->len) - (left->len < right->len);
}

/* What a cursor belongs to: the path and the query without place and size, in any order. */
static struct str list_scope(struct request *rq)
{
    struct str parts[QUERY_PARTS_MAX];
    size_t count = 0;
    struct str rest = rq->query;
    struct str part;
    while (count < QUERY_PARTS_MAX && str_split(&rest, '&', &part)) {
        if (!str_starts(part, STR("cursor=")) && !str_starts(part, STR("limit=")) && part.len > 0) {
            parts[count++] = part;
        }
    }
    qsort(parts, count, sizeof(parts[0]), compare_parts);
    CLEANUP(buf_free) struct buf text = {0};
    buf_add(&text, rq->path.ptr, rq->path.len);
    for (size_t i = 0; i < count; i++) {
        buf_add_char(&text, '&');
        buf_add(&text, parts[i].ptr, parts[i].len);
    }
    return (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len};
}

static size_t count_fields(const struct field *fields)
{
    size_t count = 0;
    while (fields != NULL && fields[count].name != NULL) {
        count++;
    }
    return count;
}

/* The route's query fields and, for lists, limit and cursor behind them. */
static enum err decode_params(struct exchange *ex, struct page *page)
{
    struct request *rq = &ex->rq;
    const struct route *route = rq->route;
    bool paged = (route->args & ARG_PAGE) != 0;
    size_t page_at = (route->query_size + 15) & ~(size_t)15;
    size_t count = count_fields(route->query);
    struct field fields[FIELDS_MAX] = {{0}};
    char *out = arena_zalloc(rq->arena, page_at + sizeof(*page) + 1);

    assert(count + 3 <= FIELDS_MAX);
    if (count > 0) {
        memcpy(fields, route->query, count * sizeof(fields[0]));
    }
    if (paged) {
        fields[count++] =
            (struct field){.name = "limit",
                           .type = FIELD_I64,
                           .offset = page_at + offsetof(struct page, limit),
                           .present_offset = page_at + offsetof(struct page, has_limit),
                           .min = 1,
                           .max = INT32_MAX};
        fields[count++] = (struct field){.name = "cursor",
                                         .type = FIELD_STR,
                                         .offset = page_at + offsetof(struct page, cursor),
                                         .min = 1,
                                         .max = 1024};
    }
    enum err err = decode_query(rq->arena, rq->query, fields, out, &rq->errors);
    memcpy(page, out + page_at, sizeof(*page));
    rq->params = out;
    return err;
}

/* In /agent/v1 an unknown field is one of a newer agent. Fields are checked before unknown members
 * are reported, so that what was dropped past the 16th was unknown too. */
static enum err forgive_unknown(struct decode_errors *errors, enum err err)
{
    size_t kept = 0;
    if (err != ERR_INVALID_FIELDS) {
        return err;
    }
    for (size_t i = 0; i < errors->count; i++) {
        if (strcmp(errors->items[i].code, "unknown_field") != 0) {
            errors->items[kept++] = errors->items[i];
        }
    }
    errors->count = kept;
    errors->dropped = 0;
    return kept > 0 ? ERR_INVALID_FIELDS : ERR_NONE;
}

static bool is_json_body(struct str content_type)
{
    struct str type;
    if (content_type.ptr == NULL) {
        return true; /* what else should it be; cookies are held to more in auth.c */
    }
    if (!str_split(&content_type, ';', &type)) {
        return false;
    }
    type = str_trim(type);
    return str_eq_nocase(type, STR("application/json")) ||
           str_eq_nocase(type, STR("application/merge-patch+json"));
}

static enum err decode_in(struct exchange *ex)
{
    static const struct field none[] = {{0}};
    struct request *rq = &ex->rq;
    const struct route *route = rq->route;
    struct decode_errors errors = {0};
    const char *detail = NULL;
    struct str body = rq->body;

    if (body.len > 0 && !is_json_body(ex->headers[HEADER_CONTENT_TYPE])) {
        return fail(rq, ERR_MEDIA_TYPE, "Send the body as Content-Type: application/json.");
    }
    if (body.len == 0) {
        if (route->body == NULL) {
            return ERR_NONE;
        }
        body = STR("{}");
    }
    void *out = arena_zalloc(rq->arena, route->body_size + 1);
    enum err err = decode_body(rq->arena, body, route->body != NULL ? route->body : none, out,
                               &errors, &detail);
    if (err == ERR_BAD_JSON) {
        return fail(rq, err, "%s", detail);
    }
    if ((route->flags & ROUTE_LENIENT) != 0) {
        err = forgive_unknown(&errors, err);
    }
    for (size_t i = 0; i < errors.count && rq->errors.count < DECODE_ERRORS_MAX; i++) {
        rq->errors.items[rq->errors.count++] = errors.items[i];
    }
    rq->in = out;
    return err;
}

static enum err take_cursor(struct exchange *ex, const struct page *page, struct str *ret_keys)
{
    struct request *rq = &ex->rq;
    ex->scope = list_scope(rq);
    *ret_keys = (struct str){0};
    if (page->cursor.ptr == NULL || cursor_decode(rq->arena, ex->scope, page->cursor, ret_keys)) {
        return ERR_NONE;
    }
    return fail(
        rq, ERR_BAD_CURSOR,
        "Send next_cursor as it was answered, with the same filters; or begin without one.");
}

/* All errors of query and body at once. */
static enum err decode_all(struct exchange *ex, struct page *page)
{
    struct request *rq = &ex->rq;
    bool raw = (rq->route->flags & ROUTE_RAW_BODY) != 0;
    if (raw && (rq->route->flags & ROUTE_LENIENT) == 0 && rq->body.len > 0 &&
        !is_json_body(ex->headers[HEADER_CONTENT_TYPE])) {
        return fail(rq, ERR_MEDIA_TYPE, "Send the body as Content-Type: application/json.");
    }
    enum err in_query =
        (rq->route->flags & ROUTE_RAW_QUERY) != 0 ? ERR_NONE : decode_params(ex, page);
    enum err in_body = raw ? ERR_NONE : decode_in(ex);
    if (in_body != ERR_NONE && in_body != ERR_INVALID_FIELDS) {
        return in_body;
    }
    if (in_query != ERR_NONE || in_body != ERR_NONE) {
        size_t count = rq->errors.count + rq->errors.dropped;
        return count == 1 ? fail(rq, ERR_INVALID_FIELDS, "1 field was refused.")
                          : fail(rq, ERR_INVALID_FIELDS, "%zu fields were refused.", count);
    }
    return ERR_NONE;
}

/* ------------------------------------------------------------------ the statement of a route */

static enum err run_statement(struct exchange *ex, const struct page *page)
{
    struct request *rq = &ex->rq;
    struct db_args args = {0};
    struct bind_page bound = {.limit = page->has_limit ? page->limit : LIMIT_DEFAULT};
    if (bound.limit > LIMIT_MAX) {
        bound.limit = LIMIT_MAX;
    }
    if ((rq->route->args & ARG_PAGE) != 0) {
        enum err err = take_cursor(ex, page, &bound.keys);
        if (err != ERR_NONE) {
            return err;
        }
    }
    bind_route_args(rq, &bound, &args);
    return request_query(rq, (enum sql_id)rq->route->sql, (rq->route->flags & ROUTE_VERB) != 0,
                         &args, NULL);
}

static enum err run_route(struct exchange *ex)
{
    struct request *rq = &ex->rq;
    struct page page = {0};
    enum err err = read_headers(ex);
    if (err == ERR_NONE) {
        err = decode_all(ex, &page);
    }
    if (err != ERR_NONE) {
        return err;
    }
    if (rq->route->handler == NULL) {
        return run_statement(ex, &page);
    }
    if ((rq->route->args & ARG_PAGE) != 0) {
        err = take_cursor(ex, &page, &rq->page_keys);
        rq->page_limit = page.has_limit ? page.limit : LIMIT_DEFAULT;
        rq->page_limit = rq->page_limit > LIMIT_MAX ? LIMIT_MAX : rq->page_limit;
    }
    return err != ERR_NONE ? err : rq->route->handler(rq);
}

void exchange_run(struct exchange *ex)
{
    struct request *rq = &ex->rq;
    log_context(rq->id, NULL);
    enum err err = run_route(ex);
    if (err != ERR_NONE) {
        rq->suspended = false;
        if (rq->err == ERR_NONE) {
            rq->err = err;
        }
    }
    log_context(NULL, NULL);
}

void exchange_requery(struct exchange *ex)
{
    struct request *rq = &ex->rq;
    rq->err = ERR_NONE;
    rq->status = 0;
    rq->answer = (struct str){0};
    db_submit(loop_db(rq->loop), &ex->call);
}
