/* A batch of reports as the arrays of the writers' two statements: sorted, each event once. */
#ifndef SERVER_INGEST_BATCH_H
#define SERVER_INGEST_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"
#include "db/db.h"
#include "server/report.h"

/* A statement slows down with its rows and a transaction holds locks: both are bounded. */
#define BATCH_ROWS_MAX 1024
#define BATCH_EVENTS_MAX REPORT_EVENTS_MAX

/* A report on its way to the database. */
struct batch_item {
    struct uuid org;
    struct uuid cluster;
    struct uuid node;
    const struct report *report;
    uint64_t refused_words[REPORT_EVENTS_MAX / 64]; /* bit i: event i was refused by the database */
};

static inline void batch_item_refuse(struct batch_item *item, size_t event)
{
    item->refused_words[event / 64] |= UINT64_C(1) << event % 64;
}

static inline bool batch_item_is_refused(const struct batch_item *item, size_t event)
{
    return (item->refused_words[event / 64] >> event % 64 & 1) != 0;
}

struct batch; /* keeps its memory from one use to the next; one thread at a time */

struct batch *batch_new(void);
void batch_free(struct batch *batch);

/* Sorts by (org, node, seq of the report): two writers that do so do not deadlock. */
void batch_sort(struct batch_item **items, size_t count);

/*
 * Fills the batch from sorted items; what it held before is gone. count <= BATCH_ROWS_MAX, events
 * together <= BATCH_EVENTS_MAX. Of several reports of a node the last gives the readings, and an
 * event that stands in several counts once.
 */
void batch_load(struct batch *batch, struct batch_item *const *items, size_t count);
/* The readings alone, or one event alone: to find what the database refuses. */
void batch_load_state(struct batch *batch, struct batch_item *const *items, size_t count);
void batch_load_event(struct batch *batch, const struct batch_item *item, size_t event);

size_t batch_rows(const struct batch *batch);
size_t batch_events(const struct batch *batch); /* after repeats within the batch were left out */

/*
 * The next transaction's statements, at most max; 0 when all were given. Nearly always one
 * transaction holds everything. A key that opens and clears in turn within one batch needs a
 * statement for each turn, and with more than fit a further transaction.
 */
size_t batch_units(struct batch *batch, struct db_unit *units, size_t max);

/* Asks which readings were passed over because their node speaks from two boots; valid until the
 * next load. */
struct db_unit batch_strikes(struct batch *batch);

#endif
