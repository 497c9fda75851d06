/* What the server sends to issuers and webhooks: to public https addresses, or to what
 * outbound_allow names. */
#include "server/fetch.h"

#include <stdio.h>

#include "server/config.h"

#define AUTHORITY_MAX 272 /* a host name, a port, brackets */

bool fetch_is_allowed(const char *url)
{
    char authority[AUTHORITY_MAX];
    struct str rest = str_of(config.outbound_allow);
    struct str item;

    if (rest.len == 0 || !http_url_authority(url, authority, sizeof(authority))) {
        return false;
    }
    while (str_split(&rest, ',', &item)) {
        if (str_eq_nocase(str_trim(item), str_of(authority))) {
            return true;
        }
    }
    return false;
}

void fetch_send(const struct fetch *fetch, struct http_answer *ret_answer)
{
    bool allowed = fetch_is_allowed(fetch->url);
    const struct http_client_options options = {
        .ca_pem = fetch->ca_certificate,
        .timeout_ms = fetch->timeout_ms,
        .public_addresses_only = !allowed,
        .allow_http = allowed,
    };
    struct http_client *client = http_client_new(&options);

    http_client_send(client, fetch->method != NULL ? fetch->method : "GET", fetch->url,
                     fetch->headers, fetch->body, ret_answer);
    http_client_free(client);
}

static void refuse(struct http_answer *answer, const char *error)
{
    answer->status = 0;
    buf_clear(&answer->body);
    (void)snprintf(answer->error, sizeof(answer->error), "%s", error);
}

/* White space, then an object: content types lie too often to be asked. */
static bool looks_like_json(struct str body)
{
    body = str_trim(body);
    return body.len > 0 && body.ptr[0] == '{' && body.ptr[body.len - 1] == '}';
}

void fetch_json(const struct fetch *fetch, struct http_answer *ret_answer)
{
    char error[80];

    fetch_send(fetch, ret_answer);
    if (ret_answer->status == 0) {
        return;
    }
    if (ret_answer->status >= 300 && ret_answer->status < 400) {
        refuse(ret_answer, "it answers with a redirect, which is not followed");
    } else if (ret_answer->status != 200) {
        (void)snprintf(error, sizeof(error), "it answers with status %ld", ret_answer->status);
        refuse(ret_answer, error);
    } else if (!looks_like_json(buf_str(&ret_answer->body))) {
        refuse(ret_answer, "it answers with something that is not a JSON object");
    }
}
