/* Handlers that try an issuer: its documents before it is set up, a token, and its keys anew. */
#include "server/handlers/issuer_checks.h"

#include "base/clock.h"
#include "base/encode.h"
#include "oidc/verify.h"
#include "server/bind.h"
#include "server/config.h"
#include "server/fetch.h"
#include "server/fields_identity.h"
#include "server/idp.h"
#include "server/issuer_documents.h"
#include "server/issuer_fetch.h"
#include "server/outbound.h"
#include "server/reply.h"

#define ARENA_CAP ((size_t)16 << 20)
#define ADDRESS_MAX 512
#define SCOPES_MAX 64

static void answer(struct request *rq, const struct buf *text)
{
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text->ptr, text->len), text->len});
}

/* ------------------------------------------------------------------ the documents */

enum step { STEP_PASSED, STEP_FAILED, STEP_NOT_REACHED };

static void write_line(struct enc *enc, const char *check, enum step step, const char *detail)
{
    enc_obj(enc);
    enc_key(enc, "check");
    enc_cstr(enc, check);
    enc_key(enc, "passed");
    if (step == STEP_NOT_REACHED) {
        enc_null(enc);
    } else {
        enc_bool(enc, step == STEP_PASSED);
    }
    enc_key(enc, "detail");
    enc_cstr(enc, detail);
    enc_obj_end(enc);
}

/* Writes the line; one that comes after a failed one was not reached. */
static void write_step(struct enc *enc, const char *check, bool passed, const char *detail,
                       enum step *last)
{
    enum step step = *last != STEP_PASSED ? STEP_NOT_REACHED : passed ? STEP_PASSED : STEP_FAILED;
    write_line(enc, check, step, step == STEP_NOT_REACHED ? "" : detail);
    *last = step;
}

static const char *algorithm_words(struct arena *arena, unsigned algs)
{
    CLEANUP(buf_free) struct buf text = {0};
    for (unsigned i = 0; i < JOSE_ALG_COUNT; i++) {
        if ((algs & JOSE_ALG_BIT(i)) != 0) {
            buf_printf(&text, "%s%s", text.len > 0 ? ", " : "", jose_algs[i].name);
        }
    }
    return arena_strndup(arena, text.ptr, text.len);
}

static void write_lines(struct enc *enc, struct arena *arena, const char *problem,
                        const struct issuer_documents *documents)
{
    const struct jwk_set *keys = documents->keys;
    const char *error = documents->error != NULL ? documents->error : "";
    enum step last = STEP_PASSED;
    enc_arr(enc);
    write_step(enc, "address", problem == NULL, problem != NULL ? problem : "An https address",
               &last);
    write_step(enc, "reachable", documents->reached,
               documents->reached ? "The discovery document was had" : error, &last);
    write_step(enc, "issuer", documents->discovery_reason != OIDC_ISS_MISMATCH,
               documents->discovery_reason == OIDC_ISS_MISMATCH
                   ? error
                   : "The document names the same issuer, byte for byte",
               &last);
    write_step(enc, "endpoints", documents->has_discovery,
               documents->has_discovery ? "Its addresses can be used" : error, &last);
    write_step(enc, "keys", keys != NULL && keys->count > 0,
               keys == NULL ? error
                            : arena_printf(arena, "%zu keys can be used, %zu are left out",
                                           keys->count, keys->skipped_count),
               &last);
    write_step(enc, "algorithms", documents->discovery.algs != 0,
               algorithm_words(arena, documents->discovery.algs), &last);
    enc_arr_end(enc);
}

static void write_address(struct enc *enc, const char *key, struct str address)
{
    enc_key(enc, key);
    if (address.len > 0) {
        enc_str(enc, address);
    } else {
        enc_null(enc);
    }
}

/* Words of the document that people choose from; what is no short text is left out. */
static void write_scopes(struct enc *enc, struct str document)
{
    json_auto_t *root = json_loadb(document.ptr, document.len, 0, NULL);
    const json_t *list = json_object_get(root, "scopes_supported");
    enc_key(enc, "scopes_supported");
    enc_arr(enc);
    for (size_t i = 0; i < json_array_size(list) && i < SCOPES_MAX; i++) {
        struct str scope = jose_text(json_array_get(list, i));
        if (scope.len > 0 && scope.len <= 255 && jose_text_is_plain(scope)) {
            enc_str(enc, scope);
        }
    }
    enc_arr_end(enc);
}

static void write_found(struct enc *enc, const struct issuer_documents *documents)
{
    const struct oidc_discovery *found = &documents->discovery;
    enc_key(enc, "found");
    if (!documents->has_discovery) {
        enc_null(enc);
        return;
    }
    enc_obj(enc);
    write_address(enc, "authorization_endpoint", found->authorization_endpoint);
    write_address(enc, "token_endpoint", found->token_endpoint);
    write_address(enc, "jwks_uri", found->jwks_uri);
    write_address(enc, "end_session_endpoint", found->end_session_endpoint);
    write_address(enc, "device_authorization_endpoint", found->device_authorization_endpoint);
    write_scopes(enc, documents->discovery_text);
    enc_key(enc, "algorithms");
    enc_arr(enc);
    for (unsigned i = 0; i < JOSE_ALG_COUNT; i++) {
        if ((found->algs & JOSE_ALG_BIT(i)) != 0) {
            enc_cstr(enc, jose_algs[i].name);
        }
    }
    enc_arr_end(enc);
    enc_obj_end(enc);
}

/* NULL when it may be asked; the address itself is checked once more when it is connected to. */
static const char *find_problem(struct arena *arena, struct str url)
{
    if (fetch_is_allowed(arena_strndup(arena, url.ptr, url.len))) {
        return NULL;
    }
    const char *problem = oidc_url_problem(url);
    return problem == NULL && oidc_url_is_private(url) ? "The address is not a public one"
                                                       : problem;
}

static enum err discover(struct request *rq, struct db_conn *db)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    CLEANUP(buf_free) struct buf text = {0};
    const struct issuer_discover_in *in = rq->in;
    struct issuer_documents documents = {0};
    struct oidc_issuer issuer;
    struct enc enc;
    const char *problem = find_problem(arena, in->issuer);
    (void)db;
    oidc_issuer_init(&issuer);
    issuer.url = in->issuer;
    issuer.ca_certificate = in->ca_certificate;
    issuer.discovery_url = in->discovery_url;
    issuer.entra_tenants = in->entra_tenants;
    if (problem == NULL) {
        issuer_documents_fetch(arena, &issuer, (struct str){0}, &documents);
    }
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "lines");
    write_lines(&enc, arena, problem, &documents);
    write_found(&enc, &documents);
    enc_obj_end(&enc);
    answer(rq, &text);
    jwk_set_free(documents.keys);
    return ERR_NONE;
}

enum err issuer_discover(struct request *rq)
{
    return outbound_run(rq, OUTBOUND_ISSUER, discover);
}

/* ------------------------------------------------------------------ a token */

static void write_checks(struct enc *enc, const struct oidc_verdict *verdict)
{
    enc_key(enc, "checks");
    enc_arr(enc);
    for (unsigned i = 0; i < OIDC_CHECK_COUNT; i++) {
        if (i == OIDC_CHECK_NONCE) {
            continue; /* a token that is shown here belongs to no login */
        }
        enum step step = i < verdict->stopped    ? STEP_PASSED
                         : i == verdict->stopped ? STEP_FAILED
                                                 : STEP_NOT_REACHED;
        write_line(enc, oidc_checks[i].word, step,
                   step == STEP_FAILED && verdict->detail[0] != '\0' ? verdict->detail
                                                                     : oidc_checks[i].help);
    }
    enc_arr_end(enc);
}

static enum err write_person(struct request *rq, struct db_conn *db, const struct idp *idp,
                             const struct oidc_verdict *verdict, struct enc *enc)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct str iss = oidc_issuer_is_template(idp->issuer.url) ? verdict->issuer : idp->issuer.url;
    db_arg_uuid(&args, rq->arena, &idp->id);
    db_arg_str(&args, rq->arena, iss);
    db_arg_str(&args, rq->arena, verdict->subject);
    bind_list(&args, rq->arena, &verdict->groups);
    enum err err = db_exec(db, SQL_ISSUER_TEST_PERSON, &rq->caller.org, &args, &rows);
    if (err != ERR_NONE || db_rows_count(rows) == 0) {
        db_rows_free(rows);
        reply_database_failed(rq, err != ERR_NONE ? err : ERR_INTERNAL);
        return rq->err;
    }
    struct str person = db_text(rows, 0, db_rows_col(rows, "person"));
    enc_key(enc, "person");
    enc_raw(enc, person.len > 0 ? person : STR("null"));
    enc_key(enc, "roles");
    enc_raw(enc, db_text(rows, 0, db_rows_col(rows, "roles")));
    db_rows_free(rows);
    return ERR_NONE;
}

static enum err write_verdict(struct request *rq, struct db_conn *db, const struct idp *idp,
                              const struct oidc_verdict *verdict)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    bool valid = verdict->reason == OIDC_OK;
    enum err err = ERR_NONE;
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "valid");
    enc_bool(&enc, valid);
    enc_key(&enc, "reason");
    enc_cstr(&enc, valid ? NULL : oidc_reason_code(verdict->reason));
    write_checks(&enc, verdict);
    enc_key(&enc, "username");
    if (valid) {
        enc_str(&enc, verdict->username);
    } else {
        enc_null(&enc);
    }
    enc_key(&enc, "groups");
    enc_arr(&enc);
    for (size_t i = 0; valid && i < verdict->groups.count; i++) {
        enc_str(&enc, verdict->groups.items[i]);
    }
    enc_arr_end(&enc);
    if (valid) {
        err = write_person(rq, db, idp, verdict, &enc);
    } else {
        enc_key(&enc, "person");
        enc_null(&enc);
        enc_key(&enc, "roles");
        enc_raw(&enc, STR("[]"));
    }
    enc_obj_end(&enc);
    if (err == ERR_NONE) {
        answer(rq, &text);
    }
    return err;
}

/* The token is judged and forgotten: it is neither stored nor logged. */
static enum err test_token(struct request *rq, struct db_conn *db)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    CLEANUP(idp_close) struct idp idp = {0};
    const struct issuer_test_token_in *in = rq->in;
    const struct oidc_question question = {.use = OIDC_ACCESS_TOKEN,
                                           .now_s = clock_wall_us() / 1000000};
    struct oidc_verdict verdict;
    enum err err = idp_open(db, &rq->caller.org, &rq->path_ids[0], arena, &idp);
    if (err == ERR_NOT_FOUND) {
        return fail(rq, err, "Check the address; another organization's things are not shown.");
    }
    if (err != ERR_NONE) {
        return fail(rq, err, "The issuer cannot be read; the server's log says why.");
    }
    idp_verify(db, &idp, arena, in->token, &question, &verdict);
    return write_verdict(rq, db, &idp, &verdict);
}

enum err issuer_test_token(struct request *rq)
{
    return outbound_run(rq, OUTBOUND_ISSUER, test_token);
}

/* ------------------------------------------------------------------ keys anew */

static enum err refresh_keys(struct request *rq, struct db_conn *db)
{
    char address[ADDRESS_MAX];
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    bool claimed = false;
    enum err err = issuer_fetch_now(db, &rq->caller.org, &rq->path_ids[0], &claimed);
    if (err == ERR_NONE) {
        config_address(address, sizeof(address));
        db_arg_str(&args, rq->arena, str_of(address));
        db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
        err = db_exec(db, SQL_ISSUER_GET, &rq->caller.org, &args, &rows);
    }
    if (err != ERR_NONE) {
        reply_database_failed(rq, err);
        return rq->err;
    }
    err = reply_apply(rq, rows);
    db_rows_free(rows);
    return err;
}

enum err issuer_refresh_keys(struct request *rq)
{
    return outbound_run(rq, OUTBOUND_ISSUER, refresh_keys);
}
