/* Handlers of signing in at an issuer: authorization code with PKCE, state, nonce and iss. */
#include "server/handlers/sign_in.h"

#include <string.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "server/auth.h"
#include "server/bind.h"
#include "server/config.h"
#include "server/fields_identity.h"
#include "server/idp.h"
#include "server/login.h"
#include "server/outbound.h"
#include "server/sign_in.h"

#define ADDRESS_MAX 512
#define SECOND_US INT64_C(1000000)
#define CALLBACK_PATH "/auth/callback"

/* ------------------------------------------------------------------ answers for a browser */

static void add_cookie(struct request *rq, const char *cookie)
{
    rq->set_cookie =
        str_of(rq->set_cookie.ptr == NULL
                   ? cookie
                   : arena_printf(rq->arena, "%.*s\n%s", STR_FMT(rq->set_cookie), cookie));
}

static enum err redirect(struct request *rq, const char *location)
{
    reply_json(rq, 302, (struct str){0});
    rq->location = str_of(location);
    return ERR_NONE;
}

/* Back to the sign-in page, which says what the code means. */
static enum err redirect_refused(struct request *rq, const char *code)
{
    return redirect(rq, arena_printf(rq->arena, "/sign-in?error=%s", code));
}

/* What belongs to no try of this browser: nothing was begun that could go on. */
static enum err refuse_stray(struct request *rq, const char *code)
{
    static const char page[] =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
        "<meta http-equiv=\"refresh\" content=\"3; url=/sign-in?error=%s\">"
        "<title>Sign in again</title><p>This answer belongs to no sign-in of this browser, or it "
        "was used before. <a href=\"/sign-in?error=%s\">Sign in again</a>.</p></html>\n";
    reply_json(rq, 400, str_of(arena_printf(rq->arena, page, code, code)));
    rq->content_type = "text/html; charset=utf-8";
    return ERR_NONE;
}

static const char *callback_uri(struct request *rq)
{
    char address[ADDRESS_MAX];
    config_address(address, sizeof address);
    return arena_printf(rq->arena, "%s" CALLBACK_PATH, address);
}

/* ------------------------------------------------------------------ what is offered */

static enum err on_options(struct request *rq, const struct db_rows *rows)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "items");
    enc_arr(&enc);
    for (int i = 0; i < db_rows_count(rows); i++) {
        struct str id = db_text(rows, i, db_rows_col(rows, "issuer_id"));
        enc_obj(&enc);
        enc_key(&enc, "issuer_id");
        enc_str(&enc, id);
        enc_key(&enc, "title");
        enc_str(&enc, db_text(rows, i, db_rows_col(rows, "title")));
        enc_key(&enc, "preset");
        enc_str(&enc, db_text(rows, i, db_rows_col(rows, "preset")));
        enc_key(&enc, "url");
        enc_cstr(&enc, arena_printf(rq->arena, "/auth/sign-in/%.*s", STR_FMT(id)));
        enc_obj_end(&enc);
    }
    enc_arr_end(&enc);
    enc_obj_end(&enc);
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
    return ERR_NONE;
}

enum err sign_in_options(struct request *rq)
{
    const struct sign_in_options_query *query = rq->params;
    struct db_args args = {0};
    db_arg_str(&args, rq->arena, query->org);
    return request_query_as(rq, NULL, SQL_SIGN_IN_OPTIONS, false, &args, on_options);
}

/* ------------------------------------------------------------------ the way out */

/* The issuer of the path, if people may sign in there. ERR_NOT_FOUND else. */
static enum err open_idp(struct request *rq, struct db_conn *db, struct idp *ret_idp)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct uuid org;
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    enum err err = db_exec(db, SQL_ISSUER_ORG, NULL, &args, &rows);
    if (err == ERR_NONE && !db_uuid(rows, 0, 0, &org)) {
        err = ERR_NOT_FOUND;
    }
    db_rows_free(rows);
    if (err == ERR_NONE) {
        err = idp_open(db, &org, &rq->path_ids[0], rq->arena, ret_idp);
    }
    return err == ERR_NONE && !ret_idp->sign_in ? ERR_NOT_FOUND : err;
}

static void hash_of(const char *secret, uint8_t hash[SHA256_LEN])
{
    crypto_sha256((struct str){secret, SIGN_IN_SECRET_LEN}, hash);
}

static enum err store_try(struct request *rq, struct db_conn *db, const struct idp *idp,
                          const struct sign_in_try *attempt)
{
    const struct sign_in_start_query *query = rq->params;
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct uuid id = uuid_v7();
    uint8_t state[SHA256_LEN];
    uint8_t browser[SHA256_LEN];
    hash_of(attempt->state, state);
    hash_of(attempt->browser, browser);
    db_arg_uuid(&args, rq->arena, &id);
    db_arg_uuid(&args, rq->arena, &idp->id);
    db_arg_bytes(&args, rq->arena, state, sizeof state);
    db_arg_bytes(&args, rq->arena, browser, sizeof browser);
    db_arg_str(&args, rq->arena, sign_in_return_to(query->return_to));
    db_arg_i64(&args, rq->arena, SIGN_IN_SECONDS);
    enum err err = db_exec(db, SQL_LOGIN_ATTEMPT_CREATE, &idp->org, &args, &rows);
    db_rows_free(rows);
    return err;
}

static void set_cookies(struct request *rq, const struct sign_in_try *attempt)
{
    struct str stale[SIGN_IN_TABS_MAX];
    char name[SIGN_IN_COOKIE_NAME_MAX];
    size_t count = sign_in_stale_cookies(rq->cookies, rq->secure, stale);
    for (size_t i = 0; i < count; i++) {
        const char *old = arena_strndup(rq->arena, stale[i].ptr, stale[i].len);
        add_cookie(rq, sign_in_set_cookie(rq->arena, old, STR(""), 0, rq->secure));
    }
    sign_in_cookie_name(str_of(attempt->state), rq->secure, name);
    add_cookie(rq, sign_in_set_cookie(rq->arena, name, str_of(attempt->browser), SIGN_IN_SECONDS,
                                      rq->secure));
}

static enum err start(struct request *rq, struct db_conn *db)
{
    CLEANUP(idp_close) struct idp idp = {0};
    CLEANUP(buf_free) struct buf url = {0};
    struct sign_in_try attempt;
    enum err err = open_idp(rq, db, &idp);
    if (err == ERR_NOT_FOUND) {
        return fail(rq, err, "There is no such issuer, or nobody may sign in with it.");
    }
    if (err != ERR_NONE) {
        return redirect_refused(rq, err == ERR_INTERNAL ? "not_configured" : "unavailable");
    }
    if (idp.issuer.client_id.len == 0) {
        return redirect_refused(rq, "not_configured");
    }
    if (!idp.has_discovery || idp.discovery.authorization_endpoint.len == 0) {
        return redirect_refused(rq, "idp_unavailable");
    }
    sign_in_begin(&attempt);
    if (store_try(rq, db, &idp, &attempt) != ERR_NONE) {
        return redirect_refused(rq, "unavailable");
    }
    const struct sign_in_request request = {
        .endpoint = idp.discovery.authorization_endpoint,
        .client_id = idp.issuer.client_id,
        .redirect_uri = callback_uri(rq),
        .scopes = idp.scopes.items,
        .scope_count = idp.scopes.count,
    };
    sign_in_write_url(&request, &attempt, &url);
    set_cookies(rq, &attempt);
    return redirect(rq, arena_strndup(rq->arena, url.ptr, url.len));
}

enum err sign_in_start(struct request *rq)
{
    return outbound_run(rq, OUTBOUND_ISSUER, start);
}

/* ------------------------------------------------------------------ the way back */

/* A try that came back to the browser that began it. */
struct back {
    struct request *rq;
    struct db_conn *db;
    struct sign_in_answer answer;
    struct sign_in_try attempt;
    struct uuid org;
    struct uuid issuer;
    const char *return_to;
    struct idp idp;
    struct idp_tokens tokens;
    struct oidc_verdict verdict;
};

/* Uses the try up. False: there is none for this state and this browser, or its time is over. */
static enum err take_try(struct back *back)
{
    struct request *rq = back->rq;
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    uint8_t state[SHA256_LEN];
    uint8_t browser[SHA256_LEN];
    hash_of(back->attempt.state, state);
    hash_of(back->attempt.browser, browser);
    db_arg_bytes(&args, rq->arena, state, sizeof state);
    db_arg_bytes(&args, rq->arena, browser, sizeof browser);
    enum err err = db_exec(back->db, SQL_LOGIN_ATTEMPT_TAKE, NULL, &args, &rows);
    if (err == ERR_NONE &&
        (db_rows_count(rows) == 0 || !db_uuid(rows, 0, db_rows_col(rows, "org_id"), &back->org) ||
         !db_uuid(rows, 0, db_rows_col(rows, "issuer_id"), &back->issuer))) {
        err = ERR_NOT_FOUND;
    }
    if (err == ERR_NONE) {
        struct str path = db_text(rows, 0, db_rows_col(rows, "return_to"));
        back->return_to = arena_strndup(rq->arena, path.ptr, path.len);
    }
    db_rows_free(rows);
    return err;
}

static void drop_cookie(struct request *rq, const struct sign_in_try *attempt)
{
    char name[SIGN_IN_COOKIE_NAME_MAX];
    sign_in_cookie_name(str_of(attempt->state), rq->secure, name);
    add_cookie(rq, sign_in_set_cookie(rq->arena, name, STR(""), 0, rq->secure));
}

/* The org's audit log has it, and the sign-in page shows the code; more goes to the log only. */
static enum err refuse_sign_in(struct back *back, const char *code, const char *detail)
{
    struct request *rq = back->rq;
    struct db_args both = {0};
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct str name = back->verdict.reason == OIDC_OK ? back->verdict.username : STR("");
    bind_actor(rq, &both);
    db_arg_uuid(&args, rq->arena, &back->issuer);
    db_arg_str(&args, rq->arena, name.ptr != NULL ? name : STR(""));
    db_arg(&args, both.values[1]);
    db_arg(&args, code);
    log_warning("a sign-in is refused: %s: %s", code, detail);
    if (db_exec(back->db, SQL_LOGIN_REFUSED, &back->org, &args, &rows) != ERR_NONE) {
        log_warning("it is not in the audit log: %s", db_conn_error(back->db));
    }
    db_rows_free(rows);
    return redirect_refused(rq, code);
}

/* RFC 9207: an answer of another issuer must not be taken to this one's token endpoint. */
static bool is_from_issuer(const struct back *back)
{
    return back->answer.iss.ptr == NULL ? !back->idp.discovery.announces_iss
                                        : str_eq(back->answer.iss, back->idp.issuer.url);
}

static const char *known_error(struct str error)
{
    static const char *const known[] = {"access_denied",        "login_required",
                                        "interaction_required", "consent_required",
                                        "server_error",         "temporarily_unavailable"};
    for (size_t i = 0; i < COUNTOF(known); i++) {
        if (str_eq_c(error, known[i])) {
            return known[i];
        }
    }
    return "idp_refused";
}

/* NULL, or the code of what is wrong; *ret_detail is for the log. */
static const char *redeem(struct back *back, const char **ret_detail)
{
    const struct idp_grant grant = {.code = back->answer.code,
                                    .verifier = back->attempt.verifier,
                                    .redirect_uri = callback_uri(back->rq)};
    const struct oidc_question question = {.use = OIDC_ID_TOKEN,
                                           .now_s = clock_wall_us() / SECOND_US,
                                           .has_nonce = true,
                                           .nonce = str_of(back->attempt.nonce)};
    enum idp_outcome outcome =
        idp_redeem(&back->idp, &grant, back->rq->arena, &back->tokens, ret_detail);
    if (outcome != IDP_GIVEN) {
        return outcome == IDP_AWAY ? "idp_unavailable" : "idp_refused";
    }
    if (back->tokens.id_token.ptr == NULL) {
        *ret_detail = "the token endpoint gave no ID token";
        return "idp_refused";
    }
    idp_verify(back->db, &back->idp, back->rq->arena, back->tokens.id_token, &question,
               &back->verdict);
    *ret_detail = back->verdict.detail != NULL ? back->verdict.detail : "";
    return back->verdict.reason == OIDC_OK ? NULL : oidc_reason_code(back->verdict.reason);
}

/* What login_begin takes from $2 on. */
static enum err bind_login(struct back *back, const struct uuid *session,
                           const uint8_t hash[SHA256_LEN], struct db_args *args)
{
    struct request *rq = back->rq;
    const struct oidc_verdict *verdict = &back->verdict;
    struct uuid person;
    struct uuid login = uuid_v7();
    const struct login_column id_column = {back->org, login, LOGIN_ID_TOKEN};
    const struct login_column column = {back->org, login, LOGIN_REFRESH_TOKEN};
    struct str id_token = {0};
    struct str refresh = {0};
    struct db_args context = {0};
    int64_t now_us = clock_wall_us();
    int64_t life_s =
        login_lifetime_s(back->tokens.expires_in_s, verdict->exp_s, now_us / SECOND_US);
    enum err err = login_seal(back->db, &id_column, back->tokens.id_token, rq->arena, &id_token);
    if (err == ERR_NONE) {
        err = login_seal(back->db, &column, back->tokens.refresh_token, rq->arena, &refresh);
    }
    login_person_id(&back->org, verdict->issuer, verdict->subject, &person);
    db_arg_uuid(args, rq->arena, &back->issuer);
    db_arg_str(args, rq->arena, verdict->issuer);
    db_arg_str(args, rq->arena, verdict->subject);
    db_arg_str(args, rq->arena, verdict->username);
    db_arg_str(args, rq->arena, verdict->email.ptr != NULL ? verdict->email : STR(""));
    db_arg(args, login_list_text(rq->arena, &verdict->groups));
    db_arg_time(args, rq->arena, verdict->iat_s > 0 ? verdict->iat_s * SECOND_US : now_us);
    db_arg_uuid(args, rq->arena, &person);
    db_arg_uuid(args, rq->arena, &login);
    db_arg_str(args, rq->arena, verdict->sid.len > 0 ? verdict->sid : (struct str){0});
    db_arg_bytes(args, rq->arena, id_token.ptr, id_token.len);
    db_arg_bytes(args, rq->arena, refresh.ptr, refresh.len);
    if (refresh.ptr != NULL) {
        db_arg_time(args, rq->arena, now_us + login_refresh_in_s(life_s) * SECOND_US);
    } else {
        db_arg(args, NULL);
    }
    db_arg_uuid(args, rq->arena, session);
    db_arg_bytes(args, rq->arena, hash, SHA256_LEN);
    bind_browser(rq, args);
    bind_actor(rq, &context);
    db_arg(args, context.values[1]);
    return err;
}

static enum err begin_session(struct back *back)
{
    struct request *rq = back->rq;
    char *token = arena_alloc(rq->arena, sizeof(AUTH_PREFIX_SESSION) + 44);
    uint8_t hash[SHA256_LEN];
    struct uuid session = uuid_v7();
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    crypto_token(AUTH_PREFIX_SESSION, token);
    crypto_sha256(str_of(token), hash);
    enum err err = bind_login(back, &session, hash, &args);
    if (err != ERR_NONE) {
        return refuse_sign_in(back, "unavailable", "its tokens could not be sealed");
    }
    err = db_exec(back->db, SQL_LOGIN_BEGIN, &back->org, &args, &rows);
    bool begun = err == ERR_NONE && db_rows_count(rows) > 0;
    int64_t max_age_s = begun ? db_i64(rows, 0, db_rows_col(rows, "max_age")) : 0;
    db_rows_free(rows);
    if (err != ERR_NONE) {
        return refuse_sign_in(back, "unavailable", db_conn_error(back->db));
    }
    if (!begun) {
        return refuse_sign_in(back, "person_disabled", "the person is disabled");
    }
    struct str kept = rq->set_cookie;
    auth_cookie_set(rq, str_of(token), max_age_s);
    const char *cookie = arena_strndup(rq->arena, rq->set_cookie.ptr, rq->set_cookie.len);
    rq->set_cookie = kept;
    add_cookie(rq, cookie);
    return redirect(rq, back->return_to);
}

static enum err go_on(struct back *back)
{
    const char *detail = "";
    enum err err = idp_open(back->db, &back->org, &back->issuer, back->rq->arena, &back->idp);
    if (err != ERR_NONE || !back->idp.sign_in) {
        return refuse_sign_in(back, err == ERR_UNAVAILABLE ? "unavailable" : "not_configured",
                              "the issuer cannot be used");
    }
    if (!back->idp.has_discovery) {
        return refuse_sign_in(back, "idp_unavailable", "nothing is known of the issuer");
    }
    if (!is_from_issuer(back)) {
        return refuse_sign_in(back, "iss_mismatch", "the answer is not from this issuer");
    }
    if (back->answer.error.ptr != NULL) {
        return refuse_sign_in(back, known_error(back->answer.error), "the issuer said so");
    }
    if (back->answer.code.ptr == NULL) {
        return refuse_sign_in(back, "idp_refused", "the issuer sent no code");
    }
    const char *code = redeem(back, &detail);
    return code != NULL ? refuse_sign_in(back, code, detail) : begin_session(back);
}

static enum err finish(struct request *rq, struct db_conn *db)
{
    struct back *back = arena_zalloc(rq->arena, sizeof *back);
    back->rq = rq;
    back->db = db;
    if (!sign_in_read_answer(rq->arena, rq->query, &back->answer) ||
        back->answer.state.ptr == NULL) {
        return refuse_stray(rq, "bad_answer");
    }
    struct str browser = sign_in_cookie(rq->cookies, back->answer.state, rq->secure);
    if (browser.ptr == NULL || !sign_in_resume(back->answer.state, browser, &back->attempt)) {
        return refuse_stray(rq, oidc_reason_code(OIDC_STATE_MISMATCH));
    }
    enum err err = take_try(back);
    if (err != ERR_NONE && err != ERR_NOT_FOUND) {
        return redirect_refused(rq, "unavailable");
    }
    drop_cookie(rq, &back->attempt);
    if (err == ERR_NOT_FOUND) {
        return refuse_stray(rq, oidc_reason_code(OIDC_STATE_MISMATCH));
    }
    err = go_on(back);
    idp_close(&back->idp);
    return err;
}

enum err sign_in_callback(struct request *rq)
{
    return outbound_run(rq, OUTBOUND_ISSUER, finish);
}
