/* Handlers of the audit log: its list and its export. */
#include "server/handlers/audit.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "server/bind.h"
#include "server/config.h"
#include "server/fields_identity.h"
#include "server/reply.h"
#include "server/ticket.h"

#define EXPORT_LIMIT_DEFAULT 200
#define LINK_LIFE_S 600
#define LINK_USE "audit-export"

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

/* ------------------------------------------------------------------ links */

static enum err on_link(struct request *rq, const struct db_rows *rows)
{
    const struct ticket *ticket = rq->in;
    char text[TICKET_TEXT_MAX];
    char address[512];
    CLEANUP(buf_free) struct buf body = {0};
    struct enc enc;
    if (db_rows_count(rows) == 0 || !ticket_sign(ticket, text)) {
        return fail_log(rq, ERR_INTERNAL, "a link could not be signed");
    }
    config_address(address, sizeof address);
    enc_init(&enc, &body);
    enc_obj(&enc);
    enc_key(&enc, "id");
    enc_uuid(&enc, &ticket->id);
    enc_key(&enc, "url");
    enc_cstr(&enc, arena_printf(rq->arena, "%s/downloads/audit?ticket=%s", address, text));
    enc_key(&enc, "expires_at");
    enc_time(&enc, db_time_us(rows, 0, db_rows_col(rows, "expires_at")));
    enc_obj_end(&enc);
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, body.ptr, body.len), body.len});
    return ERR_NONE;
}

enum err audit_export_link(struct request *rq)
{
    const struct audit_export_query *in = rq->in;
    struct ticket *ticket = arena_zalloc(rq->arena, sizeof *ticket);
    struct db_args args = {0};
    int64_t now_s = clock_wall_us() / 1000000;
    *ticket = (struct ticket){
        .use = LINK_USE,
        .org = rq->caller.org,
        .id = uuid_v7(),
        .after = in->after,
        .limit = in->has_limit ? in->limit : AUDIT_EXPORT_MAX,
        .issued_s = now_s,
        .expires_s = now_s + LINK_LIFE_S,
    };
    rq->in = ticket;
    bind_actor(rq, &args);
    db_arg_uuid(&args, rq->arena, &ticket->id);
    db_arg_i64(&args, rq->arena, LINK_LIFE_S);
    db_arg_i64(&args, rq->arena, ticket->after);
    db_arg_i64(&args, rq->arena, ticket->limit);
    return request_query(rq, SQL_EXPORT_LINK_CREATE, true, &args, on_link);
}

static enum err refuse_link(struct request *rq)
{
    return fail(
        rq, ERR_UNAUTHENTICATED,
        "This link is not one of this server's, was used, or is over its 10 minutes. Make a "
        "new one in the audit log.");
}

static enum err on_used(struct request *rq, const struct db_rows *rows)
{
    const struct ticket *ticket = rq->in;
    struct db_args args = {0};
    if (db_rows_count(rows) == 0) {
        return refuse_link(rq);
    }
    rq->attachment = "audit.jsonl";
    db_arg_i64(&args, rq->arena, ticket->after);
    db_arg_i64(&args, rq->arena, ticket->limit);
    return request_query_as(rq, &ticket->org, SQL_AUDIT_EXPORT, false, &args, on_lines);
}

enum err audit_download(struct request *rq)
{
    const struct audit_download_query *query = rq->params;
    struct ticket *ticket = arena_zalloc(rq->arena, sizeof *ticket);
    struct db_args args = {0};
    if (!ticket_check(query->ticket, LINK_USE, clock_wall_us() / 1000000, ticket)) {
        return refuse_link(rq);
    }
    rq->in = ticket;
    db_arg_uuid(&args, rq->arena, &ticket->id);
    db_arg_str(&args, rq->arena, rq->address);
    db_arg(&args, rq->id);
    return request_query_as(rq, &ticket->org, SQL_EXPORT_LINK_USE, true, &args, on_used);
}
