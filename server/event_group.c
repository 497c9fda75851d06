/* The event streams of one org on one loop, and what they are fed with. */
#include "server/event_group.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"

#define FETCH_MAX "500"
#define FETCH_ROWS 500
#define BACKLOG_MAX ((size_t)256 * 1024) /* a client this far behind does not read */
#define MINUTE_US (60 * (int64_t)1000000)
/* `at` is when a transaction began, `seq` when it was about to commit: a later seq may carry an
 * earlier instant, by no more than the longest statement (30 s). */
#define SLACK_US (5 * MINUTE_US)
/* Where a client's place is looked for first; most come back within minutes. */
#define FIRST_LOOK_US (60 * MINUTE_US)

/* ------------------------------------------------------------------ saying */

void stream_say(struct stream *stream, struct str text)
{
    if (stream->ex == NULL || stream->closing) {
        return;
    }
    buf_add(&stream->out, text.ptr, text.len);
    if (stream->out.len - stream->sent > BACKLOG_MAX) {
        log_debug("an event stream is cut: its client does not read");
        stream->closing = true;
        exchange_abort(stream->ex);
        return;
    }
    exchange_unpark(stream->ex);
}

void stream_end(struct stream *stream)
{
    stream->closing = true;
    if (stream->ex != NULL) {
        exchange_unpark(stream->ex);
    }
}

struct columns {
    int head;
    int seq;
    int at;
    int type;
    int cluster;
    int data;
};

static struct columns find_columns(const struct db_rows *rows)
{
    return (struct columns){
        .head = db_rows_col(rows, "head"),
        .seq = db_rows_col(rows, "seq"),
        .at = db_rows_col(rows, "at"),
        .type = db_rows_col(rows, "type"),
        .cluster = db_rows_col(rows, "cluster_id"),
        .data = db_rows_col(rows, "data"),
    };
}

/* Rows with a seq: the only row of an empty answer has none. */
static int event_count(const struct db_rows *rows, const struct columns *cols)
{
    int count = db_rows_count(rows);
    return count == 1 && db_is_null(rows, 0, cols->seq) ? 0 : count;
}

/* Tells those events that the stream has not had and wants to have. */
static void tell_events(struct stream *stream, const struct db_rows *rows,
                        const struct columns *cols, int count)
{
    struct buf text = {0};
    for (int i = 0; i < count; i++) {
        struct uuid cluster;
        int64_t seq = db_i64(rows, i, cols->seq);
        if (seq <= stream->seq) {
            continue;
        }
        stream->seq = seq;
        if (stream->filtered &&
            (!db_uuid(rows, i, cols->cluster, &cluster) || !uuid_eq(&cluster, &stream->cluster))) {
            continue;
        }
        buf_printf(&text, "id: %" PRId64 "\nevent: %.*s\ndata: %.*s\n\n", seq,
                   STR_FMT(db_text(rows, i, cols->type)), STR_FMT(db_text(rows, i, cols->data)));
    }
    if (text.len > 0) {
        stream_say(stream, buf_str(&text));
    }
    buf_free(&text);
}

static void format_since(char text[40], int64_t since_us)
{
    if (since_us == INT64_MIN) {
        (void)snprintf(text, 40, "-infinity");
    } else {
        str_format_rfc3339(since_us, text);
    }
}

static void fill_events_call(struct db_call *call, const struct uuid *org, const char *seq,
                             const char *since)
{
    *call = (struct db_call){.sql = SQL_STREAM_EVENTS, .has_org = true, .org = *org};
    db_arg(&call->args, seq);
    db_arg(&call->args, since);
    db_arg(&call->args, FETCH_MAX);
}

/* ------------------------------------------------------------------ catching up */

/* The place is gone (dropped by retention) or was never there: the client reads everything anew. */
static void reset(struct stream *stream, int64_t head)
{
    char text[128];
    stream->seq = head;
    int len = snprintf(text, sizeof(text),
                       "id: %" PRId64 "\nevent: reset\ndata: {\"as_of_seq\":%" PRId64 "}\n\n", head,
                       head);
    stream_say(stream, (struct str){text, (size_t)len});
}

/* An id without an event: a client that is cut off before the first one comes back to here. */
static void tell_place(struct stream *stream)
{
    char text[40];
    int len = snprintf(text, sizeof(text), "id: %" PRId64 "\n\n", stream->seq);
    stream_say(stream, (struct str){text, (size_t)len});
}

static void join(struct stream *stream)
{
    struct group *group = stream->group;
    if (group->seq < 0) {
        group->seq = stream->seq;
    }
    if (stream->seq >= group->seq) {
        stream->live = true;
        /* What came in while this stream looked for its place may have been told to nobody. */
        group_fetch(group);
    } else {
        stream_catch_up(stream);
    }
}

/* What a look has found: told, or the next look prepared. */
static void take_look(struct stream *stream, const struct db_rows *rows)
{
    struct columns cols = find_columns(rows);
    int count = event_count(rows, &cols);
    int64_t head = db_rows_count(rows) > 0 ? db_i64(rows, 0, cols.head) : 0;

    if (stream->seq == STREAM_FROM_NOW) {
        stream->seq = head;
        tell_place(stream);
    } else if (stream->seq > head) {
        reset(stream, head);
    } else if (count > 0 ? db_i64(rows, 0, cols.seq) != stream->seq + 1 : stream->seq < head) {
        /* A hole: the numbers of an org have none, so the missing ones are older than this look
         * reached, or gone. */
        if (stream->since_us == INT64_MIN) {
            reset(stream, head);
        } else {
            stream->since_us = INT64_MIN;
            stream_catch_up(stream);
            return;
        }
    } else if (count > 0) {
        tell_events(stream, rows, &cols, count);
        stream->since_us = db_time_us(rows, count - 1, cols.at) - SLACK_US;
    }
    join(stream);
}

static void release(struct stream *stream)
{
    if (stream->ex == NULL && stream->calls == 0) {
        buf_free(&stream->out);
        free(stream);
    }
}

static void on_look(struct db_call *call, enum err err, const struct db_rows *rows)
{
    struct stream *stream = call->ctx;
    stream->calls--;
    if (stream->ex == NULL) {
        release(stream);
    } else if (err != ERR_NONE) {
        stream_end(stream); /* the client comes back with its place */
    } else {
        take_look(stream, rows);
    }
}

void stream_catch_up(struct stream *stream)
{
    if (stream->closing) {
        return;
    }
    int64_t after = stream->seq == STREAM_FROM_NOW ? INT64_MAX : stream->seq;
    (void)snprintf(stream->seq_text, sizeof(stream->seq_text), "%" PRId64, after);
    format_since(stream->since_text, stream->since_us);
    fill_events_call(&stream->catch_call, &stream->group->org, stream->seq_text,
                     stream->since_text);
    stream->catch_call.done = on_look;
    stream->catch_call.ctx = stream;
    stream->calls++;
    db_submit(loop_db(stream->group->streams->loop), &stream->catch_call);
}

/* ------------------------------------------------------------------ the group's fetch */

static void on_fetched(struct db_call *call, enum err err, const struct db_rows *rows)
{
    struct group *group = call->ctx;
    group->fetching = false;
    if (err != ERR_NONE) {
        group->fetch_again = true; /* the next tick tries again */
        return;
    }
    struct columns cols = find_columns(rows);
    int count = event_count(rows, &cols);
    if (count > 0) {
        for (struct stream *stream = group->first; stream != NULL; stream = stream->next) {
            if (stream->live) {
                tell_events(stream, rows, &cols, count);
            }
        }
        group->seq = db_i64(rows, count - 1, cols.seq);
        group->since_us = db_time_us(rows, count - 1, cols.at) - SLACK_US;
    }
    if (group->fetch_again || count == FETCH_ROWS) {
        group->fetch_again = false;
        group_fetch(group);
    }
}

void group_fetch(struct group *group)
{
    if (group->seq < 0 || group->first == NULL) {
        return;
    }
    if (group->fetching) {
        group->fetch_again = true;
        return;
    }
    group->fetching = true;
    (void)snprintf(group->seq_text, sizeof(group->seq_text), "%" PRId64, group->seq);
    format_since(group->since_text, group->since_us);
    fill_events_call(&group->fetch_call, &group->org, group->seq_text, group->since_text);
    group->fetch_call.done = on_fetched;
    group->fetch_call.ctx = group;
    db_submit(loop_db(group->streams->loop), &group->fetch_call);
}

/* ------------------------------------------------------------------ samples */

/* True when this version is new; remembers it. */
static bool note_version(struct group *group, const struct uuid *cluster, int64_t version)
{
    for (size_t i = 0; i < group->version_count; i++) {
        if (uuid_eq(&group->versions[i].cluster, cluster)) {
            bool moved = group->versions[i].version != version;
            group->versions[i].version = version;
            return moved;
        }
    }
    struct cluster_version *grown =
        reallocarray(group->versions, group->version_count + 1, sizeof(*grown));
    if (grown == NULL) {
        abort();
    }
    grown[group->version_count++] = (struct cluster_version){*cluster, version};
    group->versions = grown;
    return true;
}

static void tell_sample(struct group *group, const struct uuid *cluster, int64_t version)
{
    char id[UUID_TEXT_LEN + 1];
    char text[160];
    uuid_format(cluster, id);
    int len = snprintf(text, sizeof(text),
                       "event: sample\ndata: {\"cluster_id\":\"%s\",\"version\":%" PRId64 "}\n\n",
                       id, version);
    for (struct stream *stream = group->first; stream != NULL; stream = stream->next) {
        if (!stream->filtered || uuid_eq(&stream->cluster, cluster)) {
            stream_say(stream, (struct str){text, (size_t)len});
        }
    }
}

static void on_sampled(struct db_call *call, enum err err, const struct db_rows *rows)
{
    struct group *group = call->ctx;
    group->sampling = false;
    if (err != ERR_NONE) {
        group->sample_due = true;
        return;
    }
    int cluster_col = db_rows_col(rows, "cluster_id");
    int version_col = db_rows_col(rows, "version");
    for (int i = 0; i < db_rows_count(rows); i++) {
        struct uuid cluster;
        int64_t version = db_i64(rows, i, version_col);
        if (db_uuid(rows, i, cluster_col, &cluster) && note_version(group, &cluster, version) &&
            group->versions_known) {
            tell_sample(group, &cluster, version);
        }
    }
    group->versions_known = true;
}

static void fetch_samples(struct group *group)
{
    group->sample_due = false;
    group->sampling = true;
    group->sample_call = (struct db_call){.sql = SQL_STREAM_SAMPLES,
                                          .has_org = true,
                                          .org = group->org,
                                          .done = on_sampled,
                                          .ctx = group};
    db_submit(loop_db(group->streams->loop), &group->sample_call);
}

/* ------------------------------------------------------------------ callers */

/* A caller with a role in a part of the org only reads the stream of a cluster there. */
static bool may_read(const struct stream *stream, const struct caller *caller)
{
    const char *scope = NULL;
    char cluster[UUID_TEXT_LEN + 1];
    uuid_format(&stream->cluster, cluster);
    return !caller->suspended &&
           auth_permit_scoped(stream->ex->rq.arena, caller, PERM_CLUSTER_READ, false, &scope) ==
               ERR_NONE &&
           (scope == NULL || (stream->filtered && auth_in_scope(scope, str_of(cluster))));
}

static void on_checked(struct db_call *call, enum err err, const struct db_rows *rows)
{
    struct stream *stream = call->ctx;
    struct caller caller = {0};
    stream->calls--;
    call->ctx = NULL; /* no check is under way */
    if (stream->ex == NULL) {
        release(stream);
        return;
    }
    if (err != ERR_NONE) {
        stream->check_due = true;
        return;
    }
    if (!auth_caller_read(stream->ex->rq.arena, rows, &caller) ||
        !uuid_eq(&caller.org, &stream->group->org) || !may_read(stream, &caller)) {
        stream_end(stream);
        return;
    }
    stream->expires_us = caller.expires_us;
}

static void check_caller(struct stream *stream)
{
    if (stream->closing || stream->check_call.ctx != NULL) {
        stream->check_due = stream->check_due || !stream->closing;
        return;
    }
    stream->check_due = false;
    stream->check_call =
        (struct db_call){.sql = SQL_AUTH_LOOKUP, .done = on_checked, .ctx = stream};
    db_arg(&stream->check_call.args, stream->hash_text);
    stream->calls++;
    db_submit(loop_db(stream->group->streams->loop), &stream->check_call);
}

void group_check_callers(struct group *group)
{
    for (struct stream *stream = group->first; stream != NULL; stream = stream->next) {
        check_caller(stream);
    }
}

/* ------------------------------------------------------------------ life */

static struct group *find_group(struct streams *streams, const struct uuid *org)
{
    for (struct group *group = streams->groups; group != NULL; group = group->next) {
        if (uuid_eq(&group->org, org)) {
            return group;
        }
    }
    struct group *group = calloc(1, sizeof(*group));
    if (group == NULL) {
        abort();
    }
    *group = (struct group){
        .next = streams->groups,
        .streams = streams,
        .org = *org,
        .seq = -1,
        .since_us = clock_wall_us() - SLACK_US,
        .sample_due = true,
    };
    streams->groups = group;
    return group;
}

struct stream *stream_add(struct streams *streams, struct request *rq, int64_t after)
{
    struct stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        abort();
    }
    struct group *group = find_group(streams, &rq->caller.org);
    *stream = (struct stream){
        .next = group->first,
        .group = group,
        .ex = exchange_of(rq),
        .seq = after,
        .since_us = clock_wall_us() - FIRST_LOOK_US,
        .expires_us = rq->caller.expires_us,
    };
    memcpy(stream->token_hash, rq->token_hash, sizeof(stream->token_hash));
    stream->hash_text[0] = '\\';
    stream->hash_text[1] = 'x';
    crypto_hex(rq->token_hash, sizeof(rq->token_hash), stream->hash_text + 2);
    group->first = stream;
    return stream;
}

void stream_remove(struct stream *stream)
{
    struct stream **at = &stream->group->first;
    while (*at != stream) {
        at = &(*at)->next;
    }
    *at = stream->next;
    stream->ex = NULL;
    release(stream);
}

void group_free(struct group *group)
{
    free(group->versions);
    free(group);
}

static void drop_empty(struct group *group)
{
    struct group **at = &group->streams->groups;
    if (group->first != NULL || group->fetching || group->sampling) {
        return;
    }
    while (*at != group) {
        at = &(*at)->next;
    }
    *at = group->next;
    group_free(group);
}

void group_tick(struct group *group)
{
    int64_t now_us = clock_wall_us();
    for (struct stream *stream = group->first; stream != NULL; stream = stream->next) {
        if (stream->check_due || stream->expires_us <= now_us) {
            check_caller(stream);
        }
    }
    if (group->fetch_again && !group->fetching) {
        group->fetch_again = false;
        group_fetch(group);
    }
    if (group->sample_due && !group->sampling && group->first != NULL) {
        fetch_samples(group);
    }
    drop_empty(group);
}
