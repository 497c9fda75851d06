/* What the simulated nodes say to the server: enrolment, tokens, reports, commands. */
#ifndef BENCH_EXCHANGE_H
#define BENCH_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/fleet.h"
#include "bench/wire.h"

#define EXCHANGE_LATENCIES_MAX 4000000 /* later ones are counted, not sorted in */

struct exchange {
    struct fleet *fleet;
    struct wire *wire;
    const char *join_token;
    int64_t interval_us;
    int64_t end_us; /* monotonic; INT64_MAX = until stopped */
    size_t enrolling;
    size_t refused;
    size_t live;
    int64_t sent;
    int64_t acked;
    int64_t errors;
    uint32_t *latencies_us; /* acknowledged reports, from the scheduled time */
    size_t latency_count;
    int64_t counted_us; /* latencies of reports scheduled before this are not counted: nodes still
                           joined */
    int last_status;    /* of the newest failure */
};

void exchange_enroll(struct exchange *exchange, struct sim_node *node);
/* Sends the report that is due, or first renews the token. */
void exchange_report(struct exchange *exchange, struct sim_node *node, int64_t now_us);

#endif
