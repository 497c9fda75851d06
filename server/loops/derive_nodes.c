/* Derives each node's state by the one rule in SQL. */
#include "server/loops/loops.h"

#include "base/clock.h"
#include "server/config.h"
#include "server/health/traits.h"
#include "server/repair/fsm.h"
#include "server/wake.h"

#define DERIVE_ROWS 1000 /* node_derive changes so many at most */

static int64_t period_ms(void)
{
    return config.loop_period_ms;
}

/* Agents need a while to find a server that was away: until then silence says nothing about them.
 */
static bool in_grace(const struct runner *runner)
{
    return clock_mono_us() - runner_started_us(runner) < config.start_grace_seconds * 1000000;
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    struct db_args args = {0};
    struct repair_list working = repair_states_with(REPAIR_WORKING);
    int64_t changed = 0;

    db_arg_bool(&args, in_grace(runner));
    db_arg(&args, working.text);
    db_arg(&args, catalog_arrays()->grace);
    db_arg_i64(&args, runner_arena(runner), config.boot_grace_seconds);
    enum err err = runner_exec(runner, SQL_NODE_STOP_COPIED, org, NULL, &changed);
    if (err != 0) {
        return err;
    }
    if (changed > 0) {
        runner_changed(runner, org, WAKE_STATE);
    }
    do {
        err = runner_exec(runner, SQL_NODE_DERIVE, org, &args, &changed);
        if (err == 0 && changed > 0) {
            runner_changed(runner, org, WAKE_STATE);
        }
    } while (err == 0 && changed >= DERIVE_ROWS && !runner_stopping(runner));
    return err;
}

const struct runner_spec derive_nodes_loop = {
    .name = "derive_nodes",
    .topics = WAKE_HEALTH | WAKE_REPAIR | WAKE_NODE,
    .period_ms = period_ms,
    .run = run,
};
