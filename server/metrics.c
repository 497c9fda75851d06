/* Numbers for Prometheus: counted without locks, added up when asked. */
#include "server/metrics.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "server/http.h"
#include "server/loop.h"
#include "server/request.h"

/* The closed list of statuses; what is not in it is counted as 0. */
static const int statuses[] = {0,   200, 201, 202, 204, 304, 400, 401, 403, 404, 405,
                               409, 412, 413, 414, 415, 422, 428, 429, 500, 501, 503};
#define STATUS_COUNT COUNTOF(statuses)

/* Upper bounds in microseconds. */
static const int64_t buckets_us[] = {500,    1000,   2500,   5000,    10000,   25000,  50000,
                                     100000, 250000, 500000, 1000000, 2500000, 5000000};
#define BUCKET_COUNT COUNTOF(buckets_us)

struct loop_metrics {
    _Atomic uint64_t buckets[BUCKET_COUNT + 1];
    _Atomic uint64_t sum_us;
    _Atomic size_t streams;
    _Atomic uint64_t requests[]; /* rows of routes + 2, times STATUS_COUNT */
};

static _Atomic uint64_t process_counters[METRIC_COUNT];

void metrics_add(enum metric metric, uint64_t n)
{
    atomic_fetch_add_explicit(&process_counters[metric], n, memory_order_relaxed);
}

struct loop_metrics *loop_metrics_new(void)
{
    size_t cells = (routes_count + 2) * STATUS_COUNT;
    struct loop_metrics *metrics =
        calloc(1, sizeof(*metrics) + cells * sizeof(metrics->requests[0]));
    if (metrics == NULL) {
        abort();
    }
    return metrics;
}

void loop_metrics_free(struct loop_metrics *metrics)
{
    free(metrics);
}

/* Only the loop's thread writes, so that no locked instruction is needed. */
static void add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static size_t status_index(int status)
{
    for (size_t i = 1; i < STATUS_COUNT; i++) {
        if (statuses[i] == status) {
            return i;
        }
    }
    return 0;
}

static size_t row_of(int route)
{
    return route >= 0 ? (size_t)route : routes_count + (route == METRIC_ROUTE_FILE ? 0 : 1);
}

void loop_metrics_request(struct loop_metrics *metrics, int route, int status, int64_t us)
{
    size_t bucket = 0;
    while (bucket < BUCKET_COUNT && us > buckets_us[bucket]) {
        bucket++;
    }
    add(&metrics->requests[row_of(route) * STATUS_COUNT + status_index(status)], 1);
    add(&metrics->buckets[bucket], 1);
    add(&metrics->sum_us, us > 0 ? (uint64_t)us : 0);
}

void loop_metrics_streams(struct loop_metrics *metrics, int change)
{
    size_t streams = atomic_load_explicit(&metrics->streams, memory_order_relaxed);
    atomic_store_explicit(&metrics->streams, streams + (size_t)change, memory_order_relaxed);
}

size_t loop_metrics_stream_count(const struct loop_metrics *metrics)
{
    return atomic_load_explicit(&metrics->streams, memory_order_relaxed);
}

static void write_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static const char *row_name(size_t row)
{
    if (row < routes_count) {
        return routes[row].operation;
    }
    return row == routes_count ? "file" : "none";
}

static void write_requests(struct loop *const *loops, size_t count, struct buf *out)
{
    write_head(out, "muster_http_requests_total", "counter", "Requests by operation and status.");
    for (size_t row = 0; row < routes_count + 2; row++) {
        for (size_t status = 0; status < STATUS_COUNT; status++) {
            uint64_t sum = 0;
            for (size_t i = 0; i < count; i++) {
                const struct loop_metrics *metrics = loop_metrics(loops[i]);
                sum += atomic_load_explicit(&metrics->requests[row * STATUS_COUNT + status],
                                            memory_order_relaxed);
            }
            if (sum > 0) {
                buf_printf(out, "muster_http_requests_total{operation=\"%s\",status=\"%d\"} %llu\n",
                           row_name(row), statuses[status], (unsigned long long)sum);
            }
        }
    }
}

static void write_durations(struct loop *const *loops, size_t count, struct buf *out)
{
    const char *name = "muster_http_request_duration_seconds";
    uint64_t total = 0;
    uint64_t sum_us = 0;
    write_head(out, name, "histogram", "From the request line to the queued answer.");
    for (size_t bucket = 0; bucket <= BUCKET_COUNT; bucket++) {
        for (size_t i = 0; i < count; i++) {
            total += atomic_load_explicit(&loop_metrics(loops[i])->buckets[bucket],
                                          memory_order_relaxed);
        }
        if (bucket < BUCKET_COUNT) {
            buf_printf(out, "%s_bucket{le=\"%g\"} %llu\n", name, (double)buckets_us[bucket] / 1e6,
                       (unsigned long long)total);
        } else {
            buf_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)total);
        }
    }
    for (size_t i = 0; i < count; i++) {
        sum_us += atomic_load_explicit(&loop_metrics(loops[i])->sum_us, memory_order_relaxed);
    }
    buf_printf(out, "%s_sum %.6f\n%s_count %llu\n", name, (double)sum_us / 1e6, name,
               (unsigned long long)total);
}

static void write_loops(struct loop *const *loops, size_t count, struct buf *out)
{
    write_head(out, "muster_loop_lag_seconds", "gauge", "Worst turn of a loop in the last 10 s.");
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "muster_loop_lag_seconds{loop=\"%zu\"} %.6f\n", i,
                   (double)loop_lag_us(loops[i]) / 1e6);
    }
    write_head(out, "muster_database_waiting", "gauge", "Statements that wait for their rows.");
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "muster_database_waiting{loop=\"%zu\"} %zu\n", i,
                   loop_db_waiting(loops[i]));
    }
    write_head(out, "muster_streams", "gauge", "Open event streams.");
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "muster_streams{loop=\"%zu\"} %zu\n", i,
                   loop_metrics_stream_count(loop_metrics(loops[i])));
    }
}

/* Second number of /proc/self/statm: resident pages (proc(5)). */
static void write_memory(struct buf *out)
{
    CLEANUP(buf_free) struct buf statm = {0};
    struct str rest;
    struct str part;
    uint64_t pages = 0;
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    if (file_read("/proc/self/statm", 256, &statm) != 0) {
        return;
    }
    rest = buf_str(&statm);
    (void)str_split(&rest, ' ', &part);
    if (str_split(&rest, ' ', &part) && str_parse_u64(part, 0, UINT64_MAX, &pages)) {
        write_head(out, "process_resident_memory_bytes", "gauge", "Resident memory.");
        buf_printf(out, "process_resident_memory_bytes %llu\n",
                   (unsigned long long)pages * page_bytes);
    }
}

void metrics_write(struct loop *const *loops, size_t count, struct buf *out)
{
    static const struct {
        const char *name;
        const char *help;
    } rows[METRIC_COUNT] = {
#define METRIC_ROW(sym, name, help) [sym] = {name, help},
        METRIC_TABLE(METRIC_ROW)
#undef METRIC_ROW
    };

    write_requests(loops, count, out);
    write_durations(loops, count, out);
    write_loops(loops, count, out);
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        write_head(out, rows[i].name, "counter", rows[i].help);
        buf_printf(
            out, "%s %llu\n", rows[i].name,
            (unsigned long long)atomic_load_explicit(&process_counters[i], memory_order_relaxed));
    }
    write_memory(out);
}
