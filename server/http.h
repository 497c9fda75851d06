/* The HTTP side of a loop: connections, deadlines, refusals; the only room that knows
 * libmicrohttpd. */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http;
struct loop;

struct http_options {
    struct loop *loop;
    int listen_fd;           /* owned by http afterwards */
    const char *certificate; /* PEM text, NULL = plain http */
    const char *key;
    unsigned connections; /* at most; below the limit of open files */
};

/* NULL with a sentence in error. All calls: the loop's thread, or before it starts. */
struct http *http_new(const struct http_options *options, char *error, size_t error_cap);
/* All requests must have ended or been finished (http_finish). NULL is fine. */
void http_free(struct http *http);

int http_poll_fd(const struct http *http);    /* readable: http_run has work */
int http_timeout_ms(const struct http *http); /* at most so long until http_run; -1 = no matter */
void http_run(struct http *http);             /* accepts, reads, answers, closes what is late */
bool http_has_resumed(
    const struct http *http); /* a resume since http_run: run again in this turn */

void http_quiesce(struct http *http);          /* accepts no more; idle connections are closed */
size_t http_requests(const struct http *http); /* under way */
size_t http_clients(const struct http *http);
void http_finish(struct http *http); /* answers what still waits with 503 */
bool http_is_tls(const struct http *http);

#endif
