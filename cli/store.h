/* What `muster login` keeps: a token for each server, in the person's own folder. */
#ifndef CLI_STORE_H
#define CLI_STORE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/cleanup.h"

/*
 * One file a server, 0600 in $XDG_CONFIG_HOME/muster or ~/.config/muster (0700). Servers are told
 * apart by scheme, host in lower case and port; what follows is no part of the key.
 */

/* Keeps what the server answered to a sign-in. False after printing what failed. */
bool store_put(const char *server, const json_t *signed_in) MUST_CHECK;
/* What is kept for this server, owned by the caller; NULL when there is nothing usable. */
json_t *store_get(const char *server) MUST_CHECK;
/* Forgets it; nothing there is fine. */
void store_drop(const char *server);

#endif
