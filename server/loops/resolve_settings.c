/* Keeps what agents should run up to what their org has set, and ends the trials of changed checks.
 */
#include "server/loops/loops.h"

#include "server/config.h"
#include "server/wake.h"

static int64_t period_ms(void)
{
    return 3 * config.loop_period_ms;
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    int64_t ended = 0;
    int64_t changed = 0;
    enum err err = runner_exec(runner, SQL_CHECK_TRIAL_END, org, NULL, &ended);

    if (err != 0) {
        return err;
    }
    if (ended > 0) {
        runner_changed(runner, org, WAKE_HEALTH | WAKE_STATE);
    }
    err = runner_exec(runner, SQL_SETTINGS_RESOLVE, org, NULL, &changed);
    if (err == 0 && changed > 0) {
        runner_changed(runner, org, 0);
    }
    return err;
}

/* No topics: what people set about checks may take a period to reach the agents. */
const struct runner_spec resolve_settings_loop = {
    .name = "resolve_settings",
    .period_ms = period_ms,
    .run = run,
};
