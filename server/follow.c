/* The follower: one thread that polls org_head and tells who waits what moved. */
#include "server/follow.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "db/db.h"

#define SUBSCRIBERS_MAX 32
#define POLL_GAP_US 10000 /* pokes come as fast as verbs do; polls do not */

struct subscriber {
    follow_fn *fn;
    void *ctx;
};

struct follow {
    int poll_ms;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool poked; /* under lock */
    bool stop;  /* under lock */
    struct subscriber subscribers[SUBSCRIBERS_MAX];
    size_t subscriber_count;
    struct map *heads; /* org -> struct follow_head; the thread's own */
    struct follow_change *changes;
    size_t changes_cap;
    bool failing;
    _Atomic int64_t auth_epoch;
    _Atomic int64_t polled_us;
};

struct follow *follow_new(int poll_ms)
{
    struct follow *follow = calloc(1, sizeof(*follow));
    pthread_condattr_t attr;
    if (follow == NULL) {
        abort();
    }
    follow->poll_ms = poll_ms;
    follow->heads = map_new(free);
    (void)pthread_mutex_init(&follow->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&follow->cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    return follow;
}

void follow_subscribe(struct follow *follow, follow_fn *fn, void *ctx)
{
    assert(follow->subscriber_count < SUBSCRIBERS_MAX);
    follow->subscribers[follow->subscriber_count++] = (struct subscriber){fn, ctx};
}

/* Compares a row with what was known; true when something moved. */
static bool note_head(struct follow *follow, const struct follow_head *head,
                      struct follow_change *ret_change)
{
    struct str key = {(const char *)head->org.bytes, sizeof(head->org.bytes)};
    struct follow_head *known = map_get(follow->heads, key);
    struct follow_change change = {.head = *head, .events = true, .rollup = true, .commands = true};
    if (known == NULL) {
        known = calloc(1, sizeof(*known));
        if (known == NULL) {
            abort();
        }
        map_put(follow->heads, key, known);
    } else {
        change.events = known->event_seq != head->event_seq;
        change.rollup = known->rollup_version != head->rollup_version;
        change.commands = known->command_seq != head->command_seq;
    }
    *known = *head;
    *ret_change = change;
    return change.events || change.rollup || change.commands;
}

static size_t take_rows(struct follow *follow, const struct db_rows *rows, int64_t *ret_epoch)
{
    int count = db_rows_count(rows);
    size_t moved = 0;
    *ret_epoch = 0;
    if ((size_t)count > follow->changes_cap) {
        free(follow->changes);
        follow->changes_cap = (size_t)count * 2;
        follow->changes = calloc(follow->changes_cap, sizeof(*follow->changes));
        if (follow->changes == NULL) {
            abort();
        }
    }
    int org = db_rows_col(rows, "org_id");
    int event_seq = db_rows_col(rows, "event_seq");
    int rollup = db_rows_col(rows, "rollup_version");
    int commands = db_rows_col(rows, "command_seq");
    int epoch = db_rows_col(rows, "auth_epoch");
    for (int i = 0; i < count; i++) {
        struct follow_head head = {
            .event_seq = db_i64(rows, i, event_seq),
            .rollup_version = db_i64(rows, i, rollup),
            .command_seq = db_i64(rows, i, commands),
        };
        *ret_epoch = db_i64(rows, i, epoch);
        /* The row of the installation itself has no org when there is none yet. */
        if (db_uuid(rows, i, org, &head.org) && note_head(follow, &head, &follow->changes[moved])) {
            moved++;
        }
    }
    return moved;
}

static void poll_once(struct follow *follow, struct db_conn *conn)
{
    struct db_rows *rows = NULL;
    const struct db_args none = {0};
    enum err err = db_exec(conn, SQL_FOLLOW_HEADS, NULL, &none, &rows);
    if (err != ERR_NONE) {
        if (!follow->failing) {
            log_warning("the database does not tell what moved: %s", db_conn_error(conn));
        }
        follow->failing = true;
        return;
    }
    if (follow->failing) {
        log_info("the database tells what moved again");
        follow->failing = false;
    }
    int64_t epoch = 0;
    size_t moved = take_rows(follow, rows, &epoch);
    db_rows_free(rows);
    bool auth_moved = epoch != atomic_load(&follow->auth_epoch);
    atomic_store(&follow->auth_epoch, epoch);
    atomic_store(&follow->polled_us, clock_mono_us());
    if (moved > 0 || auth_moved) {
        for (size_t i = 0; i < follow->subscriber_count; i++) {
            follow->subscribers[i].fn(follow->subscribers[i].ctx, follow->changes, moved,
                                      auth_moved);
        }
    }
}

static struct timespec instant_after(int64_t us)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    int64_t nsec = at.tv_nsec + us % 1000000 * 1000;
    at.tv_sec += us / 1000000 + nsec / 1000000000;
    at.tv_nsec = (long)(nsec % 1000000000);
    return at;
}

/* Until the next poll is due or somebody pokes, but not at once; false = stop. */
static bool wait_next(struct follow *follow)
{
    const struct timespec due = instant_after((int64_t)follow->poll_ms * 1000);
    const struct timespec soonest = instant_after(POLL_GAP_US);
    pthread_mutex_lock(&follow->lock);
    while (!follow->stop && pthread_cond_timedwait(&follow->cond, &follow->lock, &soonest) == 0) {
    }
    while (!follow->poked && !follow->stop &&
           pthread_cond_timedwait(&follow->cond, &follow->lock, &due) == 0) {
    }
    follow->poked = false;
    bool go_on = !follow->stop;
    pthread_mutex_unlock(&follow->lock);
    return go_on;
}

static void *follow_main(void *arg)
{
    struct follow *follow = arg;
    struct db_conn *conn = db_conn_new(DB_LOOP);
    (void)pthread_setname_np(pthread_self(), "follow");
    do {
        poll_once(follow, conn);
    } while (wait_next(follow));
    db_conn_free(conn);
    return NULL;
}

bool follow_start(struct follow *follow)
{
    return pthread_create(&follow->thread, NULL, follow_main, follow) == 0;
}

void follow_stop(struct follow *follow)
{
    pthread_mutex_lock(&follow->lock);
    follow->stop = true;
    pthread_cond_signal(&follow->cond);
    pthread_mutex_unlock(&follow->lock);
    (void)pthread_join(follow->thread, NULL);
}

void follow_free(struct follow *follow)
{
    if (follow == NULL) {
        return;
    }
    map_free(follow->heads);
    free(follow->changes);
    (void)pthread_mutex_destroy(&follow->lock);
    (void)pthread_cond_destroy(&follow->cond);
    free(follow);
}

void follow_poke(struct follow *follow)
{
    pthread_mutex_lock(&follow->lock);
    follow->poked = true;
    pthread_cond_signal(&follow->cond);
    pthread_mutex_unlock(&follow->lock);
}

int64_t follow_auth_epoch(const struct follow *follow)
{
    return atomic_load(&follow->auth_epoch);
}

int64_t follow_age_us(const struct follow *follow)
{
    int64_t polled_us = atomic_load(&follow->polled_us);
    return polled_us == 0 ? INT64_MAX : clock_mono_us() - polled_us;
}
