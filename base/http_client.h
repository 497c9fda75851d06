/* Outgoing HTTP on libcurl: deadlines, size caps and an address filter. */
#ifndef BASE_HTTP_CLIENT_H
#define BASE_HTTP_CLIENT_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/str.h"

struct http_client; /* one keep-alive handle; one thread at a time */

struct http_client_options {
    const char *ca_file; /* NULL = the system's */
    struct str ca_pem;   /* the only authorities that are trusted; empty = as ca_file says */
    const char *certificate_file; /* of our own, PEM; NULL = none */
    const char *key_file;         /* goes with it */
    long timeout_ms;              /* whole exchange; 0 = 5000 */
    size_t max_bytes;             /* answer body; 0 = 1 MiB */
    bool public_addresses_only;   /* refuse loopback, private, link-local ... at connect time */
    bool allow_http;              /* plain http is refused otherwise, except to loopback when not
                                     public_addresses_only */
};

struct http_answer {
    long status; /* 0 = no answer */
    struct buf body;
    long retry_after_s; /* 1 to 86400; -1 = none */
    long max_age_s;     /* Cache-Control: 0 for no-store and no-cache, at most a year; -1 = none */
    char error[160];    /* set when status is 0 */
    bool unsent;        /* status is 0 and surely nothing of the request left this machine */
};

struct http_client *http_client_new(const struct http_client_options *options);
void http_client_free(struct http_client *client);
/* headers: NULL-terminated "Name: value" lines or NULL. The answer starts zeroed; its body buf is
 * reused. No redirects, no proxy, no user name in the URL, HTTP/1.1, TLS 1.2 or later. */
void http_client_send(struct http_client *client, const char *method, const char *url,
                      const char *const *headers, struct str body, struct http_answer *ret_answer);
void http_answer_free(struct http_answer *answer);
/* "host:port" of an http or https URL, the host in lower case, IPv6 in brackets; false for what is
 * no such URL or does not fit. */
bool http_url_authority(const char *url, char *ret_text, size_t cap) MUST_CHECK;
/* What public_addresses_only asks: globally reachable unicast, IPv4 or IPv6. */
bool http_address_is_public(const struct sockaddr *address);

#endif
