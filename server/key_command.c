/* `musterd key`: rotation of the master key, one org's key after the other. */
#include "server/key_command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/log.h"
#include "server/secret_store.h"

#define ERROR_MAX 512
#define ARENA_CAP ((size_t)1 << 20)

static const char *audit_body(struct arena *arena)
{
    CLEANUP(buf_free) struct buf text = {0};
    char actor[64];
    struct enc enc;
    /* Who holds a shell on the server is not known better than this. */
    (void)snprintf(actor, sizeof actor, "musterd key rotate-master (uid %u)", (unsigned)getuid());
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "actor");
    enc_cstr(&enc, actor);
    enc_key(&enc, "action");
    enc_cstr(&enc, "key.rotate_master");
    enc_key(&enc, "target");
    enc_null(&enc);
    enc_key(&enc, "target_name");
    enc_null(&enc);
    enc_key(&enc, "outcome");
    enc_cstr(&enc, "done");
    enc_obj_end(&enc);
    return arena_strndup(arena, text.ptr, text.len);
}

/* One row of org_key_stale. False: it cannot be opened, or the database is away. */
static bool rewrap(struct db_conn *db, const struct db_rows *rows, int row)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    CLEANUP(secret_key_clear) struct secret_key key = {0};
    struct secrets *secrets = secret_store_secrets();
    struct secret_wrapped old;
    struct secret_wrapped fresh;
    struct uuid org;
    struct db_args args = {0};
    struct db_rows *changed = NULL;
    int64_t version = db_i64(rows, row, db_rows_col(rows, "version"));
    if (!db_uuid(rows, row, db_rows_col(rows, "org_id"), &org) ||
        db_bytes(rows, row, db_rows_col(rows, "master"), old.master.bytes,
                 sizeof old.master.bytes) != sizeof old.master.bytes ||
        db_bytes(rows, row, db_rows_col(rows, "wrapped"), old.bytes, sizeof old.bytes) !=
            sizeof old.bytes ||
        !secret_key_unwrap(secrets, &org, version, &old, &key)) {
        return false;
    }
    secret_key_wrap(secrets, &key, &fresh);
    db_arg_i64(&args, arena, version);
    db_arg_bytes(&args, arena, old.bytes, sizeof old.bytes);
    db_arg_bytes(&args, arena, fresh.bytes, sizeof fresh.bytes);
    db_arg_bytes(&args, arena, fresh.master.bytes, sizeof fresh.master.bytes);
    db_arg(&args, audit_body(arena));
    enum err err = db_exec(db, SQL_ORG_KEY_REWRAP, &org, &args, &changed);
    db_rows_free(changed);
    if (err != ERR_NONE) {
        log_error("a key could not be stored: %s", db_conn_error(db));
    }
    return err == ERR_NONE;
}

/* From here on no server stores a key that the former master key wraps. */
static bool set_master(struct db_conn *db, struct arena *arena, const struct secrets_master_id *id)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    db_arg_bytes(&args, arena, id->bytes, sizeof id->bytes);
    enum err err = db_exec(db, SQL_SECRET_MASTER_SET, NULL, &args, &rows);
    db_rows_free(rows);
    if (err != ERR_NONE) {
        log_error("the database does not take the new master key: %s", db_conn_error(db));
    }
    return err == ERR_NONE;
}

static bool rewrap_all(struct db_conn *db, struct arena *arena, const struct secrets_master_id *id,
                       size_t *ret_count)
{
    struct db_args args = {0};
    bool good = true;
    db_arg_bytes(&args, arena, id->bytes, sizeof id->bytes);
    for (int count = 1; good && count > 0;) {
        struct db_rows *rows = NULL;
        good = db_exec(db, SQL_ORG_KEY_STALE, NULL, &args, &rows) == ERR_NONE;
        count = good ? db_rows_count(rows) : 0;
        for (int i = 0; good && i < count; i++) {
            good = rewrap(db, rows, i);
            *ret_count += good ? 1 : 0;
        }
        db_rows_free(rows);
    }
    return good;
}

/* A rotation begins only from the key that the database knows. */
static bool is_known(struct db_conn *db, struct secrets *secrets)
{
    const struct db_args none = {0};
    struct db_rows *rows = NULL;
    struct secrets_master_id known;
    enum err err = db_exec(db, SQL_SECRET_MASTER_GET, NULL, &none, &rows);
    bool good = err == ERR_NONE &&
                (db_rows_count(rows) == 0 ||
                 (db_bytes(rows, 0, 0, known.bytes, sizeof known.bytes) == sizeof known.bytes &&
                  secrets_has_master(secrets, &known)));
    db_rows_free(rows);
    if (err != ERR_NONE) {
        log_error("the database cannot be read: %s", db_conn_error(db));
    } else if (!good) {
        log_error("keys_dir/master.key is not the one that this database's secrets were sealed "
                  "with; put the right one there first");
    }
    return good;
}

bool key_rotate_master(void)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    struct secrets_master_id present;
    size_t count = 0;
    char error[ERROR_MAX] = "";
    if (!secret_store_open(error, sizeof error)) {
        log_error("%s", error);
        return false;
    }
    struct secrets *secrets = secret_store_secrets();
    struct db_conn *db = db_conn_new(DB_MIGRATE);
    bool good = is_known(db, secrets);
    int failed = good ? secrets_rotate_begin(secrets) : 0;
    good = good && failed == 0 && secrets_master(secrets, false, &present) &&
           set_master(db, arena, &present) && rewrap_all(db, arena, &present, &count);
    if (good) {
        failed = secrets_rotate_end(secrets);
        good = failed == 0;
    }
    db_conn_free(db);
    if (failed != 0) {
        log_error("the files of the master key could not be changed: %s", strerrordesc_np(failed));
    } else if (good) {
        log_info("the master key is a new one; %zu keys are wrapped by it", count);
    } else {
        log_error("the rotation did not end; run it again, it goes on where it stopped");
    }
    return good;
}
