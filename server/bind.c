/* The arguments of a route's statement out of its request, as enum route_arg orders them. */
#include "server/bind.h"

#include <assert.h>

#include "base/buf.h"
#include "base/encode.h"

#define USER_AGENT_MAX 255

void bind_actor(struct request *rq, struct db_args *args)
{
    static const char *const kinds[] = {[CALLER_NONE] = "none",
                                        [CALLER_SESSION] = "session",
                                        [CALLER_SERVICE] = "service",
                                        [CALLER_AGENT] = "agent",
                                        [CALLER_TOKEN] = "token"};
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "credential");
    if (rq->caller.kind == CALLER_NONE) {
        enc_null(&enc);
    } else {
        enc_uuid(&enc, &rq->caller.credential_id);
    }
    enc_key(&enc, "kind");
    enc_cstr(&enc, kinds[rq->caller.kind]);
    if (rq->caller.kind == CALLER_TOKEN) {
        enc_key(&enc, "issuer");
        enc_str(&enc, rq->caller.issuer);
        enc_key(&enc, "subject");
        enc_str(&enc, rq->caller.subject);
    }
    enc_key(&enc, "address");
    enc_str(&enc, rq->address);
    enc_key(&enc, "request_id");
    enc_cstr(&enc, rq->id);
    enc_obj_end(&enc);
    db_arg_str(args, rq->arena, rq->caller.name.ptr != NULL ? rq->caller.name : STR(""));
    db_arg_str(args, rq->arena, buf_str(&text));
}

void bind_browser(struct request *rq, struct db_args *args)
{
    size_t len = rq->user_agent.len < USER_AGENT_MAX ? rq->user_agent.len : USER_AGENT_MAX;
    char *text = arena_strndup(rq->arena, len > 0 ? rq->user_agent.ptr : "", len);
    for (size_t i = 0; i < len; i++) {
        if (text[i] < 0x20 || text[i] >= 0x7f) {
            text[i] = '?';
        }
    }
    db_arg_str(args, rq->arena, rq->address.ptr != NULL ? rq->address : STR(""));
    db_arg(args, text);
}

void bind_key(struct request *rq, struct db_args *args)
{
    db_arg_str(args, rq->arena, rq->idempotency_key);
    if (rq->idempotency_key.ptr == NULL) {
        db_arg(args, NULL);
    } else {
        db_arg_bytes(args, rq->arena, rq->fingerprint, sizeof(rq->fingerprint));
    }
}

/* PostgreSQL's text of an array (its manual, 8.15.6): every item quoted. */
static const char *list_text(struct arena *arena, const struct str_list *list)
{
    CLEANUP(buf_free) struct buf text = {0};
    buf_add_char(&text, '{');
    for (size_t i = 0; i < list->count; i++) {
        buf_add_c(&text, i > 0 ? ",\"" : "\"");
        for (size_t at = 0; at < list->items[i].len; at++) {
            char c = list->items[i].ptr[at];
            if (c == '"' || c == '\\') {
                buf_add_char(&text, '\\');
            }
            buf_add_char(&text, c);
        }
        buf_add_char(&text, '"');
    }
    buf_add_char(&text, '}');
    return arena_strndup(arena, text.ptr, text.len);
}

void bind_list(struct db_args *args, struct arena *arena, const struct str_list *list)
{
    db_arg(args, list_text(arena, list));
}

static bool flag_at(const void *in, size_t offset)
{
    return offset != 0 && *(const bool *)((const char *)in + offset);
}

static bool field_absent(const struct field *field, const void *in)
{
    return (field->present_offset != 0 && !flag_at(in, field->present_offset)) ||
           flag_at(in, field->null_offset);
}

/* NULL = SQL NULL: absent or null. */
static const char *field_text(struct arena *arena, const struct field *field, const void *in)
{
    const void *value = (const char *)in + field->offset;
    char time[STR_RFC3339_LEN + 1];
    if (field_absent(field, in)) {
        return NULL;
    }
    switch (field->type) {
    case FIELD_I64:
        return arena_printf(arena, "%lld", (long long)*(const int64_t *)value);
    case FIELD_DOUBLE:
        return arena_printf(arena, "%.17g", *(const double *)value);
    case FIELD_BOOL:
        return *(const bool *)value ? "true" : "false";
    case FIELD_TIME:
        if (*(const int64_t *)value == 0 && field->present_offset == 0) {
            return NULL;
        }
        str_format_rfc3339(*(const int64_t *)value, time);
        return arena_printf(arena, "%s", time);
    case FIELD_STR_LIST: {
        const struct str_list *list = value;
        return list->items == NULL ? NULL : list_text(arena, list);
    }
    case FIELD_STR:
    case FIELD_UUID:
    case FIELD_ENUM:
    case FIELD_NAME:
    case FIELD_HOST:
    case FIELD_JSON:
    default: {
        const struct str *text = value;
        return text->ptr == NULL ? NULL : arena_strndup(arena, text->ptr, text->len);
    }
    }
}

void bind_fields(struct request *rq, const struct field *fields, const void *in,
                 struct db_args *args)
{
    for (const struct field *field = fields; field != NULL && field->name != NULL; field++) {
        db_arg(args, field_text(rq->arena, field, in));
    }
}

/* "name,title": the fields that were there, null ones included. */
static void bind_present(struct request *rq, const struct field *fields, const void *in,
                         struct db_args *args)
{
    CLEANUP(buf_free) struct buf text = {0};
    for (const struct field *field = fields; field != NULL && field->name != NULL; field++) {
        if (flag_at(in, field->present_offset)) {
            buf_printf(&text, "%s%s", text.len > 0 ? "," : "", field->name);
        }
    }
    db_arg_str(args, rq->arena, text.len > 0 ? buf_str(&text) : STR(""));
}

static size_t path_id_count(const char *path)
{
    size_t count = 0;
    for (; *path != '\0'; path++) {
        count += *path == '{';
    }
    return count;
}

void bind_route_args(struct request *rq, const struct bind_page *page, struct db_args *args)
{
    const struct route *route = rq->route;
    size_t ids = path_id_count(route->path);
    assert(ids <= REQUEST_PATH_IDS);
    for (size_t i = 0; i < ids; i++) {
        db_arg_uuid(args, rq->arena, &rq->path_ids[i]);
    }
    if ((route->args & ARG_IF_MATCH) != 0) {
        db_arg_str(args, rq->arena, rq->if_match);
    }
    if ((route->args & ARG_KEY) != 0) {
        bind_key(rq, args);
    }
    if ((route->args & ARG_ACTOR) != 0) {
        bind_actor(rq, args);
    }
    if ((route->args & ARG_BODY) != 0) {
        bind_fields(rq, route->body, rq->in, args);
    }
    if ((route->args & ARG_BODY_PRESENT) != 0) {
        bind_present(rq, route->body, rq->in, args);
    }
    if ((route->args & ARG_QUERY) != 0) {
        bind_fields(rq, route->query, rq->params, args);
    }
    if ((route->args & ARG_PAGE) != 0) {
        db_arg_i64(args, rq->arena, page->limit);
        db_arg_str(args, rq->arena, page->keys);
    }
    if ((route->args & ARG_ID) != 0) {
        struct uuid id = uuid_v7();
        db_arg_uuid(args, rq->arena, &id);
        if (rq->scope != NULL) {
            /* Who may make a thing may see it; a fresh id names nothing else. */
            char text[UUID_TEXT_LEN + 1];
            uuid_format(&id, text);
            rq->scope = arena_printf(rq->arena, "{%s,%s", text, rq->scope + 1);
        }
    }
}
