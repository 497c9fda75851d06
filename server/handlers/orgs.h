/* Handlers of organizations: those of a person, making one, suspending one. */
#ifndef SERVER_HANDLERS_ORGS_H
#define SERVER_HANDLERS_ORGS_H

#include "server/request.h"

request_handler org_list;
request_handler org_create;
request_handler org_suspend;
request_handler org_resume;

#endif
