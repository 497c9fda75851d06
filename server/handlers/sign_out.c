/* Handlers of ends: signing out at the issuer too, back-channel logout, one's sessions. */
#include "server/handlers/sign_out.h"

#include <string.h>

#include "base/clock.h"
#include "base/decode.h"
#include "base/encode.h"
#include "base/log.h"
#include "server/auth.h"
#include "server/bind.h"
#include "server/config.h"
#include "server/idp.h"
#include "server/login.h"
#include "server/outbound.h"
#include "server/reply.h"
#include "server/secret_store.h"
#include "server/sign_in.h"

#define ADDRESS_MAX 512
#define SECOND_US INT64_C(1000000)
/* A longer hint would not fit into an address everywhere. */
#define HINT_MAX 4096
/* Longer than any logout token is taken, with both clocks' leeway. */
#define REPLAY_SPARE_S 300

static enum err need_session(struct request *rq)
{
    return rq->caller.kind == CALLER_SESSION
               ? ERR_NONE
               : fail(rq, ERR_FORBIDDEN,
                      "Sessions are people's. A token does not sign out: revoke it instead.");
}

/* ------------------------------------------------------------------ signing out */

/* The login that a session stands on. */
struct leave {
    struct uuid login_org;
    struct uuid login;
    struct uuid issuer;
    struct str hint; /* its ID token; ptr NULL = none */
    bool found;
};

static enum err read_session(struct request *rq, struct db_conn *db, struct leave *leave)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    db_arg_uuid(&args, rq->arena, &rq->caller.credential_id);
    enum err err = db_exec(db, SQL_SESSION_LOGIN, &rq->caller.org, &args, &rows);
    leave->found = err == ERR_NONE && db_rows_count(rows) > 0 &&
                   db_uuid(rows, 0, db_rows_col(rows, "login_org"), &leave->login_org) &&
                   db_uuid(rows, 0, db_rows_col(rows, "login_id"), &leave->login);
    db_rows_free(rows);
    return err;
}

static void read_login(struct request *rq, struct db_conn *db, struct leave *leave)
{
    const struct login_column column = {leave->login_org, leave->login, LOGIN_ID_TOKEN};
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct str sealed = {0};
    db_arg_uuid(&args, rq->arena, &leave->login);
    leave->found = db_exec(db, SQL_LOGIN_GET, &leave->login_org, &args, &rows) == ERR_NONE &&
                   db_rows_count(rows) > 0 &&
                   db_uuid(rows, 0, db_rows_col(rows, "issuer_id"), &leave->issuer);
    if (leave->found) {
        sealed = secret_column(rows, 0, db_rows_col(rows, "id_token"), rq->arena);
    }
    db_rows_free(rows);
    if (login_unseal(db, &column, sealed, rq->arena, &leave->hint) != ERR_NONE) {
        /* Without it the issuer asks the person, no more. */
        leave->hint = (struct str){0};
    }
}

/* Where the browser ends the issuer's own session (RP-Initiated Logout 1.0); NULL = nowhere. */
static const char *logout_address(struct request *rq, struct db_conn *db, const struct leave *leave)
{
    CLEANUP(idp_close) struct idp idp = {0};
    CLEANUP(buf_free) struct buf url = {0};
    char address[ADDRESS_MAX];
    if (idp_open(db, &leave->login_org, &leave->issuer, rq->arena, &idp) != ERR_NONE ||
        !idp.has_discovery || idp.discovery.end_session_endpoint.len == 0) {
        return NULL;
    }
    config_address(address, sizeof address);
    buf_add(&url, idp.discovery.end_session_endpoint.ptr, idp.discovery.end_session_endpoint.len);
    if (leave->hint.ptr != NULL && leave->hint.len <= HINT_MAX) {
        sign_in_add_field(&url, true, "id_token_hint", leave->hint);
    }
    sign_in_add_field(&url, true, "client_id", idp.issuer.client_id);
    sign_in_add_field(&url, true, "post_logout_redirect_uri",
                      str_of(arena_printf(rq->arena, "%s/sign-in", address)));
    return arena_strndup(rq->arena, url.ptr, url.len);
}

/* Which request it was. */
static const char *context_of(struct request *rq)
{
    struct db_args both = {0};
    bind_actor(rq, &both);
    return both.values[1];
}

static const char *audit_body(struct request *rq, const char *action, const char *reason)
{
    char id[UUID_TEXT_LEN + 1];
    uuid_format(&rq->caller.credential_id, id);
    const struct login_act act = {
        .context = context_of(rq),
        .actor = arena_strndup(rq->arena, rq->caller.name.ptr, rq->caller.name.len),
        .action = action,
        .target = str_of(arena_strndup(rq->arena, id, UUID_TEXT_LEN)),
        .target_name = rq->caller.name,
        .reason = reason};
    return login_audit_body(rq->arena, &act);
}

static enum err end_login(struct request *rq, struct db_conn *db, const struct leave *leave)
{
    int64_t ended = 0;
    const struct login_end end = {.org = leave->login_org,
                                  .login = &leave->login,
                                  .audit = audit_body(rq, "session.delete", "sign_out")};
    return login_end(db, &end, rq->arena, &ended);
}

static enum err end_session(struct request *rq, struct db_conn *db)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    db_arg_uuid(&args, rq->arena, &rq->caller.credential_id);
    bind_actor(rq, &args);
    db_arg(&args, "session.delete");
    enum err err = db_exec(db, SQL_SESSION_DELETE, &rq->caller.org, &args, &rows);
    db_rows_free(rows);
    return err;
}

static enum err leave_both(struct request *rq, struct db_conn *db)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct leave leave = {0};
    struct enc enc;
    const char *url = NULL;
    enum err err = read_session(rq, db, &leave);
    if (err == ERR_NONE && leave.found) {
        read_login(rq, db, &leave);
    }
    if (err == ERR_NONE && leave.found) {
        url = logout_address(rq, db, &leave);
        err = end_login(rq, db, &leave);
    } else if (err == ERR_NONE) {
        err = end_session(rq, db);
    }
    if (err != ERR_NONE) {
        reply_database_failed(rq, err);
        return rq->err;
    }
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "url");
    enc_cstr(&enc, url);
    enc_obj_end(&enc);
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
    auth_cookie_set(rq, STR(""), 0);
    return ERR_NONE;
}

enum err sign_out(struct request *rq)
{
    enum err err = need_session(rq);
    return err != ERR_NONE ? err : outbound_run(rq, OUTBOUND_ISSUER, leave_both);
}

/* ------------------------------------------------------------------ back-channel logout */

struct logout_form {
    struct str token;
};
static const struct field logout_fields[] = {
    {.name = "logout_token",
     .type = FIELD_STR,
     .offset = offsetof(struct logout_form, token),
     .flags = FIELD_REQUIRED,
     .min = 1,
     .max = JOSE_TOKEN_MAX},
    {0},
};

static bool read_form(struct request *rq, struct str *ret_token)
{
    struct logout_form form = {0};
    struct decode_errors errors;
    enum err err = decode_query(rq->arena, rq->body, logout_fields, &form, &errors);
    bool good = err == ERR_NONE || (err == ERR_INVALID_FIELDS && errors.dropped == 0);
    for (size_t i = 0; good && i < errors.count; i++) {
        good = strcmp(errors.items[i].code, "unknown_field") == 0;
    }
    *ret_token = form.token;
    return good && form.token.len > 0;
}

/* Each logout token acts once (2.6). */
static enum err use_token(struct request *rq, struct db_conn *db, const struct idp *idp,
                          const struct oidc_verdict *verdict)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    uint8_t hash[SHA256_LEN];
    int64_t left_s = verdict->exp_s - clock_wall_us() / SECOND_US;
    crypto_sha256(verdict->jti, hash);
    db_arg_uuid(&args, rq->arena, &idp->id);
    db_arg_bytes(&args, rq->arena, hash, sizeof hash);
    db_arg_i64(&args, rq->arena, (left_s > 0 ? left_s : 0) + REPLAY_SPARE_S);
    enum err err = db_exec(db, SQL_LOGOUT_TOKEN_USE, &idp->org, &args, &rows);
    if (err == ERR_NONE && db_rows_count(rows) == 0) {
        err = ERR_CONFLICT;
    }
    db_rows_free(rows);
    return err;
}

static enum err end_logins(struct request *rq, struct db_conn *db, const struct idp *idp,
                           const struct oidc_verdict *verdict)
{
    int64_t ended = 0;
    const struct login_act act = {.context = context_of(rq),
                                  .actor = "muster",
                                  .action = "session.end",
                                  .target_name = verdict->subject,
                                  .reason = "backchannel_logout"};
    const struct login_end end = {.org = idp->org,
                                  .issuer = &idp->id,
                                  .sid = verdict->sid.len > 0 ? verdict->sid : (struct str){0},
                                  .subject =
                                      verdict->subject.len > 0 ? verdict->subject : (struct str){0},
                                  .audit = login_audit_body(rq->arena, &act)};
    enum err err = login_end(db, &end, rq->arena, &ended);
    if (err == ERR_NONE) {
        log_info("back-channel logout: %lld sessions ended", (long long)ended);
    }
    return err;
}

static enum err take_logout(struct request *rq, struct db_conn *db, struct idp *idp,
                            struct str token)
{
    struct oidc_verdict verdict;
    const struct oidc_question question = {.use = OIDC_LOGOUT_TOKEN,
                                           .now_s = clock_wall_us() / SECOND_US};
    idp_verify(db, idp, rq->arena, token, &question, &verdict);
    if (verdict.reason == OIDC_IDP_UNAVAILABLE) {
        return fail(rq, ERR_UNAVAILABLE, "The issuer's keys cannot be had at present.");
    }
    if (verdict.reason != OIDC_OK) {
        log_warning("a logout token is refused: %s", verdict.detail);
        return fail(rq, ERR_BAD_REQUEST, "The logout token is refused: %s.",
                    oidc_reason_code(verdict.reason));
    }
    if (verdict.sid.len == 0 && verdict.subject.len == 0) {
        return fail(rq, ERR_BAD_REQUEST, "The logout token is refused: claim_missing.");
    }
    enum err err = use_token(rq, db, idp, &verdict);
    if (err == ERR_CONFLICT) {
        return fail(rq, ERR_BAD_REQUEST, "The logout token is refused: replay.");
    }
    if (err == ERR_NONE) {
        err = end_logins(rq, db, idp, &verdict);
    }
    if (err != ERR_NONE) {
        reply_database_failed(rq, err);
        return rq->err;
    }
    reply_json(rq, 200, STR("{}"));
    return ERR_NONE;
}

static enum err take_backchannel(struct request *rq, struct db_conn *db)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct uuid org;
    struct idp idp = {0};
    struct str token;
    if (!read_form(rq, &token)) {
        return fail(rq, ERR_BAD_REQUEST, "Send one logout_token, as a form.");
    }
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    enum err err = db_exec(db, SQL_ISSUER_ORG, NULL, &args, &rows);
    if (err == ERR_NONE && !db_uuid(rows, 0, 0, &org)) {
        err = ERR_NOT_FOUND;
    }
    db_rows_free(rows);
    if (err == ERR_NONE) {
        err = idp_open(db, &org, &rq->path_ids[0], rq->arena, &idp);
    }
    if (err == ERR_NONE) {
        err = take_logout(rq, db, &idp, token);
    } else {
        err = fail(rq, err, "%s",
                   err == ERR_NOT_FOUND ? "There is no such issuer." : "Try again later.");
    }
    idp_close(&idp);
    return err;
}

enum err backchannel_logout(struct request *rq)
{
    return outbound_run(rq, OUTBOUND_LOGOUT, take_backchannel);
}

/* ------------------------------------------------------------------ one's sessions */

enum err session_list(struct request *rq)
{
    struct db_args args = {0};
    enum err err = need_session(rq);
    if (err != ERR_NONE) {
        return err;
    }
    db_arg_uuid(&args, rq->arena, &rq->caller.subject_id);
    db_arg_uuid(&args, rq->arena, &rq->caller.credential_id);
    return request_query(rq, SQL_SESSION_LIST, false, &args, NULL);
}

enum err session_delete_one(struct request *rq)
{
    struct db_args args = {0};
    enum err err = need_session(rq);
    if (err != ERR_NONE) {
        return err;
    }
    db_arg_uuid(&args, rq->arena, &rq->caller.subject_id);
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    bind_actor(rq, &args);
    return request_query(rq, SQL_SESSION_END, true, &args, NULL);
}
