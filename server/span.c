/* A span of time out of a query: its defaults, and what is wrong with it. */
#include "server/span.h"

#include "base/clock.h"

#define SECOND_US INT64_C(1000000)
#define DAY_US (86400 * SECOND_US)
#define STEP_S INT64_C(300) /* how often samples are kept, unless settings say otherwise */

static enum err refuse(struct request *rq, const char *parameter, const char *detail)
{
    if (rq->errors.count < DECODE_ERRORS_MAX) {
        rq->errors.items[rq->errors.count++] =
            (struct field_error){.parameter = parameter, .code = "out_of_range", .detail = detail};
    }
    return fail(rq, ERR_INVALID_FIELDS, "1 field was refused.");
}

enum err span_read(struct request *rq, const struct span_query *query, struct span *ret_span)
{
    struct span span = {0};
    span.until_us = query->has_until ? query->until : clock_wall_us();
    span.since_us = query->has_since ? query->since : span.until_us - DAY_US;
    if (span.since_us >= span.until_us) {
        return refuse(rq, "since", "It must lie before until.");
    }
    *ret_span = span;
    return ERR_NONE;
}

static int64_t floor_to(int64_t value, int64_t step)
{
    int64_t rest = value % step;
    return value - (rest < 0 ? rest + step : rest);
}

enum err span_points(struct request *rq, const struct span_query *query, struct span *ret_span)
{
    struct span span = {0};
    enum err err = span_read(rq, query, &span);
    if (err != ERR_NONE) {
        return err;
    }
    int64_t length_s = (span.until_us - span.since_us) / SECOND_US;
    span.step_s = query->step_seconds;
    if (!query->has_step_seconds) {
        int64_t times = (length_s + STEP_S * SPAN_POINTS_MAX - 1) / (STEP_S * SPAN_POINTS_MAX);
        span.step_s = STEP_S * (times < 1 ? 1 : times);
    }
    int64_t step_us = span.step_s * SECOND_US;
    int64_t first_us = floor_to(span.since_us + step_us - 1, step_us);
    int64_t last_us = floor_to(span.until_us - 1, step_us);
    int64_t count = last_us < first_us ? 0 : (last_us - first_us) / step_us + 1;
    if (count > SPAN_POINTS_MAX) {
        return refuse(rq, "step_seconds",
                      "At most 2016 points are possible: choose a longer step or a shorter span.");
    }
    span.since_us = first_us;
    span.first_s = first_us / SECOND_US;
    span.count = (size_t)count;
    *ret_span = span;
    return ERR_NONE;
}

enum err span_buckets(struct request *rq, const struct span_query *query, int64_t buckets,
                      struct span *ret_span)
{
    struct span span = {0};
    enum err err = span_read(rq, query, &span);
    if (err != ERR_NONE) {
        return err;
    }
    span.count = (size_t)(query->has_buckets ? query->buckets : buckets);
    *ret_span = span;
    return ERR_NONE;
}

void span_bind(struct request *rq, const struct span *span, struct db_args *args)
{
    db_arg_time(args, rq->arena, span->since_us);
    db_arg_time(args, rq->arena, span->until_us);
}
