/* Policies of repairs, stops and breakers. */
#ifndef SERVER_HANDLERS_POLICIES_H
#define SERVER_HANDLERS_POLICIES_H

#include "server/request.h"

request_handler policy_create;
request_handler policy_update;
request_handler policy_delete;
request_handler policy_of_node;
request_handler policy_of_cluster;
request_handler repairs_stop_node;
request_handler repairs_allow_node;
request_handler repairs_stop_cluster;
request_handler repairs_allow_cluster;
request_handler repairs_stop_org;
request_handler repairs_allow_org;
request_handler repairs_stop_platform;
request_handler repairs_allow_platform;
request_handler breaker_reset_cluster;
request_handler breaker_reset_org;
request_handler breaker_reset_platform;

#endif
