/* Faults on request: which kinds there are, and orders to break, silence or mend nodes. */
#ifndef BENCH_ORDERS_H
#define BENCH_ORDERS_H

#include "base/buf.h"
#include "base/str.h"
#include "bench/fleet.h"

#define ORDERS_MAX 256

enum order_verb { ORDER_BREAK, ORDER_SILENCE, ORDER_MEND };

struct order {
    enum order_verb verb;
    const struct fault_kind *kind; /* of ORDER_BREAK */
    size_t first;                  /* of the nodes, from 1; 0 = any one that is well */
    size_t last;
    int64_t after_s;
    int64_t due_us; /* monotonic; set when it is taken */
};

struct orders {
    struct order items[ORDERS_MAX]; /* that wait for their time */
    size_t count;
    const char *state_dir; /* where orders from outside are left; "" = nowhere */
    int64_t looked_us;
};

/* KIND[@NODE[-NODE]][+SECONDS]; KIND is a kind of fault, "silence" or "mend". False = it is none.
 */
bool order_parse(struct str text, struct order *ret_order);
/* Takes orders apart by commas, blanks and new lines; false with the word that is none. */
bool orders_take(struct orders *orders, struct str text, int64_t now_us, struct str *ret_bad);
/* Carries out what is due; once a second it looks for orders from outside too. */
void orders_turn(struct orders *orders, struct fleet *fleet, int64_t now_us);
/* Leaves orders for a simulator that runs with the same --state; 0, or an errno. */
int orders_leave(const char *state_dir, struct str text);
/* A table of kinds, and of checks that none can fail. */
void orders_list(struct buf *out);

#endif
