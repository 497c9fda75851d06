/* Event loops: one thread that serves its clients, its database connections and posted work. */
#include "server/loop.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/follow.h"
#include "server/http.h"
#include "server/listener.h"
#include "server/metrics.h"

#define LAG_WINDOW_US (5 * (int64_t)1000000) /* two windows: the last 5 to 10 s */

struct timer {
    loop_fn *fn;
    void *arg;
    int64_t period_us;
    int64_t next_us;
};

struct hook {
    loop_fn *fn;
    void *arg;
};

struct change_hook {
    loop_change_fn *fn;
    void *arg;
};

enum phase { PHASE_RUN, PHASE_DRAIN, PHASE_DRAINED, PHASE_FINISH };

struct loop {
    int index;
    int port;
    int event_fd;
    pthread_t thread;
    struct follow *follow;
    struct http *http;
    struct db_loop *db;
    struct loop_metrics *metrics;
    struct loop *const *peers;
    size_t peer_count;
    void *slots[LOOP_SLOT_COUNT];
    struct timer timers[LOOP_TIMERS_MAX];
    size_t timer_count;
    struct hook stop_hooks[LOOP_STOP_HOOKS_MAX];
    size_t stop_hook_count;
    struct change_hook change_hooks[LOOP_CHANGE_HOOKS_MAX];
    size_t change_hook_count;

    _Atomic(struct loop_task *) tasks; /* newest first */
    _Atomic int64_t stop_at_us;        /* 0 = run; else the end of the drain */
    _Atomic bool finish;
    _Atomic bool stopping;
    _Atomic bool db_ready;
    _Atomic size_t db_waiting;
    _Atomic int64_t lag_now_us;  /* worst turn of the window that runs */
    _Atomic int64_t lag_last_us; /* of the window before */
    int64_t lag_window_us;

    pthread_mutex_t drain_lock;
    pthread_cond_t drain_cond;
    bool drained;
};

/* ------------------------------------------------------------------ posted work */

static void wake(struct loop *loop)
{
    const uint64_t one = 1;
    /* A full counter wakes too; nothing else can fail here. */
    if (write(loop->event_fd, &one, sizeof(one)) < 0 && errno != EAGAIN) {
        log_error("an event loop could not be woken: %s", strerrordesc_np(errno));
    }
}

void loop_post_task(struct loop *loop, struct loop_task *task)
{
    struct loop_task *head = atomic_load_explicit(&loop->tasks, memory_order_relaxed);
    do {
        task->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&loop->tasks, &head, task, memory_order_release,
                                                    memory_order_relaxed));
    /* Only the first of a batch pays for the system call: the loop takes the whole list. */
    if (head == NULL) {
        wake(loop);
    }
}

struct posted {
    struct loop_task task;
    loop_fn *fn;
    void *arg;
};

static void run_posted(void *arg)
{
    struct posted *posted = arg;
    struct posted copy = *posted;
    free(posted);
    copy.fn(copy.arg);
}

void loop_post(struct loop *loop, loop_fn *fn, void *arg)
{
    struct posted *posted = calloc(1, sizeof(*posted));
    if (posted == NULL) {
        abort();
    }
    *posted = (struct posted){.task = {.fn = run_posted, .arg = posted}, .fn = fn, .arg = arg};
    loop_post_task(loop, &posted->task);
}

static void run_tasks(struct loop *loop)
{
    struct loop_task *task = atomic_exchange_explicit(&loop->tasks, NULL, memory_order_acquire);
    struct loop_task *oldest = NULL;
    while (task != NULL) {
        struct loop_task *next = task->next;
        task->next = oldest;
        oldest = task;
        task = next;
    }
    while (oldest != NULL) {
        struct loop_task *next = oldest->next; /* the task may be gone after its call */
        oldest->fn(oldest->arg);
        oldest = next;
    }
}

/* ------------------------------------------------------------------ timers and lag */

void loop_timer_add(struct loop *loop, int period_ms, loop_fn *fn, void *arg)
{
    assert(loop->timer_count < LOOP_TIMERS_MAX && period_ms > 0);
    loop->timers[loop->timer_count++] = (struct timer){
        .fn = fn,
        .arg = arg,
        .period_us = (int64_t)period_ms * 1000,
        .next_us = clock_mono_us() + (int64_t)period_ms * 1000,
    };
}

void loop_stop_hook_add(struct loop *loop, loop_fn *fn, void *arg)
{
    assert(loop->stop_hook_count < LOOP_STOP_HOOKS_MAX);
    loop->stop_hooks[loop->stop_hook_count++] = (struct hook){fn, arg};
}

void loop_change_hook_add(struct loop *loop, loop_change_fn *fn, void *arg)
{
    assert(loop->change_hook_count < LOOP_CHANGE_HOOKS_MAX);
    loop->change_hooks[loop->change_hook_count++] = (struct change_hook){fn, arg};
}

/* What the follower told, on its way to the loop's thread. */
struct changes {
    struct loop *loop;
    bool auth_moved;
    size_t count;
    struct follow_change items[];
};

static void run_change_hooks(void *arg)
{
    struct changes *changes = arg;
    const struct loop *loop = changes->loop;
    for (size_t i = 0; i < loop->change_hook_count; i++) {
        loop->change_hooks[i].fn(loop->change_hooks[i].arg, changes->items, changes->count,
                                 changes->auth_moved);
    }
    free(changes);
}

static void on_follow(void *ctx, const struct follow_change *items, size_t count, bool auth_moved)
{
    struct changes *changes = calloc(1, sizeof(*changes) + count * sizeof(*items));
    if (changes == NULL) {
        abort();
    }
    changes->loop = ctx;
    changes->auth_moved = auth_moved;
    changes->count = count;
    if (count > 0) {
        memcpy(changes->items, items, count * sizeof(*items));
    }
    loop_post(ctx, run_change_hooks, changes);
}

static void run_timers(struct loop *loop, int64_t now_us)
{
    for (size_t i = 0; i < loop->timer_count; i++) {
        struct timer *timer = &loop->timers[i];
        if (now_us >= timer->next_us) {
            timer->next_us = now_us + timer->period_us;
            timer->fn(timer->arg);
        }
    }
}

static int sooner_ms(int a, int b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int timer_timeout_ms(const struct loop *loop, int64_t now_us)
{
    int timeout = -1;
    for (size_t i = 0; i < loop->timer_count; i++) {
        int64_t left_us = loop->timers[i].next_us - now_us;
        timeout = sooner_ms(timeout, left_us <= 0 ? 0 : (int)(left_us / 1000) + 1);
    }
    return timeout;
}

static void note_lag(struct loop *loop, int64_t begun_us)
{
    int64_t now_us = clock_mono_us();
    int64_t lag_us = now_us - begun_us;
    if (now_us - loop->lag_window_us > LAG_WINDOW_US) {
        bool is_fresh = now_us - loop->lag_window_us < 2 * LAG_WINDOW_US;
        atomic_store_explicit(&loop->lag_last_us, is_fresh ? atomic_load(&loop->lag_now_us) : 0,
                              memory_order_relaxed);
        atomic_store_explicit(&loop->lag_now_us, 0, memory_order_relaxed);
        loop->lag_window_us = now_us;
    }
    if (lag_us > atomic_load_explicit(&loop->lag_now_us, memory_order_relaxed)) {
        atomic_store_explicit(&loop->lag_now_us, lag_us, memory_order_relaxed);
    }
}

int64_t loop_lag_us(const struct loop *loop)
{
    int64_t now_us = atomic_load_explicit(&loop->lag_now_us, memory_order_relaxed);
    int64_t last_us = atomic_load_explicit(&loop->lag_last_us, memory_order_relaxed);
    return now_us > last_us ? now_us : last_us;
}

/* ------------------------------------------------------------------ the thread */

static void begin_drain(struct loop *loop)
{
    atomic_store(&loop->stopping, true);
    http_quiesce(loop->http);
    for (size_t i = 0; i < loop->stop_hook_count; i++) {
        loop->stop_hooks[i].fn(loop->stop_hooks[i].arg);
    }
}

static void tell_drained(struct loop *loop)
{
    pthread_mutex_lock(&loop->drain_lock);
    loop->drained = true;
    pthread_cond_broadcast(&loop->drain_cond);
    pthread_mutex_unlock(&loop->drain_lock);
}

static enum phase next_phase(struct loop *loop, enum phase phase, int64_t now_us)
{
    int64_t stop_at_us = atomic_load(&loop->stop_at_us);
    if (phase == PHASE_RUN && stop_at_us != 0) {
        begin_drain(loop);
        phase = PHASE_DRAIN;
    }
    if (phase == PHASE_DRAIN && (http_requests(loop->http) == 0 || now_us >= stop_at_us)) {
        tell_drained(loop);
        phase = PHASE_DRAINED;
    }
    if (phase == PHASE_DRAINED && atomic_load(&loop->finish)) {
        phase = PHASE_FINISH;
    }
    return phase;
}

static int wait_ms(const struct loop *loop, enum phase phase)
{
    int timeout = timer_timeout_ms(loop, clock_mono_us());
    timeout = sooner_ms(timeout, http_timeout_ms(loop->http));
    timeout = sooner_ms(timeout, db_loop_timeout_ms(loop->db));
    /* While it drains nobody tells the loop that the last request has ended or that time is up. */
    return phase == PHASE_DRAIN ? sooner_ms(timeout, 20) : timeout;
}

static void wait_for_work(struct loop *loop, enum phase phase)
{
    struct db_poll polls[2];
    db_loop_polls(loop->db, polls);
    struct pollfd fds[4] = {
        {.fd = http_poll_fd(loop->http), .events = POLLIN},
        {.fd = loop->event_fd, .events = POLLIN},
        {.fd = polls[0].fd, .events = polls[0].events},
        {.fd = polls[1].fd, .events = polls[1].events},
    };
    if (poll(fds, COUNTOF(fds), wait_ms(loop, phase)) < 0 && errno != EINTR) {
        log_error("poll failed: %s", strerrordesc_np(errno));
    }
    if ((fds[1].revents & POLLIN) != 0) {
        uint64_t count;
        /* Read before the list is taken: a post in between wakes the next turn. */
        ssize_t got = read(loop->event_fd, &count, sizeof(count));
        (void)got;
    }
}

static void run_turn(struct loop *loop)
{
    int64_t begun_us = clock_mono_us();
    run_tasks(loop);
    run_timers(loop, begun_us);
    http_run(loop->http);
    db_loop_turn(loop->db);
    /* MHD sees a resume only when it runs: waiting for the next event would cost up to a second. */
    if (http_has_resumed(loop->http)) {
        http_run(loop->http);
    }
    atomic_store_explicit(&loop->db_ready, db_loop_ready(loop->db), memory_order_relaxed);
    atomic_store_explicit(&loop->db_waiting, db_loop_waiting(loop->db), memory_order_relaxed);
    note_lag(loop, begun_us);
}

/* The end: nobody posts any more; every request gets its answer. */
static void finish_all(struct loop *loop)
{
    run_tasks(loop);
    db_loop_free(loop->db);
    loop->db = NULL;
    http_finish(loop->http);
    /* Twice: the answer is queued in the first run and sent in the second. */
    http_run(loop->http);
    http_run(loop->http);
    http_free(loop->http);
    loop->http = NULL;
}

static void *loop_main(void *arg)
{
    struct loop *loop = arg;
    enum phase phase = PHASE_RUN;
    char name[16];
    (void)snprintf(name, sizeof(name), "loop %d", loop->index);
    (void)pthread_setname_np(pthread_self(), name);
    loop->lag_window_us = clock_mono_us();
    while (phase != PHASE_FINISH) {
        wait_for_work(loop, phase);
        run_turn(loop);
        phase = next_phase(loop, phase, clock_mono_us());
    }
    finish_all(loop);
    return NULL;
}

/* ------------------------------------------------------------------ life */

struct loop *loop_new(const struct loop_options *options, char *error, size_t error_cap)
{
    int listen_fd =
        listener_open(options->listen, options->port, options->index == 0, error, error_cap);
    if (listen_fd < 0) {
        return NULL;
    }
    struct loop *loop = calloc(1, sizeof(*loop));
    if (loop == NULL) {
        abort();
    }
    loop->index = options->index;
    loop->follow = options->follow;
    loop->port = listener_port(listen_fd);
    loop->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    loop->metrics = loop_metrics_new();
    (void)pthread_mutex_init(&loop->drain_lock, NULL);
    (void)pthread_cond_init(&loop->drain_cond, NULL);
    const struct http_options http_options = {
        .loop = loop,
        .listen_fd = listen_fd,
        .certificate = options->certificate,
        .key = options->key,
        .connections = options->connections,
    };
    loop->http = http_new(&http_options, error, error_cap);
    if (loop->http == NULL || loop->event_fd < 0) {
        loop_free(loop);
        return NULL;
    }
    loop->db = db_loop_new();
    follow_subscribe(options->follow, on_follow, loop);
    return loop;
}

bool loop_start(struct loop *loop)
{
    return pthread_create(&loop->thread, NULL, loop_main, loop) == 0;
}

void loop_stop(struct loop *loop, int drain_ms)
{
    atomic_store(&loop->stop_at_us, clock_mono_us() + (int64_t)drain_ms * 1000);
    wake(loop);
}

void loop_wait_drained(struct loop *loop)
{
    pthread_mutex_lock(&loop->drain_lock);
    while (!loop->drained) {
        pthread_cond_wait(&loop->drain_cond, &loop->drain_lock);
    }
    pthread_mutex_unlock(&loop->drain_lock);
}

void loop_join(struct loop *loop)
{
    atomic_store(&loop->finish, true);
    wake(loop);
    (void)pthread_join(loop->thread, NULL);
}

void loop_free(struct loop *loop)
{
    if (loop == NULL) {
        return;
    }
    db_loop_free(loop->db);
    http_free(loop->http);
    loop_metrics_free(loop->metrics);
    if (loop->event_fd >= 0) {
        (void)close(loop->event_fd);
    }
    (void)pthread_mutex_destroy(&loop->drain_lock);
    (void)pthread_cond_destroy(&loop->drain_cond);
    free(loop);
}

/* ------------------------------------------------------------------ what others ask */

struct db_loop *loop_db(struct loop *loop)
{
    return loop->db;
}

struct follow *loop_follow(struct loop *loop)
{
    return loop->follow;
}

struct http *loop_http(struct loop *loop)
{
    return loop->http;
}

struct loop_metrics *loop_metrics(struct loop *loop)
{
    return loop->metrics;
}

int loop_index(const struct loop *loop)
{
    return loop->index;
}

int loop_port(const struct loop *loop)
{
    return loop->port;
}

bool loop_stopping(const struct loop *loop)
{
    return atomic_load(&loop->stopping);
}

void loop_slot_set(struct loop *loop, enum loop_slot slot, void *state)
{
    loop->slots[slot] = state;
}

void *loop_slot(const struct loop *loop, enum loop_slot slot)
{
    return loop->slots[slot];
}

void loop_peers_set(struct loop *loop, struct loop *const *peers, size_t count)
{
    loop->peers = peers;
    loop->peer_count = count;
}

struct loop *const *loop_peers(const struct loop *loop, size_t *ret_count)
{
    *ret_count = loop->peer_count;
    return loop->peers;
}

bool loop_db_ready(const struct loop *loop)
{
    return atomic_load_explicit(&loop->db_ready, memory_order_relaxed);
}

size_t loop_db_waiting(const struct loop *loop)
{
    return atomic_load_explicit(&loop->db_waiting, memory_order_relaxed);
}
