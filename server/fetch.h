/* What the server sends to issuers and webhooks: to public https addresses, or to what
 * outbound_allow names. */
#ifndef SERVER_FETCH_H
#define SERVER_FETCH_H

#include <stdbool.h>

#include "base/http_client.h"

struct fetch {
    const char *method; /* NULL = GET */
    const char *url;
    const char *const *headers; /* as http_client_send takes them; may be NULL */
    struct str body;
    struct str ca_certificate; /* PEM, the only authorities trusted; empty = the system's */
    long timeout_ms;           /* 0 = 5000 */
};

/*
 * Blocks for timeout_ms at most; threads of a pool only. The address is checked when it is
 * connected to, so that a name that changes its address gains nothing; redirects are not followed
 * (the answer has their status); the body has 1 MiB at most. ret_answer starts zeroed;
 * http_answer_free it.
 */
void fetch_send(const struct fetch *fetch, struct http_answer *ret_answer);
/* The same for JSON documents: anything but 200 with a JSON content is status 0 with a sentence in
 * error that holds nothing of the body. */
void fetch_json(const struct fetch *fetch, struct http_answer *ret_answer);

/* True when outbound_allow names the URL's host and port: it may be private, and plain http. */
bool fetch_is_allowed(const char *url);

#endif
