/* The writers: threads that bring reports from the event loops into the database in batches. */
#ifndef SERVER_INGEST_H
#define SERVER_INGEST_H

#include "base/cleanup.h"
#include "base/err.h"
#include "server/ingest_batch.h"
#include "server/loop.h"

struct follow;
struct ingest;

/* More writers would only make smaller batches (docs/adr/0005). */
#define INGEST_WRITERS_MAX 2
/* Reports that may wait in one writer; a request is held for each. */
#define INGEST_QUEUE_MAX 8192

/*
 * A report between its request and its answer. The loop fills batch, loop and done, and keeps all
 * of it (and the report, and the body the report points into) until done.fn is called on the loop's
 * thread: after the commit, or with the failure in `err`.
 */
struct ingest_item {
    struct batch_item batch;
    struct loop *loop;
    struct loop_task done;
    enum err err; /* 0: committed, except the events marked as refused */
    /* private */
    struct ingest_item *next;
};

struct ingest_options {
    int writers; /* 1..INGEST_WRITERS_MAX */
    /* Told after batches with events; NULL = nobody. */
    struct follow *follow;
};

/* Reports of a node always go to the same writer, so that they stay in order. */
struct ingest *ingest_new(const struct ingest_options *options);
bool ingest_start(struct ingest *ingest) MUST_CHECK;
/* Finishes what waits, then ends the threads. After the loops have ended: they get the answers. */
void ingest_stop(struct ingest *ingest);
void ingest_free(struct ingest *ingest); /* after ingest_stop; NULL is fine */

/* From any loop, without locks. ERR_OVERLOADED when too many wait: then done is not called. */
enum err ingest_submit(struct ingest *ingest, struct ingest_item *item) MUST_CHECK;

#endif
