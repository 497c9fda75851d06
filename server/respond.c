/* The single exit: a request's answer becomes status, headers and body. */
#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/log.h"
#include "server/cursor.h"
#include "server/encoding.h"
#include "server/exchange.h"
#include "server/http.h"
#include "server/refused.h"

#define COMPRESS_OVER 4096
#define STREAM_BLOCK 4096
#define HSTS "max-age=31536000"
#define API_CSP "default-src 'none'; frame-ancestors 'none'"

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    /* It fails only on values with line breaks, which nothing here can hold, and without memory. */
    if (MHD_add_response_header(response, name, value) != MHD_YES) {
        log_error("the header %s could not be added", name);
    }
}

/* libmicrohttpd takes a plain pointer also where it only reads. */
static void *borrow(const void *data)
{
    const union {
        const void *as_const;
        void *plain;
    } both = {.as_const = data};
    return both.plain;
}

static const char *text_of(struct exchange *ex, struct str value)
{
    return arena_strndup(ex->rq.arena, value.ptr, value.len);
}

/* ------------------------------------------------------------------ entity tags */

static bool is_weak(const struct request *rq)
{
    return rq->route != NULL && (rq->route->flags & (ROUTE_LIST | ROUTE_WEAK)) != 0;
}

/* A list's number counts in its org: its first digits keep two orgs of one browser apart. */
static bool make_etag(const struct request *rq, char etag[64])
{
    const uint8_t *org = rq->caller.org.bytes + 12;
    struct buf text = {0};
    if (rq->weak_etag.ptr != NULL && rq->weak_etag.len < 48) {
        buf_printf(&text, "W/\"%.*s\"", STR_FMT(rq->weak_etag));
    } else if (rq->version < 0) {
        return false;
    } else if (is_weak(rq)) {
        buf_printf(&text, "W/\"%02x%02x%02x%02x-%lld\"", org[0], org[1], org[2], org[3],
                   (long long)rq->version);
    } else {
        buf_printf(&text, "\"%lld\"", (long long)rq->version);
    }
    memcpy(etag, text.ptr, text.len + 1);
    buf_free(&text);
    return true;
}

static struct str without_weak(struct str tag)
{
    return str_starts(tag, STR("W/")) ? (struct str){tag.ptr + 2, tag.len - 2} : tag;
}

bool exchange_is_unchanged(const struct exchange *ex)
{
    const struct request *rq = &ex->rq;
    char etag[64];
    struct str list = rq->if_none_match;
    struct str tag;
    if (list.ptr == NULL || !make_etag(rq, etag)) {
        return false;
    }
    while (str_split(&list, ',', &tag)) {
        tag = str_trim(tag);
        if (str_eq_c(tag, "*") || str_eq(without_weak(tag), without_weak(str_of(etag)))) {
            return true;
        }
    }
    return false;
}

static void finish_conditional(struct exchange *ex)
{
    struct request *rq = &ex->rq;
    bool safe = str_eq_c(rq->method, "GET") || str_eq_c(rq->method, "HEAD");
    if (safe && rq->status == 200 && exchange_is_unchanged(ex)) {
        rq->status = 304;
        rq->answer = (struct str){0};
    }
}

/* ------------------------------------------------------------------ pages of lists */

/* The answer's last brace becomes `member`. Not by printf, which walks a page of 70 KB three times.
 */
static void add_member(struct request *rq, const char *member)
{
    size_t len = strlen(member);
    size_t head = rq->answer.len - 1;
    char *text = arena_alloc(rq->arena, head + 1 + len);
    memcpy(text, rq->answer.ptr, head);
    if (head > 0 && text[head - 1] != '{') {
        text[head++] = ',';
    }
    memcpy(text + head, member, len);
    rq->answer = (struct str){text, head + len};
}

/* `"next_cursor"` goes in front of the last brace; the Link header repeats it (RFC 8288). */
static const char *finish_page(struct exchange *ex)
{
    struct request *rq = &ex->rq;
    if (rq->route == NULL || (rq->route->flags & ROUTE_LIST) == 0 || rq->answer.len < 2) {
        return NULL;
    }
    if (rq->next.ptr == NULL) {
        add_member(rq, "\"next_cursor\":null}");
        return NULL;
    }
    struct str cursor = cursor_encode(rq->arena, ex->scope, rq->next);
    add_member(rq, arena_printf(rq->arena, "\"next_cursor\":\"%.*s\"}", STR_FMT(cursor)));
    struct buf query = {0};
    struct str rest = rq->query;
    struct str part;
    while (str_split(&rest, '&', &part)) {
        if (part.len > 0 && !str_starts(part, STR("cursor="))) {
            buf_printf(&query, "%.*s&", STR_FMT(part));
        }
    }
    const char *link = arena_printf(rq->arena, "<%.*s?%.*scursor=%.*s>; rel=\"next\"",
                                    STR_FMT(rq->path), STR_FMT(buf_str(&query)), STR_FMT(cursor));
    buf_free(&query);
    return link;
}

/* ------------------------------------------------------------------ problems */

static const char *slug_of(struct exchange *ex, const char *code)
{
    char *slug = arena_printf(ex->rq.arena, "/problems/%s", code);
    for (char *at = slug; *at != '\0'; at++) {
        if (*at == '_') {
            *at = '-';
        }
    }
    return slug;
}

static void write_errors(struct enc *enc, const struct decode_errors *errors)
{
    enc_key(enc, "errors");
    enc_arr(enc);
    for (size_t i = 0; i < errors->count; i++) {
        const struct field_error *error = &errors->items[i];
        enc_obj(enc);
        enc_key(enc, error->parameter != NULL ? "parameter" : "pointer");
        enc_cstr(enc, error->parameter != NULL ? error->parameter : error->pointer);
        enc_key(enc, "code");
        enc_cstr(enc, error->code);
        enc_key(enc, "detail");
        enc_cstr(enc, error->detail);
        enc_obj_end(enc);
    }
    enc_arr_end(enc);
}

static void write_violated(struct enc *enc, const struct limits_taken *taken)
{
    enc_key(enc, "violated-policies");
    enc_arr(enc);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (taken->of[i].refused) {
            enc_cstr(enc, limit_name((enum limit)i));
        }
    }
    enc_arr_end(enc);
}

static void write_member(struct enc *enc, const char *key, const char *value)
{
    enc_key(enc, key);
    enc_cstr(enc, value);
}

/* RFC 9457. */
static void make_problem(struct exchange *ex)
{
    struct request *rq = &ex->rq;
    const struct err_info *info = err_info(rq->err);
    struct buf text = {0};
    struct enc enc;
    if (rq->id[0] == '\0') {
        /* Refused before its headers were read. */
        struct uuid id = uuid_v7();
        uuid_format(&id, rq->id);
    }
    enc_init(&enc, &text);
    enc_obj(&enc);
    write_member(&enc, "type", slug_of(ex, info->code));
    write_member(&enc, "title", info->title);
    enc_key(&enc, "status");
    enc_i64(&enc, info->status);
    if (rq->detail != NULL) {
        write_member(&enc, "detail", rq->detail);
    }
    write_member(&enc, "instance", arena_printf(rq->arena, "/requests/%s", rq->id));
    write_member(&enc, "code", info->code);
    if (rq->reason != NULL) {
        write_member(&enc, "reason", rq->reason);
    }
    write_member(&enc, "request_id", rq->id);
    if (rq->conflict_state.ptr != NULL) {
        enc_key(&enc, "state");
        enc_str(&enc, rq->conflict_state);
    }
    if (rq->errors.count > 0) {
        write_errors(&enc, &rq->errors);
    }
    if (rq->err == ERR_RATE_LIMITED) {
        write_violated(&enc, &ex->limits);
    }
    enc_obj_end(&enc);
    rq->answer = (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len};
    rq->content_type = "application/problem+json";
    rq->status = info->status;
    buf_free(&text);
}

/* For people who typed the address of a server without TLS. */
static void make_tls_page(struct exchange *ex)
{
    static const char page[] =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Muster needs TLS</title>"
        "<h1>This address is served over TLS only</h1>"
        "<p>Plain http would carry your sign-in in the open. Use https, or ask who runs this "
        "server "
        "to set <code>tls_certificate</code> and <code>tls_key</code>, or to put a TLS proxy in "
        "front.</p>";
    ex->rq.answer = STR(page);
    ex->rq.content_type = "text/html; charset=utf-8";
    ex->rq.status = err_info(ERR_TLS_REQUIRED)->status;
}

/* ------------------------------------------------------------------ headers */

static void add_allow(struct exchange *ex, struct MHD_Response *response)
{
    static const struct {
        enum method_bit bit;
        const char *name;
    } rows[] = {{METHOD_GET, "GET, HEAD"},
                {METHOD_POST, "POST"},
                {METHOD_PUT, "PUT"},
                {METHOD_PATCH, "PATCH"},
                {METHOD_DELETE, "DELETE"}};
    struct buf text = {0};
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        if ((ex->allow & rows[i].bit) != 0) {
            buf_printf(&text, "%s%s", text.len > 0 ? ", " : "", rows[i].name);
        }
    }
    if (text.len > 0) {
        add_header(response, "Allow", text.ptr);
    }
    buf_free(&text);
}

static void add_failure_headers(struct exchange *ex, struct MHD_Response *response)
{
    struct request *rq = &ex->rq;
    if (rq->err == ERR_METHOD_NOT_ALLOWED) {
        add_allow(ex, response);
    }
    if (rq->err == ERR_UNAUTHENTICATED) {
        const char *error =
            ex->headers[HEADER_AUTHORIZATION].ptr == NULL ? "" : ", error=\"invalid_token\"";
        /* RFC 6750 3. */
        add_header(response, "WWW-Authenticate",
                   rq->reason == NULL
                       ? arena_printf(rq->arena, "Bearer realm=\"muster\"%s", error)
                       : arena_printf(rq->arena,
                                      "Bearer realm=\"muster\"%s, error_description=\"%s\"", error,
                                      rq->reason));
    }
    if (rq->retry_after_s < 0 &&
        (rq->status == 503 || rq->status == 429 || rq->err == ERR_KEY_IN_FLIGHT)) {
        rq->retry_after_s = 1;
    }
}

static void add_answer_headers(struct exchange *ex, struct MHD_Response *response, const char *link)
{
    struct request *rq = &ex->rq;
    char etag[64];
    bool has_etag = make_etag(rq, etag);
    if (has_etag) {
        add_header(response, "ETag", etag);
    }
    add_header(response, "Cache-Control",
               has_etag && rq->err == ERR_NONE ? "private, no-cache" : "no-store");
    if (rq->location.ptr != NULL) {
        add_header(response, "Location", text_of(ex, rq->location));
    }
    if (link != NULL) {
        add_header(response, "Link", link);
    }
    struct str cookies = rq->set_cookie;
    struct str cookie;
    while (str_split(&cookies, '\n', &cookie)) {
        add_header(response, "Set-Cookie", text_of(ex, cookie));
    }
    if (rq->replayed) {
        add_header(response, "Idempotent-Replayed", "true");
    }
    if (ex->wait_until_us != 0) {
        add_header(response, "Preference-Applied",
                   arena_printf(rq->arena, "wait=%d", rq->wait_seconds));
    }
    if (rq->retry_after_s >= 0) {
        add_header(response, "Retry-After", arena_printf(rq->arena, "%d", rq->retry_after_s));
    }
}

/* draft-ietf-httpapi-ratelimit-headers: what applies, and what is left of it. */
static void add_limit_headers(struct exchange *ex, struct MHD_Response *response)
{
    char policy[160] = "";
    char left[160] = "";
    size_t policy_len = 0;
    size_t left_len = 0;
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (!ex->limits.of[i].used) {
            continue;
        }
        const char *comma = policy_len > 0 ? ", " : "";
        const char *name = limit_name((enum limit)i);
        /* A name has at most 10 characters and a number 20, so that all fit. */
        policy_len += (size_t)snprintf(policy + policy_len, sizeof(policy) - policy_len,
                                       "%s\"%s\";q=%" PRId64 ";w=%d", comma, name,
                                       ex->limits.of[i].quota, LIMITS_WINDOW_S);
        left_len += (size_t)snprintf(left + left_len, sizeof(left) - left_len,
                                     "%s\"%s\";r=%" PRId64 ";t=%" PRId64, comma, name,
                                     ex->limits.of[i].left, ex->limits.of[i].full_in_s);
    }
    if (policy_len > 0) {
        add_header(response, "RateLimit-Policy", policy);
        add_header(response, "RateLimit", left);
    }
}

static void add_common_headers(struct exchange *ex, struct MHD_Response *response)
{
    struct request *rq = &ex->rq;
    if (rq->id[0] != '\0') {
        add_header(response, "X-Request-Id", rq->id);
    }
    add_limit_headers(ex, response);
    add_header(response, "X-Content-Type-Options", "nosniff");
    add_header(response, "Content-Security-Policy", API_CSP);
    if (http_is_tls(ex->http)) {
        add_header(response, "Strict-Transport-Security", HSTS);
    }
    if (ex->close_after || ex->stream_ops != NULL || loop_stopping(rq->loop)) {
        add_header(response, "Connection", "close");
    }
}

/* ------------------------------------------------------------------ sending */

static bool queue(struct exchange *ex, struct MHD_Response *response, int status)
{
    ex->stage = STAGE_SENT;
    ex->status_sent = status;
    bool queued = MHD_queue_response(ex->connection, (unsigned)status, response) == MHD_YES;
    http_answer_begins(ex);
    return queued;
}

/* A strong ETag names these very bytes, so that only weak ones may be sent compressed. */
static const char *compress_answer(struct exchange *ex, struct buf *out)
{
    struct request *rq = &ex->rq;
    enum encoding encoding = encoding_choose(ex->headers[HEADER_ACCEPT_ENCODING]);
    bool strong = rq->version >= 0 && !is_weak(rq);
    if (rq->err != ERR_NONE || rq->route == NULL || (rq->route->flags & ROUTE_COMPRESS) == 0 ||
        strong || rq->answer.len <= COMPRESS_OVER || encoding == ENCODING_IDENTITY ||
        !encoding_compress(encoding, rq->answer, out)) {
        return NULL;
    }
    return encoding_name(encoding);
}

static struct MHD_Response *make_response(struct exchange *ex)
{
    struct request *rq = &ex->rq;
    struct buf packed = {0};
    const char *encoding = compress_answer(ex, &packed);
    struct MHD_Response *response =
        encoding != NULL
            ? MHD_create_response_from_buffer(packed.len, packed.ptr, MHD_RESPMEM_MUST_FREE)
            : MHD_create_response_from_buffer(rq->answer.len, borrow(rq->answer.ptr),
                                              MHD_RESPMEM_PERSISTENT);
    if (encoding == NULL) {
        buf_free(&packed);
    }
    if (response == NULL) {
        abort();
    }
    if (encoding != NULL) {
        add_header(response, "Content-Encoding", encoding);
    }
    if (rq->route != NULL && (rq->route->flags & ROUTE_COMPRESS) != 0) {
        add_header(response, "Vary", "Accept-Encoding");
    }
    return response;
}

static struct MHD_Response *make_stream(struct exchange *ex);

bool exchange_respond(struct exchange *ex)
{
    struct request *rq = &ex->rq;
    const char *link = NULL;
    struct MHD_Response *response;
    if (ex->ready != NULL) {
        return queue(ex, ex->ready, rq->status);
    }
    if (rq->err != ERR_NONE) {
        refused_audit(rq);
        if (rq->err == ERR_TLS_REQUIRED && exchange_wants_html(ex)) {
            make_tls_page(ex);
        } else {
            make_problem(ex);
        }
    } else if (rq->status == 0) {
        (void)fail_log(rq, ERR_INTERNAL, "the handler left no answer");
        make_problem(ex);
    } else {
        link = finish_page(ex);
        finish_conditional(ex);
    }
    response = ex->stream_ops != NULL ? make_stream(ex) : make_response(ex);
    if (rq->status != 204 && rq->status != 304) {
        add_header(response, "Content-Type",
                   rq->content_type != NULL ? rq->content_type : "application/json");
    }
    if (rq->err != ERR_NONE) {
        add_failure_headers(ex, response);
    } else if (rq->attachment != NULL) {
        add_header(response, "Content-Disposition",
                   arena_printf(rq->arena, "attachment; filename=\"%s\"", rq->attachment));
    }
    add_answer_headers(ex, response, link);
    add_common_headers(ex, response);
    bool queued = queue(ex, response, rq->status);
    MHD_destroy_response(response);
    log_debug("%.*s %.*s %d %s", STR_FMT(rq->method), STR_FMT(rq->path), rq->status, rq->id);
    return queued;
}

/* ------------------------------------------------------------------ pages held in memory */

struct MHD_Response *respond_make(struct str body, const struct ready_header *headers, size_t count)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body.len, borrow(body.ptr), MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        abort();
    }
    add_header(response, "X-Content-Type-Options", "nosniff");
    for (size_t i = 0; i < count; i++) {
        add_header(response, headers[i].name, headers[i].value);
    }
    return response;
}

void respond_free(struct MHD_Response *response)
{
    MHD_destroy_response(response);
}

/* ------------------------------------------------------------------ streams */

static ssize_t read_stream(void *cls, uint64_t position, char *data, size_t max)
{
    struct exchange *ex = cls;
    (void)position;
    ssize_t got = ex->stream_ops->read(ex->stream_ctx, data, max);
    if (got == 0) {
        exchange_park(ex);
    }
    return got < 0 ? MHD_CONTENT_READER_END_OF_STREAM : got;
}

static struct MHD_Response *make_stream(struct exchange *ex)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, ex, NULL);
    if (response == NULL) {
        abort();
    }
    return response;
}

void exchange_stream(struct exchange *ex, const struct stream_ops *ops, void *ctx)
{
    ex->stream_ops = ops;
    ex->stream_ctx = ctx;
    ex->rq.status = 200;
    ex->rq.content_type = "text/event-stream";
}
