/* `musterd init`: the first organization, project, cluster, administrator and API token. */
#include "server/init.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/uuid.h"
#include "db/db.h"

#define TOKEN_PREFIX "mst_"
#define TOKEN_TEXT_MAX 128
#define INIT_UNITS 10

/* The token in the file, or a new one written to it. */
static enum err token_of_file(const char *path, char token[TOKEN_TEXT_MAX], char *error,
                              size_t error_cap)
{
    CLEANUP(buf_free) struct buf text = {0};
    if (file_read(path, TOKEN_TEXT_MAX, &text) == 0) {
        struct str have = str_trim(buf_str(&text));
        if (str_starts(have, STR(TOKEN_PREFIX)) && have.len < TOKEN_TEXT_MAX) {
            memcpy(token, have.ptr, have.len);
            token[have.len] = '\0';
            return ERR_NONE;
        }
    }
    crypto_token(TOKEN_PREFIX, token);
    int failed = file_write_durable(path, str_of(token), 0600);
    if (failed != 0) {
        (void)snprintf(error, error_cap, "the token file %s could not be written: %s", path,
                       strerror(failed));
        return ERR_UNAVAILABLE;
    }
    return ERR_NONE;
}

static void add_unit(struct db_unit *units, size_t *count, enum sql_id sql,
                     const struct db_args *args)
{
    units[(*count)++] = (struct db_unit){.sql = sql, .args = args};
}

/* The arguments of each statement, in the order in which they run. */
static size_t fill_units(struct arena *arena, const struct init_options *options,
                         const uint8_t hash[SHA256_LEN], struct db_args args[INIT_UNITS],
                         struct db_unit units[INIT_UNITS])
{
    struct uuid ids[5];
    for (size_t i = 0; i < COUNTOF(ids); i++) {
        ids[i] = uuid_v7();
    }
    db_arg_uuid(&args[0], arena, &ids[0]);
    db_arg(&args[0], options->org);
    db_arg(&args[0], options->demo ? "Demo: simulated nodes" : "");
    db_arg_bool(&args[0], options->demo);
    for (int i = 1; i <= 3; i++) {
        db_arg(&args[i], options->org);
    }
    db_arg(&args[4], options->org);
    db_arg_uuid(&args[4], arena, &ids[1]);
    db_arg(&args[4], options->project);
    db_arg(&args[5], options->org);
    db_arg_uuid(&args[5], arena, &ids[2]);
    db_arg(&args[5], options->project);
    db_arg(&args[5], options->cluster);
    db_arg_i64(&args[5], arena, options->healthy_delay_seconds);
    db_arg(&args[6], options->org);
    db_arg_uuid(&args[7], arena, &ids[3]);
    db_arg(&args[7], options->admin);
    db_arg(&args[8], options->org);
    db_arg(&args[8], options->admin);
    db_arg(&args[9], options->org);
    db_arg_uuid(&args[9], arena, &ids[4]);
    db_arg_bool(&args[9], !options->demo);
    db_arg_bytes(&args[9], arena, hash, SHA256_LEN);

    static const enum sql_id order[INIT_UNITS] = {
        SQL_INIT_ORG,        SQL_INIT_ORG_HEAD,      SQL_INIT_AUDIT_HEAD, SQL_INIT_AUDIT,
        SQL_INIT_PROJECT,    SQL_INIT_CLUSTER,       SQL_INIT_ROLLUP,     SQL_INIT_PERSON,
        SQL_INIT_MEMBERSHIP, SQL_INIT_SERVICE_TOKEN,
    };
    size_t count = 0;
    for (size_t i = 0; i < COUNTOF(order); i++) {
        add_unit(units, &count, order[i], &args[i]);
    }
    return count;
}

enum err init_run(const struct init_options *options, char *error, size_t error_cap)
{
    char token[TOKEN_TEXT_MAX];
    enum err err = token_of_file(options->token_file, token, error, error_cap);
    if (err != ERR_NONE) {
        return err;
    }
    uint8_t hash[SHA256_LEN];
    crypto_sha256(str_of(token), hash);

    CLEANUP(arena_freep) struct arena *arena = arena_new(64 << 10);
    struct db_args args[INIT_UNITS] = {0};
    struct db_unit units[INIT_UNITS] = {0};
    size_t count = fill_units(arena, options, hash, args, units);
    struct db_conn *conn = db_conn_new(DB_MIGRATE);
    err = db_exec_all(conn, units, count);
    if (err != ERR_NONE) {
        (void)snprintf(error, error_cap, "organization %s could not be made: %s", options->org,
                       db_conn_error(conn));
    }
    for (size_t i = 0; i < count; i++) {
        db_rows_free(units[i].rows);
    }
    db_conn_free(conn);
    return err;
}
