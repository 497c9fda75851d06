/* An identity provider as a sign-in needs it. */
#include "server/idp.h"

#include <jansson.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "oidc/alg.h"
#include "oidc/jose.h"
#include "server/fetch.h"
#include "server/issuer_fetch.h"
#include "server/secret_store.h"
#include "server/sign_in.h"

#define SCOPES_MAX 32
#define TOKEN_MAX JOSE_TOKEN_MAX
#define EXPIRES_MAX_S 31536000.0
/* A fetch ends within 15 s. */
#define BUSY_PAUSE_MS 100
#define BUSY_TRIES 150

/* ------------------------------------------------------------------ what is stored */

static struct str copy_column(const struct db_rows *rows, const char *name, struct arena *arena)
{
    struct str text = db_text(rows, 0, db_rows_col(rows, name));
    return (struct str){arena_strndup(arena, text.ptr, text.len), text.len};
}

static void read_scopes(struct str config, struct arena *arena, struct str_list *ret_scopes)
{
    static const char *const usual[] = {"openid", "profile", "email"};
    json_auto_t *root = json_loadb(config.ptr, config.len, 0, NULL);
    const json_t *list = json_object_get(root, "scopes");
    size_t count = json_array_size(list) < SCOPES_MAX ? json_array_size(list) : SCOPES_MAX;
    ret_scopes->items = arena_alloc(arena, (SCOPES_MAX + 1) * sizeof *ret_scopes->items);
    ret_scopes->count = 0;
    bool openid = false;
    for (size_t i = 0; i < count; i++) {
        struct str text = jose_text(json_array_get(list, i));
        openid = openid || str_eq_c(text, "openid");
        if (text.len > 0) {
            ret_scopes->items[ret_scopes->count++] =
                (struct str){arena_strndup(arena, text.ptr, text.len), text.len};
        }
    }
    if (count == 0) {
        for (size_t i = 0; i < COUNTOF(usual); i++) {
            ret_scopes->items[ret_scopes->count++] = str_of(usual[i]);
        }
    } else if (!openid) {
        ret_scopes->items[ret_scopes->count++] = STR("openid");
    }
}

static enum err read_config(const struct db_rows *rows, struct arena *arena, struct idp *idp)
{
    struct decode_errors errors = {0};
    const char *detail = "a field is not acceptable";
    struct str config = copy_column(rows, "config", arena);
    struct str url = copy_column(rows, "url", arena);
    const struct oidc_issuer_source source = {.text = config,
                                              .allow_private = fetch_is_allowed(url.ptr)};
    if (oidc_issuer_read(arena, &source, &idp->issuer, &errors, &detail) != ERR_NONE) {
        log_error("the stored issuer %.*s cannot be read: %s%s", STR_FMT(url),
                  errors.count > 0 && errors.items[0].pointer != NULL ? errors.items[0].pointer
                                                                      : "",
                  errors.count > 0 ? errors.items[0].detail : detail);
        return ERR_INTERNAL;
    }
    read_scopes(config, arena, &idp->scopes);
    return ERR_NONE;
}

static void read_documents(const struct db_rows *rows, struct arena *arena, struct idp *idp)
{
    const char *detail = NULL;
    struct str discovery = db_text(rows, 0, db_rows_col(rows, "discovery"));
    struct str keys = db_text(rows, 0, db_rows_col(rows, "keys"));
    bool allowed = fetch_is_allowed(arena_strndup(arena, idp->issuer.url.ptr, idp->issuer.url.len));
    idp->has_discovery =
        discovery.len > 0 && oidc_discovery_read(arena, &idp->issuer, discovery, allowed,
                                                 &idp->discovery, &detail) == OIDC_OK;
    jwk_set_free(idp->keys);
    idp->keys = keys.len > 0 ? jwk_set_parse(keys, &detail) : NULL;
}

static enum err read_secret(struct db_conn *db, const struct db_rows *rows, struct arena *arena,
                            struct idp *idp)
{
    const struct secret_place place = {"issuer.client_secret", idp->id};
    struct str sealed = secret_column(rows, 0, db_rows_col(rows, "client_secret"), arena);
    idp->client_secret = (struct str){0};
    return sealed.ptr == NULL
               ? ERR_NONE
               : secret_store_unseal(db, &idp->org, &place, sealed, arena, &idp->client_secret);
}

static enum err query(struct db_conn *db, const struct idp *idp, struct arena *arena,
                      struct db_rows **ret_rows)
{
    struct db_args args = {0};
    db_arg_uuid(&args, arena, &idp->id);
    enum err err = db_exec(db, SQL_IDP_GET, &idp->org, &args, ret_rows);
    return err == ERR_NONE && db_rows_count(*ret_rows) == 0 ? ERR_NOT_FOUND : err;
}

static void pause_ms(long ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&pause, NULL);
}

/* Reads the documents anew. False: somebody fetches them at this moment, or they cannot be read. */
static bool reread(struct db_conn *db, struct arena *arena, struct idp *idp)
{
    struct db_rows *rows = NULL;
    bool settled =
        query(db, idp, arena, &rows) != ERR_NONE || !db_bool(rows, 0, db_rows_col(rows, "busy"));
    if (settled && db_rows_count(rows) > 0) {
        read_documents(rows, arena, idp);
    }
    db_rows_free(rows);
    return settled;
}

/* Has them fetched unless they were just now, and reads what there is then. */
static void refresh(struct db_conn *db, struct arena *arena, struct idp *idp)
{
    bool claimed = false;
    if (issuer_fetch_now(db, &idp->org, &idp->id, &claimed) != ERR_NONE) {
        return;
    }
    /* Another replica may be at it: its fetch is worth waiting for. */
    for (int i = 0; i < BUSY_TRIES && !reread(db, arena, idp); i++) {
        pause_ms(BUSY_PAUSE_MS);
    }
}

enum err idp_open(struct db_conn *db, const struct uuid *org, const struct uuid *id,
                  struct arena *arena, struct idp *ret_idp)
{
    struct db_rows *rows = NULL;
    bool fresh = false;
    *ret_idp = (struct idp){.org = *org, .id = *id};
    enum err err = query(db, ret_idp, arena, &rows);
    if (err == ERR_NONE) {
        ret_idp->sign_in = db_bool(rows, 0, db_rows_col(rows, "sign_in"));
        fresh = db_bool(rows, 0, db_rows_col(rows, "fresh"));
        err = read_config(rows, arena, ret_idp);
    }
    if (err == ERR_NONE) {
        read_documents(rows, arena, ret_idp);
        err = read_secret(db, rows, arena, ret_idp);
    }
    db_rows_free(rows);
    if (err == ERR_NONE && (!fresh || !ret_idp->has_discovery || ret_idp->keys == NULL)) {
        /* What is known goes on when the issuer is away. */
        refresh(db, arena, ret_idp);
    }
    return err;
}

void idp_close(struct idp *idp)
{
    jwk_set_free(idp->keys);
    idp->keys = NULL;
    if (idp->client_secret.ptr != NULL) {
        explicit_bzero((char *)(uintptr_t)idp->client_secret.ptr, idp->client_secret.len);
    }
}

void idp_verify(struct db_conn *db, struct idp *idp, struct arena *arena, struct str token,
                const struct oidc_question *question, struct oidc_verdict *ret_verdict)
{
    if (idp->keys == NULL) {
        *ret_verdict = (struct oidc_verdict){.reason = OIDC_IDP_UNAVAILABLE,
                                             .detail = "the issuer's keys cannot be had"};
        return;
    }
    if (idp->has_discovery && idp->issuer.algs == JOSE_ALGS_ALL) {
        /* None was chosen: RS256 and what the issuer announces. */
        idp->issuer.algs = idp->discovery.algs;
    }
    oidc_verify(arena, &idp->issuer, idp->keys, token, question, ret_verdict);
    if (ret_verdict->reason != OIDC_KEY_NOT_FOUND && ret_verdict->reason != OIDC_BAD_SIGNATURE) {
        return;
    }
    refresh(db, arena, idp);
    if (idp->keys != NULL) {
        oidc_verify(arena, &idp->issuer, idp->keys, token, question, ret_verdict);
    }
}

/* ------------------------------------------------------------------ the token endpoint */

static const char *basic_header(const struct idp *idp, struct arena *arena)
{
    CLEANUP(buf_free) struct buf pair = {0};
    /* RFC 6749 2.3.1: both are encoded as in a form first. */
    sign_in_add_escaped(&pair, idp->issuer.client_id);
    buf_add_char(&pair, ':');
    sign_in_add_escaped(&pair, idp->client_secret);
    char *text = arena_alloc(arena, crypto_base64_len(pair.len) + 1);
    crypto_base64(pair.ptr, pair.len, text);
    explicit_bzero(pair.ptr, pair.len);
    return arena_printf(arena, "Authorization: Basic %s", text);
}

static void write_form(const struct idp *idp, const struct idp_grant *grant, bool post,
                       struct buf *form)
{
    if (grant->code.ptr != NULL) {
        sign_in_add_field(form, false, "grant_type", STR("authorization_code"));
        sign_in_add_field(form, false, "code", grant->code);
        sign_in_add_field(form, false, "redirect_uri", str_of(grant->redirect_uri));
        sign_in_add_field(form, false, "code_verifier", str_of(grant->verifier));
    } else {
        sign_in_add_field(form, false, "grant_type", STR("refresh_token"));
        sign_in_add_field(form, false, "refresh_token", grant->refresh_token);
    }
    if (idp->client_secret.ptr == NULL || post) {
        sign_in_add_field(form, false, "client_id", idp->issuer.client_id);
    }
    if (post) {
        sign_in_add_field(form, false, "client_secret", idp->client_secret);
    }
}

static struct str take_token(const json_t *root, const char *name, struct arena *arena)
{
    struct str text = jose_text(json_object_get(root, name));
    if (text.len == 0 || text.len > TOKEN_MAX) {
        return (struct str){0};
    }
    return (struct str){arena_strndup(arena, text.ptr, text.len), text.len};
}

static int64_t take_seconds(const json_t *value)
{
    double seconds = json_is_number(value) ? json_number_value(value) : 0;
    return seconds >= 1 && seconds <= EXPIRES_MAX_S ? (int64_t)seconds : 0;
}

/* The issuer's own word for it, when it is one of the standard's shape. */
static const char *take_error(const json_t *root, struct arena *arena)
{
    struct str error = jose_text(json_object_get(root, "error"));
    for (size_t i = 0; i < error.len; i++) {
        char c = error.ptr[i];
        if (!((c >= 'a' && c <= 'z') || c == '_')) {
            return NULL;
        }
    }
    return error.len > 0 && error.len <= 64 ? arena_strndup(arena, error.ptr, error.len) : NULL;
}

static enum idp_outcome read_answer(const struct http_answer *answer, struct arena *arena,
                                    struct idp_tokens *ret_tokens, const char **ret_error)
{
    const char *detail = NULL;
    json_t *root = jose_read_object(arena, buf_str(&answer->body), &detail);
    enum idp_outcome outcome = IDP_AWAY;
    if (answer->status == 200 && root != NULL) {
        *ret_tokens =
            (struct idp_tokens){.id_token = take_token(root, "id_token", arena),
                                .refresh_token = take_token(root, "refresh_token", arena),
                                .expires_in_s = take_seconds(json_object_get(root, "expires_in"))};
        outcome = IDP_GIVEN;
    } else if (answer->status >= 400 && answer->status < 500 && answer->status != 429 &&
               answer->status != 408) {
        const char *error = root == NULL ? NULL : take_error(root, arena);
        *ret_error = error != NULL ? error : arena_printf(arena, "status %ld", answer->status);
        outcome = IDP_REFUSED;
    } else {
        *ret_error = answer->status == 0 ? arena_printf(arena, "%s", answer->error)
                                         : arena_printf(arena, "status %ld", answer->status);
    }
    json_decref(root);
    return outcome;
}

enum idp_outcome idp_redeem(const struct idp *idp, const struct idp_grant *grant,
                            struct arena *arena, struct idp_tokens *ret_tokens,
                            const char **ret_error)
{
    CLEANUP(buf_free) struct buf form = {0};
    struct http_answer answer = {0};
    bool secret = idp->client_secret.ptr != NULL;
    bool post = secret && idp->discovery.client_post && !idp->discovery.client_basic;
    if (!idp->has_discovery || idp->discovery.token_endpoint.len == 0) {
        *ret_error = "the issuer names no token endpoint";
        return IDP_AWAY;
    }
    const char *headers[] = {"Content-Type: application/x-www-form-urlencoded",
                             "Accept: application/json",
                             secret && !post ? basic_header(idp, arena) : NULL, NULL};
    write_form(idp, grant, post, &form);
    struct str endpoint = idp->discovery.token_endpoint;
    const struct fetch fetch = {.method = "POST",
                                .url = arena_strndup(arena, endpoint.ptr, endpoint.len),
                                .headers = headers,
                                .body = buf_str(&form),
                                .ca_certificate = idp->issuer.ca_certificate};
    fetch_send(&fetch, &answer);
    explicit_bzero(form.ptr, form.len);
    enum idp_outcome outcome = read_answer(&answer, arena, ret_tokens, ret_error);
    if (answer.body.ptr != NULL) {
        explicit_bzero(answer.body.ptr, answer.body.len);
    }
    http_answer_free(&answer);
    return outcome;
}
