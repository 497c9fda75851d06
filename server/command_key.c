/* `musterd key list` and `key rotate`: the keys that sign the clusters' commands. */
#include "server/command_key.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/log.h"
#include "db/db.h"
#include "server/config.h"
#include "server/keys.h"

#define ERROR_MAX 512
#define ARENA_CAP ((size_t)1 << 20)
#define KEY_TEXT_CAP 96

/* A cluster that has a key. */
struct found {
    struct uuid org;
    struct uuid cluster;
    char name[256];
    int64_t newest;
    int64_t waiting;
    bool under_way; /* a former key still signs */
    uint8_t public_key[ED25519_PUBLIC_LEN];
};

struct work {
    struct db_conn *db;
    struct arena *arena;
    const char *only;
    size_t seen; /* clusters */
    struct found found;
};

static struct db_rows *query(struct work *work, enum sql_id sql, const struct uuid *org,
                             const struct db_args *args)
{
    struct db_rows *rows = NULL;
    if (db_exec(work->db, sql, org, args, &rows) != ERR_NONE) {
        log_error("the database cannot be used: %s", db_conn_error(work->db));
        return NULL;
    }
    return rows;
}

static void print_row(const struct db_rows *rows, int row)
{
    uint8_t key[ED25519_PUBLIC_LEN];
    char text[KEY_TEXT_CAP] = "";
    bool numbered = !db_is_null(rows, row, db_rows_col(rows, "n"));
    int64_t n = numbered ? db_i64(rows, row, db_rows_col(rows, "n")) : 1;
    int64_t newest = db_i64(rows, row, db_rows_col(rows, "newest"));
    int64_t waiting = db_i64(rows, row, db_rows_col(rows, "waiting"));
    bool retired = !db_is_null(rows, row, db_rows_col(rows, "retired_at"));
    char state[64] = "signs";
    if (db_bytes(rows, row, db_rows_col(rows, "public_key"), key, sizeof key) == sizeof key) {
        crypto_b64(key, sizeof key, text);
    }
    if (retired) {
        (void)snprintf(state, sizeof state, "retired");
    } else if (n < newest) {
        (void)snprintf(state, sizeof state, "signs until %lld agents know number %lld",
                       (long long)waiting, (long long)newest);
    }
    (void)printf("%.*s/%.*s %lld %s %.*s %s\n",
                 STR_FMT(db_text(rows, row, db_rows_col(rows, "org"))),
                 STR_FMT(db_text(rows, row, db_rows_col(rows, "name"))), (long long)n, text,
                 STR_FMT(db_text(rows, row, db_rows_col(rows, "created_at"))), state);
}

static void keep_found(struct work *work, const struct db_rows *rows, int row,
                       const struct uuid *org)
{
    struct found *found = &work->found;
    int64_t n = db_i64(rows, row, db_rows_col(rows, "n"));
    struct uuid cluster;
    if (!db_uuid(rows, row, db_rows_col(rows, "id"), &cluster)) {
        return;
    }
    if (work->seen == 0 || !uuid_eq(&cluster, &found->cluster)) {
        work->seen++;
        *found = (struct found){.org = *org, .cluster = cluster};
        (void)snprintf(found->name, sizeof found->name, "%.*s",
                       STR_FMT(db_text(rows, row, db_rows_col(rows, "name"))));
        found->newest = db_i64(rows, row, db_rows_col(rows, "newest"));
        found->waiting = db_i64(rows, row, db_rows_col(rows, "waiting"));
        (void)db_bytes(rows, row, db_rows_col(rows, "command_public_key"), found->public_key,
                       sizeof found->public_key);
    }
    found->under_way = found->under_way || (n > 0 && n < found->newest &&
                                            db_is_null(rows, row, db_rows_col(rows, "retired_at")));
}

/* Every key of every org, printed or counted. */
static bool visit(struct work *work, bool print)
{
    const struct db_args none = {0};
    struct db_rows *orgs = query(work, SQL_ORG_LIST_ALL, NULL, &none);
    bool good = orgs != NULL;
    for (int i = 0; good && i < db_rows_count(orgs); i++) {
        struct db_args args = {0};
        struct uuid org;
        db_arg(&args, work->only);
        good = db_uuid(orgs, i, 0, &org);
        struct db_rows *rows = good ? query(work, SQL_COMMAND_KEY_LIST, &org, &args) : NULL;
        good = rows != NULL;
        for (int row = 0; good && row < db_rows_count(rows); row++) {
            if (print) {
                print_row(rows, row);
            }
            keep_found(work, rows, row, &org);
        }
        db_rows_free(rows);
    }
    db_rows_free(orgs);
    return good;
}

static bool open_work(struct work *work, const char *cluster)
{
    *work = (struct work){.only = cluster, .arena = arena_new(ARENA_CAP)};
    work->db = db_conn_new(DB_LOOP);
    return true;
}

static void close_work(struct work *work)
{
    db_conn_free(work->db);
    arena_free(work->arena);
}

bool command_key_print(const char *cluster)
{
    struct work work;
    bool good = open_work(&work, cluster) && visit(&work, true);
    if (good && cluster != NULL && work.seen == 0) {
        log_error("there is no cluster \"%.80s\" with a key; it gets one with its first node",
                  cluster);
        good = false;
    }
    close_work(&work);
    return good;
}

static const char *audit_body(struct work *work, int64_t n)
{
    CLEANUP(buf_free) struct buf text = {0};
    char actor[64];
    struct enc enc;
    /* Who holds a shell on the server is not known better than this. */
    (void)snprintf(actor, sizeof actor, "musterd key rotate (uid %u)", (unsigned)getuid());
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "actor");
    enc_cstr(&enc, actor);
    enc_key(&enc, "action");
    enc_cstr(&enc, "key.rotate");
    enc_key(&enc, "target");
    enc_uuid(&enc, &work->found.cluster);
    enc_key(&enc, "target_name");
    enc_cstr(&enc, work->found.name);
    enc_key(&enc, "outcome");
    enc_cstr(&enc, "done");
    enc_key(&enc, "after");
    enc_obj(&enc);
    enc_key(&enc, "key");
    enc_i64(&enc, n);
    enc_obj_end(&enc);
    enc_obj_end(&enc);
    return arena_strndup(work->arena, text.ptr, text.len);
}

static bool retire(struct work *work, struct keys *keys, bool now)
{
    struct db_args args = {0};
    db_arg_uuid(&args, work->arena, &work->found.cluster);
    db_arg_bool(&args, now);
    struct db_rows *rows = query(work, SQL_COMMAND_KEY_RETIRE, &work->found.org, &args);
    for (int row = 0; row < db_rows_count(rows); row++) {
        keys_cluster_retire(keys, &work->found.cluster, db_i64(rows, row, 0));
        log_info("key %lld of %s is retired", (long long)db_i64(rows, row, 0), work->found.name);
    }
    bool good = rows != NULL;
    db_rows_free(rows);
    return good;
}

/* The successor's file comes first: from the commit on servers sign with it. */
static bool add_successor(struct work *work, struct keys *keys)
{
    const struct found *found = &work->found;
    struct db_args args = {0};
    uint8_t present[ED25519_PUBLIC_LEN];
    uint8_t next[ED25519_PUBLIC_LEN];
    uint8_t signature[ED25519_SIGNATURE_LEN];
    char id[UUID_TEXT_LEN + 1];
    char key[KEY_TEXT_CAP];
    if (!keys_cluster_public(keys, &found->cluster, found->newest, false, present) ||
        !crypto_equal(present, found->public_key, sizeof present)) {
        log_error("keys_dir does not hold the present key of %s, so it cannot sign a successor. "
                  "Put it back from a copy.",
                  found->name);
        return false;
    }
    uuid_format(&found->cluster, id);
    if (!keys_cluster_public(keys, &found->cluster, found->newest + 1, true, next)) {
        return false;
    }
    crypto_b64(next, sizeof next, key);
    const char *text = arena_printf(work->arena, "muster-command-key\n%s\n%lld\n%s", id,
                                    (long long)found->newest + 1, key);
    if (!keys_cluster_sign(keys, &found->cluster, found->newest, str_of(text), signature)) {
        return false;
    }
    db_arg_uuid(&args, work->arena, &found->cluster);
    db_arg_i64(&args, work->arena, found->newest);
    db_arg_bytes(&args, work->arena, next, sizeof next);
    db_arg_bytes(&args, work->arena, signature, sizeof signature);
    db_arg(&args, audit_body(work, found->newest + 1));
    struct db_rows *rows = query(work, SQL_COMMAND_KEY_ADD, &found->org, &args);
    bool good = db_rows_count(rows) == 1;
    if (good) {
        log_info("key %lld of %s signs once an agent knows it; %lld agents are told",
                 (long long)found->newest + 1, found->name,
                 (long long)db_i64(rows, 0, db_rows_col(rows, "waiting")));
    } else if (rows != NULL) {
        log_error("another rotation of %s was faster", found->name);
    }
    db_rows_free(rows);
    return good;
}

bool command_key_rotate(const char *cluster, bool finish)
{
    struct work work;
    char error[ERROR_MAX] = "";
    struct keys *keys = keys_open(config.keys_dir, error, sizeof error);
    bool good = open_work(&work, cluster) && keys != NULL && visit(&work, false);
    if (keys == NULL) {
        log_error("%s", error);
    } else if (good && work.seen != 1) {
        log_error(work.seen == 0 ? "there is no cluster \"%.80s\" with a key"
                                 : "several clusters are called \"%.80s\": give the id",
                  cluster);
        good = false;
    } else if (good && work.found.under_way && !finish) {
        log_error("a rotation of %s is under way: %lld agents do not know the newest key yet. "
                  "Wait for them, or end it by --finish; then they follow when they are back.",
                  work.found.name, (long long)work.found.waiting);
        good = false;
    } else if (good && finish) {
        good = retire(&work, keys, true);
    } else if (good) {
        good = add_successor(&work, keys) && retire(&work, keys, false);
    }
    keys_close(keys);
    close_work(&work);
    return good;
}
