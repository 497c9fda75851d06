/* Counters over time: how much one grew within a window, whatever it does in between. */
#ifndef AGENT_COLLECT_RATES_H
#define AGENT_COLLECT_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"

/* A window is counted in so many pieces: what is told is 5/6 to 6/6 of it. */
#define RATE_PIECES 6

struct rate {
    uint64_t last; /* the counter's last value */
    int64_t piece; /* number of the present piece of time */
    uint32_t grown[RATE_PIECES];
};

/*
 * How far a counter came. One that is smaller than before has wrapped when it stood close under
 * 2^32 and is small now; otherwise it was reset and has counted up from 0 since.
 */
uint64_t counter_grown(uint64_t before, uint64_t now);
/* The first reading of a counter: nothing has grown yet. */
void rate_begin(struct rate *rate, uint64_t value, uint32_t window_s, int64_t now_us);
/* A further reading; returns the growth within the window that ends now. */
uint64_t rate_add(struct rate *rate, uint64_t value, uint32_t window_s, int64_t now_us);
/* As text, one line without its end, and back. */
void rate_write(const struct rate *rate, struct buf *out);
bool rate_read(struct str text, struct rate *ret_rate) MUST_CHECK;

#endif
