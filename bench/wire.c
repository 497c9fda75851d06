/* Many keep-alive HTTP/1.1 connections to one server on one epoll, for muster-sim. */
#include "bench/wire.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

#define ANSWER_MAX (1u << 20)
#define ANSWER_TIMEOUT_US (15 * 1000000LL)
#define RECONNECT_US 200000
#define EVENTS_MAX 256
#define HOST_MAX 256

struct link {
    struct wire *wire;
    int fd;
    SSL *ssl;
    bool connected;
    bool want_write;
    struct buf out;
    size_t out_done;
    struct buf in;
    struct wire_request *first; /* the first one is in flight */
    struct wire_request **last;
    bool in_flight;
    int64_t sent_us;
    int64_t retry_us; /* not before this time */
};

struct wire {
    int epoll;
    char host[HOST_MAX];
    char authority[HOST_MAX + 8];
    struct sockaddr_storage address;
    socklen_t address_len;
    SSL_CTX *tls;
    struct link *links;
    size_t count;
    size_t waiting;
    int64_t checked_us;
};

static bool split_url(const char *url, bool *ret_tls, char *host, char *port)
{
    struct str rest = str_of(url);
    *ret_tls = str_starts(rest, STR("https://"));
    if (!*ret_tls && !str_starts(rest, STR("http://"))) {
        return false;
    }
    rest.ptr += *ret_tls ? 8 : 7;
    rest.len -= *ret_tls ? 8 : 7;
    if (rest.len > 0 && rest.ptr[rest.len - 1] == '/') {
        rest.len--;
    }
    ptrdiff_t colon = str_find(rest, STR(":"), 0);
    size_t host_len = colon < 0 ? rest.len : (size_t)colon;
    if (host_len == 0 || host_len >= HOST_MAX) {
        return false;
    }
    memcpy(host, rest.ptr, host_len);
    host[host_len] = '\0';
    (void)snprintf(port, 8, "%s", *ret_tls ? "443" : "80");
    if (colon >= 0) {
        struct str text = {rest.ptr + host_len + 1, rest.len - host_len - 1};
        uint64_t number;
        if (!str_parse_u64(text, 1, 65535, &number)) {
            return false;
        }
        (void)snprintf(port, 8, "%u", (unsigned)number);
    }
    return true;
}

static SSL_CTX *new_tls(const char *ca_file)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    if (tls == NULL) {
        return NULL;
    }
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    bool loaded = ca_file == NULL ? SSL_CTX_set_default_verify_paths(tls) == 1
                                  : SSL_CTX_load_verify_locations(tls, ca_file, NULL) == 1;
    if (!loaded) {
        SSL_CTX_free(tls);
        return NULL;
    }
    return tls;
}

struct wire *wire_new(const char *url, const char *ca_file, int connections, char *error,
                      size_t error_cap)
{
    bool tls;
    char port[8];
    struct wire *wire = calloc(1, sizeof(*wire));
    assert(wire != NULL);
    wire->epoll = -1;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (!split_url(url, &tls, wire->host, port) ||
        getaddrinfo(wire->host, port, &hints, &found) != 0) {
        (void)snprintf(error, error_cap, "--server takes http(s)://host:port of a known host");
        wire_free(wire);
        return NULL;
    }
    memcpy(&wire->address, found->ai_addr, found->ai_addrlen);
    wire->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    (void)snprintf(wire->authority, sizeof(wire->authority), "%s:%s", wire->host, port);
    if (tls && (wire->tls = new_tls(ca_file)) == NULL) {
        (void)snprintf(error, error_cap, "the CA file could not be read");
        wire_free(wire);
        return NULL;
    }
    wire->epoll = epoll_create1(EPOLL_CLOEXEC);
    wire->count = (size_t)connections;
    wire->links = calloc(wire->count, sizeof(*wire->links));
    assert(wire->epoll >= 0 && wire->links != NULL);
    for (size_t i = 0; i < wire->count; i++) {
        wire->links[i] = (struct link){.wire = wire, .fd = -1};
        wire->links[i].last = &wire->links[i].first;
    }
    return wire;
}

static void drop_link(struct link *link)
{
    if (link->ssl != NULL) {
        SSL_free(link->ssl);
        link->ssl = NULL;
    }
    if (link->fd >= 0) {
        close(link->fd);
        link->fd = -1;
    }
    link->connected = false;
    link->want_write = false;
    link->out_done = 0;
    buf_clear(&link->out);
    buf_clear(&link->in);
}

void wire_free(struct wire *wire)
{
    if (wire == NULL) {
        return;
    }
    for (size_t i = 0; i < wire->count; i++) {
        drop_link(&wire->links[i]);
        buf_free(&wire->links[i].out);
        buf_free(&wire->links[i].in);
    }
    free(wire->links);
    SSL_CTX_free(wire->tls);
    if (wire->epoll >= 0) {
        close(wire->epoll);
    }
    free(wire);
}

static void watch(struct link *link, bool write)
{
    struct epoll_event event = {.events = EPOLLIN | (write ? (uint32_t)EPOLLOUT : 0u),
                                .data.ptr = link};
    if (epoll_ctl(link->wire->epoll, EPOLL_CTL_MOD, link->fd, &event) == 0) {
        link->want_write = write;
    }
}

static void open_link(struct link *link)
{
    struct wire *wire = link->wire;
    link->retry_us = clock_mono_us() + RECONNECT_US;
    link->fd = socket(wire->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link->fd < 0) {
        return;
    }
    int one = 1;
    (void)setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    int done = connect(link->fd, (const struct sockaddr *)&wire->address, wire->address_len);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = link};
    if ((done != 0 && errno != EINPROGRESS) ||
        epoll_ctl(wire->epoll, EPOLL_CTL_ADD, link->fd, &event) != 0) {
        drop_link(link);
        return;
    }
    link->want_write = true;
    if (wire->tls != NULL) {
        link->ssl = SSL_new(wire->tls);
        assert(link->ssl != NULL);
        SSL_set_fd(link->ssl, link->fd);
        SSL_set_connect_state(link->ssl);
        SSL_set_tlsext_host_name(link->ssl, wire->host);
        SSL_set1_host(link->ssl, wire->host);
    }
}

/* -1 = would block, 0 = closed or broken. */
static ssize_t link_read(struct link *link, void *data, size_t len)
{
    if (link->ssl != NULL) {
        int got = SSL_read(link->ssl, data, (int)len);
        int why = got > 0 ? 0 : SSL_get_error(link->ssl, got);
        return got > 0 ? got : (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) ? -1 : 0;
    }
    ssize_t got = recv(link->fd, data, len, 0);
    return got >= 0 ? got : (errno == EAGAIN || errno == EINTR) ? -1 : 0;
}

static ssize_t link_write(struct link *link, const void *data, size_t len)
{
    if (link->ssl != NULL) {
        int put = SSL_write(link->ssl, data, (int)len);
        int why = put > 0 ? 0 : SSL_get_error(link->ssl, put);
        return put > 0 ? put : (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) ? -1 : 0;
    }
    ssize_t put = send(link->fd, data, len, MSG_NOSIGNAL);
    return put >= 0 ? put : (errno == EAGAIN || errno == EINTR) ? -1 : 0;
}

static void finish(struct link *link, int status, struct str body)
{
    struct wire_request *request = link->first;
    link->first = request->next;
    if (link->first == NULL) {
        link->last = &link->first;
    }
    link->in_flight = false;
    link->wire->waiting--;
    request->next = NULL;
    request->done(request, status, body);
}

static void fail_link(struct link *link)
{
    drop_link(link);
    if (link->in_flight) {
        finish(link, 0, (struct str){0});
    }
}

static void flush_link(struct link *link)
{
    while (link->out_done < link->out.len) {
        ssize_t put =
            link_write(link, link->out.ptr + link->out_done, link->out.len - link->out_done);
        if (put == 0) {
            fail_link(link);
            return;
        }
        if (put < 0) {
            break;
        }
        link->connected = true;
        link->out_done += (size_t)put;
    }
    bool more = link->out_done < link->out.len;
    if (more != link->want_write) {
        watch(link, more);
    }
}

static void start_next(struct link *link)
{
    if (link->in_flight || link->first == NULL) {
        return;
    }
    int64_t now = clock_mono_us();
    if (link->fd < 0) {
        if (now < link->retry_us) {
            return;
        }
        open_link(link);
        if (link->fd < 0) {
            return;
        }
    }
    struct wire_request *request = link->first;
    buf_clear(&link->out);
    link->out_done = 0;
    buf_printf(&link->out, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n",
               request->path, link->wire->authority);
    if (request->bearer != NULL) {
        buf_printf(&link->out, "Authorization: Bearer %s\r\n", request->bearer);
    }
    buf_printf(&link->out, "Content-Length: %zu\r\n\r\n", request->body.len);
    buf_add(&link->out, request->body.ptr, request->body.len);
    link->in_flight = true;
    link->sent_us = now;
    flush_link(link);
}

/* True when a whole answer was there and its request is done. */
static bool take_answer(struct link *link)
{
    struct str in = buf_str(&link->in);
    ptrdiff_t head_end = str_find(in, STR("\r\n\r\n"), 0);
    if (head_end < 0 || !link->in_flight) {
        return false;
    }
    struct str head = {in.ptr, (size_t)head_end + 2};
    uint64_t status = 0;
    uint64_t length = 0;
    if (head.len < 12 || !str_parse_u64((struct str){head.ptr + 9, 3}, 100, 599, &status)) {
        fail_link(link);
        return false;
    }
    bool close_after = false;
    struct str line;
    struct str rest = head;
    while (str_split(&rest, '\n', &line)) {
        ptrdiff_t colon = str_find(line, STR(":"), 0);
        if (colon < 0) {
            continue;
        }
        struct str name = {line.ptr, (size_t)colon};
        struct str value =
            str_trim((struct str){line.ptr + colon + 1, line.len - (size_t)colon - 1});
        if (str_eq_nocase(name, STR("Content-Length")) &&
            !str_parse_u64(value, 0, ANSWER_MAX, &length)) {
            fail_link(link);
            return false;
        }
        close_after = close_after || (str_eq_nocase(name, STR("Connection")) &&
                                      str_eq_nocase(value, STR("close")));
    }
    size_t total = (size_t)head_end + 4 + (size_t)length;
    if (in.len < total) {
        return false;
    }
    finish(link, (int)status, (struct str){in.ptr + head_end + 4, (size_t)length});
    buf_clear(&link->in);
    if (close_after) {
        drop_link(link);
        link->retry_us = 0;
    }
    return true;
}

static void read_link(struct link *link)
{
    char data[16384];
    for (;;) {
        ssize_t got = link_read(link, data, sizeof(data));
        if (got < 0) {
            return;
        }
        if (got == 0 || link->in.len + (size_t)got > ANSWER_MAX + 65536) {
            fail_link(link);
            return;
        }
        buf_add(&link->in, data, (size_t)got);
        if (take_answer(link) && link->fd >= 0) {
            start_next(link);
        }
        if (link->fd < 0 || (link->ssl == NULL && (size_t)got < sizeof(data))) {
            return;
        }
    }
}

void wire_send(struct wire *wire, size_t key, struct wire_request *request)
{
    struct link *link = &wire->links[key % wire->count];
    request->next = NULL;
    *link->last = request;
    link->last = &request->next;
    wire->waiting++;
    start_next(link);
}

/* Late answers and links that wait to connect again: ten times a second is often enough. */
static void check_links(struct wire *wire, int64_t now)
{
    wire->checked_us = now;
    for (size_t i = 0; i < wire->count; i++) {
        struct link *link = &wire->links[i];
        if (link->in_flight && now - link->sent_us > ANSWER_TIMEOUT_US) {
            fail_link(link);
        }
        start_next(link);
    }
}

void wire_turn(struct wire *wire, int timeout_ms)
{
    struct epoll_event events[EVENTS_MAX];
    int ready = epoll_wait(wire->epoll, events, EVENTS_MAX, timeout_ms);
    for (int i = 0; i < ready; i++) {
        struct link *link = events[i].data.ptr;
        if (link->fd >= 0 && (events[i].events & EPOLLOUT) != 0) {
            flush_link(link);
        }
        if (link->fd >= 0 && (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
            read_link(link);
        }
        if (link->fd < 0) {
            start_next(link);
        }
    }
    int64_t now = clock_mono_us();
    if (now - wire->checked_us > 100000) {
        check_links(wire, now);
    }
}

size_t wire_in_flight(const struct wire *wire)
{
    return wire->waiting;
}
