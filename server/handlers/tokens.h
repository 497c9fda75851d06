/* Handlers of service tokens whose answer carries a secret once. */
#ifndef SERVER_HANDLERS_TOKENS_H
#define SERVER_HANDLERS_TOKENS_H

#include "server/request.h"

request_handler service_token_create;
request_handler service_token_rotate;

#endif
