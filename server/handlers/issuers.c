/* Handlers of issuers: what is given is judged as the verifier will read it, and stored with its
 * secret sealed. */
#include "server/handlers/issuers.h"

#include <string.h>

#include "oidc/issuer.h"
#include "server/bind.h"
#include "server/config.h"
#include "server/fetch.h"
#include "server/outbound.h"
#include "server/reply.h"
#include "server/secret_store.h"

#define ADDRESS_MAX 512
#define NAME_DETAIL \
    "A name has 1 to 63 of a-z, 0-9 and -, begins with a letter and does not end with -."

/* What becomes columns; the rest of the body is the configuration. */
static const char *const columns[] = {"name",   "title",   "preset",     "issuer",       "sign_in",
                                      "bearer", "enabled", "not_before", "client_secret"};

static void bind_address(struct request *rq, struct db_args *args)
{
    char address[ADDRESS_MAX];
    config_address(address, sizeof(address));
    db_arg_str(args, rq->arena, str_of(address));
}

enum err issuer_list(struct request *rq)
{
    struct db_args args = {0};
    bind_address(rq, &args);
    db_arg_i64(&args, rq->arena, rq->page_limit);
    db_arg_str(&args, rq->arena, rq->page_keys);
    return request_query(rq, SQL_ISSUER_LIST, false, &args, NULL);
}

enum err issuer_get(struct request *rq)
{
    struct db_args args = {0};
    bind_address(rq, &args);
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    return request_query(rq, SQL_ISSUER_GET, false, &args, NULL);
}

/* ------------------------------------------------------------------ what is stored */

/* A change on its way to the database, kept in rq->in. */
struct change {
    json_t *body; /* owned by the request until it is bound */
    struct uuid id;
    bool is_new;
    bool secret_given; /* or taken away */
    struct str secret; /* ptr NULL = none */
    struct str stored; /* what an update is laid over */
    struct db_args args;
};

static struct str text_of(struct request *rq, const json_t *value)
{
    if (!json_is_string(value)) {
        return (struct str){0};
    }
    size_t len = json_string_length(value);
    return (struct str){arena_strndup(rq->arena, json_string_value(value), len), len};
}

static struct str dump(struct request *rq, const json_t *value)
{
    size_t len = json_dumpb(value, NULL, 0, JSON_COMPACT);
    char *text = arena_alloc(rq->arena, len + 1);
    (void)json_dumpb(value, text, len, JSON_COMPACT);
    text[len] = '\0';
    return (struct str){text, len};
}

static const char *flag_of(const json_t *body, const char *name)
{
    const json_t *value = json_object_get(body, name);
    return value == NULL ? NULL : json_is_true(value) ? "true" : "false";
}

/* The columns and the configuration, in the order of both statements. */
static void bind_body(struct request *rq, json_t *body, struct db_args *args)
{
    static const char *const texts[] = {"name", "title", "preset", "issuer"};
    static const char *const flags[] = {"sign_in", "bearer", "enabled"};
    struct str not_before = text_of(rq, json_object_get(body, "not_before"));
    json_auto_t *config_part = json_copy(body);
    for (size_t i = 0; i < COUNTOF(texts); i++) {
        db_arg_str(args, rq->arena, text_of(rq, json_object_get(body, texts[i])));
    }
    for (size_t i = 0; i < COUNTOF(columns); i++) {
        (void)json_object_del(config_part, columns[i]);
    }
    db_arg_str(args, rq->arena, dump(rq, config_part));
    for (size_t i = 0; i < COUNTOF(flags); i++) {
        db_arg(args, flag_of(body, flags[i]));
    }
    db_arg_str(args, rq->arena, not_before);
}

static enum err refuse_fields(struct request *rq, const struct decode_errors *errors)
{
    for (size_t i = 0; i < errors->count && rq->errors.count < DECODE_ERRORS_MAX; i++) {
        rq->errors.items[rq->errors.count++] = errors->items[i];
    }
    return rq->errors.count == 1
               ? fail(rq, ERR_INVALID_FIELDS, "1 field was refused.")
               : fail(rq, ERR_INVALID_FIELDS, "%zu fields were refused.", rq->errors.count);
}

/* The discovery document is fetched by us: its address is held to what the issuer's is. */
static void check_discovery_url(struct request *rq, const struct oidc_issuer *issuer,
                                struct decode_errors *errors)
{
    struct str url = issuer->discovery_url;
    if (url.len == 0 || fetch_is_allowed(arena_strndup(rq->arena, url.ptr, url.len))) {
        return;
    }
    const char *problem = oidc_url_problem(url);
    if (problem != NULL || oidc_url_is_private(url)) {
        decode_error_add(
            rq->arena, errors, "#/discovery_url",
            problem != NULL ? "invalid_format" : "not_allowed",
            problem != NULL
                ? arena_printf(rq->arena, "%s.", problem)
                : "The address is not a public one; the installation's owner can allow it "
                  "(outbound_allow).");
    }
}

static void check_certificate(struct request *rq, const struct oidc_issuer *issuer,
                              struct decode_errors *errors)
{
    if (issuer->ca_certificate.len > 0 &&
        str_find(issuer->ca_certificate, STR("-----BEGIN CERTIFICATE-----"), 0) < 0) {
        decode_error_add(
            rq->arena, errors, "#/ca_certificate", "invalid_format",
            "Send the authority's certificate in PEM, from -----BEGIN CERTIFICATE----- on.");
    }
}

/* As the verifier will read it; text is the body with all that the issuer has. */
static enum err judge(struct request *rq, struct str text, const json_t *body)
{
    struct decode_errors errors = {0};
    struct oidc_issuer issuer;
    const char *detail = NULL;
    const char *url = json_string_value(json_object_get(body, "issuer"));
    const struct oidc_issuer_source source = {
        .text = text, .allow_private = url != NULL && fetch_is_allowed(url)};
    enum err err = oidc_issuer_read(rq->arena, &source, &issuer, &errors, &detail);
    if (err != ERR_NONE && err != ERR_INVALID_FIELDS) {
        return fail(rq, err, "%s", detail);
    }
    if (err == ERR_NONE) {
        const char *name = json_string_value(json_object_get(body, "name"));
        if (name == NULL || !str_is_dns_label(str_of(name))) {
            decode_error_add(rq->arena, &errors, "#/name",
                             name == NULL ? "required" : "invalid_format", NAME_DETAIL);
        }
        if (issuer.url.len > 512) {
            decode_error_add(rq->arena, &errors, "#/issuer", "too_long", "At most 512 bytes.");
        }
        check_discovery_url(rq, &issuer, &errors);
        check_certificate(rq, &issuer, &errors);
    }
    return err != ERR_NONE || errors.count > 0 ? refuse_fields(rq, &errors) : ERR_NONE;
}

/* Runs where blocking is allowed: sealing asks the database for the org's key. */
static enum err store_sealed(struct request *rq, struct db_conn *db)
{
    const struct change *change = rq->in;
    const struct secret_place place = {"issuer.client_secret", change->id};
    struct db_args args = change->args;
    struct db_rows *rows = NULL;
    struct str sealed;
    enum err err =
        secret_store_seal(db, &rq->caller.org, &place, change->secret, rq->arena, &sealed);
    if (err != ERR_NONE) {
        return fail(rq, err, "The secret could not be sealed; the server's log says why.");
    }
    db_arg_bytes(&args, rq->arena, (const uint8_t *)sealed.ptr, sealed.len);
    if (!change->is_new) {
        db_arg(&args, "true");
    }
    err = db_exec(db, change->is_new ? SQL_ISSUER_CREATE : SQL_ISSUER_UPDATE, &rq->caller.org,
                  &args, &rows);
    if (err != ERR_NONE) {
        reply_database_failed(rq, err);
        return rq->err;
    }
    err = reply_apply(rq, rows);
    db_rows_free(rows);
    return err;
}

static enum err store(struct request *rq, struct change *change)
{
    rq->in = change;
    if (change->secret.ptr != NULL) {
        return outbound_run(rq, OUTBOUND_ISSUER, store_sealed);
    }
    db_arg(&change->args, NULL);
    if (!change->is_new) {
        db_arg(&change->args, change->secret_given ? "true" : "false");
    }
    return request_query(rq, change->is_new ? SQL_ISSUER_CREATE : SQL_ISSUER_UPDATE, true,
                         &change->args, NULL);
}

enum err issuer_create(struct request *rq)
{
    struct change *change = arena_zalloc(rq->arena, sizeof(*change));
    struct str text = rq->body.len > 0 ? rq->body : STR("{}");
    json_auto_t *body = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, NULL);
    enum err err = judge(rq, text, body);
    if (err != ERR_NONE) {
        return err;
    }
    *change = (struct change){.id = uuid_v7(),
                              .is_new = true,
                              .secret = text_of(rq, json_object_get(body, "client_secret"))};
    bind_address(rq, &change->args);
    bind_key(rq, &change->args);
    bind_actor(rq, &change->args);
    db_arg_uuid(&change->args, rq->arena, &change->id);
    bind_body(rq, body, &change->args);
    return store(rq, change);
}

/* ------------------------------------------------------------------ changes */

/* RFC 7396, one level deep: null takes a field away, and no groups is said by null. */
static void lay_over(json_t *stored, const json_t *patch)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)patch, key, value) {
        if (json_is_null(value) && strcmp(key, "groups_claim") != 0) {
            (void)json_object_del(stored, key);
        } else {
            (void)json_object_set(stored, key, value);
        }
    }
    if (json_object_get(patch, "groups_claim") == NULL &&
        json_object_get(stored, "groups_path") != NULL) {
        (void)json_object_del(stored, "groups_claim");
    }
    if (json_is_null(json_object_get(stored, "groups_claim")) &&
        json_object_get(stored, "groups_path") != NULL) {
        (void)json_object_del(stored, "groups_claim");
    }
}

static enum err on_stored(struct request *rq, const struct db_rows *rows)
{
    struct change *change = (struct change *)(uintptr_t)rq->in;
    if (db_rows_count(rows) == 0) {
        return fail(rq, ERR_NOT_FOUND,
                    "Check the address; another organization's things are not shown.");
    }
    struct str stored = db_text(rows, 0, db_rows_col(rows, "stored"));
    json_auto_t *patch = json_loadb(rq->body.ptr, rq->body.len, 0, NULL);
    json_auto_t *body = json_loadb(stored.ptr, stored.len, 0, NULL);
    const json_t *secret = json_object_get(patch, "client_secret");
    lay_over(body, patch);
    enum err err = judge(rq, dump(rq, body), body);
    if (err != ERR_NONE) {
        return err;
    }
    change->id = rq->path_ids[0];
    change->secret_given = secret != NULL;
    change->secret = text_of(rq, secret);
    bind_address(rq, &change->args);
    db_arg_uuid(&change->args, rq->arena, &change->id);
    db_arg_str(&change->args, rq->arena, rq->if_match);
    bind_actor(rq, &change->args);
    bind_body(rq, body, &change->args);
    return store(rq, change);
}

enum err issuer_update(struct request *rq)
{
    struct db_args args = {0};
    json_error_t error;
    json_auto_t *patch =
        rq->body.len == 0 ? json_object()
                          : json_loadb(rq->body.ptr, rq->body.len, JSON_REJECT_DUPLICATES, &error);
    if (patch == NULL) {
        return fail(rq, ERR_BAD_JSON, "The body is not JSON, or a member stands in it twice.");
    }
    if (!json_is_object(patch)) {
        decode_error_add(rq->arena, &rq->errors, "#", "wrong_type", "Send an object.");
        return fail(rq, ERR_INVALID_FIELDS, "1 field was refused.");
    }
    rq->in = arena_zalloc(rq->arena, sizeof(struct change));
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    return request_query(rq, SQL_ISSUER_STORED, false, &args, on_stored);
}
