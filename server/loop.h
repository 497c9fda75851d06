/* Event loops: one thread each, with its connections of clients and of the database. */
#ifndef SERVER_LOOP_H
#define SERVER_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/db.h"

struct follow;
struct http;
struct loop;
struct loop_metrics;

typedef void loop_fn(void *arg);

/* A piece of work for a loop's thread. Owned by the poster until fn is called. */
struct loop_task {
    loop_fn *fn;
    void *arg;
    struct loop_task *next; /* private */
};

/*
 * From any thread, without locks: fn(arg) runs on the loop's thread, in the order of the posts of
 * one thread. loop_post allocates its task; loop_post_task uses the caller's (no allocation: for
 * batches). What was posted before loop_stop still runs.
 */
void loop_post(struct loop *loop, loop_fn *fn, void *arg);
void loop_post_task(struct loop *loop, struct loop_task *task);

/* The loop's own database connections. Loop's thread only. */
struct db_loop *loop_db(struct loop *loop);
struct follow *loop_follow(struct loop *loop);
struct http *loop_http(struct loop *loop);
struct loop_metrics *loop_metrics(struct loop *loop);
int loop_index(const struct loop *loop); /* 0.. */
bool loop_stopping(const struct loop *loop);

/* Calls fn(arg) about every period_ms on the loop's thread. Before loop_start or on its thread; at
 * most LOOP_TIMERS_MAX. */
#define LOOP_TIMERS_MAX 8
void loop_timer_add(struct loop *loop, int period_ms, loop_fn *fn, void *arg);

struct follow_change;
/* Called on the loop's thread with what the follower saw move (see follow.h). Before loop_start. */
typedef void loop_change_fn(void *arg, const struct follow_change *changes, size_t count,
                            bool auth_moved);
#define LOOP_CHANGE_HOOKS_MAX 4
void loop_change_hook_add(struct loop *loop, loop_change_fn *fn, void *arg);

/* fn(arg) is called once on the loop's thread when the loop begins to stop: end streams and waits.
 * Before loop_start; at most LOOP_STOP_HOOKS_MAX. */
#define LOOP_STOP_HOOKS_MAX 4
void loop_stop_hook_add(struct loop *loop, loop_fn *fn, void *arg);

/* State of a module, one a loop. Freed by its module after loop_join. */
enum loop_slot {
    LOOP_SLOT_AUTH,
    LOOP_SLOT_STATIC,
    LOOP_SLOT_WAIT,
    LOOP_SLOT_EVENTS,
    LOOP_SLOT_INGEST,
    LOOP_SLOT_OVERVIEW,
    LOOP_SLOT_LIMITS, /* one for all loops */
    LOOP_SLOT_COUNT
};
void loop_slot_set(struct loop *loop, enum loop_slot slot, void *state);
void *loop_slot(const struct loop *loop, enum loop_slot slot);

struct loop_options {
    int index;
    struct follow *follow;
    const char *listen; /* "127.0.0.1:8080", "[::]:8443" */
    int port; /* instead of listen's: the one that the first loop got for port 0; 0 = listen's */
    const char *certificate; /* PEM text, NULL = plain http */
    const char *key;         /* PEM text */
    unsigned connections;    /* at most so many clients on this loop */
};

/* NULL with a sentence in error when it cannot listen. */
struct loop *loop_new(const struct loop_options *options, char *error, size_t error_cap);
bool loop_start(struct loop *loop) MUST_CHECK; /* makes the thread */
/*
 * Graceful stop, from any thread, in this order: loop_stop closes the listening socket and calls
 * the stop hooks; loop_wait_drained waits until no request is under way, or drain_ms have passed;
 * then stop what still owes answers (writers, jobs); loop_join answers the rest with 503 and ends
 * the thread.
 */
void loop_stop(struct loop *loop, int drain_ms);
void loop_wait_drained(struct loop *loop);
void loop_join(struct loop *loop);
void loop_free(struct loop *loop); /* after loop_join; NULL is fine */
int loop_port(const struct loop *loop);

/* All loops of the process, this one included; set once before loop_start. */
void loop_peers_set(struct loop *loop, struct loop *const *peers, size_t count);
struct loop *const *loop_peers(const struct loop *loop, size_t *ret_count);

/* For /readyz and metrics: any thread. */
int64_t
loop_lag_us(const struct loop *loop); /* worst turn of the last 10 s: how long an event may wait */
bool loop_db_ready(const struct loop *loop);
size_t loop_db_waiting(const struct loop *loop);

#endif
