/* Handlers of sessions: signing in by a one-time link, another org, signing out, who one is. */
#ifndef SERVER_HANDLERS_SESSION_H
#define SERVER_HANDLERS_SESSION_H

#include "server/request.h"

request_handler session_create;
request_handler session_switch;
request_handler session_delete;
request_handler session_delete_all;
request_handler me_get;

#endif
