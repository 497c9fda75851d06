/* Handlers of the audit log: its list and its export. */
#include "server/handlers/audit.h"

#include "base/buf.h"
#include "server/bind.h"
#include "server/fields_identity.h"
#include "server/reply.h"

#define EXPORT_LIMIT_DEFAULT 200

/*
 * Characters that a terminal or an editor does not show as they are: they reorder text, end a line
 * or are control characters of the upper half. JSON's writers leave them as they are.
 */
static bool is_deceptive(uint32_t c)
{
    return (c >= 0x7f && c <= 0x9f) || c == 0x061c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

/* A character of one to three bytes; what is longer is not deceptive. */
static uint32_t code_point(const char *ptr, size_t len)
{
    const unsigned char *at = (const unsigned char *)ptr;
    if (len == 2) {
        return (uint32_t)(at[0] & 0x1f) << 6 | (at[1] & 0x3f);
    }
    if (len == 3) {
        return (uint32_t)(at[0] & 0x0f) << 12 | (uint32_t)(at[1] & 0x3f) << 6 | (at[2] & 0x3f);
    }
    return len == 1 ? at[0] : 0;
}

/* The same JSON with such characters escaped: names in a log must not play tricks on who reads it.
 */
static struct str make_plain(struct arena *arena, struct str json)
{
    CLEANUP(buf_free) struct buf text = {0};
    size_t kept = 0;
    for (size_t at = 0; at < json.len;) {
        struct str rest = {json.ptr + at, json.len - at};
        size_t len = str_utf8_len(rest);
        len = len == 0 ? 1 : len;
        uint32_t c = code_point(rest.ptr, len);
        if (is_deceptive(c)) {
            buf_add(&text, json.ptr + kept, at - kept);
            buf_printf(&text, "\\u%04x", (unsigned)c);
            kept = at + len;
        }
        at += len;
    }
    if (kept == 0) {
        return json;
    }
    buf_add(&text, json.ptr + kept, json.len - kept);
    return (struct str){arena_strndup(arena, text.ptr, text.len), text.len};
}

static enum err on_rows(struct request *rq, const struct db_rows *rows)
{
    enum err err = reply_apply(rq, rows);
    if (err == ERR_NONE) {
        rq->answer = make_plain(rq->arena, rq->answer);
    }
    return err;
}

enum err audit_list(struct request *rq)
{
    struct db_args args = {0};
    bind_fields(rq, audit_query, rq->params, &args);
    db_arg_i64(&args, rq->arena, rq->page_limit);
    db_arg_str(&args, rq->arena, rq->page_keys);
    return request_query(rq, SQL_AUDIT_LIST, false, &args, on_rows);
}

static enum err on_lines(struct request *rq, const struct db_rows *rows)
{
    rq->content_type = "application/jsonl";
    return on_rows(rq, rows);
}

enum err audit_export(struct request *rq)
{
    const struct audit_export_query *query = rq->params;
    struct db_args args = {0};
    db_arg_i64(&args, rq->arena, query->after);
    db_arg_i64(&args, rq->arena, query->has_limit ? query->limit : EXPORT_LIMIT_DEFAULT);
    return request_query(rq, SQL_AUDIT_EXPORT, false, &args, on_lines);
}
