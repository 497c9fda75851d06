/* Handlers of lists whose statement depends on what leads the index: events and incidents. */
#ifndef SERVER_HANDLERS_LISTS_H
#define SERVER_HANDLERS_LISTS_H

#include "server/request.h"

request_handler event_list;
request_handler cluster_event_list;
request_handler incident_list;

#endif
