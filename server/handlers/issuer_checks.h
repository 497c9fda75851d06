/* Handlers that try an issuer: its documents before it is set up, a token, and its keys anew. */
#ifndef SERVER_HANDLERS_ISSUER_CHECKS_H
#define SERVER_HANDLERS_ISSUER_CHECKS_H

#include "server/request.h"

request_handler issuer_discover, issuer_test_token, issuer_refresh_keys;

#endif
