/* A background loop's thread: waits to be woken or for its period, runs, keeps count. */
#include "server/loops/runner.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/follow.h"
#include "server/wake.h"

#define ARENA_CAP (64u << 20) /* 256 plans with 20 lines of evidence each need 4 MiB */
#define IDLE_SHARE 10         /* a full look at most a tenth of the time */
#define PAUSE_AFTER_ERROR_US 500000
#define REST_SHARE 3 /* woken again and again: at most a quarter of the time */
#define REST_MAX_US \
    500000 /* but a wake never waits longer, so that a fault shows within a second */

struct runner {
    const struct runner_spec *spec;
    struct follow *follow;
    struct wake *wake;
    struct db_conn *conn;
    struct arena *arena;
    pthread_t thread;
    int64_t started_us;
    int64_t full_due_us;
    atomic_bool stopping;
    atomic_bool ok;
    _Atomic int64_t full_ended_us;
    _Atomic int64_t full_duration_us;
    _Atomic uint64_t runs;
    _Atomic uint64_t failures;
};

struct db_conn *runner_conn(struct runner *runner)
{
    return runner->conn;
}

struct arena *runner_arena(struct runner *runner)
{
    return runner->arena;
}

bool runner_stopping(const struct runner *runner)
{
    return atomic_load(&runner->stopping);
}

int64_t runner_started_us(const struct runner *runner)
{
    return runner->started_us;
}

enum err runner_query(struct runner *runner, enum sql_id sql, const struct uuid *org,
                      const struct db_args *args, struct db_rows **ret_rows)
{
    static const struct db_args none = {0};

    return db_exec(runner->conn, sql, org, args == NULL ? &none : args, ret_rows);
}

enum err runner_exec(struct runner *runner, enum sql_id sql, const struct uuid *org,
                     const struct db_args *args, int64_t *ret_changed)
{
    struct db_rows *rows = NULL;
    enum err err = runner_query(runner, sql, org, args, &rows);

    if (err != 0) {
        return err;
    }
    if (ret_changed != NULL) {
        *ret_changed = db_rows_count(rows) > 0 ? db_i64(rows, 0, 0) : 0;
    }
    db_rows_free(rows);
    return 0;
}

void runner_changed(struct runner *runner, const struct uuid *org, unsigned topics)
{
    wake_org(org, topics);
    if (runner->follow != NULL) {
        follow_poke(runner->follow);
    }
}

/* A failure is logged when it begins and when it ends, not each time. */
static void note_result(struct runner *runner, enum err err)
{
    bool was_ok = atomic_exchange(&runner->ok, err == 0);

    atomic_fetch_add(&runner->runs, 1);
    if (err != 0) {
        atomic_fetch_add(&runner->failures, 1);
    }
    if (err != 0 && was_ok) {
        log_warning("loop %s: %s", runner->spec->name, db_conn_error(runner->conn));
    } else if (err == 0 && !was_ok) {
        log_info("loop %s: works again", runner->spec->name);
    }
}

static enum err run_org(struct runner *runner, const struct uuid *org)
{
    enum err err = runner->spec->run(runner, org);

    note_result(runner, err);
    arena_reset(runner->arena);
    return err;
}

static enum err list_all_orgs(struct runner *runner, struct uuid **ret_orgs, size_t *ret_count)
{
    struct db_rows *rows = NULL;
    enum err err = runner_query(runner, SQL_ORG_LIST_ALL, NULL, NULL, &rows);

    if (err != 0) {
        return err;
    }
    int count = db_rows_count(rows);
    struct uuid *orgs = arena_alloc(runner->arena, (size_t)count * sizeof *orgs + 1);
    for (int i = 0; i < count; i++) {
        (void)db_uuid(rows, i, 0, &orgs[i]);
    }
    db_rows_free(rows);
    *ret_orgs = orgs;
    *ret_count = (size_t)count;
    return 0;
}

/* The list outlives the arena's resets between the orgs. */
static enum err take_orgs(struct runner *runner, struct uuid **ret_orgs, size_t *ret_count)
{
    struct uuid *listed = NULL;
    size_t count = 0;
    enum err err = runner->spec->orgs != NULL ? runner->spec->orgs(runner, &listed, &count)
                                              : list_all_orgs(runner, &listed, &count);

    if (err != 0) {
        return err;
    }
    struct uuid *orgs = calloc(count + 1, sizeof *orgs);
    if (orgs == NULL) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        orgs[i] = listed[i];
    }
    *ret_orgs = orgs;
    *ret_count = count;
    return 0;
}

static enum err run_all(struct runner *runner)
{
    struct uuid *orgs = NULL;
    size_t count = 0;
    int64_t begin_us = clock_mono_us();
    enum err worst = runner->spec->run_global == NULL ? 0 : runner->spec->run_global(runner);
    enum err err = take_orgs(runner, &orgs, &count);

    worst = err != 0 ? err : worst;
    arena_reset(runner->arena);
    if (worst != 0) {
        note_result(runner, worst);
    }
    for (size_t i = 0; i < count && !runner_stopping(runner); i++) {
        err = run_org(runner, &orgs[i]);
        worst = err != 0 ? err : worst;
    }
    free(orgs);
    int64_t end_us = clock_mono_us();
    int64_t pause_us = (end_us - begin_us) * IDLE_SHARE;
    int64_t period_us = runner->spec->period_ms() * 1000;
    runner->full_due_us = begin_us + (pause_us > period_us ? pause_us : period_us);
    atomic_store(&runner->full_duration_us, end_us - begin_us);
    atomic_store(&runner->full_ended_us, end_us);
    return worst;
}

static int wait_ms(const struct runner *runner)
{
    int64_t left_us = runner->full_due_us - clock_mono_us();

    return left_us <= 0 ? 0 : (int)((left_us + 999) / 1000);
}

/* Lets time pass without hearing the wakes: they gather. */
static void rest(struct runner *runner, int64_t us)
{
    int64_t until_us = clock_mono_us() + us;

    while (!runner_stopping(runner) && clock_mono_us() < until_us) {
        wake_pause(runner->wake, (int)((until_us - clock_mono_us() + 999) / 1000));
    }
}

static void *run_thread(void *arg)
{
    struct runner *runner = arg;
    struct wake_orgs due;

    while (!runner_stopping(runner)) {
        bool woken = wake_wait(runner->wake, wait_ms(runner), &due);
        if (runner_stopping(runner)) {
            break;
        }
        int64_t begin_us = clock_mono_us();
        enum err worst = 0;
        if (due.all || begin_us >= runner->full_due_us) {
            worst = run_all(runner);
        } else if (woken) {
            for (size_t i = 0; i < due.count && !runner_stopping(runner); i++) {
                enum err err = run_org(runner, &due.orgs[i]);
                worst = err != 0 ? err : worst;
            }
        }
        int64_t pause_us = (clock_mono_us() - begin_us) * REST_SHARE;
        pause_us = pause_us > REST_MAX_US ? REST_MAX_US : pause_us;
        rest(runner, worst != 0 ? PAUSE_AFTER_ERROR_US : pause_us);
    }
    return NULL;
}

struct runner *runner_start(const struct runner_spec *spec, struct follow *follow)
{
    struct runner *runner = calloc(1, sizeof *runner);
    sigset_t all;
    sigset_t before;

    if (runner == NULL) {
        abort();
    }
    runner->spec = spec;
    runner->follow = follow;
    runner->wake = wake_subscribe(spec->topics);
    runner->conn = db_conn_new(DB_LOOP);
    runner->arena = arena_new(ARENA_CAP);
    runner->started_us = clock_mono_us();
    atomic_store(&runner->ok, true);
    /* Signals belong to the main thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&runner->thread, NULL, run_thread, runner) != 0) {
        log_error("loop %s: cannot make a thread", spec->name);
        abort();
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_setname_np(runner->thread, spec->name);
    return runner;
}

void runner_stop(struct runner *runner)
{
    if (runner == NULL) {
        return;
    }
    atomic_store(&runner->stopping, true);
    wake_poke(runner->wake);
    pthread_join(runner->thread, NULL);
    wake_unsubscribe(runner->wake);
    db_conn_free(runner->conn);
    arena_free(runner->arena);
    free(runner);
}

void runner_read_status(const struct runner *runner, struct runner_status *ret_status)
{
    int64_t ended_us = atomic_load(&runner->full_ended_us);

    *ret_status = (struct runner_status){
        .name = runner->spec->name,
        .age_us = ended_us == 0 ? -1 : clock_mono_us() - ended_us,
        .duration_us = atomic_load(&runner->full_duration_us),
        .runs = atomic_load(&runner->runs),
        .failures = atomic_load(&runner->failures),
        .ok = atomic_load(&runner->ok),
    };
}
