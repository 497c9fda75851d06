/* The demo's story: every half hour something of each sort happens, so that a newcomer sees it. */
#include "bench/story.h"

#include <assert.h>

#define SECOND_US 1000000LL
#define NODES_LEAST 12
#define BEGINS_AFTER_S 20
#define ROUND_S 1800

/* A GPU that is lost; a check that is in shadow in the demo; warnings; a rack whose power is short
 * (three nodes, one cause), late enough that what came before is no part of it; a node that nobody
 * hears. */
static const char round_of[] = "gpu_lost@4 clock_unsync@7 hbm_row_remap_pending@9+15 eth_down@6+30 "
                               "gpu_power_short@10-12+150 silence@8+240 service_down@5+330";

void story_turn(struct story *story, struct orders *orders, const struct fleet *fleet,
                int64_t now_us)
{
    if (fleet->count < NODES_LEAST) {
        return;
    }
    if (story->next_us == 0) {
        story->next_us = now_us + BEGINS_AFTER_S * SECOND_US;
    }
    if (now_us < story->next_us) {
        return;
    }
    story->next_us = now_us + ROUND_S * SECOND_US;
    struct str bad;
    bool taken = orders_take(orders, str_of(round_of), now_us, &bad);
    /* A full list of orders drops the rest of a round; the next one comes. */
    (void)taken;
}
