/* The demo's story: every half hour something of each sort happens, so that a newcomer sees it. */
#ifndef BENCH_STORY_H
#define BENCH_STORY_H

#include "bench/orders.h"

struct story {
    int64_t next_us; /* monotonic; 0 = it has not begun */
};

/* Gives the next round of orders when it is due; fleets with fewer than 12 nodes have none. */
void story_turn(struct story *story, struct orders *orders, const struct fleet *fleet,
                int64_t now_us);

#endif
