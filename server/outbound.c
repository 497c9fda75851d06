/* Work that blocks: threads that take jobs from the queue of their class, each with a connection.
 */
#include "server/outbound.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/follow.h"
#include "server/loop.h"

struct job {
    struct job *next;
    struct request *rq; /* NULL: a task */
    outbound_work *work;
    outbound_task *task;
    void *arg;
    int64_t queued_us;
};

struct pool {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t more;
    struct job *first;
    struct job **last;
    size_t waiting;
    size_t running;
    uint64_t done;
    uint64_t refused;
    bool open;
};

static const struct {
    const char *name;
    size_t threads;
    enum db_role role;
} classes[OUTBOUND_COUNT] = {
#define OUTBOUND_ROW(sym, name, threads, role) [sym] = {name, threads, role},
    OUTBOUND_TABLE(OUTBOUND_ROW)
#undef OUTBOUND_ROW
};

/* Made before the event loops start, ended after they have drained. */
static struct pool pools[OUTBOUND_COUNT];
static pthread_t threads[OUTBOUND_THREADS];
static size_t thread_count;

/* ------------------------------------------------------------------ jobs */

static bool push(struct pool *pool, const struct job *job)
{
    struct job *queued = calloc(1, sizeof *queued);
    if (queued == NULL) {
        abort();
    }
    *queued = *job;
    queued->queued_us = clock_mono_us();
    pthread_mutex_lock(&pool->lock);
    bool taken = pool->open && pool->waiting < OUTBOUND_QUEUE_MAX;
    if (taken) {
        *pool->last = queued;
        pool->last = &queued->next;
        pool->waiting++;
        pthread_cond_signal(&pool->more);
    } else {
        pool->refused++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!taken) {
        free(queued);
    }
    return taken;
}

/* Waits for a job; NULL when the pool has closed and nothing waits any more. */
static struct job *pop(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    while (pool->open && pool->first == NULL) {
        pthread_cond_wait(&pool->more, &pool->lock);
    }
    struct job *job = pool->first;
    if (job != NULL) {
        pool->first = job->next;
        if (pool->first == NULL) {
            pool->last = &pool->first;
        }
        pool->waiting--;
        pool->running++;
    }
    pthread_mutex_unlock(&pool->lock);
    return job;
}

static bool is_open(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    bool open = pool->open;
    pthread_mutex_unlock(&pool->lock);
    return open;
}

static void count_done(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->running--;
    pool->done++;
    pthread_mutex_unlock(&pool->lock);
}

static void on_done(void *arg)
{
    struct request *rq = arg;
    /* What was committed wakes streams and loops now, not at the next poll. */
    follow_poke(loop_follow(rq->loop));
    request_resume(rq);
}

static void run_request(struct pool *pool, const struct job *job, struct db_conn *db)
{
    struct request *rq = job->rq;
    log_context(rq->id, NULL);
    enum err err = ERR_NONE;
    if (!is_open(pool)) {
        err = fail(rq, ERR_UNAVAILABLE, "The server is stopping; try again.");
    } else if (clock_mono_us() - job->queued_us > OUTBOUND_WAIT_S * INT64_C(1000000)) {
        err = fail(rq, ERR_OVERLOADED, "Too much waits for outside services; try again.");
    } else {
        err = job->work(rq, db);
    }
    if (err != ERR_NONE && rq->err == ERR_NONE) {
        rq->err = err;
    }
    log_context(NULL, NULL);
    loop_post(rq->loop, on_done, rq);
}

static void *run_thread(void *arg)
{
    struct pool *pool = arg;
    struct db_conn *db = db_conn_new(classes[pool - pools].role);
    struct job *job;
    while ((job = pop(pool)) != NULL) {
        if (job->rq != NULL) {
            run_request(pool, job, db);
        } else {
            job->task(job->arg, is_open(pool) ? db : NULL);
        }
        free(job);
        count_done(pool);
    }
    db_conn_free(db);
    return NULL;
}

/* ------------------------------------------------------------------ for handlers */

enum err outbound_run(struct request *rq, enum outbound_class class, outbound_work *work)
{
    const struct job job = {.rq = rq, .work = work};
    if (request_stopping(rq)) {
        return fail(rq, ERR_UNAVAILABLE, "The server is stopping; try again.");
    }
    request_suspend(rq);
    if (push(&pools[class], &job)) {
        return ERR_NONE;
    }
    /* execute.c clears `suspended` when a handler fails; so does on_rows before it calls. */
    rq->suspended = false;
    return fail(rq, ERR_OVERLOADED, "Too much waits for outside services; try again.");
}

bool outbound_post(enum outbound_class class, outbound_task *task, void *arg)
{
    const struct job job = {.task = task, .arg = arg};
    return push(&pools[class], &job);
}

/* ------------------------------------------------------------------ life */

static void start_class(enum outbound_class class)
{
    struct pool *pool = &pools[class];
    *pool = (struct pool){.open = true};
    pool->last = &pool->first;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->more, NULL);
    for (size_t i = 0; i < classes[class].threads; i++) {
        if (pthread_create(&threads[thread_count], NULL, run_thread, pool) != 0) {
            log_error("a thread for outside services could not be started");
            exit(1);
        }
        thread_count++;
    }
}

void outbound_start(struct follow *follow)
{
    (void)follow;
    for (int class = 0; class < OUTBOUND_COUNT; class ++) {
        start_class((enum outbound_class) class);
    }
}

void outbound_stop(void)
{
    for (int class = 0; class < OUTBOUND_COUNT; class ++) {
        pthread_mutex_lock(&pools[class].lock);
        pools[class].open = false;
        pthread_cond_broadcast(&pools[class].more);
        pthread_mutex_unlock(&pools[class].lock);
    }
    while (thread_count > 0) {
        (void)pthread_join(threads[--thread_count], NULL);
    }
}

void outbound_read_status(enum outbound_class class, struct outbound_status *ret_status)
{
    struct pool *pool = &pools[class];
    pthread_mutex_lock(&pool->lock);
    *ret_status = (struct outbound_status){.name = classes[class].name,
                                           .waiting = pool->waiting,
                                           .running = pool->running,
                                           .done = pool->done,
                                           .refused = pool->refused};
    pthread_mutex_unlock(&pool->lock);
}
