/* `musterd platform-admin`: who may make organizations. */
#include "server/platform_admin.h"

#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "db/db.h"

#define ORGS_MAX 14 /* audit rows in one transaction beside the change itself */

static const char *audit_body(struct arena *arena, const char *user, const struct uuid *person,
                              bool admin)
{
    CLEANUP(buf_free) struct buf text = {0};
    char actor[64];
    struct enc enc;
    /* Who holds a shell on the server is not known better than this. */
    (void)snprintf(actor, sizeof(actor), "musterd platform-admin (uid %u)", (unsigned)getuid());
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "actor");
    enc_cstr(&enc, actor);
    enc_key(&enc, "action");
    enc_cstr(&enc, admin ? "platform_admin.grant" : "platform_admin.revoke");
    enc_key(&enc, "target");
    enc_uuid(&enc, person);
    enc_key(&enc, "target_name");
    enc_cstr(&enc, user);
    enc_key(&enc, "outcome");
    enc_cstr(&enc, "done");
    enc_obj_end(&enc);
    return arena_strndup(arena, text.ptr, text.len);
}

/* The change and its audit rows, in one transaction. */
static enum err store(struct db_conn *conn, struct arena *arena, const struct db_rows *rows,
                      const char *user, bool admin)
{
    struct uuid person;
    struct uuid orgs[ORGS_MAX];
    struct db_args args[2] = {0};
    struct db_unit units[ORGS_MAX + 1] = {0};
    size_t count = 1;
    if (!db_uuid(rows, 0, db_rows_col(rows, "person_id"), &person)) {
        return ERR_INTERNAL;
    }
    db_arg_uuid(&args[0], arena, &person);
    db_arg_bool(&args[0], admin);
    db_arg(&args[1], audit_body(arena, user, &person, admin));
    units[0] = (struct db_unit){.sql = SQL_PERSON_PLATFORM_SET, .args = &args[0]};
    for (int i = 0; i < db_rows_count(rows) && count <= ORGS_MAX; i++) {
        if (db_uuid(rows, i, db_rows_col(rows, "org_id"), &orgs[count - 1])) {
            units[count] = (struct db_unit){
                .sql = SQL_SIGN_IN_AUDIT, .org = &orgs[count - 1], .args = &args[1]};
            count++;
        }
    }
    enum err err = db_exec_all(conn, units, count);
    for (size_t i = 0; i < count; i++) {
        db_rows_free(units[i].rows);
    }
    return err;
}

enum err platform_admin_set(const char *user, bool admin, char *error, size_t error_cap)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new((size_t)64 * 1024);
    struct db_conn *conn = db_conn_new(DB_APP);
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    db_arg(&args, user);
    enum err err = db_exec(conn, SQL_SIGN_IN_PERSON, NULL, &args, &rows);
    if (err == ERR_NONE && db_rows_count(rows) == 0) {
        err = ERR_NOT_FOUND;
        (void)snprintf(error, error_cap,
                       "there is no local person \"%.80s\" who belongs to an organization", user);
    } else {
        err = err == ERR_NONE ? store(conn, arena, rows, user, admin) : err;
        (void)snprintf(error, error_cap, "the database cannot be used: %s", db_conn_error(conn));
    }
    db_rows_free(rows);
    db_conn_free(conn);
    return err;
}
