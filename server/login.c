/* Logins at issuers: refreshed while their sessions are used, ended when the issuer says so. */
#include "server/login.h"

#include <string.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "server/secret_store.h"

#define SECOND_US INT64_C(1000000)
#define UNKNOWN_LIFE_S 3600
#define MARGIN_S 60
#define SHORT_LIFE_S (4 * MARGIN_S)
#define SOONEST_S 5
#define ARENA_CAP ((size_t)16 << 20)

int64_t login_refresh_in_s(int64_t lifetime_s)
{
    if (lifetime_s <= 0) {
        lifetime_s = UNKNOWN_LIFE_S;
    }
    int64_t due_s = lifetime_s > SHORT_LIFE_S ? lifetime_s - MARGIN_S : lifetime_s * 3 / 4;
    return due_s < SOONEST_S ? SOONEST_S : due_s;
}

int64_t login_lifetime_s(int64_t expires_in_s, int64_t exp_s, int64_t now_s)
{
    int64_t of_id_s = exp_s > now_s ? exp_s - now_s : 0;
    if (expires_in_s <= 0 || of_id_s <= 0) {
        return expires_in_s > of_id_s ? expires_in_s : of_id_s;
    }
    return expires_in_s < of_id_s ? expires_in_s : of_id_s;
}

void login_person_id(const struct uuid *org, struct str iss, struct str subject,
                     struct uuid *ret_id)
{
    CLEANUP(buf_free) struct buf text = {0};
    uint8_t hash[SHA256_LEN];
    buf_add(&text, org->bytes, sizeof(org->bytes));
    buf_add(&text, iss.ptr, iss.len);
    buf_add_char(&text, '\n'); /* in neither of both */
    buf_add(&text, subject.ptr, subject.len);
    crypto_sha256(buf_str(&text), hash);
    memcpy(ret_id->bytes, hash, sizeof(ret_id->bytes));
    /* RFC 9562 5.8: version 8, made of what we like. */
    ret_id->bytes[6] = (uint8_t)((ret_id->bytes[6] & 0x0f) | 0x80);
    ret_id->bytes[8] = (uint8_t)((ret_id->bytes[8] & 0x3f) | 0x80);
}

/* PostgreSQL's manual, 8.15.6: every item quoted. */
const char *login_list_text(struct arena *arena, const struct str_list *list)
{
    CLEANUP(buf_free) struct buf text = {0};
    buf_add_char(&text, '{');
    for (size_t i = 0; i < list->count; i++) {
        buf_add_c(&text, i > 0 ? ",\"" : "\"");
        for (size_t k = 0; k < list->items[i].len; k++) {
            char c = list->items[i].ptr[k];
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

const char *login_audit_body(struct arena *arena, const struct login_act *act)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    enc_init(&enc, &text);
    enc_obj(&enc);
    if (act->context != NULL) {
        /* What stands between its braces. */
        size_t len = strlen(act->context);
        enc_raw(&enc, (struct str){act->context + 1, len - 2});
    }
    enc_key(&enc, "actor");
    enc_cstr(&enc, act->actor);
    enc_key(&enc, "action");
    enc_cstr(&enc, act->action);
    enc_key(&enc, "target");
    if (act->target.ptr == NULL) {
        enc_null(&enc);
    } else {
        enc_str(&enc, act->target);
    }
    enc_key(&enc, "target_name");
    enc_str(&enc, act->target_name);
    enc_key(&enc, "outcome");
    enc_cstr(&enc, "done");
    if (act->reason != NULL) {
        enc_key(&enc, "reason");
        enc_cstr(&enc, act->reason);
    }
    enc_obj_end(&enc);
    return arena_strndup(arena, text.ptr, text.len);
}

/* ------------------------------------------------------------------ tokens at rest */

enum err login_seal(struct db_conn *db, const struct login_column *column, struct str token,
                    struct arena *arena, struct str *ret_sealed)
{
    const struct secret_place place = {column->name, column->login};
    *ret_sealed = (struct str){0};
    return token.ptr == NULL
               ? ERR_NONE
               : secret_store_seal(db, &column->org, &place, token, arena, ret_sealed);
}

enum err login_unseal(struct db_conn *db, const struct login_column *column, struct str sealed,
                      struct arena *arena, struct str *ret_token)
{
    const struct secret_place place = {column->name, column->login};
    *ret_token = (struct str){0};
    return sealed.ptr == NULL
               ? ERR_NONE
               : secret_store_unseal(db, &column->org, &place, sealed, arena, ret_token);
}

/* ------------------------------------------------------------------ ends */

enum err login_end(struct db_conn *db, const struct login_end *end, struct arena *arena,
                   int64_t *ret_ended)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    db_arg_uuid(&args, arena, end->login);
    db_arg_uuid(&args, arena, end->issuer);
    db_arg_str(&args, arena, end->sid);
    db_arg_str(&args, arena, end->subject);
    db_arg(&args, end->audit);
    enum err err = db_exec(db, SQL_LOGINS_END, &end->org, &args, &rows);
    if (err == ERR_NONE) {
        *ret_ended = db_rows_count(rows) > 0 ? db_i64(rows, 0, 0) : 0;
    }
    db_rows_free(rows);
    return err;
}

/* ------------------------------------------------------------------ refresh */

/* A login while it is refreshed. */
struct refresh {
    struct db_conn *db;
    struct arena *arena;
    struct uuid org;
    struct uuid login;
    struct uuid issuer;
    struct str name; /* of the person */
    struct str iss;
    struct str subject;
    struct str token; /* that is redeemed */
};

static struct str copy_text(struct refresh *refresh, const struct db_rows *rows, const char *name)
{
    struct str text = db_text(rows, 0, db_rows_col(rows, name));
    return (struct str){arena_strndup(refresh->arena, text.ptr, text.len), text.len};
}

static enum err load(struct refresh *refresh)
{
    const struct login_column column = {refresh->org, refresh->login, LOGIN_REFRESH_TOKEN};
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct str sealed = {0};
    db_arg_uuid(&args, refresh->arena, &refresh->login);
    enum err err = db_exec(refresh->db, SQL_LOGIN_GET, &refresh->org, &args, &rows);
    if (err == ERR_NONE && (db_rows_count(rows) == 0 ||
                            !db_uuid(rows, 0, db_rows_col(rows, "issuer_id"), &refresh->issuer))) {
        err = ERR_NOT_FOUND;
    }
    if (err == ERR_NONE) {
        refresh->name = copy_text(refresh, rows, "name");
        refresh->iss = copy_text(refresh, rows, "issuer");
        refresh->subject = copy_text(refresh, rows, "subject");
        sealed = secret_column(rows, 0, db_rows_col(rows, "refresh_token"), refresh->arena);
        err = sealed.ptr == NULL ? ERR_NOT_FOUND : ERR_NONE;
    }
    db_rows_free(rows);
    return err != ERR_NONE
               ? err
               : login_unseal(refresh->db, &column, sealed, refresh->arena, &refresh->token);
}

/* The issuer no longer stands for the person. */
static void sign_out(struct refresh *refresh, const char *reason)
{
    char id[UUID_TEXT_LEN + 1];
    int64_t ended = 0;
    uuid_format(&refresh->login, id);
    const struct login_act act = {.actor = "muster",
                                  .action = "session.end",
                                  .target = str_of(id),
                                  .target_name = refresh->name,
                                  .reason = reason};
    const struct login_end end = {.org = refresh->org,
                                  .login = &refresh->login,
                                  .audit = login_audit_body(refresh->arena, &act)};
    if (login_end(refresh->db, &end, refresh->arena, &ended) == ERR_NONE) {
        log_info("%lld sessions of %.*s ended at the refresh: %s", (long long)ended,
                 STR_FMT(refresh->name), reason);
    } else {
        log_warning("sessions of %.*s could not be ended: %s", STR_FMT(refresh->name),
                    db_conn_error(refresh->db));
    }
}

/* NULL, or why the new ID token is not acceptable. */
static const char *judge(struct refresh *refresh, struct idp *idp, struct str token,
                         struct oidc_verdict *ret_verdict)
{
    const struct oidc_question question = {.use = OIDC_ID_TOKEN,
                                           .now_s = clock_wall_us() / SECOND_US};
    idp_verify(refresh->db, idp, refresh->arena, token, &question, ret_verdict);
    if (ret_verdict->reason != OIDC_OK) {
        log_warning("the refreshed token of %.*s is refused: %s", STR_FMT(refresh->name),
                    ret_verdict->detail != NULL ? ret_verdict->detail : "");
        return oidc_reason_code(ret_verdict->reason);
    }
    /* OIDC Core 12.2: both must be those of the first one. */
    return !str_eq(ret_verdict->subject, refresh->subject) ? "subject_changed"
           : !str_eq(ret_verdict->issuer, refresh->iss)    ? "iss_mismatch"
                                                           : NULL;
}

static const char *groups_body(struct refresh *refresh)
{
    const struct login_act act = {.actor = "muster",
                                  .action = "person.groups",
                                  .target_name = refresh->name,
                                  .reason = "refresh"};
    return login_audit_body(refresh->arena, &act);
}

static enum err store(struct refresh *refresh, const struct idp_tokens *tokens,
                      const struct oidc_verdict *verdict)
{
    const struct login_column id_column = {refresh->org, refresh->login, LOGIN_ID_TOKEN};
    const struct login_column column = {refresh->org, refresh->login, LOGIN_REFRESH_TOKEN};
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct str id_token = {0};
    struct str refresh_token = {0};
    int64_t now_us = clock_wall_us();
    int64_t life_s = login_lifetime_s(tokens->expires_in_s, verdict != NULL ? verdict->exp_s : 0,
                                      now_us / SECOND_US);
    enum err err = login_seal(refresh->db, &id_column, tokens->id_token, refresh->arena, &id_token);
    if (err == ERR_NONE) {
        err =
            login_seal(refresh->db, &column, tokens->refresh_token, refresh->arena, &refresh_token);
    }
    if (err != ERR_NONE) {
        return err;
    }
    db_arg_uuid(&args, refresh->arena, &refresh->login);
    db_arg_bytes(&args, refresh->arena, id_token.ptr, id_token.len);
    db_arg_bytes(&args, refresh->arena, refresh_token.ptr, refresh_token.len);
    db_arg_time(&args, refresh->arena, now_us + login_refresh_in_s(life_s) * SECOND_US);
    if (verdict != NULL) {
        db_arg(&args, login_list_text(refresh->arena, &verdict->groups));
        db_arg_time(&args, refresh->arena,
                    verdict->iat_s > 0 ? verdict->iat_s * SECOND_US : now_us);
    } else {
        db_arg(&args, NULL);
        db_arg(&args, NULL);
    }
    db_arg(&args, groups_body(refresh));
    err = db_exec(refresh->db, SQL_LOGIN_REFRESHED, &refresh->org, &args, &rows);
    db_rows_free(rows);
    return err;
}

static void redeem(struct refresh *refresh, struct idp *idp)
{
    const struct idp_grant grant = {.refresh_token = refresh->token};
    struct idp_tokens tokens = {0};
    struct oidc_verdict verdict = {0};
    const char *error = "";
    switch (idp_redeem(idp, &grant, refresh->arena, &tokens, &error)) {
    case IDP_AWAY:
        log_warning("a session of %.*s could not be refreshed, the issuer is away: %s",
                    STR_FMT(refresh->name), error);
        return;
    case IDP_REFUSED:
        sign_out(refresh, arena_printf(refresh->arena, "refresh_refused: %s", error));
        return;
    case IDP_GIVEN:
    default:
        break;
    }
    bool told = tokens.id_token.ptr != NULL;
    const char *reason = told ? judge(refresh, idp, tokens.id_token, &verdict) : NULL;
    if (reason != NULL && verdict.reason != OIDC_IDP_UNAVAILABLE) {
        sign_out(refresh, reason);
        return;
    }
    /* The new refresh token is kept whatever else fails: the former one is used up. */
    enum err err = store(refresh, &tokens, told && reason == NULL ? &verdict : NULL);
    if (err != ERR_NONE) {
        log_error("new tokens of %.*s could not be stored: %s", STR_FMT(refresh->name),
                  db_conn_error(refresh->db));
    }
}

void login_refresh(struct db_conn *db, const struct uuid *org, const struct uuid *login)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    struct refresh refresh = {.db = db, .arena = arena, .org = *org, .login = *login};
    struct idp idp;
    if (load(&refresh) != ERR_NONE) {
        return;
    }
    enum err err = idp_open(db, org, &refresh.issuer, arena, &idp);
    if (err == ERR_NONE && !idp.sign_in) {
        sign_out(&refresh, "issuer_disabled");
    } else if (err == ERR_NONE) {
        redeem(&refresh, &idp);
    }
    idp_close(&idp);
    explicit_bzero((char *)(uintptr_t)refresh.token.ptr, refresh.token.len);
}
