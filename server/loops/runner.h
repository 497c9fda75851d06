/* What all background loops share: a thread, a connection, when to run, and what became of it. */
#ifndef SERVER_LOOPS_RUNNER_H
#define SERVER_LOOPS_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/uuid.h"
#include "db/db.h"

struct follow;
struct runner;

/*
 * A loop has no input: it looks at what is stored and does what is due, so it may run at any time,
 * in any replica, twice at once. It runs for the orgs that were woken, and every period for all.
 */
struct runner_spec {
    const char *name;
    unsigned topics; /* enum wake_topic bits */
    /* Milliseconds between two looks at everything, read at each turn. A loop that needs long looks
     * less often, so that it never takes more than a tenth of the time. */
    int64_t (*period_ms)(void);
    /* The orgs to look at when all are due; NULL = all there are. The array lives in the arena. */
    enum err (*orgs)(struct runner *runner, struct uuid **ret_orgs, size_t *ret_count);
    /* The work for one org. The arena is emptied afterwards. */
    enum err (*run)(struct runner *runner, const struct uuid *org);
    /* Work that belongs to no org, before the orgs of a full look; NULL = none. */
    enum err (*run_global)(struct runner *runner);
};

/* follow may be NULL (tests). The thread runs until runner_stop. */
struct runner *runner_start(const struct runner_spec *spec, struct follow *follow);
/* Ends the thread after the org it is at, and frees everything. NULL is fine. */
void runner_stop(struct runner *runner);

/* For run functions, on the runner's thread. */
struct db_conn *runner_conn(struct runner *runner);
struct arena *runner_arena(struct runner *runner);
bool runner_stopping(const struct runner *runner);
int64_t runner_started_us(const struct runner *runner); /* clock_mono_us() of the start */
/* Runs a statement; the rows' numbers are read by the caller, who frees them. org NULL = global. */
enum err runner_query(struct runner *runner, enum sql_id sql, const struct uuid *org,
                      const struct db_args *args, struct db_rows **ret_rows) MUST_CHECK;
/* The same where only the first number of the first row matters: how many things changed. */
enum err runner_exec(struct runner *runner, enum sql_id sql, const struct uuid *org,
                     const struct db_args *args, int64_t *ret_changed) MUST_CHECK;
/* Tells the other loops (topics) and the streams that this org changed. */
void runner_changed(struct runner *runner, const struct uuid *org, unsigned topics);

/* What became of the last runs; any thread. */
struct runner_status {
    const char *name;
    int64_t age_us;      /* since the last full look ended; -1 = none yet */
    int64_t duration_us; /* of the last full look */
    uint64_t runs;       /* of one org */
    uint64_t failures;
    bool ok; /* the last run went well */
};
void runner_read_status(const struct runner *runner, struct runner_status *ret_status);

#endif
