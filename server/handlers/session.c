/* Handlers of sessions: signing in by a one-time link, another org, signing out, who one is. */
#include "server/handlers/session.h"

#include "base/buf.h"
#include "base/crypto.h"
#include "base/encode.h"
#include "base/log.h"
#include "server/auth.h"
#include "server/bind.h"
#include "server/fields.h"
#include "server/perms.h"
#include "server/reply.h"

/* What a request carries from one statement to the next; it takes the place of the decoded body. */
struct entry {
    struct uuid id;
    struct uuid org;
    struct str token; /* of the session to come */
    uint8_t hash[SHA256_LEN];
    uint8_t link_hash[SHA256_LEN];
};

static struct entry *entry_new(struct request *rq)
{
    struct entry *entry = arena_zalloc(rq->arena, sizeof *entry);
    size_t cap = sizeof(AUTH_PREFIX_SESSION) + 44;
    char *token = arena_alloc(rq->arena, cap);
    crypto_token(AUTH_PREFIX_SESSION, token);
    entry->token = str_of(token);
    crypto_sha256(entry->token, entry->hash);
    entry->id = uuid_v7();
    return entry;
}

/* The context of an audit row whose actor the statement itself finds. */
static void bind_context(struct request *rq, struct db_args *args)
{
    struct db_args both = {0};
    bind_actor(rq, &both);
    db_arg(args, both.values[1]);
}

/* The session exists now: its cookie goes with the answer. */
static enum err answer_session(struct request *rq, const struct db_rows *rows)
{
    const struct entry *entry = rq->in;
    enum err err = reply_apply(rq, rows);
    if (err == ERR_NONE) {
        auth_cookie_set(rq, entry->token, db_i64(rows, 0, db_rows_col(rows, "max_age")));
    }
    return err;
}

/* ------------------------------------------------------------------ signing in */

static enum err on_link(struct request *rq, const struct db_rows *rows)
{
    struct entry *entry = arena_alloc(rq->arena, sizeof *entry);
    struct db_args args = {0};
    *entry = *(const struct entry *)rq->in;
    rq->in = entry;
    if (db_rows_count(rows) == 0 || !db_uuid(rows, 0, db_rows_col(rows, "org_id"), &entry->org)) {
        return fail(rq, ERR_UNAUTHENTICATED,
                    "This link is used up or expired. Make a new one on the server: musterd "
                    "sign-in-link --user NAME.");
    }
    db_arg_bytes(&args, rq->arena, entry->link_hash, sizeof entry->link_hash);
    db_arg_uuid(&args, rq->arena, &entry->id);
    db_arg_bytes(&args, rq->arena, entry->hash, sizeof entry->hash);
    bind_context(rq, &args);
    bind_browser(rq, &args);
    log_warning("a one-time link signs somebody in from %.*s", STR_FMT(rq->address));
    return request_query_as(rq, &entry->org, SQL_SESSION_CREATE, true, &args, answer_session);
}

enum err session_create(struct request *rq)
{
    const struct session_create_in *in = rq->in;
    struct db_args args = {0};
    struct entry *entry = entry_new(rq);
    crypto_sha256(in->token, entry->link_hash);
    db_arg_bytes(&args, rq->arena, entry->link_hash, sizeof entry->link_hash);
    rq->in = entry;
    return request_query_as(rq, NULL, SQL_SESSION_LINK, false, &args, on_link);
}

/* ------------------------------------------------------------------ another org, and leaving */

static enum err delete_session(struct request *rq, const char *action, request_then *then)
{
    struct db_args args = {0};
    db_arg_uuid(&args, rq->arena, &rq->caller.credential_id);
    bind_actor(rq, &args);
    db_arg(&args, action);
    return request_query(rq, SQL_SESSION_DELETE, true, &args, then);
}

/* The answer stands since the statement before. */
static enum err keep_answer(struct request *rq, const struct db_rows *rows)
{
    (void)rq;
    (void)rows;
    return ERR_NONE;
}

static enum err on_switched(struct request *rq, const struct db_rows *rows)
{
    enum err err = answer_session(rq, rows);
    return err != ERR_NONE ? err : delete_session(rq, "session.leave", keep_answer);
}

static struct str login_column(const struct db_rows *rows, const char *name)
{
    int col = db_rows_col(rows, name);
    return db_is_null(rows, 0, col) ? (struct str){0} : db_text(rows, 0, col);
}

static enum err on_expiry(struct request *rq, const struct db_rows *rows)
{
    const struct entry *entry = rq->in;
    struct db_args args = {0};
    if (db_rows_count(rows) == 0) {
        return fail(rq, ERR_UNAUTHENTICATED, "This session has ended. Sign in again.");
    }
    db_arg_uuid(&args, rq->arena, &entry->id);
    db_arg_bytes(&args, rq->arena, entry->hash, sizeof entry->hash);
    db_arg_uuid(&args, rq->arena, &rq->caller.subject_id);
    db_arg_time(&args, rq->arena, db_time_us(rows, 0, db_rows_col(rows, "expires_at")));
    bind_context(rq, &args);
    bind_browser(rq, &args);
    /* The login goes along: its end ends this session too. */
    db_arg_str(&args, rq->arena, login_column(rows, "login_org"));
    db_arg_str(&args, rq->arena, login_column(rows, "login_id"));
    return request_query_as(rq, &entry->org, SQL_SESSION_SWITCH, true, &args, on_switched);
}

enum err session_switch(struct request *rq)
{
    const struct session_switch_in *in = rq->in;
    struct db_args args = {0};
    struct entry *entry = entry_new(rq);
    if (rq->caller.kind != CALLER_SESSION || rq->bearer) {
        return fail(rq, ERR_FORBIDDEN,
                    "A token belongs to one organization. Use a token of the other one.");
    }
    if (!uuid_parse(in->org_id, &entry->org)) {
        return fail_log(rq, ERR_INTERNAL, "the table of fields lets a bad id through");
    }
    rq->in = entry;
    db_arg_uuid(&args, rq->arena, &rq->caller.credential_id);
    return request_query(rq, SQL_SESSION_EXPIRY, false, &args, on_expiry);
}

static enum err on_deleted(struct request *rq, const struct db_rows *rows)
{
    (void)rows;
    auth_cookie_set(rq, STR(""), 0);
    reply_json(rq, 204, (struct str){0});
    return ERR_NONE;
}

enum err session_delete(struct request *rq)
{
    if (rq->caller.kind != CALLER_SESSION) {
        return fail(rq, ERR_FORBIDDEN, "A token does not sign out. Revoke it instead.");
    }
    return delete_session(rq, "session.delete", on_deleted);
}

enum err session_delete_all(struct request *rq)
{
    struct db_args args = {0};
    if (rq->caller.kind != CALLER_SESSION) {
        return fail(rq, ERR_FORBIDDEN, "A token does not sign out. Revoke it instead.");
    }
    db_arg_uuid(&args, rq->arena, &rq->caller.subject_id);
    bind_actor(rq, &args);
    return request_query(rq, SQL_SESSIONS_END, true, &args, on_deleted);
}

/* ------------------------------------------------------------------ who one is */

/* What the caller may do somewhere in the org: in all of it, or in the parts of the grants. */
static unsigned all_perms(const struct caller *caller)
{
    unsigned perms = caller->perms;
    struct str rest = caller->grants;
    struct str entry;
    while (str_split(&rest, ',', &entry)) {
        struct str name;
        unsigned role = 0;
        if (str_split(&entry, ' ', &name) && role_parse(name, &role)) {
            perms |= perms_of(role, false);
        }
    }
    return perms;
}

static void write_roles(struct request *rq, struct enc *enc)
{
    enc_arr(enc);
    for (int bit = 0; bit < ROLE_COUNT; bit++) {
        if ((rq->caller.roles & (1u << bit)) != 0) {
            enc_cstr(enc, role_name((enum role_bit)bit));
        }
    }
    enc_arr_end(enc);
}

static void write_permissions(struct request *rq, struct enc *enc)
{
    unsigned perms = all_perms(&rq->caller);
    enc_arr(enc);
    for (int bit = 0; bit < PERM_COUNT; bit++) {
        if ((perms & (1u << bit)) != 0) {
            enc_cstr(enc, perm_name((enum perm_bit)bit));
        }
    }
    enc_arr_end(enc);
}

static enum err on_me(struct request *rq, const struct db_rows *rows)
{
    const struct caller *caller = &rq->caller;
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    if (db_rows_count(rows) == 0) {
        return fail_log(rq, ERR_INTERNAL, "the caller's organization is not there");
    }
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "kind");
    enc_cstr(&enc, caller->kind == CALLER_SESSION ? "session"
                   : caller->kind == CALLER_TOKEN ? "token"
                                                  : "service");
    enc_key(&enc, "id");
    enc_uuid(&enc, &caller->subject_id);
    enc_key(&enc, "name");
    enc_str(&enc, caller->name);
    enc_key(&enc, "org");
    enc_raw(&enc, db_text(rows, 0, db_rows_col(rows, "org")));
    enc_key(&enc, "orgs");
    enc_raw(&enc, db_text(rows, 0, db_rows_col(rows, "orgs")));
    enc_key(&enc, "roles");
    write_roles(rq, &enc);
    enc_key(&enc, "grants");
    enc_raw(&enc, db_text(rows, 0, db_rows_col(rows, "grants")));
    enc_key(&enc, "rights");
    enc_raw(&enc, db_text(rows, 0, db_rows_col(rows, "rights")));
    enc_key(&enc, "permissions");
    write_permissions(rq, &enc);
    enc_key(&enc, "expires_at");
    if (caller->expires_us == 0 || caller->expires_us == INT64_MAX) {
        enc_null(&enc);
    } else {
        enc_time(&enc, caller->expires_us);
    }
    enc_key(&enc, "suspended");
    enc_raw(&enc, db_is_null(rows, 0, db_rows_col(rows, "suspended"))
                      ? STR("null")
                      : db_text(rows, 0, db_rows_col(rows, "suspended")));
    enc_key(&enc, "platform_admin");
    enc_bool(&enc, caller->platform_admin);
    enc_obj_end(&enc);
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
    return ERR_NONE;
}

enum err me_get(struct request *rq)
{
    CLEANUP(buf_free) struct buf roles = {0};
    struct db_args args = {0};
    db_arg_uuid(&args, rq->arena, caller_person(&rq->caller));
    buf_add_char(&roles, '{');
    for (int bit = 0; bit < ROLE_COUNT; bit++) {
        if ((rq->caller.roles & (1u << bit)) != 0) {
            buf_printf(&roles, "%s%s", roles.len > 1 ? "," : "", role_name((enum role_bit)bit));
        }
    }
    buf_add_char(&roles, '}');
    db_arg_str(&args, rq->arena, buf_str(&roles));
    db_arg_uuid(&args, rq->arena, &rq->caller.credential_id);
    return request_query(rq, SQL_ME_GET, false, &args, on_me);
}
