/* `musterd key rotate-data`: the next version of an org's data key, and its secrets sealed anew. */
#include "server/data_key_command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/log.h"
#include "server/secret_store.h"

#define ERROR_MAX 512
#define ARENA_CAP ((size_t)4 << 20)
#define PLACE_MAX 64

struct turn {
    struct db_conn *db; /* as the servers: row security holds here too */
    struct uuid org;
    const char *name;
    int64_t version; /* the newest */
    int64_t resealed;
    int64_t lost; /* do not open */
};

static const char *audit_body(struct arena *arena, const struct turn *turn, const char *action)
{
    CLEANUP(buf_free) struct buf text = {0};
    char actor[64];
    struct enc enc;
    /* Who holds a shell on the server is not known better than this. */
    (void)snprintf(actor, sizeof actor, "musterd key rotate-data (uid %u)", (unsigned)getuid());
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "actor");
    enc_cstr(&enc, actor);
    enc_key(&enc, "action");
    enc_cstr(&enc, action);
    enc_key(&enc, "target");
    enc_uuid(&enc, &turn->org);
    enc_key(&enc, "target_name");
    enc_cstr(&enc, turn->name);
    enc_key(&enc, "outcome");
    enc_cstr(&enc, "done");
    enc_key(&enc, "after");
    enc_obj(&enc);
    enc_key(&enc, "version");
    enc_i64(&enc, turn->version);
    enc_key(&enc, "resealed");
    enc_i64(&enc, turn->resealed);
    enc_obj_end(&enc);
    enc_obj_end(&enc);
    return arena_strndup(arena, text.ptr, text.len);
}

static enum err run(const struct turn *turn, enum sql_id sql, const struct db_args *args,
                    int64_t *ret_count)
{
    struct db_rows *rows = NULL;
    enum err err = db_exec(turn->db, sql, &turn->org, args, &rows);
    if (err == ERR_NONE && ret_count != NULL) {
        *ret_count = db_i64(rows, 0, 0);
    }
    db_rows_free(rows);
    if (err != ERR_NONE) {
        log_error("the database cannot be used: %s", db_conn_error(turn->db));
    }
    return err;
}

/* ------------------------------------------------------------------ the next version */

static bool make_next(struct turn *turn)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    CLEANUP(secret_key_clear) struct secret_key key;
    struct secret_wrapped wrapped;
    struct secrets_master_id present;
    struct db_args args = {0};
    int64_t made = 0;
    if (!secrets_master(secret_store_secrets(), true, &present)) {
        return false;
    }
    turn->version++;
    secret_key_make(&turn->org, turn->version, &key);
    secret_key_wrap(secret_store_secrets(), &key, &wrapped);
    db_arg_i64(&args, arena, turn->version);
    db_arg_bytes(&args, arena, wrapped.bytes, sizeof wrapped.bytes);
    db_arg_bytes(&args, arena, wrapped.master.bytes, sizeof wrapped.master.bytes);
    db_arg(&args, audit_body(arena, turn, "key.rotate_data"));
    if (run(turn, SQL_ORG_KEY_NEXT, &args, &made) != ERR_NONE) {
        return false;
    }
    if (made == 0) {
        log_error("another rotation of %s was faster, or the master key is being turned: run it "
                  "again afterwards",
                  turn->name);
    }
    return made == 1;
}

/* ------------------------------------------------------------------ secrets */

/* A row of secret_stale. What a server changed meanwhile is sealed by the newest version already;
 * what does not open is left as it is. */
static bool reseal(struct turn *turn, const struct db_rows *rows, int row, const char *place_name)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    struct secret_place place = {.table = place_name};
    struct db_args args = {0};
    struct str plain;
    struct str fresh;
    int64_t changed = 0;
    struct str sealed = secret_column(rows, row, db_rows_col(rows, "sealed"), arena);
    if (sealed.ptr == NULL || !db_uuid(rows, row, db_rows_col(rows, "id"), &place.id)) {
        turn->lost++;
        return true;
    }
    enum err err = secret_store_unseal(turn->db, &turn->org, &place, sealed, arena, &plain);
    if (err == ERR_INTERNAL) {
        turn->lost++;
        return true;
    }
    if (err != ERR_NONE ||
        secret_store_seal(turn->db, &turn->org, &place, plain, arena, &fresh) != ERR_NONE) {
        return false;
    }
    explicit_bzero((char *)plain.ptr, plain.len);
    db_arg(&args, place.table);
    db_arg_uuid(&args, arena, &place.id);
    db_arg_bytes(&args, arena, (const uint8_t *)sealed.ptr, sealed.len);
    db_arg_bytes(&args, arena, (const uint8_t *)fresh.ptr, fresh.len);
    err = run(turn, SQL_SECRET_RESEAL, &args, &changed);
    turn->resealed += changed;
    return err == ERR_NONE;
}

/* All that former versions sealed, from place to place. */
static bool reseal_all(struct turn *turn)
{
    char place[PLACE_MAX] = "";
    struct uuid id = {0};
    bool good = true;
    for (int count = 1; good && count > 0;) {
        CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
        struct db_args args = {0};
        struct db_rows *rows = NULL;
        db_arg_i64(&args, arena, turn->version);
        db_arg(&args, place);
        db_arg_uuid(&args, arena, &id);
        good = db_exec(turn->db, SQL_SECRET_STALE, &turn->org, &args, &rows) == ERR_NONE;
        if (!good) {
            log_error("the database cannot be read: %s", db_conn_error(turn->db));
        }
        count = good ? db_rows_count(rows) : 0;
        for (int i = 0; good && i < count; i++) {
            struct str name = db_text(rows, i, db_rows_col(rows, "place"));
            (void)snprintf(place, sizeof place, "%.*s", STR_FMT(name));
            good = db_uuid(rows, i, db_rows_col(rows, "id"), &id) && reseal(turn, rows, i, place);
        }
        db_rows_free(rows);
    }
    return good;
}

static bool tell(const struct turn *turn)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    struct db_args args = {0};
    db_arg(&args, audit_body(arena, turn, "key.data_rotated"));
    if (run(turn, SQL_ORG_KEY_TURNED, &args, NULL) != ERR_NONE) {
        return false;
    }
    log_info("version %lld of the data key of %s is in use; %lld secrets were sealed anew",
             (long long)turn->version, turn->name, (long long)turn->resealed);
    if (turn->lost > 0) {
        log_warning("%lld secrets of %s do not open and were left: set them anew",
                    (long long)turn->lost, turn->name);
    }
    return true;
}

/* A rotation that was cut off is ended first; it counts as this one. */
static bool turn_org(struct turn *turn)
{
    if (!reseal_all(turn)) {
        return false;
    }
    if (turn->resealed > 0) {
        log_info("%s: a rotation that was cut off before is ended now", turn->name);
        return tell(turn);
    }
    turn->lost = 0;
    return make_next(turn) && reseal_all(turn) && tell(turn);
}

bool data_key_rotate(const char *org)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    char error[ERROR_MAX] = "";
    if (!secret_store_open(error, sizeof error)) {
        log_error("%s", error);
        return false;
    }
    struct db_conn *owner = db_conn_new(DB_MIGRATE);
    struct db_conn *app = db_conn_new(DB_APP);
    db_arg(&args, org);
    bool good = db_exec(owner, SQL_ORG_KEY_ORGS, NULL, &args, &rows) == ERR_NONE;
    int count = good ? db_rows_count(rows) : 0;
    if (!good) {
        log_error("the database cannot be read: %s", db_conn_error(owner));
    } else if (count == 0 && org != NULL) {
        log_error("there is no organization \"%.80s\" with a data key: it has no secrets yet", org);
        good = false;
    }
    for (int i = 0; good && i < count; i++) {
        struct turn turn = {.db = app, .version = db_i64(rows, i, db_rows_col(rows, "version"))};
        struct str name = db_text(rows, i, db_rows_col(rows, "name"));
        turn.name = arena_strndup(arena, name.ptr, name.len);
        good = db_uuid(rows, i, db_rows_col(rows, "org_id"), &turn.org) && turn_org(&turn);
    }
    if (!good && count > 0) {
        log_error("the rotation did not end; run it again, it goes on where it stopped");
    }
    db_rows_free(rows);
    db_conn_free(app);
    db_conn_free(owner);
    return good;
}
