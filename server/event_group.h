/* The event streams of one org on one loop, and what they are fed with. Loop's thread only. */
#ifndef SERVER_EVENT_GROUP_H
#define SERVER_EVENT_GROUP_H

#include "server/exchange.h"

#define STREAM_FROM_NOW (-1) /* begin at the org's present place */

struct group;

struct stream {
    struct stream *next; /* in its group */
    struct group *group;
    struct exchange *ex; /* NULL: the connection is gone, a call is still under way */
    struct uuid cluster;
    bool filtered;
    bool live;    /* fed by the group's fetches */
    bool closing; /* ends when `out` is sent */
    bool check_due;
    int64_t seq;      /* told up to here; STREAM_FROM_NOW until the head is known */
    int64_t since_us; /* events before this instant cannot follow; INT64_MIN = look at all */
    int64_t expires_us;
    int calls; /* under way */
    struct buf out;
    size_t sent;
    struct db_call catch_call;
    struct db_call check_call;
    char seq_text[24];
    char since_text[40];
    char hash_text[72];
    uint8_t token_hash[32];
};

struct cluster_version {
    struct uuid cluster;
    int64_t version;
};

struct group {
    struct group *next;
    struct streams *streams;
    struct uuid org;
    struct stream *first;
    int64_t seq; /* fetched up to here; -1 = not known yet */
    int64_t since_us;
    bool fetching;
    bool fetch_again;
    bool sample_due;
    bool sampling;
    bool versions_known;
    struct db_call fetch_call;
    struct db_call sample_call;
    char seq_text[24];
    char since_text[40];
    struct cluster_version *versions;
    size_t version_count;
};

struct streams {
    struct loop *loop;
    struct group *groups;
    size_t count; /* open connections */
};

/* A stream for the caller of rq in its org's group. */
struct stream *stream_add(struct streams *streams, struct request *rq, int64_t after);
void stream_remove(struct stream *stream); /* its connection is gone */
void stream_catch_up(struct stream *stream);
void stream_say(struct stream *stream, struct str text); /* cuts a client that does not read */
void stream_end(struct stream *stream);

void group_fetch(struct group *group);         /* something new is there */
void group_check_callers(struct group *group); /* a credential was revoked somewhere */
void group_tick(struct group *group);          /* samples, expiry; frees an empty group */
void group_free(struct group *group);          /* at the end, when no call can be under way */

#endif
