/* The HTTP side of a loop on libmicrohttpd: connections, deadlines, and the life of a request. */
#include "server/http.h"

#include <arpa/inet.h>
#include <assert.h>
#include <limits.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/client.h"
#include "server/config.h"
#include "server/exchange.h"
#include "server/metrics.h"
#include "server/network.h"

/* Holds request line and headers, an OIDC token of 16 KiB included; an idle client costs this. */
#define POOL_BYTES ((size_t)32 * 1024)
/* A refused body up to this size is read to its end, so that the answer reaches a client that sends
 * first and reads later; a longer one is cut. */
#define DISCARD_MAX ((size_t)1024 * 1024)
/* What waits for one batch of reports: with fewer kept, a fleet makes and frees memory for each
 * report. 512 take 5 MB. */
#define SPARE_MAX 512
#define BODY_KEEP_BYTES ((size_t)8 * 1024)
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct http {
    struct loop *loop;
    struct MHD_Daemon *daemon;
    int poll_fd;
    bool tls;
    bool resumed;
    int64_t now_us;
    struct clients clients;
    struct exchange *spare;
    size_t spare_count;
    size_t requests;
};

/* ------------------------------------------------------------------ connections */

static void read_peer(struct MHD_Connection *connection, struct client *client)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info != NULL ? info->client_addr : NULL;
    const void *raw = NULL;
    if (address == NULL) {
        return;
    }
    int family = address->sa_family;
    if (family == AF_INET) {
        raw = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    } else if (family == AF_INET6) {
        const struct in6_addr *v6 =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        bool mapped = IN6_IS_ADDR_V4MAPPED(v6);
        family = mapped ? AF_INET : AF_INET6;
        raw = mapped ? (const void *)&v6->s6_addr[12] : (const void *)v6;
    }
    if (raw != NULL && inet_ntop(family, raw, client->address, sizeof(client->address)) != NULL) {
        client->address_len = strlen(client->address);
    }
}

static void open_client(struct http *http, struct MHD_Connection *connection, void **context)
{
    struct client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        abort();
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    client->fd = info != NULL ? info->connect_fd : -1;
    read_peer(connection, client);
    struct str address = {client->address, client->address_len};
    client->proxy = networks_hold(config.trusted_proxies, address);
    client->insecure_allowed = networks_hold(config.insecure_http_from, address);
    clients_add(&http->clients, client, http->now_us);
    *context = client;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http *http = cls;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        open_client(http, connection, context);
    } else if (*context != NULL) {
        struct client *client = *context;
        clients_remove(&http->clients, client);
        free(client);
        *context = NULL;
    }
}

static struct client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info->socket_context;
}

static void cut(const struct client *client)
{
    /* libmicrohttpd sees the end of the stream and closes; only it may close the descriptor. */
    if (client->fd >= 0) {
        (void)shutdown(client->fd, SHUT_RDWR);
    }
}

static void cut_late(struct http *http)
{
    struct client *client;
    while ((client = clients_late(&http->clients, http->now_us)) != NULL) {
        cut(client);
        clients_move(&http->clients, client, CLIENT_BUSY, http->now_us);
    }
}

/* ------------------------------------------------------------------ exchanges */

static struct exchange *take_exchange(struct http *http)
{
    struct exchange *ex = http->spare;
    struct arena *arena = NULL;
    struct buf body = {0};
    if (ex != NULL) {
        http->spare = ex->next;
        http->spare_count--;
        arena = ex->rq.arena;
        body = ex->body;
    } else {
        ex = calloc(1, sizeof(*ex));
        if (ex == NULL) {
            abort();
        }
        arena = arena_new(REQUEST_ARENA_CAP);
    }
    *ex = (struct exchange){.http = http, .body = body, .started_us = http->now_us};
    ex->rq.arena = arena;
    ex->rq.loop = http->loop;
    ex->rq.version = -1;
    ex->rq.retry_after_s = -1;
    ex->route_index = METRIC_ROUTE_NONE;
    http->requests++;
    return ex;
}

static void give_exchange(struct http *http, struct exchange *ex)
{
    http->requests--;
    if (ex->body.cap > BODY_KEEP_BYTES) {
        buf_free(&ex->body);
    }
    buf_clear(&ex->body);
    if (http->spare_count >= SPARE_MAX) {
        arena_free(ex->rq.arena);
        buf_free(&ex->body);
        free(ex);
        return;
    }
    arena_reset(ex->rq.arena);
    ex->next = http->spare;
    http->spare = ex;
    http->spare_count++;
}

/* The request line was read: the address as it came, before anything was decoded in it. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
    struct http *http = cls;
    struct exchange *ex = take_exchange(http);
    struct str raw = str_of(uri);
    ex->connection = connection;
    ex->client = client_of(connection);
    ex->client->exchange = ex;
    ex->uri_err = refuse_uri(raw, &ex->uri_detail);
    if (ex->uri_err == ERR_NONE) {
        struct str rest = {arena_strndup(ex->rq.arena, raw.ptr, raw.len), raw.len};
        (void)str_split(&rest, '?', &ex->rq.path);
        ex->rq.query = rest;
    }
    clients_move(&http->clients, ex->client, CLIENT_HEADER, http->now_us);
    return ex;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct http *http = cls;
    struct exchange *ex = *context;
    (void)connection;
    (void)code;
    if (ex == NULL) {
        return;
    }
    assert(!ex->parked);
    if (ex->stream_ops != NULL) {
        ex->stream_ops->close(ex->stream_ctx);
    }
    ex->client->exchange = NULL;
    clients_move(&http->clients, ex->client, CLIENT_IDLE, http->now_us);
    *context = NULL;
    give_exchange(http, ex);
}

void exchange_park(struct exchange *ex)
{
    MHD_suspend_connection(ex->connection);
    ex->parked = true;
    clients_move(&ex->http->clients, ex->client, CLIENT_BUSY, ex->http->now_us);
}

void exchange_unpark(struct exchange *ex)
{
    if (ex->parked) {
        ex->parked = false;
        ex->http->resumed = true;
        MHD_resume_connection(ex->connection);
    }
}

void exchange_abort(struct exchange *ex)
{
    cut(ex->client);
    exchange_unpark(ex);
}

/* ------------------------------------------------------------------ a request, step by step */

struct header_walk {
    struct exchange *ex;
    enum err err;
    const char *detail;
};

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                 size_t key_len, const char *value, size_t value_len)
{
    struct header_walk *walk = cls;
    (void)kind;
    walk->err = refuse_header((struct str){key, key_len}, (struct str){value, value_len},
                              walk->ex->headers, &walk->detail);
    return walk->err == ERR_NONE ? MHD_YES : MHD_NO;
}

/* The first call: everything that can be said before the body. */
static void check_headers(struct exchange *ex, const char *method)
{
    struct header_walk walk = {.ex = ex, .err = ex->uri_err, .detail = ex->uri_detail};
    ex->rq.method = str_of(arena_strndup(ex->rq.arena, method, strnlen(method, 32)));
    if (walk.err == ERR_NONE) {
        walk.err = refuse_method(ex->rq.method, &walk.detail);
    }
    enum err framing = ERR_NONE;
    if (walk.err == ERR_NONE) {
        (void)MHD_get_connection_values_n(ex->connection, MHD_HEADER_KIND, on_header, &walk);
        framing = walk.err != ERR_NONE ? walk.err : refuse_framing(ex->headers, &walk.detail);
        walk.err = framing;
    } else {
        framing = walk.err;
    }
    ex->close_after = framing != ERR_NONE;
    ex->body_expected = ex->headers[HEADER_TRANSFER_ENCODING].ptr != NULL ||
                        (ex->headers[HEADER_CONTENT_LENGTH].ptr != NULL &&
                         !str_eq_c(ex->headers[HEADER_CONTENT_LENGTH], "0"));
    if (walk.err != ERR_NONE) {
        (void)fail(&ex->rq, walk.err, "%s", walk.detail);
        ex->stage = STAGE_ANSWER;
        return;
    }
    exchange_admit(ex);
}

/* Short enough to be read to its end and dropped; a chunked one tells only while it comes. */
static bool body_is_short(const struct exchange *ex)
{
    uint64_t length = 0;
    struct str text = ex->headers[HEADER_CONTENT_LENGTH];
    return text.ptr == NULL || str_parse_u64(text, 0, DISCARD_MAX, &length);
}

/* After the headers: park for the lookup, answer, or go on to the body. */
static enum MHD_Result after_headers(struct exchange *ex)
{
    struct http *http = ex->http;
    if (ex->rq.suspended) {
        ex->stage = STAGE_AUTH;
        ex->again = true;
        exchange_park(ex);
        return MHD_YES;
    }
    if (ex->stage == STAGE_ANSWER && (ex->close_after || ex->body_expected)) {
        bool discard =
            !ex->close_after && ex->headers[HEADER_EXPECT].ptr == NULL && body_is_short(ex);
        if (!discard) {
            return exchange_respond(ex) ? MHD_YES : MHD_NO;
        }
        ex->stage = STAGE_DISCARD;
    }
    /* An answer queued here would close the connection after it: it waits for the last call. */
    if (ex->body_expected) {
        clients_move(&http->clients, ex->client, CLIENT_BODY, http->now_us);
    }
    return MHD_YES;
}

static enum MHD_Result take_body(struct exchange *ex, const char *data, size_t *size)
{
    size_t len = *size;
    *size = 0;
    ex->body_seen += len;
    if (ex->stage == STAGE_BODY && ex->body_seen > exchange_body_cap(ex)) {
        (void)fail(&ex->rq, ERR_TOO_LARGE, "The body may have at most %zu bytes.",
                   exchange_body_cap(ex));
        ex->stage = STAGE_DISCARD;
        buf_free(&ex->body);
    }
    if (ex->stage == STAGE_BODY) {
        buf_add(&ex->body, data, len);
        return MHD_YES;
    }
    return ex->stage == STAGE_DISCARD && ex->body_seen <= 2 * DISCARD_MAX ? MHD_YES : MHD_NO;
}

static enum MHD_Result run_request(struct exchange *ex)
{
    ex->stage = STAGE_RUN;
    ex->rq.body = buf_str(&ex->body);
    exchange_run(ex);
    if (ex->rq.suspended) {
        exchange_park(ex);
        return MHD_YES;
    }
    return exchange_respond(ex) ? MHD_YES : MHD_NO;
}

/* The library's signature. NOLINTNEXTLINE(readability-function-size) */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **context)
{
    struct exchange *ex = *context;
    (void)cls;
    (void)connection;
    (void)url;
    (void)version;
    if (*upload_data_size > 0) {
        return take_body(ex, upload_data, upload_data_size);
    }
    switch (ex->stage) {
    case STAGE_START:
        check_headers(ex, method);
        return after_headers(ex);
    case STAGE_BODY:
        if (ex->again) {
            ex->again = false;
            return after_headers(ex);
        }
        return run_request(ex);
    case STAGE_RUN:
    case STAGE_AUTH:
    case STAGE_SENT:
        return MHD_YES;
    case STAGE_ANSWER:
        if (ex->again) {
            ex->again = false;
            return after_headers(ex);
        }
        return exchange_respond(ex) ? MHD_YES : MHD_NO;
    case STAGE_DISCARD:
    default:
        return exchange_respond(ex) ? MHD_YES : MHD_NO;
    }
}

void request_suspend(struct request *rq)
{
    rq->suspended = true;
}

void request_resume(struct request *rq)
{
    struct exchange *ex = exchange_of(rq);
    assert(rq->suspended);
    rq->suspended = false;
    if (ex->stage == STAGE_RUN) {
        ex->stage = STAGE_ANSWER;
    }
    exchange_unpark(ex);
}

bool request_stopping(const struct request *rq)
{
    return loop_stopping(rq->loop);
}

/* ------------------------------------------------------------------ the daemon */

static void on_log(void *cls, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
static void on_log(void *cls, const char *format, va_list args)
{
    char text[256];
    (void)cls;
    (void)vsnprintf(text, sizeof(text), format, args);
    log_debug("http: %s", text);
}

/* The array of options takes plain pointers also where they are only read. */
static void *borrow(const void *data)
{
    const union {
        const void *as_const;
        void *plain;
    } both = {.as_const = data};
    return both.plain;
}

static struct MHD_Daemon *start_daemon(struct http *http, const struct http_options *options)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, borrow(options->certificate)},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, borrow(options->key)},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, borrow(TLS_PRIORITIES)},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    http->tls = options->certificate != NULL;
    if (http->tls) {
        flags |= MHD_USE_TLS;
    }
    /* No time-out of libmicrohttpd: it restarts with each byte; ours are deadlines. */
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, options->listen_fd, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        POOL_BYTES, MHD_OPTION_CONNECTION_LIMIT, options->connections,
        MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_URI_LOG_CALLBACK, on_uri, http,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, http, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY,
        http->tls ? tls : none, MHD_OPTION_END);
}

struct http *http_new(const struct http_options *options, char *error, size_t error_cap)
{
    struct http *http = calloc(1, sizeof(*http));
    if (http == NULL) {
        abort();
    }
    http->loop = options->loop;
    http->now_us = clock_mono_us();
    http->clients.timeout_us[CLIENT_HEADER] = config.header_timeout_seconds * 1000000;
    http->clients.timeout_us[CLIENT_IDLE] = config.idle_timeout_seconds * 1000000;
    http->clients.timeout_us[CLIENT_BODY] = config.body_timeout_seconds * 1000000;
    http->clients.timeout_us[CLIENT_ANSWER] = config.answer_timeout_seconds * 1000000;
    http->daemon = start_daemon(http, options);
    if (http->daemon == NULL) {
        (void)close(options->listen_fd);
        (void)snprintf(error, error_cap, "the HTTP server did not start%s",
                       http->tls ? "; is tls_key the key of tls_certificate?" : "");
        free(http);
        return NULL;
    }
    http->poll_fd = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    return http;
}

void http_free(struct http *http)
{
    if (http == NULL) {
        return;
    }
    MHD_stop_daemon(http->daemon);
    while (http->spare != NULL) {
        struct exchange *ex = http->spare;
        http->spare = ex->next;
        arena_free(ex->rq.arena);
        buf_free(&ex->body);
        free(ex);
    }
    free(http);
}

int http_poll_fd(const struct http *http)
{
    return http->poll_fd;
}

int http_timeout_ms(const struct http *http)
{
    MHD_UNSIGNED_LONG_LONG left = 0;
    int timeout = clients_timeout_ms(&http->clients, clock_mono_us());
    if (http->resumed) {
        return 0;
    }
    if (MHD_get_timeout(http->daemon, &left) == MHD_YES &&
        (timeout < 0 || left < (MHD_UNSIGNED_LONG_LONG)timeout)) {
        timeout = (int)left;
    }
    return timeout;
}

void http_run(struct http *http)
{
    http->now_us = clock_mono_us();
    http->resumed = false;
    cut_late(http);
    (void)MHD_run(http->daemon);
}

bool http_has_resumed(const struct http *http)
{
    return http->resumed;
}

void http_answer_begins(struct exchange *ex)
{
    struct http *http = ex->http;
    bool stream = ex->stream_ops != NULL;
    clients_move(&http->clients, ex->client, stream ? CLIENT_BUSY : CLIENT_ANSWER, http->now_us);
    if (!stream) {
        loop_metrics_request(loop_metrics(http->loop), ex->route_index, ex->status_sent,
                             http->now_us - ex->started_us);
    }
}

bool http_is_tls(const struct http *http)
{
    return http->tls;
}

void http_quiesce(struct http *http)
{
    MHD_socket fd = MHD_quiesce_daemon(http->daemon);
    if (fd >= 0) {
        (void)close(fd);
    }
    for (struct client *client = http->clients.heads[CLIENT_IDLE]; client != NULL;
         client = client->next) {
        cut(client);
    }
}

size_t http_requests(const struct http *http)
{
    return http->requests;
}

size_t http_clients(const struct http *http)
{
    return http->clients.count;
}

void http_finish(struct http *http)
{
    for (size_t i = 0; i < CLIENT_PHASES; i++) {
        for (struct client *client = http->clients.heads[i]; client != NULL;
             client = client->next) {
            struct exchange *ex = client->exchange;
            if (ex == NULL || !ex->parked) {
                continue;
            }
            if (ex->rq.suspended) {
                (void)fail(&ex->rq, ERR_UNAVAILABLE, "The server is stopping; try again.");
                request_resume(&ex->rq);
            } else {
                exchange_unpark(ex);
            }
        }
    }
}
