/* Keys of orgs in the database: read, made at first use, and used. */
#include "server/secret_store.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "server/config.h"

#define TRIES 5
#define ARENA_CAP ((size_t)64 * 1024)
#define SEALED_MAX (SECRET_PLAIN_MAX + 64)

/* Set once at start. */
static struct secrets *secrets;

bool secret_store_open(char *error, size_t error_cap)
{
    secrets = secrets_open(config.keys_dir, error, error_cap);
    return secrets != NULL;
}

struct secrets *secret_store_secrets(void)
{
    return secrets;
}

/* The id of the master key that the database knows; false when there is none yet. */
static enum err read_master(struct db_conn *db, bool *ret_known, struct secrets_master_id *ret_id)
{
    const struct db_args none = {0};
    struct db_rows *rows = NULL;
    enum err err = db_exec(db, SQL_SECRET_MASTER_GET, NULL, &none, &rows);
    if (err == ERR_NONE) {
        *ret_known =
            db_rows_count(rows) > 0 &&
            db_bytes(rows, 0, 0, ret_id->bytes, sizeof ret_id->bytes) == sizeof ret_id->bytes;
    }
    db_rows_free(rows);
    return err;
}

void secret_store_check(void)
{
    struct secrets_master_id known;
    struct secrets_master_id ours;
    bool there = false;
    struct db_conn *db = db_conn_new(DB_APP);
    if (read_master(db, &there, &known) == ERR_NONE && there &&
        secrets_master(secrets, true, &ours) && !secrets_has_master(secrets, &known)) {
        log_error("%s/master.key is not the one that this database's secrets were sealed with: "
                  "logins and other secrets do not work until the right one is there",
                  config.keys_dir);
    }
    db_conn_free(db);
}

/* ------------------------------------------------------------------ keys */

static enum err take_key(const struct uuid *org, const struct db_rows *rows,
                         struct secret_key *ret_key)
{
    struct secret_wrapped wrapped;
    int64_t version = db_i64(rows, 0, db_rows_col(rows, "version"));
    if (db_bytes(rows, 0, db_rows_col(rows, "master"), wrapped.master.bytes,
                 sizeof wrapped.master.bytes) != sizeof wrapped.master.bytes ||
        db_bytes(rows, 0, db_rows_col(rows, "wrapped"), wrapped.bytes, sizeof wrapped.bytes) !=
            sizeof wrapped.bytes ||
        !secret_key_unwrap(secrets, org, version, &wrapped, ret_key)) {
        return ERR_UNAVAILABLE;
    }
    return ERR_NONE;
}

/* ERR_NOT_FOUND when there is none. version 0 = the newest. */
static enum err find_key(struct db_conn *db, const struct uuid *org, int64_t version,
                         struct secret_key *ret_key)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    if (version > 0) {
        db_arg_i64(&args, arena, version);
    }
    enum err err =
        db_exec(db, version > 0 ? SQL_ORG_KEY_GET_VERSION : SQL_ORG_KEY_GET, org, &args, &rows);
    if (err == ERR_NONE) {
        err = db_rows_count(rows) == 0 ? ERR_NOT_FOUND : take_key(org, rows, ret_key);
    }
    db_rows_free(rows);
    return err;
}

/* Offers a first key: it is stored unless another was, or the master key has changed since. */
static enum err offer_key(struct db_conn *db, const struct uuid *org)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    CLEANUP(secret_key_clear) struct secret_key key;
    struct secret_wrapped wrapped;
    struct secrets_master_id present;
    struct db_args claim = {0};
    struct db_args offer = {0};
    struct db_rows *rows = NULL;
    if (!secrets_master(secrets, true, &present)) {
        return ERR_UNAVAILABLE;
    }
    db_arg_bytes(&claim, arena, present.bytes, sizeof present.bytes);
    enum err err = db_exec(db, SQL_SECRET_MASTER_CLAIM, NULL, &claim, &rows);
    db_rows_free(rows);
    if (err != ERR_NONE) {
        return err;
    }
    secret_key_make(org, 1, &key);
    secret_key_wrap(secrets, &key, &wrapped);
    db_arg_bytes(&offer, arena, wrapped.bytes, sizeof wrapped.bytes);
    db_arg_bytes(&offer, arena, wrapped.master.bytes, sizeof wrapped.master.bytes);
    rows = NULL;
    err = db_exec(db, SQL_ORG_KEY_MAKE, org, &offer, &rows);
    db_rows_free(rows);
    return err;
}

enum err secret_key_get(struct db_conn *db, const struct uuid *org, struct secret_key *ret_key)
{
    enum err err = find_key(db, org, 0, ret_key);
    for (int i = 0; err == ERR_NOT_FOUND && i < TRIES; i++) {
        err = offer_key(db, org);
        if (err == ERR_NONE) {
            err = find_key(db, org, 0, ret_key);
        }
    }
    if (err == ERR_NOT_FOUND) {
        log_error("a first key could not be stored: keys_dir/master.key is not the one that this "
                  "database knows");
    }
    return err == ERR_NONE ? ERR_NONE : ERR_UNAVAILABLE;
}

/* ------------------------------------------------------------------ secrets */

enum err secret_store_seal(struct db_conn *db, const struct uuid *org,
                           const struct secret_place *place, struct str plain, struct arena *arena,
                           struct str *ret_sealed)
{
    CLEANUP(secret_key_clear) struct secret_key key = {0};
    enum err err = secret_key_get(db, org, &key);
    if (err == ERR_NONE) {
        *ret_sealed = secret_seal(&key, place, plain, arena);
    }
    return err;
}

enum err secret_store_unseal(struct db_conn *db, const struct uuid *org,
                             const struct secret_place *place, struct str sealed,
                             struct arena *arena, struct str *ret_plain)
{
    CLEANUP(secret_key_clear) struct secret_key key = {0};
    int64_t version = secret_version(sealed);
    enum err err = version == 0 ? ERR_NOT_FOUND : find_key(db, org, version, &key);
    if (err == ERR_NONE && !secret_unseal(&key, place, sealed, arena, ret_plain)) {
        err = ERR_NOT_FOUND;
    }
    if (err == ERR_NOT_FOUND) {
        log_error("a secret of %s does not open: its row was changed or moved", place->table);
        err = ERR_INTERNAL;
    }
    return err;
}

struct str secret_column(const struct db_rows *rows, int row, int col, struct arena *arena)
{
    struct str text = db_text(rows, row, col); /* in hex */
    if (db_is_null(rows, row, col) || text.len > 2 * SEALED_MAX) {
        return (struct str){0};
    }
    char *data = arena_alloc(arena, text.len / 2 + 1);
    return (struct str){data, db_bytes(rows, row, col, data, text.len / 2 + 1)};
}
