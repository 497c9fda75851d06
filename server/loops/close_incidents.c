/* Closes incidents whose clear rule holds, and gives back nodes that we had taken out for them. */
#include "server/loops/loops.h"

#include "server/config.h"
#include "server/repair/fsm.h"
#include "server/wake.h"

static int64_t period_ms(void)
{
    return config.loop_period_ms;
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    struct db_args args = {0};
    struct repair_list acted = repair_states_with(REPAIR_ACTED);
    int64_t closed = 0;
    int64_t uncordoned = 0;

    db_arg(&args, acted.text);
    enum err err = runner_exec(runner, SQL_INCIDENT_CLOSE_DUE, org, &args, &closed);
    if (err != 0) {
        return err;
    }
    err = runner_exec(runner, SQL_NODE_UNCORDON_DUE, org, NULL, &uncordoned);
    if (closed + uncordoned > 0) {
        runner_changed(runner, org, WAKE_HEALTH | WAKE_STATE);
    }
    return err;
}

const struct runner_spec close_incidents_loop = {
    .name = "close_incidents",
    .topics = WAKE_HEALTH | WAKE_REPAIR | WAKE_STATE,
    .period_ms = period_ms,
    .run = run,
};
