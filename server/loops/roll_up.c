/* Summaries of clusters every few seconds, and the samples of their history. */
#include "server/loops/loops.h"

#include "server/config.h"
#include "server/wake.h"

static int64_t period_ms(void)
{
    return config.rollup_interval_ms;
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    struct arena *arena = runner_arena(runner);
    struct db_args rollup = {0};
    struct db_args history = {0};
    int64_t clusters = 0;

    db_arg_i64(&rollup, arena, config.rollup_interval_ms);
    enum err err = runner_exec(runner, SQL_ROLLUP_REFRESH, org, &rollup, &clusters);
    if (err != 0) {
        return err;
    }
    if (clusters > 0) {
        runner_changed(runner, org, 0);
    }
    /* Writes a sample only where the present step has none. */
    db_arg_i64(&history, arena, config.history_interval_seconds);
    return runner_exec(runner, SQL_HISTORY_SAMPLE, org, &history, NULL);
}

static enum err run_global(struct runner *runner)
{
    return runner_exec(runner, SQL_STATISTICS_REFRESH, NULL, NULL, NULL);
}

const struct runner_spec roll_up_loop = {
    .name = "roll_up",
    .topics = 0,
    .period_ms = period_ms,
    .run = run,
    .run_global = run_global,
};
