/* The command line's calls to a server: address, token, problems in words. */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/cleanup.h"

struct client;

/* The token is the text itself (no file name), "" for none. Never NULL. */
struct client *client_new(const char *server, const char *token, const char *ca_file);
void client_free(struct client *client);
/*
 * Calls METHOD /api/v1<path>; body NULL = none (owned by the caller). idempotency: sends a fresh
 * key. Returns the decoded body (owned by the caller; an empty object for 204), or NULL after
 * printing on standard error what failed and what to do.
 */
json_t *client_call(struct client *client, const char *method, const char *path, json_t *body,
                    bool idempotency) MUST_CHECK;
/*
 * The same for who wants to see refusals: prints nothing. ret_status is 0 when there was no answer;
 * the body, also that of a problem, is owned by the caller, NULL when there is none.
 */
json_t *client_ask(struct client *client, const char *method, const char *path, json_t *body,
                   long *ret_status) MUST_CHECK;
/* All pages of a list, as one array; NULL after a printed failure. */
json_t *client_list(struct client *client, const char *path) MUST_CHECK;

#endif
