/* The handler that makes a join token, whose secret is shown once. */
#ifndef SERVER_HANDLERS_JOIN_TOKENS_H
#define SERVER_HANDLERS_JOIN_TOKENS_H

#include "server/request.h"

request_handler join_token_create;

#endif
