/* The handler that gives a person a role: the only one of members that needs two fresh ids. */
#ifndef SERVER_HANDLERS_MEMBERS_H
#define SERVER_HANDLERS_MEMBERS_H

#include "server/request.h"

request_handler member_create;

#endif
