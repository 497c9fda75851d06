/* A span of time out of a query: its defaults, and what is wrong with it. */
#ifndef SERVER_SPAN_H
#define SERVER_SPAN_H

#include <stdint.h>

#include "server/fields.h"
#include "server/request.h"

#define SPAN_POINTS_MAX 2016 /* a week of five minutes */

struct span {
    int64_t since_us;
    int64_t until_us; /* itself not part of the span */
    int64_t step_s;   /* only span_points */
    int64_t first_s;  /* only span_points: the first point, a multiple of the step */
    size_t count;     /* points or buckets */
};

/* since and until, or the last 24 hours. ERR_INVALID_FIELDS when they are the wrong way round. */
enum err span_read(struct request *rq, const struct span_query *query,
                   struct span *ret_span) MUST_CHECK;
/* The same cut into points at multiples of the step; at most SPAN_POINTS_MAX. */
enum err span_points(struct request *rq, const struct span_query *query,
                     struct span *ret_span) MUST_CHECK;
/* The same cut into equal buckets. */
enum err span_buckets(struct request *rq, const struct span_query *query, int64_t buckets,
                      struct span *ret_span) MUST_CHECK;
/* $n since, $n+1 until. */
void span_bind(struct request *rq, const struct span *span, struct db_args *args);

#endif
