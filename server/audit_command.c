/* `musterd audit`: checks the audit logs, and prints their signed heads. */
#include "server/audit_command.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "db/db.h"
#include "server/audit_head.h"
#include "server/config.h"

#define ERROR_MAX 512
#define ARENA_CAP ((size_t)AUDIT_HEADS_MAX * 64 * 4 + 1024 * 1024)

/* What the commands work with, for one org after the other. */
struct audit {
    struct db_conn *conn;
    struct audit_signer *signer;
    struct arena *arena;
    const char *heads;
    struct audit_head head; /* of the org at hand */
    const char *name;
    size_t agree; /* signed heads */
};

static enum err query(struct audit *audit, enum sql_id sql, const struct uuid *org,
                      const struct db_args *args, struct db_rows **ret_rows)
{
    static const struct db_args none = {0};
    enum err err = db_exec(audit->conn, sql, org, args != NULL ? args : &none, ret_rows);
    if (err != ERR_NONE) {
        log_error("the audit log cannot be read: %s", db_conn_error(audit->conn));
    }
    return err;
}

/* ------------------------------------------------------------------ every org, or one */

/* False when something failed or visit said so for one of them. */
static bool visit_orgs(struct audit *audit, const char *only, bool (*visit)(struct audit *audit))
{
    struct db_rows *orgs = NULL;
    bool good = query(audit, SQL_ORG_LIST_ALL, NULL, NULL, &orgs) == ERR_NONE;
    size_t seen = 0;
    int count = good ? db_rows_count(orgs) : 0;
    for (int i = 0; i < count; i++) {
        struct db_rows *rows = NULL;
        audit->head = (struct audit_head){.at_us = clock_wall_us()};
        audit->agree = 0;
        if (!db_uuid(orgs, i, 0, &audit->head.org) ||
            query(audit, SQL_AUDIT_ORG, &audit->head.org, NULL, &rows) != ERR_NONE) {
            good = false;
            continue;
        }
        struct str name = db_rows_count(rows) > 0 ? db_text(rows, 0, 0) : STR("");
        if (name.len > 0 && (only == NULL || str_eq_c(name, only))) {
            seen++;
            audit->name = arena_strndup(audit->arena, name.ptr, name.len);
            audit->head.seq = db_i64(rows, 0, db_rows_col(rows, "seq"));
            (void)db_bytes(rows, 0, db_rows_col(rows, "hash"), audit->head.hash,
                           sizeof(audit->head.hash));
            good = visit(audit) && good;
        }
        db_rows_free(rows);
        arena_reset(audit->arena);
    }
    db_rows_free(orgs);
    if (good && only != NULL && seen == 0) {
        log_error("there is no organization \"%.80s\"", only);
        return false;
    }
    return good;
}

static bool run(const char *org, const char *heads, bool (*visit)(struct audit *audit))
{
    char error[ERROR_MAX] = "";
    struct audit audit = {.heads = heads};
    audit.signer = audit_signer_open(config.keys_dir, error, sizeof(error));
    if (audit.signer == NULL) {
        log_error("%s", error);
        return false;
    }
    audit.conn = db_conn_new(DB_LOOP);
    audit.arena = arena_new(ARENA_CAP);
    bool good = visit_orgs(&audit, org, visit);
    arena_free(audit.arena);
    db_conn_free(audit.conn);
    audit_signer_close(audit.signer);
    return good;
}

/* ------------------------------------------------------------------ verify */

static bool say_bad(const struct audit *audit, const char *sentence)
{
    (void)printf("%s: %s\n", audit->name, sentence);
    return false;
}

/* The row that the statement found, in words. */
static const char *bad_row(struct audit *audit, const struct db_rows *rows)
{
    struct str why = db_text(rows, 0, db_rows_col(rows, "why"));
    long long seq = (long long)db_i64(rows, 0, db_rows_col(rows, "bad_seq"));
    long long before = (long long)db_i64(rows, 0, db_rows_col(rows, "seq_before"));
    if (str_eq_c(why, "changed")) {
        return arena_printf(audit->arena, "row %lld is not as it was written", seq);
    }
    if (str_eq_c(why, "gap") && seq > before + 1) {
        return arena_printf(audit->arena, "row %lld is missing: row %lld is the next one",
                            before + 1, seq);
    }
    if (str_eq_c(why, "gap")) {
        return arena_printf(audit->arena, "row %lld stands twice", seq);
    }
    return arena_printf(audit->arena, "row %lld does not follow from row %lld", seq, before);
}

/* NULL when the rows are a whole chain that ends where the head says. */
static const char *check_chain(struct audit *audit, const struct db_rows *rows)
{
    long long last = (long long)db_i64(rows, 0, db_rows_col(rows, "last_seq"));
    long long head = (long long)db_i64(rows, 0, db_rows_col(rows, "head_seq"));
    if (!db_is_null(rows, 0, db_rows_col(rows, "bad_seq"))) {
        return bad_row(audit, rows);
    }
    if (last < head) {
        return arena_printf(audit->arena,
                            "row %lld is missing: the log was cut off behind row %lld", last + 1,
                            last);
    }
    if (last > head) {
        return arena_printf(audit->arena, "row %lld is behind the end that the head names",
                            head + 1);
    }
    return db_bool(rows, 0, db_rows_col(rows, "head_agrees"))
               ? NULL
               : arena_printf(audit->arena, "row %lld is not the one that the head names", last);
}

/* NULL when the row of a signed head is still what was signed. */
static const char *check_signed(struct audit *audit, const struct audit_head *head)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new((size_t)64 * 1024);
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    uint8_t hash[SHA256_LEN] = {0};
    char at[STR_RFC3339_LEN + 1];
    str_format_rfc3339(head->at_us, at);
    db_arg_i64(&args, arena, head->seq);
    if (query(audit, SQL_AUDIT_HASH, &audit->head.org, &args, &rows) != ERR_NONE) {
        return "the log cannot be read";
    }
    bool there = db_rows_count(rows) > 0;
    if (there) {
        (void)db_bytes(rows, 0, 0, hash, sizeof(hash));
    }
    db_rows_free(rows);
    if (there && crypto_equal(hash, head->hash, sizeof(hash))) {
        return NULL;
    }
    return arena_printf(audit->arena,
                        there ? "row %lld or one before it is not what was signed at %s"
                              : "row %lld is missing: it was there when the head was signed at %s",
                        (long long)head->seq, at);
}

static const char *check_heads(struct audit *audit, const char *path)
{
    struct audit_heads heads;
    int failed = audit_heads_read(audit->signer, &audit->head.org, path, audit->arena, &heads);
    if (failed != 0) {
        return arena_printf(audit->arena, "the signed heads cannot be read: %s",
                            strerrordesc_np(failed));
    }
    for (size_t i = 0; i < heads.count; i++) {
        const char *bad = check_signed(audit, &heads.items[i]);
        if (bad != NULL) {
            return bad;
        }
    }
    audit->agree += heads.count;
    return heads.bad_line == 0
               ? NULL
               : arena_printf(audit->arena,
                              "line %zu of the signed heads was not signed with this key",
                              heads.bad_line);
}

static bool verify_org(struct audit *audit)
{
    struct db_rows *rows = NULL;
    if (query(audit, SQL_AUDIT_CHECK, &audit->head.org, NULL, &rows) != ERR_NONE) {
        return say_bad(audit, "the log cannot be read");
    }
    const char *bad = db_rows_count(rows) == 0 ? "the log has no head" : check_chain(audit, rows);
    long long last =
        db_rows_count(rows) == 0 ? 0 : (long long)db_i64(rows, 0, db_rows_col(rows, "last_seq"));
    db_rows_free(rows);
    if (bad == NULL) {
        bad = check_heads(audit, NULL);
    }
    if (bad == NULL && audit->heads != NULL) {
        bad = check_heads(audit, audit->heads);
    }
    if (bad != NULL) {
        return say_bad(audit, bad);
    }
    (void)printf("%s: %lld rows are whole, %zu signed heads agree\n", audit->name, last,
                 audit->agree);
    return true;
}

bool audit_verify(const char *org, const char *heads)
{
    return run(org, heads, verify_org);
}

/* ------------------------------------------------------------------ head */

static bool print_head(struct audit *audit)
{
    CLEANUP(buf_free) struct buf line = {0};
    audit_signer_line(audit->signer, &audit->head, &line);
    return fwrite(line.ptr, 1, line.len, stdout) == line.len;
}

bool audit_print_heads(const char *org)
{
    return run(org, NULL, print_head);
}
