/* What repairs brought, and reports of a span of time. */
#ifndef SERVER_HANDLERS_REPAIR_REPORT_H
#define SERVER_HANDLERS_REPAIR_REPORT_H

#include "server/request.h"

request_handler repair_statistics;
request_handler incident_report;

#endif
