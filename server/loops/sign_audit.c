/* Signs the heads of the audit logs and keeps them in files outside the database. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/audit_head.h"
#include "server/config.h"
#include "server/loops/loops.h"

static int64_t period_ms(void)
{
    return config.audit_head_seconds * 1000;
}

static enum err read_head(struct runner *runner, const struct uuid *org,
                          struct audit_head *ret_head)
{
    struct db_rows *rows = NULL;
    enum err err = runner_query(runner, SQL_AUDIT_ORG, org, NULL, &rows);
    if (err != ERR_NONE) {
        return err;
    }
    *ret_head = (struct audit_head){.org = *org, .at_us = clock_wall_us()};
    if (db_rows_count(rows) > 0) {
        ret_head->seq = db_i64(rows, 0, db_rows_col(rows, "seq"));
        (void)db_bytes(rows, 0, db_rows_col(rows, "hash"), ret_head->hash, sizeof(ret_head->hash));
    }
    db_rows_free(rows);
    return ERR_NONE;
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    struct audit_head head;
    char error[512] = "";
    enum err err = read_head(runner, org, &head);
    if (err != ERR_NONE || head.seq == 0) {
        return err;
    }
    CLEANUP(audit_signer_closep)
    struct audit_signer *signer = audit_signer_open(config.keys_dir, error, sizeof(error));
    if (signer == NULL) {
        log_error("%s", error);
        return ERR_INTERNAL;
    }
    /* Another replica that signs at another minute of the hour is enough. */
    int failed = audit_signer_keep(signer, &head, config.audit_head_seconds / 2);
    if (failed != 0) {
        log_error("the head of an audit log cannot be written below %s/audit: %s", config.keys_dir,
                  strerrordesc_np(failed));
        return ERR_INTERNAL;
    }
    return ERR_NONE;
}

const struct runner_spec sign_audit_loop = {
    .name = "sign_audit",
    .topics = 0,
    .period_ms = period_ms,
    .run = run,
};
