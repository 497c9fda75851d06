/*
 * Server-sent events. The streams of an org on this loop form a group: one statement a change
 * fetches what is new for all of them. A stream that begins in the past catches up by itself first
 * and joins the group when it has passed the group's place; both places only grow, so that nothing
 * is lost or told twice.
 */
#include "server/handlers/events.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/event_group.h"
#include "server/exchange.h"
#include "server/follow.h"
#include "server/metrics.h"

#define STREAMS_MAX 1000 /* a loop: each turn that resumes anything walks all suspended ones */
#define RETRY_AFTER_S 5
#define COMMENT_MS 15000
#define TICK_MS 500 /* samples at most twice a second */

const struct field event_stream_query[] = {
    {.name = "cluster_id",
     .type = FIELD_UUID,
     .offset = offsetof(struct event_stream_query, cluster_id)},
    {.name = "after",
     .type = FIELD_I64,
     .offset = offsetof(struct event_stream_query, after),
     .present_offset = offsetof(struct event_stream_query, has_after)},
    {0},
};

/* ------------------------------------------------------------------ the connection's side */

static ssize_t read_out(void *ctx, char *data, size_t max)
{
    struct stream *stream = ctx;
    size_t left = stream->out.len - stream->sent;
    if (left == 0) {
        return stream->closing ? -1 : 0;
    }
    size_t len = left < max ? left : max;
    memcpy(data, stream->out.ptr + stream->sent, len);
    stream->sent += len;
    if (stream->sent == stream->out.len) {
        buf_clear(&stream->out);
        stream->sent = 0;
    }
    return (ssize_t)len;
}

static void close_stream(void *ctx)
{
    struct stream *stream = ctx;
    struct streams *streams = stream->group->streams;
    streams->count--;
    loop_metrics_streams(loop_metrics(streams->loop), -1);
    stream->ex = NULL;
    stream_remove(stream);
}

static const struct stream_ops ops = {.read = read_out, .close = close_stream};

/* Last-Event-ID wins over ?after=: a browser that reconnects repeats the address of its first try.
 */
static enum err read_after(struct request *rq, int64_t *ret_after)
{
    const struct event_stream_query *query = rq->params;
    struct str last = exchange_of(rq)->headers[HEADER_LAST_EVENT_ID];
    *ret_after = query->has_after ? query->after : STREAM_FROM_NOW;
    if (last.ptr != NULL && last.len > 0 && !str_parse_i64(last, 0, INT64_MAX - 1, ret_after)) {
        return fail(rq, ERR_BAD_REQUEST, "Last-Event-ID must be a number that this stream sent.");
    }
    return ERR_NONE;
}

static enum err begin(struct request *rq)
{
    const struct event_stream_query *query = rq->params;
    struct streams *streams = loop_slot(rq->loop, LOOP_SLOT_EVENTS);
    int64_t after = 0;
    enum err err = read_after(rq, &after);
    if (err != ERR_NONE) {
        return err;
    }
    if (streams->count >= STREAMS_MAX || request_stopping(rq)) {
        rq->retry_after_s = RETRY_AFTER_S;
        return fail(rq, ERR_OVERLOADED, "This server has as many event streams as it can serve.");
    }
    struct stream *stream = stream_add(streams, rq, after);
    if (query->cluster_id.ptr != NULL) {
        stream->filtered = uuid_parse(query->cluster_id, &stream->cluster);
    }
    streams->count++;
    loop_metrics_streams(loop_metrics(streams->loop), 1);
    buf_add_c(&stream->out, "retry: 3000\n\n");
    exchange_stream(exchange_of(rq), &ops, stream);
    stream_catch_up(stream);
    return ERR_NONE;
}

static enum err on_cluster(struct request *rq, const struct db_rows *rows)
{
    return db_rows_count(rows) == 0 ? fail(rq, ERR_NOT_FOUND, "There is no such cluster.")
                                    : begin(rq);
}

enum err event_stream(struct request *rq)
{
    const struct event_stream_query *query = rq->params;
    struct db_args args = {0};
    if (query->cluster_id.ptr == NULL) {
        return rq->scope == NULL
                   ? begin(rq)
                   : fail(rq, ERR_FORBIDDEN,
                          "Your role is for a part of this organization: name a cluster_id.");
    }
    db_arg_str(&args, rq->arena, query->cluster_id);
    return request_query(rq, SQL_STREAM_CLUSTER, false, &args, on_cluster);
}

/* ------------------------------------------------------------------ what moves the streams */

static void on_changes(void *arg, const struct follow_change *changes, size_t count,
                       bool auth_moved)
{
    struct streams *streams = arg;
    for (struct group *group = streams->groups; group != NULL; group = group->next) {
        if (auth_moved) {
            group_check_callers(group);
        }
        for (size_t i = 0; i < count; i++) {
            if (!uuid_eq(&changes[i].head.org, &group->org)) {
                continue;
            }
            group->sample_due = group->sample_due || changes[i].rollup;
            if (changes[i].events) {
                group_fetch(group);
            }
        }
    }
}

static void on_tick(void *arg)
{
    struct streams *streams = arg;
    struct group *group = streams->groups;
    while (group != NULL) {
        struct group *next = group->next;
        group_tick(group);
        group = next;
    }
}

static void on_comment(void *arg)
{
    struct streams *streams = arg;
    for (struct group *group = streams->groups; group != NULL; group = group->next) {
        for (struct stream *stream = group->first; stream != NULL; stream = stream->next) {
            stream_say(stream, STR(": alive\n\n"));
        }
    }
}

static void on_stop(void *arg)
{
    struct streams *streams = arg;
    for (struct group *group = streams->groups; group != NULL; group = group->next) {
        for (struct stream *stream = group->first; stream != NULL; stream = stream->next) {
            stream_end(stream);
        }
    }
}

void events_attach(struct loop *loop)
{
    struct streams *streams = calloc(1, sizeof(*streams));
    if (streams == NULL) {
        abort();
    }
    streams->loop = loop;
    loop_slot_set(loop, LOOP_SLOT_EVENTS, streams);
    loop_change_hook_add(loop, on_changes, streams);
    loop_timer_add(loop, TICK_MS, on_tick, streams);
    loop_timer_add(loop, COMMENT_MS, on_comment, streams);
    loop_stop_hook_add(loop, on_stop, streams);
}

void events_detach(struct loop *loop)
{
    struct streams *streams = loop_slot(loop, LOOP_SLOT_EVENTS);
    while (streams != NULL && streams->groups != NULL) {
        struct group *group = streams->groups;
        streams->groups = group->next;
        group_free(group);
    }
    free(streams);
    loop_slot_set(loop, LOOP_SLOT_EVENTS, NULL);
}
