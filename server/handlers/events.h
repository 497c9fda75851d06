/* GET /api/v1/events/stream: server-sent events of an org, without gaps. */
#ifndef SERVER_HANDLERS_EVENTS_H
#define SERVER_HANDLERS_EVENTS_H

#include "server/request.h"

struct loop;

struct event_stream_query {
    struct str cluster_id; /* ptr NULL = all clusters */
    int64_t after;
    bool has_after;
};
extern const struct field event_stream_query[];

enum err event_stream(struct request *rq);

/* State of a loop: before loop_start, and after loop_join. */
void events_attach(struct loop *loop);
void events_detach(struct loop *loop);

#endif
