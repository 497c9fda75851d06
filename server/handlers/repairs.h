/* Handlers of repairs where C must think; the rest are statements in the table of routes. */
#ifndef SERVER_HANDLERS_REPAIRS_H
#define SERVER_HANDLERS_REPAIRS_H

#include "server/request.h"

request_handler repair_request; /* POST /nodes/{node}/repairs */
request_handler repair_approve; /* POST /repairs/{repair}/approve */
request_handler repair_reject;
request_handler repair_cancel;
request_handler repair_settle;
request_handler incident_close; /* POST /incidents/{incident}/close: wakes the loops */

#endif
