/* Handlers of nodes: the list, and cordon. */
#ifndef SERVER_HANDLERS_NODES_H
#define SERVER_HANDLERS_NODES_H

#include "server/request.h"

request_handler node_list;
request_handler node_cordon;
request_handler node_uncordon;

#endif
