/* Handlers of the audit log: its list and its export. */
#ifndef SERVER_HANDLERS_AUDIT_H
#define SERVER_HANDLERS_AUDIT_H

#include "server/request.h"

request_handler audit_list;
request_handler audit_export;

#endif
