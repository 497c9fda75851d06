/* A fetch of one issuer's documents: claimed among all replicas, stored, or its failure noted. */
#include "server/issuer_fetch.h"

#include <stdlib.h>

#include "base/log.h"
#include "server/config.h"
#include "server/issuer_documents.h"
#include "server/metrics.h"
#include "server/outbound.h"

#define ARENA_CAP ((size_t)16 << 20) /* both documents, twice, and what is read of them */
#define DISCOVERY_LIFE_S 86400

static enum err store(struct db_conn *db, struct arena *arena, const struct uuid *org,
                      const struct uuid *id, const struct issuer_documents *documents)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    db_arg_uuid(&args, arena, id);
    if (documents->keys == NULL) {
        db_arg_str(&args, arena, str_of(documents->error));
    } else {
        db_arg_str(&args, arena, documents->discovery_text);
        db_arg_str(&args, arena, documents->keys_text);
        db_arg_i64(&args, arena, documents->keep_s);
        db_arg_i64(&args, arena, (int64_t)documents->keys->count);
        db_arg_str(&args, arena, issuer_documents_unusable(arena, documents->keys));
    }
    enum err err =
        db_exec(db, documents->keys == NULL ? SQL_ISSUER_KEYS_FAILED : SQL_ISSUER_KEYS_STORE, org,
                &args, &rows);
    db_rows_free(rows);
    return err;
}

/* A row of the claim: the issuer and its stored discovery document. */
static enum err fetch_claimed(struct db_conn *db, struct arena *arena, const struct uuid *org,
                              const struct uuid *id, const struct db_rows *rows)
{
    struct issuer_documents documents = {.error = "The issuer's settings cannot be read."};
    struct decode_errors errors = {0};
    struct oidc_issuer issuer;
    const char *detail = "";
    struct str source_text = db_text(rows, 0, db_rows_col(rows, "source"));
    struct str stored = db_text(rows, 0, db_rows_col(rows, "discovery"));
    const struct oidc_issuer_source source = {
        .text = {arena_strndup(arena, source_text.ptr, source_text.len), source_text.len},
        .allow_private = true, /* checked when it is connected to */
    };
    if (oidc_issuer_read(arena, &source, &issuer, &errors, &detail) == ERR_NONE) {
        issuer_documents_fetch(arena, &issuer, stored, &documents);
    }
    metrics_add(METRIC_ISSUER_FETCHES, 1);
    if (documents.keys == NULL) {
        metrics_add(METRIC_ISSUER_FETCHES_FAILED, 1);
        log_warning("keys of the issuer %.*s: %s", STR_FMT(issuer.url), documents.error);
    }
    enum err err = store(db, arena, org, id, &documents);
    jwk_set_free(documents.keys);
    return err;
}

enum err issuer_fetch_now(struct db_conn *db, const struct uuid *org, const struct uuid *id,
                          bool *ret_claimed)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    db_arg_uuid(&args, arena, id);
    db_arg_i64(&args, arena, config.issuer_refetch_seconds);
    db_arg_i64(&args, arena, DISCOVERY_LIFE_S);
    enum err err = db_exec(db, SQL_ISSUER_KEYS_CLAIM, org, &args, &rows);
    *ret_claimed = err == ERR_NONE && db_rows_count(rows) > 0;
    if (*ret_claimed) {
        err = fetch_claimed(db, arena, org, id, rows);
    }
    db_rows_free(rows);
    return err;
}

static void run(void *arg, struct db_conn *db)
{
    struct issuer_fetch *fetch = arg;
    bool claimed = false;
    if (db != NULL && issuer_fetch_now(db, &fetch->org, &fetch->id, &claimed) != ERR_NONE) {
        log_warning("keys of an issuer could not be stored: %s", db_conn_error(db));
    }
    fetch->done(fetch->ctx);
    free(fetch);
}

bool issuer_fetch_start(const struct issuer_fetch *fetch)
{
    struct issuer_fetch *copy = calloc(1, sizeof(*copy));
    if (copy == NULL) {
        abort();
    }
    *copy = *fetch;
    if (outbound_post(OUTBOUND_ISSUER, run, copy)) {
        return true;
    }
    free(copy);
    return false;
}
