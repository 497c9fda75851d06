/* Housekeeping: partitions ahead of time, daily anchors, and what has outlived its use. */
#include "server/loops/loops.h"

#include "server/config.h"

#define PERIOD_MS 600000 /* an anchor is at most so much later than midnight */

static int64_t period_ms(void)
{
    return PERIOD_MS;
}

static enum err run_list(struct runner *runner, const struct uuid *org, const enum sql_id *list,
                         size_t count)
{
    enum err worst = 0;

    /* One that fails must not keep the others from running. */
    for (size_t i = 0; i < count; i++) {
        enum err err = runner_exec(runner, list[i], org, NULL, NULL);
        worst = err != 0 ? err : worst;
    }
    return worst;
}

static enum err run_global(struct runner *runner)
{
    static const enum sql_id list[] = {SQL_PARTITIONS_MAKE, SQL_SIGN_IN_LINK_PRUNE,
                                       SQL_DEVICE_CODE_PRUNE};

    return run_list(runner, NULL, list, COUNTOF(list));
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    static const enum sql_id list[] = {
        SQL_ANCHOR_WRITE,           SQL_IDEMPOTENCY_PRUNE,
        SQL_SESSION_PRUNE,          SQL_AGENT_TOKEN_PRUNE,
        SQL_JOIN_TOKEN_PRUNE,       SQL_STREAM_PRUNE,
        SQL_EXPORT_LINK_PRUNE,      SQL_LOGIN_PRUNE,
        SQL_LOGIN_ATTEMPT_PRUNE,    SQL_LOGOUT_TOKEN_PRUNE,
        SQL_WEBHOOK_DELIVERY_PRUNE,
    };

    return run_list(runner, org, list, COUNTOF(list));
}

const struct runner_spec maintain_loop = {
    .name = "maintain",
    .topics = 0,
    .period_ms = period_ms,
    .run = run,
    .run_global = run_global,
};
