/* Handlers of checks: the catalogue, and results by check and time. */
#ifndef SERVER_HANDLERS_CHECKS_H
#define SERVER_HANDLERS_CHECKS_H

#include "server/request.h"

request_handler check_list;
request_handler cluster_checks;

#endif
