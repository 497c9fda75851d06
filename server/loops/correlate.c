/* Finds what belongs together: incidents of one cause, parts that fail again, and common causes. */
#include "server/loops/loops.h"

#include "base/buf.h"
#include "server/health/traits.h"
#include "server/wake.h"

/* The third such fault of a part in 30 days is a person's: two repairs did not help. */
#define REPEATS_MAX 3
/* So many nodes of one place within a minute are no chance. */
#define COMMON_NODES 3
/* Common causes that one look may open; more are opened by the next. */
#define COMMON_OPEN_MAX 8

static const char *fresh_ids(struct arena *arena)
{
    CLEANUP(buf_free) struct buf text = {0};
    char id[UUID_TEXT_LEN + 1];

    for (int i = 0; i < COMMON_OPEN_MAX; i++) {
        struct uuid fresh = uuid_v7();
        uuid_format(&fresh, id);
        buf_printf(&text, "%s%s", i == 0 ? "{" : ",", id);
    }
    buf_add_char(&text, '}');
    return arena_strndup(arena, text.ptr, text.len);
}

static enum err find_common(struct runner *runner, const struct uuid *org, int64_t *ret_changed)
{
    const struct catalog_arrays *arrays = catalog_arrays();
    struct arena *arena = runner_arena(runner);
    struct db_args open = {0};
    struct db_args mark = {0};
    int64_t opened = 0;
    int64_t marked = 0;

    db_arg(&open, arrays->shared);
    db_arg(&open, arrays->network);
    db_arg_i64(&open, arena, COMMON_NODES);
    db_arg(&open, fresh_ids(arena));
    enum err err = runner_exec(runner, SQL_COMMON_OPEN, org, &open, &opened);
    if (err != 0) {
        return err;
    }
    db_arg(&mark, arrays->shared);
    db_arg(&mark, arrays->network);
    err = runner_exec(runner, SQL_COMMON_MARK, org, &mark, &marked);
    *ret_changed = opened + marked;
    return err;
}

enum err correlate(struct runner *runner, const struct uuid *org)
{
    const struct catalog_arrays *arrays = catalog_arrays();
    struct db_args args = {0};
    int64_t changed = 0;
    int64_t common = 0;

    db_arg(&args, arrays->checks);
    db_arg(&args, arrays->families);
    db_arg(&args, arrays->reaches);
    db_arg_i64(&args, runner_arena(runner), REPEATS_MAX);
    enum err err = runner_exec(runner, SQL_INCIDENT_CORRELATE, org, &args, &changed);
    if (err != 0) {
        return err;
    }
    err = find_common(runner, org, &common);
    if (changed + common > 0) {
        runner_changed(runner, org, WAKE_STATE);
    }
    return err;
}
