/* Finds logins whose tokens end soon and has them refreshed on the pool of their issuers. */
#include "server/loops/loops.h"

#include <stdlib.h>

#include "base/log.h"
#include "server/config.h"
#include "server/login.h"
#include "server/outbound.h"

static int64_t period_ms(void)
{
    return config.loop_period_ms;
}

struct due {
    struct uuid org;
    struct uuid login;
};

static void run_due(void *arg, struct db_conn *db)
{
    struct due *due = arg;
    if (db != NULL) {
        login_refresh(db, &due->org, &due->login);
    }
    free(due);
}

/* A full queue is no loss: the login is due again after its pause. */
static void post(const struct uuid *org, const struct uuid *login)
{
    struct due *due = calloc(1, sizeof *due);
    if (due == NULL) {
        abort();
    }
    *due = (struct due){*org, *login};
    if (!outbound_post(OUTBOUND_ISSUER, run_due, due)) {
        log_warning("a session's refresh waits: too much is asked of issuers");
        free(due);
    }
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    struct db_rows *rows = NULL;
    enum err err = runner_query(runner, SQL_LOGIN_DUE, org, NULL, &rows);
    for (int i = 0; err == ERR_NONE && i < db_rows_count(rows); i++) {
        struct uuid login;
        if (db_uuid(rows, i, 0, &login)) {
            post(org, &login);
        }
    }
    db_rows_free(rows);
    return err;
}

const struct runner_spec refresh_logins_loop = {
    .name = "refresh_logins",
    .topics = 0,
    .period_ms = period_ms,
    .run = run,
};
