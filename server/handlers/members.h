/* Handlers of members: giving a role, and what each role may do. */
#ifndef SERVER_HANDLERS_MEMBERS_H
#define SERVER_HANDLERS_MEMBERS_H

#include "server/request.h"

request_handler member_create;
request_handler role_list;

#endif
