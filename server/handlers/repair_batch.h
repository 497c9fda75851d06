/* Repairs of several nodes that a person asks for together. */
#ifndef SERVER_HANDLERS_REPAIR_BATCH_H
#define SERVER_HANDLERS_REPAIR_BATCH_H

#include "server/request.h"

request_handler repair_batch_request;

#endif
