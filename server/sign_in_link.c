/* `musterd sign-in-link`: a link that signs a person in once, audited in each of the person's orgs.
 */
#include "server/sign_in_link.h"

#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/crypto.h"
#include "base/encode.h"
#include "db/db.h"
#include "server/auth.h"
#include "server/config.h"

#define ORGS_MAX 14 /* audit rows in one transaction beside the link itself */

/* The person and the orgs whose audit gets a row. */
static enum err find_person(struct db_conn *conn, const char *user, struct uuid *ret_person,
                            struct uuid orgs[ORGS_MAX], size_t *ret_count)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    db_arg(&args, user);
    enum err err = db_exec(conn, SQL_SIGN_IN_PERSON, NULL, &args, &rows);
    if (err == ERR_NONE && db_rows_count(rows) == 0) {
        err = ERR_NOT_FOUND;
    }
    *ret_count = 0;
    for (int i = 0; err == ERR_NONE && i < db_rows_count(rows) && *ret_count < ORGS_MAX; i++) {
        if (db_uuid(rows, i, db_rows_col(rows, "person_id"), ret_person) &&
            db_uuid(rows, i, db_rows_col(rows, "org_id"), &orgs[*ret_count])) {
            (*ret_count)++;
        }
    }
    db_rows_free(rows);
    return err;
}

static const char *audit_body(struct arena *arena, const char *user, const struct uuid *person)
{
    CLEANUP(buf_free) struct buf text = {0};
    char actor[64];
    struct enc enc;
    /* Who holds a shell on the server is not known better than this. */
    (void)snprintf(actor, sizeof(actor), "musterd sign-in-link (uid %u)", (unsigned)getuid());
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "actor");
    enc_cstr(&enc, actor);
    enc_key(&enc, "action");
    enc_cstr(&enc, "sign_in_link.create");
    enc_key(&enc, "target");
    enc_uuid(&enc, person);
    enc_key(&enc, "target_name");
    enc_cstr(&enc, user);
    enc_key(&enc, "outcome");
    enc_cstr(&enc, "done");
    enc_obj_end(&enc);
    return arena_strndup(arena, text.ptr, text.len);
}

static enum err store(struct db_conn *conn, struct arena *arena, const char *user,
                      const char *token)
{
    struct uuid person = {0};
    struct uuid orgs[ORGS_MAX];
    struct db_args args[2] = {0};
    struct db_unit units[ORGS_MAX + 1] = {0};
    uint8_t hash[SHA256_LEN];
    size_t count = 0;
    enum err err = find_person(conn, user, &person, orgs, &count);
    if (err != ERR_NONE) {
        return err;
    }
    crypto_sha256(str_of(token), hash);
    db_arg_bytes(&args[0], arena, hash, sizeof(hash));
    db_arg_uuid(&args[0], arena, &person);
    db_arg_i64(&args[0], arena, SIGN_IN_LINK_SECONDS);
    db_arg(&args[1], audit_body(arena, user, &person));
    units[0] = (struct db_unit){.sql = SQL_SIGN_IN_LINK_CREATE, .args = &args[0]};
    for (size_t i = 0; i < count; i++) {
        units[i + 1] =
            (struct db_unit){.sql = SQL_SIGN_IN_AUDIT, .org = &orgs[i], .args = &args[1]};
    }
    err = db_exec_all(conn, units, count + 1);
    for (size_t i = 0; i <= count; i++) {
        db_rows_free(units[i].rows);
    }
    return err;
}

enum err sign_in_link_make(const char *user, char *link, size_t link_cap, char *error,
                           size_t error_cap)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new((size_t)64 * 1024);
    char token[AUTH_TOKEN_MAX];
    char base[512];
    struct db_conn *conn = db_conn_new(DB_APP);
    crypto_token(AUTH_PREFIX_LINK, token);
    enum err err = store(conn, arena, user, token);
    if (err == ERR_NOT_FOUND) {
        (void)snprintf(error, error_cap, "there is no person \"%.80s\" who may sign in", user);
    } else if (err != ERR_NONE) {
        (void)snprintf(error, error_cap, "the link could not be stored: %s", db_conn_error(conn));
    }
    db_conn_free(conn);
    if (err == ERR_NONE) {
        config_address(base, sizeof(base));
        (void)snprintf(link, link_cap, "%s/sign-in#token=%s", base, token);
    }
    return err;
}
