/* What the engine keeps about a request besides what handlers see. For the engine's own files only.
 */
#ifndef SERVER_EXCHANGE_H
#define SERVER_EXCHANGE_H

#include <sys/types.h>

#include "base/buf.h"
#include "server/auth.h"
#include "server/limits.h"
#include "server/loop.h"
#include "server/request.h"

struct MHD_Connection;
struct MHD_Response;
struct client;
struct http;

/* The headers that the engine looks at; `single` ones may stand once. */
#define HEADER_TABLE(X)                                    \
    X(HEADER_HOST, "Host", true)                           \
    X(HEADER_CONTENT_LENGTH, "Content-Length", true)       \
    X(HEADER_TRANSFER_ENCODING, "Transfer-Encoding", true) \
    X(HEADER_AUTHORIZATION, "Authorization", true)         \
    X(HEADER_COOKIE, "Cookie", true)                       \
    X(HEADER_CONTENT_TYPE, "Content-Type", true)           \
    X(HEADER_CONTENT_ENCODING, "Content-Encoding", true)   \
    X(HEADER_EXPECT, "Expect", true)                       \
    X(HEADER_ORIGIN, "Origin", true)                       \
    X(HEADER_SEC_FETCH_SITE, "Sec-Fetch-Site", true)       \
    X(HEADER_IF_MATCH, "If-Match", true)                   \
    X(HEADER_IF_NONE_MATCH, "If-None-Match", true)         \
    X(HEADER_IDEMPOTENCY_KEY, "Idempotency-Key", true)     \
    X(HEADER_REQUEST_ID, "X-Request-Id", true)             \
    X(HEADER_LAST_EVENT_ID, "Last-Event-ID", true)         \
    X(HEADER_FORWARDED_FOR, "X-Forwarded-For", false)      \
    X(HEADER_FORWARDED_PROTO, "X-Forwarded-Proto", false)  \
    X(HEADER_USER_AGENT, "User-Agent", false)              \
    X(HEADER_ORG, "Muster-Org", true)                      \
    X(HEADER_HOOK_ID, "webhook-id", true)                  \
    X(HEADER_HOOK_AT, "webhook-timestamp", true)           \
    X(HEADER_HOOK_SIGNATURE, "webhook-signature", true)    \
    X(HEADER_PREFER, "Prefer", false)                      \
    X(HEADER_ACCEPT, "Accept", false)                      \
    X(HEADER_ACCEPT_ENCODING, "Accept-Encoding", false)
enum header {
#define HEADER_ENUM(sym, name, single) sym,
    HEADER_TABLE(HEADER_ENUM)
#undef HEADER_ENUM
        HEADER_COUNT
};

enum exchange_stage {
    STAGE_START,   /* the request line was read */
    STAGE_AUTH,    /* the headers were checked; the caller is looked up */
    STAGE_BODY,    /* the body comes in */
    STAGE_RUN,     /* the route runs */
    STAGE_ANSWER,  /* the answer is known */
    STAGE_DISCARD, /* the answer is known; the rest of a small body is read and dropped first */
    STAGE_SENT,    /* libmicrohttpd has the answer */
};

/* What a stream of events does for its connection; called on the loop's thread. */
struct stream_ops {
    /* Up to max bytes into data; 0 = nothing now, -1 = the end. */
    ssize_t (*read)(void *ctx, char *data, size_t max);
    void (*close)(void *ctx); /* the connection is gone; the last call */
};

struct exchange {
    struct request rq;     /* first: handlers hold &rq */
    struct exchange *next; /* among the loop's free ones, or its long polls */
    struct http *http;
    struct MHD_Connection *connection;
    struct client *client;
    enum exchange_stage stage;
    bool parked;      /* suspended in libmicrohttpd */
    bool again;       /* parked before the body: the next call repeats the one at the headers */
    bool close_after; /* its framing cannot be trusted: close when answered */
    bool cookie;      /* the caller came by a cookie */
    bool body_expected;
    struct str headers[HEADER_COUNT]; /* ptr NULL = absent; they live as long as the request */
    enum err uri_err;
    const char *uri_detail;
    struct buf body;
    size_t body_seen; /* bytes, dropped ones included */
    unsigned allow;   /* 405: enum method_bit */
    struct db_call call;
    request_then *then;
    struct MHD_Response *ready; /* a page held in memory that is the answer; not owned */
    struct str scope;           /* of the list's cursors */
    struct limits_taken limits;
    const struct stream_ops *stream_ops;
    void *stream_ctx;
    int64_t wait_until_us; /* long poll; 0 = does not wait */
    int64_t started_us;
    int status_sent;
    int route_index; /* for the metrics */
};

static inline struct exchange *exchange_of(struct request *rq)
{
    return (struct exchange *)rq;
}

/* ---- http.c */
/* A parked connection goes on: the answer is sent, or the stream is read again. */
void exchange_unpark(struct exchange *ex);
/* Cuts the connection; its close callback follows in the next run. */
void exchange_abort(struct exchange *ex);
/* Suspends the connection in libmicrohttpd; only from inside its callbacks. */
void exchange_park(struct exchange *ex);

/* The answer was handed over: its deadline begins, and it is counted. */
void http_answer_begins(struct exchange *ex);

/* ---- refuse.c: what is wrong with a request before anybody looks at its meaning */
enum err refuse_uri(struct str uri, const char **ret_detail);
enum err refuse_method(struct str method, const char **ret_detail);
/* One header; fills its place in `headers` or says what is wrong. */
enum err refuse_header(struct str name, struct str value, struct str headers[HEADER_COUNT],
                       const char **ret_detail);
/* The framing of the whole: lengths, codings, Host. */
enum err refuse_framing(const struct str headers[HEADER_COUNT], const char **ret_detail);

/* ---- admit.c: from the headers to a known caller with the right permission */
/* Afterwards stage is BODY or ANSWER, or rq.suspended: the lookup is under way. */
void exchange_admit(struct exchange *ex);
/* With rq.caller known: limits and permission; afterwards stage is BODY or ANSWER. */
void exchange_permit(struct exchange *ex);
/* The answer is this refusal. */
void exchange_refuse(struct exchange *ex, enum err err, const char *sentence);
bool exchange_wants_html(const struct exchange *ex);
/* Bytes of body that this request may send. */
size_t exchange_body_cap(const struct exchange *ex);

/* ---- static.c: files held in memory; true when one of them is the answer (ex->ready) */
bool exchange_serve_file(struct exchange *ex);

/* ---- execute.c: from the caller to the answer */
/* Decodes and runs the route; afterwards rq.suspended, or the answer is set. */
void exchange_run(struct exchange *ex);
/* Runs the statement of a long poll again. */
void exchange_requery(struct exchange *ex);

/* ---- wait.c */
/* Parks a request whose answer has not changed; false when it may not wait (any more). */
bool exchange_wait(struct exchange *ex);

/* ---- respond.c: the single exit */
/* If-None-Match names the ETag of the present answer (weak comparison, RFC 9110 13.1.2). */
bool exchange_is_unchanged(const struct exchange *ex);
/* Hands the answer to libmicrohttpd. False: it was refused; the connection is closed. */
bool exchange_respond(struct exchange *ex);
/* A page held in memory that is sent as it is, again and again; freed with respond_free. */
struct ready_header {
    const char *name;
    const char *value;
};
struct MHD_Response *respond_make(struct str body, const struct ready_header *headers,
                                  size_t count);
void respond_free(struct MHD_Response *response);
/* The answer becomes a stream (status 200, text/event-stream); its handler returns 0 afterwards. */
void exchange_stream(struct exchange *ex, const struct stream_ops *ops, void *ctx);

#endif
