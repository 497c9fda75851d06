/* Handlers of the past: samples in columns, transitions, counts by interval. */
#ifndef SERVER_HANDLERS_HISTORY_H
#define SERVER_HANDLERS_HISTORY_H

#include "server/request.h"

request_handler cluster_history;
request_handler cluster_events_strip;
request_handler node_history;
request_handler node_transitions;

#endif
