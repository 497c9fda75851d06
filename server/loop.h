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

/* State of a module, one a loop. Freed by its module after loop_join. */
enum loop_slot {
    LOOP_SLOT_AUTH,
    LOOP_SLOT_STATIC,
    LOOP_SLOT_WAIT,
    LOOP_SLOT_EVENTS,
    LOOP_SLOT_INGEST,
    LOOP_SLOT_COUNT
};
void loop_slot_set(struct loop *loop, enum loop_slot slot, void *state);
void *loop_slot(const struct loop *loop, enum loop_slot slot);

struct loop_options {
    int index;
    struct follow *follow;
    const char *listen;      /* "127.0.0.1:8080", "[::]:8443" */
    const char *certificate; /* PEM text, NULL = plain http */
    const char *key;         /* PEM text */
    unsigned connections;    /* at most so many clients on this loop */
};

/* NULL with a sentence in error when it cannot listen. */
struct loop *loop_new(const struct loop_options *options, char *error, size_t error_cap);
bool loop_start(struct loop *loop) MUST_CHECK; /* makes the thread */
/*
 * Graceful stop: loop_stop closes the listening socket, ends streams and waits, and lets requests
 * finish for at most drain_ms; loop_join waits for the thread. Any thread.
 */
void loop_stop(struct loop *loop, int drain_ms);
void loop_join(struct loop *loop);
void loop_free(struct loop *loop); /* after loop_join; NULL is fine */
int loop_port(const struct loop *loop);

/* For /readyz and metrics: any thread. */
int64_t
loop_lag_us(const struct loop *loop); /* worst turn of the last 10 s: how long an event may wait */
bool loop_db_ready(const struct loop *loop);

#endif
