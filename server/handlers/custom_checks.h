/* Handlers of an org's own checks: what a definition says is checked here, the rest is SQL's. */
#ifndef SERVER_HANDLERS_CUSTOM_CHECKS_H
#define SERVER_HANDLERS_CUSTOM_CHECKS_H

#include "server/request.h"

request_handler custom_check_create;
request_handler custom_check_update;
request_handler custom_check_try;

#endif
