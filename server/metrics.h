/* Numbers for Prometheus: per loop (requests), and of the whole process (what other parts count).
 */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct loop;
struct loop_metrics;

/* Counters of the process: add a row, then metrics_add from any thread. Names end with _total. */
#define METRIC_TABLE(X)                                                                            \
    X(METRIC_REPORTS, "muster_reports_total", "Reports of agents that were committed.")            \
    X(METRIC_REPORT_BATCHES, "muster_report_batches_total", "Batches in which they were written.") \
    X(METRIC_REPORTS_FAILED, "muster_reports_failed_total", "Reports answered with an error.")     \
    X(METRIC_AGENT_EVENTS, "muster_agent_events_total", "Events in reports that were taken.")      \
    X(METRIC_ISSUER_FETCHES, "muster_issuer_fetches_total", "Tries to fetch an issuer's keys.")    \
    X(METRIC_ISSUER_FETCHES_FAILED, "muster_issuer_fetches_failed_total", "Of them, failed.")      \
    X(METRIC_TOKENS_TAKEN, "muster_issuer_tokens_taken_total", "Tokens of issuers found valid.")   \
    X(METRIC_TOKENS_REFUSED, "muster_issuer_tokens_refused_total", "Tokens of issuers refused.")
enum metric {
#define METRIC_ENUM(sym, name, help) sym,
    METRIC_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
        METRIC_COUNT
};
void metrics_add(enum metric metric, uint64_t n);

/* One a loop, written by its thread only, read by any. */
struct loop_metrics *loop_metrics_new(void);
void loop_metrics_free(struct loop_metrics *metrics);
/* Pseudo rows beside those of the table of routes. */
enum { METRIC_ROUTE_FILE = -1, METRIC_ROUTE_NONE = -2 };
/* route: index in routes[], or one of the above. */
void loop_metrics_request(struct loop_metrics *metrics, int route, int status, int64_t us);
void loop_metrics_streams(struct loop_metrics *metrics, int change);
size_t loop_metrics_stream_count(const struct loop_metrics *metrics);

/* The exposition text over all loops. */
void metrics_write(struct loop *const *loops, size_t count, struct buf *out);

#endif
