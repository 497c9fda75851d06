/* `musterd sign-in-link`: a link that signs a person in once. */
#ifndef SERVER_SIGN_IN_LINK_H
#define SERVER_SIGN_IN_LINK_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

#define SIGN_IN_LINK_SECONDS 600

/* Writes the address with the token in its fragment, which no server log ever sees. The token's
 * hash is stored, and the act is in the audit of each of the person's organizations. 0, or a
 * sentence in error. */
enum err sign_in_link_make(const char *user, char *link, size_t link_cap, char *error,
                           size_t error_cap) MUST_CHECK;

#endif
