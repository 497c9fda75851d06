/* The writers: take all that waits, one transaction, answer after the commit. */
#include "server/ingest.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/follow.h"
#include "server/metrics.h"
#include "server/node_table.h"
#include "server/wake.h"

/* Under so many rows a batch costs several times as much a row: then waiting a little pays. */
#define SMALL_BATCH 32
#define SMALL_WAIT_NS 2000000
#define UNITS_MAX 16 /* of db_exec_all */
/* A failure that took longer than this was no refused connection: the database hangs. */
#define SLOW_FAILURE_US 500000

struct writer {
    struct ingest *ingest;
    pthread_t thread;
    bool started;
    int event_fd;
    _Atomic(struct ingest_item *) stack; /* newest first */
    atomic_int_least64_t waiting;
    /* of the writer's thread alone */
    struct db_conn *conn;
    struct batch *batch;
    struct node_table *nodes;  /* what each node said last: boot and readiness */
    struct ingest_item *first; /* taken from the stack, oldest first */
    struct ingest_item *last;
    bool lost; /* the database could not be reached, or did not answer */
    struct ingest_item *items[BATCH_ROWS_MAX];
    struct batch_item *sorted[BATCH_ROWS_MAX];
};

/* Orgs whose nodes booted or became ready in this batch. */
struct woken {
    struct uuid orgs[32];
    size_t count;
    bool all;
};

struct ingest {
    struct ingest_options options;
    struct writer writers[INGEST_WRITERS_MAX];
    atomic_bool stopping;
};

/* ------------------------------------------------------------------------------- hand-over */

static void wake_writer(struct writer *writer)
{
    uint64_t one = 1;
    ssize_t done;
    do {
        done = write(writer->event_fd, &one, sizeof one);
    } while (done < 0 && errno == EINTR);
}

enum err ingest_submit(struct ingest *ingest, struct ingest_item *item)
{
    /* The last byte of an id is random. */
    struct writer *writer =
        &ingest->writers[item->batch.node.bytes[15] % (unsigned)ingest->options.writers];
    if (atomic_load_explicit(&writer->waiting, memory_order_relaxed) >= INGEST_QUEUE_MAX ||
        atomic_load_explicit(&ingest->stopping, memory_order_relaxed)) {
        return ERR_OVERLOADED;
    }
    atomic_fetch_add_explicit(&writer->waiting, 1, memory_order_relaxed);
    struct ingest_item *head = atomic_load_explicit(&writer->stack, memory_order_relaxed);
    do {
        item->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&writer->stack, &head, item,
                                                    memory_order_release, memory_order_relaxed));
    if (head == NULL) {
        wake_writer(writer);
    }
    return ERR_NONE;
}

/* Moves what loops pushed behind what was taken before, oldest first. */
static void take_stack(struct writer *writer)
{
    struct ingest_item *item = atomic_exchange_explicit(&writer->stack, NULL, memory_order_acquire);
    struct ingest_item *newest = item;
    struct ingest_item *oldest = NULL;
    while (item != NULL) {
        struct ingest_item *next = item->next;
        item->next = oldest;
        oldest = item;
        item = next;
    }
    if (oldest == NULL) {
        return;
    }
    if (writer->first == NULL) {
        writer->first = oldest;
    } else {
        writer->last->next = oldest;
    }
    writer->last = newest;
}

/* Takes the oldest items, within the bounds of a batch. */
static size_t take_items(struct writer *writer)
{
    size_t taken = 0;
    size_t events = 0;
    while (writer->first != NULL && taken < BATCH_ROWS_MAX) {
        size_t more = writer->first->batch.report->event_count;
        if (events + more > BATCH_EVENTS_MAX) {
            break;
        }
        events += more;
        writer->items[taken++] = writer->first;
        writer->first = writer->first->next;
    }
    return taken;
}

static void finish_item(struct writer *writer, struct ingest_item *item, enum err err)
{
    item->err = err;
    atomic_fetch_sub_explicit(&writer->waiting, 1, memory_order_relaxed);
    if (err != ERR_NONE) {
        metrics_add(METRIC_REPORTS_FAILED, 1);
    }
    loop_post_task(item->loop, &item->done);
}

/* ------------------------------------------------------------------------------- transactions */

static struct ingest_item *item_of(struct batch_item *item)
{
    /* batch is the first member. */
    return (struct ingest_item *)item;
}

/* The orgs that got event rows: their loops look at once. */
static void wake_orgs(struct writer *writer, const struct db_unit *units, size_t unit_count)
{
    bool woken = false;
    for (size_t i = 0; i < unit_count; i++) {
        if (units[i].sql != SQL_INGEST_EVENTS) {
            continue;
        }
        for (int row = 0; row < db_rows_count(units[i].rows); row++) {
            struct uuid org;
            if (db_uuid(units[i].rows, row, 0, &org)) {
                wake_org(&org, WAKE_HEALTH);
                woken = true;
            }
        }
    }
    if (woken && writer->ingest->options.follow != NULL) {
        follow_poke(writer->ingest->options.follow);
    }
}

/* Readings that changed nothing: sent again, or of a key that two machines use. */
static void count_strikes(struct writer *writer, const struct db_unit *units, size_t unit_count)
{
    for (size_t i = 0; i < unit_count; i++) {
        if (units[i].sql != SQL_INGEST_STATE ||
            (size_t)db_i64(units[i].rows, 0, 0) >= batch_rows(writer->batch)) {
            continue;
        }
        struct db_unit unit = batch_strikes(writer->batch);
        if (db_exec_all(writer->conn, &unit, 1) != ERR_NONE) {
            log_warning("readings of two boots could not be counted: %s",
                        db_conn_error(writer->conn));
        }
        db_rows_free(unit.rows);
    }
}

/* Runs what the batch holds: one transaction, nearly always. */
static enum err run_batch(struct writer *writer)
{
    struct db_unit units[UNITS_MAX];
    size_t unit_count;
    while ((unit_count = batch_units(writer->batch, units, UNITS_MAX)) > 0) {
        enum err err = db_exec_all(writer->conn, units, unit_count);
        if (err != ERR_NONE) {
            return err;
        }
        metrics_add(METRIC_REPORT_BATCHES, 1);
        wake_orgs(writer, units, unit_count);
        count_strikes(writer, units, unit_count);
        for (size_t i = 0; i < unit_count; i++) {
            db_rows_free(units[i].rows);
        }
    }
    return ERR_NONE;
}

/*
 * One report that the database refuses. Only data that no retry can mend (a value that a check or a
 * type refuses) costs an event, by name; anything else is answered as a failure and sent again.
 */
static enum err run_alone(struct writer *writer, struct batch_item *item)
{
    batch_load_state(writer->batch, &item, 1);
    enum err err = run_batch(writer);
    for (size_t i = 0; i < item->report->event_count && err == ERR_NONE; i++) {
        batch_load_event(writer->batch, item, i);
        err = run_batch(writer);
        if (err == ERR_INVALID_FIELDS) {
            log_warning("an agent's event was refused: %s", db_conn_error(writer->conn));
            batch_item_refuse(item, i);
            err = ERR_NONE;
        }
    }
    return err;
}

/* A failed batch is halved until the report that spoils it stands alone. */
static void run_items(struct writer *writer, struct batch_item **sorted, size_t item_count)
{
    batch_load(writer->batch, sorted, item_count);
    size_t events = batch_events(writer->batch);
    enum err err = run_batch(writer);
    if (err == ERR_NONE) {
        metrics_add(METRIC_REPORTS, item_count);
        metrics_add(METRIC_AGENT_EVENTS, events);
    } else if (err != ERR_UNAVAILABLE && item_count > 1) {
        run_items(writer, sorted, item_count / 2);
        run_items(writer, sorted + item_count / 2, item_count - item_count / 2);
        return;
    } else if (err == ERR_INVALID_FIELDS) {
        err = run_alone(writer, sorted[0]);
    }
    if (err != ERR_NONE) {
        writer->lost = writer->lost || err == ERR_UNAVAILABLE;
        log_warning("%zu reports were not stored: %s", item_count, db_conn_error(writer->conn));
    }
    for (size_t i = 0; i < item_count; i++) {
        finish_item(writer, item_of(sorted[i]), err);
    }
}

/* Loops that derive states are woken when a node booted or became ready, which makes no event. */
static void note_nodes(struct writer *writer, size_t item_count, struct woken *woken)
{
    for (size_t i = 0; i < item_count; i++) {
        const struct batch_item *item = writer->sorted[i];
        if (!node_table_note(writer->nodes, &item->node, &item->report->boot_id,
                             item->report->ready)) {
            continue;
        }
        /* Sorted by org: the same one stands together. */
        if (woken->count > 0 && uuid_eq(&woken->orgs[woken->count - 1], &item->org)) {
            continue;
        }
        if (woken->count == COUNTOF(woken->orgs)) {
            woken->all = true;
            continue;
        }
        woken->orgs[woken->count++] = item->org;
    }
}

static void wake_noted(const struct woken *woken)
{
    if (woken->all) {
        wake_all(WAKE_HEALTH);
        return;
    }
    for (size_t i = 0; i < woken->count; i++) {
        wake_org(&woken->orgs[i], WAKE_HEALTH);
    }
}

/* ------------------------------------------------------------------------------- the thread */

static void wait_for_items(struct writer *writer)
{
    struct pollfd fd = {.fd = writer->event_fd, .events = POLLIN};
    uint64_t ignored;
    if (poll(&fd, 1, -1) > 0) {
        ssize_t got = read(writer->event_fd, &ignored, sizeof ignored);
        (void)got;
    }
}

/* With a database that does not answer, waiting for the next try would pass the 5 s within which
 * every request is answered. */
static void fail_waiting(struct writer *writer)
{
    take_stack(writer);
    while (writer->first != NULL) {
        struct ingest_item *item = writer->first;
        writer->first = item->next;
        finish_item(writer, item, ERR_UNAVAILABLE);
    }
}

/* One batch: what was taken, in the order of (org, node). */
static size_t write_batch(struct writer *writer)
{
    struct woken woken = {.count = 0};
    int64_t begin_us = clock_mono_us();
    size_t taken = take_items(writer);
    for (size_t i = 0; i < taken; i++) {
        writer->sorted[i] = &writer->items[i]->batch;
    }
    batch_sort(writer->sorted, taken);
    note_nodes(writer, taken, &woken);
    writer->lost = false;
    /* The items belong to their loops again after this. */
    run_items(writer, writer->sorted, taken);
    wake_noted(&woken);
    if (writer->lost && clock_mono_us() - begin_us > SLOW_FAILURE_US) {
        fail_waiting(writer);
    }
    return taken;
}

static void *run_writer(void *arg)
{
    struct writer *writer = arg;
    size_t last_rows = BATCH_ROWS_MAX;
    for (;;) {
        take_stack(writer);
        if (writer->first == NULL) {
            if (atomic_load(&writer->ingest->stopping)) {
                return NULL;
            }
            wait_for_items(writer);
            continue;
        }
        if (last_rows < SMALL_BATCH) {
            struct timespec pause = {.tv_nsec = SMALL_WAIT_NS};
            (void)nanosleep(&pause, NULL);
            take_stack(writer);
        }
        last_rows = write_batch(writer);
    }
}

/* ------------------------------------------------------------------------------- life */

struct ingest *ingest_new(const struct ingest_options *options)
{
    assert(options->writers >= 1 && options->writers <= INGEST_WRITERS_MAX);
    struct ingest *ingest = calloc(1, sizeof *ingest);
    if (ingest == NULL) {
        abort();
    }
    ingest->options = *options;
    for (int i = 0; i < options->writers; i++) {
        struct writer *writer = &ingest->writers[i];
        writer->ingest = ingest;
        writer->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        writer->conn = db_conn_new(DB_INGEST);
        writer->batch = batch_new();
        writer->nodes = node_table_new();
        if (writer->event_fd < 0) {
            abort();
        }
    }
    return ingest;
}

bool ingest_start(struct ingest *ingest)
{
    for (int i = 0; i < ingest->options.writers; i++) {
        struct writer *writer = &ingest->writers[i];
        if (pthread_create(&writer->thread, NULL, run_writer, writer) != 0) {
            return false;
        }
        writer->started = true;
        (void)pthread_setname_np(writer->thread, "writer");
    }
    return true;
}

void ingest_stop(struct ingest *ingest)
{
    atomic_store(&ingest->stopping, true);
    for (int i = 0; i < ingest->options.writers; i++) {
        struct writer *writer = &ingest->writers[i];
        if (writer->started) {
            wake_writer(writer);
            (void)pthread_join(writer->thread, NULL);
            writer->started = false;
        }
    }
}

void ingest_free(struct ingest *ingest)
{
    if (ingest == NULL) {
        return;
    }
    for (int i = 0; i < ingest->options.writers; i++) {
        db_conn_free(ingest->writers[i].conn);
        batch_free(ingest->writers[i].batch);
        node_table_free(ingest->writers[i].nodes);
        (void)close(ingest->writers[i].event_fd);
    }
    free(ingest);
}
